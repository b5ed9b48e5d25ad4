// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Residuals: the part of this worker's gradient that no result has counted, for each segment.
 *
 * A contribution is the caller's gradient plus the residual of its segment.  Both stay in place
 * until it is known whether the contribution was counted, so nothing is copied in the common case,
 * in which it was:
 *
 *	contribution			residual
 *
 *	counted				becomes 0; in a job of int16 or bfloat16, what was rounded off
 *	counted, result is NaN		stays, because nothing of such a result is used
 *	counted, without the residual	stays: the residual was too large to be added
 *	not counted			becomes gradient - base + residual
 *	not counted, not finite		stays; the gradient is dropped
 *	not counted, late=drop		becomes 0
 *	SAINA_SUM_ONCE			stays, always
 *
 * Integers wrap, so contributed + residual == produced (mod 2^32), always.  The addition of floats
 * rounds.  In a job of int32 the worker also rounds off up to half a unit of its exponent, and the
 * aggregator up to one unit of the sum's, once for each contributor; no residual keeps that.  In a
 * job of int16 the aggregator alone does.
 * The base is the part of the gradient that earlier results have already: a trainer that adds up
 * gradients of several rounds reduces the sum again.
 * Residuals are always finite.
 */
#include <errno.h>
#include <float.h>
#include <math.h>
#include "gradient.h"
#include "half.h"
#include "pairs.h"

static uint32_t *residual_at(const struct saina_gradient *g, uint32_t segment)
{
	return g->residual + (size_t)segment * g->job->payload;
}

void saina_residual_drop(struct saina_gradient *g, uint32_t segment)
{
	if (!g->state[segment].t->once)
		g->state[segment].residual = 0;
}

/* All of the present contribution was counted. */
static void clear_residual(struct saina_gradient *g, uint32_t segment)
{
	struct saina_segment_state *p = &g->state[segment];
	uint32_t *res = residual_at(g, segment);
	uint32_t left = 0;
	size_t n;

	if (!p->residual || p->t->once)
		return;
	/* An all-reduce shorter than the one that left the residual has not sent the end of
	 * the residual.
	 */
	saina_gradient_data(g, segment, &n);
	memset(res, 0, 4 * n);
	for (size_t i = n; i < g->job->payload; i++)
		left |= res[i];
	if (!left)
		p->residual = 0;
}

/* @res += @data - @base.  Returns how many elements are beyond the largest float32. */
static size_t add_floats(float *res, const float *data, const float *base, size_t n)
{
	size_t dropped = 0;

	for (size_t i = 0; i < n; i++) {
		res[i] = (base ? data[i] - base[i] : data[i]) + res[i];
		if (isfinite(res[i]))
			continue;
		res[i] = copysignf(FLT_MAX, res[i]);
		dropped++;
	}
	return dropped;
}

size_t saina_residual_keep(struct saina_gradient *g, uint32_t segment)
{
	struct saina_segment_state *p = &g->state[segment];
	uint32_t *res = residual_at(g, segment);
	const float *base = p->t->base;
	const void *data;
	size_t n, dropped = 0;

	if (p->t->once)
		return 0;
	data = saina_gradient_data(g, segment, &n);
	if (p->t->type == SAINA_FLOAT32 && saina_quant_largest(g->quant, data, NULL, n) >= g->infinite)
		return n;
	if (base)
		base += (size_t)(segment - p->t->first) * g->job->payload;
	if (!p->residual)
		memset(res, 0, 4 * g->job->payload);
	if (p->t->type == SAINA_INT32)
		g->quant->add(res, res, data, n);
	else
		dropped = add_floats((float *)res, data, base, n);
	p->residual = p->t->type;
	return dropped;
}

/*
 * The present contribution was counted, except for what was rounded off or did not fit.  Returns
 * how many elements did not fit.
 */
static size_t keep_remainder(struct saina_gradient *g, uint32_t segment, int exponent, uint32_t limit)
{
	struct saina_segment_state *p = &g->state[segment];
	uint32_t *res = residual_at(g, segment);
	const float *old = p->residual ? (float *)res : NULL;
	const void *data;
	size_t n, cut = 0;

	data = saina_gradient_data(g, segment, &n);
	if (!old)
		memset(res, 0, 4 * g->job->payload);
	if (g->job->elem == SAINA_ELEM_BFLOAT16)
		saina_half_remainder((float *)res, data, old, n);
	else if (g->job->elem == SAINA_ELEM_INT16)
		saina_pairs_remainder((float *)res, data, n, exponent);
	else
		cut = saina_quant_remainder((float *)res, data, old, n, exponent, limit);
	p->residual = SAINA_FLOAT32;
	return cut;
}

void saina_residual_counted(struct saina_gradient *g, uint32_t segment, int exponent)
{
	if (exponent == SAINA_EXPONENT_NAN || g->state[segment].alone)
		return;
	if (g->job->elem == SAINA_ELEM_BFLOAT16 || g->job->elem == SAINA_ELEM_INT16)
		keep_remainder(g, segment, g->state[segment].exponent, 0);
	else
		clear_residual(g, segment);
}

size_t saina_residual_stepped(struct saina_gradient *g, uint32_t segment, int exponent, uint32_t limit)
{
	if (g->state[segment].t->type == SAINA_FLOAT32)
		return keep_remainder(g, segment, exponent, limit);
	clear_residual(g, segment);
	return 0;
}

/* Does one of the segments of a range keep elements of another type? */
static bool find_other_type(const struct saina_gradient *g, uint64_t first, uint64_t n,
			    enum saina_type type, uint32_t *at)
{
	uint64_t end = (first + n + g->job->payload - 1) / g->job->payload;

	for (uint64_t i = first / g->job->payload; n && i < end; i++) {
		*at = i;
		if (g->state[i].residual && g->state[i].residual != type)
			return true;
	}
	return false;
}

/* Elements from @at on that are in the segment of @at. */
static uint64_t piece(const struct saina_gradient *g, uint64_t at, uint64_t end)
{
	uint64_t n = g->job->payload - at % g->job->payload;

	return n < end - at ? n : end - at;
}

int saina_residual_get(const struct saina_gradient *g, uint64_t first, uint64_t n, enum saina_type type,
		       uint32_t *out, uint32_t *at)
{
	uint64_t m;

	if (find_other_type(g, first, n, type, at))
		return -EINVAL;
	for (uint64_t i = first; i < first + n; i += m, out += m) {
		m = piece(g, i, first + n);
		if (g->state[i / g->job->payload].residual)
			memcpy(out, g->residual + i, 4 * m);
		else
			memset(out, 0, 4 * m);
	}
	return 0;
}

int saina_residual_put(struct saina_gradient *g, uint64_t first, uint64_t n, enum saina_type type,
		       const uint32_t *in, uint32_t *at)
{
	uint32_t payload = g->job->payload;
	uint64_t m;

	if (find_other_type(g, first, n, type, at))
		return -EINVAL;
	for (uint64_t i = 0; type == SAINA_FLOAT32 && i < n; i++)
		if (!isfinite(((const float *)in)[i]))
			return -EDOM;
	for (uint64_t i = first; i < first + n; i += m, in += m) {
		uint32_t segment = i / payload, *res = residual_at(g, segment), any = 0;

		m = piece(g, i, first + n);
		if (!g->state[segment].residual)
			memset(res, 0, 4 * payload);
		memcpy(res + i % payload, in, 4 * m);
		for (uint32_t j = 0; j < payload; j++)
			any |= res[j];
		g->state[segment].residual = any ? type : 0;
	}
	return 0;
}
