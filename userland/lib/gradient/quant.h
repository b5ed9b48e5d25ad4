/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Between tensors and the integers on the wire. */
#ifndef SAINA_QUANT_H
#define SAINA_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAINA_EXPONENT_MIN	(-100)
#define SAINA_EXPONENT_MAX	110
#define SAINA_QUANT_HEADROOM	5	/* bits between the largest mean and the limit */
#define SAINA_QUANT_RAISE	8	/* bits an exponent may grow in a round */
#define SAINA_QUANT_CLIPPED	11	/* bits given extra when the mean looks clipped */
#define SAINA_QUANT_ZERO	24	/* bits above the first round's that zeros may reach */

/**
 * enum saina_quant_use - what a variant is good for on this processor
 * @SAINA_QUANT_ABSENT: the processor does not have the instructions
 * @SAINA_QUANT_SLOW: it has them, and they cost more than they save
 * @SAINA_QUANT_FAST: at least as fast as the variants before it
 */
enum saina_quant_use {
	SAINA_QUANT_ABSENT,
	SAINA_QUANT_SLOW,
	SAINA_QUANT_FAST,
};

/**
 * struct saina_quant - the three loops; all variants give identical results
 * @encode: q[i] = round((g[i] + res[i]) * 2^@e), to even, clipped to +-@limit;
 *	@res may be NULL.  Returns the number of clipped elements
 * @decode: out[i] = (float)((double)sum[i] * 2^-@e / @div): the product is
 *	exact, then one rounding each for the division and the conversion.
 *	Returns the largest |sum[i]|
 * @add: out[i] = a[i] + b[i], wrapping
 * @usable: on this processor?
 *
 * Integers on the wire are little endian; no pointer need be aligned.
 */
struct saina_quant {
	size_t (*encode)(void *q, const float *g, const float *res, size_t n, int e, float limit);
	uint32_t (*decode)(float *out, const void *sum, size_t n, int e, unsigned int div);
	void (*add)(void *out, const void *a, const void *b, size_t n);
	enum saina_quant_use (*usable)(void);
	const char *name;
};

extern const struct saina_quant saina_quant_scalar;
const struct saina_quant *saina_quant_best(void);	/* for this CPU */
/* Variants of this architecture, the plain one first; NULL behind the last. */
const struct saina_quant *saina_quant_variant(unsigned int i);

unsigned int saina_quant_limit_bits(unsigned int workers);
int saina_quant_next(int e, uint32_t max, unsigned int contributors, unsigned int workers,
		     int e0);
void saina_quant_remainder(float *out, const float *g, const float *res, size_t n, int e,
			   float limit, bool whole);
uint32_t saina_quant_max(const void *sum, size_t n);

#endif /* SAINA_QUANT_H */
