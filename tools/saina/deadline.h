/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chooses T and kmin of policy timeout by renewal reward. Pure: no clock, no socket.
 *
 * A round earns gain(n) = n / (n + noise) for the n gradients in its sum (arrivals.h). The long-run
 * reward per time is that of a round by the mean time of a round (renewal reward theorem), so the
 * best T and kmin are those with the largest ratio
 *
 *	E[gain(N(end))] / (rest + E[end]),  end = last arrival, or the later of T and the kmin-th
 *
 * where N(t) gradients have come t after the first. There, waiting longer earns less per time than
 * the average round does (marginal value theorem; Charnov, "Optimal foraging", 1976).
 */
#ifndef SAINA_DEADLINE_H
#define SAINA_DEADLINE_H

#include "arrivals.h"

/* T and kmin. T is the end of a bucket, because the histograms say nothing of times within one. */
struct deadline_setting {
	__u32 timeout_us;
	unsigned int k_min;
};

/**
 * struct deadline - what is known of a job
 * @workers: number of workers of the job
 * @noise: gradient noise scale in gradients of one worker, > 0
 * @set: setting in force during the measurements
 * @rounds: number of rounds remembered
 * @rest_us: mean time of a round, without the wait after its first gradient
 * @elapsed_us: sum of the time of all measurements
 * @came: per worker and bucket, gradients that came with this lateness
 * @missed: ... that had not come by the end of this bucket, when their round ended
 * @trial: a longer T is in force to learn how late missing gradients would have come
 * @before: the setting to which the trial goes back
 * @trial_us: start of the trial, or earliest start of the next one
 */
struct deadline {
	unsigned int workers;
	double noise;
	struct deadline_setting set;
	double rounds, rest_us, elapsed_us;
	double came[SAINA_WORKERS_MAX][SAINA_ARRIVAL_BUCKETS];
	double missed[SAINA_WORKERS_MAX][SAINA_ARRIVAL_BUCKETS];
	bool trial;
	struct deadline_setting before;
	double trial_us;
};

/**
 * struct deadline_choice - a setting and what is expected of it
 * @set: the setting
 * @round_us: mean time of a round
 * @count: mean number of gradients in a sum
 * @rate: gain per second
 */
struct deadline_choice {
	struct deadline_setting set;
	double round_us, count, rate;
};

/* Adds a measurement, made with @d->set in force; older ones lose weight. */
void deadline_observe(struct deadline *d, const struct arrivals *a);

/*
 * Changes @d->set to what should be in force now, which may be a trial. Returns what is expected of
 * it.
 */
struct deadline_choice deadline_choose(struct deadline *d);

#endif /* SAINA_DEADLINE_H */
