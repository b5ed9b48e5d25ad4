// SPDX-License-Identifier: GPL-2.0-or-later
/* Block scaling, exponents, and the variants of its loops. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include "gradient/pairs.h"
#include "gradient/quant.h"
#include "../lib/rng.h"
#include "../lib/statement.h"

#define N 2048
#define W(e) ((e) - SAINA_EXPONENT_BIAS) /* as on the wire */

static uint64_t rng;

static uint64_t draw(void)
{
	return rng_next(&rng);
}

/* Any float there is, or one of a usual size. */
static float any(bool usual)
{
	uint32_t b = draw();
	float f;

	memcpy(&f, &b, sizeof(f));
	return usual ? ldexpf((int32_t)b, (int)(draw() % 24) - 40) : f;
}

static uint32_t bits(float f)
{
	uint32_t b;

	memcpy(&b, &f, sizeof(b));
	return b & 0x7fffffff;
}

/* Vectors of one implementation: @bytes of them end where a page ends that cannot be
 * touched, or begin @off bytes into memory, whatever is asked for.
 */
struct edge {
	char *base;
	size_t size;
};

static void *edge_place(struct edge *m, size_t bytes, bool at_end, unsigned int off)
{
	size_t page = sysconf(_SC_PAGESIZE);

	if (!m->base) {
		m->size = (4 * (N + 16) + page - 1) / page * page;
		m->base = mmap(NULL, m->size + page, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_ptr_not_equal(m->base, MAP_FAILED);
		assert_int_equal(mprotect(m->base + m->size, page, PROT_NONE), 0);
	}
	return at_end ? m->base + m->size - bytes : m->base + off;
}

#define EACH_VARIANT(V) \
	for (unsigned int I = 1; saina_quant_variant(I); I++) \
		if ((V = saina_quant_variant(I))->usable() != SAINA_QUANT_ABSENT)

static struct edge edge[4];

/* What does not fit is never sent: @e, or the finest that is one. */
static int fits(uint32_t largest, int e)
{
	int finest = largest ? saina_quant_finest(largest, INT32_MAX - 1) : SAINA_EXPONENT_MAX;

	return e < finest ? e : finest;
}

/* The variant and the plain one give the same, and write not one byte more. */
static void agree(const struct saina_quant *b, const float *g, const float *res,
		  const int32_t *sum, size_t n, int e, unsigned int div, bool at_end, unsigned int off)
{
	const struct saina_quant *a = &saina_quant_scalar;
	static float plain[N];
	float *g2 = edge_place(&edge[0], 4 * n, at_end, off & ~3u);
	float *res2 = edge_place(&edge[1], 4 * n, at_end, (off + 4) & ~3u);
	char *wire = edge_place(&edge[2], 4 * n, at_end, off), after[64], *out;
	uint32_t largest = saina_quant_largest(a, g, res, n);

	memcpy(g2, g, 4 * n);
	if (res)
		memcpy(res2, res, 4 * n);
	memset(after, 0x5a, sizeof(after));
	if (!at_end)
		memcpy(wire + 4 * n, after, sizeof(after));
	assert_int_equal(saina_quant_largest(b, g2, res ? res2 : NULL, n), largest);
	/* whether all fits or not */
	assert_int_equal(a->encode(plain, g, res, n, e), largest);
	assert_int_equal(b->encode(wire, g2, res ? res2 : NULL, n, e), largest);
	/* not sent */
	for (size_t i = 0; i < n; i++)
		if (!isfinite(res ? g[i] + res[i] : g[i]))
			goto decode;
	a->encode(plain, g, res, n, fits(largest, e));
	b->encode(wire, g2, res ? res2 : NULL, n, fits(largest, e));
	assert_memory_equal(plain, wire, 4 * n);
	if (!at_end)
		assert_memory_equal(wire + 4 * n, after, sizeof(after));

decode:
	memcpy(wire, sum, 4 * n);
	out = edge_place(&edge[3], 4 * n, at_end, (off + 8) & ~3u);
	if (!at_end)
		memcpy(out + 4 * n, after, sizeof(after));
	a->decode(plain, sum, n, e, div);
	b->decode((float *)out, wire, n, e, div);
	assert_memory_equal(plain, out, 4 * n);
	a->add(plain, sum, g, n);
	b->add(out, wire, g2, n);
	assert_memory_equal(plain, out, 4 * n);
	if (!at_end)
		assert_memory_equal(out + 4 * n, after, sizeof(after));
}

static void test_variants_agree(void **state)
{
	static float g[N], res[N];
	static int32_t sum[N];
	const struct saina_quant *v;

	print_message("seed 11, best is %s\n", saina_quant_best()->name);
	rng = 11;
	for (int t = 0; t < 4000; t++) {
		size_t n = draw() % N;
		int e = SAINA_EXPONENT_MIN + (int)(draw() % 254);
		unsigned int div = t % 3 ? 1u << draw() % 7 : 1 + draw() % 64, off = draw() % 8;
		bool usual = t & 1, with = t & 2;

		for (size_t i = 0; i < n; i++) {
			g[i] = any(usual);
			res[i] = any(usual);
			sum[i] = draw();
		}
		if (t % 100 == 0)
			sum[n / 2] = INT32_MIN;
		EACH_VARIANT(v)
			agree(v, g, with ? res : NULL, sum, n, e, div, t & 4, off);
	}
}

/* Values at the edges of what there is, each in each lane, in vectors of each length. */
static void test_special_values(void **state)
{
	static const float special[] = { NAN, -NAN, INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, 0.0f,
		-0.0f, FLT_MIN, 1e-45f, -1e-45f, 0.5f, 1.5f, -2.5f, 1 << 27, -(1 << 27),
		(1 << 27) + 16, -(1 << 27) - 16, (1 << 27) - 8 };
	static const int32_t sums[] = { INT32_MIN, INT32_MAX, -1, 1, 0, INT32_MIN + 1, (1 << 24) + 1 };
	static const int exponents[] = { W(-104), W(-97), W(0), W(120), W(121), W(126), W(149) };
	float g[48], res[48];
	int32_t sum[48];
	const struct saina_quant *v;

	for (size_t n = 0; n <= 48; n++) {
		for (size_t s = 0; s < 19 * (n + 1); s++) {
			for (size_t i = 0; i < n; i++) {
				g[i] = i == s / 19 ? special[s % 19] : (float)i;
				res[i] = i == s / 19 ? -special[(s + n) % 19] : 1.0f;
				sum[i] = i == s / 19 ? sums[s % 7] : (int32_t)i - 24;
			}
			EACH_VARIANT(v)
				agree(v, g, s & 1 ? res : NULL, sum, n, exponents[(s + n) % 7],
				      1 + s % 8, s & 2, n % 8);
		}
	}
}

/* By the kernel's word, so that no variant goes untested because it is not found. */
static void test_variants_found(void **state)
{
	static const struct { const char *flag, *name; } have[] = {
		{ " avx2 ", "avx2" }, { " avx512f ", "avx512" },
	};
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[8192] = "";
	const struct saina_quant *v;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) && strncmp(line, "flags", 5))
		;
	fclose(f);
	line[strcspn(line, "\n")] = ' ';
	for (size_t i = 0; i < sizeof(have) / sizeof(*have); i++) {
		bool found = false;

		EACH_VARIANT(v)
			found = found || !strcmp(v->name, have[i].name);
		assert_int_equal(found, !!strstr(line, have[i].flag));
	}
	assert_int_equal(saina_quant_best()->usable(), SAINA_QUANT_FAST);
}

