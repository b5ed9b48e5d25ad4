// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The loops of quant.h, 8 elements at a time. */
#if defined(__x86_64__)
#include <immintrin.h>
#include "quant_vector.h"

/* No "fma" in the target: a fused multiply-add would round differently. */
#define AVX2 __attribute__((target("avx2")))
#define STEP AVX2 static inline __attribute__((always_inline))

/* Elements @i to @i + 7. */
AVX2 static inline __m256 contribution(const float *g, const float *res, size_t i)
{
	__m256 v = _mm256_loadu_ps(g + i);

	return res ? _mm256_add_ps(v, _mm256_loadu_ps(res + i)) : v;
}

/* quant_steps(); the compiler knows whether there are @both. */
STEP __m256 scaled(__m256 v, float first, float second, bool both)
{
	v = _mm256_mul_ps(v, _mm256_set1_ps(first));
	return both ? _mm256_mul_ps(v, _mm256_set1_ps(second)) : v;
}

/* Encodes @n elements, a multiple of 8.  Returns the bits of the largest magnitude. */
STEP uint32_t encode_whole(void *q, const float *g, const float *res, size_t n, float first, float second,
			   bool both)
{
	__m256i max = _mm256_setzero_si256();
	uint32_t m[8], largest = 0;

	for (size_t i = 0; i < n; i += 8) {
		__m256 v = contribution(g, res, i);
		__m256i b = _mm256_castps_si256(v);

		quant_prefetch(g + i);
		max = _mm256_max_epu32(max, _mm256_and_si256(b, _mm256_set1_epi32(INT32_MAX)));
		if (q)
			_mm256_storeu_si256((__m256i *)((char *)q + 4 * i),
					    _mm256_cvtps_epi32(scaled(v, first, second, both)));
	}
	_mm256_storeu_si256((__m256i *)m, max);
	for (int j = 0; j < 8; j++)
		largest = m[j] > largest ? m[j] : largest;
	return largest;
}

AVX2 static uint32_t encode_avx2(void *q, const float *g, const float *res, size_t n, int e)
{
	size_t whole = n & ~(size_t)7;
	uint32_t largest, rest;
	float first, second;

	quant_steps(e + SAINA_EXPONENT_BIAS, &first, &second);
	if (second != 1)
		largest = encode_whole(q, g, res, whole, first, second, true);
	else
		largest = encode_whole(q, g, res, whole, first, 1, false);
	rest = saina_quant_scalar.encode(q ? (char *)q + 4 * whole : NULL, g + whole,
					 res ? res + whole : NULL, n - whole, e);
	return rest > largest ? rest : largest;
}

STEP void decode_floats(float *out, const void *sum, size_t n, float first, float second, bool both)
{
	for (size_t i = 0; i < n; i += 8) {
		__m256i s = _mm256_loadu_si256((const __m256i *)((const char *)sum + 4 * i));

		quant_prefetch((const char *)sum + 4 * i);
		quant_prefetch(out + i);
		_mm256_storeu_ps(out + i, scaled(_mm256_cvtepi32_ps(s), first, second, both));
	}
}

AVX2 static void decode_avx2(float *out, const void *sum, size_t n, int e, unsigned int div)
{
	const struct quant_mean m = quant_mean(e, div);
	const __m256d unit = _mm256_set1_pd(quant_power(-m.shift)), d = _mm256_set1_pd(m.odd);
	size_t whole = n & ~(size_t)7;
	float first, second;

	if (quant_mean_is_float(m)) {
		quant_steps(-m.shift, &first, &second);
		if (second != 1)
			decode_floats(out, sum, whole, first, second, true);
		else
			decode_floats(out, sum, whole, first, 1, false);
		saina_quant_scalar.decode(out + whole, (const char *)sum + 4 * whole, n - whole, e, div);
		return;
	}
	for (size_t i = 0; i < whole; i += 8) {
		__m256i s = _mm256_loadu_si256((const __m256i *)((const char *)sum + 4 * i));
		__m256d lo = _mm256_cvtepi32_pd(_mm256_castsi256_si128(s));
		__m256d hi = _mm256_cvtepi32_pd(_mm256_extracti128_si256(s, 1));

		quant_prefetch((const char *)sum + 4 * i);
		quant_prefetch(out + i);
		lo = _mm256_mul_pd(lo, unit);
		hi = _mm256_mul_pd(hi, unit);
		if (m.odd != 1) {
			lo = _mm256_div_pd(lo, d);
			hi = _mm256_div_pd(hi, d);
		}
		_mm_storeu_ps(out + i, _mm256_cvtpd_ps(lo));
		_mm_storeu_ps(out + i + 4, _mm256_cvtpd_ps(hi));
	}
	saina_quant_scalar.decode(out + whole, (const char *)sum + 4 * whole, n - whole, e, div);
}

AVX2 void saina_quant_add_avx2(void *out, const void *a, const void *b, size_t n)
{
	size_t i;

	for (i = 0; i + 8 <= n; i += 8) {
		__m256i x = _mm256_loadu_si256((const __m256i *)((const char *)a + 4 * i));
		__m256i y = _mm256_loadu_si256((const __m256i *)((const char *)b + 4 * i));

		_mm256_storeu_si256((__m256i *)((char *)out + 4 * i), _mm256_add_epi32(x, y));
	}
	saina_quant_scalar.add((char *)out + 4 * i, (const char *)a + 4 * i, (const char *)b + 4 * i, n - i);
}

static enum saina_quant_use usable_avx2(void)
{
	return __builtin_cpu_supports("avx2") ? SAINA_QUANT_FAST : SAINA_QUANT_ABSENT;
}

const struct saina_quant saina_quant_avx2 = {
	.encode = encode_avx2,
	.decode = decode_avx2,
	.add = saina_quant_add_avx2,
	.usable = usable_avx2,
	.name = "avx2",
};
#endif
