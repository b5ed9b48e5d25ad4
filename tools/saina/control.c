// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina policy control - a controller of jobs with policy external: chooses k (dbw.h) by
 * when the gradients of each worker come.  Anybody can write another one: JOB_SET with
 * k-set, and controller so that an event tells when it is gone.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dbw.h"
#include "tool.h"

#define ROUNDS 20 /* fewer than this say nothing */
#define TRIALS 20 /* trials take one part in so many of the time */

static volatile sig_atomic_t stopped;

static void stop(int sig)
{
	stopped = 1;
}

/*
 * What was seen when k was last thought about.  Gradients that workers do not send because
 * the round is over say nothing of how late they would have been, so now and then k is one
 * higher for a while: a trial.
 */
struct before {
	double t;			/* seconds */
	double trial, next_trial;	/* when this one began, 0: none is on; when the next may */
	__u32 generation, round;
	struct saina_worker_attrs worker[SAINA_WORKERS_MAX];
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* JOB_SET of job @id: @k (0: none), and whether there is a controller. */
static int tell(struct saina_ctl *ctl, __u16 id, unsigned int k, bool there)
{
	struct saina_job_attrs req = { .id = id, .k_set = k, .controller = there };

	SAINA_SET(&req, SAINA_A_JOB_ID);
	SAINA_SET(&req, SAINA_A_JOB_CONTROLLER);
	if (k)
		SAINA_SET(&req, SAINA_A_JOB_K_SET);
	return rpc_call(ctl, SAINA_CMD_JOB_SET, false, &saina_job_class, &req, NULL, NULL, NULL);
}

/* Also as data, so that others can check the choice. */
static void say(const struct dbw *d, const struct saina_job_attrs *job, unsigned int best, bool trial)
{
	out_open(NULL);
	out_str("job", "%s ", job->name);
	out_uint("round", "round %" PRIu64 ":", job->round);
	out_uint("from", " k %" PRIu64, d->k);
	out_uint("k", " -> %" PRIu64 ",", best);
	out_float("round_ms", " rounds of %.3f ms", d->round_us / 1000);
	out_float("predicted_ms", " -> %.3f ms", dbw_round_us(d, best) / 1000);
	out_flag("trial", " (a trial)", trial);
	out_text("\n");
	out_close();
}

/* The difference to what was seen before, into @d: false if it is too small to say anything. */
static bool look(struct dbw *d, struct before *b, const struct saina_job_attrs *job,
		 const struct saina_worker_attrs *w, size_t n)
{
	double now = seconds();
	bool same = b->t > 0 && b->generation == job->generation && job->round >= b->round;

	if (same && job->round - b->round < ROUNDS)
		return false;
	d->rounds = job->round - b->round;
	d->round_us = (now - b->t) * 1e6 / d->rounds;
	d->workers = 0;
	memset(d->late, 0, sizeof(d->late));
	for (size_t i = 0; i < n; i++) {
		struct saina_worker_attrs *old = &b->worker[w[i].id];
		bool alive = w[i].state == SAINA_WORKER_STATE_ALIVE || w[i].state == SAINA_WORKER_STATE_SLOW;

		for (int h = 0; alive && h < SAINA_ARRIVAL_BUCKETS; h++)
			d->late[d->workers][h] = (double)w[i].arrival_hist[h] - old->arrival_hist[h];
		d->workers += alive;
		same &= !alive || old->session == w[i].session;
		*old = w[i];
	}
	b->t = now;
	b->generation = job->generation;
	b->round = job->round;
	return same;
}

/* Do workers leave out rounds? */
static bool missing(const struct dbw *d)
{
	double n = 0;

	for (unsigned int w = 0; w < d->workers; w++)
		for (int b = 0; b < SAINA_ARRIVAL_BUCKETS; b++)
			n += d->late[w][b];
	return n < 0.95 * d->rounds * d->workers;
}

static void trial_ends(struct before *b)
{
	if (b->trial > 0)
		b->next_trial = b->t + TRIALS * (b->t - b->trial);
	b->trial = 0;
}

/* Looks once, and sets k if another is better.  Returns the exit status, 0: go on. */
static int step(const struct tool *t, struct saina_ctl *ctl, const struct saina_job_attrs *which,
		struct dbw *d, struct before *b)
{
	struct saina_worker_attrs of = { .job_id = which->id };
	struct saina_ctl *agent = beside_open(t, ctl);
	struct rpc_list jobs, workers = { 0 };
	struct saina_job_attrs *job;
	unsigned int best;
	bool trial;
	int ret;

