// SPDX-License-Identifier: GPL-2.0-or-later
/* saina_layout(): residual and scale go where the elements go.  saina_poll(), SAINA_SUM_ONCE. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include "saina.h"
#include "lib_member.h"
#include "../lib/statement.h"

#define PAYLOAD 64

/* Of two workers with k = 1, number 1 is late with what it adds to @sum. */
static void be_late(struct saina **s, int round, int32_t *sum)
{
	int32_t buf[N];

	for (int i = 0; i < 2; i++) {
		member_fill(buf, i, round);
		for (int j = 0; i && j < N; j++)
			sum[j] += buf[j];
		assert_int_equal(saina_allreduce(s[i], buf, N, SAINA_INT32, SAINA_SUM, NULL), 0);
	}
}

/* A rotation by 100 elements: every segment is cut. */
static void test_residual(void **state)
{
	struct agg *a;
	const struct saina_move turn[] = {{0, 100, N - 100}, {N - 100, 0, 100}};
	struct saina_call call = {.size = sizeof(call)};
	struct saina *s[2];
	int32_t buf[N], sum[N] = {0}, want[N], res[N];

	a = member_job(s, 2, 1);
	be_late(s, 0, sum);
	for (int i = 0; i < 2; i++)
		assert_int_equal(saina_layout(s[i], turn, 2), 0);
	for (int j = 0; j < N; j++)
		want[(j + 100) % N] = sum[j];
	assert_int_equal(saina_residual(s[1], 0, N, SAINA_INT32, res), 0);
	assert_memory_equal(res, want, sizeof(want));
	/* k = 1: it is first, with what it owes. */
	memset(buf, 0, sizeof(buf));
	assert_int_equal(saina_allreduce(s[1], buf, N, SAINA_INT32, SAINA_SUM, &call), 0);
	assert_int_equal(call.mask_all, 2);
	assert_memory_equal(buf, want, sizeof(want));
	member_close_all(a, s, 2);
}

static void test_refusals(void **state)
{
	struct agg *a;
	const struct saina_move all = {0, 0, N}, half = {0, 0, 500}, twice[] = {{0, 0, N}, {0, 500, 500}},
				out = {0, 100, N}, huge = {UINT64_MAX, 0, 2};
	struct saina_req *r;
	struct saina *s[2];
	int32_t buf[N], sum[N] = {0}, res[N];

	a = member_job(s, 2, 1);
	be_late(s, 0, sum);
	assert_int_equal(saina_layout(s[1], NULL, 0), -EINVAL);
	assert_non_null(strstr(saina_strerror(s[1], 0), "residual would be lost"));
	assert_int_equal(saina_layout(s[1], &half, 1), -EINVAL);
	assert_int_equal(saina_layout(s[1], twice, 2), -EINVAL);
	assert_int_equal(saina_layout(s[1], NULL, 1), -EINVAL);
	assert_int_equal(saina_layout(s[1], &out, 1), -EINVAL);
	assert_non_null(strstr(saina_strerror(s[1], 0), "the gradient ends at element 1024"));
	assert_int_equal(saina_layout(s[1], &huge, 1), -EINVAL);
	assert_int_equal(saina_residual(s[1], 0, N, SAINA_INT32, res), 0);
	assert_memory_equal(res, sum, sizeof(sum));
	assert_int_equal(saina_layout(s[1], &all, 1), 0);
	/* Who owes nothing may begin anew. */
	assert_int_equal(saina_layout(s[0], NULL, 0), 0);

	member_fill(buf, 1, 1);
	assert_int_equal(saina_allreduce_start(s[1], buf, 64, SAINA_INT32, SAINA_SUM, &r), 0);
	assert_int_equal(saina_layout(s[1], &all, 1), -EBUSY);
	assert_int_equal(saina_wait(s[1], r, NULL), 0);
	assert_int_equal(saina_layout(s[1], &all, 1), -EBUSY);
	assert_int_equal(saina_round_done(s[1]), 0);
	/* Of the last round is one segment only: the others move all the same. */
	assert_int_equal(saina_layout(s[1], &all, 1), 0);
	member_close_all(a, s, 2);
}

