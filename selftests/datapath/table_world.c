// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "table_world.h"

#define VALUES	4096

static int32_t values[VALUES + SAINA_ELEMS_MAX];

static bool fail(struct table_world *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static bool fail(struct table_world *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->error, sizeof(w->error), fmt, ap);
	va_end(ap);
	return false;
}

static const struct saina_clock *clock_of(const struct table_world *w)
{
	return &w->rig->o.job[w->conf.job].clock;
}

static const struct saina_job_rt *rt_of(const struct table_world *w)
{
	return &w->rig->o.job[w->conf.job].rt;
}

static const int32_t *value(const struct table_world *w, unsigned int worker, uint32_t step,
			    uint32_t segment)
{
	return values + (rng_mix(w->value_seed ^ step ^ (uint64_t)worker << 32 ^
				 (uint64_t)segment << 40) & (VALUES - 1));
}

static uint32_t some_window(struct rng *r)
{
	return rng_chance(r, 150) ? SAINA_WINDOW_NONE : rng_range(r, 1, rng_chance(r, 600) ? 3 : 20);
}

static bool has_steps(const struct saina_policy *p)
{
	return p->window || p->groups;
}

static unsigned int group_of(const struct table_world *w, unsigned int i)
{
	return rt_of(w)->policy.groups ? rt_of(w)->policy.group[i] : 0;
}

static uint64_t peers_of(const struct table_world *w, unsigned int i)
{
	uint64_t peers = 0;

	for (unsigned int n = 0; n < w->workers; n++)
		if (clock_of(w)->members >> n & 1 && group_of(w, n) == group_of(w, i))
			peers |= 1ull << n;
	return peers;
}

/* What those of worker @i's group have finished. */
static uint32_t low_of(const struct table_world *w, unsigned int i)
{
	uint64_t peers = peers_of(w, i);
	uint32_t low = UINT32_MAX;

	for (unsigned int n = 0; n < w->workers; n++)
		if (peers >> n & 1 && clock_of(w)->done[n] < low)
			low = clock_of(w)->done[n];
	return low;
}

/* Dealt, or anyhow. */
static void some_groups(struct table_world *w, struct saina_policy *p)
{
	bool dealt = rng_chance(&w->rng, 400);

	p->mode = SAINA_POLICY_GROUPED;
	p->groups = rng_range(&w->rng, 1, w->workers);
	for (unsigned int i = 0; i < SAINA_WORKERS_MAX; i++)
		p->group[i] = dealt ? i % p->groups : i >= w->workers ? SAINA_GROUP_NONE :
			      rng_below(&w->rng, p->groups);
}

/* Of steps, or of rounds. */
static struct saina_policy some_policy(struct table_world *w, bool table)
{
	struct saina_policy p = { .late = SAINA_LATE_RESIDUAL };
	struct rng *r = &w->rng;

	if (table && (w->policy == SAINA_POLICY_GROUPED || (!w->policy && rng_chance(r, 400)))) {
		some_groups(w, &p);
	} else if (table) {
		p.window = w->policy == SAINA_POLICY_ASP ? SAINA_WINDOW_NONE : some_window(r);
		if (w->policy == SAINA_POLICY_SSP && p.window == SAINA_WINDOW_NONE)
			p.window = rng_range(r, 1, SAINA_WINDOW_MAX);
		p.mode = p.window == SAINA_WINDOW_NONE ? SAINA_POLICY_ASP : SAINA_POLICY_SSP;
	} else if (rng_chance(r, 400)) {
		p.mode = SAINA_POLICY_FASTEST;
		p.k = rng_range(r, 1, w->workers);
	} else if (rng_chance(r, 400)) {
		p.mode = SAINA_POLICY_SFCD;
		p.k = p.k_min = 1;
		p.s_th = 300;
		p.c_th = 1;
		p.stride = 8;
	} else if (rng_chance(r, 250) && !(w->workers & 1)) {
		p.mode = SAINA_POLICY_CODED;
		p.spread = 1;
	} else if (rng_chance(r, 250)) {
		p.mode = SAINA_POLICY_TIMEOUT;
		p.timeout_us = UINT32_MAX;	/* it does not come */
		p.k_min = 1;
	} else {
		p.mode = rng_chance(r, 500) ? SAINA_POLICY_SSP : SAINA_POLICY_BSP;
	}
	return p;
}

