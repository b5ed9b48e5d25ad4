// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include <errno.h>
#include <stdlib.h>
#include "gradient.h"
#include "half.h"

int saina_gradient_init(struct saina_gradient *g, const struct saina_job *job)
{
	g->job = job;
	g->quant = saina_quant_best();
	g->limit = (float)(1u << saina_quant_limit_bits(job->workers));
	g->share = calloc(job->segments, sizeof(*g->share));
	/* Zero pages until something is kept in them. */
	g->residual = calloc((size_t)job->segments * job->payload, 4);
	if (!g->share || !g->residual)
		return -ENOMEM;
	for (uint32_t i = 0; i < job->segments; i++)
		g->share[i].exponent = job->exponent0;
	return 0;
}

void saina_gradient_exit(struct saina_gradient *g)
{
	free(g->share);
	free(g->residual);
}

void *saina_gradient_data(const struct saina_gradient *g, uint32_t segment, size_t *n)
{
	const struct saina_tensor *t = g->share[segment].t;
	size_t first = (size_t)(segment - t->first) * g->job->payload;

	*n = t->n - first < g->job->payload ? t->n - first : g->job->payload;
	return (uint32_t *)t->buf + first;
}

/*
 * Encoded anew at each retransmission, from the same gradient, residual and
 * exponent, which do not change before the result is there: the same bits.
 */
void saina_gradient_encode(struct saina_gradient *g, uint32_t segment, void *wire)
{
	struct saina_share *p = &g->share[segment];
	const void *res = saina_residual_of(g, segment), *data;
	const struct saina_job *job = g->job;
	size_t n, used;

	data = saina_gradient_data(g, segment, &n);
	if (job->elem != SAINA_ELEM_INT32 || p->t->type == SAINA_INT32)
		p->exponent = 0;
	if (job->elem == SAINA_ELEM_FLOAT32)
		saina_float_encode(wire, data, res, n);
	else if (job->elem == SAINA_ELEM_BFLOAT16)
		saina_half_encode(wire, data, res, n);
	else if (p->t->type == SAINA_FLOAT32)
		p->clipped = g->quant->encode(wire, data, res, n, p->exponent, g->limit);
	else if (res)
		g->quant->add(wire, data, res, n);
	else
		memcpy(wire, data, 4 * n);
	used = job->wire / job->payload * n;
	memset((uint8_t *)wire + used, 0, job->wire - used);
}

void saina_gradient_decode(struct saina_gradient *g, uint32_t segment, const struct saina_hdr *h,
			   const void *sums, unsigned int div)
{
	struct saina_share *p = &g->share[segment];
	const struct saina_job *job = g->job;
	uint32_t max;
	size_t n;
	void *out = saina_gradient_data(g, segment, &n);

	if (job->elem == SAINA_ELEM_FLOAT32) {
		saina_float_decode(out, sums, n, div);
	} else if (job->elem == SAINA_ELEM_BFLOAT16) {
		saina_half_decode(out, sums, n, div);
	} else if (p->t->type == SAINA_INT32) {
		memcpy(out, sums, 4 * n);
		/* Float32 that follows has no scale yet. */
		p->exponent = job->exponent0;
	} else {
		max = g->quant->decode(out, sums, n, h->exponent, div);
		p->exponent = saina_quant_next(h->exponent, max, h->contributors, job->workers,
					       job->exponent0);
	}
}

void saina_gradient_learn(struct saina_gradient *g, uint32_t segment, const struct saina_hdr *h,
			  const void *sums)
{
	const struct saina_job *job = g->job;

	if (job->elem == SAINA_ELEM_INT32)
		g->share[segment].exponent =
			saina_quant_next(h->exponent, saina_quant_max(sums, job->payload),
					 h->contributors, job->workers, job->exponent0);
}
