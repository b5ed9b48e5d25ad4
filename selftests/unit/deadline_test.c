// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The choice of T and kmin (tools/saina/deadline.h): cases with only one right choice, against the
 * formula, and in simulated jobs (deadline_sim.h).
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "deadline_sim.h"
#include "saina/deadline.h"
#include "../lib/statement.h"

#define ROUNDS 100
#define LATE   15	/* a bucket: 16384 to 32767 microseconds */

/* @late of @n workers are late in a share @p of the rounds, and have been waited for. */
static void observe(struct deadline *d, unsigned int n, unsigned int late, double p, double round_us)
{
	struct arrivals a = { .workers = n, .rounds = ROUNDS, .round_us = round_us };

	for (unsigned int w = 0; w < n; w++) {
		a.late[w][0] = ROUNDS * (w < late ? 1 - p : 1);
		a.late[w][LATE] = ROUNDS * (w < late ? p : 0);
	}
	deadline_observe(d, &a);
}

static struct deadline job(unsigned int n, double noise)
{
	return (struct deadline){ .workers = n, .noise = noise, .set = { 1 << 23, n } };
}

static void at_once(void **state)
{
	struct deadline d = job(8, 8);
	struct deadline_choice c;

	/* a kmin of before a worker left */
	d.set.k_min = 9;
	observe(&d, 8, 0, 0, 5000);
	c = deadline_choose(&d);
	assert_int_equal(lround(c.count), 8);
	assert_float_equal(c.round_us, 5000, 10);
}

static void one_late(void **state)
{
	struct deadline d = job(8, 8);
	struct deadline_choice c;

	observe(&d, 8, 1, 1, 4000 + 24576);
	c = deadline_choose(&d);
	assert_int_equal(lround(c.count), 7);
	assert_int_equal(d.set.k_min, 7);
	assert_float_equal(c.round_us, 4000 + 1024, 30);
	/* waiting for it is worth a round of a second */
	d = job(8, 8);
	observe(&d, 8, 1, 1, 1e6);
	assert_int_equal(lround(deadline_choose(&d).count), 8);
}

/*
 * Of two workers one is late in a share p of the rounds, by 24576 us in the mean. Rounds that wait
 * for it take rest + 24576 p and earn gain(2); those that end after the shortest T take rest + 1024
 * p and earn (1 - p) gain(2) + p gain(1).
 */
static void formula(void **state)
{
	const double one = arrivals_gain(1, 2), two = arrivals_gain(2, 2);

	for (double p = 0.1; p < 0.95; p += 0.1) {
		for (double rest = 10000; rest < 500000; rest *= 1.3) {
			struct deadline d = job(2, 2);
			double waits = two / (rest + 24576 * p) * 1e6;
			double ends = ((1 - p) * two + p * one) / (rest + 1024 * p) * 1e6;
			struct deadline_choice c;

			observe(&d, 2, 1, p, rest + 24576 * p);
			c = deadline_choose(&d);
			assert_float_equal(c.rate / (waits > ends ? waits : ends), 1, 0.03);
		}
	}
}

/*
 * A gradient that never came may have come soon after: T is longer for a while, but no longer than
 * waiting can pay, and then as before.
 */
static void trial(void **state)
{
	struct arrivals a = { .workers = 4, .rounds = ROUNDS, .round_us = 20000 };
	struct deadline d = job(4, 4);
	unsigned int looks = 0;

	d.set = (struct deadline_setting){ 1024, 3 };
	for (int w = 0; w < 3; w++)
		a.late[w][0] = ROUNDS;
	deadline_observe(&d, &a);
	deadline_choose(&d);
	assert_true(d.trial);
	/* gain(4) / gain(3) - 1 = 1/6 of 20 ms is 3.3 ms */
	assert_int_equal(d.set.timeout_us, 4096);
	a.round_us += 3072;
	deadline_observe(&d, &a);
	deadline_choose(&d);
	assert_false(d.trial);
	assert_int_equal(d.set.timeout_us, 1024);
	a.round_us = 20000;
	do {
		deadline_observe(&d, &a);
		deadline_choose(&d);
		looks++;
	} while (!d.trial && looks < 100);
	assert_in_range(looks, 20, 25);
	/* in this one it comes soon after T */
	a.round_us += 1536;
	a.late[3][11] = ROUNDS;
	deadline_observe(&d, &a);
	assert_int_equal(lround(deadline_choose(&d).count), 4);
}

