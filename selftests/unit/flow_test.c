// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whole jobs in the simulator (lib_sim.h), by the hundred, each from a seed of its own:
 *
 *   flow_test [SEEDS [FIRST]]	seeds of each kind (100), from FIRST on (1); from 50 on also rounds of 4 MiB
 *
 *   flow_test figures		rounds of 4 MiB with and without losses
 *
 * A failure names kind and seed; `flow_test 1 SEED` runs that one again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
	c.workers = pick(0, 15) ? pick(2, 6) : pick(7, 64);
	c.segments = pick(1, c.workers > 6 ? 20 : 60);
	c.pool = 1 << pick(1, 6);
	c.per_batch = pick(1, c.pool < 12 ? c.pool : 12);
	c.room = pick(1, 8);
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

static bool any_refused(const struct sim_result *r)
{
	return r->refused && r->late;
}

static bool any_stale(const struct sim_result *r)
{
	return r->late && r->pulled && r->stale;
}

static bool any_rejoin(const struct sim_result *r)
{
	return r->rejoined;
}

static bool any_mixed(const struct sim_result *r)
{
	return r->mixed && r->nan && r->late;
}

struct range {
	unsigned int from, to;
};

/* In what jobs of a kind differ from job(); losses and duplicates in percent. */
static const struct kind {
	const char *what;
	bool (*seen)(const struct sim_result *all);
	struct range loss, dup, burst_us, jitter_us, svc_us, slow_svc_us, host_ns, queue, slow_us;
	struct range rounds, kills, forgets, restarts, refuse;
	bool reorder, jump, lead;
} kinds[] = {
	{ "on a network without fault", any_late, .loss = { 0, 0 } },
	{ "with 1 to 20 % lost each way", any_loss, .loss = { 1, 20 } },
	{ "with losses in bursts", any_loss, .loss = { 1, 20 }, .burst_us = { 100, 5000 } },
	{ "with messages twice and out of order", any_loss, .loss = { 0, 5 }, .dup = { 1, 30 },
	  .jitter_us = { 100, 20000 }, .reorder = true },
	{ "with links that are too slow for the window", any_loss, .svc_us = { 10, 500 },
	  .queue = { 2, 20 } },
	{ "on a host with ever less processor time for the switch", any_late,
	  .host_ns = { 1000, 20000 } },
	{ "with one slow link", any_late, .svc_us = { 5, 20 }, .slow_svc_us = { 50, 500 } },
	{ "with a worker that is rounds behind", any_stale, .loss = { 0, 10 },
	  .slow_us = { 5000, 200000 }, .rounds = { 6, 20 } },
	{ "with a worker that is rounds behind and waited for: no round is gone", any_late,
	  .loss = { 0, 10 }, .slow_us = { 5000, 200000 }, .rounds = { 6, 20 }, .lead = true },
	{ "with workers that die and come back", any_rejoin, .loss = { 0, 10 },
	  .kills = { 1, 3 }, .rounds = { 20, 40 } },
	{ "with sessions that the agent loses", any_loss, .loss = { 0, 10 },
	  .forgets = { 1, 5 }, .rounds = { 10, 20 } },
	{ "with a switch that loses all it knows", any_stale, .loss = { 0, 10 },
	  .restarts = { 1, 2 }, .slow_us = { 0, 50000 }, .rounds = { 10, 20 } },
	{ "with float32 whose magnitudes jump by up to 2^60, and NaN", any_mixed, .loss = { 0, 10 },
	  .jump = true },
	{ "with such float32 and a worker that is rounds behind", any_mixed, .loss = { 0, 10 },
	  .slow_us = { 1000, 50000 }, .rounds = { 6, 20 }, .jump = true },
	{ "with kernels that refuse to send for a while", any_refused, .loss = { 0, 10 },
	  .refuse = { 1, 30 } },
};

static void choose(unsigned int *value, struct range r)
{
	if (r.to)
		*value = pick(r.from, r.to);
}

static void change(struct sim_conf *c, const struct kind *k)
{
	unsigned int loss = 0, dup = 0, refuse = 0;

	choose(&loss, k->loss);
	choose(&dup, k->dup);
	c->loss = loss / 100.0;
	c->dup = dup / 100.0;
	choose(&refuse, k->refuse);
	c->refuse = refuse / 100.0;
	choose(&c->burst_us, k->burst_us);
	choose(&c->jitter_us, k->jitter_us);
	choose(&c->svc_us, k->svc_us);
	choose(&c->slow_svc_us, k->slow_svc_us);
	choose(&c->host_ns, k->host_ns);
	choose(&c->queue, k->queue);
	choose(&c->slow_us, k->slow_us);
	choose(&c->rounds, k->rounds);
	choose(&c->kills, k->kills);
	choose(&c->forgets, k->forgets);
	choose(&c->restarts, k->restarts);
	c->reorder = k->reorder;
	c->jump = k->jump;
	c->lead = k->lead;
	if (c->jump)
		c->type = SAINA_FLOAT32;
}

#define LARGE_ROUNDS 6

