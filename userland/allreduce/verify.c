// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Exact sums: of int32, and of float32 that are multiples of 1/1024 in a job of int32.
 * verify_float.c and verify_numbers.c check the others.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "verify.h"
#include "verify_float.h"
#include "verify_numbers.h"

#define UNKNOWN	  UINT32_MAX
#define UNIT	  1024.0 /* float32 contents are multiples of 1 / 1024 */
#define UNIT_BITS 10
#define LOOK_BACK 4096 /* rounds that a guess of an unknown base goes back */
#define SHARED	  2    /* rounds that a worker was counted in and, restarted, may produce again */

static uint32_t *base_of(const struct verify *v, uint32_t segment, unsigned int w)
{
	return &v->base[(size_t)segment * 64 + w];
}

int verify_init(struct verify *v, uint32_t first_round)
{
	if (verify_sums_floats(v))
		return verify_float_init(v, first_round);
	if (verify_is_inexact(v))
		return verify_numbers_init(v, first_round);
	v->base = malloc((size_t)v->segments * 64 * sizeof(*v->base));
	v->units = malloc(v->payload * sizeof(*v->units));
	if (!v->base || !v->units) {
		verify_free(v);
		return -ENOMEM;
	}
	for (uint32_t s = 0; s < v->segments; s++)
		for (unsigned int w = 0; w < 64; w++)
			*base_of(v, s, w) = first_round && w != v->me ? UNKNOWN : first_round;
	return 0;
}

void verify_free(struct verify *v)
{
	free(v->base);
	free(v->units);
	free(v->carry);
	free(v->owed);
	free(v->sums);
	v->base = NULL;
	v->units = NULL;
	v->carry = NULL;
	v->owed = NULL;
	v->sums = NULL;
}

void verify_fill(const struct verify *v, uint32_t r, uint64_t i, void *buf, uint64_t n)
{
	for (uint64_t j = 0; j < n; j++) {
		int32_t x;

		if (v->contents >= CONTENTS_WILD) {
			((float *)buf)[j] = v->contents == CONTENTS_WILD ?
						    verify_float_fresh(v, v->me, r, i + j) :
						    verify_numbers_fresh(v, v->me, r, i + j);
			continue;
		}
		x = verify_fresh(v, v->me, r, i + j);
		if (v->type == SAINA_INT32)
			((int32_t *)buf)[j] = x;
		else
			((float *)buf)[j] = x / (float)UNIT;
	}
}

/*
 * Adds to @units what @w contributes to round @r if it was last counted before @base.  Returns the
 * largest magnitude.
 */
static int64_t contribute(const struct verify *v, unsigned int w, uint32_t base, uint32_t r,
			  uint64_t first, int64_t *units, uint32_t n)
{
	int64_t largest = 0;

	for (uint32_t j = 0; j < n; j++) {
		int64_t c = 0;

		for (uint32_t q = base; q <= r; q++)
			c += verify_fresh(v, w, q, first + j);
		units[j] += c;
		if (llabs(c) > largest)
			largest = llabs(c);
	}
	return largest;
}

static bool equal(const struct verify *v, const struct saina_segment *g, const int64_t *units,
		  const void *out, uint32_t n, uint32_t *where)
{
	for (uint32_t j = 0; j < n; j++) {
		if (v->type == SAINA_INT32) {
			if ((uint32_t)units[j] == ((const uint32_t *)out)[j])
				continue;
		} else if ((float)(units[j] / UNIT / g->contributors) == ((const float *)out)[j]) {
			continue;
		}
		*where = j;
		return false;
	}
	return true;
}

/* float32: nothing rounded on the way, neither by a worker nor in the sum? */
static bool exact(const struct verify *v, const struct saina_segment *g, int64_t largest)
{
	return v->type == SAINA_INT32 || (g->exponent >= UNIT_BITS && largest < 1 << 24);
}

/*
 * Sum of all in the mask, those of unknown base taken as @guess (@w: that worker's
 * base is @base instead of what is on record).  In @v->units; returns the largest contribution.
 */
static int64_t expect(const struct verify *v, uint32_t segment, const struct saina_segment *g,
		      uint32_t guess, int w, uint32_t base, uint32_t n)
{
	int64_t largest = 0, l;

	memset(v->units, 0, n * sizeof(*v->units));
	for (unsigned int i = 0; i < 64; i++) {
		uint32_t b = *base_of(v, segment, i);

		if (!(g->mask >> i & 1))
			continue;
		if ((int)i == w)
			b = base;
		else if (b == UNKNOWN)
			b = guess;
		l = contribute(v, i, b, g->round, (uint64_t)segment * v->payload, v->units, n);
		if (l > largest)
			largest = l;
	}
	return largest;
}

/*
 * Does some other history of one worker explain the sum?  Of a worker that may have been restarted:
 * it has restarted in some round since it was counted last, however long ago that was, and
 * has not been counted since.
 */
