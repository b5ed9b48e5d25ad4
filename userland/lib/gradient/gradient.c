// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Contributions into messages, and results into the caller's elements. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "gradient.h"
#include "half.h"
#include "pairs.h"

/*
 * Bits by which an exponent may be coarser than needed.  int16 has few to spare, but without any
 * workers whose magnitudes are on either side of a power of two would round each other's off.
 */
#define PAIRS_SLACK 1

uint64_t saina_gradient_integers(const struct saina_hdr *h, const void *sums)
{
	__le64 mask;

	memcpy(&mask, sums, sizeof(mask));
	if (h->flags & SAINA_F_TYPES)
		return le64toh(mask);
	return h->exponent == SAINA_EXPONENT_INT ? le64toh(h->mask) : 0;
}

int saina_gradient_init(struct saina_gradient *g, const struct saina_job *job)
{
	g->job = job;
	g->quant = saina_quant_best();
	g->infinite = SAINA_QUANT_INFINITY;
	if (job->elem == SAINA_ELEM_INT16) {
		float most;

		g->limit = saina_pairs_limit(saina_job_weight(job));
		g->slack = PAIRS_SLACK;
		/* Of the largest magnitude with a valid exponent; the bits of floats are in order. */
		most = (float)(g->limit * quant_unit(SAINA_EXPONENT_MIN));
		memcpy(&g->infinite, &most, sizeof(most));
		g->infinite++;
	} else {
		g->limit = saina_quant_limit(saina_job_weight(job));
		g->slack = SAINA_QUANT_SLACK;
	}
	g->state = calloc(job->segments, sizeof(*g->state));
	/* Large: its pages take no memory until a residual is kept in them. */
	g->residual = calloc((size_t)job->segments * job->payload, 4);
	if (!g->state || !g->residual)
		return -ENOMEM;
	for (uint32_t i = 0; i < job->segments; i++)
		g->state[i].scale = SAINA_EXPONENT_NAN;
	return 0;
}

void saina_gradient_exit(struct saina_gradient *g)
{
	free(g->state);
	free(g->residual);
}

void *saina_gradient_data(const struct saina_gradient *g, uint32_t segment, size_t *n)
{
	const struct saina_tensor *t = g->state[segment].t;
	size_t first = (size_t)(segment - t->first) * g->job->payload;

	*n = t->n - first < g->job->payload ? t->n - first : g->job->payload;
	return (uint32_t *)t->buf + first;
}

const void *saina_gradient_residual(const struct saina_gradient *g, uint32_t segment)
{
	const struct saina_segment_state *p = &g->state[segment];

	return p->residual && !p->t->once ? g->residual + (size_t)segment * g->job->payload : NULL;
}

/*
 * Chosen once in a round, when the segment is first encoded: a retransmission is the same to the
 * bit, whatever results have come meanwhile.  True if @wire has the contribution: it is mostly
 * encoded with the exponent of the last result, in the pass that finds the largest element.
 */
static bool choose_exponent(struct saina_gradient *g, uint32_t segment, const float *data, size_t n,
			    void *wire)
{
	struct saina_segment_state *p = &g->state[segment];
	const float *res = saina_gradient_residual(g, segment);
	bool guess = g->job->elem == SAINA_ELEM_INT32 && p->scale != SAINA_EXPONENT_NAN;
	uint32_t largest;

	p->exponent = p->t->type == SAINA_INT32 ? SAINA_EXPONENT_INT : 0;
	p->alone = false;
	p->chosen = true;
	if (p->t->type == SAINA_INT32 || (!SAINA_ELEM_IS_INT(g->job->elem) && !res))
		return false;
	largest = guess ? g->quant->encode(wire, data, res, n, p->scale) :
			  saina_quant_largest(g->quant, data, res, n);
	if (res && largest >= g->infinite) {
		/* If only the sum is not finite, the residual waits for a later round. */
		largest = saina_quant_largest(g->quant, data, NULL, n);
		p->alone = largest < g->infinite;
	}
	if (!SAINA_ELEM_IS_INT(g->job->elem))
		return false;
	p->exponent = largest < g->infinite ?
			      saina_quant_exponent(largest, g->limit, p->scale, g->slack) :
			      SAINA_EXPONENT_NAN;
	return guess && p->exponent == p->scale && !p->alone;
}