/* Views are made when a snapshot is published, not when one is written into. */
static int publish(struct table_world *w, uint32_t first, bool whole)
{
	const struct saina_job_conf *c = &w->conf;
	unsigned int groups = c->policy.groups > c->next.groups ? c->policy.groups : c->next.groups;

	if (!whole && groups <= w->groups)
		return rig_job_poke(w->rig, c);
	w->groups = groups;
	return rig_job(w->rig, c, first);
}

int table_world_init(struct table_world *w, struct rig *rig, uint64_t seed, unsigned int payload,
		     unsigned int policy)
{
	static uint32_t generation;
	struct saina_job_conf *c = &w->conf;
	struct rng *r = &w->rng;
	uint32_t first;

	if (!values[0]) {
		rng_seed(r, 1);
		for (unsigned int i = 0; i < VALUES + SAINA_ELEMS_MAX; i++)
			values[i] = rng_u64(r) >> rng_below(r, 32) | 1;
	}
	memset(w, 0, sizeof(*w));
	w->rig = rig;
	w->policy = policy;
	rng_seed(r, seed);
	w->table = calloc(TABLE_SEGMENTS, sizeof(*w->table));
	w->view = calloc(TABLE_SEGMENTS * SAINA_WORKERS_MAX, sizeof(*w->view));
	if (!w->table || !w->view)
		abort();
	w->workers = rng_chance(r, 150) ? rng_range(r, 13, 64) : rng_range(r, 1, 12);
	w->constant = rng_chance(r, 500);
	w->value_seed = rng_u64(r);
	w->sessions = rng_u64(r) | 1;
	w->loss_up = rng_below(r, 3) * 80;
	w->loss_down = rng_below(r, 3) * 80;
	w->dup = rng_below(r, 150);
	first = rng_chance(r, 300) ? rng_below(r, 100000) : 0;
	if (rng_chance(r, 50))
		first = SAINA_ROUND_MAX - rng_below(r, 20);	/* the end of all steps */
	c->generation = ++generation;
	c->job = rng_below(r, SAINA_JOBS_MAX);
	c->state = SAINA_JOB_RUNNING;
	c->elem = SAINA_ELEM_INT32;
	c->payload = payload;
	c->workers = w->workers;
	c->segments = rng_range(r, 1, rng_chance(r, 500) ? 3 : TABLE_SEGMENTS);
	c->pool = 1 << rng_below(r, 4);
	c->ring = 2 << rng_below(r, 3);
	c->lock_base = rng_below(r, SAINA_LOCKS);
	c->sign_words = SAINA_SIGN_WORDS(payload, 1);
	c->group = rig_group(c->job);
	w->swapping = rng_chance(r, 500);
	/* steps that begin again, or go on after all, may have another one */
	w->constant &= !w->swapping;
	c->policy = some_policy(w, !w->swapping || rng_chance(r, 700));
	c->policy.seq = 1;
	for (unsigned int n = 0; n < w->workers; n++) {
		rig_bind(rig, c, n, rng_below(r, 5) % RIG_PORTS, w->sessions += 2);
		c->active |= (uint64_t)rng_chance(r, 800) << n;
		if (!rng_chance(r, 30))
			continue;
		c->relay |= 1ull << n;
		c->worker[n].flags |= SAINA_BIND_RELAY;
	}
	c->active |= 1;
	w->seen.low = first;
	return publish(w, first, true);
}

void table_world_exit(struct table_world *w)
{
	free(w->table);
	free(w->view);
	rig_job_remove(w->rig, w->conf.job);
}

static struct table_message *emit(struct table_world *w, unsigned int i, int type, uint32_t round,
				  uint32_t segment)
{
	static struct table_message none;
	struct table_message *m = w->in_flight < TABLE_FLIGHT ? &w->flight[w->in_flight++] : &none;

	*m = (struct table_message){ .type = type, .worker = i, .exponent = segment % 20,
				     .session = w->conf.worker[i].session, .round = round,
				     .segment = segment };
	return m;
}

