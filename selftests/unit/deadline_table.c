// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Prints what the rules of controllers earn in simulated jobs (deadline_sim.h): reward per time
 * relative to the best fixed k, mean of the seeds, for each pattern of stalls. Rewards are those of
 * arrivals_gain() with noise = workers, then the number of gradients.
 *
 *	deadline_table [WORKERS [ROUNDS [SEEDS]]]
 */
#include <stdio.h>
#include <stdlib.h>

#include "deadline_sim.h"

static unsigned int n = 16, rounds = 2000, seeds = 5;

static double rate(enum sim_rule rule, enum sim_pattern pattern, enum sim_manner manner, unsigned int k, double noise)
{
	double sum = 0;

	for (unsigned int seed = 1; seed <= seeds; seed++) {
		struct sim s;

		sim_init(&s, pattern, manner, n, seed);
		sum += sim_play(&s, rule, k, noise, rounds).rate;
	}
	return sum / seeds;
}

static void print_row(enum sim_pattern pattern, enum sim_manner manner, double noise)
{
	double fixed[SAINA_WORKERS_MAX + 1];
	unsigned int best = 1;

	for (unsigned int k = 1; k <= n; k++) {
		fixed[k] = rate(SIM_FIXED_K, pattern, manner, k, noise);
		if (fixed[k] > fixed[best])
			best = k;
	}
	printf("%-12s%-26s%6u", sim_manner_name[manner], sim_pattern_name[pattern], best);
	for (unsigned int k = 1; k <= n; k++)
		printf("%5.2f", fixed[k] / fixed[best]);
	for (enum sim_rule r = SIM_HAND; r <= SIM_DEADLINE; r++)
		printf("%8.2f", rate(r, pattern, manner, 0, noise) / fixed[best]);
	printf("\n");
}

int main(int argc, char **argv)
{
	n = argc > 1 ? strtoul(argv[1], NULL, 10) : n;
	rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : rounds;
	seeds = argc > 3 ? strtoul(argv[3], NULL, 10) : seeds;
	if (n < 2 || n > SAINA_WORKERS_MAX || !rounds || !seeds || argc > 4) {
		fprintf(stderr, "usage: deadline_table [WORKERS [ROUNDS [SEEDS]]], 2 to %d workers\n", SAINA_WORKERS_MAX);
		return 2;
	}
	for (int linear = 0; linear < 2; linear++) {
		printf("%s; %u workers, %u rounds, %u seeds\n%-12s%-26s%6s", linear ? "number of gradients" : "gain, noise = workers",
		       n, rounds, seeds, "late", "pattern", "best k");
		for (unsigned int k = 1; k <= n; k++)
			printf("%5u", k);
		printf("%8s%8s%9s\n", "hand T", "dbw", "deadline");
		for (int manner = 0; manner < SIM_MANNERS; manner++)
			for (int pattern = 0; pattern < SIM_PATTERNS; pattern++)
				if (manner != SIM_STALL || sim_has_stalls(pattern))
					print_row(pattern, manner, linear ? 1e6 : n);
	}
	return 0;
}
