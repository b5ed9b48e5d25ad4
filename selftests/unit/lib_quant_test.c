// SPDX-License-Identifier: GPL-2.0-or-later
/* Block scaling, its exponents, and the retransmission timer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gradient/quant.h"
#include "../lib/rng.h"
#include "../lib/statement.h"

#define N 2048

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

static float limit(unsigned int workers)
{
	return (float)(1u << saina_quant_limit_bits(workers));
}

static void test_variants_agree(void **state)
{
	const struct saina_quant *a = &saina_quant_scalar, *b = saina_quant_best();
	static float g[N + 1], res[N + 1], fa[N + 1], fb[N + 1];
	static int32_t qa[N + 1], qb[N + 1];

	print_message("seed 11, best is %s\n", b->name);
	if (a == b)
		skip();
	rng = 11;
	for (int t = 0; t < 4000; t++) {
		size_t n = draw() % N, off = draw() % 2;
		int e = (int)(draw() % 254) - 126;
		unsigned int div = t % 3 ? 1u << draw() % 7 : 1 + draw() % 64;
		bool usual = t & 1, with = t & 2;

		for (size_t i = 0; i <= N; i++) {
			g[i] = any(usual);
			res[i] = any(usual);
		}
		assert_int_equal(a->encode(qa + off, g + off, with ? res + off : NULL, n, e,
					   limit(1 + t % 64)),
				 b->encode(qb + off, g + off, with ? res + off : NULL, n, e,
					   limit(1 + t % 64)));
		assert_memory_equal(qa + off, qb + off, 4 * n);
		for (size_t i = 0; i <= N; i++)
			qa[i] = draw();
		if (t % 100 == 0)
			qa[n / 2] = INT32_MIN;
		assert_int_equal(a->decode(fa + off, qa + off, n, e, div),
				 b->decode(fb + off, qa + off, n, e, div));
		assert_memory_equal(fa + off, fb + off, 4 * n);
		a->add(fa + off, qa + off, g + off, n);
		b->add(fb + off, qa + off, g + off, n);
		assert_memory_equal(fa + off, fb + off, 4 * n);
	}
}

static void encode_one(float g, int e, unsigned int workers, int32_t want, size_t clipped)
{
	int32_t q = 0x55555555;

	assert_int_equal(saina_quant_scalar.encode(&q, &g, NULL, 1, e, limit(workers)), clipped);
	assert_int_equal(q, want);
}

static void test_rounding_and_clipping(void **state)
{
	encode_one(0.5f, 0, 8, 0, 0);		/* ties to even */
	encode_one(1.5f, 0, 8, 2, 0);
	encode_one(2.5f, 0, 8, 2, 0);
	encode_one(-2.5f, 0, 8, -2, 0);
	encode_one(-3.5f, 0, 8, -4, 0);
	encode_one(3.0f, 10, 8, 3072, 0);
	encode_one((float)(1 << 27), 0, 8, 1 << 27, 0);
	encode_one((float)(1 << 27) + 16, 0, 8, 1 << 27, 1);
	encode_one(-1e30f, 0, 8, -(1 << 27), 1);
	encode_one(INFINITY, 0, 8, 1 << 27, 1);
	encode_one(-INFINITY, 0, 8, -(1 << 27), 1);
	encode_one(NAN, 0, 8, 0, 1);
	encode_one(1e-40f, 110, 8, (int32_t)lrintf(ldexpf(1e-40f, 110)), 0);
}

static void test_sums_cannot_wrap(void **state)
{
	for (unsigned int w = 1; w <= 64; w++) {
		int64_t l = 1ll << saina_quant_limit_bits(w);

		assert_true(l * w <= INT32_MAX);
		assert_true(4 * l * w > INT32_MAX);	/* nor is more given away than a bit */
	}
	assert_int_equal(saina_quant_limit_bits(8), 27);
	assert_int_equal(saina_quant_limit_bits(64), 24);
}

/* What is sent and what is kept make up the gradient, exactly. */
static void test_remainder(void **state)
{
	static float g[N], res[N], rem[N];
	static int32_t q[N];

	rng = 12;
	for (int t = 0; t < 500; t++) {
		unsigned int workers = 1 + draw() % 64;
		int e = (int)(draw() % 40) - 20;
		float lim = limit(workers), unit = ldexpf(1.0f, -e);
		size_t clipped, left = 0;

		for (size_t i = 0; i < N; i++) {
			/* Up to 2^20 times the limit, multiples of the unit. */
			g[i] = unit * (float)((int64_t)draw() >> (24 + draw() % 20));
			res[i] = 0;
		}
		clipped = saina_quant_scalar.encode(q, g, res, N, e, lim);
		saina_quant_remainder(rem, g, res, N, e, lim, false);
		for (size_t i = 0; i < N; i++) {
			assert_true((double)q[i] * unit + (double)rem[i] == (double)g[i]);
			left += rem[i] != 0;
		}
		assert_int_equal(left, clipped);
	}
	g[0] = NAN, g[1] = INFINITY, g[2] = 1;
	saina_quant_remainder(rem, g, NULL, 3, 0, limit(8), false);
	assert_true(rem[0] == 0 && rem[1] == 0 && rem[2] == 0);
}