/* Rounds of 4 MiB, 352 elements a message, on links of 1 Gb/s. */
static void large(unsigned int workers, double loss, struct sim_result *r)
{
	struct sim_conf c = { .seed = 1, .workers = workers, .k = workers, .segments = 2979,
		.pool = 512, .ring = 4, .rounds = LARGE_ROUNDS, .per_batch = 44, .room = 8, .buckets = 1,
		.type = SAINA_INT32, .delay_us = 50, .jitter_us = 10, .svc_us = 12, .loss = loss,
		.together = true };

	if (!sim_run(&c, r))
		printf("# %s\n", r->error);
}

static const unsigned int crowd[] = { 2, 4, 8 };

/* For people: what losses cost, `flow_test figures'. */
static int figures(void)
{
	static const double losses[] = { 0, 0.01, 0.05, 0.2 };

	for (unsigned int i = 0; i < 3; i++) {
		uint64_t clean = 0;

		for (unsigned int j = 0; j < 4; j++) {
			struct sim_result r;

			large(crowd[i], losses[j], &r);
			if (!j)
				clean = r.ns;
			printf("%u workers, %2.0f %% lost, messages in and batches out: %.1f ms a round (%.2f times), sent again %.1f %%, "
			       "pulled %.1f %%, asked %.1f %%\n",
			       crowd[i], 100 * losses[j], r.ns / 1e6 / LARGE_ROUNDS, (double)r.ns / clean,
			       100.0 * r.resent / r.sent, 100.0 * r.pulled / r.sent,
			       100.0 * r.asked / r.sent);
		}
	}
	return 0;
}

/* The time is the simulator's own: the same on every machine, whatever else it does. */
static bool large_rounds(unsigned int number)
{
	double worst = 0;

	for (unsigned int i = 0; i < 3; i++) {
		struct sim_result clean, lossy;
		double times;

		large(crowd[i], 0, &clean);
		large(crowd[i], 0.2, &lossy);
		times = (double)lossy.ns / clean.ns;
		if (clean.error[0] || lossy.error[0])
			times = 1000;
		printf("# %u workers: %.2f times\n", crowd[i], times);
		worst = times > worst ? times : worst;
	}
	printf("%sok %u - flow: where 20 %% are lost each way 4 MiB take at most 2.5 times as long, "
	       "with 2, 4 and 8 workers\n", worst <= 2.5 ? "" : "not ", number);
	return worst <= 2.5;
}

int main(int argc, char **argv)
{
	uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 0) : 100;
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	unsigned int n = sizeof(kinds) / sizeof(*kinds), failed = 0;
	bool with_large = seeds >= 50;

	if (argc > 1 && !strcmp(argv[1], "figures"))
		return figures();
	printf("1..%u\n", n + with_large);
	for (unsigned int i = 0; i < n; i++) {
		struct sim_result all = { 0 }, r;
		uint64_t bad = 0, rounds = 0;

		for (uint64_t seed = first; seed < first + seeds; seed++) {
			struct sim_conf c = job(seed);

			change(&c, &kinds[i]);
			if (!sim_run(&c, &r) && !bad++) {
				printf("# seed %llu: %s\n", (unsigned long long)seed, r.error);
				printf("#   %u workers, %u segments, batches of %u, pool %u, ring %u, %u rounds, k %u, "
				       "%u buckets, %s, loss %g\n",
				       c.workers, c.segments, c.per_batch, c.pool, c.ring, c.rounds, c.k, c.buckets,
				       c.type == SAINA_INT32 ? "int32" : "float32", c.loss);
			}
			all.sent += r.sent;
			all.resent += r.resent;
			all.pulled += r.pulled;
			all.asked += r.asked;
			all.ns += r.ns;
			rounds += c.rounds;
			all.late += r.late;
			all.stale += r.stale;
			all.lost += r.lost;
			all.refused += r.refused;
			all.results += r.results;
			all.rejoined += r.rejoined;
			all.mixed += r.mixed;
			all.nan += r.nan;
		}
		if (seeds >= 50 && !kinds[i].seen(&all) && !bad++)
			printf("# none of these jobs met what the test is about\n");
		printf("%sok %u - flow: sums are exact and equal, nothing is lost, all %llu jobs end: %s\n",
		       bad ? "not " : "", i + 1, (unsigned long long)seeds, kinds[i].what);
		printf("# sent %llu, again %llu (%.1f %%), pulled %llu, asked %llu, lost on the way %llu, results %llu, "
		       "late %llu, stale rounds %llu, joined again %u, mixed exponents %llu, NaN %llu, %.1f ms a round\n",
		       (unsigned long long)all.sent, (unsigned long long)all.resent,
		       100.0 * all.resent / all.sent,
		       (unsigned long long)all.pulled, (unsigned long long)all.asked,
		       (unsigned long long)all.lost, (unsigned long long)all.results,
		       (unsigned long long)all.late, (unsigned long long)all.stale, all.rejoined,
		       (unsigned long long)all.mixed, (unsigned long long)all.nan, all.ns / 1e6 / rounds);
		failed += bad != 0;
	}
	if (with_large)
		failed += !large_rounds(n + 1);
	return failed != 0;
}
