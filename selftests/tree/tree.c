// SPDX-License-Identifier: GPL-2.0-or-later
/* A simulated tree: how it is made of a seed, and how it runs. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include "tree.h"

unsigned int tree_length(const struct tree *t, uint32_t round, unsigned int *first)
{
	uint64_t h = rng_mix(t->seed + 977 * (uint64_t)round);
	unsigned int n = 1 + h % t->segments;

	*first = 1 + (h >> 8) % n;
	return n;
}

/* Is place @at @place, or below it? */
static bool is_under(const struct tree *t, unsigned int place, unsigned int at)
{
	while (at > place)
		at = tree_up(t, at);
	return at == place;
}

bool tree_is_under(const struct tree *t, unsigned int place, const struct tree_worker *w)
{
	return w->alive && is_under(t, place, w->place);
}

bool tree_is_cut_off(const struct tree *t, const struct tree_worker *w)
{
	for (unsigned int at = w->place; at && t->fault != TREE_CUT_OFF; at = tree_up(t, at))
		if (t->o.job[at].rt.base > w->round)
			return true;
	return false;
}

bool tree_is_behind(const struct tree *t, unsigned int place, uint32_t round)
{
	for (unsigned int i = 0; i < t->workers; i++)
		if (t->worker[i].round < round && tree_is_under(t, place, &t->worker[i]) && !tree_is_cut_off(t, &t->worker[i]))
			return true;
	return false;
}

bool tree_has(const struct tree *t, unsigned int place, uint32_t round, uint32_t segment)
{
	const struct oracle_job *j = &t->o.job[place];

	return tree_is_slot(&j->ring[segment * j->conf.ring + round % j->conf.ring], SAINA_SLOT_DONE, round, segment);
}

bool tree_has_all(const struct tree *t, unsigned int place, uint32_t round)
{
	unsigned int first, n = tree_length(t, round, &first);

	for (uint32_t s = 0; s < n; s++)
		if (!tree_has(t, place, round, s))
			return false;
	return true;
}

struct oracle_slot *tree_slot(struct tree *t, unsigned int place, uint32_t segment)
{
	struct oracle_job *j = &t->o.job[place];

	return &j->hot[segment % j->conf.pool];
}

bool tree_is_slot(const struct oracle_slot *h, unsigned int state, uint32_t round, uint32_t segment)
{
	return h->meta.state == state && h->meta.round == round && h->meta.segment == segment;
}

void tree_publish(struct tree *t, unsigned int place)
{
	oracle_job_publish(&t->o, &t->place[place].conf, 0);
}

static struct saina_policy some_policy(struct tree *t, bool root)
{
	struct saina_policy p = { .seq = 1, .mode = SAINA_POLICY_BSP, .late = SAINA_LATE_RESIDUAL };

	if (t->fault == TREE_LEAD && !root)
		p.lead = SAINA_LEAD_NONE;
	if (t->bsp || (!root && rng_chance(&t->rng, 400)))
		return p;
	if (t->hurried) {
		p.mode = SAINA_POLICY_FASTEST;
		p.k = 1;
		p.lead = SAINA_LEAD_NONE;
		t->unbounded = true;
		return p;
	}
	if (rng_chance(&t->rng, 600)) {
		p.lead = SAINA_LEAD_NONE;
		t->unbounded = true;
	}
	if (rng_chance(&t->rng, 500)) {
		p.mode = SAINA_POLICY_FASTEST;
		p.k = rng_range(&t->rng, 1, 2);
	} else {
		p.mode = SAINA_POLICY_TIMEOUT;
		p.k_min = 1;
		p.timeout_us = 500;
	}
	return p;
}

static void make_place(struct tree *t, unsigned int place)
{
	static uint32_t generation;
	struct tree_place *p = &t->place[place];
	struct saina_job_conf *c = &p->conf;

	/* of the last run nothing is left, also not its counters */
	oracle_job_remove(&t->o, place);
	c->generation = generation += 1000;
	c->job = place;
	c->state = SAINA_JOB_RUNNING;
	c->elem = SAINA_ELEM_INT32;
	c->payload = TREE_ELEMS;
	c->segments = t->segments;
	c->pool = 1u << rng_below(&t->rng, 3);
	c->ring = t->ring;
	c->sign_words = 1;
	c->group = htonl(SAINA_GROUP_BASE | place);
	c->policy = some_policy(t, !place);
	c->workers = SAINA_WORKERS_MAX;
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		struct saina_binding *b = &c->worker[w];

		b->ifindex = 1;
		b->ip = htonl(0x0a000100 + place * 256 + w);
		b->udp_port = htons(5000 + w);
		b->mac[0] = 2;
		b->mac[4] = place;
		b->mac[5] = w;
		t->worker_at[place][w] = -1;
	}
}