static int exponent(struct saina *s, uint32_t segment)
{
	struct saina_segment g = {.size = sizeof(g)};

	assert_int_equal(saina_segment(s, segment, &g), 0);
	return g.exponent;
}

static void reduce(struct saina *s, const float *value)
{
	float buf[N];

	for (int i = 0; i < N; i++)
		buf[i] = value[i / PAYLOAD];
	assert_int_equal(saina_allreduce(s, buf, N, SAINA_FLOAT32, SAINA_MEAN, NULL), 0);
}

/* Segments of different magnitudes change places; two meet in one. */
static void test_scale(void **state)
{
	struct agg *a;
	const struct saina_move moves[] = {
		{0, PAYLOAD, PAYLOAD}, {PAYLOAD, 0, PAYLOAD}, /* large and small swap */
		{2 * PAYLOAD, 2 * PAYLOAD, 32}, {3 * PAYLOAD, 2 * PAYLOAD + 32, 32},
	};
	float value[16] = {1000, 1e-6f, 1, 8}, later[16] = {0.6e-7f, 100, 0.6f, 1.9f};
	struct saina *s;
	int e[4];

	for (int i = 4; i < 16; i++)
		value[i] = later[i] = 1;
	a = member_job(&s, 1, 1);
	reduce(s, value);
	for (int i = 0; i < 4; i++)
		e[i] = exponent(s, i);
	assert_true(e[1] > e[2] && e[2] > e[3] && e[3] > e[0]);
	assert_int_equal(saina_layout(s, moves, 4), 0);
	/* All of them a little smaller, so that the scales that were moved will do. */
	reduce(s, later);
	assert_int_equal(exponent(s, 0), e[1]);
	assert_int_equal(exponent(s, 1), e[0]);
	assert_int_equal(exponent(s, 2), e[3]);
	/* It has none: the finest there is. */
	assert_int_equal(exponent(s, 3), e[2]);
	member_close_all(a, &s, 1);
}

static void test_poll(void **state)
{
	struct agg *a;
	int32_t buf[2][N];
	struct saina_req *r[2];
	struct saina *s[2];

	a = member_job(s, 2, 2);
	assert_int_equal(member_start(s[0], buf[0], 0, 0, &r[0]), 0);
	assert_int_equal(saina_poll(s[0], r[0], 0), 0);
	assert_int_equal(saina_poll(s[0], r[0], 30), 0);
	assert_int_equal(saina_poll(s[1], r[0], 0), -EINVAL);
	assert_int_equal(saina_poll(s[0], NULL, 0), -EINVAL);
	assert_int_equal(member_start(s[1], buf[1], 1, 0, &r[1]), 0);
	assert_int_equal(saina_poll(s[0], r[0], -1), 1);
	assert_int_equal(saina_poll(s[1], r[1], 30000), 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(saina_wait(s[i], r[i], NULL), 0);
		assert_int_equal(saina_round_done(s[i]), 0);
	}
	assert_memory_equal(buf[0], buf[1], sizeof(buf[0]));
	member_close_all(a, s, 2);
}

/* Arguments are checked before anything is sent: the round is not open after that, and the request not lost. */
static void test_arguments(void **state)
{
	struct agg *a;
	struct saina_call call = {0};
	struct saina_req *r;
	struct saina *s[2];
	int32_t buf[N];

	a = member_job(s, 2, 1);
	member_fill(buf, 0, 0);
	assert_int_equal(saina_allreduce(s[0], buf, N, SAINA_INT32, SAINA_SUM, &call), -EINVAL);
	assert_non_null(strstr(saina_strerror(s[0], 0), "call.size"));
	assert_int_equal(saina_round_done(s[0]), -EINVAL);
	assert_int_equal(saina_wait(s[0], NULL, NULL), -EINVAL);
	assert_non_null(strstr(saina_strerror(s[0], 0), "the request is NULL"));
	assert_int_equal(member_start(s[0], buf, 0, 0, &r), 0);
	assert_int_equal(saina_wait(s[1], r, NULL), -EINVAL);
	assert_non_null(strstr(saina_strerror(s[1], 0), "another handle"));
	assert_int_equal(saina_wait(s[0], r, &call), -EINVAL);
	call.size = sizeof(call);
	assert_int_equal(saina_wait(s[0], r, &call), 0);
	assert_int_equal(saina_round_done(s[0]), 0);
	member_close_all(a, s, 2);
}

