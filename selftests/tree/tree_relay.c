// SPDX-License-Identifier: GPL-2.0-or-later
/* The relay of a place in a simulated tree: sums go up as gradients of a node, results come down. */
#include <string.h>
#include "tree.h"

void tree_relay_start(struct tree_relay *r)
{
	memset(r, 0, sizeof(*r));
	r->alive = true;
}

static struct tree_result *result_of(struct tree_relay *r, uint32_t round, uint32_t segment)
{
	struct tree_result *e = &r->res[round % TREE_RING][segment];

	return e->there && e->round == round ? e : NULL;
}

static bool is_counted(const struct tree *t, unsigned int place, const struct tree_result *e)
{
	return e->hdr.mask >> t->place[place].node & 1;
}

static void advance(struct tree_relay *r, uint32_t round)
{
	r->round = round;
	r->sent = r->resend = r->ask_for = r->injected = r->confirmed = r->aux_known = r->due = 0;
	r->asked = false;
}

/*
 * Has the parent gone so far that it may have lost results of the relay's round?  Then what it calls done
 * is not all that was: entries of segments that later rounds have not are the last to go.
 */
static bool is_too_old(const struct tree *t, const struct tree_relay *r)
{
	return t->fault != TREE_OLD && r->asked && r->parent_next > r->round + t->ring;
}

void tree_relay_from_parent(struct tree *t, unsigned int place, const struct saina_hdr *h, const uint8_t *body)
{
	struct tree_relay *r = &t->place[place].relay;
	struct saina_ask ask;

	if (h->type == SAINA_MSG_RESULT) {
		struct tree_result *e = &r->res[h->round % TREE_RING][h->segment];

		if (h->round + 1 > r->known)
			r->known = h->round + 1;
		if (h->round < r->round || h->round - r->round >= t->ring || result_of(r, h->round, h->segment))
			return;
		*e = (struct tree_result){ .there = true, .round = h->round, .hdr = *h };
		memcpy(e->sum, body, sizeof(e->sum));
		return;
	}
	if (h->type != SAINA_MSG_STALE && h->type != SAINA_MSG_ASK_REPLY)
		return;
	if (h->slot_round > r->known)
		r->known = h->slot_round;
	if (h->round != r->round)
		return;
	if (h->type == SAINA_MSG_STALE) {
		/*
		 * What it says of a segment that has a result is that the others are gone, too.  In a place
		 * without members there are none, but nobody takes it to a later round either.
		 */
		r->asked = true;
		r->parent_done = 0;
		r->parent_next = h->slot_round;
		if (result_of(r, h->round, h->segment) && (tree_has_members(t, place) || !is_too_old(t, r)))
			return;
		r->aux_known |= 1u << h->segment;
		r->aux[h->segment] = h->aux;
		r->stale_next = h->slot_round;
		return;
	}
	memcpy(&ask, body, sizeof(ask));
	r->asked = true;
	r->parent_done = ask.done;
	r->parent_next = h->slot_round;
	for (unsigned int s = 0; s < t->segments; s++) {
		uint32_t bit = 1u << s;

		if (result_of(r, r->round, s))
			continue;
		if ((ask.done | ask.due) & bit)
			r->ask_for |= bit;
		else if (!(ask.counted & bit) && r->sent & bit && ask.time > r->sent_at[s])
			r->resend |= bit;
	}
}

void tree_relay_from_place(struct tree *t, unsigned int place, const struct saina_hdr *h, const uint8_t *body)
{
	struct tree_relay *r = &t->place[place].relay;
	struct saina_ask ask;

	/* a result of the place's life before may come late */
	if (!r->has_round || h->round != r->round)
		return;
	if (h->type == SAINA_MSG_RESULT) {
		r->confirmed |= 1u << h->segment;
	} else if (h->type == SAINA_MSG_ASK_REPLY) {
		memcpy(&ask, body, sizeof(ask));
		for (unsigned int s = 0; s < t->segments; s++) {
			/* its workers that would pull may be dead */
			if (ask.due >> s & 1)
				r->due |= 1u << s;
			if (ask.done >> s & 1)
				r->confirmed |= 1u << s;
			else if (r->injected >> s & 1 && ask.time > r->injected_at[s])
				r->injected &= ~(1u << s);
		}
	}
}

