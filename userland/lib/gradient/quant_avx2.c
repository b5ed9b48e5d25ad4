// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The loops of quant.h, 8 elements at a time. */
#if defined(__x86_64__)
#include <immintrin.h>
#include "quant_vector.h"

/* No "fma" in the target: a fused multiply-add would round differently. */
#define AVX2 __attribute__((target("avx2")))

AVX2 static size_t encode_avx2(void *q, const float *g, const float *res, size_t n, int e,
			       float limit)
{
	const __m256 scale = _mm256_set1_ps(quant_power(e)), lim = _mm256_set1_ps(limit);
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
	       saina_quant_scalar.encode((char *)q + 4 * i, g + i, res ? res + i : NULL, n - i, e, limit);
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
	const __m256d scale = _mm256_set1_pd(quant_power(-e)), d = _mm256_set1_pd(div);
	__m256i max = _mm256_setzero_si256();
	uint32_t rest, tail;
	int shift;
	size_t i;

	if (quant_is_shift(e, div, &shift)) {
		i = n & ~(size_t)7;
		rest = decode_scaled_avx2(out, sum, i, quant_power(-shift));
		tail = saina_quant_scalar.decode(out + i, (const char *)sum + 4 * i, n - i, e, div);
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
	rest = saina_quant_scalar.decode(out + i, (const char *)sum + 4 * i, n - i, e, div);
	return max_avx2(max, rest);
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
