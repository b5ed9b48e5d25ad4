/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How late gradients come, as controllers measure it. Pure: no clock, no socket. */
#ifndef SAINA_ARRIVALS_H
#define SAINA_ARRIVALS_H

#include "ctl/ctl.h"

/**
 * struct arrivals - measurement of an interval
 * @workers: number of workers of the job
 * @round_us: mean time of a round, microseconds
 * @rounds: number of rounds
 * @late: per worker, histogram of the time after the first gradient of the round: [0] 0 us, [b]
 *	2^(b-1)..2^b - 1 us. If there are fewer than @rounds, the others came after the end of their
 *	round, or never
 */
struct arrivals {
	unsigned int workers;
	double round_us, rounds;
	double late[SAINA_WORKERS_MAX][SAINA_ARRIVAL_BUCKETS];
};

#define ARRIVALS_ROUNDS_MIN 20	/* rounds needed for a measurement */

/* Number of gradients of worker @w that came. */
static inline double arrivals_of(const struct arrivals *a, unsigned int w)
{
	double n = 0;

	for (int b = 0; b < SAINA_ARRIVAL_BUCKETS; b++)
		n += a->late[w][b];
	return n;
}

/*
 * Poisson-binomial distribution: @p[n], n = 0..@workers, is the probability that n of @workers
 * independent gradients have come, if that of each is @share.
 */
static inline void arrivals_distribution(unsigned int workers, const double *share, double *p)
{
	p[0] = 1;
	for (unsigned int w = 0; w < workers; w++) {
		p[w + 1] = 0;
		for (unsigned int n = w + 1; n; n--)
			p[n] = p[n] * (1 - share[w]) + p[n - 1] * share[w];
		p[0] *= 1 - share[w];
	}
}

/*
 * Value of a step of @k gradients, relative to one without noise: "An Empirical Model of
 * Large-Batch Training" (McCandlish et al., arXiv:1812.06162, eq. 2.7).
 */
static inline double arrivals_gain(double k, double noise)
{
	return k / (k + noise);
}

#endif /* SAINA_ARRIVALS_H */
