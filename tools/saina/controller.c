// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina policy control - a controller of jobs with policy external, timeout or grouped.
 *
 * Other programs can do the same: they send JOB_SET with k-set or a policy, and with the attribute
 * controller, so that an event reports when they end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "controller_policy.h"
#include "signals.h"
#include "tool.h"

static int run_policy(struct controller *c, const struct saina_job_attrs *job,
		      const struct saina_worker_attrs *w, size_t n)
{
	switch (job->policy.mode) {
	case SAINA_POLICY_EXTERNAL:
		return job->state == SAINA_JOB_RUNNING ? controller_k(c, job, w, n) : 0;
	case SAINA_POLICY_TIMEOUT:
		return job->state == SAINA_JOB_RUNNING ? controller_deadline(c, job, w, n) : 0;
	case SAINA_POLICY_GROUPED:
		return job->state == SAINA_JOB_RUNNING ? controller_groups(c, job, w, n) : 0;
	}
	fprintf(stderr, "saina: job %s has policy %s, which needs no controller: run `saina job set %s policy external:k0=%u', `... timeout:10ms' or `... grouped:g=1' first\n",
		job->name, policy_name(&job->policy), job->name, job->workers);
	return EXIT_FAILURE;
}

/* Refuses options that do not fit the policy of @job. Returns the exit status. */
static int check_options(const struct controller *c, const struct saina_job_attrs *job)
{
	bool grouped = job->policy.mode == SAINA_POLICY_GROUPED;
	bool rounds = job->policy.mode == SAINA_POLICY_EXTERNAL || job->policy.mode == SAINA_POLICY_TIMEOUT;

	if (!(grouped ? c->noise > 0 : rounds && c->most))
		return 0;
	fprintf(stderr, "saina: %s; job %s has policy %s\n",
		grouped ? "noise is for policies external and timeout" : "groups is for policy grouped", job->name,
		policy_name(&job->policy));
	return EXIT_FAILURE;
}

/* Workers are kept by their numbers: each number is in range, and there only once. */
static bool workers_are_valid(const struct saina_worker_attrs *w, size_t n)
{
	__u64 seen = 0;

	for (size_t i = 0; i < n; i++) {
		if (w[i].id >= SAINA_WORKERS_MAX || seen >> w[i].id & 1)
			return false;
		seen |= 1ull << w[i].id;
	}
	return true;
}

/* Reads the job once and lets the policy's controller act. Returns the exit status, 0 to go on. */
static int poll_job(struct controller *c, const struct saina_job_attrs *which)
{
	struct saina_worker_attrs of = { .job_id = which->id };
	struct saina_ctl *agent = is_kernel(c->ctl) ? connect_serving_agent() : NULL;
	struct saina_ctl *from = agent ?: c->ctl;
	struct rpc_list jobs, workers = { 0 };
	int ret;

	SAINA_SET(&of, SAINA_A_WORKER_JOB_ID);
	ret = rpc_list(from, SAINA_CMD_JOB_GET, false, &saina_job_class, which, &saina_job_class, &jobs) ?:
	      rpc_list(from, SAINA_CMD_WORKER_GET, true, &saina_worker_class, &of, &saina_worker_class, &workers);
	if (!ret && !workers_are_valid(workers.v, workers.n)) {
		fprintf(stderr, "saina: the control plane lists a worker twice, or one that cannot be\n");
		ret = EXIT_FAILURE;
	}
	if (!ret && jobs.n)
		ret = run_policy(c, jobs.v, workers.v, workers.n);
	rpc_list_free(&workers);
	rpc_list_free(&jobs);
	saina_ctl_close(agent);
	return ret;
}

static int run_controller(const struct tool *t, const struct saina_job_attrs *named, struct controller *c,
			  __u64 interval)
{
	const struct timespec nap = { interval / 1000, interval % 1000 * 1000000 };
	struct saina_job_attrs which = { 0 }, *job;
	struct rpc_list jobs;
	bool deadline;
	int ret;

	ret = rpc_list(c->ctl, SAINA_CMD_JOB_GET, false, &saina_job_class, named, &saina_job_class, &jobs);
	if (ret)
		return ret;
	job = jobs.v;
	which.id = job->id;
	SAINA_SET(&which, SAINA_A_JOB_ID);
	ret = check_options(c, job);
	c->noise = c->noise ?: job->workers;
	deadline = job->policy.mode == SAINA_POLICY_TIMEOUT;
	rpc_list_free(&jobs);
	ret = ret ?: controller_set(c->ctl, which.id, 0, true);
	if (ret)
		return ret;
	fprintf(stderr, "saina: controlling job %u (Ctrl-C ends it; its last setting stays)\n", which.id);
	if (deadline)
		fprintf(stderr, "saina: its workers should give up gradients of rounds that are over (saina_decided(), state.steps()): where they finish them, this rule leaves few gradients in a sum, and models get worse\n");
	out_stream(t->mode);
	while (!ret && !stop_requested()) {
		ret = poll_job(c, &which);
		if (!ret && !stop_requested())
			nanosleep(&nap, NULL);
	}
	return ret ?: controller_set(c->ctl, which.id, 0, false);
}

int policy_control(const struct tool *t, struct args *a)
{
	struct saina_job_attrs which = { 0 };
	uint64_t interval = 1000, most = 0;
	struct controller *c;
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
				return args_error(a, "noise must be above 0 and at most 1e9: the gradient noise scale in batches of one worker");
		} else if (args_matches(word, "groups")) {
			if (!value || !args_number(value, 1, SAINA_WORKERS_MAX, &most))
				return args_error(a, "groups must be 1 to %d: the largest number of groups",
						  SAINA_WORKERS_MAX);
		} else if (args_matches(word, "interval")) {
			if (!value || !args_number(value, 10, 60000, &interval))
				return args_error(a, "interval must be 10 to 60000 milliseconds");
		} else {
			return args_error(a, "unknown key \"%s\"; allowed: noise BATCHES, groups MOST, interval MS", word);
		}
	}
	stop_on_signals(false);
	c = calloc(1, sizeof(*c));
	if (!c) {
		fprintf(stderr, "saina: out of memory\n");
		return EXIT_FAILURE;
	}
	c->noise = noise;
	c->most = most;
	c->ctl = connect_owner(t);
	ret = c->ctl ? run_controller(t, &which, c, interval) : EXIT_FAILURE;
	saina_ctl_close(c->ctl);
	free(c);
	return ret;
}