/* A message to the parent, or to the relay's own job. */
static void say(struct tree *t, unsigned int place, bool up, int type, uint32_t round, uint32_t segment)
{
	const struct tree_place *p = &t->place[place];
	struct saina_hdr h = {
		.type = type, .round = round, .segment = segment, .session = up ? p->relay.parent : p->relay.local,
	};

	tree_send(t, up ? p->parent : place, up ? p->node : p->uplink, &h, NULL, NULL);
}

static bool is_away(struct tree *t, unsigned int place, uint32_t round, uint32_t segment)
{
	return tree_is_slot(tree_slot(t, place, segment), SAINA_SLOT_AWAY, round, segment);
}

/* T1: each sending of a slot has the same bits; T9: it is less than what members sent for it. */
static void check_sending(struct tree *t, unsigned int place, const struct saina_hdr *h, const int32_t *sum,
			  const struct oracle_slot *slot)
{
	struct tree_place *p = &t->place[place];
	uint32_t hash = rng_mix(h->slot_round ^ (uint64_t)(uint8_t)h->exponent << 32);

	for (unsigned int i = 0; i < TREE_ELEMS; i++)
		hash = rng_mix(hash ^ (uint64_t)(uint32_t)sum[i] << 20);
	if (p->sent[h->round][h->segment].there && p->sent[h->round][h->segment].incarnation == p->incarnation) {
		if (p->sent[h->round][h->segment].hash != hash)
			tree_break(t, 1, "place %u, round %u segment %u: another sum than before goes up", place, h->round, h->segment);
		return;
	}
	p->sent[h->round][h->segment].there = true;
	p->sent[h->round][h->segment].incarnation = p->incarnation;
	p->sent[h->round][h->segment].hash = hash;
	t->up_first++;
	if (!slot->in->n)
		tree_break(t, 9, "place %u, round %u segment %u: a sum of nothing goes up", place, h->round, h->segment);
}

static void send_up(struct tree *t, unsigned int place, uint32_t s)
{
	struct tree_place *p = &t->place[place];
	struct tree_relay *r = &p->relay;
	const struct oracle_slot *slot = tree_slot(t, place, s);
	int32_t sum[TREE_ELEMS];
	struct saina_hdr h = {
		.type = SAINA_MSG_GRAD, .round = r->round, .segment = s, .session = r->parent, .exponent = slot->meta.exponent,
		.slot_round = slot->meta.count + slot->weight - 1,
	};

	memcpy(sum, slot->sum, sizeof(sum));
	if (h.exponent == SAINA_EXPONENT_NAN)
		memset(sum, 0, sizeof(sum));
	if (p->torn[s] && h.exponent != SAINA_EXPONENT_NAN)
		memcpy(sum, p->torn_sum[s], sizeof(sum));
	p->torn[s] = false;
	r->resend &= ~(1u << s);
	r->sent |= 1u << s;
	r->sent_at[s] = t->now;
	check_sending(t, place, &h, sum, slot);
	tree_send(t, p->parent, p->node, &h, sum, &p->in[s % p->conf.pool]);
}

/* TREE_FULL: are all the slots of the batch that the segment is in AWAY? */
static bool is_full(struct tree *t, unsigned int place, uint32_t s)
{
	struct tree_relay *r = &t->place[place].relay;
	unsigned int pool = t->place[tree_up(t, place)].conf.pool;
	unsigned int n = t->batch < pool ? t->batch : pool, from = s / n * n;

	for (unsigned int i = from; i < from + n && i < t->segments; i++)
		if (!is_away(t, place, r->round, i) && !(r->sent >> i & 1) && !result_of(r, r->round, i))
			return false;
	return true;
}

