// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Block scaling.
 *
 * A segment of float32 is sent as q = round(g * 2^e), with one exponent e for the whole segment.
 * Messages, and the functions of this file, have e - SAINA_EXPONENT_BIAS.
 * Each worker chooses e by the largest magnitude in the segment, so that |q| is at most
 * L = (2^31 - 1) / workers - 1 (of the whole tree, if the job is in one) and no value is clipped.  The aggregator shifts contributions with a
 * finer exponent, so a sum has the coarsest.  Shifting rounds a contribution up by less than one
 * unit; L is one less for that, so no sum of all workers wraps.
 */
#include <endian.h>
#include <float.h>
#include <math.h>
#include <string.h>
#include "quant.h"

static int32_t load(const void *p, size_t i)
{
	uint32_t v;

	memcpy(&v, (const char *)p + 4 * i, 4);
	return (int32_t)le32toh(v);
}

static void store(void *p, size_t i, int32_t x)
{
	uint32_t v = htole32((uint32_t)x);

	memcpy((char *)p + 4 * i, &v, 4);
}

/* One function, so that the sum that chooses the exponent is the sum that is sent, to the bit. */
static float contribution(const float *g, const float *res, size_t i)
{
	return res ? g[i] + res[i] : g[i];
}

static uint32_t bits_of(float f)
{
	uint32_t b;

	memcpy(&b, &f, sizeof(b));
	return b & 0x7fffffff;
}

static uint32_t encode_scalar(void *q, const float *g, const float *res, size_t n, int e)
{
	float first, second;
	uint32_t max = 0;

	quant_steps(e + SAINA_EXPONENT_BIAS, &first, &second);
	/* Bits of magnitudes compare like the magnitudes; infinity and NaN are above all numbers. */
	for (size_t i = 0; i < n; i++) {
		float c = contribution(g, res, i);

		max = bits_of(c) > max ? bits_of(c) : max;
		if (q)
			store(q, i, (int32_t)lrintf(c * first * second));
	}
	return max;
}

static void decode_scalar(float *out, const void *sum, size_t n, int e, unsigned int div)
{
	const double unit = quant_unit(e), d = div;

	for (size_t i = 0; i < n; i++)
		out[i] = (float)(load(sum, i) * unit / d);
}

static void add_scalar(void *out, const void *a, const void *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t x, y;

		memcpy(&x, (const char *)a + 4 * i, 4);
		memcpy(&y, (const char *)b + 4 * i, 4);
		x += y;
		memcpy((char *)out + 4 * i, &x, 4);
	}
}

static enum saina_quant_use usable_scalar(void)
{
	return SAINA_QUANT_FAST;
}

const struct saina_quant saina_quant_scalar = {
	.encode = encode_scalar,
	.decode = decode_scalar,
	.add = add_scalar,
	.usable = usable_scalar,
	.name = "scalar",
};

/**
 * saina_quant_limit() - the largest |q| that a worker may send
 * @workers: that a sum may have, 1..65535
 */
uint32_t saina_quant_limit(unsigned int workers)
{
	return INT32_MAX / workers - 1;
}

/* As saina_quant_finest(), but of small magnitudes it is beyond SAINA_EXPONENT_MAX. */
static int finest(uint32_t largest, uint32_t limit)
{
	int above, e;
	float max;

	memcpy(&max, &largest, sizeof(max));
	/* max is in [2^(above - 1), 2^above), so e is at most one too fine. */
	(void)frexpf(max, &above);
	e = 32 - __builtin_clz(limit) - above;
	if (ldexp(max, e) > limit)
		e--;
	return e - SAINA_EXPONENT_BIAS;
}

static int valid(int e)
{
	return e > SAINA_EXPONENT_MAX ? SAINA_EXPONENT_MAX : e;
}

/**
 * saina_quant_finest() - the finest exponent at which a magnitude fits
 * @largest: bits of a finite float, not 0
 * @limit: of |q|, 1 .. 2^31 - 2
 *
 * SAINA_EXPONENT_MAX at most.
 */
int saina_quant_finest(uint32_t largest, uint32_t limit)
{
	return valid(finest(largest, limit));
}

/**
 * saina_quant_exponent() - exponent of a contribution
 * @largest: of it; finite
 * @limit: saina_quant_limit()
 * @last: exponent of the segment's last result, SAINA_EXPONENT_NAN if there is none
 * @slack: bits by which it may be coarser than needed
 *
 * Return: @last if it is not finer than the finest exponent at which nothing is clipped, and at
 * most @slack bits coarser: then slots of workers with like magnitudes need no shifting.
 * Else that finest one.  A contribution of zeros has SAINA_EXPONENT_MAX, which makes no sum coarser.
 */
int saina_quant_exponent(uint32_t largest, uint32_t limit, int last, int slack)
{
	int e;

	if (!largest)
		return SAINA_EXPONENT_MAX;
	/* Not counted from SAINA_EXPONENT_MAX: small magnitudes have no bits to spare. */
	e = finest(largest, limit);
	return last != SAINA_EXPONENT_NAN && last <= e && last >= e - slack ? last : valid(e);
}

/* Limits @c to +-@cut. */
static float cut_one(float c, float cut)
{
	return fabsf(c) > cut ? copysignf(cut, c) : c;
}

/**
 * saina_quant_cut() - out[i] = g[i] + res[i], cut off at +-@limit units
 * @limit: a power of two, so that the bound is a float
 *
 * Return: how many elements were cut
 */
size_t saina_quant_cut(float *out, const float *g, const float *res, size_t n, int e, uint32_t limit)
{
	const float cut = (float)(limit * quant_unit(e));
	size_t many = 0;

	for (size_t i = 0; i < n; i++) {
		float c = contribution(g, res, i);

		out[i] = cut_one(c, cut);
		many += fabsf(c) > cut;
	}
	return many;
}

/**
 * saina_quant_remainder() - what saina_quant_cut() and encode() leave of g + res for the next step
 * @out: may be @res; a remainder beyond the largest float becomes the largest float
 *
 * Return: how many elements were cut
 */
size_t saina_quant_remainder(float *out, const float *g, const float *res, size_t n, int e,
			     uint32_t limit)
{
	const double scale = quant_scale(e), unit = quant_unit(e);
	const float cut = (float)(limit * unit);
	size_t many = 0;

	for (size_t i = 0; i < n; i++) {
		float c = contribution(g, res, i), q = (float)(rint(cut_one(c, cut) * scale) * unit);
		double left = isfinite(c) ? c - q : (double)g[i] + res[i] - q;

		out[i] = fabs(left) > FLT_MAX ? copysignf(FLT_MAX, c) : (float)left;
		many += fabsf(c) > cut;
	}
	return many;
}