static void encode_one(float g, int e, int32_t want)
{
	int32_t q = 0x55555555;

	saina_quant_scalar.encode(&q, &g, NULL, 1, W(e));
	assert_int_equal(q, want);
}

static void test_rounding(void **state)
{
	encode_one(0.5f, 0, 0);		/* ties to even */
	encode_one(1.5f, 0, 2);
	encode_one(2.5f, 0, 2);
	encode_one(-2.5f, 0, -2);
	encode_one(-3.5f, 0, -4);
	encode_one(3.0f, 10, 3072);
	encode_one(-0.0f, 10, 0);
	encode_one((float)(1 << 27), 0, 1 << 27);
	encode_one(FLT_MAX, -97, INT32_MAX - 127);
	encode_one(0x1p-111f, 110, 0);
	encode_one(0x1.8p-111f, 110, 1);
	encode_one(0x1p-149f, -104, 0);
	encode_one(0x1p-149f, 149, 1);
	encode_one(-0x3p-149f, 148, -2);
	encode_one(0x1.fffffep-126f, 149, (1 << 24) - 1);
}

/* The largest of each vector length, in each lane, whatever is beside it. */
static void test_largest(void **state)
{
	static const float special[] = { NAN, -NAN, INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, 1e30f, -2.0f };
	const struct saina_quant *v = &saina_quant_scalar;
	float g[40], res[40];

	for (unsigned int i = 0; (v = saina_quant_variant(i)); i++) {
		if (v->usable() == SAINA_QUANT_ABSENT)
			continue;
		assert_int_equal(saina_quant_largest(v, g, NULL, 0), 0);
		for (size_t n = 1; n <= 40; n++) {
			for (size_t at = 0; at < n; at++) {
				for (size_t s = 0; s < 8; s++) {
					for (size_t j = 0; j < n; j++) {
						g[j] = j & 1 ? -1.0f : 1e-45f;
						res[j] = -0.0f;
					}
					g[at] = special[s];
					assert_int_equal(saina_quant_largest(v, g, NULL, n), bits(special[s]));
					assert_int_equal(saina_quant_largest(v, g, res, n), bits(special[s] + res[at]));
				}
				/* two that are finite, and their sum is not */
				for (size_t j = 0; j < n; j++)
					g[j] = res[j] = 0;
				assert_int_equal(saina_quant_largest(v, g, res, n), 0);
				g[at] = res[at] = -FLT_MAX;
				assert_int_equal(saina_quant_largest(v, g, res, n), SAINA_QUANT_INFINITY);
				g[at] = -1e-45f;
				res[at] = 0;
				assert_int_equal(saina_quant_largest(v, g, res, n), 1);
			}
		}
	}
}

