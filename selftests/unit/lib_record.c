// SPDX-License-Identifier: GPL-2.0-or-later
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/rng.h"
#include "lib_record.h"

#define PAYLOAD SIM_PAYLOAD

void record_init(struct lib_record *r, const struct sim_conf *c, char *error)
{
	size_t n = (size_t)c->rounds * c->segments;

	r->c = c;
	r->error = error;
	r->outcome = calloc(n, sizeof(*r->outcome));
	r->sent = calloc(n * c->workers, sizeof(*r->sent));
	r->exponent = calloc(n * c->workers, 1);
	r->said = calloc(n, sizeof(*r->said));
	if (c->type != SAINA_FLOAT32)
		return;
	r->pending = calloc((size_t)c->workers * c->segments, sizeof(*r->pending));
	r->peak = calloc((size_t)c->workers * c->segments, sizeof(*r->peak));
}

void record_exit(struct lib_record *r)
{
	free(r->outcome);
	free(r->sent);
	free(r->exponent);
	free(r->said);
	free(r->pending);
	free(r->peak);
}

void record_broken(struct lib_record *r, const char *fmt, ...)
{
	va_list ap;

	if (r->error[0])
		return;
	va_start(ap, fmt);
	vsnprintf(r->error, sizeof(((struct sim_result *)0)->error), fmt, ap);
	va_end(ap);
}

uint32_t record_fresh(const struct sim_conf *c, unsigned int i, uint32_t round, uint32_t j)
{
	static const float special[] = { NAN, -NAN, INFINITY, -INFINITY };
	uint64_t x, who = i + 64ull * round;
	uint32_t v = rng_mix(c->seed + who + 64ull * 65536 * j);
	float f = (int32_t)v * 0x1p-31f;

	if (c->type == SAINA_INT32)
		return v;
	x = rng_mix(~c->seed + who + 64ull * 65536 * (j / PAYLOAD));
	if (c->jump)
		f = ldexpf(f, (int)((x >> 8) % 61) - 30);
	if (c->jump && x % 8 == 0)
		f = copysignf(0, f);
	if (c->jump && x % 64 == 1 && (x >> 16) % PAYLOAD == j % PAYLOAD)
		f = special[(x >> 32) % 4];
	memcpy(&v, &f, sizeof(v));
	return v;
}

void record_astray(struct lib_record *r, unsigned int i)
{
	r->astray |= 1ull << i;
}

static size_t at(const struct lib_record *r, uint32_t round, uint32_t segment)
{
	return (size_t)round * r->c->segments + segment;
}

void record_forget(struct lib_record *r, uint32_t round)
{
	for (size_t a = at(r, round, 0); a < at(r, r->c->rounds, 0); a++) {
		memset(&r->outcome[a], 0, sizeof(r->outcome[a]));
		r->said[a] = 0;
	}
}

void record_grad(struct lib_record *r, unsigned int i, const struct saina_hdr *h)
{
	size_t a = at(r, h->round, h->segment);
	int32_t *v = r->sent[a * r->c->workers + i];

	if (h->round >= r->c->rounds) {
		record_broken(r, "worker %u sends round %u", i, h->round);
	} else if (!(r->said[a] >> i & 1)) {
		r->said[a] |= 1ull << i;
		memcpy(v, h + 1, sizeof(r->sent[0]));
		r->exponent[a * r->c->workers + i] = h->exponent;
	} else if (memcmp(v, h + 1, sizeof(r->sent[0])) || r->exponent[a * r->c->workers + i] != h->exponent) {
		record_broken(r, "worker %u sends round %u segment %u again, but not the same", i,
			      h->round, h->segment);
	}
}

/* The coarsest exponent of what the workers in @mask have sent; NAN wins. */
static int coarsest(const struct lib_record *r, size_t a, uint64_t mask, bool *mixed)
{
	const int8_t *e = r->exponent + a * r->c->workers;
	int min = INT8_MAX;

	for (unsigned int i = 0; i < r->c->workers; i++) {
		if (!(mask >> i & 1))
			continue;
		*mixed |= min != INT8_MAX && min != e[i];
		min = e[i] < min ? e[i] : min;
	}
	return min;
}