/* The last segment of a tensor is filled up with zeros. */
static void pad_zeros(const struct saina_job *job, void *wire, size_t n)
{
	size_t used = job->wire / job->payload * n;

	memset((uint8_t *)wire + used, 0, job->wire - used);
}

int saina_gradient_encode(struct saina_gradient *g, uint32_t segment, void *wire)
{
	struct saina_segment_state *p = &g->state[segment];
	const struct saina_job *job = g->job;
	const void *data, *res;
	bool done;
	size_t n;

	data = saina_gradient_data(g, segment, &n);
	done = !p->chosen && choose_exponent(g, segment, data, n, wire);
	res = p->alone ? NULL : saina_gradient_residual(g, segment);
	if (p->exponent == SAINA_EXPONENT_NAN)
		n = 0;
	pad_zeros(job, wire, n);
	if (done)
		return p->exponent;
	if (job->elem == SAINA_ELEM_INT16)
		saina_pairs_encode(g->quant, wire, data, res, n, p->exponent);
	else if (job->elem == SAINA_ELEM_FLOAT32)
		saina_float_encode(wire, data, res, n);
	else if (job->elem == SAINA_ELEM_BFLOAT16)
		saina_half_encode(wire, data, res, n);
	else if (p->t->type == SAINA_FLOAT32)
		g->quant->encode(wire, data, res, n, p->exponent);
	else if (res)
		g->quant->add(wire, data, res, n);
	else
		memcpy(wire, data, 4 * n);
	return p->exponent;
}

size_t saina_gradient_encode_step(struct saina_gradient *g, uint32_t segment, void *wire,
				  int exponent, uint32_t limit)
{
	const void *data, *res = saina_gradient_residual(g, segment);
	float fits[SAINA_ELEMS_MAX];
	size_t n, cut = 0;

	data = saina_gradient_data(g, segment, &n);
	if (g->state[segment].t->type == SAINA_FLOAT32) {
		cut = saina_quant_cut(fits, data, res, n, exponent, limit);
		g->quant->encode(wire, fits, NULL, n, exponent);
	} else if (res) {
		g->quant->add(wire, data, res, n);
	} else {
		memcpy(wire, data, 4 * n);
	}
	pad_zeros(g->job, wire, n);
	return cut;
}

void saina_gradient_decode(struct saina_gradient *g, uint32_t segment, const struct saina_hdr *h,
			   const void *sums, unsigned int div)
{
	struct saina_segment_state *p = &g->state[segment];
	const struct saina_job *job = g->job;
	size_t n;
	float *out = saina_gradient_data(g, segment, &n);

	if (job->elem == SAINA_ELEM_FLOAT32) {
		saina_float_decode(out, sums, n, div);
	} else if (job->elem == SAINA_ELEM_BFLOAT16) {
		saina_half_decode(out, sums, n, div);
	} else if (p->t->type == SAINA_INT32) {
		memcpy(out, sums, 4 * n);
	} else if (h->exponent == SAINA_EXPONENT_NAN) {
		for (size_t i = 0; i < n; i++)
			out[i] = NAN;
	} else if (job->elem == SAINA_ELEM_INT16) {
		saina_pairs_decode(g->quant, out, sums, n, h->exponent, div);
		p->scale = h->exponent;
	} else {
		g->quant->decode(out, sums, n, h->exponent, div);
		p->scale = h->exponent;
	}
}

void saina_gradient_learn(struct saina_gradient *g, uint32_t segment, const struct saina_hdr *h)
{
	if (h->exponent != SAINA_EXPONENT_NAN && h->exponent != SAINA_EXPONENT_INT)
		g->state[segment].scale = h->exponent;
}
