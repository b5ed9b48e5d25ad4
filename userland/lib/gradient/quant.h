/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Converts between tensors and integers on the wire. */
#ifndef SAINA_QUANT_H
#define SAINA_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "wire/job.h"

#define SAINA_QUANT_SLACK    4		 /* of int32, see saina_quant_exponent() */
#define SAINA_QUANT_INFINITY 0x7f800000u /* bits of a magnitude that is not finite, at least */
#define SAINA_QUANT_STEP     120	 /* float32 is scaled by 2^-STEP to 2^STEP at once */

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
 * struct saina_quant - three loops over elements; all variants give identical results
 * @encode: q[i] = round((g[i] + res[i]) * scale), to even; what does not fit becomes anything.  @res
 *	and @q may be NULL.  Returns the largest of the magnitudes |g[i] + res[i]|, as the bits of a
 *	float; from SAINA_QUANT_INFINITY on if one of them is infinite or a NaN
 * @decode: out[i] = (float)((double)sum[i] * unit / @div): the product is
 *	exact, then one rounding each for the division and the conversion
 * @add: out[i] = a[i] + b[i], wrapping
 * @usable: what this variant is good for on this processor
 *
 * The exponent @e, as on the wire, says quant_scale(@e) and quant_unit(@e).  Integers on the wire are
 * little endian; no pointer need be aligned.
 */
struct saina_quant {
	uint32_t (*encode)(void *q, const float *g, const float *res, size_t n, int e);
	void (*decode)(float *out, const void *sum, size_t n, int e, unsigned int div);
	void (*add)(void *out, const void *a, const void *b, size_t n);
	enum saina_quant_use (*usable)(void);
	const char *name;
};

extern const struct saina_quant saina_quant_scalar;
const struct saina_quant *saina_quant_best(void);	/* for this CPU */
/* Variants of this architecture, the scalar one first; NULL behind the last. */
const struct saina_quant *saina_quant_variant(unsigned int i);

/* 2^@x, of a normal double; ldexp() costs as much as encoding a hundred elements. */
static inline double quant_power(int x)
{
	uint64_t bits = (uint64_t)(x + 1023) << 52;
	double d;

	memcpy(&d, &bits, sizeof(d));
	return d;
}

/* Units in 1.0 at exponent @e, which may be too many for a float: see quant_steps(). */
static inline double quant_scale(int e)
{
	return quant_power(e + SAINA_EXPONENT_BIAS);
}

/* The reverse, which may be no normal float. */
static inline double quant_unit(int e)
{
	return quant_power(-(e + SAINA_EXPONENT_BIAS));
}

/*
 * 2^@x in two normal floats, the second one 1 unless @x is beyond SAINA_QUANT_STEP.  Multiplied by the
 * first, a float32 that is denormal becomes normal, and a product that is to be denormal stays
 * normal: nothing is rounded twice, and only elements that are denormal themselves depend on whether
 * the processor takes them for 0.
 */
static inline void quant_steps(int x, float *first, float *second)
{
	int most = x > SAINA_QUANT_STEP ? SAINA_QUANT_STEP : x < -SAINA_QUANT_STEP ? -SAINA_QUANT_STEP : x;

	*first = (float)quant_power(most);
	*second = (float)quant_power(x - most);
}

static inline uint32_t saina_quant_largest(const struct saina_quant *quant, const float *g,
					   const float *res, size_t n)
{
	return quant->encode(NULL, g, res, n, 0);
}

uint32_t saina_quant_limit(unsigned int workers);
int saina_quant_finest(uint32_t largest, uint32_t limit);
int saina_quant_exponent(uint32_t largest, uint32_t limit, int last, int slack);

/* For the parameter server: the exponent of a segment never changes. */
size_t saina_quant_cut(float *out, const float *g, const float *res, size_t n, int e, uint32_t limit);
size_t saina_quant_remainder(float *out, const float *g, const float *res, size_t n, int e,
			     uint32_t limit);

#endif /* SAINA_QUANT_H */
