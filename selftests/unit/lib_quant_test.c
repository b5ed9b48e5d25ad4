// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Block scaling, its exponents, and the variants of its loops.
 *
 *   lib_quant_test		TAP
 *   lib_quant_test figures	how long the loops take, variants in turns
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
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

/* The variant and the plain one give the same, and write not one byte more. */
static void agree(const struct saina_quant *b, const float *g, const float *res,
		  const int32_t *sum, size_t n, int e, unsigned int div, float lim, bool at_end,
		  unsigned int off)
{
	const struct saina_quant *a = &saina_quant_scalar;
	static float plain[N];
	float *g2 = edge_place(&edge[0], 4 * n, at_end, off & ~3u);
	float *res2 = edge_place(&edge[1], 4 * n, at_end, (off + 4) & ~3u);
	char *wire = edge_place(&edge[2], 4 * n, at_end, off), after[64], *out;

	memcpy(g2, g, 4 * n);
	if (res)
		memcpy(res2, res, 4 * n);
	memset(after, 0x5a, sizeof(after));
	if (!at_end)
		memcpy(wire + 4 * n, after, sizeof(after));
	assert_int_equal(a->encode(plain, g, res, n, e, lim),
			 b->encode(wire, g2, res ? res2 : NULL, n, e, lim));
	assert_memory_equal(plain, wire, 4 * n);
	if (!at_end)
		assert_memory_equal(wire + 4 * n, after, sizeof(after));

	memcpy(wire, sum, 4 * n);
	out = edge_place(&edge[3], 4 * n, at_end, (off + 8) & ~3u);
	if (!at_end)
		memcpy(out + 4 * n, after, sizeof(after));
	assert_int_equal(a->decode(plain, sum, n, e, div), b->decode((float *)out, wire, n, e, div));
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
		int e = (int)(draw() % 254) - 126;
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
			agree(v, g, with ? res : NULL, sum, n, e, div, limit(1 + t % 64), t & 4, off);
	}
}

/* Values at the edges of what there is, each in each lane, in vectors of each length. */
static void test_strange_values(void **state)
{
	static const float strange[] = { NAN, -NAN, INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, 0.0f,
		-0.0f, FLT_MIN, 1e-45f, -1e-45f, 0.5f, 1.5f, -2.5f, 1 << 27, -(1 << 27),
		(1 << 27) + 16, -(1 << 27) - 16, (1 << 27) - 8 };
	static const int32_t sums[] = { INT32_MIN, INT32_MAX, -1, 1, 0, INT32_MIN + 1, (1 << 24) + 1 };
	static const int exponents[] = { -126, -97, -96, 0, 1, 120, 126 };
	float g[48], res[48];
	int32_t sum[48];
	const struct saina_quant *v;

	for (size_t n = 0; n <= 48; n++) {
		for (size_t s = 0; s < 19 * (n + 1); s++) {
			for (size_t i = 0; i < n; i++) {
				g[i] = i == s / 19 ? strange[s % 19] : (float)i;
				res[i] = i == s / 19 ? -strange[(s + n) % 19] : 1.0f;
				sum[i] = i == s / 19 ? sums[s % 7] : (int32_t)i - 24;
			}
			EACH_VARIANT(v)
				agree(v, g, s & 1 ? res : NULL, sum, n, exponents[(s + n) % 7],
				      1 + s % 8, limit(8), s & 2, n % 8);
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

/* --- lib_quant_test figures ------------------------------------------------------------ */

#define SEGMENT 352		/* elements */
#define SEGMENTS 32
#define TURNS 401

static double ns_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

enum loop { ENCODE, ENCODE_RES, DECODE_SHIFT, DECODE_DIVIDE, ADD, LOOPS };

static const char *const loop_names[] = {
	"encode", "encode with a residual", "decode, 8 contributors", "decode, 7 contributors", "add",
};

/* Processor time of a segment. */
static double turn(const struct saina_quant *v, enum loop loop)
{
	static float g[SEGMENT * SEGMENTS], res[SEGMENT * SEGMENTS], out[SEGMENT * SEGMENTS];
	static int32_t q[SEGMENT * SEGMENTS];
	double from = ns_now();

	if (!g[0]) {
		for (size_t i = 0; i < SEGMENT * SEGMENTS; i++) {
			g[i] = ldexpf((int32_t)draw(), -31);
			res[i] = ldexpf((int32_t)draw(), -36);
		}
		saina_quant_scalar.encode(q, g, NULL, SEGMENT * SEGMENTS, 20, limit(8));
		from = ns_now();
	}
	for (size_t i = 0; i < SEGMENT * SEGMENTS; i += SEGMENT) {
		if (loop == ENCODE || loop == ENCODE_RES)
			v->encode(q + i, g + i, loop == ENCODE ? NULL : res + i, SEGMENT, 20, limit(8));
		else if (loop == ADD)
			v->add(out + i, q + i, g + i, SEGMENT);
		else
			v->decode(out + i, q + i, SEGMENT, 20, loop == DECODE_SHIFT ? 8 : 7);
	}
	return (ns_now() - from) / SEGMENTS;
}

static int lower(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* For people: variants in turns, medians, and the median of the turns' ratios to the
 * variant before.  Says nothing about what 512-bit arithmetic does to the clock of others.
 */
static int figures(void)
{
	static double ns[8][TURNS], ratio[TURNS];
	const struct saina_quant *have[8] = { &saina_quant_scalar }, *v;
	unsigned int n = 1;

	rng = 14;
	EACH_VARIANT(v)
		have[n++] = v;
	for (int loop = 0; loop < LOOPS; loop++) {
		for (int t = -20; t < TURNS; t++)
			for (unsigned int i = 0; i < n; i++)
				ns[i][t < 0 ? 0 : t] = turn(have[i], loop);
		printf("%s, %d elements:", loop_names[loop], SEGMENT);
		for (unsigned int i = 0; i < n; i++) {
			for (int t = 0; i && t < TURNS; t++)
				ratio[t] = ns[i][t] / ns[i - 1][t];
			if (i)
				qsort(ns[i - 1], TURNS, sizeof(double), lower);
			qsort(ratio, TURNS, sizeof(double), lower);
			if (i)
				printf(" %.0f ns, %s %.2f (half of the turns %.2f to %.2f) of that,",
				       ns[i - 1][TURNS / 2], have[i]->name, ratio[TURNS / 2],
				       ratio[TURNS / 4], ratio[3 * TURNS / 4]);
		}
		qsort(ns[n - 1], TURNS, sizeof(double), lower);
		printf(" %.0f ns\n", ns[n - 1][TURNS / 2]);
	}
	printf("chosen: %s\n", saina_quant_best()->name);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		statement("quantising: every variant that the processor has is found", test_variants_found),
		statement("quantising: all variants give the same integers", test_variants_agree),
		statement("quantising: all variants agree on NaN, infinities and limits in every lane", test_strange_values),
		statement("quantising: values are rounded to nearest and clipped", test_rounding_and_clipping),
		statement("quantising: sums of all workers cannot wrap", test_sums_cannot_wrap),
		statement("quantising: what is sent and what is kept make up the gradient", test_remainder),
		statement("quantising: the mean is the sum times the scale by the count", test_mean_is_defined),
		statement("quantising: the exponent follows the largest value", test_exponent),
		statement("quantising: from any exponent gradients of any size converge", test_exponent_converges),
	};

	if (argc > 1 && !strcmp(argv[1], "figures"))
		return figures();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
