// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The choice of k (tools/saina/dbw.h) against closed formulas: order statistics of uniform
 * arrivals, and cases with only one right choice.
 */
#include <math.h>
#include <string.h>

#include "saina/dbw.h"
#include "../lib/statement.h"

#define BUCKET 14 /* 8192 to 16383 microseconds */
#define FROM   8192.0
#define WIDTH  8192.0

/* @workers workers, all of whose gradients arrive in bucket @b. */
static struct dbw all_in(unsigned int workers, int b)
{
	struct dbw d = { .k = workers, .noise = workers, .arrivals = { .workers = workers, .rounds = 100 } };

	for (unsigned int w = 0; w < workers; w++)
		d.arrivals.late[w][b] = 100;
	return d;
}

static void near(double got, double want, double share)
{
	if (fabs(got - want) > share * want)
		fail_msg("%g instead of %g", got, want);
}

/* The mean of the kth of n values uniform in [a, a + b) is a + b k / (n + 1). */
static void uniform(void **state)
{
	for (unsigned int n = 1; n <= 64; n = 2 * n + (n == 4)) {
		struct dbw d = all_in(n, BUCKET);

		d.arrivals.round_us = 40000 + FROM + WIDTH * n / (n + 1);
		for (unsigned int k = 1; k <= n; k++)
			near(dbw_round_us(&d, k), 40000 + FROM + WIDTH * k / (n + 1), 0.002);
	}
}

/* The choice, without trials. */
static unsigned int choose(const struct dbw *d)
{
	struct dbw_trials never = { .next = 1e9 };
	bool trial;

	return dbw_next(d, &never, 0, &trial);
}

static void at_once(void **state)
{
	struct dbw d = all_in(8, 0);

	d.arrivals.round_us = 5000;
	for (unsigned int k = 1; k <= 8; k++) {
		near(dbw_round_us(&d, k), 5000, 0.001);
		d.k = k;
		assert_int_equal(choose(&d), 8);
	}
}

/*
 * Seven arrive at once, the eighth 8 to 16 ms later: waiting for it makes rounds four times as
 * long.
 */
static void one_late(void **state)
{
	struct dbw d = all_in(8, 0);

	memset(d.arrivals.late[5], 0, sizeof(d.arrivals.late[5]));
	d.arrivals.late[5][BUCKET] = 100;
	d.arrivals.round_us = 4000 + FROM + WIDTH / 2;
	near(dbw_round_us(&d, 7), 4000, 0.01);
	assert_int_equal(choose(&d), 7);
	/* a lower k does not rise to 8 either */
	d.k = 6;
	d.arrivals.round_us = 4000;
	assert_int_equal(choose(&d), 7);
}

/* A worker that skips rounds has no arrivals: it was later than the end of the round. */
static void absent(void **state)
{
	struct dbw d = all_in(4, 0);

	memset(d.arrivals.late[0], 0, sizeof(d.arrivals.late[0]));
	d.k = 3;
	d.arrivals.round_us = 20000;
	near(dbw_round_us(&d, 3), 20000, 0.001);
	near(dbw_round_us(&d, 4), 40000, 0.05);
	assert_int_equal(choose(&d), 3);
}

/* With little noise one gradient is worth eight; with much noise it is worth an eighth of them. */
static void noise(void **state)
{
	struct dbw d = all_in(8, BUCKET);

	d.arrivals.round_us = FROM + WIDTH * 8 / 9;
	d.noise = 0.001;
	assert_int_equal(choose(&d), 1);
	d.noise = 1e6;
	assert_int_equal(choose(&d), 8);
}

static void steady(void **state)
{
	struct dbw d = all_in(8, 0);

	/* 8 would be better than 7, but by less than GAIN_MIN because rounds get a little longer */
	memset(d.arrivals.late[5], 0, sizeof(d.arrivals.late[5]));
	d.arrivals.late[5][11] = 100;		/* 1024 to 2047 microseconds */
	d.k = 7;
	d.arrivals.round_us = 40000;
	assert_int_equal(choose(&d), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("dbw: rounds of uniform arrivals take as long as order statistics say, 1 to 64 workers", uniform),
		statement("dbw: if nobody is late all are waited for", at_once),
		statement("dbw: one worker that is always late is not waited for", one_late),
		statement("dbw: a gradient that never came is later than the round took", absent),
		statement("dbw: without noise one gradient is waited for, with much noise all", noise),
		statement("dbw: k stays where another is better by less than a twentieth", steady),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
