// SPDX-License-Identifier: GPL-2.0-or-later
/* Written from saina(7), "Block scaling of float32", not taken from libsaina. */
#include <math.h>
#include <string.h>
#include "numbers_worker.h"

static bool finite_block(const float *x)
{
	for (int i = 0; i < E; i++)
		if (!isfinite(x[i]))
			return false;
	return true;
}

static double largest(const float *x)
{
	double most = 0;

	for (int i = 0; i < E; i++)
		most = fabs((double)x[i]) > most ? fabs((double)x[i]) : most;
	return most;
}

static int32_t scaled(double x, int exponent)
{
	double y = ldexp(x, exponent + SAINA_EXPONENT_BIAS);

	return (int32_t)(y + (y < 0 ? -.5 : .5));
}

static void encode(struct worker *p, unsigned int s, unsigned int workers)
{
	double most = largest(p->x[s]), limit = 2147483647 / workers - 1;
	int e = SAINA_EXPONENT_MAX, finest = 2 * SAINA_EXPONENT_MAX;

	if (!finite_block(p->x[s])) {
		p->exponent[s] = NAN_BLOCK;
		memset(p->v[s], 0, sizeof(p->v[s]));
		return;
	}
	if (most > 0) {
		while (ldexp(most, finest + SAINA_EXPONENT_BIAS) > limit)
			finest--;
		if (p->last[s] <= finest && finest - p->last[s] <= 4)
			e = p->last[s];
		else if (finest < e)
			e = finest;
	}
	p->exponent[s] = e;
	for (int i = 0; i < E; i++)
		p->v[s][i] = scaled(p->x[s][i], e);
}

void worker_produce(struct worker *p, struct rng *r, int magnitude, unsigned int workers)
{
	for (unsigned int s = 0; s < SEGMENTS; s++) {
		int m = rng_chance(r, 300) ? (int)rng_below(r, 61) - 30 : magnitude;
		bool zeros = rng_chance(r, 30);

		if (rng_chance(r, 10))
			m = -149 + rng_below(r, 60);	/* down to the smallest there is */
		for (int i = 0; i < E; i++) {
			double x = (rng_below(r, 1 << 24) / (double)(1 << 23) - 1) *
				   ldexp(1, m - (int)rng_below(r, rng_chance(r, 200) ? 30 : 2));

			p->x[s][i] = (float)((zeros || rng_chance(r, 50) ? 0 : x) + (double)p->residual[s][i]);
		}
		if (rng_chance(r, 10))
			p->x[s][rng_below(r, E)] = rng_chance(r, 500) ? NAN : -INFINITY;
		encode(p, s, workers);
		p->heard[s] = false;
	}
}

void worker_take(struct worker *p, unsigned int w, unsigned int s, const struct result *r)
{
	bool in = r->mask >> w & 1;

	if (p->heard[s])
		return;
	p->heard[s] = true;
	if (r->exponent != NAN_BLOCK)
		p->last[s] = r->exponent;
	if (in && r->exponent != NAN_BLOCK)
		memset(p->residual[s], 0, sizeof(p->residual[s]));
	else if (!in && finite_block(p->x[s]))
		memcpy(p->residual[s], p->x[s], sizeof(p->residual[s]));
}

bool result_is_right(const struct worker *p, unsigned int s, const struct result *r)
{
	double sum[E] = {}, most = 0, n = __builtin_popcountll(r->mask), unit;
	bool finite = true;

	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		if (!(r->mask >> w & 1))
			continue;
		finite &= finite_block(p[w].x[s]);
		most = largest(p[w].x[s]) > most ? largest(p[w].x[s]) : most;
		for (int i = 0; i < E; i++)
			sum[i] += (double)p[w].x[s][i];
	}
	if (!finite || r->exponent == NAN_BLOCK)
		return !finite && r->exponent == NAN_BLOCK;
	unit = ldexp(1, -(r->exponent + SAINA_EXPONENT_BIAS));
	for (int i = 0; i < E; i++) {
		double off = fabs(r->v[i] * unit - sum[i]);

		if (off > n * unit || off > 1e-6 * most) {
			tap_note("segment %u element %d of mask %llx: %g, not %g; largest %g, unit %g", s, i,
				 (unsigned long long)r->mask, r->v[i] * unit, sum[i], most, unit);
			return false;
		}
	}
	return true;
}