/* What was measured MEMORY rounds ago does not count any more. */
static void change(void **state)
{
	struct deadline d = job(8, 8);

	for (int i = 0; i < 5; i++)
		observe(&d, 8, 0, 0, 40000);
	assert_int_equal(lround(deadline_choose(&d).count), 8);
	for (int i = 0; i < 2; i++)
		observe(&d, 8, 1, 1, 4000 + 24576);
	assert_int_equal(lround(deadline_choose(&d).count), 7);
}

static double earned(enum sim_pattern pattern, enum sim_rule rule, unsigned int k)
{
	double sum = 0;

	for (unsigned int seed = 1; seed <= 2; seed++) {
		struct sim s;

		sim_init(&s, pattern, SIM_GIVE_UP, 16, seed);
		sum += sim_play(&s, rule, k, 16, 600).rate;
	}
	return sum;
}

/* deadline_table has all patterns. */
static void simulated(void **state)
{
	static const double least[SIM_PATTERNS] = {
		[SIM_NONE] = 0.99, [SIM_SERENE] = 1.07, [SIM_SLOW] = 0.98, [SIM_TAIL] = 0.93,
		[SIM_PERIODS] = 1.07, [SIM_TOGETHER] = 1.1,
	};

	for (int pattern = 0; pattern < SIM_PATTERNS; pattern++) {
		double best = 0, got = earned(pattern, SIM_DEADLINE, 0);

		for (unsigned int k = 8; k <= 16; k++)
			best = fmax(best, earned(pattern, SIM_FIXED_K, k));
		if (got < least[pattern] * best)
			fail_msg("%s: %.3f of the best fixed k, at least %.2f", sim_pattern_name[pattern],
				 got / best, least[pattern]);
	}
}

/* Mean count and round time of @looks measurements; @expected_us: what the choice after each expects. */
static double play(struct sim *s, struct deadline *d, int looks, double *seen_us, double *expected_us)
{
	double count = 0;

	*seen_us = *expected_us = 0;
	for (int i = 0; i < looks; i++) {
		struct arrivals seen = { 0 };

		for (int r = 0; r < 20; r++)
			count += sim_round(s, d->set.timeout_us, d->set.k_min, &seen) / 20. / looks;
		*seen_us += seen.round_us / looks;
		deadline_observe(d, &seen);
		*expected_us += deadline_choose(d).round_us / looks;
	}
	return count;
}

static void follows(void **state)
{
	static const struct { enum sim_pattern pattern; double least, most; } parts[] = {
		{ SIM_SERENE, 13, 14.5 }, { SIM_SLOW, 14.9, 15.2 }, { SIM_TAIL, 9, 13 }, { SIM_NONE, 15.9, 16 },
	};
	struct deadline d = { .workers = 16, .noise = 16, .set = { 10000, 8 } };
	struct sim s;

	sim_init(&s, SIM_SERENE, SIM_GIVE_UP, 16, 1);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		double seen_us, expected_us, count;

		s.pattern = parts[i].pattern;
		play(&s, &d, 20, &seen_us, &expected_us);
		count = play(&s, &d, 40, &seen_us, &expected_us);
		if (fabs(expected_us / seen_us - 1) > 0.05 || count < parts[i].least || count > parts[i].most)
			fail_msg("%s: rounds take %.2f of what was expected, with %.2f gradients",
				 sim_pattern_name[s.pattern], seen_us / expected_us, count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("deadline: if nobody is late all are in each sum", at_once),
		statement("deadline: one worker that is always late is waited for if that costs little", one_late),
		statement("deadline: what is expected is what renewal reward says, and the best is chosen", formula),
		statement("deadline: trials find out when missing gradients come, seldom and no longer than can pay", trial),
		statement("deadline: the past is forgotten", change),
		statement("deadline: simulated jobs earn what the best fixed k does, or more", simulated),
		statement("deadline: simulated jobs whose stalls change are followed, and rounds take as long as expected", follows),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
