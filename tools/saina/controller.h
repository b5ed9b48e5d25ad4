/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A controller of a job: the loop is in controller.c, what it does by policy in controller_k.c, controller_groups.c. */
#ifndef SAINA_CONTROLLER_H
#define SAINA_CONTROLLER_H

#include <time.h>

#include "tool.h"

/**
 * struct controller - a controller of a job, and what it saw when it last thought
 * @ctl: the control plane
 * @noise: gradient noise scale in gradients of one worker
 * @most: groups that there may be at most, 0: as many as workers
 * @t: when it last thought, seconds; 0: what was seen is not of the policy that is in force
 * @generation: of the job then
 * @worker: then, by number
 * @k: of policy external:
 *	@k.round: of the job then
 *	@k.trial: when this trial began, 0: none is on.  Gradients that workers do not send because the
 *		round is over say nothing of how late they would have been, so now and then k is
 *		one higher for a while
 *	@k.next_trial: when the next may begin
 * @groups: of policy grouped:
 *	@groups.seq: number of the policy then
 *	@groups.looks: one after the other that found the same stragglers
 *	@groups.stragglers: found at the last look
 */
struct controller {
	struct saina_ctl *ctl;
	double noise;
	unsigned int most;
	double t;
	__u32 generation;
	struct saina_worker_attrs worker[SAINA_WORKERS_MAX];
	struct {
		__u32 round;
		double trial, next_trial;
	} k;
	struct {
		__u32 seq;
		unsigned int looks;
		__u64 stragglers;
	} groups;
};

static inline double monotonic_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static inline bool worker_is_alive(const struct saina_worker_attrs *w)
{
	return w->state == SAINA_WORKER_STATE_ALIVE || w->state == SAINA_WORKER_STATE_SLOW;
}

/* JOB_SET of job @id: @k (0: none), and whether there is a controller.  The exit status. */
int controller_set(struct saina_ctl *ctl, __u16 id, unsigned int k, bool there);

/*
 * Look once at a running job with this policy and its @n workers @w, and set what is better, if
 * anything is.  The exit status, 0: go on.
 */
int controller_k(struct controller *c, const struct saina_job_attrs *job,
		 const struct saina_worker_attrs *w, size_t n);
int controller_groups(struct controller *c, const struct saina_job_attrs *job,
		      const struct saina_worker_attrs *w, size_t n);

#endif /* SAINA_CONTROLLER_H */
