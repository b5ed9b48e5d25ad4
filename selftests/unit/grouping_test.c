// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Progressive grouping (tools/saina/grouping.h): the formula against published figures and figures
 * computed by hand, cases with only one right choice, and runs of simulated workers whose
 * measurements follow from the chosen groups.
 */
#include <math.h>
#include <string.h>

#include "saina/grouping.h"
#include "../lib/statement.h"

#define STEP 10000.0 /* microseconds */

/* Groups of @workers workers, all in one group, with these step times. */
static struct grouping of(unsigned int workers, const double *step_us)
{
	struct grouping g = { .workers = workers, .groups = 1, .most = workers };

	g.alive = workers < 64 ? (1ull << workers) - 1 : ~0ull;
	for (unsigned int w = 0; w < workers; w++)
		g.step_us[w] = step_us[w];
	return g;
}

static void all_take(double *step_us, unsigned int workers, double us)
{
	for (unsigned int w = 0; w < workers; w++)
		step_us[w] = us;
}

/*
 * Simulates the measurement of an interval of workers with step times @own in groups @g; false: too
 * few steps.
 */
static bool seen(struct grouping *g, const double *own, double interval_us)
{
	double slowest[SAINA_WORKERS_MAX] = { 0 }, first[SAINA_WORKERS_MAX];
	double steps[SAINA_WORKERS_MAX], late[SAINA_WORKERS_MAX];

	all_take(first, SAINA_WORKERS_MAX, INFINITY);
	for (unsigned int w = 0; w < g->workers; w++) {
		slowest[g->group[w]] = fmax(slowest[g->group[w]], own[w]);
		first[g->group[w]] = fmin(first[g->group[w]], own[w]);
	}
	for (unsigned int w = 0; w < g->workers; w++) {
		steps[w] = floor(interval_us / slowest[g->group[w]]);
		late[w] = own[w] - first[g->group[w]];
	}
	return grouping_measure(g, interval_us, steps, late);
}

/* Measures until the groups are stable. Returns the number of changes, 99 if they do not end. */
static int settle(struct grouping *g, const double *own, double *slowdown)
{
	__u64 stragglers;

	for (int n = 0; n < 99; n++) {
		assert_true(seen(g, own, 1e8));
		if (!grouping_choose(g, slowdown, &stragglers))
			return n;
	}
	return 99;
}

/* Workers must be assigned evenly: group sizes differ by one at most. */
static void is_dealt(const struct grouping *g)
{
	unsigned int size[SAINA_WORKERS_MAX] = { 0 };

	for (unsigned int w = 0; w < g->workers; w++) {
		assert_true(g->group[w] < g->groups);
		size[g->group[w]]++;
	}
	for (unsigned int i = 0; i < g->groups; i++) {
		assert_true(size[i] >= g->workers / g->groups);
		assert_true(size[i] <= (g->workers + g->groups - 1) / g->groups);
	}
}

static void formula(void **state)
{
	static const struct {
		unsigned int g, m;
		double d, want;
	} of[] = {
		/* shared/reference/sync-policies.md section 3, simulated: 3.92 1.59 1.22 1.09 */
		{ 1, 1, 3, 4 }, { 2, 1, 3, 1.6 }, { 4, 1, 3, 1.2308 }, { 8, 1, 3, 1.1034 },
		/* a straggler in each group: as slow as one group; no straggler: no slowdown */
		{ 4, 4, 3, 4 }, { 8, 0, 3, 1 }, { 8, 1, 0, 1 },
		/* six groups are enough for any straggler, five are not */
		{ 6, 1, 1e9, 1.2 }, { 5, 1, 1e9, 1.25 },
	};

	for (unsigned int i = 0; i < sizeof(of) / sizeof(*of); i++)
		if (fabs(grouping_slowdown(of[i].g, of[i].m, of[i].d) - of[i].want) > 1e-4 * of[i].want)
			fail_msg("g=%u m=%u d=%g: %g instead of %g", of[i].g, of[i].m, of[i].d,
				 grouping_slowdown(of[i].g, of[i].m, of[i].d), of[i].want);
}

/* A group waits for its slowest worker; a worker's own time is the group's without the wait. */
static void own_times(void **state)
{
	double own[6] = { 10000, 11000, 40000, 12000, 9000, 10500 };
	struct grouping g = of(6, own);

	for (unsigned int groups = 1; groups <= 3; groups++) {
		g.groups = groups;
		for (unsigned int w = 0; w < 6; w++) {
			g.group[w] = w % groups;
			g.step_us[w] = 0;
		}
		assert_true(seen(&g, own, 1e8));
		for (unsigned int w = 0; w < 6; w++)
			if (fabs(g.step_us[w] - own[w]) > 100)
				fail_msg("%u groups: worker %u takes %g instead of %g", groups, w,
					 g.step_us[w], own[w]);
	}
	/* a group with too few steps has no measurement */
	assert_false(seen(&g, own, 19 * 40000));
	/* ... but a group of dead workers needs none */
	g.alive &= ~(1ull << 2 | 1ull << 5);
	assert_true(seen(&g, own, 1e8));
}

