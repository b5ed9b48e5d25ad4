/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Progressive grouping: into how many groups, and who into which, from how long each worker
 * takes for a step.  Pure: no clock, no socket.
 *
 * After Basu et al.: as few groups as keep the loss small, stragglers together.  Of g groups, m
 * of which have a worker that takes 1 + d times as long as others, all together take
 * 1 / (1 - m (d / (1 + d)) / g) times as long as without stragglers.
 */
#ifndef SAINA_GROUPING_H
#define SAINA_GROUPING_H

#include "ctl/ctl.h"

#define GROUPING_LOSS 1.2	/* a slowdown that is small enough */

/**
 * struct grouping - workers, and what was seen of them
 * @workers: places of the job
 * @groups: how many there are
 * @most: how many there may be
 * @alive: mask of live workers
 * @group: by worker: its group
 * @step_us: by live worker: what a step takes it without waiting for others, microseconds, > 0
 */
struct grouping {
	unsigned int workers, groups, most;
	__u64 alive;
	__u8 group[SAINA_WORKERS_MAX];
	double step_us[SAINA_WORKERS_MAX];
};

/* What @g groups cost, @m of which have a straggler of delay @d, >= 1. */
double grouping_slowdown(unsigned int g, unsigned int m, double d);

/**
 * grouping_measure() - a worker's own time for a step, from what groups show of it
 * @g: out: step_us of all live workers
 * @interval_us: that all this was seen in
 * @steps: by worker: that it has finished
 * @late_us: by worker: mean time from when the first of its group had finished a step to when it had
 *
 * A group takes as long as its last worker, and the others wait from when they have finished.
 *
 * Return: false if somebody has made too few steps to say anything
 */
bool grouping_measure(struct grouping *g, double interval_us, const double *steps,
		      const double *late_us);

/**
 * grouping_choose() - the best groups
 * @g: what is; out: @groups and @group as they should be
 * @slowdown: out: predicted for these
 * @stragglers: out: mask of workers that take half as long again as the median, and are further from it than
 *	others are from each other
 *
 * Of 1, 2, 4, .. groups the fewest with which the predicted slowdown is at most GROUPING_LOSS.
 *
 * Return: are they others than now?
 */
bool grouping_choose(struct grouping *g, double *slowdown, __u64 *stragglers);

#endif /* SAINA_GROUPING_H */
