/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chooses the number of workers to wait for: the k with the fastest training progress, from the
 * arrival times of each worker's gradients. Pure: no clock, no socket.
 *
 * After "Dynamic Backup Workers for Parallel Machine Learning" (Xu, Neglia, Sebastianelli,
 * arXiv:2004.14696): k = argmax gain(k) / T(k). The aggregator does not know the loss, so gain is
 * that of "An Empirical Model of Large-Batch Training" (McCandlish et al., arXiv:1812.06162, eq.
 * 2.7): a step of k gradients is worth k / (k + noise) of a step without noise.
 */
#ifndef SAINA_DBW_H
#define SAINA_DBW_H

#include "ctl/ctl.h"

/**
 * struct dbw - measurement of an interval
 * @workers: number of workers of the job
 * @k: number of workers that each round waited for
 * @noise: gradient noise scale in gradients of one worker (its batch is 1), > 0
 * @round_us: mean time of a round, microseconds
 * @rounds: number of rounds
 * @late: per worker, histogram of the time after the first gradient of the round: [0] 0 us, [b]
 *	2^(b-1)..2^b - 1 us. Gradients missing to @rounds came after the end of the round, or never
 */
struct dbw {
	unsigned int workers, k;
	double noise, round_us, rounds;
	double late[SAINA_WORKERS_MAX][SAINA_ARRIVAL_BUCKETS];
};

/* Mean time of a round that waits for @k workers, microseconds, if they are late independently. */
double dbw_round_us(const struct dbw *d, unsigned int k);

/* The best k, 1..workers; @d->k unless another one is at least 5 % faster. */
unsigned int dbw_choose(const struct dbw *d);

#endif /* SAINA_DBW_H */
