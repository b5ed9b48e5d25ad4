// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina policy control of a job with policy external: chooses k (dbw.h) by the arrival times of
 * each worker's gradients.
 */
#include <inttypes.h>
#include <string.h>

#include "controller_policy.h"

int controller_set(struct saina_ctl *ctl, __u16 id, unsigned int k, bool there)
{
	struct saina_job_attrs req = { .id = id, .k_set = k, .controller = there };

	SAINA_SET(&req, SAINA_A_JOB_ID);
	SAINA_SET(&req, SAINA_A_JOB_CONTROLLER);
	if (k)
		SAINA_SET(&req, SAINA_A_JOB_K_SET);
	return rpc_call(ctl, SAINA_CMD_JOB_SET, false, &saina_job_class, &req, NULL, NULL, NULL);
}

static void print_choice(const struct dbw *d, const struct saina_job_attrs *job, unsigned int best, bool trial)
{
	out_open(NULL);
	out_str("job", "%s ", job->name);
	out_uint("round", "round %" PRIu64 ":", job->round);
	out_uint("from", " k %" PRIu64, d->k);
	out_uint("k", " -> %" PRIu64 ",", best);
	out_float("round_ms", " rounds of %.3f ms", d->arrivals.round_us / 1000);
	out_float("predicted_ms", " -> %.3f ms", dbw_round_us(d, best) / 1000);
	out_flag("trial", " (a trial)", trial);
	out_text("\n");
	out_close();
}

int controller_k(struct controller *c, const struct saina_job_attrs *job,
		 const struct saina_worker_attrs *w, size_t n)
{
	struct dbw d = { .noise = c->noise, .k = job->k };
	unsigned int best;
	bool trial;
	int ret;

	if (!d.k || controller_measure(c, job, w, n, &d.arrivals) != MEASURED || d.k > d.arrivals.workers)
		return 0;
	best = dbw_next(&d, &c->trials, c->t, &trial);
	if (best == d.k)
		return 0;
	ret = controller_set(c->ctl, job->id, best, true);
	if (!ret)
		print_choice(&d, job, best, trial);
	return ret;
}