/* What no honest worker sends. */
static void dishonest(struct table_world *w, unsigned int i)
{
	static const uint8_t type[] = { SAINA_MSG_INC, SAINA_MSG_INC, SAINA_MSG_CLOCK,
					SAINA_MSG_CLOCK, SAINA_MSG_READ, SAINA_MSG_GRAD,
					SAINA_MSG_PULL, SAINA_MSG_ASK, SAINA_MSG_BELL, SAINA_MSG_GO };
	struct rng *r = &w->rng;
	uint32_t round = w->worker[i].step + rng_range(r, 0, 6) - 3;

	if (rng_chance(r, 100))
		round = rng_u64(r);
	if (rng_chance(r, 50))
		round = SAINA_ROUND_ASK;
	emit(w, i, type[rng_below(r, sizeof(type))], round,
	     rng_below(r, w->conf.segments))->exponent += rng_chance(r, 200);
}

static void turn(struct table_world *w, unsigned int i)
{
	struct table_worker *s = &w->worker[i];
	uint32_t all = (1u << w->conf.segments) - 1;
	struct rng *r = &w->rng;

	if (!(w->conf.active >> i & 1))
		return;
	if (s->stall) {
		s->stall--;
		return;
	}
	if (rng_chance(r, 20))
		dishonest(w, i);
	if (rng_chance(r, 50))
		emit(w, i, SAINA_MSG_READ, s->step, rng_below(r, w->conf.segments));
	switch (s->state) {
	case TABLE_ROUNDS:
		if (rng_chance(r, 30))
			emit(w, i, SAINA_MSG_PULL, s->step, rng_below(r, w->conf.segments));
		if (rng_chance(r, 30))
			emit(w, i, SAINA_MSG_ASK, s->step, rng_below(r, w->conf.segments));
		for (uint32_t n = 0; n < w->conf.segments; n++) {
			bool again = s->sent >> n & 1;

			if (s->acked >> n & 1 || (again && !rng_chance(r, 200)) ||
			    (n >= w->conf.pool && !(s->acked >> (n - w->conf.pool) & 1)))
				continue;
			emit(w, i, SAINA_MSG_GRAD, s->step, n)->flags = again ? SAINA_F_RETRANSMIT : 0;
			s->sent |= 1u << n;
		}
		return;
	case TABLE_ASKS:
		emit(w, i, SAINA_MSG_CLOCK, SAINA_ROUND_ASK, 0);
		return;
	case TABLE_WAITS:
		if (rng_chance(r, 100))
			emit(w, i, SAINA_MSG_CLOCK, s->step - 1, 0);
		return;
	case TABLE_PUSHES:
		for (uint32_t n = 0; n < w->conf.segments; n++)
			if (s->unread >> n & 1 && rng_chance(r, 600))
				emit(w, i, SAINA_MSG_READ, s->step, n);
		for (uint32_t n = 0; n < w->conf.segments && !s->unread; n++) {
			bool again = s->sent >> n & 1;

			if (s->acked >> n & 1 || (again && !rng_chance(r, 300)))
				continue;
			emit(w, i, SAINA_MSG_INC, s->step, n)->flags = again ? SAINA_F_RETRANSMIT : 0;
			s->sent |= 1u << n;
		}
		if (s->acked != all)
			return;
		s->state = TABLE_CLOCKS;
		/* fallthrough */
	case TABLE_CLOCKS:
		emit(w, i, SAINA_MSG_CLOCK, s->step, 0);
	}
}

bool table_world_next(struct table_world *w, struct table_message *m)
{
	unsigned int i;

	for (unsigned int n = 0; w->in_flight < 16 && n < w->workers; n++)
		turn(w, (rng_below(&w->rng, w->workers) + n) % w->workers);
	if (!w->in_flight)
		return false;
	i = rng_below(&w->rng, w->in_flight);
	*m = w->flight[i];
	if (rng_chance(&w->rng, w->dup))
		return true;		/* and it comes again */
	w->flight[i] = w->flight[--w->in_flight];
	return !rng_chance(&w->rng, w->loss_up);
}