	SAINA_SET(&of, SAINA_A_WORKER_JOB_ID);
	ret = rpc_list_one(ctl, SAINA_CMD_JOB_GET, &saina_job_class, which, &saina_job_class, &jobs) ?:
	      rpc_list(ctl, SAINA_CMD_WORKER_GET, &saina_worker_class, &of, &saina_worker_class, &workers);
	if (ret || !jobs.n)
		goto out;
	job = jobs.v;
	beside_jobs(agent, job, 1);
	beside_workers(agent, workers.v, workers.n);
	if (job->policy.mode != SAINA_POLICY_EXTERNAL) {
		fprintf(stderr, "saina: the policy of job %s is %s, so k is not a controller's: `saina job set %s policy external:k0=%u' first\n",
			job->name, policy_name(&job->policy), job->name, job->workers);
		ret = EXIT_FAILURE;
		goto out;
	}
	d->k = job->k;
	if (job->state != SAINA_JOB_RUNNING || !d->k || !look(d, b, job, workers.v, workers.n) ||
	    d->k > d->workers)
		goto out;
	best = dbw_choose(d);
	trial_ends(b);
	trial = best == d->k && best < d->workers && b->t >= b->next_trial && missing(d);
	if (trial) {
		b->trial = b->t;
		best++;
	} else if (best != d->k) {
		b->next_trial = b->t + TRIALS * ROUNDS * d->round_us / 1e6;
	}
	if (best != d->k) {
		ret = tell(ctl, job->id, best, true);
		if (!ret)
			say(d, job, best, trial);
	}
out:
	rpc_list_free(&workers);
	rpc_list_free(&jobs);
	saina_ctl_close(agent);
	return ret;
}

static int control(const struct tool *t, const struct saina_job_attrs *named, double noise, __u64 interval)
{
	const struct timespec nap = { interval / 1000, interval % 1000 * 1000000 };
	struct saina_ctl *ctl = rpc_open(t);
	struct saina_job_attrs which = { 0 };
	struct rpc_list jobs;
	struct before *b;
	struct dbw d = { 0 };
	int ret;

	if (!ctl)
		return EXIT_FAILURE;
	b = calloc(1, sizeof(*b));
	ret = !b ? EXIT_FAILURE :
		   rpc_list_one(ctl, SAINA_CMD_JOB_GET, &saina_job_class, named, &saina_job_class, &jobs);
	if (!ret) {
		which.id = ((struct saina_job_attrs *)jobs.v)->id;
		SAINA_SET(&which, SAINA_A_JOB_ID);
		d.noise = noise ?: ((struct saina_job_attrs *)jobs.v)->workers;
		rpc_list_free(&jobs);
		ret = tell(ctl, which.id, 0, true);
	}
	if (!ret)
		fprintf(stderr, "saina: controlling k of job %u, gradient noise %g; Ctrl-C ends it, k stays\n",
			which.id, d.noise);
	out_stream(t->mode);
	while (!ret && !stopped) {
		ret = step(t, ctl, &which, &d, b);
		if (!ret && !stopped)
			nanosleep(&nap, NULL);
	}
	if (!ret)
		ret = tell(ctl, which.id, 0, false);
	saina_ctl_close(ctl);
	free(b);
	return ret;
}

int policy_control(const struct tool *t, struct args *a)
{
	struct sigaction sa = { .sa_handler = stop };
	struct saina_job_attrs which = { 0 };
	uint64_t interval = 1000;
	const char *word;
	double noise = 0;
	char *end;
	int ret;

	ret = parse_job(a, args_next(a), &which.has, SAINA_A_JOB_ID, SAINA_A_JOB_NAME, &which.id, which.name);
	if (ret)
		return ret;
	while ((word = args_next(a))) {
		const char *value = args_next(a);

		if (args_matches(word, "noise")) {
			noise = value ? strtod(value, &end) : 0;
			if (!value || *end || !(noise > 0 && noise <= 1e9))
				return args_error(a, "noise wants the gradient noise scale in batches of one worker, above 0 to 1e9");
		} else if (args_matches(word, "interval")) {
			if (!value || !args_number(value, 10, 60000, &interval))
				return args_error(a, "interval wants milliseconds, 10 to 60000");
		} else {
			return args_error(a, "\"%s\" is not allowed here; allowed: noise BATCHES, interval MS", word);
		}
	}
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	return control(t, &which, noise, interval);
}
