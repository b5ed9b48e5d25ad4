// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "grouping.h"

#define STEPS_MIN		20	/* steps needed for a measurement */
#define STRAGGLER_RATIO		1.5	/* a straggler takes this many times the median */
#define STRAGGLER_RATIO_MERGE	1.3	/* ... when merging groups is considered */
#define MERGE_LOSS		1.15	/* groups are merged when the predicted slowdown is below */

double grouping_slowdown(unsigned int g, unsigned int m, double d)
{
	return 1 / (1 - m * (d / (1 + d)) / g);
}

bool grouping_measure(struct grouping *g, double interval_us, const double *steps,
		      const double *late_us)
{
	for (unsigned int w = 0; w < g->workers; w++) {
		double last = 0, made = 0;

		if (!(g->alive >> w & 1))
			continue;
		for (unsigned int i = 0; i < g->workers; i++) {
			if (!(g->alive >> i & 1) || g->group[i] != g->group[w])
				continue;
			if (steps[i] < STEPS_MIN)
				return false;
			if (late_us[i] > last)
				last = late_us[i];
			if (steps[i] > made)
				made = steps[i];
		}
		g->step_us[w] = interval_us / made - (last - late_us[w]);
		/* mean times of an interval that ends within a step can be too small */
		if (g->step_us[w] < 1)
			g->step_us[w] = 1;
	}
	return true;
}

/* Sorts the workers by step time into @by, slowest first, dead ones last. */
static void sort_by_step_time(const struct grouping *g, unsigned int *by)
{
	for (unsigned int n = 0; n < g->workers; n++) {
		double us = g->alive >> n & 1 ? g->step_us[n] : 0;
		unsigned int i = n;

		for (; i && (g->alive >> by[i - 1] & 1 ? g->step_us[by[i - 1]] : 0) < us; i--)
			by[i] = by[i - 1];
		by[i] = n;
	}
}

/* How many of @groups groups of about equal size, filled in order, hold the first @n workers? */
static unsigned int count_groups_of_first(const struct grouping *g, unsigned int groups, unsigned int n)
{
	unsigned int size = g->workers / groups, larger = g->workers % groups;

	if (n <= larger * (size + 1))
		return (n + size) / (size + 1);
	return larger + (n - larger * (size + 1) + size - 1) / size;
}

static void assign_groups(struct grouping *g, const unsigned int *by)
{
	for (unsigned int i = 0; i < g->workers; i++)
		g->group[by[i]] = count_groups_of_first(g, g->groups, i + 1) - 1;
}

/*
 * Counts the stragglers, the first of @by: their step time is above @ratio times the median, and
 * further from it than the others' are from each other. The second condition is for hosts with
 * fewer processors than workers, where the worker that is scheduled last is late in every step.
 */
static unsigned int count_stragglers(const struct grouping *g, const unsigned int *by, unsigned int live,
				     double ratio)
{
	double usual = g->step_us[by[live / 2]], spread;
	unsigned int n = 0;

	while (n < live && g->step_us[by[n]] > ratio * usual)
		n++;
	spread = g->step_us[by[n]] - g->step_us[by[live - 1]];
	while (n && g->step_us[by[n - 1]] - usual <= spread)
		n--;
	return n;
}

/* Predicted slowdown with @groups groups while the first @n workers straggle. */
static double predict_slowdown(const struct grouping *g, const unsigned int *by, unsigned int live,
			       unsigned int n, unsigned int groups)
{
	double usual = g->step_us[by[live / 2]];

	if (!n)
		return 1;
	return grouping_slowdown(groups, count_groups_of_first(g, groups, n),
				 g->step_us[by[0]] / usual - 1);
}

/*
 * The fewest groups, a power of two, whose predicted slowdown by stragglers of @ratio is at most
 * @loss.
 */
static unsigned int count_groups_needed(const struct grouping *g, const unsigned int *by, unsigned int live,
					double ratio, double loss)
{
	unsigned int n = count_stragglers(g, by, live, ratio), groups = 1;

	while (predict_slowdown(g, by, live, n, groups) > loss && 2 * groups <= g->most)
		groups *= 2;
	return groups;
}

bool grouping_choose(struct grouping *g, double *slowdown, __u64 *stragglers)
{
	unsigned int by[SAINA_WORKERS_MAX], live = __builtin_popcountll(g->alive), n, up, down;
	unsigned int was = g->groups;
	__u64 now = 0;

	*stragglers = 0;
	*slowdown = 1;
	if (!live)
		return false;
	sort_by_step_time(g, by);
	n = count_stragglers(g, by, live, STRAGGLER_RATIO);
	for (unsigned int i = 0; i < n; i++) {
		*stragglers |= 1ull << by[i];
		now |= 1ull << g->group[by[i]];
	}
	up = count_groups_needed(g, by, live, STRAGGLER_RATIO, GROUPING_LOSS);
	down = count_groups_needed(g, by, live, STRAGGLER_RATIO_MERGE, MERGE_LOSS);
	if (up > g->groups)
		g->groups = up;
	else if (down < g->groups)
		g->groups = down;
	*slowdown = predict_slowdown(g, by, live, n, g->groups);
	if (g->groups == was &&
	    (unsigned int)__builtin_popcountll(now) <= count_groups_of_first(g, was, n))
		return false;
	assign_groups(g, by);
	return true;
}