static void test_mean_is_defined(void **state)
{
	int32_t sum[4] = { 7, -7, INT32_MAX, INT32_MIN };
	float out[4];

	assert_int_equal(saina_quant_scalar.decode(out, sum, 4, 1, 3), 0x80000000u);
	for (int i = 0; i < 4; i++)
		assert_true(out[i] == (float)(sum[i] * 0.5 / 3));
	assert_int_equal(saina_quant_scalar.decode(out, sum, 2, -100, 1), 7);
	assert_true(out[0] == ldexpf(7, 100));
	assert_int_equal(saina_quant_max(sum, 4), 0x80000000u);
}

static void test_exponent(void **state)
{
	unsigned int l = 27;	/* of 8 workers */
	uint32_t target = 1u << (l - SAINA_QUANT_HEADROOM - 1);

	/* A mean of just the aimed-at length stays. */
	assert_int_equal(saina_quant_next(20, 8 * target, 8, 8, 20), 20);
	/* Twice as large: one less.  Half: one more. */
	assert_int_equal(saina_quant_next(20, 16 * target, 8, 8, 20), 19);
	assert_int_equal(saina_quant_next(20, 4 * target, 8, 8, 20), 21);
	/* It is the mean that counts, not the sum. */
	assert_int_equal(saina_quant_next(20, target, 1, 8, 20), 20);
	/* Growth is bounded. */
	assert_int_equal(saina_quant_next(20, 1, 8, 8, 20), 20 + SAINA_QUANT_RAISE);
	/* Clipped: far down. */
	assert_int_equal(saina_quant_next(20, 8u << l, 8, 8, 20),
			 20 - SAINA_QUANT_HEADROOM - 1 - SAINA_QUANT_CLIPPED);
	/* Zeros creep up, not for ever. */
	assert_int_equal(saina_quant_next(20, 0, 8, 8, 20), 21);
	assert_int_equal(saina_quant_next(20 + SAINA_QUANT_ZERO, 0, 8, 8, 20),
			 20 + SAINA_QUANT_ZERO);
	assert_int_equal(saina_quant_next(60, 0, 8, 8, 20), 60);
	assert_int_equal(saina_quant_next(SAINA_EXPONENT_MAX, 1, 1, 8, 20), SAINA_EXPONENT_MAX);
	assert_int_equal(saina_quant_next(SAINA_EXPONENT_MIN, 1u << l, 1, 8, 20),
			 SAINA_EXPONENT_MIN);
	/* INT32_MIN's magnitude and every count are taken. */
	rng = 13;
	for (int t = 0; t < 100000; t++) {
		int e = saina_quant_next((int)(draw() % 211) - 100, draw(), 1 + draw() % 64,
					 1 + draw() % 64, (int)(draw() % 211) - 100);

		assert_true(e >= SAINA_EXPONENT_MIN && e <= SAINA_EXPONENT_MAX);
	}
}

/* From whatever exponent, gradients of any size come to be sent well. */
static void test_exponent_converges(void **state)
{
	for (int size = -30; size <= 20; size += 5) {
		for (int e0 = 10; e0 <= 40; e0 += 10) {
			float g = ldexpf(1.3f, size);
			int e = e0, rounds;
			int32_t q;

			for (rounds = 0; rounds < 40; rounds++) {
				size_t clipped = saina_quant_scalar.encode(&q, &g, NULL, 1, e,
									   limit(8));

				if (!clipped && fabs(ldexp(q, -e) - g) <= g * 1e-6)
					break;
				e = saina_quant_next(e, abs(q) * 8u, 8, 8, e0);
			}
			assert_true(rounds < 26);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("quantising: all variants give the same integers", test_variants_agree),
		statement("quantising: values are rounded to nearest and clipped", test_rounding_and_clipping),
		statement("quantising: sums of all workers cannot wrap", test_sums_cannot_wrap),
		statement("quantising: what is sent and what is kept make up the gradient", test_remainder),
		statement("quantising: the mean is the sum times the scale by the count", test_mean_is_defined),
		statement("quantising: the exponent follows the largest value", test_exponent),
		statement("quantising: from any exponent gradients of any size converge", test_exponent_converges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
