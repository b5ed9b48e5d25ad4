// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The loops of quant.h, 16 elements at a time.  What is left over goes through the same
 * instructions under a mask: elements behind the end are neither read nor written.
 */
#if defined(__x86_64__)
#include <immintrin.h>
#include "quant_vector.h"

/* Fused multiply-add, which rounds differently, is part of avx512f.  No sum here follows a
 * product, so the compiler finds nothing to fuse.
 */
#define AVX512 __attribute__((target("avx512f")))
/* The compiler drops a mask that is constant and full. */
#define STEP AVX512 static inline __attribute__((always_inline))
#define LANES 16
#define WHOLE 0xffff

/* The mask of the last @n < 16 elements. */
static inline __mmask16 lanes(size_t n)
{
	return (1u << n) - 1;
}

STEP __m512i load(__mmask16 m, const void *p, size_t i)
{
	const char *at = (const char *)p + 4 * i;

	return m == WHOLE ? _mm512_loadu_si512(at) : _mm512_maskz_loadu_epi32(m, at);
}

STEP void store(void *p, size_t i, __mmask16 m, __m512i v)
{
	char *at = (char *)p + 4 * i;

	if (m == WHOLE)
		_mm512_storeu_si512(at, v);
	else
		_mm512_mask_storeu_epi32(at, m, v);
}

STEP __m512 load_ps(__mmask16 m, const float *p, size_t i)
{
	return _mm512_castsi512_ps(load(m, p, i));
}

/* Elements @i to @i + 15 that are in @m; the others are 0. */
STEP __m512 contribution(const float *g, const float *res, size_t i, __mmask16 m)
{
	__m512 v = load_ps(m, g, i);

	return res ? _mm512_add_ps(v, load_ps(m, res, i)) : v;
}

/* quant_steps(); the compiler knows whether there are @both. */
struct steps {
	__m512 first, second;
	bool both;
};

STEP struct steps steps(float first, float second, bool both)
{
	return (struct steps){ _mm512_set1_ps(first), _mm512_set1_ps(second), both };
}

STEP __m512 scaled(__m512 v, struct steps by)
{
	v = _mm512_mul_ps(v, by.first);
	return by.both ? _mm512_mul_ps(v, by.second) : v;
}

/* Encodes elements @i to @i + 15 that are in @m.  Returns the larger of @max and the bits of their
 * magnitudes.
 */
STEP __m512i encode(void *q, const float *g, const float *res, size_t i, __mmask16 m, struct steps by,
		    __m512i max)
{
	__m512 v = contribution(g, res, i, m);
	__m512i b = _mm512_castps_si512(v);

	if (q)
		store(q, i, m, _mm512_cvtps_epi32(scaled(v, by)));
	return _mm512_max_epu32(max, _mm512_and_si512(b, _mm512_set1_epi32(INT32_MAX)));
}

STEP uint32_t encode_all(void *q, const float *g, const float *res, size_t n, struct steps by)
{
	__m512i max = _mm512_setzero_si512();
	size_t i;

	for (i = 0; i + LANES <= n; i += LANES) {
		quant_prefetch(g + i);
		max = encode(q, g, res, i, WHOLE, by, max);
	}
	if (i < n)
		max = encode(q, g, res, i, lanes(n - i), by, max);
	return _mm512_reduce_max_epu32(max);
}

AVX512 static uint32_t encode_avx512(void *q, const float *g, const float *res, size_t n, int e)
{
	float first, second;

	quant_steps(e + SAINA_EXPONENT_BIAS, &first, &second);
	if (second != 1)
		return encode_all(q, g, res, n, steps(first, second, true));
	return encode_all(q, g, res, n, steps(first, 1, false));
}

STEP void decode_shift(float *out, const void *sum, size_t i, __mmask16 m, struct steps by)
{
	__m512i s = load(m, sum, i);

	store(out, i, m, _mm512_castps_si512(scaled(_mm512_cvtepi32_ps(s), by)));
}

/* Decodes 8 sums, in double. */
STEP __m256i mean(__m256i s, __m512d unit, __m512d div, bool divides)
{
	__m512d x = _mm512_mul_pd(_mm512_cvtepi32_pd(s), unit);

	return _mm256_castps_si256(_mm512_cvtpd_ps(divides ? _mm512_div_pd(x, div) : x));
}

STEP void decode_divide(float *out, const void *sum, size_t i, __mmask16 m, __m512d unit,
			__m512d div, bool divides)
{
	__m512i s = load(m, sum, i);
	__m256i lo = mean(_mm512_castsi512_si256(s), unit, div, divides);
	__m256i hi = mean(_mm512_extracti64x4_epi64(s, 1), unit, div, divides);

	store(out, i, m, _mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1));
}

STEP void decode_floats(float *out, const void *sum, size_t n, struct steps by)
{
	size_t i;

	for (i = 0; i + LANES <= n; i += LANES) {
		quant_prefetch((const char *)sum + 4 * i);
		quant_prefetch(out + i);
		decode_shift(out, sum, i, WHOLE, by);
	}
	if (i < n)
		decode_shift(out, sum, i, lanes(n - i), by);
}

STEP void decode_doubles(float *out, const void *sum, size_t n, struct quant_mean m, bool divides)
{
	const __m512d by = _mm512_set1_pd(quant_power(-m.shift)), d = _mm512_set1_pd(m.odd);
	size_t i;

	for (i = 0; i + LANES <= n; i += LANES) {
		quant_prefetch((const char *)sum + 4 * i);
		quant_prefetch(out + i);
		decode_divide(out, sum, i, WHOLE, by, d, divides);
	}
	if (i < n)
		decode_divide(out, sum, i, lanes(n - i), by, d, divides);
}

AVX512 static void decode_avx512(float *out, const void *sum, size_t n, int e, unsigned int div)
{
	const struct quant_mean m = quant_mean(e, div);
	float first, second;

	quant_steps(-m.shift, &first, &second);
	if (quant_mean_is_float(m) && second != 1)
		decode_floats(out, sum, n, steps(first, second, true));
	else if (quant_mean_is_float(m))
		decode_floats(out, sum, n, steps(first, 1, false));
	else if (m.odd != 1)
		decode_doubles(out, sum, n, m, true);
	else
		decode_doubles(out, sum, n, m, false);
}

/* Processors before Ice Lake (and AMD's Zen 4), which do not have VBMI2, lower their clock
 * for 512-bit arithmetic, and that of everything else on the core with it.
 */
static enum saina_quant_use usable_avx512(void)
{
	if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx2"))
		return SAINA_QUANT_ABSENT;
	return __builtin_cpu_supports("avx512vbmi2") ? SAINA_QUANT_FAST : SAINA_QUANT_SLOW;
}

const struct saina_quant saina_quant_avx512 = {
	.encode = encode_avx512,
	.decode = decode_avx512,
	.add = saina_quant_add_avx2, /* bound by memory: wider gains nothing */
	.usable = usable_avx512,
	.name = "avx512",
};
#endif