/* Number 1 is late with float32, then late and in time with a sum of int32 that leaves its residual alone. */
static void test_once(void **state)
{
	struct agg *a;
	struct saina_call call = {.size = sizeof(call)};
	struct saina *s[2];
	float f[N], res[N];
	int32_t buf[N], want[N];

	a = member_job(s, 2, 1);
	for (int i = 0; i < 2; i++) {
		for (int j = 0; j < N; j++)
			f[j] = j + 1;
		assert_int_equal(saina_allreduce(s[i], f, N, SAINA_FLOAT32, SAINA_SUM, NULL), 0);
	}
	member_fill(buf, 1, 1);
	assert_int_equal(saina_allreduce(s[1], buf, N, SAINA_INT32, SAINA_SUM, NULL), -EINVAL);
	assert_int_equal(saina_allreduce(s[1], f, N, SAINA_FLOAT32, SAINA_SUM_ONCE, NULL), -EINVAL);
	assert_non_null(strstr(saina_strerror(s[1], 0), "a sum of int32"));
	for (int late = 1; late >= 0; late--) {
		member_fill(want, !late, 1);
		for (int i = 0; i < 2; i++) {
			member_fill(buf, late ? i : !i, 1);
			assert_int_equal(saina_allreduce(s[late ? i : !i], buf, N, SAINA_INT32, SAINA_SUM_ONCE, &call), 0);
			assert_int_equal(call.mask_all, 1 << !late);
			assert_memory_equal(buf, want, sizeof(buf));
		}
		assert_int_equal(saina_residual(s[1], 0, N, SAINA_FLOAT32, res), 0);
		for (int j = 0; j < N; j++)
			assert_true(res[j] == j + 1);
		assert_int_equal(saina_residual(s[0], 0, N, SAINA_INT32, buf), 0);
		for (int j = 0; j < N; j++)
			assert_int_equal(buf[j], 0);
	}
	for (int j = 0; j < N; j++)
		f[j] = 0;
	assert_int_equal(saina_allreduce(s[1], f, N, SAINA_FLOAT32, SAINA_SUM, NULL), 0);
	assert_true(f[0] == 1 && f[N - 1] == N);
	member_close_all(a, s, 2);
}

/* Sums @value of worker @i, of which @base is in results already; k = 1. */
static float add_to(struct saina *s, float base, float value, int op)
{
	struct saina_req *r;
	float f[N], b[N];

	for (int j = 0; j < N; j++) {
		b[j] = base;
		f[j] = base + value;
	}
	assert_int_equal(saina_allreduce_start_from(s, f, b, N, SAINA_FLOAT32, op, &r), 0);
	assert_int_equal(saina_wait(s, r, NULL), 0);
	assert_int_equal(saina_round_done(s), 0);
	return f[N - 1];
}

static float kept(struct saina *s)
{
	float res[N];

	assert_int_equal(saina_residual(s, 0, N, SAINA_FLOAT32, res), 0);
	assert_true(res[0] == res[N - 1]);
	return res[0];
}

