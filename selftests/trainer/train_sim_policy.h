/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A policy of the simulation.  To add one, add its words to train_sim_policy.c, and a
 * function next() if it changes k.
 */
#ifndef EXAMPLES_TRAIN_SIM_POLICY_H
#define EXAMPLES_TRAIN_SIM_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "../../tools/saina/dbw.h"
#include "../../tools/saina/deadline.h"

/**
 * struct sim_seen - a round as the aggregator sees it
 * @decided_ms: when the round was decided
 * @arrival_ms: of each worker's gradient, also of one that came after the decision; INFINITY: none
 * @flips, @observed: of the sampled signs of the sum, against the round before; 0 in the first
 */
struct sim_seen {
	uint32_t round;
	double decided_ms;
	const double *arrival_ms;
	uint64_t flips, observed;
};

/**
 * struct sim_policy - when a round is complete, and what becomes of late gradients
 * @k, @k_min, @timeout_ms: a round ends with the k-th gradient, or @timeout_ms after its first one
 *	(0: never) if @k_min are there
 * @steps, @window, @groups: not rounds, but steps: at most @window ahead of the slowest, or a
 *	barrier in each of @groups (0: none)
 * @next: changes the policy after each round; NULL: it stays
 * @keep: of a late gradient, and of what was kept before, the share that is kept for the next
 *	contribution: 1 is late=residual, 0 late=drop.  The data path has nothing between them
 * @fresh: late gradients are computed anew on the model that they are added to: late=residual
 *	without staleness.  The data path has no such thing either
 * @mean_all: sums are divided by the gradients in them instead of by the workers counted
 */
struct sim_policy {
	int workers, k, k_min, k_max;
	double timeout_ms;
	bool steps;
	double window;
	int groups;
	double keep;
	bool fresh, mean_all;
	void (*next)(struct sim_policy *p, const struct sim_seen *seen);
	/* of SFCD */
	bool cth_k;
	int c_th, stride, converged;
	double s_th;
	/* of `saina policy control': what it has measured and since when, and its gradient noise scale */
	struct arrivals arrivals;
	double since_ms, noise;
	/* .. of k: when it tries a higher one */
	struct dbw_trials trials;
	/* .. of @timeout_ms and @k_min */
	struct deadline deadline;
};

/*
 * Parses @text: a policy as `saina job' takes it, or one with keep, late=fresh or mean.  With
 * noise=X policy timeout has a controller, as external always has.  0 or -EINVAL.
 */
int sim_policy_parse(const char *text, int workers, struct sim_policy *p);

#endif /* EXAMPLES_TRAIN_SIM_POLICY_H */
