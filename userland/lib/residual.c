// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * What of this worker's gradient has not been counted, per segment.
 *
 * A contribution is the caller's gradient plus the residual of its segment.
 * Both stay where they are until the fate of the contribution is known, so
 * nothing is copied for the common case, in which it was counted:
 *
 *	counted			residual := what was clipped, mostly nothing;
 *				in a job of bfloat16, what was rounded off
 *	not counted		residual := gradient + residual
 *	not counted, late=drop	residual := nothing
 *
 * Integers wrap, so contributed + residual == produced (mod 2^32), always.
 * Floats: the addition above rounds like any float addition; nothing else
 * is lost, except, in a job of int32, the rounding of round(g * 2^e) itself, half a
 * unit of the block scale per contribution, which is not fed back.
 */
#include <errno.h>
#include <string.h>
#include "private.h"

static uint32_t *place(const struct saina *s, uint32_t segment)
{
	return s->residual + (size_t)segment * s->payload;
}

/* NULL when there is nothing. */
const void *saina_residual_of(const struct saina *s, uint32_t segment)
{
	return s->seg[segment].residual ? place(s, segment) : NULL;
}

void saina_residual_drop(struct saina *s, uint32_t segment)
{
	s->seg[segment].residual = 0;
}

/* The present contribution was counted whole. */
static void spend(struct saina *s, uint32_t segment)
{
	struct saina_seg *g = &s->seg[segment];
	uint32_t *res = place(s, segment);
	uint32_t left = 0;
	size_t n;

	if (!g->residual)
		return;
	/* An all-reduce smaller than the one that left the residual has not
	 * sent its end.
	 */
	saina_round_data(s, segment, &n);
	memset(res, 0, 4 * n);
	for (size_t i = n; i < s->payload; i++)
		left |= res[i];
	if (!left)
		g->residual = 0;
}

/* The present contribution to @segment was not counted: keep it. */
void saina_residual_keep(struct saina *s, uint32_t segment)
{
	struct saina_seg *g = &s->seg[segment];
	uint32_t *res = place(s, segment);
	const void *data;
	size_t n;

	data = saina_round_data(s, segment, &n);
	if (!g->residual) {
		memcpy(res, data, 4 * n);
		memset(res + n, 0, 4 * (s->payload - n));
	} else if (g->req->type == SAINA_INT32) {
		s->quant->add(res, res, data, n);
	} else {
		const float *f = data;
		float *r = (float *)res;

		for (size_t i = 0; i < n; i++)
			r[i] = f[i] + r[i];
	}
	g->residual = g->req->type;
}

/* The present contribution was counted, but for what was clipped or rounded off. */
static void remain(struct saina *s, uint32_t segment, int exponent)
{
	struct saina_seg *g = &s->seg[segment];
	uint32_t *res = place(s, segment);
	const float *old = g->residual ? (float *)res : NULL;
	const void *data;
	size_t n;

	data = saina_round_data(s, segment, &n);
	if (s->elem == SAINA_ELEM_BFLOAT16)
		saina_half_remainder((float *)res, data, old, n);
	else
		saina_quant_remainder((float *)res, data, old, n, exponent, s->limit);
	if (!old)
		memset(res + n, 0, 4 * (s->payload - n));
	g->residual = SAINA_FLOAT32;
}

/* The present contribution to @segment was counted, with this exponent. */
void saina_residual_counted(struct saina *s, uint32_t segment, int exponent)
{
	if (s->seg[segment].clipped || s->elem == SAINA_ELEM_BFLOAT16)
		remain(s, segment, exponent);
	else
		spend(s, segment);
}

/**
 * saina_residual() - see saina.h
 *
 * Element i belongs to segment i / payload: the position in the tensor for
 * rounds of one all-reduce; later buckets of a round begin at a new segment.
 */
int saina_residual(struct saina *s, uint64_t first, uint64_t n, enum saina_type type, void *out)
{
	uint32_t *o = out;
	int ret = 0;

	if (!s || (n && !out))
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	if (type != SAINA_INT32 && type != SAINA_FLOAT32) {
		ret = saina_error(s, -EINVAL, "saina_residual: type %d is unknown", (int)type);
		goto unlock;
	}
	if (first + n < first || first + n > (uint64_t)s->segments * s->payload) {
		ret = saina_error(s, -EINVAL, "saina_residual: the gradient ends at element %llu",
				  (unsigned long long)s->segments * s->payload);
		goto unlock;
	}
	for (uint64_t i = first; i < first + n;) {
		uint32_t segment = i / s->payload, at = i % s->payload;
		uint64_t m = s->payload - at;

		if (m > first + n - i)
			m = first + n - i;
		if (!s->seg[segment].residual) {
			memset(o, 0, 4 * m);
		} else if (s->seg[segment].residual != type) {
			ret = saina_error(
				s, -EINVAL,
				"saina_residual: segment %u keeps elements of the other type",
				segment);
			goto unlock;
		} else {
			memcpy(o, place(s, segment) + at, 4 * m);
		}
		o += m;
		i += m;
	}
unlock:
	pthread_mutex_unlock(&s->lock);
	return ret;
}
