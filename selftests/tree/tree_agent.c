// SPDX-License-Identifier: GPL-2.0-or-later
/* The agents of a simulated tree: admission, liveness and new beginnings; and what goes wrong. */
#include <string.h>
#include "tree.h"

static void bind_worker(struct tree *t, unsigned int place, unsigned int number, uint64_t session, bool active)
{
	struct saina_job_conf *c = &t->place[place].conf;

	c->worker[number].session = session;
	c->worker[number].flags = session ? SAINA_BIND_BOUND : 0;
	if (active)
		c->active |= 1ull << number;
	else
		c->active &= ~(1ull << number);
	tree_publish(t, place);
}

bool tree_has_members(const struct tree *t, unsigned int place)
{
	return tree_is_behind(t, place, UINT32_MAX);
}

static bool is_active_above(const struct tree *t, unsigned int place)
{
	return t->place[tree_up(t, place)].conf.active >> t->place[place].node & 1;
}

/* A place that begins anew has no members until its parent has admitted it. */
static bool is_admitted(const struct tree *t, unsigned int place)
{
	return !place || t->place[place].known_as == t->place[place].incarnation;
}

static bool is_bound_above(const struct tree *t, unsigned int place)
{
	const struct saina_binding *b = &t->place[tree_up(t, place)].conf.worker[t->place[place].node];

	return t->place[place].relay.parent && b->flags && b->session == t->place[place].relay.parent;
}

/*
 * May the node take part again?  Not in a round that counted its earlier life, unless members that
 * take part in that are back.
 */
static bool is_over_above(struct tree *t, unsigned int place)
{
	const struct tree_place *p = &t->place[place];
	const struct saina_job_rt *rt = tree_rt(t, tree_up(t, place));

	if (p->left && p->known_as == p->incarnation && rt->next_round && tree_is_behind(t, place, rt->next_round))
		return true;
	if (rt->next_round > rt->base && rt->members >> p->node & 1 && !tree_has_all(t, p->parent, rt->next_round - 1))
		return !rt->open_slots && !tree_is_behind(t, 0, rt->next_round);
	return true;
}

/* Also by those who will hear STALE. */
static bool is_lived_in(const struct tree *t, unsigned int place)
{
	for (unsigned int i = 0; i < t->workers; i++)
		if (tree_is_under(t, place, &t->worker[i]))
			return true;
	return false;
}

static bool has_sums(const struct tree *t, unsigned int place)
{
	const struct oracle_job *j = &t->o.job[place];

	for (uint32_t i = 0; i < j->conf.pool; i++)
		if (j->hot[i].meta.state == SAINA_SLOT_AWAY)
			return true;
	return false;
}

/*
 * Does nobody there or below take part in the parent's present round, while that waits?  Its members may be
 * dead, and those that have joined since begin with the next round.  But sums of dead members go up while
 * nobody waits, if they keep those below who are cut off from joining again.
 */
static bool is_empty(struct tree *t, unsigned int place)
{
	const struct saina_job_rt *rt = tree_rt(t, tree_up(t, place));

	if (t->fault == TREE_EMPTY)
		return false;
	if (!tree_has_members(t, place))
		return rt->open_slots || !is_lived_in(t, place) || !has_sums(t, place);
	return t->fault != TREE_ABSENT && rt->open_slots && !tree_is_behind(t, place, rt->next_round);
}

static void set_above(struct tree *t, unsigned int place, bool active)
{
	struct tree_place *p = &t->place[place];

	bind_worker(t, p->parent, p->node, p->relay.parent, active);
}

/* A place without members keeps its session, but nobody waits for it. */
static bool bind_empty(struct tree *t, unsigned int place)
{
	struct tree_place *p = &t->place[place];

	if (p->known_as != p->incarnation)
		return false;
	if (!is_bound_above(t, place)) {
		p->relay.parent = ++t->sessions;
		p->relay.sent = 0;
		set_above(t, place, false);
	}
	p->left = true;
	return true;
}

static bool bind_above(struct tree *t, unsigned int place, bool even_empty);

/* Nobody lives there, and the parent has opened a round that the place has not. */
static bool has_missed(struct tree *t, unsigned int place)
{
	return t->fault != TREE_MISSED && !is_lived_in(t, place) &&
	       tree_rt(t, place)->next_round < tree_rt(t, tree_up(t, place))->next_round;
}