bool table_world_more(struct table_world *w, const struct table_message *like,
		      struct table_message *m)
{
	for (unsigned int i = 0; i < w->in_flight; i++) {
		*m = w->flight[i];
		if (m->worker != like->worker)
			continue;
		w->flight[i] = w->flight[--w->in_flight];
		return true;
	}
	return false;
}

unsigned int table_world_frame(struct table_world *w, const struct table_message *m,
			       uint8_t *frame)
{
	const struct saina_bell bell = { .rung = 5 };
	const struct saina_ask ask = {};
	const void *payload = values;
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = m->type, .flags = m->flags,
		.elem = SAINA_ELEM_INT32, .job = w->conf.job, .session = m->session,
		.round = m->round, .segment = m->segment, .worker = m->worker,
		.exponent = m->exponent, .count = w->conf.payload,
	};

	if (m->type == SAINA_MSG_INC || m->type == SAINA_MSG_GRAD)
		payload = value(w, m->worker, m->round, m->segment);
	if (m->type == SAINA_MSG_CLOCK || m->type == SAINA_MSG_ASK || m->type == SAINA_MSG_BELL)
		h.count = 0;
	if (m->type == SAINA_MSG_BELL)
		return frame_make(frame, &w->rig->g, &w->conf.worker[m->worker], &h, &bell,
				  sizeof(bell));
	if (m->type == SAINA_MSG_ASK)
		return frame_make(frame, &w->rig->g, &w->conf.worker[m->worker], &h, &ask, sizeof(ask));
	return frame_make(frame, &w->rig->g, &w->conf.worker[m->worker], &h, payload, 4 * h.count);
}

static void ledger_add(struct table_world *w, unsigned int worker, uint32_t step, uint32_t segment)
{
	const int32_t *v = value(w, worker, step, segment);
	int32_t *t = w->table[segment];

	w->worker[worker].counted[segment] = step + 1;
	w->version[segment]++;
	for (uint32_t i = 0; i < w->conf.payload; i++)
		t[i] = (uint32_t)t[i] + (uint32_t)v[i];
}

/* What is read by one of several of a group: the others were or will be given the same. */
static bool ledger_view(struct table_world *w, const struct saina_hdr *h, const uint8_t *payload)
{
	struct table_view *v = &w->view[group_of(w, h->worker) * TABLE_SEGMENTS + h->segment];
	const struct saina_clock *k = clock_of(w);

	/* of a train some answers have no place, and are not seen here: a later view, too */
	if (w->rig->tc && v->known && v->base == k->base && h->mask > v->version)
		v->known = false;
	if (!v->known || v->base != k->base || v->step < h->round) {
		/* after a train the clock may be another than the answer is of */
		if (!(h->flags & SAINA_F_FRESH) || h->round != k->done[h->worker] ||
		    h->round != low_of(w, h->worker))
			return true;
		if (!w->rig->tc && (h->mask != w->version[h->segment] ||
				    memcmp(payload, w->table[h->segment], 4 * w->conf.payload)))
			return fail(w, "segment %u: what group %u sees of step %u is not the table",
				    h->segment, group_of(w, h->worker), h->round);
		v->known = true;
		v->base = k->base;
		v->step = h->round;
		v->version = h->mask;
		memcpy(v->sum, payload, 4 * w->conf.payload);
		return true;
	}
	w->views++;
	if (h->mask != v->version || memcmp(payload, v->sum, 4 * w->conf.payload))
		return fail(w, "segment %u: worker %u sees another sum of step %u than others of its group",
			    h->segment, h->worker, v->step);
	return true;
}

