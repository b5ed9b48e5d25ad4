// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whole jobs in the simulator (lib_sim.h), by the hundred, each from a seed of its own:
 *
 *   flow_test [SEEDS [FIRST]]	seeds of each kind (100), from FIRST on (1)
 *
 * A failure names kind and seed; `flow_test 1 SEED` runs that one again.
 */
#include <stdio.h>
#include <stdlib.h>
#include "lib/rng.h"
#include "lib_sim.h"

static uint64_t rng;

static unsigned int pick(unsigned int from, unsigned int to)
{
	return from + rng_next(&rng) % (to - from + 1);
}

/* A job on a network without fault. */
static struct sim_conf job(uint64_t seed)
{
	struct sim_conf c = { .seed = seed };

	rng = seed;
	c.workers = pick(2, 6);
	c.segments = pick(1, 40);
	c.pool = 1 << pick(1, 5);
	c.ring = 1 << pick(1, 3);
	c.rounds = pick(3, 8);
	c.k = pick(0, 1) ? c.workers : pick(1, c.workers);
	c.buckets = c.segments >= 9 ? pick(1, 3) : 1;
	c.type = pick(0, 2) ? SAINA_INT32 : SAINA_FLOAT32;
	c.drop_late = !pick(0, 5);
	c.delay_us = pick(20, 500);
	c.jitter_us = 10;
	c.think_us = pick(0, 4000);
	return c;
}

/* Did it come to what the kind is about? */
static bool any_late(const struct sim_result *r)
{
	return r->late;
}

static bool any_loss(const struct sim_result *r)
{
	return r->lost && r->resent && r->pulled;
}

static bool any_stale(const struct sim_result *r)
{
	return r->late && r->pulled && r->stale;
}

static bool any_rejoin(const struct sim_result *r)
{
	return r->rejoined;
}

struct range {
	unsigned int from, to;
};

/* In what jobs of a kind differ from job(); losses and duplicates in percent. */
static const struct kind {
	const char *what;
	bool (*seen)(const struct sim_result *all);
	struct range loss, dup, burst, jitter_us, svc_us, queue, slow_us, rounds, ring;
	struct range kills, forgets, restarts;
} kinds[] = {
	{ "on a network without fault", any_late, .loss = { 0, 0 } },
	{ "with 1 to 20 % lost each way", any_loss, .loss = { 1, 20 } },
	{ "with losses in bursts", any_loss, .loss = { 1, 20 }, .burst = { 2, 30 } },
	{ "with messages twice and out of order", any_loss, .loss = { 0, 5 }, .dup = { 1, 30 },
	  .jitter_us = { 100, 20000 } },
	{ "with links that are too slow for the window", any_loss, .svc_us = { 10, 500 },
	  .queue = { 2, 20 } },
	{ "with a worker that is rounds behind", any_stale, .loss = { 0, 10 },
	  .slow_us = { 5000, 200000 }, .rounds = { 6, 20 } },
	/* The ring keeps all rounds: a model cannot come from a peer, as all peers may be dead,
	 * and a round that one of them left unfinished would be waited for in vain.
	 */
	{ "with workers that die and come back", any_rejoin, .loss = { 0, 10 },
	  .kills = { 1, 3 }, .rounds = { 20, 40 }, .ring = { 64, 64 } },
	{ "with sessions that the agent loses", any_loss, .loss = { 0, 10 },
	  .forgets = { 1, 5 }, .rounds = { 10, 20 } },
	{ "with a switch that loses all it knows", any_stale, .loss = { 0, 10 },
	  .restarts = { 1, 2 }, .slow_us = { 0, 50000 }, .rounds = { 10, 20 } },
};

static void choose(unsigned int *value, struct range r)
{
	if (r.to)
		*value = pick(r.from, r.to);
}

static void change(struct sim_conf *c, const struct kind *k)
{
	unsigned int loss = 0, dup = 0;

	choose(&loss, k->loss);
	choose(&dup, k->dup);
	c->loss = loss / 100.0;
	c->dup = dup / 100.0;
	choose(&c->burst, k->burst);
	choose(&c->jitter_us, k->jitter_us);
	choose(&c->svc_us, k->svc_us);
	choose(&c->queue, k->queue);
	choose(&c->slow_us, k->slow_us);
	choose(&c->rounds, k->rounds);
	choose(&c->ring, k->ring);
	choose(&c->kills, k->kills);
	choose(&c->forgets, k->forgets);
	choose(&c->restarts, k->restarts);
}

int main(int argc, char **argv)
{
	uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 0) : 100;
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	unsigned int n = sizeof(kinds) / sizeof(*kinds), failed = 0;

	printf("1..%u\n", n);
	for (unsigned int i = 0; i < n; i++) {
		struct sim_result all = { 0 }, r;
		uint64_t bad = 0;

		for (uint64_t seed = first; seed < first + seeds; seed++) {
			struct sim_conf c = job(seed);

			change(&c, &kinds[i]);
			if (!sim_run(&c, &r) && !bad++) {
				printf("# seed %llu: %s\n", (unsigned long long)seed, r.error);
				printf("#   %u workers, %u segments, pool %u, ring %u, %u rounds, k %u, "
				       "%u buckets, %s, loss %g\n",
				       c.workers, c.segments, c.pool, c.ring, c.rounds, c.k, c.buckets,
				       c.type == SAINA_INT32 ? "int32" : "float32", c.loss);
			}
			all.sent += r.sent;
			all.resent += r.resent;
			all.pulled += r.pulled;
			all.late += r.late;
			all.stale += r.stale;
			all.lost += r.lost;
			all.results += r.results;
			all.rejoined += r.rejoined;
		}
		if (seeds >= 50 && !kinds[i].seen(&all) && !bad++)
			printf("# none of these jobs met what the test is about\n");
		printf("%sok %u - flow: sums are exact and equal, nothing is lost, all %llu jobs end: %s\n",
		       bad ? "not " : "", i + 1, (unsigned long long)seeds, kinds[i].what);
		printf("# sent %llu, again %llu, pulled %llu, lost on the way %llu, results %llu, late %llu, "
		       "stale rounds %llu, joined again %u\n",
		       (unsigned long long)all.sent, (unsigned long long)all.resent,
		       (unsigned long long)all.pulled, (unsigned long long)all.lost,
		       (unsigned long long)all.results, (unsigned long long)all.late,
		       (unsigned long long)all.stale, all.rejoined);
		failed += bad != 0;
	}
	return failed != 0;
}
