/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A controller of a job. controller.c has its loop; controller_k.c, controller_deadline.c and
 * controller_groups.c have the rules of the policies external, timeout and grouped.
 */
#ifndef SAINA_CONTROLLER_POLICY_H
#define SAINA_CONTROLLER_POLICY_H

#include "dbw.h"
#include "deadline.h"
#include "monotonic.h"
#include "tool.h"

/**
 * struct controller - a controller of a job and its last measurement
 * @ctl: the control plane
 * @noise: gradient noise scale in gradients of one worker
 * @most: maximum number of groups, 0: the number of workers
 * @t: time of the last measurement, seconds; 0: there is none under the policy in force
 * @generation: generation of the job at that time
 * @worker: attributes of the workers at that time, by number
 * @round: round of the job at that time
 * @trials: of policy external
 * @deadline: of policy timeout
 *	@deadline.d: what is known of the workers
 *	@deadline.who: hash of these workers and their sessions
 *	@deadline.complained: a message has said why nothing is set
 * @groups: of policy grouped
 *	@groups.seq: sequence number of the policy at that time
 *	@groups.looks: consecutive measurements with the same stragglers
 *	@groups.stragglers: mask of the stragglers of the last measurement
 */
struct controller {
	struct saina_ctl *ctl;
	double noise;
	unsigned int most;
	double t;
	__u32 generation, round;
	struct saina_worker_attrs worker[SAINA_WORKERS_MAX];
	struct dbw_trials trials;
	struct {
		struct deadline d;
		__u64 who;
		bool complained;
	} deadline;
	struct {
		__u32 seq;
		unsigned int looks;
		__u64 stragglers;
	} groups;
};

static inline double monotonic_seconds(void)
{
	return monotonic_ns() / 1e9;
}

static inline bool worker_is_alive(const struct saina_worker_attrs *w)
{
	return w->state == SAINA_WORKER_STATE_ALIVE || w->state == SAINA_WORKER_STATE_SLOW;
}

/*
 * Sends JOB_SET for job @id: sets k to @k (0: leaves it), and says whether the job has a controller
 * (@there). Returns the exit status.
 */
int controller_set(struct saina_ctl *ctl, __u16 id, unsigned int k, bool there);

enum measured { MEASURED_TOO_FEW, MEASURED_FIRST, MEASURED };

/*
 * Measures a job with rounds since the last measurement. MEASURED_TOO_FEW: there were too few
 * rounds, and the last measurement stays. MEASURED_FIRST: there is no last measurement to compare
 * with, and @a is not valid.
 */
enum measured controller_measure(struct controller *c, const struct saina_job_attrs *job,
				 const struct saina_worker_attrs *w, size_t n, struct arrivals *a);

/*
 * Measure a running job with this policy and its @n workers @w, and change the policy if that makes
 * it faster. Return the exit status, 0 to go on.
 */
int controller_k(struct controller *c, const struct saina_job_attrs *job,
		 const struct saina_worker_attrs *w, size_t n);
int controller_deadline(struct controller *c, const struct saina_job_attrs *job,
			const struct saina_worker_attrs *w, size_t n);
int controller_groups(struct controller *c, const struct saina_job_attrs *job,
		      const struct saina_worker_attrs *w, size_t n);

#endif /* SAINA_CONTROLLER_POLICY_H */
