// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "dbw.h"

#define BUCKET_STEPS 32	/* integration steps per bucket */
#define GAIN_MIN     1.05	/* minimum gain in speed for another k */

/* Share of the gradients of worker @w that have arrived @t microseconds after the first one. */
static double arrived_share(const struct dbw *d, unsigned int w, double t)
{
	double n = 0, all = 0;

	for (int b = 0; b < SAINA_ARRIVAL_BUCKETS; b++) {
		double from = b ? saina_arrival_end_us(b - 1) : 0, to = saina_arrival_end_us(b);

		all += d->late[w][b];
		n += d->late[w][b];
		if (b && t < to)
			n -= d->late[w][b] * (t > from ? (to - t) / (to - from) : 1);
	}
	/* gradients that never came count as arrived at the end of the round */
	return t >= d->round_us ? 1 : n / (all > d->rounds ? all : d->rounds);
}

/* p[n]: probability that n gradients have arrived at @t (Poisson-binomial distribution). */
static void count_distribution(const struct dbw *d, double t, double *p)
{
	memset(p, 0, (d->workers + 1) * sizeof(*p));
	p[0] = 1;
	for (unsigned int w = 0; w < d->workers; w++) {
		double q = arrived_share(d, w, t);

		for (unsigned int n = w + 1; n; n--)
			p[n] = p[n] * (1 - q) + p[n - 1] * q;
		p[0] *= 1 - q;
	}
}

/*
 * late[k]: mean time from the first gradient to the k-th, microseconds. It is the integral over
 * time of the probability that fewer than k have arrived.
 */
static void mean_lateness(const struct dbw *d, double *late)
{
	double p[SAINA_WORKERS_MAX + 1], from = 0;

	memset(late, 0, (d->workers + 1) * sizeof(*late));
	for (int b = 0; b < SAINA_ARRIVAL_BUCKETS; b++) {
		double to = saina_arrival_end_us(b), step = (to - from) / BUCKET_STEPS;

		for (int i = 0; i < BUCKET_STEPS; i++) {
			double fewer = 0;

			count_distribution(d, from + (i + 0.5) * step, p);
			for (unsigned int k = 1; k <= d->workers; k++) {
				fewer += p[k - 1];
				late[k] += step * fewer;
			}
		}
		from = to;
	}
}

/* @late: result of mean_lateness() */
static double predict_round_us(const struct dbw *d, const double *late, unsigned int k)
{
	/* the part of a round before its first gradient and after its last */
	double rest = d->round_us - late[d->k];

	return (rest > 0 ? rest : 0) + late[k];
}

double dbw_round_us(const struct dbw *d, unsigned int k)
{
	double late[SAINA_WORKERS_MAX + 1];

	mean_lateness(d, late);
	return predict_round_us(d, late, k);
}

unsigned int dbw_choose(const struct dbw *d)
{
	double late[SAINA_WORKERS_MAX + 1], speed[SAINA_WORKERS_MAX + 1] = { 0 }, most;
	unsigned int best = d->k;

	mean_lateness(d, late);
	/* training progress per microsecond */
	for (unsigned int k = 1; k <= d->workers; k++)
		speed[k] = k / (k + d->noise) / (predict_round_us(d, late, k) + 1);
	most = GAIN_MIN * speed[d->k];
	for (unsigned int k = 1; k <= d->workers; k++) {
		if (speed[k] > most) {
			most = speed[k];
			best = k;
		}
	}
	return best;
}