/* A SUM must be what was counted; it says of an INC whether it is counted now or was before. */
static bool ledger_sum(struct table_world *w, const struct saina_hdr *h, const uint8_t *payload)
{
	struct table_worker *s = &w->worker[h->worker];
	int32_t *t = w->table[h->segment];

	/* rounds are counted, too, but not heard of here; and it may be of a table that is over */
	if (rt_of(w)->mode != SAINA_RT_TABLE || h->policy != (rt_of(w)->base & 0xffff))
		return true;
	if (!(h->flags & (SAINA_F_RESEND | SAINA_F_PULLED))) {
		if (s->counted[h->segment] > h->round)
			return fail(w, "worker %u step %u segment %u is counted twice", h->worker,
				    h->round, h->segment);
		ledger_add(w, h->worker, h->round, h->segment);
	} else if (h->flags & SAINA_F_RESEND && s->counted[h->segment] <= h->round) {
		return fail(w, "worker %u step %u segment %u is acknowledged and was never counted",
			    h->worker, h->round, h->segment);
	}
	if (h->flags & SAINA_F_PULLED && rt_of(w)->policy.groups &&
	    peers_of(w, h->worker) & ~(1ull << h->worker))
		return ledger_view(w, h, payload);
	if (h->aux != s->counted[h->segment] || h->mask != w->version[h->segment])
		return fail(w, "segment %u: aux %u, version %llu; want %u, %llu", h->segment, h->aux,
			    (unsigned long long)h->mask, s->counted[h->segment],
			    (unsigned long long)w->version[h->segment]);
	if (memcmp(payload, t, 4 * w->conf.payload))
		return fail(w, "segment %u is not the sum of what was counted", h->segment);
	return true;
}

static void begins(struct table_world *w, struct table_worker *s, uint32_t step, bool go)
{
	if (step != s->step || s->state == TABLE_ASKS) {
		s->acked = s->sent = 0;
		s->unread = rt_of(w)->policy.groups ? (1u << w->conf.segments) - 1 : 0;
		if (rng_chance(&w->rng, 150))	/* it straggles */
			s->stall = rng_below(&w->rng, 60);
	}
	s->step = step;
	s->state = !go ? TABLE_WAITS : s->state == TABLE_CLOCKS ? TABLE_CLOCKS : TABLE_PUSHES;
	if (go && s->acked != (1u << w->conf.segments) - 1)
		s->state = TABLE_PUSHES;
}

static void begins_rounds(struct table_world *w, struct table_worker *s, uint32_t round)
{
	s->acked = s->sent = 0;
	s->state = TABLE_ROUNDS;
	s->step = round;
	if (rng_chance(&w->rng, 150))
		s->stall = rng_below(&w->rng, 60);
}

/* Rounds, where its steps end; or steps: it asks for its own. */
static void other_mode(struct table_world *w, struct table_worker *s, uint32_t since)
{
	if (s->state != TABLE_ROUNDS) {
		begins_rounds(w, s, since);
		return;
	}
	s->acked = s->sent = 0;
	s->state = TABLE_ASKS;
}

static void hear_round(struct table_world *w, struct table_worker *s, const struct saina_hdr *h)
{
	/* its round cannot be had any more: it goes on with one that can */
	if (h->type == SAINA_MSG_STALE && h->round == s->step)
		begins_rounds(w, s, s->step + 1 < h->slot_round ? h->slot_round - 1 : h->slot_round);
	if (h->type != SAINA_MSG_RESULT || h->round != s->step)
		return;
	s->acked |= 1u << h->segment;
	if (s->acked != (1u << w->conf.segments) - 1)
		return;
	w->rounds++;
	s->acked = s->sent = 0;
	s->step++;
	if (rng_chance(&w->rng, 100))
		s->stall = rng_below(&w->rng, 60);
}

static void hear(struct table_world *w, unsigned int i, const struct saina_hdr *h)
{
	struct table_worker *s = &w->worker[i];
	bool go = h->mask >> i & 1;

	if (rng_chance(&w->rng, w->loss_down) || !(w->conf.active >> i & 1))
		return;
	if (h->k == SAINA_NAK_MODE && (h->type == SAINA_MSG_NAK || h->type == SAINA_MSG_GO)) {
		/* of what is on its way still one may be of either */
		if (h->type == SAINA_MSG_NAK && h->round + 1ull < s->step)
			return;
		other_mode(w, s, h->slot_round);
	} else if (s->state == TABLE_ROUNDS) {
		hear_round(w, s, h);
	} else if (h->type == SAINA_MSG_STALE || h->type == SAINA_MSG_RESULT ||
		   h->type == SAINA_MSG_TOLD) {
		return;
	} else if (h->type == SAINA_MSG_SUM) {
		if (!(h->flags & SAINA_F_PULLED) && h->round == s->step)
			s->acked |= 1u << h->segment;
		if (h->flags & SAINA_F_PULLED && h->round == s->step)
			s->unread &= ~(1u << h->segment);
	} else if (h->worker != 0xff) {
		begins(w, s, h->aux, go);
	} else if (s->state == TABLE_WAITS && go && s->step - h->slot_round <= h->segment) {
		begins(w, s, s->step, true);
	}
}

