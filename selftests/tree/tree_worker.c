// SPDX-License-Identifier: GPL-2.0-or-later
/* A worker of a simulated tree: what libsaina does, without its clocks. */
#include <string.h>
#include "tree.h"

static void new_round(struct tree_worker *w, uint32_t round)
{
	w->round = round;
	w->assigned = 0;
	w->res = w->sent = w->resend = w->pull = 0;
	memset(w->stamp, 0, sizeof(w->stamp));
}

void tree_worker_start(struct tree *t, struct tree_worker *w, uint64_t session, uint32_t round, bool join)
{
	w->life++;
	w->alive = true;
	w->stale = false;
	w->session = session;
	w->join = join;
	w->known = round;
	memset(w->buf, 0, sizeof(w->buf));
	new_round(w, round);
	w->slow = rng_chance(&t->rng, t->hurried ? 300 : 150) ? (t->hurried ? 970 : 800) : 0;
}

/* A result of the worker's round: is it counted? */
static void take(struct tree *t, struct tree_worker *w, const struct saina_hdr *h)
{
	uint32_t bit = 1u << h->segment;

	if (w->res & bit)
		return;
	w->res |= bit;
	tree_settle(t, w, h->round, h->segment, w->sent & bit && h->mask >> w->number & 1, "RESULT");
}

/* Results may come before the worker has begun the segment, or the round. */
static void receive_result(struct tree *t, struct tree_worker *w, const struct saina_hdr *h)
{
	if (h->round + 1 > w->known)
		w->known = h->round + 1;
	if (h->round < w->round || h->round - w->round >= TREE_RING)
		return;
	if (h->round == w->round && h->segment < w->assigned)
		return take(t, w, h);
	w->buf[h->round % TREE_RING][h->segment] = (struct tree_result){ .there = true, .round = h->round, .hdr = *h };
}

static void receive_stale(struct tree *t, struct tree_worker *w, const struct saina_hdr *h)
{
	uint32_t bit = 1u << h->segment;

	if (h->slot_round > w->known)
		w->known = h->slot_round;
	if (h->round != w->round)
		return;
	w->stale = true;
	if (h->segment >= w->assigned || w->res & bit)
		return;
	w->res |= bit;
	tree_settle(t, w, h->round, h->segment, w->sent & bit && h->aux == h->round + 1, "STALE");
}

static void receive_state(struct tree_worker *w, const struct saina_hdr *h, const struct saina_ask *ask)
{
	if (h->slot_round > w->known)
		w->known = h->slot_round;
	if (h->round != w->round)
		return;
	for (unsigned int s = 0; s < w->assigned; s++) {
		uint32_t bit = 1u << s;

		if (w->res & bit)
			continue;
		if ((ask->done | ask->due) & bit)
			w->pull |= bit;
		else if (!(ask->counted & bit) && w->sent & bit && ask->time > w->stamp[s])
			w->resend |= bit;
	}
}

void tree_worker_receive(struct tree *t, struct tree_worker *w, const struct saina_hdr *h, const uint8_t *body)
{
	struct saina_ask ask;

	/* it does not read what has come */
	if (!t->fair && rng_chance(&t->rng, w->slow))
		return;
	if (h->type == SAINA_MSG_RESULT) {
		receive_result(t, w, h);
	} else if (h->type == SAINA_MSG_STALE) {
		receive_stale(t, w, h);
	} else if (h->type == SAINA_MSG_ASK_REPLY) {
		memcpy(&ask, body, sizeof(ask));
		receive_state(w, h, &ask);
	}
}

static void say(struct tree *t, const struct tree_worker *w, int type, uint32_t round, uint32_t segment)
{
	struct saina_hdr h = { .type = type, .session = w->session, .round = round, .segment = segment };

	tree_send(t, w->place, w->number, &h, NULL, NULL);
}