static bool sum_is_right(const struct lib_record *r, size_t a, const struct saina_hdr *h, const int32_t *sum,
			 bool mixed)
{
	unsigned int n = __builtin_popcountll(h->mask);

	for (int j = 0; j < PAYLOAD; j++) {
		double exact = 0;
		uint32_t wraps = 0;

		for (unsigned int i = 0; i < r->c->workers; i++) {
			size_t at = a * r->c->workers + i;

			if (!(h->mask >> i & 1))
				continue;
			exact += ldexp(r->sent[at][j], h->exponent - r->exponent[at]);
			wraps += (uint32_t)r->sent[at][j];
		}
		if (h->exponent == SAINA_EXPONENT_NAN ? sum[j] != 0 :
		    mixed ? fabs(sum[j] - exact) > n : (uint32_t)sum[j] != wraps)
			return false;
	}
	return true;
}

/* Worker @i's part in a round of a segment; false if it is not finite. */
static bool produce(const struct lib_record *r, unsigned int i, uint32_t round, uint32_t segment,
		    double *fresh, double *largest)
{
	*largest = 0;
	for (int j = 0; j < PAYLOAD; j++) {
		uint32_t v = record_fresh(r->c, i, round, segment * PAYLOAD + j);
		float f;

		memcpy(&f, &v, sizeof(f));
		if (!isfinite(f))
			return false;
		fresh[j] = f;
		*largest = fmax(*largest, fabsf(f));
	}
	return true;
}

/* The exponent of a contribution whose largest magnitude is about @largest. */
static bool exponent_is_right(const struct lib_record *r, double largest, int e)
{
	double limit = INT32_MAX / r->c->workers - 1;

	if (e < SAINA_EXPONENT_MIN)
		return false;
	return ldexp(largest, e + SAINA_EXPONENT_BIAS) <= limit * (1 + 1e-6) &&
	       (e == SAINA_EXPONENT_MAX ||
		ldexp(largest, e + SAINA_EXPONENT_BIAS + 5) >= limit * (1 - 1e-6));
}

/* The first result of a segment: what all have produced, and what of it must be in the sum. */
static void tell_truth(struct lib_record *r, struct lib_outcome *o, const struct saina_hdr *h)
{
	double fresh[PAYLOAD], largest;
	bool nan = false;

	o->known = r->c->type == SAINA_FLOAT32 && !(h->mask & r->astray);
	for (unsigned int i = 0; r->pending && i < r->c->workers; i++) {
		size_t own = (size_t)i * r->c->segments + h->segment;
		double *p = r->pending[own];
		bool finite = produce(r, i, h->round, h->segment, fresh, &largest), in = h->mask >> i & 1;
		double sent = 0;

		nan |= in && !finite;
		if (!finite || (in && h->exponent == SAINA_EXPONENT_NAN)) {
			if (!in && h->flags & SAINA_F_DROP_LATE)
				memset(p, 0, sizeof(*r->pending));
			continue;	/* dropped, and what is pending stays */
		}
		r->peak[own] = fmax(r->peak[own], largest);
		for (int j = 0; j < PAYLOAD; j++) {
			p[j] += fresh[j];
			sent = fmax(sent, fabs(p[j]));
			if (in)
				o->truth[j] += p[j];
			if (in || h->flags & SAINA_F_DROP_LATE)
				p[j] = 0;
		}
		r->peak[own] = fmax(r->peak[own], sent);
		if (!in)
			continue;
		o->largest = fmax(o->largest, r->peak[own]);
		if (o->known && !exponent_is_right(r, sent, r->exponent[at(r, h->round, h->segment) * r->c->workers + i]))
			record_broken(r, "worker %u sends magnitudes of %g in round %u segment %u with exponent %d", i, sent,
				      h->round, h->segment, r->exponent[at(r, h->round, h->segment) * r->c->workers + i]);
		r->peak[own] = 0;
	}
	if (r->c->type == SAINA_FLOAT32 && nan != (h->exponent == SAINA_EXPONENT_NAN))
		record_broken(r, "round %u segment %u: NaN is lost, or comes from nowhere", h->round, h->segment);
}

/* Each unit is half a worker's and half the aggregator's rounding; floats in residuals are rounded, too. */
static void check_truth(struct lib_record *r, const struct lib_outcome *o, const struct saina_hdr *h,
			const int32_t *sum)
{
	double units = ldexp(__builtin_popcountll(h->mask) * 1.5, -(h->exponent + SAINA_EXPONENT_BIAS));

	for (int j = 0; o->known && h->exponent != SAINA_EXPONENT_NAN && j < PAYLOAD; j++)
		if (!(fabs(ldexp(sum[j], -(h->exponent + SAINA_EXPONENT_BIAS)) - o->truth[j]) <= units + 1e-6 * o->largest))
			record_broken(r, "round %u segment %u element %d is %g instead of %g (exponent %d)", h->round,
				      h->segment, j, ldexp(sum[j], -(h->exponent + SAINA_EXPONENT_BIAS)), o->truth[j], h->exponent);
}

