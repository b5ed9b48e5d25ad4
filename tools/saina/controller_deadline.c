// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina policy control of a job with policy timeout: chooses T and kmin (deadline.h) by the arrival
 * times of each worker's gradients.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "controller_policy.h"
#include "core/policy.h"

#define PATIENCE_S 10	/* after this time with too few rounds for a measurement, a message says so */

static int set_deadline(struct saina_ctl *ctl, const struct saina_job_attrs *job, struct deadline_setting set)
{
	struct saina_job_attrs req = { .id = job->id };
	struct saina_policy p;

	saina_policy_read(&job->policy, &p);
	p.timeout_us = set.timeout_us;
	p.k_min = set.k_min;
	saina_policy_show(&p, &req.policy);
	SAINA_SET(&req, SAINA_A_JOB_ID);
	SAINA_SET(&req, SAINA_A_JOB_POLICY);
	return rpc_call(ctl, SAINA_CMD_JOB_SET, false, &saina_job_class, &req, NULL, NULL, NULL);
}

static void print_choice(const struct saina_job_attrs *job, struct deadline_setting from, double round_us,
			 const struct deadline_choice *to, bool trial)
{
	out_open(NULL);
	out_str("job", "%s ", job->name);
	out_uint("round", "round %" PRIu64 ":", job->round);
	out_float("from_ms", " T %.3f ms", from.timeout_us / 1000.);
	out_float("timeout_ms", " -> %.3f ms,", to->set.timeout_us / 1000.);
	out_uint("from_kmin", " kmin %" PRIu64, from.k_min);
	out_uint("kmin", " -> %" PRIu64 ",", to->set.k_min);
	out_float("round_ms", " rounds of %.3f ms", round_us / 1000);
	out_float("predicted_ms", " -> %.3f ms", to->round_us / 1000);
	out_float("predicted_count", " with %.2f gradients", to->count);
	out_flag("trial", " (a trial)", trial);
	out_text("\n");
	out_close();
}

/* Discards all measurements if workers have joined, left or restarted. */
static void forget_others(struct controller *c, const struct saina_job_attrs *job, const struct saina_worker_attrs *w,
			  size_t n)
{
	__u64 who = job->generation;
	unsigned int workers = 0;

	for (size_t i = 0; i < n; i++) {
		if (!worker_is_alive(&w[i]))
			continue;
		who = who * 31 + w[i].session + w[i].id;
		workers++;
	}
	if (who == c->deadline.who)
		return;
	c->deadline.who = who;
	c->deadline.d = (struct deadline){ .workers = workers, .noise = c->noise };
	c->t = 0;
}

static bool setting_is(struct deadline_setting a, struct deadline_setting b)
{
	return a.timeout_us == b.timeout_us && a.k_min == b.k_min;
}

/* Prints once why nothing is set. */
static void complain(struct controller *c, const struct saina_job_attrs *job, const char *why)
{
	if (c->deadline.complained)
		return;
	c->deadline.complained = true;
	fprintf(stderr, "saina: job %s: %s: T and kmin stay as they are\n", job->name, why);
}

/* Measures into @a; false if there is no usable measurement yet.  Says why if that takes long. */
static bool measure(struct controller *c, const struct saina_job_attrs *job, const struct saina_worker_attrs *w,
		    size_t n, struct arrivals *a)
{
	enum measured m = controller_measure(c, job, w, n, a);
	double came = 0;
	char why[80];

	if (m == MEASURED_TOO_FEW && monotonic_seconds() - c->t > PATIENCE_S) {
		snprintf(why, sizeof(why), "%u rounds in %.0f s, a measurement needs %d", job->round - c->round,
			 monotonic_seconds() - c->t, ARRIVALS_ROUNDS_MIN);
		complain(c, job, why);
	}
	if (m != MEASURED)
		return false;
	for (unsigned int i = 0; i < a->workers; i++)
		came += arrivals_of(a, i);
	if (came < a->rounds) {
		complain(c, job, "the agent has no arrival times for most of its rounds");
		return false;
	}
	c->deadline.complained = false;
	return true;
}

int controller_deadline(struct controller *c, const struct saina_job_attrs *job,
			const struct saina_worker_attrs *w, size_t n)
{
	struct deadline *d = &c->deadline.d;
	struct deadline_setting now = { job->policy.timeout_us, job->policy.k_min ?: 1 };
	struct arrivals a = { 0 };
	struct deadline_choice to;
	int ret;

	/* a measurement must not span a change of the policy */
	if (SAINA_HAS(job, SAINA_A_JOB_POLICY_NEXT) || job->policy_seq_active != job->policy_seq) {
		c->t = 0;
		return 0;
	}
	forget_others(c, job, w, n);
	if (!setting_is(d->set, now)) {
		/* another client has set it */
		d->set = now;
		d->trial = false;
		c->t = 0;
	}
	if (!measure(c, job, w, n, &a))
		return 0;
	deadline_observe(d, &a);
	to = deadline_choose(d);
	if (setting_is(d->set, now))
		return 0;
	ret = set_deadline(c->ctl, job, d->set);
	if (!ret)
		print_choice(job, now, a.round_us, &to, d->trial);
	c->t = 0;
	return ret;
}
