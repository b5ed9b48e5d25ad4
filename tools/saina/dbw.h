/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chooses the number of workers to wait for: the k with the fastest training progress, from the
 * arrival times of each worker's gradients. Pure: no clock, no socket.
 *
 * After "Dynamic Backup Workers for Parallel Machine Learning" (Xu, Neglia, Sebastianelli,
 * arXiv:2004.14696): k = argmax gain(k) / T(k). The aggregator does not know the loss, so gain is
 * that of arrivals.h.
 */
#ifndef SAINA_DBW_H
#define SAINA_DBW_H

#include <stdbool.h>
#include "arrivals.h"

/**
 * struct dbw - measurement of an interval
 * @k: number of workers that each round waited for
 * @noise: gradient noise scale in gradients of one worker (its batch is 1), > 0
 * @arrivals: how late gradients were
 */
struct dbw {
	unsigned int k;
	double noise;
	struct arrivals arrivals;
};

/* Mean time of a round that waits for @k workers, microseconds, if they are late independently. */
double dbw_round_us(const struct dbw *d, unsigned int k);

/**
 * struct dbw_trials - trials of k + 1
 * @since: start of the running trial, seconds; 0: none
 * @next: earliest start of the next one, seconds
 *
 * Gradients that workers skip because the round is over have no lateness. To measure it, k is
 * raised by one from time to time.
 */
struct dbw_trials {
	double since, next;
};

/*
 * Chooses the fastest k, 1..workers; keeps @d->k unless another one is at least 5 % faster.
 * @now: time of the measurement @d, seconds; *@trial: is the choice a trial?
 */
unsigned int dbw_next(const struct dbw *d, struct dbw_trials *t, double now, bool *trial);

#endif /* SAINA_DBW_H */
