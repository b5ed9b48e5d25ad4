/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Converts between tensors and pairs of int16 on the wire, SAINA_PAIR(). */
#ifndef SAINA_PAIRS_H
#define SAINA_PAIRS_H

#include "quant.h"

/* The largest |q| that a worker may send. */
uint32_t saina_pairs_limit(unsigned int workers);

/*
 * As the loops of struct saina_quant, by those of @quant.  A message has @n / 2 words, rounded up; of
 * an odd @n the last element of the last one is 0.
 */
void saina_pairs_encode(const struct saina_quant *quant, void *out, const float *g, const float *res,
			size_t n, int e);
void saina_pairs_decode(const struct saina_quant *quant, float *out, const void *sum, size_t n, int e,
			unsigned int div);
/* res[i] = what saina_pairs_encode() rounded off of g[i] + res[i], exactly. */
void saina_pairs_remainder(float *restrict res, const float *restrict g, size_t n, int e);

#endif /* SAINA_PAIRS_H */
