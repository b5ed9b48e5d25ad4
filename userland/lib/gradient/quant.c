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
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include "quant.h"

/* 2^@e, of a normal float; ldexpf() costs as much as encoding a hundred elements. */
static float power(int e)
{
	uint32_t bits = (uint32_t)(e + 127) << 23;
	float f;

	memcpy(&f, &bits, 4);
	return f;
}

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
	const float scale = power(e);
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
	const double scale = power(-e), d = div;
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

const struct saina_quant saina_quant_scalar = {
	.encode = encode_scalar,
	.decode = decode_scalar,
	.add = add_scalar,
	.name = "scalar",
};

#if defined(__x86_64__)
/* No "fma" in the target: a fused multiply-add would round differently. */
#define AVX2 __attribute__((target("avx2")))

AVX2 static size_t encode_avx2(void *q, const float *g, const float *res, size_t n, int e,
			       float limit)
{
	const __m256 scale = _mm256_set1_ps(power(e)), lim = _mm256_set1_ps(limit);
	const __m256 sign = _mm256_set1_ps(-0.0f);
	size_t clipped = 0, i;

	for (i = 0; i + 8 <= n; i += 8) {
		__m256 v = _mm256_loadu_ps(g + i), over, cut;

		if (res)
			v = _mm256_add_ps(v, _mm256_loadu_ps(res + i));
		v = _mm256_mul_ps(v, scale);
		over = _mm256_cmp_ps(_mm256_andnot_ps(sign, v), lim, _CMP_NLE_UQ);
		if (__builtin_expect(_mm256_movemask_ps(over), 0)) {
			clipped += __builtin_popcount(_mm256_movemask_ps(over));
			cut = _mm256_or_ps(lim, _mm256_and_ps(sign, v));
			cut = _mm256_and_ps(cut, _mm256_cmp_ps(v, v, _CMP_ORD_Q));
			v = _mm256_blendv_ps(v, cut, over);
		}
		_mm256_storeu_si256((__m256i *)((char *)q + 4 * i), _mm256_cvtps_epi32(v));
	}
	return clipped +
	       encode_scalar((char *)q + 4 * i, g + i, res ? res + i : NULL, n - i, e, limit);
}

/* The most of 8 numbers, and @rest. */
AVX2 static uint32_t max_avx2(__m256i max, uint32_t rest)
{
	uint32_t m[8];

	_mm256_storeu_si256((__m256i *)m, max);
	for (int i = 0; i < 8; i++)
		rest = m[i] > rest ? m[i] : rest;
	return rest;
}

/* Neither division nor double: @scale is a power of two, and no result is so small that
 * it would be rounded again.
 */
AVX2 static uint32_t decode_scaled_avx2(float *out, const void *sum, size_t n, float scale)
{
	const __m256 by = _mm256_set1_ps(scale);
	__m256i max = _mm256_setzero_si256();
	size_t i;

	for (i = 0; i + 8 <= n; i += 8) {
		__m256i s = _mm256_loadu_si256((const __m256i *)((const char *)sum + 4 * i));

		max = _mm256_max_epu32(max, _mm256_abs_epi32(s));
		_mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_cvtepi32_ps(s), by));
	}
	return max_avx2(max, 0);
}

AVX2 static uint32_t decode_avx2(float *out, const void *sum, size_t n, int e, unsigned int div)
{
	const __m256d scale = _mm256_set1_pd(power(-e)), d = _mm256_set1_pd(div);
	__m256i max = _mm256_setzero_si256();
	unsigned int log = __builtin_ctz(div);
	uint32_t rest, tail;
	size_t i;

	if (div == 1u << log && e + (int)log <= 126 && e >= -96) {
		i = n & ~(size_t)7;
		rest = decode_scaled_avx2(out, sum, i, power(-e - (int)log));
		tail = decode_scalar(out + i, (const char *)sum + 4 * i, n - i, e, div);
		return tail > rest ? tail : rest;
	}
	for (i = 0; i + 8 <= n; i += 8) {
		__m256i s = _mm256_loadu_si256((const __m256i *)((const char *)sum + 4 * i));
		__m256d lo = _mm256_cvtepi32_pd(_mm256_castsi256_si128(s));
		__m256d hi = _mm256_cvtepi32_pd(_mm256_extracti128_si256(s, 1));

		max = _mm256_max_epu32(max, _mm256_abs_epi32(s));
		lo = _mm256_mul_pd(lo, scale);
		hi = _mm256_mul_pd(hi, scale);
		if (div != 1) {
			lo = _mm256_div_pd(lo, d);
			hi = _mm256_div_pd(hi, d);
		}
		_mm_storeu_ps(out + i, _mm256_cvtpd_ps(lo));
		_mm_storeu_ps(out + i + 4, _mm256_cvtpd_ps(hi));
	}
	rest = decode_scalar(out + i, (const char *)sum + 4 * i, n - i, e, div);
	return max_avx2(max, rest);
}

AVX2 static void add_avx2(void *out, const void *a, const void *b, size_t n)
{
	size_t i;

	for (i = 0; i + 8 <= n; i += 8) {
		__m256i x = _mm256_loadu_si256((const __m256i *)((const char *)a + 4 * i));
		__m256i y = _mm256_loadu_si256((const __m256i *)((const char *)b + 4 * i));

		_mm256_storeu_si256((__m256i *)((char *)out + 4 * i), _mm256_add_epi32(x, y));
	}
	add_scalar((char *)out + 4 * i, (const char *)a + 4 * i, (const char *)b + 4 * i, n - i);
}

static const struct saina_quant quant_avx2 = {
	.encode = encode_avx2,
	.decode = decode_avx2,
	.add = add_avx2,
	.name = "avx2",
};
#endif

const struct saina_quant *saina_quant_best(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		return &quant_avx2;
#endif
	return &saina_quant_scalar;
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
	const float scale = power(e), cut = ldexpf(limit, -e);

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
