/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How many workers to wait for: the k at which training gets ahead fastest, from when the
 * gradients of each worker come.  Pure: no clock, no socket.
 *
 * After "Dynamic Backup Workers for Parallel Machine Learning" (Xu, Neglia, Sebastianelli,
 * arXiv:2004.14696): k = argmax gain(k) / T(k).  A switch sees no loss, so gain is that of
 * "An Empirical Model of Large-Batch Training" (McCandlish et al., arXiv:1812.06162, eq. 2.7):
 * a step of k gradients is worth k / (k + noise) of a step without noise.
 */
#ifndef SAINA_DBW_H
#define SAINA_DBW_H

#include "ctl/ctl.h"

/**
 * struct dbw - what was seen in an interval
 * @workers: of the job
 * @k: how many were waited for
 * @noise: gradient noise scale in gradients of one worker (its batch is 1), > 0
 * @round_us: mean time of a round, microseconds
 * @rounds: how many there were
 * @late: of each worker, gradients by how long after the first of their round they came:
 *	[0] at once, [b] in 2^(b-1)..2^b - 1 microseconds.  Those that are missing to
 *	@rounds never came in time: at the earliest when the round was over
 */
struct dbw {
	unsigned int workers, k;
	double noise, round_us, rounds;
	double late[SAINA_WORKERS_MAX][SAINA_ARRIVAL_BUCKETS];
};

/* Mean time of a round that waits for @k, microseconds, if workers are late independently. */
double dbw_round_us(const struct dbw *d, unsigned int k);

/* The best k, 1..workers; @d->k unless another is better by a twentieth. */
unsigned int dbw_choose(const struct dbw *d);

#endif /* SAINA_DBW_H */