static void add_worker(struct tree *t, unsigned int place)
{
	struct tree_place *p = &t->place[place];
	struct tree_worker *w = &t->worker[t->workers];

	/* one number is the uplink's, or the agent's at the root */
	if (t->workers == TREE_WORKERS || p->members == SAINA_WORKERS_MAX - 1)
		return;
	w->id = t->workers;
	w->place = place;
	w->number = p->members;
	t->worker_at[place][p->members++] = t->workers++;
}

static unsigned int some_workers(struct tree *t)
{
	if (rng_chance(&t->rng, 60))
		return rng_range(&t->rng, 16, 63);
	return rng_range(&t->rng, 1, 4);
}

/* Of the place and below it, whether they live or not. */
static unsigned int workers_under(const struct tree *t, unsigned int place)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < t->workers; i++)
		n += is_under(t, place, t->worker[i].place);
	return n;
}

/* All have been admitted, to round 0. */
static void form(struct tree *t)
{
	for (unsigned int i = 0; i < t->places; i++) {
		struct tree_place *p = &t->place[i];

		for (unsigned int w = 0; w < p->members; w++) {
			p->conf.active |= 1ull << w;
			p->conf.worker[w].session = ++t->sessions;
			p->conf.worker[w].flags = SAINA_BIND_BOUND;
			if (t->worker_at[i][w] >= 0)
				tree_worker_start(t, &t->worker[t->worker_at[i][w]], t->sessions, 0, false);
		}
		if (i) {
			unsigned int weight = workers_under(t, i);

			p->uplink = p->members;
			p->conf.uplink = 1ull << p->uplink;
			p->conf.worker[p->uplink].max_weight = t->workers + 1;
			/* one of 1 would be a worker, and may not ask while it is not active */
			t->place[p->parent].conf.worker[p->node].max_weight = weight > 1 ? weight : 2;
			p->incarnation = ++t->incarnations;
			tree_relay_start(&p->relay);
		}
	}
	for (unsigned int i = 0; i < t->places; i++)
		oracle_job_publish(&t->o, &t->place[i].conf, 0);
	for (unsigned int i = 1; i < t->places; i++)
		t->place[tree_up(t, i)].conf.worker[t->place[i].node].session = 0;
	for (unsigned int i = 1; i < t->places; i++)
		tree_bind(t, i);
}

/* Which place is below which: the first ones are as deep as there are levels. */
static void make_levels(struct tree *t)
{
	unsigned int level[TREE_PLACES] = {}, dice = t->seed >> 32 & 0xff;

	t->levels = dice < 128 ? 2 : dice < 136 ? 1 : dice < 200 ? 3 : 4;
	if (t->levels < 3)
		t->places = t->levels == 1 ? 1 : 1 + rng_range(&t->rng, 2, 4);
	else
		t->places = rng_range(&t->rng, t->levels, TREE_PLACES);
	for (unsigned int i = 1; i < t->places; i++) {
		struct tree_place *p = &t->place[i];

		p->parent = i < t->levels ? i - 1 : 0;
		if (i >= t->levels && t->levels > 2)
			do
				p->parent = rng_below(&t->rng, i);
			while (level[p->parent] == t->levels - 1);
		level[i] = level[p->parent] + 1;
		t->place[p->parent].inner = true;
		p->node = t->place[p->parent].members++;
	}
}