static void up(struct tree *t, unsigned int place)
{
	struct tree_relay *r = &t->place[place].relay;
	unsigned int pool = t->place[tree_up(t, place)].conf.pool;

	for (unsigned int s = 0; s < t->segments; s++) {
		if (!is_away(t, place, r->round, s) || result_of(r, r->round, s))
			continue;
		/* a relay that has come back knows by the own ring that there was a result */
		if (s >= pool && !result_of(r, r->round, s - pool) && !(r->confirmed >> (s - pool) & 1))
			continue;
		if (r->sent >> s & 1 && !(r->resend >> s & 1))
			continue;
		if (t->fault != TREE_FULL || is_full(t, place, s))
			send_up(t, place, s);
	}
}

static void send_down(struct tree *t, unsigned int place, const struct tree_result *e)
{
	struct tree_place *p = &t->place[place];
	uint32_t s = e->hdr.segment, workers = e->hdr.contributors + e->hdr.slot_round;
	bool counted = is_counted(t, place, e);
	unsigned int own = counted && is_away(t, place, e->round, s) ? tree_slot(t, place, s)->meta.count : 0;
	struct saina_hdr h = {
		.type = SAINA_MSG_GRAD, .round = e->round, .segment = s, .session = p->relay.local, .exponent = e->hdr.exponent,
		.slot_round = t->fault == TREE_SLOT_ROUND ? workers - 1 : workers - own,
		.flags = (counted || t->fault == TREE_NOT_LATE ? 0 : SAINA_F_LATE) |
			 (e->hdr.flags & (SAINA_F_DEGRADED | SAINA_F_DROP_LATE)),
	};

	p->relay.injected |= 1u << s;
	p->relay.injected_at[s] = t->now;
	tree_send(t, place, p->uplink, &h, e->sum, NULL);
}

static void down(struct tree *t, unsigned int place)
{
	struct tree_place *p = &t->place[place];
	struct tree_relay *r = &p->relay;

	for (unsigned int s = 0; s < t->segments; s++) {
		const struct tree_result *e = result_of(r, r->round, s);

		if (!e || (r->confirmed | r->injected) >> s & 1)
			continue;
		if (s < p->conf.pool || r->confirmed >> (s - p->conf.pool) & 1)
			send_down(t, place, e);
	}
}

/* Has the place all that the parent has of the relay's round, which is over there? */
static bool is_over(struct tree *t, unsigned int place)
{
	struct tree_relay *r = &t->place[place].relay;
	bool later = false;

	for (unsigned int i = 0; i < TREE_RING; i++)
		for (unsigned int s = 0; s < t->segments; s++)
			later |= r->res[i][s].there && r->res[i][s].round > r->round;
	if (!later && r->known <= r->round + 1)
		return false;
	for (unsigned int s = 0; s < t->segments; s++)
		if (result_of(r, r->round, s) && !(r->confirmed >> s & 1))
			return false;
	if (tree_rt(t, place)->open_slots || tree_rt(t, place)->next_round != r->round + 1)
		return false;
	if (t->fault == TREE_LENGTH)
		return later;
	if (!r->asked || r->parent_next <= r->round + 1 || is_too_old(t, r))
		return false;
	for (unsigned int s = 0; s < t->segments; s++)
		if (r->parent_done >> s & 1 && !result_of(r, r->round, s))
			return false;
	return true;
}

