// SPDX-License-Identifier: GPL-2.0-or-later
/* What saina-allreduce takes for a right sum (userland/allreduce/verify.h), of int32. */
#include <stdio.h>
#include <string.h>
#include "verify.h"
#include "../lib/statement.h"

#define N 16	/* elements: one segment */

static struct verify v;
static int32_t sum[N];

static int begin(void **state)
{
	memset(&v, 0, sizeof(v));
	v = (struct verify){
		.type = SAINA_INT32, .wire = SAINA_INT32, .seed = 7, .workers = 3, .me = 0,
		.segments = 1, .payload = N, .restarts = true,
	};
	memset(sum, 0, sizeof(sum));
	return verify_init(&v, 0);
}

static int end(void **state)
{
	verify_free(&v);
	return 0;
}

/* What worker @w produces in the rounds @from to @to is in the next result. */
static void contribute(unsigned int w, uint32_t from, uint32_t to)
{
	for (uint32_t r = from; r <= to; r++)
		for (unsigned int i = 0; i < N; i++)
			sum[i] = (uint32_t)sum[i] + (uint32_t)verify_fresh(&v, w, r, i);
}

static void result(uint32_t round, uint64_t mask)
{
	struct saina_segment g = { .round = round, .mask = mask, .contributors = __builtin_popcountll(mask) };

	verify_segment(&v, 0, &g, sum, N);
	memset(sum, 0, sizeof(sum));
}

/* Rounds @from to @to, each with worker 0 alone. */
static void alone(uint32_t from, uint32_t to)
{
	for (uint32_t r = from; r <= to; r++) {
		contribute(0, r, r);
		result(r, 1);
	}
}

static void test_residual(void **state)
{
	alone(0, 9);
	contribute(0, 10, 10);
	contribute(1, 0, 10);
	result(10, 3);
	assert_true(v.right == 11 && !v.wrong);
}

static void test_restart(void **state)
{
	alone(0, 999);
	contribute(0, 1000, 1000);
	contribute(1, 700, 1000);
	result(1000, 3);
	assert_true(v.right == 1001 && !v.wrong);
}

static void test_no_restarts(void **state)
{
	v.restarts = false;
	alone(0, 9);
	contribute(0, 10, 10);
	contribute(1, 5, 10);
	result(10, 3);
	/* not wrong: nobody has said that there were none */
	assert_true(v.right == 10 && !v.wrong && v.unknown == 1);
	assert_non_null(strstr(v.what, "right if workers were restarted, which --restarts accepts: round 10"));
}

static void test_twice(void **state)
{
	alone(0, 9);
	contribute(0, 10, 10);
	contribute(1, 0, 10);
	result(10, 3);
	/* it has not noticed that it was counted */
	contribute(0, 11, 11);
	contribute(1, 0, 11);
	result(11, 3);
	assert_int_equal(v.wrong, 1);
}

static void test_two(void **state)
{
	alone(0, 9);
	contribute(0, 10, 10);
	contribute(1, 5, 10);
	contribute(2, 7, 10);
	result(10, 7);
	assert_true(v.right == 11 && !v.wrong);
}

/* Workers 1 and 2 are killed in round 10, which all are counted in, and produce 9 and 10 again. */
static void two_in_lockstep(void)
{
	for (uint32_t r = 0; r < 10; r++) {
		for (unsigned int w = 0; w < 3; w++)
			contribute(w, r, r);
		result(r, 7);
	}
	contribute(0, 10, 10);
	contribute(1, 9, 10);
	contribute(2, 8, 10);
}

static void test_lockstep(void **state)
{
	two_in_lockstep();
	result(10, 7);
	assert_true(v.right == 11 && !v.wrong);
}

static void test_lockstep_strict(void **state)
{
	v.restarts = false;
	two_in_lockstep();
	result(10, 7);
	assert_true(v.right == 10 && !v.wrong && v.unknown == 1);
	/* the next ones are on record again */
	for (unsigned int w = 0; w < 3; w++)
		contribute(w, 11, 11);
	result(11, 7);
	assert_true(v.right == 11 && !v.wrong && v.unknown == 1);
}

static void test_planted(void **state)
{
	for (int strict = 0; strict < 2; strict++) {
		for (unsigned int i = 0; i < N; i += 5) {
			end(state);
			begin(state);
			v.restarts = !strict;
			two_in_lockstep();
			sum[i]++;
			result(10, 7);
			assert_true(v.right == 10 && v.wrong == 1);
		}
	}
}

/* More histories than can be compared: what they would explain is not called wrong. */
static void test_many(void **state)
{
	alone(0, 3000);
	contribute(0, 3001, 3001);
	contribute(1, 1000, 3001);
	contribute(2, 5, 3001);
	result(3001, 7);
	assert_true(!v.wrong && v.right + v.unknown == 3002);
}

static void test_sentence(void **state)
{
	char want[64];
	int64_t n = 0;

	alone(0, 9);
	sum[0] = 12345;
	for (uint32_t r = 0; r <= 10; r++)
		n += verify_fresh(&v, 1, r, 0);
	snprintf(want, sizeof(want), "expected %lld,", (long long)n);
	result(10, 2);
	assert_int_equal(v.wrong, 1);
	assert_non_null(strstr(v.what, "round 10 segment 0 element 0: mask 0x2"));
	assert_non_null(strstr(v.what, want));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement_with("verify: what was not counted is in the next contribution", test_residual, begin, end),
		statement_with("verify: a worker that restarted may be counted hundreds of rounds later", test_restart,
			       begin, end),
		statement_with("verify: without --restarts another history than that on record is right for nobody, and not wrong", test_no_restarts, begin, end),
		statement_with("verify: what was counted and comes again is wrong, also where workers restart", test_twice,
			       begin, end),
		statement_with("verify: two workers may have restarted in one round", test_two, begin, end),
		statement_with("verify: two workers that restarted produce rounds again that all were counted in", test_lockstep, begin, end),
		statement_with("verify: .. without --restarts that is neither right nor wrong", test_lockstep_strict, begin, end),
		statement_with("verify: a sum with one element changed is wrong, with and without --restarts", test_planted, begin, end),
		statement_with("verify: more histories than can be compared: not wrong", test_many, begin, end),
		statement_with("verify: the sentence about a wrong sum says what the record asks for", test_sentence, begin, end),
	};

	return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
