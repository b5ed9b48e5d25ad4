// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sums of floats.  Every worker simulates all workers: what each contributes to each round,
 * and what it keeps (late, or rounded off to bfloat16), in the float arithmetic that
 * the library's documentation promises.
 *
 * Of one or two contributors the sum is known to the bit, whatever their order.  Of more it
 * is if nothing is rounded on the way, as with contents in multiples of 1/1024; else it must
 * be as near to the true sum as n - 1 roundings can leave it.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "contents.h"
#include "verify_float.h"
#include "verify_restart.h"

#define EXACT 0x1p13 /* sums of multiples of 1/1024 below this have 24 bits at most */

static float *carry_of(const struct verify *v, unsigned int w, uint32_t segment)
{
	return v->carry + ((size_t)w * v->segments + segment) * v->payload;
}

int verify_float_init(struct verify *v, uint32_t first_round)
{
	v->carry = calloc((size_t)v->workers * v->segments * v->payload, sizeof(*v->carry));
	/* what the others keep is not known to one who comes later */
	v->lost = first_round != 0;
	v->sums = calloc((size_t)v->workers * v->payload, sizeof(*v->sums));
	return v->carry && v->sums ? 0 : -ENOMEM;
}

static uint32_t bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, 4);
	return u;
}

/* To nearest even, by division: independent of the library's code, which works on the bits. */
static float to_bfloat16(float f)
{
	double unit;
	int e;

	if (!isfinite(f) || f == 0)
		return f;
	frexp(f, &e);
	unit = ldexp(1, (e > -125 ? e : -125) - 8);
	return (float)(nearbyint(f / unit) * unit);
}

float verify_float_fresh(const struct verify *v, unsigned int w, uint32_t r, uint64_t i)
{
	struct verify as = *v;
	uint32_t x;

	if (v->contents != CONTENTS_WILD)
		return verify_fresh(v, w, r, i) / 1024.0f;
	as.type = SAINA_INT32;
	as.contents = CONTENTS_RANDOM;
	x = verify_fresh(&as, w, r, i);
	/* 24 bits, times 2^-44 .. 2^-13 */
	return ldexpf((int32_t)(x & 0xffffff) - 0x7fffff, (int)(x >> 27) - 44);
}

/* What @w sends in round @r, and @kept: what it keeps if that is counted. */
static float contribute(const struct verify *v, unsigned int w, uint32_t r, uint64_t i, float carry,
			float *whole, float *kept)
{
	float sent;

	*whole = verify_float_fresh(v, w, r, i) + carry;
	sent = v->wire == SAINA_BFLOAT16 ? to_bfloat16(*whole) : *whole;
	*kept = *whole - sent;
	return sent;
}

struct sum {
	double true_sum, size;	/* of the contributions; of their magnitudes */
	float last[2];
	unsigned int n;
};

static void sum_add(struct sum *s, float sent)
{
	s->true_sum += sent;
	s->size += fabsf(sent);
	s->last[s->n++ & 1] = sent;
}

static bool right(const struct verify *v, const struct sum *s, float got, bool *bounded)
{
	bool known = s->n <= 2 || (v->contents != CONTENTS_WILD && s->size < EXACT);
	float sum = s->n == 1 ? s->last[0] : s->n == 2 ? s->last[0] + s->last[1] : (float)s->true_sum;
	double off;

	if (known) {
		if (v->wire == SAINA_BFLOAT16)
			sum = to_bfloat16(sum);
		return bits(sum / (float)s->n) == bits(got);
	}
	*bounded = true;
	off = (s->n - 1) * 0x1.01p-24 * s->size;
	if (v->wire == SAINA_BFLOAT16)
		off += 0x1p-8 * (fabs(s->true_sum) + off);
	off += 0x1p-23 * fabs(s->true_sum);	/* of the division */
	return fabs((double)got * s->n - s->true_sum) <= off;
}

static double sent_since(const struct verify *v, unsigned int w, uint32_t since, uint32_t r, uint64_t i)
{
	float whole = 0, kept, sent = 0;

	for (uint32_t q = since; q <= r; q++)
		sent = contribute(v, w, q, i, whole, &whole, &kept);
	return sent;
}

/* Sets what @as keeps after round @r, in which it was counted. */
static void carry_since(const struct verify *v, uint32_t segment, uint32_t n,
			const struct verify_restarted *as, uint32_t r)
{
	for (uint32_t j = 0; j < n; j++) {
		float *carry = &carry_of(v, as->w, segment)[j], whole = 0;

		for (uint32_t q = as->since; q <= r; q++)
			contribute(v, as->w, q, (uint64_t)segment * v->payload + j, whole, &whole, carry);
	}
}

static bool is_mean(const struct verify *v, const double *c, unsigned int n, float out, double off)
{
	struct sum s = { 0 };
	bool bounded;

	for (unsigned int i = 0; i < n; i++)
		sum_add(&s, (float)c[i]);
	return right(v, &s, out, &bounded);
}

void verify_float_segment(struct verify *v, uint32_t segment, const struct saina_segment *g,
			  const float *out, uint32_t n)
{
	static const struct verify_restart how = { .sent = sent_since, .right = is_mean };
	struct verify_restarted restarted[2];
	bool bounded = false, wrong = false;
	char sentence[180];
	unsigned int few;

	if (v->lost) {
		v->unknown++;
		return;
	}
	for (uint32_t j = 0; j < n; j++) {
		uint64_t i = (uint64_t)segment * v->payload + j;
		struct sum s = { 0 };

		for (unsigned int w = 0; w < v->workers; w++) {
			float *carry = &carry_of(v, w, segment)[j], whole, kept, sent;

			sent = contribute(v, w, g->round, i, *carry, &whole, &kept);
			if (!(g->mask >> w & 1)) {
				*carry = g->flags & SAINA_SEGMENT_DROP_LATE ? 0 : whole;
				continue;
			}
			*carry = kept;
			v->sums[(size_t)w * v->payload + j] = sent;
			sum_add(&s, sent);
		}
		if (right(v, &s, out[j], &bounded) || wrong)
			continue;
		wrong = true;
		snprintf(sentence, sizeof(sentence),
			 "round %u segment %u element %u: mask %#" PRIx64
			 ", expected %a / %u, the result is %a",
			 g->round, segment, j, g->mask, s.true_sum, s.n, out[j]);
	}
	if (wrong) {
		few = verify_restart_judge(v, segment, g, out, n, &how, sentence, restarted);
		for (unsigned int i = 0; i < few; i++)
			carry_since(v, segment, n, &restarted[i], g->round);
		return;
	}
	v->right++;
	v->bounded += bounded;
}

bool verify_float_residual(const struct verify *v, uint32_t segment, const float *res, uint32_t n)
{
	const float *carry = carry_of(v, v->me, segment);

	for (uint32_t j = 0; j < n && !v->lost; j++)
		if (carry[j] != res[j])
			return false;
	return true;
}