/* How far one that goes now may lead. */
static uint64_t window_of(const struct table_world *w)
{
	const struct saina_policy *p = oracle_target(&w->rig->o.job[w->conf.job]);
	const struct saina_policy *have = &rt_of(w)->policy;

	return has_steps(p) && p->groups == have->groups ? p->window : have->window;
}

/* The rules of section 11 that hold whatever happens, of the clock after each packet. */
static bool invariants(struct table_world *w)
{
	const struct saina_clock *k = clock_of(w);
	const struct saina_job_rt *rt = rt_of(w);
	uint64_t window = window_of(w), lead;
	/* one message, a CLOCK: everybody who may go hears of it */
	bool clocked = !w->rig->tc && w->rig->want.answer == SAINA_MSG_GO;

	if (rt->policy_mix)
		return fail(w, "a slot mixes two policies");
	if (rt->mode != w->mode)
		w->swaps++;
	w->mode = rt->mode;
	if (rt->mode != SAINA_RT_TABLE || rt->base != k->base) {
		w->seen = *k;
		return true;
	}
	if (k->low < w->seen.low)
		return fail(w, "low fell from %u to %u", w->seen.low, k->low);
	if (k->members & ~w->conf.active & ~w->seen.members)
		return fail(w, "a member that is not active");
	for (unsigned int i = 0; i < w->workers; i++) {
		struct table_worker *s = &w->worker[i];

		if (!(k->members >> i & 1))
			continue;
		if (k->done[i] < k->low)
			return fail(w, "worker %u is behind the slowest", i);
		lead = k->done[i] - low_of(w, i);
		if (k->going >> i & 1 && (!(w->seen.going >> i & 1) || k->done[i] != w->seen.done[i])) {
			if (k->fence && k->fence == w->seen.fence)
				return fail(w, "worker %u may go, and rounds are to begin with %u", i,
					    k->fence);
			if (lead > window)
				return fail(w, "worker %u may go, %llu ahead, window %llu", i,
					    (unsigned long long)lead, (unsigned long long)window);
			s->window = window;
		}
		/* one message may let it go and finish its step: a CLOCK after W was raised, a train */
		if (k->done[i] != w->seen.done[i] && window > s->window)
			s->window = window;
		if (lead > s->window + 1 || (w->constant && lead > window + 1))
			return fail(w, "worker %u is %llu ahead, window %llu, let go under %llu", i,
				    (unsigned long long)lead, (unsigned long long)window,
				    (unsigned long long)s->window);
		if (clocked && k->waiting & k->going & 1ull << i &&
		    group_of(w, i) == group_of(w, w->rig->want.worker))
			return fail(w, "worker %u may go and has not been told", i);
		w->steps += k->done[i] == w->seen.done[i] + 1;
		if (lead > w->widest)
			w->widest = lead;
	}
	w->seen = *k;
	return true;
}

/*
 * Who was counted in rounds, the oracle says.  After a train that began a table it has steps of
 * that one, too.
 */
static void ledger_rounds(struct table_world *w, uint32_t end)
{
	const struct oracle_job *j = &w->rig->o.job[w->conf.job];

	for (unsigned int i = 0; i < w->workers; i++) {
		for (uint32_t n = 0; n < w->conf.segments; n++) {
			uint32_t last = j->last[n][i];

			w->worker[i].counted[n] = last < end ? last : end;
		}
	}
}

/* Another table: it is empty, and nobody is ahead. */
static bool another_table(struct table_world *w)
{
	uint32_t base = rt_of(w)->base;

	if (w->begun && base <= w->fence)
		return fail(w, "a table begins with %u, and not all have read the one before %u", base,
			    w->fence);
	w->begun = true;
	w->base = base;
	for (unsigned int i = 0; i < w->workers; i++)
		w->worker[i].window = 0;
	memset(w->table, 0, TABLE_SEGMENTS * sizeof(*w->table));
	memset(w->version, 0, sizeof(w->version));
	ledger_rounds(w, base);
	return true;
}

