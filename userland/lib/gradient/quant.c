// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Block scaling.
 *
 * A segment of float32 travels as q = round(g * 2^e) with one exponent e for all of it.  Each
 * worker takes it from what the segment holds, so that |q| is at most L = (2^31 - 1) / workers - 1
 * and no value is ever clipped.  The aggregator shifts what comes with a finer exponent, so a sum
 * has the coarsest; less than one unit of each contribution is rounded up by that, which is what
 * the - 1 is for: no sum of all workers wraps.
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

/* The sum that is looked at and the sum that is sent are the same to the bit. */
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

static uint32_t largest_scalar(const float *g, const float *res, size_t n)
{
	uint32_t max = 0;

	/* In the order of magnitudes, with infinity above all numbers and NaN above that. */
	for (size_t i = 0; i < n; i++) {
		uint32_t b = bits_of(contribution(g, res, i));

		max = b > max ? b : max;
	}
	return max;
}

static void encode_scalar(void *q, const float *g, const float *res, size_t n, int e)
{
	const float scale = quant_power(e);

	for (size_t i = 0; i < n; i++)
		store(q, i, (int32_t)lrintf(contribution(g, res, i) * scale));
}

static void decode_scalar(float *out, const void *sum, size_t n, int e, unsigned int div)
{
	const double scale = quant_power(-e), d = div;

	for (size_t i = 0; i < n; i++)
		out[i] = (float)(load(sum, i) * scale / d);
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
	.largest = largest_scalar,
	.encode = encode_scalar,
	.decode = decode_scalar,
	.add = add_scalar,
	.usable = usable_scalar,
	.name = "scalar",
};

/**
 * saina_quant_limit() - the largest |q| that a worker may send
 * @workers: of the job, 1..64
 */
uint32_t saina_quant_limit(unsigned int workers)
{
	return INT32_MAX / workers - 1;
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
	int above, e;
	float max;

	memcpy(&max, &largest, sizeof(max));
	/* in [2^(above - 1), 2^above): twice as fine as fits at most */
	(void)frexpf(max, &above);
	e = 32 - __builtin_clz(limit) - above;
	if (ldexp(max, e) > limit)
		e--;
	return e > SAINA_EXPONENT_MAX ? SAINA_EXPONENT_MAX : e;
}

/**
 * saina_quant_exponent() - exponent of a contribution
 * @largest: of it; finite
 * @limit: saina_quant_limit()
 * @last: exponent of the segment's last result, SAINA_EXPONENT_NAN if there is none
 *
 * The finest at which nothing is clipped; @last, if that is not finer and at most 4 bits coarser: then
 * slots of workers with like magnitudes need no shifting.  What is nothing but zeros on the wire,
 * whatever its exponent, has the finest there is, for that makes no sum coarser.
 */
int saina_quant_exponent(uint32_t largest, uint32_t limit, int last)
{
	int e;

	/* half a unit is rounded to even */
	if (largest <= bits_of(ldexpf(0.5f, -SAINA_EXPONENT_MAX)))
		return SAINA_EXPONENT_MAX;
	e = saina_quant_finest(largest, limit);
	return last != SAINA_EXPONENT_NAN && last <= e && last >= e - SAINA_QUANT_SLACK ? last : e;
}

/* As far as it fits +-@cut. */
static float cut_one(float c, float cut)
{
	return fabsf(c) > cut ? copysignf(cut, c) : c;
}

/**
 * saina_quant_cut() - out[i] = g[i] + res[i], cut off at +-@limit * 2^-@e
 * @limit: a power of two: what is cut off is a float, mostly
 *
 * Return: how many were cut
 */
size_t saina_quant_cut(float *out, const float *g, const float *res, size_t n, int e, uint32_t limit)
{
	const float cut = ldexpf(limit, -e);
	size_t many = 0;

	for (size_t i = 0; i < n; i++) {
		float c = contribution(g, res, i);

		out[i] = cut_one(c, cut);
		many += fabsf(c) > cut;
	}
	return many;
}

/**
 * saina_quant_remainder() - what saina_quant_cut() and encode() have left of g + res
 *
 * @out may be @res.  A sum beyond the largest float is as if it were that.
 *
 * Return: how many were cut
 */
size_t saina_quant_remainder(float *out, const float *g, const float *res, size_t n, int e,
			     uint32_t limit)
{
	const float scale = quant_power(e), cut = ldexpf(limit, -e);
	size_t many = 0;

	for (size_t i = 0; i < n; i++) {
		float c = contribution(g, res, i), q = ldexpf(rintf(cut_one(c, cut) * scale), -e);
		double left = isfinite(c) ? c - q : (double)g[i] + res[i] - q;

		out[i] = fabs(left) > FLT_MAX ? copysignf(FLT_MAX, c) : (float)left;
		many += fabsf(c) > cut;
	}
	return many;
}
