// SPDX-License-Identifier: GPL-2.0-or-later
/* Steps of float32 (userland/lib/reduce/ps.c): which exponent the
 * parameter server has, and what does not fit or is not sent. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include "saina.h"
#include "saina/counters.h"
#include "lib_member.h"
#include "../lib/statement.h"

static struct agg *a;
static struct saina *s[2];
static float buf[N];

static void open_two(void)
{
	struct agg_conf c = member_conf(2, 2);

	a = agg_start(&c);
	agg_asp(a);
	member_open_all(a, s, 2);
}

/* A step of worker @w, in which all elements are @value; what it reads of element 0. */
static float step(int w, float value)
{
	for (int i = 0; i < N; i++)
		buf[i] = value;
	assert_int_equal(saina_push(s[w], buf, N, SAINA_FLOAT32), 0);
	if (saina_read(s[w], NULL, 20000))
		fail_msg("%s", saina_strerror(s[w], 0));
	for (int i = 1; i < N; i++)
		assert_true(buf[i] == buf[0]);
	return buf[0];
}

/* The job's exponent holds 1.0 in an update; the first one is larger. */
static void test_first(void **state)
{
	open_two();
	assert_true(step(0, 1000) == 1000);
	/* Another worker takes the parameter server's exponent, whatever it would have chosen. */
	assert_true(step(1, 0.5f) == 1000.5f);
	assert_true(agg_count(a, SAINA_C_EXPONENT) > 0);
	assert_true(step(1, 9000) == 9000);
	assert_true(step(0, 0) == 9000.5f);
	assert_string_equal(member_lines, "");
	member_close_all(a, s, 2);
}

/* What does not fit is kept, and said once. */
static void test_too_large(void **state)
{
	struct saina_stats st = { .size = sizeof(st) };
	float sum, max = 0;
	int steps = 0;

	open_two();
	assert_true(step(0, 1) == 1);
	for (sum = step(1, 50.25f); sum < 51.25f && steps < 200; steps++) {
		float more = step(1, 0);

		max = fmaxf(max, more);
		sum += more;
	}
	assert_true(sum == 51.25f && steps >= 49 && max <= 1);
	assert_non_null(strstr(member_lines, "beyond 1, which is what exponent 20 holds"));
	assert_non_null(strstr(member_lines, "`exponent 10'"));
	assert_null(strchr(strchr(member_lines, '\n') + 1, '\n'));
	saina_get_stats(s[1], &st);
	assert_true(st.saturated >= N);
	member_close_all(a, s, 2);
}

static void test_not_finite(void **state)
{
	static const float special[] = { NAN, INFINITY, -INFINITY };

	open_two();
	assert_true(step(0, 0.5f) == 0.5f);
	for (int i = 0; i < 3; i++) {
		memset(buf, 0, sizeof(buf));
		buf[N - 1 - i] = special[i];
		buf[N - 1] = i ? 0 : NAN;
		assert_int_equal(saina_push(s[0], buf, N, SAINA_FLOAT32), -EDOM);
	}
	assert_non_null(strstr(saina_strerror(s[0], 0), "element 997 is infinite or not a number"));
	/* Nothing was pushed, and the next step is like any other. */
	assert_true(step(0, 0.25f) == 0.25f);
	/* The first push of a worker, before it knows that there are steps. */
	buf[17] = NAN;
	assert_int_equal(saina_push(s[1], buf, N, SAINA_FLOAT32), 0);
	assert_int_equal(saina_read(s[1], NULL, 20000), -EDOM);
	assert_non_null(strstr(saina_strerror(s[1], 0), "element 17 is infinite or not a number"));
	assert_true(step(1, 0.125f) == 0.875f);
	assert_true(step(0, 0) == 0.125f);
	member_close_all(a, s, 2);
}

/* Worker 0 pushes floats, worker 1 integers. */
static void test_types(void **state)
{
	int32_t v[N] = { 7 };

	open_two();
	assert_true(step(0, 0.5f) == 0.5f);
	assert_int_equal(saina_push(s[1], v, N, SAINA_INT32), 0);
	assert_int_equal(saina_read(s[1], NULL, 20000), -EPROTO);
	assert_non_null(strstr(saina_strerror(s[1], 0), "this worker pushes int32, and other workers have pushed float32"));
	member_close_all(a, s, 2);
}

/* Worker 0 pushes integers, worker 1 floats. */
static void test_types_of_integers(void **state)
{
	int32_t v[N] = { 7 };
	float half[N] = { 0.5f };

	open_two();
	assert_int_equal(saina_push(s[0], v, N, SAINA_INT32), 0);
	assert_int_equal(saina_read(s[0], NULL, 20000), 0);
	assert_int_equal(v[0], 7);
	assert_int_equal(saina_push(s[1], half, N, SAINA_FLOAT32), 0);
	assert_int_equal(saina_read(s[1], NULL, 20000), -EPROTO);
	assert_non_null(strstr(saina_strerror(s[1], 0), "this worker pushes float32, and other workers have pushed int32"));
	member_close_all(a, s, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("steps: a first update that is large chooses the parameter server's exponent, for all workers", test_first),
		statement("steps: later updates that do not fit are kept, and said once with the exponent to choose", test_too_large),
		statement("steps: an update that is not finite is refused and its element named", test_not_finite),
		statement("steps: integers where others push floats are an error", test_types),
		statement("steps: a worker that pushes float32 where another has pushed int32 gets an error", test_types_of_integers),
	};

	return cmocka_run_group_tests_name("steps of float32", tests, NULL, NULL);
}
