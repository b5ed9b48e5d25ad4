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
 *	not counted			becomes gradient + residual
 *	not counted, not finite		stays; the gradient is dropped
 *	not counted, late=drop		becomes 0
 *	SAINA_SUM_ONCE			stays, always
 *
 * Integers wrap, so contributed + residual == produced (mod 2^32), always.  The addition of floats
 * rounds.  In a job of int32 the worker also rounds off up to half a unit of its exponent, and the
 * aggregator up to one unit of the sum's, once for each contributor; no residual keeps that.  In a
 * job of int16 the aggregator alone does.
 * Residuals are always finite.
 */
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

size_t saina_residual_keep(struct saina_gradient *g, uint32_t segment)
{
	struct saina_segment_state *p = &g->state[segment];
	uint32_t *res = residual_at(g, segment);
	const void *data;
	size_t n, dropped = 0;

	if (p->t->once)
		return 0;
	data = saina_gradient_data(g, segment, &n);
	if (p->t->type == SAINA_FLOAT32 && saina_quant_largest(g->quant, data, NULL, n) >= g->infinite)
		return n;
	if (!p->residual) {
		memcpy(res, data, 4 * n);
		memset(res + n, 0, 4 * (g->job->payload - n));
	} else if (p->t->type == SAINA_INT32) {
		g->quant->add(res, res, data, n);
	} else {
		const float *f = data;
		float *r = (float *)res;

		for (size_t i = 0; i < n; i++) {
			r[i] = f[i] + r[i];
			if (isfinite(r[i]))
				continue;
			r[i] = copysignf(FLT_MAX, r[i]);
			dropped++;
		}
	}
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
