// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Block scaling with delayed exponents.
 *
 * A segment of float32 travels as q = round(g * 2^e) with one exponent e per
 * segment and round, the same for all workers, or their integers could not be
 * added.  Nobody sends exponents around: the one for the next round is a pure
 * function (saina_quant_next()) of the last result packet of that segment,
 * which every worker receives bit for bit alike.
 *
 * |q| is limited to L = the largest power of two not above (2^31 - 1) / workers,
 * so that no sum of all workers can wrap.  A power of two, because then what is
 * cut off, g - L * 2^-e, is a float again without rounding (as long as g is not
 * more than 2^24 times too large), and goes to the residual exactly.
 */
#include <endian.h>
#include <math.h>
#include <string.h>
#include "quant_vector.h"

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

static size_t encode_scalar(void *q, const float *g, const float *res, size_t n, int e, float limit)
{
	const float scale = quant_power(e);
	size_t clipped = 0;

	for (size_t i = 0; i < n; i++) {
		float v = (res ? g[i] + res[i] : g[i]) * scale;

		if (!(fabsf(v) <= limit)) {
			clipped++;
			v = isnan(v) ? 0.0f : copysignf(limit, v);
		}
		store(q, i, (int32_t)lrintf(v));
	}
	return clipped;
}

static uint32_t decode_scalar(float *out, const void *sum, size_t n, int e, unsigned int div)
{
	const double scale = quant_power(-e), d = div;
	uint32_t max = 0;

	for (size_t i = 0; i < n; i++) {
		int32_t s = load(sum, i);
		uint32_t a = s < 0 ? 0u - (uint32_t)s : (uint32_t)s;
		double x = s * scale;

		if (a > max)
			max = a;
		out[i] = (float)(x / d);
	}
	return max;
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

/* From the plain one to the widest. */
static const struct saina_quant *const variants[] = {
	&saina_quant_scalar,
#if defined(__x86_64__)
	&saina_quant_avx2,
	&saina_quant_avx512,
#endif
};

const struct saina_quant *saina_quant_variant(unsigned int i)
{
	return i < sizeof(variants) / sizeof(*variants) ? variants[i] : NULL;
}

const struct saina_quant *saina_quant_best(void)
{
	const struct saina_quant *best = &saina_quant_scalar;

	for (unsigned int i = 0; saina_quant_variant(i); i++) {
		if (variants[i]->usable() == SAINA_QUANT_FAST)
			best = variants[i];
	}
	return best;
}

/**
 * saina_quant_limit_bits() - log2 of the largest |q| a worker may send
 * @workers: of the job, 1..64
 */
unsigned int saina_quant_limit_bits(unsigned int workers)
{
	return 31 - __builtin_clz(0x7fffffffu / workers);
}

/**
 * saina_quant_next() - exponent of a segment's next round
 * @e: exponent in the result packet
 * @max: largest |sum| in it
 * @contributors: of it
 * @workers: of the job
 * @e0: exponent of the job's first round
 *
 * With m = ceil(max / contributors), the magnitude of the mean, b its length in
 * bits, and l = saina_quant_limit_bits():
 *
 *	e' = e + min(l - SAINA_QUANT_HEADROOM - b, SAINA_QUANT_RAISE)
 *
 * so the next round's mean, if it is like this one's, stays at least 2^5 below
 * the limit: single gradients exceed the mean (by about the square root of the
 * contributors where they are mostly noise), stragglers bring the sum of
 * several rounds.  What is left, at least 19 bits for 64 workers, keeps the
 * rounding error below that of the float32 additions in a usual all-reduce.
 *
 * Downwards there is no bound, for clipping delays gradients; upwards 8 bits a
 * round, for one quiet round must not make the next one clip.  When m is
 * within 2 bits of the limit the true magnitude is unknown (clipped), so the
 * exponent goes down by SAINA_QUANT_CLIPPED more.  A result that is all zero says
 * nothing, except perhaps that the exponent is too low to see the gradients:
 * it is raised by 1, up to @e0 + SAINA_QUANT_ZERO.
 */
int saina_quant_next(int e, uint32_t max, unsigned int contributors, unsigned int workers, int e0)
{
	int l = (int)saina_quant_limit_bits(workers), b, shift;
	uint32_t m;

	if (!max) {
		if (e < e0 + SAINA_QUANT_ZERO)
			e++;
	} else {
		m = max / contributors + (max % contributors != 0);
		b = 32 - __builtin_clz(m);
		shift = l - SAINA_QUANT_HEADROOM - b;
		if (b >= l - 1)
			shift -= SAINA_QUANT_CLIPPED;
		e += shift > SAINA_QUANT_RAISE ? SAINA_QUANT_RAISE : shift;
	}
	return e < SAINA_EXPONENT_MIN	? SAINA_EXPONENT_MIN
	       : e > SAINA_EXPONENT_MAX ? SAINA_EXPONENT_MAX
					: e;
}

/**
 * saina_quant_remainder() - what encode() cut off: g + res - q * 2^-e of the
 *	clipped elements, 0 of the others; with @whole what was rounded off of those
 *
 * NaNs and infinities leave nothing: there is no remainder to speak of, and
 * kept they would never go away.  @out may be @res.
 */
void saina_quant_remainder(float *out, const float *g, const float *res, size_t n, int e,
			   float limit, bool whole)
{
	const float scale = quant_power(e), cut = ldexpf(limit, -e);

	for (size_t i = 0; i < n; i++) {
		float c = res ? g[i] + res[i] : g[i];

		if (isfinite(c) && fabsf(c * scale) > limit)
			out[i] = c - copysignf(cut, c);
		else
			out[i] = whole && isfinite(c) ? c - ldexpf(rintf(c * scale), -e) : 0.0f;
	}
}

uint32_t saina_quant_max(const void *sum, size_t n)
{
	uint32_t max = 0;

	for (size_t i = 0; i < n; i++) {
		int32_t s = load(sum, i);
		uint32_t a = s < 0 ? 0u - (uint32_t)s : (uint32_t)s;

		max = a > max ? a : max;
	}
	return max;
}