/*
 * All places from the root down take part before one more member is admitted.  It begins with the round
 * that they wait in, or the next one: so an empty place that has missed rounds begins anew, else its
 * member would do a round that others have taken for over.
 */
static bool is_active_to_root(struct tree *t, unsigned int place)
{
	struct tree_place *p = &t->place[place];

	if (!place)
		return true;
	if (!is_active_to_root(t, p->parent))
		return false;
	if (p->relay.alive && !p->link_down) {
		if (has_missed(t, place))
			tree_reset(t, place, tree_rt(t, p->parent)->next_round, false, false, 0);
		if (!is_admitted(t, place) || !is_active_above(t, place))
			bind_above(t, place, true);
	}
	return !has_missed(t, place) && is_admitted(t, place) && is_active_above(t, place);
}

/* A node that nobody lives in does not make its parent join above. */
static bool parent_admits(struct tree *t, unsigned int place)
{
	unsigned int parent = tree_up(t, place);

	return is_admitted(t, parent) || (is_lived_in(t, place) && is_active_to_root(t, parent));
}

static void begin(struct tree *t, unsigned int place)
{
	struct tree_relay *r = &t->place[place].relay;
	const struct saina_job_rt *rt = tree_rt(t, place);

	if (r->has_round)
		return;
	r->has_round = true;
	r->round = rt->next_round > rt->base ? rt->next_round - 1 : rt->base;
}

/* An incarnation that the parent does not know: the old one is dead at once. */
static bool end_old_life(struct tree *t, unsigned int place)
{
	struct tree_place *p = &t->place[place];
	const struct saina_job_rt *rt = tree_rt(t, place), *above = tree_rt(t, p->parent);

	if (is_active_above(t, place))
		bind_worker(t, p->parent, p->node, 0, false);
	if (!is_over_above(t, place) || !is_active_to_root(t, p->parent))
		return false;
	p->left = false;
	if (rt->base != above->next_round || rt->next_round != rt->base)
		tree_reset(t, place, above->next_round, false, false, 0);
	return true;
}

/* The relay's sessions here and above; false: it must wait. */
static bool bind_above(struct tree *t, unsigned int place, bool even_empty)
{
	struct tree_place *p = &t->place[place];
	struct tree_relay *r = &p->relay;

	if (!r->local || p->conf.worker[p->uplink].session != r->local) {
		r->local = ++t->sessions;
		bind_worker(t, place, p->uplink, r->local, false);
	}
	if (is_bound_above(t, place) && is_active_above(t, place)) {
		begin(t, place);
		return true;
	}
	if (p->link_down || !parent_admits(t, place))
		return false;
	if (!even_empty && is_empty(t, place)) {
		if (!bind_empty(t, place))
			return false;
		begin(t, place);
		return true;
	}
	if (p->left && p->known_as == p->incarnation) {
		if (!is_over_above(t, place))
			return false;
		p->left = false;
	}
	if (p->known_as && p->known_as != p->incarnation && !end_old_life(t, place))
		return false;
	if (!r->local || p->conf.worker[p->uplink].session != r->local) {
		r->local = ++t->sessions;
		bind_worker(t, place, p->uplink, r->local, false);
	}
	p->known_as = p->incarnation;
	r->parent = ++t->sessions;
	r->sent = 0;
	set_above(t, place, true);
	if (tree_rt(t, place)->next_round && tree_rt(t, p->parent)->at[p->node] + 1 < tree_rt(t, place)->next_round)
		tree_rt(t, p->parent)->at[p->node] = tree_rt(t, place)->next_round - 1;
	begin(t, place);
	return true;
}

bool tree_bind(struct tree *t, unsigned int place)
{
	struct tree_place *p = &t->place[place];

	if (is_empty(t, place) && is_active_above(t, place) && p->relay.parent && !p->link_down) {
		bind_worker(t, p->parent, p->node, t->place[p->parent].conf.worker[p->node].session, false);
		p->left = true;
	}
	return bind_above(t, place, false);
}

