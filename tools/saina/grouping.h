/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Progressive grouping: chooses the number of groups and the group of each worker by step times.
 * Pure: no clock, no socket.
 *
 * After Basu et al.: as few groups as keep the slowdown small, with the stragglers together. With g
 * groups, m of which have a worker that takes 1 + d times as long as others, training takes
 * 1 / (1 - m (d / (1 + d)) / g) times as long as without stragglers.
 */
#ifndef SAINA_GROUPING_H
#define SAINA_GROUPING_H

#include "ctl/ctl.h"

#define GROUPING_LOSS 1.2	/* acceptable slowdown */

/**
 * struct grouping - groups and step times of the workers of a job
 * @workers: number of workers of the job, dead ones too
 * @groups: number of groups
 * @most: maximum number of groups
 * @alive: mask of live workers
 * @group: per worker: its group
 * @step_us: per live worker: time of a step without waiting for others, microseconds, > 0
 */
struct grouping {
	unsigned int workers, groups, most;
	__u64 alive;
	__u8 group[SAINA_WORKERS_MAX];
	double step_us[SAINA_WORKERS_MAX];
};

/* Slowdown (>= 1) with @g groups, @m of which have a straggler of delay @d. */
double grouping_slowdown(unsigned int g, unsigned int m, double d);

/**
 * grouping_measure() - compute each worker's own step time from the pace of its group
 * @g: out: step_us of all live workers
 * @interval_us: length of the measurement
 * @steps: per worker: steps that it finished
 * @late_us: per worker: mean time between the end of a step of its group's first worker and its own
 *
 * A group is as slow as its last worker; the others finish earlier and wait.
 *
 * Return: false if a worker made too few steps
 */
bool grouping_measure(struct grouping *g, double interval_us, const double *steps,
		      const double *late_us);

/**
 * grouping_choose() - choose the groups
 * @g: present groups; out: @groups and @group as they should be
 * @slowdown: out: predicted for these
 * @stragglers: out: mask of workers whose step time is above 1.5 times the median, and further from
 *	it than the others' are from each other
 *
 * Chooses the fewest of 1, 2, 4, .. groups with a predicted slowdown of at most GROUPING_LOSS.
 *
 * Return: do the groups change?
 */
bool grouping_choose(struct grouping *g, double *slowdown, __u64 *stragglers);

#endif /* SAINA_GROUPING_H */
