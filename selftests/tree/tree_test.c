// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Random trees of one to four levels, about half of them of two (tree.h): T1 to T11 of datapath.rst 12.1
 * hold in each of them, and a fault that is planted in relays, agents or slots is found.
 *
 *	tree_test [TREES [FIRST-SEED [FAULT]]]
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include "lib/tap.h"
#include "tree.h"

#define WITHIN	100	/* trees in which a planted fault must be found */

static struct tree t;

static const struct {
	const char *name;
	unsigned int seed;	/* from here on it must be found soon: most are rare */
} planted[TREE_FAULTS] = {
	[TREE_SLOT_ROUND] = { "the relay counts its own host as one worker", 0 },
	[TREE_LAST] = { "last[] is not cleared at LATE", 600 },
	[TREE_FULL] = { "the relay sends full batches only", 0 },
	[TREE_LENGTH] = { "the relay goes on without asking how long the round is", 0 },
	[TREE_LEAD] = { "bsp below a parent has no lead", 100 },
	[TREE_EMPTY] = { "a place without members stays active above", 0 },
	[TREE_ABSENT] = { "a place whose members are all new stays active above", 200 },
	[TREE_TORN] = { "AWAY is set before the last gradient is added", 0 },
	[TREE_AUX] = { "members are not told what the parent counted", 60 },
	[TREE_AUX_ONE] = { "the parent is asked about one segment before a new beginning", 100 },
	[TREE_OLD] = { "the relay goes on by what is left of an old round", 100 },
	[TREE_FORWARD] = { "the relay never goes back to the round before", 194700 },
	[TREE_NOT_DUE] = { "the relay does not pull slots that deaths have completed", 2600 },
	[TREE_LEFT] = { "the relay waits for what the parent has left behind", 39500 },
	[TREE_CUT_OFF] = { "those below a place that has begun anew are waited for", 0 },
	[TREE_MISSED] = { "a place that has missed rounds does them, when it has members again", 16100 },
	[TREE_JOINED] = { "slots wait for the earlier lives of those that have joined since", 23100 },
	[TREE_NOT_LATE] = { "the relay does not say LATE", 0 },
};

static void find_planted(enum tree_fault fault)
{
	unsigned int n = 0;

	for (t.broken = 0; !t.broken && n < WITHIN; n++)
		tree_run(&t, planted[fault].seed + n, fault);
	/* and it is that fault which was found */
	if (t.broken) {
		unsigned int broken = t.broken;
		char error[sizeof(t.error)];

		memcpy(error, t.error, sizeof(error));
		tree_run(&t, planted[fault].seed + n - 1, TREE_NO_FAULT);
		memcpy(t.error, error, sizeof(error));
		t.broken = t.broken ? 0 : broken;
	}
	tap_ok(t.broken, "tree: found: %s: T%u, seed %u: %s", planted[fault].name, t.broken, planted[fault].seed + n - 1,
	       t.broken ? t.error : "");
}

int main(int argc, char **argv)
{
	unsigned long long trees = argc > 1 ? strtoull(argv[1], NULL, 0) : 300;
	unsigned long long from = argc > 2 ? strtoull(argv[2], NULL, 0) : 1000;
	unsigned long long bad = 0, results = 0, late = 0, forgotten = 0, resets = 0, stales = 0, nans = 0, flat = 0;
	unsigned long long packets = 0, more = 0, deep = 0, inner_late = 0, inner_resets = 0;
	unsigned long long below_resets = 0, below_counted = 0;
	enum tree_fault fault = argc > 3 ? strtoul(argv[3], NULL, 0) : TREE_NO_FAULT;
	struct saina_global g = { .ip = htonl(0x0a000001), .mac = { 2, 0, 0, 0, 0, 1 } };

	oracle_init(&t.o, &g);
	for (unsigned long long n = 0; n < trees; n++) {
		tree_run(&t, from + n, fault);
		if (t.broken && bad++ < 10)
			tap_note("seed %llu: T%u: %s", from + n, t.broken, t.error);
		results += t.results;
		late += t.late;
		forgotten += t.forgotten;
		resets += t.resets;
		stales += t.stales;
		nans += t.nan_results;
		flat += t.flat;
		packets += t.packets;
		more += t.workers > 64;
		deep += t.levels > 2 ? t.results : 0;
		inner_late += t.inner_late;
		inner_resets += t.inner_resets;
		below_resets += t.below_resets;
		below_counted += t.below_counted;
	}
	tap_ok(!bad, "tree: T1 to T11 hold in %llu trees, not in %llu: %llu results, %llu packets", trees, bad, results, packets);
	tap_ok(late > results / 100 && forgotten && resets && stales && nans && flat && more,
	       "tree: hosts miss results (%llu, with a sum of theirs %llu), begin anew (%llu), workers are stale (%llu); "
	       "NaN (%llu), compared with one switch (%llu), of more than 64 workers (%llu trees)",
	       late, forgotten, resets, stales, nans, flat, more);
	tap_ok(deep > results / 5 && inner_late > 100 && inner_resets && below_resets,
	       "tree: of three or four levels: results (%llu), inner places miss some (%llu), begin anew (%llu), and so "
	       "do nodes below (%llu, with a sum that was counted %llu)",
	       deep, inner_late, inner_resets, below_resets, below_counted);
	for (int f = TREE_NO_FAULT + 1; argc < 4 && f < TREE_FAULTS; f++)
		find_planted(f);
	tree_exit(&t);
	return tap_done();
}