static void send_gradient(struct tree *t, struct tree_worker *w, uint32_t s)
{
	uint16_t tag = w->id << 8 | w->life;
	struct saina_hdr h = {
		.type = SAINA_MSG_GRAD, .session = w->session, .round = w->round, .segment = s, .policy = w->life,
		.exponent = tree_exponent(t, tag, w->round, s),
	};
	int32_t v[TREE_ELEMS];

	for (unsigned int i = 0; i < TREE_ELEMS; i++)
		v[i] = tree_value(t, tag, w->round, s, i);
	w->resend &= ~(1u << s);
	w->sent |= 1u << s;
	w->stamp[s] = t->now;
	tree_send(t, w->place, w->number, &h, v, NULL);
}

/* The round cannot be had any more: what was counted of it?  Then the worker ends, with -ESTALE. */
static void end_stale(struct tree *t, struct tree_worker *w)
{
	struct tree_place *p = &t->place[w->place];
	uint32_t open = w->sent & ~w->res;

	for (unsigned int s = 0; s < TREE_SEGMENTS; s++)
		if (open >> s & 1)
			say(t, w, SAINA_MSG_PULL, w->round, s);
	if (open)
		return;
	t->stales++;
	if (p->conf.policy.mode == SAINA_POLICY_BSP && !tree_is_cut_off(t, w))
		tree_break(t, 10, "worker %u of place %u is stale in round %u, with bsp", w->id, w->place, w->round);
	w->alive = false;
	p->conf.active &= ~(1ull << w->number);
	p->conf.worker[w->number].flags = 0;
	tree_publish(t, w->place);
}

/* A worker that joins waits until the round before its first one is over, if anybody still does that. */
static bool catches_up(struct tree *t, struct tree_worker *w, bool timer)
{
	const struct saina_job_rt *rt = tree_rt(t, w->place);

	if (!w->join || rt->next_round > w->round || rt->next_round <= rt->base || tree_has_all(t, w->place, w->round - 1) ||
	    !tree_is_behind(t, 0, w->round)) {
		w->join = false;
		return false;
	}
	for (unsigned int s = 0; timer && s < t->segments; s++)
		say(t, w, SAINA_MSG_PULL, w->round - 1, s);
	return true;
}

static void take_early_results(struct tree *t, struct tree_worker *w)
{
	for (unsigned int s = 0; s < w->assigned; s++) {
		struct tree_result *e = &w->buf[w->round % TREE_RING][s];

		if (e->there && e->round == w->round)
			take(t, w, &e->hdr);
		e->there = false;
	}
}

static void repeat(struct tree *t, struct tree_worker *w)
{
	for (unsigned int s = 0; s < w->assigned; s++)
		if (!(w->res >> s & 1) && (w->pull >> s & 1 || w->known > w->round + 1))
			say(t, w, SAINA_MSG_PULL, w->round, s);
	w->pull = 0;
	say(t, w, SAINA_MSG_ASK, w->round, 0);
}

void tree_worker_step(struct tree *t, struct tree_worker *w, bool timer)
{
	unsigned int first, length, pool;
	uint32_t all;

	if (!w->alive || (!t->fair && rng_chance(&t->rng, w->slow)))
		return;
	if (w->stale)
		return end_stale(t, w);
	length = tree_length(t, w->round, &first);
	all = (1u << w->assigned) - 1;
	if ((w->res & all) == all && w->assigned < length && (t->fair || rng_chance(&t->rng, 500)))
		w->assigned = w->assigned ? length : first;
	take_early_results(t, w);
	all = (1u << w->assigned) - 1;
	if (w->assigned == length && (w->res & all) == all) {
		w->join = false;
		return new_round(w, w->round + 1);
	}
	if (catches_up(t, w, timer))
		return;
	pool = t->place[w->place].conf.pool;
	for (unsigned int s = 0; s < w->assigned; s++) {
		if (w->res >> s & 1 || (s >= pool && !(w->res >> (s - pool) & 1)))
			continue;
		if (!(w->sent >> s & 1) || w->resend >> s & 1)
			send_gradient(t, w, s);
	}
	if (timer)
		repeat(t, w);
}