void record_residual(struct lib_record *r, unsigned int i, const struct saina_gradient *g)
{
	for (uint32_t s = 0; r->pending && !(r->astray >> i & 1) && s < r->c->segments; s++) {
		const float *res = (const float *)g->residual + s * PAYLOAD;
		size_t own = (size_t)i * r->c->segments + s;

		for (int j = 0; j < PAYLOAD; j++)
			if (!(fabs((g->state[s].residual ? res[j] : 0) - r->pending[own][j]) <= 1e-6 * r->peak[own]))
				record_broken(r, "worker %u segment %u keeps %g instead of %g", i, s,
					      g->state[s].residual ? res[j] : 0, r->pending[own][j]);
	}
}

void record_result(struct lib_record *r, const struct saina_hdr *h)
{
	size_t a = at(r, h->round, h->segment);
	struct lib_outcome *o = &r->outcome[a];
	int32_t sum[PAYLOAD];
	bool mixed = false;

	memcpy(sum, h + 1, sizeof(sum));	/* the frame is not aligned for them */
	if (coarsest(r, a, h->mask, &mixed) != h->exponent)
		record_broken(r, "round %u segment %u has not the coarsest exponent", h->round, h->segment);
	if (!sum_is_right(r, a, h, sum, mixed))
		record_broken(r, "the sum of round %u segment %u is wrong", h->round, h->segment);
	if (o->mask && (o->mask != h->mask || o->exponent != h->exponent || memcmp(o->sum, sum, sizeof(sum))))
		record_broken(r, "two results of round %u segment %u", h->round, h->segment);
	if (!o->mask) {
		tell_truth(r, o, h);
		check_truth(r, o, h, sum);
		r->mixed += mixed && h->exponent != SAINA_EXPONENT_NAN;
		r->nan += h->exponent == SAINA_EXPONENT_NAN;
	}
	o->mask = h->mask;
	o->exponent = h->exponent;
	memcpy(o->sum, sum, sizeof(sum));
}

static bool means_are_right(const struct lib_outcome *o, const float *got)
{
	for (int j = 0; j < PAYLOAD; j++)
		if (o->exponent == SAINA_EXPONENT_NAN ? !isnan(got[j]) :
		    got[j] != (float)(ldexp(o->sum[j], -(o->exponent + SAINA_EXPONENT_BIAS)) / __builtin_popcountll(o->mask)))
			return false;
	return true;
}

void record_results(struct lib_record *r, unsigned int i, uint32_t round, const uint32_t *got)
{
	for (uint32_t g = 0; g < r->c->segments; g++, got += PAYLOAD) {
		struct lib_outcome *o = &r->outcome[at(r, round, g)];
		uint64_t hash = 1;

		for (int j = 0; j < PAYLOAD; j++)
			hash = rng_mix(hash + got[j]);
		if (!o->mask)
			record_broken(r, "worker %u has a result of round %u segment %u, there is none",
				      i, round, g);
		if (r->c->type == SAINA_FLOAT32 && !means_are_right(o, (const float *)got))
			record_broken(r, "worker %u has a wrong mean in round %u segment %u", i, round, g);
		if (r->c->type == SAINA_INT32 && memcmp(got, o->sum, sizeof(o->sum)))
			record_broken(r, "worker %u has a wrong sum in round %u segment %u", i,
				      round, g);
		if (o->hash && o->hash != hash)
			record_broken(r, "worker %u has another result of round %u segment %u", i,
				      round, g);
		o->hash = hash;
	}
}

void record_balance(struct lib_record *r, unsigned int i, uint32_t first,
		    const uint32_t (*produced)[PAYLOAD], const struct saina_gradient *grad)
{
	if (r->c->type != SAINA_INT32 || r->c->drop_late)
		return;
	for (uint32_t g = 0; g < r->c->segments; g++) {
		const uint32_t *res = grad->residual + g * PAYLOAD;
		uint32_t left[PAYLOAD];

		memcpy(left, produced[g], sizeof(left));
		for (uint32_t t = first; t < r->c->rounds; t++)
			for (int j = 0; (r->outcome[at(r, t, g)].mask >> i & 1) && j < PAYLOAD; j++)
				left[j] -= (uint32_t)r->sent[at(r, t, g) * r->c->workers + i][j];
		for (int j = 0; j < PAYLOAD; j++)
			if (left[j] != (grad->state[g].residual ? res[j] : 0)) {
				record_broken(r, "worker %u: segment %u: produced is not counted + residual",
					      i, g);
				return;
			}
	}
}
