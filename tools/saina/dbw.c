// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "dbw.h"

#define BUCKET_STEPS 32	/* integration steps per bucket */
#define GAIN_MIN     1.05	/* another k must be this many times as fast */
#define TRIAL_INTERVAL 20 /* trials take at most 1/TRIAL_INTERVAL of the time */

/* Share of the gradients of worker @w that have arrived @t microseconds after the first one. */
static double arrived_share(const struct arrivals *a, unsigned int w, double t)
{
	double n = 0, all = arrivals_of(a, w);

	/* gradients that never came count as arrived at the end of the round */
	if (t >= a->round_us)
		return 1;
	for (int b = 0; b < SAINA_ARRIVAL_BUCKETS; b++) {
		double from = b ? saina_arrival_end_us(b - 1) : 0, to = saina_arrival_end_us(b);

		n += a->late[w][b];
		if (b && t < to)
			n -= a->late[w][b] * (t > from ? (to - t) / (to - from) : 1);
	}
	return n / (all > a->rounds ? all : a->rounds);
}

/* p[n]: probability that n gradients have arrived at @t. */
static void count_distribution(const struct arrivals *a, double t, double *p)
{
	double share[SAINA_WORKERS_MAX];

	for (unsigned int w = 0; w < a->workers; w++)
		share[w] = arrived_share(a, w, t);
	arrivals_distribution(a->workers, share, p);
}

/*
 * late[k]: mean time from the first gradient to the k-th, microseconds. It is the integral over
 * time of the probability that fewer than k have arrived.
 */
static void mean_lateness(const struct arrivals *a, double *late)
{
	double p[SAINA_WORKERS_MAX + 1], from = 0;

	memset(late, 0, (a->workers + 1) * sizeof(*late));
	for (int b = 0; b < SAINA_ARRIVAL_BUCKETS; b++) {
		double to = saina_arrival_end_us(b), step = (to - from) / BUCKET_STEPS;

		for (int i = 0; i < BUCKET_STEPS; i++) {
			double fewer = 0;

			count_distribution(a, from + (i + 0.5) * step, p);
			for (unsigned int k = 1; k <= a->workers; k++) {
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
	double rest = d->arrivals.round_us - late[d->k];

	return (rest > 0 ? rest : 0) + late[k];
}

double dbw_round_us(const struct dbw *d, unsigned int k)
{
	double late[SAINA_WORKERS_MAX + 1];

	mean_lateness(&d->arrivals, late);
	return predict_round_us(d, late, k);
}

static unsigned int choose(const struct dbw *d)
{
	double late[SAINA_WORKERS_MAX + 1], speed[SAINA_WORKERS_MAX + 1] = { 0 }, most;
	unsigned int best = d->k;

	mean_lateness(&d->arrivals, late);
	/* training progress per microsecond */
	for (unsigned int k = 1; k <= d->arrivals.workers; k++)
		speed[k] = arrivals_gain(k, d->noise) / (predict_round_us(d, late, k) + 1);
	most = GAIN_MIN * speed[d->k];
	for (unsigned int k = 1; k <= d->arrivals.workers; k++) {
		if (speed[k] > most) {
			most = speed[k];
			best = k;
		}
	}
	return best;
}

/* Do workers skip rounds?  Their gradients in these have no lateness. */
static bool skips_rounds(const struct arrivals *a)
{
	double n = 0;

	for (unsigned int w = 0; w < a->workers; w++)
		n += arrivals_of(a, w);
	return n < 0.95 * a->rounds * a->workers;
}

unsigned int dbw_next(const struct dbw *d, struct dbw_trials *t, double now, bool *trial)
{
	unsigned int best = choose(d);

	if (t->since > 0)
		t->next = now + TRIAL_INTERVAL * (now - t->since);
	t->since = 0;
	*trial = best == d->k && best < d->arrivals.workers && now >= t->next && skips_rounds(&d->arrivals);
	if (*trial) {
		t->since = now;
		return best + 1;
	}
	if (best != d->k)
		t->next = now + TRIAL_INTERVAL * ARRIVALS_ROUNDS_MIN * d->arrivals.round_us / 1e6;
	return best;
}