/* A worker of a place that begins anew is told what was counted: as by STALE, but for slots without a result. */
static void end_worker(struct tree *t, unsigned int place, struct tree_worker *w, bool stale, uint32_t counted)
{
	for (unsigned int s = 0; stale && s < w->assigned; s++) {
		const struct oracle_slot *h = tree_slot(t, place, s);
		const struct oracle_job *j = &t->o.job[place];
		bool in = false;

		if (w->res >> s & 1 || !(w->sent >> s & 1))
			continue;
		if (tree_has(t, place, w->round, s))
			in = j->ring[s * j->conf.ring + w->round % j->conf.ring].meta.seen >> w->number & 1;
		else if (tree_is_slot(h, SAINA_SLOT_AWAY, w->round, s))
			in = counted >> s & 1 && h->meta.seen >> w->number & 1;
		else if (!tree_is_slot(h, SAINA_SLOT_OPEN, w->round, s))
			in = j->last[s][w->number] == w->round + 1;
		tree_settle(t, w, w->round, s, in, "the new beginning");
	}
	w->alive = false;
}

/* What is in no sum above is not counted: section 12, 1. */
static void forget(struct tree *t, unsigned int place, uint32_t counted)
{
	struct oracle_job *j = &t->o.job[place];

	for (uint32_t i = 0; i < j->conf.pool; i++) {
		struct oracle_slot *h = &j->hot[i];
		bool away = h->meta.state == SAINA_SLOT_AWAY;

		if (!(away && counted >> h->meta.segment & 1) && (away || h->meta.state == SAINA_SLOT_OPEN))
			for (unsigned int n = 0; n < h->in->n; n++)
				if (j->last[h->meta.segment][h->in->w[n]] == h->meta.round + 1)
					j->last[h->meta.segment][h->in->w[n]] = 0;
		h->meta.state = SAINA_SLOT_EMPTY;
	}
}

/*
 * A place begins anew at round @first, as another incarnation: ring and counted[] stay, unless it has
 * @new_maps.  @stale: its members are told; @counted: segments of its last round that the parent counted
 *
 * The nodes below are not reset with it: they may be on other hosts.  Their sessions end.  Each comes back
 * as the same incarnation when this place is admitted above, finds its round STALE, asks for each of its
 * sums (what was counted of it the ring says, or counted[]), and begins anew itself: as one that has missed
 * rounds.  All rounds below are before @first: at most one is after the last one here, and the parent has
 * left that behind, too.
 */
void tree_reset(struct tree *t, unsigned int place, uint32_t first, bool stale, bool new_maps, uint32_t counted)
{
	struct tree_place *p = &t->place[place];
	struct oracle_job *j = &t->o.job[place];

	for (unsigned int i = 0; i < t->workers; i++)
		if (t->worker[i].place == place && t->worker[i].alive)
			end_worker(t, place, &t->worker[i], stale, counted);
	p->incarnation = ++t->incarnations;
	p->conf.active = 0;
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		p->conf.worker[w].flags = p->conf.worker[w].session = 0;
	if (new_maps) {
		p->conf.generation++;
		oracle_job_publish(&t->o, &p->conf, first);
	} else {
		forget(t, place, counted);
		j->rt.next_round = j->rt.base = first;
		j->rt.open_slots = j->rt.segs_done = 0;
		j->rt.members = j->rt.behind = 0;
		j->members.n = 0;
		memset(j->rt.at, 0, sizeof(j->rt.at));
	}
	memset(p->torn, 0, sizeof(p->torn));
	tree_publish(t, place);
	tree_relay_start(&p->relay);
	if (stale)
		bind_worker(t, p->parent, p->node, 0, false);
}

static void kill_worker(struct tree *t)
{
	struct tree_worker *w = &t->worker[rng_below(&t->rng, t->workers)];

	if (!w->alive)
		return;
	w->alive = false;
	bind_worker(t, w->place, w->number, 0, false);
}