/* At whatever exponents: sums of all workers, shifted as often as may be, do not wrap. */
static void test_sums_cannot_wrap(void **state)
{
	for (unsigned int w = 1; w <= 64; w++) {
		int64_t l = saina_quant_limit(w), sum = l;

		for (unsigned int i = 1; i < w; i++) {
			sum = (sum + 1) / 2 + l;	/* a coarser one by one bit: half upwards */
			assert_true(sum <= INT32_MAX);
		}
		assert_true(l * w <= INT32_MAX && (l + 2) * w > INT32_MAX);
	}
	assert_int_equal(saina_quant_limit(1), INT32_MAX - 1);
	assert_int_equal(saina_quant_limit(64), (1 << 25) - 2);
}

/* The finest that fits, and no finer one does. */
static void assert_finest(uint32_t largest, uint32_t limit)
{
	int e = saina_quant_finest(largest, limit);
	int32_t q;
	float f;

	memcpy(&f, &largest, sizeof(f));
	assert_true(e >= SAINA_EXPONENT_MIN && e <= SAINA_EXPONENT_MAX);
	saina_quant_scalar.encode(&q, &f, NULL, 1, e);
	assert_true(q >= 0 && q <= (int64_t)limit);
	assert_true(e == SAINA_EXPONENT_MAX || ldexp(f, e + SAINA_EXPONENT_BIAS + 1) > limit);
}

static void test_exponent(void **state)
{
	rng = 13;
	for (unsigned int w = 1; w <= 64; w++) {
		uint32_t limit = saina_quant_limit(w);

		for (int x = -148; x <= 127; x++) {
			uint32_t p = bits(ldexpf(1.0f, x));

			assert_finest(p, limit);
			assert_finest(p - 1, limit);
			assert_finest(p + 1, limit);
			assert_finest(p | (draw() & 0x7fffff), limit);
		}
		assert_finest(1, limit);
		assert_finest(bits(FLT_MAX), limit);
		/* Powers of two and what is next to the limit itself. */
		assert_finest(bits((float)limit), limit);
		assert_finest(bits(nextafterf((float)limit, 0)), limit);
	}
}

/* That of the last result, if it is not finer and at most 4 bits coarser. */
static void test_last_exponent(void **state)
{
	uint32_t limit = saina_quant_limit(8), one = bits(1.0f);
	int e = saina_quant_finest(one, limit), none = SAINA_EXPONENT_NAN, max = SAINA_EXPONENT_MAX;

	assert_int_equal(e, W(27));
	assert_int_equal(saina_quant_exponent(one, limit, none, SAINA_QUANT_SLACK), e);
	assert_int_equal(saina_quant_exponent(one, limit, e + 1, SAINA_QUANT_SLACK), e);
	for (int last = e; last >= e - 4; last--)
		assert_int_equal(saina_quant_exponent(one, limit, last, SAINA_QUANT_SLACK), last);
	assert_int_equal(saina_quant_exponent(one, limit, e - 5, SAINA_QUANT_SLACK), e);
	assert_int_equal(saina_quant_exponent(one, limit, SAINA_EXPONENT_MIN, SAINA_QUANT_SLACK), e);
	/* Zeros make nothing coarser. */
	assert_int_equal(saina_quant_exponent(0, limit, none, SAINA_QUANT_SLACK), max);
	assert_int_equal(saina_quant_exponent(0, limit, -100, SAINA_QUANT_SLACK), max);
	assert_int_equal(saina_quant_exponent(1, limit, W(20), SAINA_QUANT_SLACK), max);
	/* Small ones have no bits to spare. */
	assert_int_equal(saina_quant_exponent(1, limit, max - 1, SAINA_QUANT_SLACK), max);
	assert_int_equal(saina_quant_exponent(bits(0x1p-120f), limit, max - 2, SAINA_QUANT_SLACK), max - 2);
	assert_int_equal(saina_quant_exponent(bits(0x1p-120f), limit, max - 3, SAINA_QUANT_SLACK), max - 3);
	assert_int_equal(saina_quant_exponent(bits(0x1p-124f), limit, max - 3, SAINA_QUANT_SLACK), max);
	/* At both ends of what a byte holds. */
	assert_int_equal(saina_quant_exponent(bits(FLT_MAX), saina_quant_limit(64), SAINA_EXPONENT_MIN, SAINA_QUANT_SLACK),
			 SAINA_EXPONENT_MIN);
	assert_int_equal(saina_quant_exponent(bits(FLT_MAX), saina_quant_limit(64), none, SAINA_QUANT_SLACK),
			 SAINA_EXPONENT_MIN + 1);
}

