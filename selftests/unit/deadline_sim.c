// SPDX-License-Identifier: GPL-2.0-or-later
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "deadline_sim.h"
#include "saina/dbw.h"
#include "saina/deadline.h"

#define GOOD_GRADIENTS 90	/* mean length of a good period; a bad one is a third of it */
#define WINDOW         20	/* rounds of a measurement */
#define NET_US         2000	/* of a round, beside computing */

const char *const sim_pattern_name[SIM_PATTERNS] = {
	[SIM_NONE] = "none", [SIM_SERENE] = "Serene's stalls", [SIM_SLOW] = "one takes 4 times as long",
	[SIM_TAIL] = "heavy tail", [SIM_EXP] = "exponential",
	[SIM_PERIODS] = "bad periods, each its own", [SIM_TOGETHER] = "bad periods, all together",
};
const char *const sim_manner_name[SIM_MANNERS] = {
	[SIM_GIVE_UP] = "give up", [SIM_STALL] = "stalls last", [SIM_FINISH] = "finish",
};

static double uniform(struct sim *s)
{
	uint64_t z = (s->rng += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}

void sim_init(struct sim *s, enum sim_pattern pattern, enum sim_manner manner, unsigned int workers, uint64_t seed)
{
	memset(s, 0, sizeof(*s));
	s->workers = workers;
	s->pattern = pattern;
	s->manner = manner;
	s->rng = seed * 0x2545f4914f6cdd1dull + pattern;
}

/* With probability @p a stall of .5 to 2 times the base. */
static double stall(struct sim *s, double p)
{
	return uniform(s) < p ? 0.5 + 1.5 * uniform(s) : 0;
}

static bool in_bad_period(struct sim *s, unsigned int w)
{
	if (--s->left[w] <= 0) {
		s->bad[w] = s->left[w] > -1 && !s->bad[w];
		s->left[w] = -log(uniform(s)) * GOOD_GRADIENTS / (s->bad[w] ? 3 : 1);
	}
	return s->bad[w];
}

/* Time for a gradient of worker @w, in units of the base; @stalled: the part that is a stall. */
static double draw(struct sim *s, unsigned int w, double *stalled)
{
	double jitter = 0.02 * uniform(s);

	*stalled = 0;
	switch (s->pattern) {
	case SIM_SERENE:
		*stalled = stall(s, 0.15);
		break;
	case SIM_SLOW:
		return jitter + (w ? 1 : 4);
	case SIM_TAIL:	/* Pareto, without a variance; mean 1 */
		return 0.6 + 0.4 / 3 * pow(uniform(s), -1 / 1.5);
	case SIM_EXP:
		return -log(uniform(s));
	case SIM_PERIODS:
		*stalled = stall(s, in_bad_period(s, w) ? 0.6 : 0.02);
		break;
	case SIM_TOGETHER:
		*stalled = stall(s, (w ? s->bad[0] : in_bad_period(s, 0)) ? 0.6 : 0.02);
		break;
	default:
		break;
	}
	return 1 + jitter + *stalled;
}

static int by_size(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

static double end_of_round(const struct sim *s, const double *at, double timeout_us, unsigned int k_min)
{
	double sorted[SAINA_WORKERS_MAX], end;

	memcpy(sorted, at, s->workers * sizeof(*at));
	qsort(sorted, s->workers, sizeof(*sorted), by_size);
	end = sorted[0] + timeout_us > sorted[k_min - 1] ? sorted[0] + timeout_us : sorted[k_min - 1];
	return (end < sorted[s->workers - 1] ? end : sorted[s->workers - 1]) + NET_US;
}

static void note_arrival(struct arrivals *seen, unsigned int w, double late_us)
{
	int b = late_us < 1 ? 0 : 1 + (int)log2(late_us);

	seen->late[w][b < SAINA_ARRIVAL_BUCKETS ? b : SAINA_ARRIVAL_BUCKETS - 1]++;
}

/* Worker @w, who began at @begin, was not in time; when can he begin his next gradient? */
static double next_begin(const struct sim *s, double begin, double at, double stalled, double end)
{
	double until = s->manner == SIM_FINISH ? at : s->manner == SIM_STALL ? begin + stalled * SIM_BASE_US : end;

	/* the round was over before he could begin */
	return begin >= end ? begin : until > end ? until : end;
}

unsigned int sim_round(struct sim *s, double timeout_us, unsigned int k_min, struct arrivals *seen)
{
	double at[SAINA_WORKERS_MAX], begin[SAINA_WORKERS_MAX], stalled[SAINA_WORKERS_MAX];
	double first = INFINITY, end;
	unsigned int n = 0;

	for (unsigned int w = 0; w < s->workers; w++) {
		begin[w] = s->ready[w] > s->now ? s->ready[w] : s->now;
		at[w] = begin[w] + draw(s, w, &stalled[w]) * SIM_BASE_US;
		first = at[w] < first ? at[w] : first;
	}
	end = end_of_round(s, at, timeout_us, k_min);
	seen->workers = s->workers;
	seen->round_us = (seen->round_us * seen->rounds + end - s->now) / (seen->rounds + 1);
	seen->rounds++;
	for (unsigned int w = 0; w < s->workers; w++) {
		bool in_time = at[w] + NET_US <= end;

		n += in_time;
		if (in_time || (s->manner == SIM_FINISH && begin[w] < end))
			note_arrival(seen, w, at[w] - first);
		s->ready[w] = in_time ? end : next_begin(s, begin[w], at[w], stalled[w], end);
	}
	s->now = end;
	return n;
}

bool sim_has_stalls(enum sim_pattern pattern)
{
	return pattern == SIM_SERENE || pattern == SIM_PERIODS || pattern == SIM_TOGETHER;
}

struct sim_earned sim_play(struct sim *s, enum sim_rule rule, unsigned int k, double noise, unsigned int rounds)
{
	bool timed = rule == SIM_HAND || rule == SIM_DEADLINE;
	struct deadline d = { .workers = s->workers, .noise = noise, .set = { SIM_BASE_US / 10, s->workers / 2 } };
	struct deadline_setting set = { 0, rule == SIM_DBW ? s->workers : k };
	double gain = 0, begin = s->now;

	if (timed)
		set = d.set;
	for (unsigned int r = 0; r < rounds; r += WINDOW) {
		struct arrivals seen = { 0 };

		for (int i = 0; i < WINDOW; i++)
			gain += arrivals_gain(sim_round(s, set.timeout_us, set.k_min, &seen), noise);
		if (rule == SIM_DBW) {
			struct dbw w = { .k = set.k_min, .noise = noise, .arrivals = seen };
			struct dbw_trials never = { .next = 1e9 };
			bool trial;

			set.k_min = dbw_next(&w, &never, 0, &trial);
		} else if (rule == SIM_DEADLINE) {
			deadline_observe(&d, &seen);
			set = deadline_choose(&d).set;
		}
	}
	return (struct sim_earned){ gain / (s->now - begin) * 1e6, set.timeout_us, set.k_min };
}
