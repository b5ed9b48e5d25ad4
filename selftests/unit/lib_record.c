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
}

void record_exit(struct lib_record *r)
{
	free(r->outcome);
	free(r->sent);
	free(r->exponent);
	free(r->said);
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

static bool sum_is_right(const struct lib_record *r, size_t a, const struct saina_hdr *h, bool mixed)
{
	const int32_t *sum = (const void *)(h + 1);
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

void record_result(struct lib_record *r, const struct saina_hdr *h)
{
	size_t a = at(r, h->round, h->segment);
	struct lib_outcome *o = &r->outcome[a];
	bool mixed = false;

	if (coarsest(r, a, h->mask, &mixed) != h->exponent)
		record_broken(r, "round %u segment %u has not the coarsest exponent", h->round, h->segment);
	if (!sum_is_right(r, a, h, mixed))
		record_broken(r, "the sum of round %u segment %u is wrong", h->round, h->segment);
	if (o->mask && (o->mask != h->mask || o->exponent != h->exponent || memcmp(o->sum, h + 1, sizeof(o->sum))))
		record_broken(r, "two results of round %u segment %u", h->round, h->segment);
	if (!o->mask) {
		r->mixed += mixed && h->exponent != SAINA_EXPONENT_NAN;
		r->nan += h->exponent == SAINA_EXPONENT_NAN;
	}
	o->mask = h->mask;
	o->exponent = h->exponent;
	memcpy(o->sum, h + 1, sizeof(o->sum));
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
			if (left[j] != (grad->share[g].residual ? res[j] : 0)) {
				record_broken(r, "worker %u: segment %u: produced is not counted + residual",
					      i, g);
				return;
			}
	}
}