/* Number 1 is late with gradients that were added to results: twice in a row, then with a NaN. */
static void test_base(void **state)
{
	struct agg *a;
	struct saina *s[2];
	struct saina_req *r;
	int32_t buf[N] = {0};

	a = member_job(s, 2, 1);
	assert_true(add_to(s[0], 4, 1, SAINA_MEAN) == 5 && add_to(s[1], 4, 2, SAINA_MEAN) == 5);
	assert_true(kept(s[0]) == 0 && kept(s[1]) == 2);
	assert_true(add_to(s[0], 5, 1, SAINA_MEAN) == 6 && add_to(s[1], 5, 8, SAINA_MEAN) == 6);
	assert_true(kept(s[1]) == 10);
	add_to(s[0], 6, 1, SAINA_MEAN);
	add_to(s[1], 6, NAN, SAINA_MEAN);
	assert_true(kept(s[1]) == 10);
	/* In time, it contributes all: the base, too. */
	assert_true(add_to(s[1], 7, 1, SAINA_MEAN) == 18 && kept(s[1]) == 0);
	assert_int_equal(saina_allreduce_start_from(s[1], buf, (float *)buf, N, SAINA_INT32, SAINA_SUM, &r), -EINVAL);
	assert_non_null(strstr(saina_strerror(s[1], 0), "only float32 has a base"));
	member_close_all(a, s, 2);
}

/* Replaces part of what number 1 keeps, then what is not to be replaced. */
static void test_replace(void **state)
{
	struct agg *a;
	struct saina *s[2];
	struct saina_req *r;
	float f[N], res[N];
	int32_t buf[N];

	a = member_job(s, 2, 1);
	add_to(s[0], 0, 1, SAINA_SUM);
	add_to(s[1], 0, 2, SAINA_SUM);
	for (int j = 0; j < N; j++)
		f[j] = j;
	assert_int_equal(saina_residual_set(s[1], 30, 500, SAINA_FLOAT32, f), 0);
	assert_int_equal(saina_residual(s[1], 0, N, SAINA_FLOAT32, res), 0);
	for (int j = 0; j < N; j++)
		assert_true(res[j] == (j < 30 || j >= 530 ? 2 : j - 30));
	/* Worker 0 keeps nothing: only what is set. */
	assert_int_equal(saina_residual_set(s[0], 30, 500, SAINA_FLOAT32, f), 0);
	assert_int_equal(saina_residual(s[0], 0, N, SAINA_FLOAT32, res), 0);
	for (int j = 0; j < N; j++)
		assert_true(res[j] == (j < 30 || j >= 530 ? 0 : j - 30));
	f[7] = NAN;
	assert_int_equal(saina_residual_set(s[1], 0, N, SAINA_FLOAT32, f), -EINVAL);
	assert_non_null(strstr(saina_strerror(s[1], 0), "infinite or not a number"));
	assert_int_equal(saina_residual_set(s[1], 64, 64, SAINA_INT32, f), -EINVAL);
	assert_non_null(strstr(saina_strerror(s[1], 0), "segment 1 keeps elements of the other type"));
	assert_int_equal(saina_residual_set(s[1], UINT64_MAX, 2, SAINA_FLOAT32, f), -EINVAL);
	assert_int_equal(saina_residual_set(s[1], 1, 1u << 20, SAINA_FLOAT32, f), -EINVAL);
	assert_int_equal(saina_residual_set(s[1], 0, 0, SAINA_FLOAT32, NULL), 0);
	/* Zeros are no residual, of either type. */
	memset(f, 0, sizeof(f));
	assert_int_equal(saina_residual_set(s[1], 0, N, SAINA_FLOAT32, f), 0);
	assert_int_equal(saina_residual_set(s[1], 0, N, SAINA_INT32, f), 0);
	assert_int_equal(member_start(s[1], buf, 1, 1, &r), 0);
	assert_int_equal(saina_residual_set(s[1], 0, N, SAINA_INT32, f), -EBUSY);
	assert_int_equal(saina_wait(s[1], r, NULL), 0);
	assert_int_equal(saina_round_done(s[1]), 0);
	member_close_all(a, s, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("layout: residual moves with its elements and is counted at the new place", test_residual),
		statement("layout: a sum that is apart from residuals adds, changes and keeps none", test_once),
		statement("residual: what earlier results have already is not kept", test_base),
		statement("residual: replaced between rounds, by finite elements of the same type", test_replace),
		statement("arguments are checked before anything is sent", test_arguments),
		statement("layout: moves that would lose residual, or at the wrong time, are refused", test_refusals),
		statement("layout: scales move with their segments, the coarsest wins", test_scale),
		statement("poll: an all-reduce is finished when its result is there", test_poll),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
