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
#define FEW	  2    /* elements that are compared first */
#define TRIES	  (1 << 20) /* histories that are compared */
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

/* Sum of all in the mask, each with what it has produced since @base.  In @v->units; returns the largest contribution. */
static int64_t expect(const struct verify *v, uint32_t segment, const struct saina_segment *g,
		      const uint32_t *base, uint32_t n)
{
	int64_t largest = 0, l;

	memset(v->units, 0, n * sizeof(*v->units));
	for (unsigned int i = 0; i < 64; i++) {
		if (!(g->mask >> i & 1))
			continue;
		l = contribute(v, i, base[i], g->round, (uint64_t)segment * v->payload, v->units, n);
		if (l > largest)
			largest = l;
	}
	return largest;
}

/* A search for the rounds in which workers were restarted. */
struct search {
	const struct verify *v;
	const struct saina_segment *g;
	const void *out;
	uint32_t segment, n, few;
	uint32_t base[64];	/* of the history that is compared */
	int64_t sum[FEW];	/* its sum, of the first elements */
	unsigned int tries;	/* that are left */
};

static bool is_it(struct search *s)
{
	uint32_t where;

	if (!equal(s->v, s->g, s->sum, s->out, s->few, &where))
		return false;
	expect(s->v, s->segment, s->g, s->base, s->n);
	return equal(s->v, s->g, s->v->units, s->out, s->n, &where);
}

/* Some history in which @more workers from @w on have another base than on record? */
static bool search(struct search *s, unsigned int w, unsigned int more)
{
	uint64_t first = (uint64_t)s->segment * s->v->payload;
	uint32_t record, low;
	int64_t sum[FEW];

	for (; w < 64; w++) {
		if (!(s->g->mask >> w & 1))
			continue;
		record = s->base[w];
		low = *base_of(s->v, s->segment, w);
		if (low == UNKNOWN)
			low = s->g->round > LOOK_BACK ? s->g->round - LOOK_BACK : 0;
		else
			low = low > SHARED ? low - SHARED : 0;
		/* the sum of all others; then what @w produced, each time from one round earlier */
		memcpy(sum, s->sum, sizeof(sum));
		for (uint64_t q = record; q <= s->g->round; q++)
			for (uint32_t j = 0; j < s->few; j++)
				s->sum[j] -= verify_fresh(s->v, w, q, first + j);
		for (uint64_t b = s->g->round + 1ull; b >= low; b--) {
			for (uint32_t j = 0; b <= s->g->round && j < s->few; j++)
				s->sum[j] += verify_fresh(s->v, w, b, first + j);
			if (b != record) {
				if (!s->tries)
					return false;
				s->tries--;
				s->base[w] = b;
				if (more == 1 ? is_it(s) : search(s, w + 1, more - 1))
					return true;
			}
			if (!b)
				break;
		}
		s->base[w] = record;
		memcpy(s->sum, sum, sizeof(sum));
	}
	return false;
}

enum history {
	HISTORY_FOUND,
	HISTORY_NONE,	/* no restarts explain the sum */
	HISTORY_OPEN,	/* there are too many histories */
};

/*
 * Do restarts explain the sum?  A worker that was restarted has produced something since that round
 * only, however long ago that was, and has not been counted since.  Several may have been, in one round: as
 * few as possible are assumed.
 */
static enum history find_history(const struct verify *v, uint32_t segment, const struct saina_segment *g,
				 const uint32_t *base, const void *out, uint32_t n)
{
	struct search s = { .v = v, .g = g, .out = out, .segment = segment, .n = n,
			    .few = n < FEW ? n : FEW, .tries = TRIES };

	memcpy(s.base, base, sizeof(s.base));
	expect(v, segment, g, base, s.few);
	memcpy(s.sum, v->units, s.few * sizeof(*s.sum));
	for (int more = 1; more <= __builtin_popcountll(g->mask); more++) {
		if (search(&s, 0, more))
			return HISTORY_FOUND;
		if (!s.tries)
			return HISTORY_OPEN;
	}
	return HISTORY_NONE;
}

static void describe(struct verify *v, const char *how, const struct saina_segment *g, const uint32_t *base,
		     uint32_t segment, const void *out, uint32_t n)
{
	uint32_t where = 0;

	expect(v, segment, g, base, n);
	equal(v, g, v->units, out, n, &where);
	snprintf(v->what, sizeof(v->what),
		 "%sround %u segment %u element %u: mask %#" PRIx64
		 ", expected %" PRId64 ", the result is %#x (exponent %d)", how,
		 g->round, segment, where, g->mask, v->units[where],
		 ((const uint32_t *)out)[where], g->exponent);
}

void verify_segment(struct verify *v, uint32_t segment, const struct saina_segment *g,
		    const void *out, uint32_t n)
{
	enum history history;
	uint32_t base[64], where;
	bool unknown = false;
	int64_t largest;

	if (verify_sums_floats(v)) {
		verify_float_segment(v, segment, g, out, n);
		return;
	}
	if (verify_is_inexact(v)) {
		verify_numbers_segment(v, segment, g, out, n);
		return;
	}
	for (unsigned int w = 0; w < 64; w++) {
		base[w] = *base_of(v, segment, w);
		if (base[w] != UNKNOWN)
			continue;
		base[w] = g->round;
		unknown |= g->mask >> w & 1;
	}
	largest = expect(v, segment, g, base, n);
	if (!exact(v, g, largest)) {
		v->unknown++;
	} else if (equal(v, g, v->units, out, n, &where)) {
		v->right++;
	} else {
		history = find_history(v, segment, g, base, out, n);
		if (history == HISTORY_FOUND && (unknown || v->restarts)) {
			v->right++;
		} else if (history != HISTORY_NONE || unknown) {
			/* not by what is on record, but a restart explains it, or may do so */
			if (!v->unknown++ && !v->wrong)
				describe(v, history == HISTORY_FOUND ? "right if workers were restarted, which --restarts accepts: " : "",
					 g, base, segment, out, n);
		} else {
			if (!v->wrong++)
				describe(v, "", g, base, segment, out, n);
		}
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
