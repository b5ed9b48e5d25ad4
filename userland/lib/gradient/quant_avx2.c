// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The loops of quant.h, 8 elements at a time. */
#if defined(__x86_64__)
#include <immintrin.h>
#include "quant_vector.h"

/* No "fma" in the target: a fused multiply-add would round differently. */
#define AVX2 __attribute__((target("avx2")))

/* Elements @i to @i + 7. */
AVX2 static inline __m256 contribution(const float *g, const float *res, size_t i)
{
	__m256 v = _mm256_loadu_ps(g + i);

	return res ? _mm256_add_ps(v, _mm256_loadu_ps(res + i)) : v;
}

AVX2 static uint32_t encode_avx2(void *q, const float *g, const float *res, size_t n, int e)
{
	const __m256 scale = _mm256_set1_ps(quant_power(e));
	__m256i max = _mm256_setzero_si256();
	uint32_t m[8], rest;
	size_t i;

	for (i = 0; i + 8 <= n; i += 8) {
		__m256 v = contribution(g, res, i);
		__m256i b = _mm256_castps_si256(v);

		quant_prefetch(g + i);
		max = _mm256_max_epu32(max, _mm256_and_si256(b, _mm256_set1_epi32(INT32_MAX)));
		if (q)
			_mm256_storeu_si256((__m256i *)((char *)q + 4 * i),
					    _mm256_cvtps_epi32(_mm256_mul_ps(v, scale)));
	}
	rest = saina_quant_scalar.encode(q ? (char *)q + 4 * i : NULL, g + i, res ? res + i : NULL,
					 n - i, e);
	_mm256_storeu_si256((__m256i *)m, max);
	for (int j = 0; j < 8; j++)
		rest = m[j] > rest ? m[j] : rest;
	return rest;
}

AVX2 static void decode_scaled_avx2(float *out, const void *sum, size_t n, float scale)
{
	const __m256 by = _mm256_set1_ps(scale);

	for (size_t i = 0; i + 8 <= n; i += 8) {
		__m256i s = _mm256_loadu_si256((const __m256i *)((const char *)sum + 4 * i));

		quant_prefetch((const char *)sum + 4 * i);
		quant_prefetch(out + i);
		_mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_cvtepi32_ps(s), by));
	}
}

AVX2 static void decode_avx2(float *out, const void *sum, size_t n, int e, unsigned int div)
{
	const __m256d scale = _mm256_set1_pd(quant_power(-e)), d = _mm256_set1_pd(div);
	size_t whole = n & ~(size_t)7;
	int shift;

	if (quant_is_shift(e, div, &shift)) {
		decode_scaled_avx2(out, sum, whole, quant_power(-shift));
		saina_quant_scalar.decode(out + whole, (const char *)sum + 4 * whole, n - whole, e, div);
		return;
	}
	for (size_t i = 0; i < whole; i += 8) {
		__m256i s = _mm256_loadu_si256((const __m256i *)((const char *)sum + 4 * i));
		__m256d lo = _mm256_cvtepi32_pd(_mm256_castsi256_si128(s));
		__m256d hi = _mm256_cvtepi32_pd(_mm256_extracti128_si256(s, 1));

		quant_prefetch((const char *)sum + 4 * i);
		quant_prefetch(out + i);
		lo = _mm256_mul_pd(lo, scale);
		hi = _mm256_mul_pd(hi, scale);
		if (div != 1) {
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