/* With a parameter server: what is sent and what is kept make up the gradient, exactly. */
static void test_remainder(void **state)
{
	static float g[N], res[N], rem[N], fits[N];
	static int32_t q[N];
	const uint32_t lim = 1 << 20;

	rng = 12;
	for (int t = 0; t < 500; t++) {
		int e = t % 10 ? (int)(draw() % 40) - 20 : 110 + (int)(draw() % 40);
		float unit = ldexpf(1.0f, -e);
		size_t cut, left = 0;

		for (size_t i = 0; i < N; i++) {
			/* Up to 2^20 times the limit, multiples of the unit. */
			g[i] = unit * (float)((int64_t)draw() >> (24 + draw() % 20));
			res[i] = 0;
		}
		cut = saina_quant_cut(fits, g, res, N, W(e), lim);
		saina_quant_scalar.encode(q, fits, NULL, N, W(e));
		assert_int_equal(saina_quant_remainder(rem, g, res, N, W(e), lim), cut);
		for (size_t i = 0; i < N; i++) {
			assert_true((uint32_t)abs(q[i]) <= lim);
			assert_true((double)q[i] * unit + (double)rem[i] == (double)g[i]);
			left += rem[i] != 0;
		}
		assert_int_equal(left, cut);
	}
	/* What is rounded off; a sum that a float cannot hold. */
	g[0] = 0.75f, res[0] = 1.0f, g[1] = FLT_MAX, res[1] = FLT_MAX, g[2] = res[2] = -0x1p127f;
	assert_int_equal(saina_quant_cut(fits, g, res, 3, W(0), lim), 2);
	saina_quant_remainder(res, g, res, 3, W(0), lim);
	assert_true(fits[0] == 1.75f && fits[1] == lim && fits[2] == -(float)lim);
	assert_true(res[0] == -0.25f && res[1] == FLT_MAX && res[2] == -FLT_MAX);
}

static void test_mean_is_defined(void **state)
{
	int32_t sum[4] = { 7, -7, INT32_MAX, INT32_MIN };
	float out[4];

	saina_quant_scalar.decode(out, sum, 4, W(1), 3);
	for (int i = 0; i < 4; i++)
		assert_true(out[i] == (float)(sum[i] * 0.5 / 3));
	saina_quant_scalar.decode(out, sum, 2, W(-100), 1);
	assert_true(out[0] == ldexpf(7, 100));
	/* A sum beyond the largest float is infinite, as a float sum would be. */
	saina_quant_scalar.decode(out, sum, 4, SAINA_EXPONENT_MIN, 1);
	assert_true(out[2] == INFINITY && out[3] == -INFINITY);
}

/* A processor that takes denormals for 0 has the same means of normal floats. */
static void test_flushing(void **state)
{
#if defined(__x86_64__)
	static float g[N], out[N], flushed[N];
	static int32_t q[N], q2[N];
	const unsigned int usual = _mm_getcsr();
	const struct saina_quant *v;

	rng = 14;
	for (int t = 0; t < 400; t++) {
		unsigned int div = 1 + draw() % 64;
		uint32_t largest;
		int e;

		for (size_t i = 0; i < N; i++)
			g[i] = ldexpf(div * (1 + (float)(draw() % 64) / 64), -126 + (int)(draw() % 4));
		largest = saina_quant_largest(&saina_quant_scalar, g, NULL, N);
		e = saina_quant_finest(largest, saina_quant_limit(div));
		for (unsigned int i = 0; (v = saina_quant_variant(i)); i++) {
			if (v->usable() == SAINA_QUANT_ABSENT)
				continue;
			v->encode(q, g, NULL, N, e);
			v->decode(out, q, N, e, div);
			_mm_setcsr(usual | 0x8040);	/* DAZ, FTZ */
			v->encode(q2, g, NULL, N, e);
			v->decode(flushed, q2, N, e, div);
			_mm_setcsr(usual);
			assert_memory_equal(q, q2, sizeof(q));
			assert_memory_equal(out, flushed, sizeof(out));
			for (size_t j = 0; j < N; j++)
				assert_true(out[j] == (float)((double)g[j] / div));
		}
	}
#endif
}