static void one_straggler(void **state)
{
	double own[16], slowdown;
	struct grouping g;

	all_take(own, 16, STEP);
	own[11] = 4 * STEP;
	g = of(16, own);
	assert_int_equal(settle(&g, own, &slowdown), 1);
	assert_int_equal(g.groups, 8);
	is_dealt(&g);
	assert_true(fabs(slowdown - 1.1034) < 0.001);
	/* no more groups than the maximum */
	g = of(16, own);
	g.most = 4;
	assert_int_equal(settle(&g, own, &slowdown), 1);
	assert_int_equal(g.groups, 4);
	/* the straggler recovers: back to one group, which stays */
	own[11] = STEP;
	assert_int_equal(settle(&g, own, &slowdown), 1);
	assert_int_equal(g.groups, 1);
	assert_true(slowdown == 1);
}

static void stragglers_together(void **state)
{
	double own[12], slowdown;
	struct grouping g;

	all_take(own, 12, STEP);
	own[0] = own[5] = own[7] = 3 * STEP;
	g = of(12, own);
	assert_true(settle(&g, own, &slowdown) < 99);
	is_dealt(&g);
	assert_int_equal(g.groups, 8); /* three of sizes 2, 2, 2, 2, 1, ..: m = 2, 1 / (1 - 2 * 2/3 / 8) */
	assert_int_equal(g.group[0] + g.group[5] + g.group[7], 0 + 0 + 1);
	assert_true(fabs(slowdown - 1.2) < 0.001);
	/* another worker straggles instead: the same number of groups, assigned again */
	own[0] = STEP;
	own[9] = 3 * STEP;
	assert_int_equal(settle(&g, own, &slowdown), 1);
	assert_int_equal(g.groups, 8);
	assert_int_equal(g.group[5] + g.group[7] + g.group[9], 0 + 0 + 1);
}

static void nobody_straggles(void **state)
{
	/*
	 * evenly spread times, as on a host with fewer processors than workers; 1/3 slower; equal
	 * times
	 */
	static const double rows[][8] = {
		{ 4000, 4700, 5400, 6100, 6800, 7500, 8200, 8900 },
		{ 4000, 4000, 4000, 4000, 4000, 4000, 4000, 5400 },
		{ 4000, 4000, 4000, 4000, 4000, 4000, 4000, 4000 },
		{ 2000, 3000, 4000, 4000, 4000, 4000, 5000, 6000 },
	};
	double slowdown;

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct grouping g = of(8, rows[i]);

		assert_int_equal(settle(&g, rows[i], &slowdown), 0);
		assert_int_equal(g.groups, 1);
		assert_true(slowdown == 1);
	}
}

/*
 * Random stragglers: the choices end, groups are even, and the predicted slowdown is reached if
 * possible.
 */
static void any_workers(void **state)
{
	double own[SAINA_WORKERS_MAX], slowdown;

	for (unsigned int n = 1; n <= SAINA_WORKERS_MAX; n++) {
		for (unsigned int slow = 0; slow <= n; slow++) {
			struct grouping g;

			all_take(own, n, STEP);
			for (unsigned int i = 0; i < slow; i++)
				own[i * 7 % n] = STEP * (2 + i % 5);
			g = of(n, own);
			if (settle(&g, own, &slowdown) == 99)
				fail_msg("%u workers, %u of them slow: groups change for ever", n, slow);
			is_dealt(&g);
			if (slowdown > GROUPING_LOSS && 2 * g.groups <= n)
				fail_msg("%u workers, %u slow: %u groups are left at %g", n, slow,
					 g.groups, slowdown);
		}
	}
}

static void the_dead(void **state)
{
	double own[8], slowdown;
	struct grouping g;
	__u64 stragglers;

	all_take(own, 8, STEP);
	own[3] = 4 * STEP;
	g = of(8, own);
	g.alive &= ~(1ull << 3);
	assert_true(seen(&g, own, 1e8));
	assert_false(grouping_choose(&g, &slowdown, &stragglers));
	assert_true(stragglers == 0);
	g.alive = 0;
	assert_false(grouping_choose(&g, &slowdown, &stragglers));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("grouping: the slowdown of groups is that of the formula", formula),
		statement("grouping: a worker's own time is found however groups are made", own_times),
		statement("grouping: one straggler: there are as many groups as keep the loss small, and one again when it is quick", one_straggler),
		statement("grouping: several stragglers are put together", stragglers_together),
		statement("grouping: nobody straggles: one group stays one group", nobody_straggles),
		statement("grouping: any number of workers and stragglers: choices come to an end in even groups", any_workers),
		statement("grouping: the dead are no stragglers", the_dead),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
