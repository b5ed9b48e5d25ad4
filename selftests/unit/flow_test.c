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
#include "lib_sim.h"

static uint64_t rng;

static unsigned int pick(unsigned int from, unsigned int to)
{
	uint64_t z = (rng += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return from + (z ^ (z >> 31)) % (to - from + 1);
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

static void clean(struct sim_conf *c)
{
}

static void lossy(struct sim_conf *c)
{
	c->loss = pick(1, 20) / 100.0;
}

static void bursts(struct sim_conf *c)
{
	c->loss = pick(1, 20) / 100.0;
	c->burst = pick(2, 30);
}

static void disorder(struct sim_conf *c)
{
	c->loss = pick(0, 5) / 100.0;
	c->dup = pick(1, 30) / 100.0;
	c->jitter_us = pick(100, 20000);
}

static void overload(struct sim_conf *c)
{
	c->svc_us = pick(10, 500);
	c->queue = pick(2, 20);
}

static void straggler(struct sim_conf *c)
{
	c->loss = pick(0, 10) / 100.0;
	c->slow_us = pick(5000, 200000);
	c->rounds = pick(6, 20);
}

static void deaths(struct sim_conf *c)
{
	c->loss = pick(0, 10) / 100.0;
	c->kills = pick(1, 3);
	c->rounds = pick(20, 40);
	/* Nobody needs a model from a peer: all peers may be dead, and then a round that
	 * one of them has left unfinished is waited for in vain.
	 */
	c->ring = 64;
}

static void forgotten(struct sim_conf *c)
{
	c->loss = pick(0, 10) / 100.0;
	c->forgets = pick(1, 5);
	c->rounds = pick(10, 20);
}

static void restarts(struct sim_conf *c)
{
	c->loss = pick(0, 10) / 100.0;
	c->restarts = pick(1, 2);
	c->slow_us = pick(0, 1) ? pick(1000, 50000) : 0;
	c->rounds = pick(10, 20);
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

static const struct {
	void (*change)(struct sim_conf *c);
	const char *what;
	bool (*seen)(const struct sim_result *all);
} kinds[] = {
	{ clean, "on a network without fault", any_late },
	{ lossy, "with 1 to 20 % lost each way", any_loss },
	{ bursts, "with losses in bursts", any_loss },
	{ disorder, "with messages twice and out of order", any_loss },
	{ overload, "with links that are too slow for the window", any_loss },
	{ straggler, "with a worker that is rounds behind", any_stale },
	{ deaths, "with workers that die and come back", any_rejoin },
	{ forgotten, "with sessions that the agent loses", any_loss },
	{ restarts, "with a switch that loses all it knows", any_stale },
};

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

			kinds[i].change(&c);
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