static void make(struct tree *t, uint64_t seed, enum tree_fault fault)
{
	struct rng *r = &t->rng;

	memset(t->place, 0, sizeof(t->place));
	memset(t->worker, 0, sizeof(t->worker));
	memset(t->truth, 0, sizeof(t->truth));
	memset(&t->seed, 0, (char *)&t->place - (char *)&t->seed);
	t->results = t->up_first = t->late = t->forgotten = t->packets = t->resets = t->stales = t->nan_results = t->flat = 0;
	t->inner_late = t->inner_resets = t->below_resets = t->below_counted = 0;
	t->tolds = t->broken = 0;
	t->o.now = 1;
	rng_seed(r, seed);
	t->seed = rng_mix(seed);
	t->fault = fault;
	t->bsp = seed % 4 != 3;
	t->hurried = seed % 8 == 3;
	t->no_faults = seed % 8 == 0;
	t->mixed = rng_chance(r, 400);
	t->nans = rng_chance(r, 300);
	t->loss = (unsigned int[]){ 0, 10, 50, 200 }[rng_below(r, 4)];
	t->ring = 2u << rng_below(r, 3);
	t->segments = rng_chance(r, 500) ? rng_range(r, 1, TREE_SEGMENTS) : TREE_SEGMENTS;
	t->batch = rng_range(r, 2, 4);
	make_levels(t);
	for (unsigned int i = 0; i < t->places; i++)
		make_place(t, i);
	for (unsigned int i = 1; i < t->places; i++)
		if (!t->place[i].inner || rng_chance(r, 600))
			for (unsigned int n = some_workers(t); n; n--)
				add_worker(t, i);
	for (unsigned int n = t->levels == 1 ? some_workers(t) : rng_chance(r, 300); n; n--)
		add_worker(t, 0);
	form(t);
}

static void turn(struct tree *t)
{
	unsigned int dice = rng_below(&t->rng, 1000);

	t->now++;
	if (t->msgs && dice < 550) {
		for (unsigned int n = 1 + t->workers / 8; n && t->msgs; n--)
			tree_deliver(t, rng_below(&t->rng, t->msgs));
	} else if (dice < 750) {
		for (unsigned int n = 1 + t->workers / 8; n; n--)
			tree_worker_step(t, &t->worker[rng_below(&t->rng, t->workers)], rng_chance(&t->rng, 300));
	} else if (dice < 970) {
		for (unsigned int n = t->places < 2 ? 0 : t->levels < 3 ? 1 : 2; n; n--)
			tree_relay_step(t, rng_range(&t->rng, 1, t->places - 1), rng_chance(&t->rng, 300));
	} else {
		tree_fault(t);
	}
}

static bool have_all_reached(const struct tree *t, uint32_t goal)
{
	bool any = false;

	/* without a lead the others do not wait for those that begin anew */
	if (t->unbounded)
		return t->o.job[0].rt.next_round >= goal;
	for (unsigned int i = 0; i < t->workers; i++) {
		if (t->worker[i].alive && t->worker[i].round < goal)
			return false;
		any |= t->worker[i].alive;
	}
	return any;
}

/* T10: without loss and new faults, all goes on. */
static void be_fair(struct tree *t)
{
	uint32_t goal = 0;

	t->fair = true;
	for (unsigned int i = 0; i < t->places; i++) {
		t->place[i].link_down = false;
		if (tree_rt(t, i)->next_round + 2 > goal)
			goal = tree_rt(t, i)->next_round + 2;
	}
	for (unsigned int i = 0; i < t->workers; i++)
		if (t->worker[i].alive && t->worker[i].round + 4 > goal)
			goal = t->worker[i].round + 4;
	for (unsigned int n = 0; n < 1000 && !t->broken; n++) {
		t->now++;
		if (!t->bsp)
			t->o.now += 100000;
		for (unsigned int i = 1; i < t->places; i++)
			if (!t->place[i].relay.alive)
				tree_relay_start(&t->place[i].relay);
		tree_revive(t);
		for (unsigned int i = 0; i < t->workers; i++)
			tree_worker_step(t, &t->worker[i], n % 3 == 0);
		for (unsigned int i = 1; i < t->places; i++)
			tree_relay_step(t, i, n % 3 == 0);
		for (unsigned int k = t->msgs; k && t->msgs && !t->broken; k--)
			tree_deliver(t, rng_below(&t->rng, t->msgs));
		if (have_all_reached(t, goal))
			return;
	}
	tree_break(t, 10, "it goes on no more, %u rounds before round %u", goal - tree_rt(t, 0)->next_round, goal);
}

void tree_run(struct tree *t, uint64_t seed, enum tree_fault fault)
{
	make(t, seed, fault);
	for (unsigned int n = 0, turns = rng_range(&t->rng, 300, 3000); n < turns && !t->broken; n++)
		turn(t);
	if (!t->broken)
		be_fair(t);
	if (!t->broken)
		tree_check_end(t);
	tree_net_clear(t);
}

void tree_exit(struct tree *t)
{
	tree_net_clear(t);
	free(t->msg);
	free(t->told);
	t->msg = NULL;
	t->told = NULL;
	oracle_exit(&t->o);
}