/* Both numbers of a word, taken apart here. */
static int pair_number(const uint32_t *word, size_t i)
{
	int64_t w = (int32_t)word[i / 2], first = w & 0xffff;

	first -= first >= 32768 ? 65536 : 0;
	return i % 2 ? (int16_t)((w - first) / 65536) : (int)first;
}

/* One message of @n elements of 2^@scale for @workers, by @variant; with a residual or without. */
static void pairs_of(const struct saina_quant *variant, size_t n, unsigned int workers, bool with, int scale)
{
	uint32_t limit = saina_pairs_limit(workers), max = 0, word[N / 2 + 1];
	float g[N], res[N], whole[N], out[N];
	int e;

	for (size_t i = 0; i < n; i++) {
		g[i] = ldexpf(any(true), scale);
		res[i] = with ? ldexpf(any(true), scale) : 0;
		whole[i] = g[i] + res[i];
		max = bits(whole[i]) > max ? bits(whole[i]) : max;
	}
	e = saina_quant_exponent(max, limit, SAINA_EXPONENT_NAN, 0);
	memset(word, 0xa5, sizeof(word));
	saina_pairs_encode(variant, word, g, with ? res : NULL, n, e);
	assert_int_equal(word[(n + 1) / 2], 0xa5a5a5a5);
	if (n % 2)
		assert_int_equal(pair_number(word, n), 0);
	saina_pairs_decode(variant, out, word, n, e, 3);
	saina_pairs_remainder(res, g, n, e);
	for (size_t i = 0; i < n; i++) {
		int q = pair_number(word, i);

		assert_true(q == (int)nearbyint(ldexp(whole[i], e + SAINA_EXPONENT_BIAS)) && abs(q) <= (int)limit);
		assert_true(out[i] == (float)(ldexp(q, -e - SAINA_EXPONENT_BIAS) / 3));
		/* without any error */
		assert_true(ldexp(q, -e - SAINA_EXPONENT_BIAS) + res[i] == whole[i]);
	}
}

static void test_pairs(void **state)
{
	static const size_t sizes[] = { 1, 2, 3, 128, 255, 256, 257, 511, 704, N };
	static const unsigned int workers[] = { 1, 2, 4, 7, 16, 64 };

	for (unsigned int v = 0; saina_quant_variant(v); v++)
		for (unsigned int i = 0; i < 10 * 6 * 2 * 2; i++)
			if (saina_quant_variant(v)->usable() != SAINA_QUANT_ABSENT)
				pairs_of(saina_quant_variant(v), sizes[i % 10], workers[i / 10 % 6],
					 i / 60 % 2, i < 120 ? 0 : -100 - (int)(draw() % 45));
	assert_int_equal(saina_pairs_limit(64), 510);
	/* whole numbers of a byte stay exact, one bit too coarse as well */
	assert_int_equal(saina_quant_exponent(bits(255), 510, W(0), 1), W(0));
	assert_int_equal(saina_quant_exponent(bits(255), 510, W(-1), 1), W(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("quantising: every variant that the processor has is found", test_variants_found),
		statement("quantising: all variants give the same integers", test_variants_agree),
		statement("quantising: all variants agree on NaN, infinities and limits in every lane", test_special_values),
		statement("quantising: the largest magnitude, NaN or infinity is found in every lane", test_largest),
		statement("quantising: values are rounded to nearest, to even", test_rounding),
		statement("quantising: sums of all workers cannot wrap, shifted or not", test_sums_cannot_wrap),
		statement("quantising: steps: what is sent and what is kept make up the update", test_remainder),
		statement("quantising: the mean is the sum times the scale by the count", test_mean_is_defined),
		statement("quantising: normal floats do not depend on whether the processor flushes denormals", test_flushing),
		statement("quantising: int16: pairs have both numbers, and what is rounded off is exact", test_pairs),
		statement("quantising: the exponent is the finest at which the largest value fits", test_exponent),
		statement("quantising: the last result's exponent is taken up to 4 bits coarser, and never by zeros", test_last_exponent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