static bool other_history(const struct verify *v, uint32_t segment, const struct saina_segment *g,
			  const void *out, uint32_t n)
{
	uint32_t few = n < 8 ? n : 8, where, low;
	uint64_t first = (uint64_t)segment * v->payload;

	for (unsigned int w = 0; w < 64; w++) {
		if (!(g->mask >> w & 1))
			continue;
		low = *base_of(v, segment, w);
		if (low != UNKNOWN && !v->restarts)
			continue;
		if (low == UNKNOWN)
			low = g->round > LOOK_BACK ? g->round - LOOK_BACK : 0;
		else
			low = low > SHARED ? low - SHARED : 0;
		/* the sum of all others; then what @w produced, each time from one round earlier */
		expect(v, segment, g, g->round, w, g->round + 1, few);
		for (uint64_t b = g->round + 1ull; b-- > low;) {
			for (uint32_t j = 0; j < few; j++)
				v->units[j] += verify_fresh(v, w, b, first + j);
			if (!equal(v, g, v->units, out, few, &where))
				continue;
			expect(v, segment, g, g->round, w, b, n);
			if (equal(v, g, v->units, out, n, &where))
				return true;
		}
	}
	return false;
}

void verify_segment(struct verify *v, uint32_t segment, const struct saina_segment *g,
		    const void *out, uint32_t n)
{
	bool unknown = false;
	uint32_t where = 0;
	int64_t largest;

	if (verify_sums_floats(v)) {
		verify_float_segment(v, segment, g, out, n);
		return;
	}
	if (verify_is_inexact(v)) {
		verify_numbers_segment(v, segment, g, out, n);
		return;
	}
	for (unsigned int w = 0; w < 64; w++)
		if ((g->mask >> w & 1) && *base_of(v, segment, w) == UNKNOWN)
			unknown = true;
	largest = expect(v, segment, g, g->round, -1, 0, n);
	if (!exact(v, g, largest)) {
		v->unknown++;
	} else if (equal(v, g, v->units, out, n, &where)) {
		v->right++;
	} else if ((unknown || v->restarts) && other_history(v, segment, g, out, n)) {
		v->right++;
	} else if (unknown) {
		v->unknown++;
	} else {
		expect(v, segment, g, g->round, -1, 0, n);
		equal(v, g, v->units, out, n, &where);
		if (!v->wrong++)
			snprintf(v->what, sizeof(v->what),
				 "round %u segment %u element %u: mask %#" PRIx64
				 ", expected %" PRId64 ", the result is %#x (exponent %d)",
				 g->round, segment, where, g->mask, v->units[where],
				 ((const uint32_t *)out)[where], g->exponent);
	}
	for (unsigned int w = 0; w < 64; w++) {
		if (g->mask >> w & 1)
			*base_of(v, segment, w) = exact(v, g, largest) ? g->round + 1 : UNKNOWN;
		else if (g->flags & SAINA_SEGMENT_DROP_LATE)
			*base_of(v, segment, w) = g->round + 1;
	}
}

void verify_resize(struct verify *v, uint64_t from, uint64_t to, uint32_t round)
{
	uint32_t first = (from + v->payload - 1) / v->payload, part = from % v->payload;

	if (verify_sums_floats(v) || verify_is_inexact(v)) {
		v->lost |= part != 0;
		return;
	}
	for (uint32_t s = first; (uint64_t)s * v->payload < to; s++)
		for (unsigned int w = 0; w < 64; w++)
			*base_of(v, s, w) = round;
	/* what is owed of a segment that was shorter is not known element by element */
	for (unsigned int w = 0; part && w < 64; w++)
		if (*base_of(v, first - 1, w) != round)
			*base_of(v, first - 1, w) = UNKNOWN;
}

void verify_missed(struct verify *v)
{
	v->lost = true;
	if (verify_sums_floats(v) || verify_is_inexact(v))
		return;
	for (uint32_t s = 0; s < v->segments; s++)
		for (unsigned int w = 0; w < 64; w++)
			*base_of(v, s, w) = UNKNOWN;
}

bool verify_residual(const struct verify *v, uint32_t last, uint32_t segment, const void *res,
		     uint32_t n)
{
	uint32_t base;

	if (verify_sums_floats(v))
		return verify_float_residual(v, segment, res, n);
	if (verify_is_inexact(v))
		return verify_numbers_residual(v, segment, res, n);
	base = *base_of(v, segment, v->me);
	if (base == UNKNOWN)
		return true;
	memset(v->units, 0, n * sizeof(*v->units));
	if (base <= last)
		contribute(v, v->me, base, last, (uint64_t)segment * v->payload, v->units, n);
	for (uint32_t j = 0; j < n; j++) {
		if (v->type == SAINA_INT32 ? (uint32_t)v->units[j] != ((const uint32_t *)res)[j]
					   : (float)(v->units[j] / UNIT) != ((const float *)res)[j])
			return false;
	}
	return true;
}