/* The round cannot be had any more at the parent.  What of it was counted there?  Then the place begins anew. */
static void end_stale(struct tree *t, unsigned int place, bool timer)
{
	struct tree_relay *r = &t->place[place].relay;
	uint32_t unknown = 0, counted = 0;

	for (unsigned int s = 0; s < t->segments; s++) {
		const struct tree_result *e = result_of(r, r->round, s);

		if (e ? is_counted(t, place, e) : r->aux_known >> s & 1 && r->aux[s] == r->round + 1)
			counted |= 1u << s;
		if (!e && !(r->aux_known >> s & 1) && is_away(t, place, r->round, s))
			unknown |= 1u << s;
	}
	if (unknown && t->fault != TREE_AUX_ONE) {
		for (unsigned int s = 0; timer && s < t->segments; s++)
			if (unknown >> s & 1)
				say(t, place, true, SAINA_MSG_PULL, r->round, s);
		return;
	}
	t->resets++;
	t->inner_resets += t->place[place].inner;
	if (tree_rt(t, tree_up(t, place))->base > r->round) {
		t->below_resets++;
		t->below_counted += counted != 0;
	}
	tree_reset(t, place, r->stale_next, true, false, t->fault == TREE_AUX ? 0 : counted);
}

/* A sum that waits for its turn above, where the round is over: the parent will say STALE. */
static bool is_left(struct tree *t, unsigned int place, uint32_t segment)
{
	const struct tree_relay *r = &t->place[place].relay;

	return t->fault != TREE_LEFT && r->known > r->round + 1 && is_away(t, place, r->round, segment);
}

static void ask(struct tree *t, unsigned int place)
{
	struct tree_relay *r = &t->place[place].relay;

	if (tree_rt(t, place)->next_round >= r->round)
		say(t, place, true, SAINA_MSG_ASK, r->round, 0);
	say(t, place, false, SAINA_MSG_ASK, r->round, 0);
	for (unsigned int s = 0; s < t->segments; s++)
		if ((r->ask_for >> s & 1 || is_too_old(t, r) || is_left(t, place, s)) && !(r->confirmed >> s & 1) &&
		    !result_of(r, r->round, s))
			say(t, place, true, SAINA_MSG_PULL, r->round, s);
	for (unsigned int s = 0; s < t->segments; s++)
		if (r->due >> s & 1 && t->fault != TREE_NOT_DUE)
			say(t, place, false, SAINA_MSG_PULL, r->round, s);
	r->ask_for = r->due = 0;
}

/*
 * Slots of the round before may open after the relay has gone on, if the parent never had them: those
 * who did that segment there are dead.  Then the round is not over here, and the parent says STALE.
 */
static bool has_older(struct tree *t, unsigned int place)
{
	const struct tree_relay *r = &t->place[place].relay;
	const struct oracle_job *j = &t->o.job[place];

	for (uint32_t i = 0; t->fault != TREE_FORWARD && i < j->conf.pool; i++)
		if (j->hot[i].meta.state == SAINA_SLOT_AWAY && j->hot[i].meta.round < r->round)
			return true;
	return false;
}

void tree_relay_step(struct tree *t, unsigned int place, bool timer)
{
	struct tree_relay *r = &t->place[place].relay;
	const struct saina_job_rt *above = tree_rt(t, tree_up(t, place));

	if (!r->alive || !tree_bind(t, place))
		return;
	if (tree_rt(t, place)->next_round > r->round + 1 || is_over(t, place))
		return advance(r, r->round + 1);
	if (has_older(t, place))
		return advance(r, tree_rt(t, place)->next_round - 1);
	if (r->aux_known)
		return end_stale(t, place, timer);
	for (unsigned int s = 0; timer && above->next_round == r->round && r->round && s < t->segments; s++)
		say(t, place, true, SAINA_MSG_PULL, r->round - 1, s);
	/* the parent's round before is not over: as a worker that joins */
	if (above->next_round == r->round && above->next_round > above->base && tree_is_behind(t, 0, r->round) &&
	    !tree_has_all(t, tree_up(t, place), r->round - 1))
		return;
	up(t, place);
	down(t, place);
	if (timer)
		ask(t, place);
}