/* In a train the answer to an INC has no place beside a GO for all: it is counted all the same. */
static void ledger_unsent(struct table_world *w)
{
	const struct oracle_job *j = &w->rig->o.job[w->conf.job];

	for (unsigned int i = 0; i < w->workers; i++) {
		for (uint32_t n = 0; n < w->conf.segments; n++) {
			uint32_t last = j->last[n][i];

			if (last > w->worker[i].counted[n])
				ledger_add(w, i, last - 1, n);
		}
	}
}

bool table_world_answer(struct table_world *w)
{
	const struct rig *r = w->rig;

	if (rt_of(w)->mode == SAINA_RT_TABLE && (!w->begun || w->base != rt_of(w)->base) &&
	    !another_table(w))
		return false;
	if (rt_of(w)->mode == SAINA_RT_FENCE)
		w->fence = rt_of(w)->base;
	for (unsigned int n = 0; n < r->answers; n++) {
		struct saina_hdr h;

		memcpy(&h, r->answer[n].message, sizeof(h));
		if (h.type == SAINA_MSG_SUM && !ledger_sum(w, &h, r->answer[n].message + sizeof(h)))
			return false;
		for (unsigned int i = 0; i < w->workers; i++)
			if (r->answer[n].to >> i & 1)
				hear(w, i, &h);
	}
	if (rt_of(w)->mode != SAINA_RT_TABLE)
		ledger_rounds(w, UINT32_MAX);
	else if (r->tc)
		ledger_unsent(w);
	return invariants(w);
}

/* Another policy is asked for: at once, or as the control plane has it, where one is to come. */
static void policies(struct table_world *w)
{
	struct saina_job_conf *c = &w->conf;
	struct rng *r = &w->rng;
	bool table = has_steps(&c->policy);
	uint32_t seq = (c->next.seq ? c->next.seq : c->policy.seq) + 1;

	if (c->next.seq && rt_of(w)->policy.seq == c->next.seq) {
		c->policy = c->next;
		table = has_steps(&c->policy);
		memset(&c->next, 0, sizeof(c->next));
	}
	if (c->next.seq) {
		if (!rng_chance(r, 200))
			return;		/* it waits; or is taken back */
		memset(&c->next, 0, sizeof(c->next));
		c->policy.seq = seq;
		return;
	}
	if (w->swapping && rng_chance(r, 800)) {
		c->next = some_policy(w, !table);
		c->next.seq = seq;
		c->next_from = rng_chance(r, 300) ? rt_of(w)->next_round + rng_below(r, 9) : 0;
		c->next_on = rng_chance(r, 300) ? 1u << SAINA_EV_WORKER_DEAD |
						  1u << SAINA_EV_WORKER_JOINED : 0;
		if (!rng_chance(r, 100))
			return;
		/* as after a restart: nothing waits */
		c->policy = c->next;
		memset(&c->next, 0, sizeof(c->next));
		return;
	}
	if (w->constant)
		return;
	c->policy = some_policy(w, table);
	c->policy.seq = seq;
}

int table_world_happens(struct table_world *w)
{
	unsigned int i = rng_below(&w->rng, w->workers);
	struct saina_job_conf *c = &w->conf;

	switch (rng_below(&w->rng, 8)) {
	case 0 ... 3:
		policies(w);
		break;
	case 4:		/* a new incarnation, before its death was noticed */
		c->worker[i].session = w->sessions += 2;
		w->worker[i].state = TABLE_ASKS;
		break;
	default:
		if (c->active >> i & 1) {
			if (c->active & (c->active - 1))
				c->active &= ~(1ull << i);
			break;
		}
		c->active |= 1ull << i;
		c->worker[i].session = w->sessions += 2;
		w->worker[i].state = TABLE_ASKS;
		w->worker[i].stall = 0;
	}
	return publish(w, 0, rng_chance(&w->rng, 10));
}