void tree_fault(struct tree *t)
{
	unsigned int place = t->places > 1 ? rng_range(&t->rng, 1, t->places - 1) : 0;
	unsigned int dice = place ? rng_below(&t->rng, 1000) : rng_range(&t->rng, 650, 999);
	struct tree_place *p = &t->place[place];

	if (t->no_faults)
		return;
	if (dice < 200) {
		p->relay.alive = false;
	} else if (dice < 400) {
		for (unsigned int i = 1; i < t->places; i++)
			if (!t->place[i].relay.alive)
				tree_relay_start(&t->place[i].relay);
	} else if (dice < 520) {
		p->link_down = !p->link_down;
	} else if (dice < 650) {	/* declared dead */
		if ((!p->relay.alive || p->link_down) && is_active_above(t, place))
			bind_worker(t, p->parent, p->node, 0, false);
	} else if (dice < 760) {
		kill_worker(t);
	} else if (dice < 880) {
		tree_revive(t);
	} else if (dice < 920) {
		/* a whole host: its workers go one by one, so that the place is empty */
		for (unsigned int i = 0; i < t->workers; i++)
			if (t->worker[i].place == place && t->worker[i].alive && rng_chance(&t->rng, 900)) {
				t->worker[i].alive = false;
				bind_worker(t, place, t->worker[i].number, 0, false);
			}
	} else if (!t->bsp) {
		t->o.now += 1000000;
	}
}

/*
 * Slots that no live member waits for complete by the agent's PULL, in the name of the uplink worker or,
 * at the root, of a worker that it binds for that: a node, because those may PULL without being active.
 * Members that have joined since are not active for that time: the slots wait for their earlier lives.
 */
static void close_slots(struct tree *t, unsigned int place)
{
	const struct oracle_job *j = &t->o.job[place];
	struct tree_place *p = &t->place[place];
	unsigned int by = place ? p->uplink : SAINA_WORKERS_MAX - 1;
	struct saina_binding was = p->conf.worker[by];
	uint64_t active = p->conf.active;

	p->conf.worker[by].max_weight = t->workers + 1;
	if (t->fault != TREE_JOINED)
		p->conf.active = 0;
	bind_worker(t, place, by, ++t->sessions, false);
	for (uint32_t i = 0; i < j->conf.pool; i++)
		if (j->hot[i].meta.state == SAINA_SLOT_OPEN)
			tree_pull_now(t, place, by, j->hot[i].meta.round, j->hot[i].meta.segment);
	p->conf.worker[by] = was;
	p->conf.active = active;
	tree_publish(t, place);
}

/* Nobody does the round.  The relay pulls what is complete, but not if a member's later life is awaited. */
static bool needs_closing(struct tree *t, unsigned int place)
{
	const struct saina_job_rt *rt = tree_rt(t, place);

	if (tree_is_behind(t, place, rt->next_round))
		return false;
	return !place || rt->members & t->place[place].conf.active || !tree_has_members(t, place);
}

static void tidy_up(struct tree *t)
{
	for (unsigned int i = 0; i < t->places; i++)
		if (tree_rt(t, i)->open_slots && needs_closing(t, i))
			close_slots(t, i);
	for (unsigned int i = 1; i < t->places; i++) {
		struct tree_place *p = &t->place[i];

		if (tree_has_members(t, i))
			continue;
		if (is_active_above(t, i) && !is_bound_above(t, i))
			bind_worker(t, p->parent, p->node, 0, false);
		if (tree_rt(t, i)->next_round > tree_rt(t, i)->base && !is_active_above(t, i) && !is_lived_in(t, i))
			tree_reset(t, i, tree_rt(t, i)->next_round, false, true, 0);
	}
}

/* Workers that are dead join again, once their place is admitted above. */
void tree_revive(struct tree *t)
{
	if (t->fair)
		tidy_up(t);
	for (unsigned int i = 0; i < t->workers; i++) {
		struct tree_worker *w = &t->worker[i];
		const struct saina_job_rt *rt = tree_rt(t, w->place);
		uint32_t next;

		if (w->alive || w->life == 255)
			continue;
		if (!is_active_to_root(t, w->place))
			continue;
		next = rt->next_round;
		/* not while the round that may have counted its earlier life goes on */
		if (next > rt->base && rt->members >> w->number & 1 && !tree_has_all(t, w->place, next - 1) &&
		    (rt->open_slots || tree_is_behind(t, 0, next)))
			continue;
		bind_worker(t, w->place, w->number, ++t->sessions, true);
		if (t->o.job[w->place].rt.at[w->number] < next)
			t->o.job[w->place].rt.at[w->number] = next;
		tree_worker_start(t, w, t->place[w->place].conf.worker[w->number].session, next, true);
	}
}
