// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "world.h"

static int32_t values[WORLD_VALUES + SAINA_ELEMS_MAX];

static const unsigned int ports_of_workers[] = { 0, 0, 0, 1, 2 };

void world_init(struct world *w, struct rig *rig, uint64_t seed)
{
	struct rng r;

	if (!values[0]) {
		rng_seed(&r, 1);
		for (unsigned int i = 0; i < WORLD_VALUES + SAINA_ELEMS_MAX; i++)
			/* large, small, and stretches of zero, whose sign matters */
			values[i] = i / 512 % 16 == 5 ? 0 : rng_u64(&r) >> rng_below(&r, 32);
		values[0] |= 1;
	}
	memset(w, 0, sizeof(*w));
	w->rig = rig;
	rng_seed(&w->rng, seed);
	w->loss_up = rng_below(&w->rng, 3) * 80;
	w->loss_down = rng_below(&w->rng, 3) * 80;
	w->dup = rng_below(&w->rng, 100);
	w->hold = rng_below(&w->rng, 60);
}

void world_exit(struct world *w)
{
	for (unsigned int i = 0; i < WORLD_JOBS; i++)
		if (w->job[i].present)
			world_job_del(w, i);
}

struct sim_job *world_job(struct world *w, unsigned int number)
{
	for (unsigned int i = 0; i < WORLD_JOBS; i++)
		if (w->job[i].present && w->job[i].conf.job == number)
			return &w->job[i];
	return NULL;
}

static const struct saina_job_rt *rt_of(const struct sim_job *j)
{
	return &j->world->rig->o.job[j->conf.job].rt;
}

const int32_t *world_value(void *job, unsigned int worker, uint32_t round, uint32_t segment,
			   int lie)
{
	struct sim_job *j = job;
	uint64_t x = j->value_seed ^ (uint64_t)segment << 40 ^ (uint64_t)worker << 32;

	if (lie && j->liar != (int)worker)
		return NULL;
	x ^= j->steady ? round >> 3 : round;
	if (lie)
		x = ~x;
	return values + (rng_mix(x) & (WORLD_VALUES - 1));
}

int8_t world_exponent(uint32_t round, uint32_t segment)
{
	return (int)((round * 7 + segment / 64) % 200) - 100;
}

/* So far off that no test takes as long: only world_time_passes() gets there. */
static void some_timeout(struct rng *r, struct saina_policy *p, unsigned int n)
{
	p->timeout_us = WORLD_TICK_US * rng_range(r, 1, 4);
	p->k_min = rng_range(r, 0, n);
}

/* Workers that share a part, less one, with @n workers; 0: they cannot. */
static unsigned int some_spread(struct rng *r, unsigned int n)
{
	unsigned int s = rng_range(r, 2, 8);

	for (unsigned int i = 0; i < 7; i++, s = s == 8 ? 2 : s + 1)
		if (n % s == 0)
			return s - 1;
	return 0;
}

/* Some policy; @old is the one before. */
static void some_policy(struct world *w, struct sim_job *j, const struct saina_policy *before,
			struct saina_policy *p)
{
	struct saina_policy old = *before;
	struct rng *r = &w->rng;
	unsigned int n = j->workers, kind = w->kind, mode;

	memset(p, 0, sizeof(*p));
	p->seq = ++j->policies;
	p->late = rng_chance(r, 700) ? SAINA_LATE_RESIDUAL : SAINA_LATE_DROP;
	/* now and then another one, so that there are swaps from and to it */
	if (!kind || rng_chance(r, 250))
		kind = rng_range(r, SAINA_POLICY_BSP, SAINA_POLICY_CODED);
	mode = kind == WORLD_FASTEST_TIMEOUT ? SAINA_POLICY_FASTEST :
	       kind == WORLD_SFCD_DOWN ? SAINA_POLICY_SFCD : kind;
	if (mode == SAINA_POLICY_CODED && !some_spread(r, n))
		mode = SAINA_POLICY_SFCD;
	p->mode = mode;
	switch (mode) {
	case SAINA_POLICY_BSP:
		return;
	case SAINA_POLICY_FASTEST:
		p->k = rng_range(r, 1, n);
		if (kind == WORLD_FASTEST_TIMEOUT || rng_chance(r, 300))
			some_timeout(r, p, n);
		return;
	case SAINA_POLICY_TIMEOUT:
		some_timeout(r, p, n);
		return;
	case SAINA_POLICY_EXTERNAL:
		p->k = rng_range(r, 1, n);
		return;
	case SAINA_POLICY_CODED:
		p->spread = some_spread(r, n);
		return;
	}
	p->mode = SAINA_POLICY_SFCD;
	p->k = rng_range(r, 1, n);
	p->k_min = rng_chance(r, 500) ? 1 : rng_range(r, 1, p->k);
	p->k_max = rng_chance(r, 500) ? 0 : rng_range(r, p->k, n);
	p->s_th = rng_chance(r, 500) ? 500 : rng_range(r, 1, 700);
	p->c_th = rng_range(r, 1, 5);
	p->stride = 1 << rng_below(r, 7);
	if (rng_chance(r, 200))
		p->c_th = 0; /* as many as k is */
	if (rng_chance(r, 300)) {
		p->flags |= SAINA_POLICY_F_PARITY;
		p->stride = 32;
	}
	if (kind == WORLD_SFCD_DOWN || rng_chance(r, 400))
		p->flags |= SAINA_POLICY_F_DOWN;
	/* now and then the same again but for one thing or two */
	if (old.mode == SAINA_POLICY_SFCD && rng_chance(r, 500)) {
		p->k = old.k;
		p->k_min = old.k_min;
		p->k_max = old.k_max;
		if (rng_chance(r, 700)) {
			p->stride = old.stride;
			p->flags = old.flags;
		}
	}
}

/* Asks for another policy, at once or on a schedule. */
static void new_policy(struct world *w, struct sim_job *j)
{
	static const unsigned int on[] = { SAINA_EV_K, SAINA_EV_DEGRADED, SAINA_EV_WORKER_DEAD,
					   SAINA_EV_WORKER_JOINED };
	struct saina_job_conf *c = &j->conf;
	struct rng *r = &w->rng;
	struct saina_policy p;

	/* what was to come has come, or is given up */
	if (c->next.seq) {
		if (rt_of(j)->policy.seq == c->next.seq)
			c->policy = c->next;
		memset(&c->next, 0, sizeof(c->next));
		c->next_from = c->next_on = 0;
	}
	some_policy(w, j, &c->policy, &p);
	recompute_policy(&j->recompute, &p);
	if (!j->present || rng_chance(r, 600)) {
		c->policy = p;
		return;
	}
	c->next = p;
	c->next_from = rt_of(j)->next_round + rng_below(r, 6);
	if (rng_chance(r, 500))
		c->next_on = 1u << on[rng_below(r, 4)] | 1u << on[rng_below(r, 4)];
}

/* Where a worker that (re)joins begins. */
static void worker_begin(struct world *w, struct sim_job *j, unsigned int i)
{
	struct sim_worker *s = &j->worker[i];
	uint32_t next = rt_of(j)->next_round;

	memset(s, 0, sizeof(*s));
	s->alive = true;
	s->round = next > j->first_round ? next - rng_below(&w->rng, 2) : next;
}

int world_job_new(struct world *w, unsigned int i, unsigned int number, unsigned int payload)
{
	static uint32_t generation;
	struct sim_job *j = &w->job[i];
	struct saina_job_conf *c = &j->conf;
	struct rng *r = &w->rng;
	unsigned int most = payload > 352 ? 24 : payload > 128 ? 96 : WORLD_SEGMENTS;
	int err;

	memset(j, 0, sizeof(*j));
	j->world = w;
	j->workers = rng_chance(r, 200) ? rng_range(r, 1, 64) : rng_range(r, 1, 12);
	j->first_round = rng_chance(r, 300) ? rng_below(r, 100000) : 0;
	j->value_seed = rng_u64(r);
	j->steady = rng_chance(r, 400);
	j->liar = rng_chance(r, 500) ? (int)rng_below(r, j->workers) : -1;
	j->sessions = rng_u64(r);
	j->seen_at = w->rig->packets;

	c->generation = ++generation;
	c->job = number;
	c->state = SAINA_JOB_RUNNING;
	c->elem = SAINA_ELEM_INT32;
	c->payload = payload;
	c->workers = j->workers;
	c->segments = rng_chance(r, 150) ? 1 : rng_range(r, 1, rng_chance(r, 300) ? most : 20);
	c->pool = 1 << rng_below(r, rng_chance(r, 500) ? 4 : 8);
	c->ring = 2 << rng_below(r, 4);
	c->lock_base = rng_below(r, SAINA_LOCKS);
	c->sign_words = SAINA_SIGN_WORDS(payload, 1);
	c->group = rig_group(number);
	for (unsigned int n = 0; n < j->workers; n++) {
		rig_bind(w->rig, c, n, ports_of_workers[rng_below(r, 5)], ++j->sessions);
		c->active |= 1ull << n;
		if (rng_chance(r, 30))
			c->relay |= 1ull << n;
	}
	for (unsigned int n = 0; n < j->workers; n++)
		if (c->relay >> n & 1)
			c->worker[n].flags |= SAINA_BIND_RELAY;
	recompute_init(&j->recompute, payload, c->segments);
	new_policy(w, j);
	err = rig_job(w->rig, c, j->first_round);
	if (err)
		return err;
	j->present = true;
	ledger_init(&j->ledger, payload, c->segments, j->first_round, world_value, j);
	/* by reference, some or all of them */
	if (rng_chance(r, 400)) {
		unsigned int share = rng_chance(r, 500) ? 1000 : 600;

		for (unsigned int n = 0; n < j->workers && !err; n++)
			if (rng_chance(r, share))
				err = rig_share(w->rig, number, n, true);
	}
	for (unsigned int n = 0; n < j->workers; n++)
		worker_begin(w, j, n);
	return err;
}

int world_job_del(struct world *w, unsigned int i)
{
	ledger_exit(&w->job[i].ledger);
	recompute_exit(&w->job[i].recompute);
	w->job[i].present = false;
	return rig_job_remove(w->rig, w->job[i].conf.job);
}

static bool test_bit(const uint64_t *map, uint32_t i)
{
	return map[i / 64] >> (i % 64) & 1;
}

static void set_bit(uint64_t *map, uint32_t i)
{
	map[i / 64] |= 1ull << (i % 64);
}

static void emit(struct world *w, struct sim_job *j, unsigned int worker, int type,
		 uint32_t segment, bool again)
{
	struct sim_worker *s = &j->worker[worker];
	struct message *m;

	if (w->in_flight == WORLD_FLIGHT)
		return;
	m = &w->flight[w->in_flight++];
	memset(m, 0, sizeof(*m));
	m->job = j->conf.job;
	m->worker = worker;
	m->type = type;
	m->flags = again ? SAINA_F_RETRANSMIT : 0;
	m->exponent = world_exponent(s->round, segment);
	m->session = j->conf.worker[worker].session;
	m->round = s->round;
	m->segment = segment;
	m->lie = type == SAINA_MSG_GRAD && j->liar == (int)worker && rng_chance(&w->rng, 300);
}

/* Writes a segment into the worker's array, now and then badly; false: it has none. */
static bool write_input(struct world *w, struct sim_job *j, unsigned int worker, uint32_t segment)
{
	struct saina_input_head *in = rig_input(w->rig, j->conf.job, worker, segment);
	const struct sim_worker *s = &j->worker[worker];

	if (!in)
		return false;
	in->session = j->conf.worker[worker].session;
	in->round = s->round;
	in->segment = segment;
	in->exponent = world_exponent(s->round, segment);
	if (rng_chance(&w->rng, 10))
		in->round += rng_chance(&w->rng, 500) ? 1 : -1;
	/* of the round that it is stamped with: some bell may ring for that, then it counts */
	memcpy(in + 1, world_value(j, worker, in->round, segment, 0), 4 * j->conf.payload);
	if (rng_chance(&w->rng, 5))
		in->session ^= 1ull << rng_below(&w->rng, 64);
	if (rng_chance(&w->rng, 5))
		in->exponent++;
	return true;
}

static bool bells(struct world *w, struct sim_job *j, unsigned int worker, uint32_t segment)
{
	return rng_chance(&w->rng, 700) && write_input(w, j, worker, segment);
}

/* A gradient: in a message of its own, or rung for with those before it. */
static void emit_grad(struct world *w, struct sim_job *j, unsigned int worker, uint32_t segment,
		      bool again)
{
	struct message *last = w->in_flight ? &w->flight[w->in_flight - 1] : NULL;

	/* without an array, now and then, all the same */
	if (!bells(w, j, worker, segment) && !rng_chance(&w->rng, 5)) {
		emit(w, j, worker, SAINA_MSG_GRAD, segment, again);
		return;
	}
	if (last && last->type == SAINA_MSG_BELL && last->job == j->conf.job &&
	    last->worker == worker && last->round == j->worker[worker].round &&
	    segment - last->segment < SAINA_BELL_SEGMENTS) {
		last->rung |= 1ull << (segment - last->segment);
		return;
	}
	emit(w, j, worker, SAINA_MSG_BELL, segment, again);
	last = &w->flight[w->in_flight - 1];
	if (last->type == SAINA_MSG_BELL && !last->rung)
		last->rung = 1 | (rng_chance(&w->rng, 20) ? rng_u64(&w->rng) : 0);
}

static void next_round(struct world *w, struct sim_job *j, struct sim_worker *s, uint32_t round)
{
	s->round = round;
	s->got_n = 0;
	s->idle = 0;
	memset(s->got, 0, sizeof(s->got));
	memset(s->sent, 0, sizeof(s->sent));
	if (rng_chance(&w->rng, 150))	/* it straggles */
		s->stall = rng_below(&w->rng, 8 * j->conf.segments + 8);
}

/* A worker's turn: sends what its window lets it, some of it again. */
static void worker_turn(struct world *w, struct sim_job *j, unsigned int i)
{
	struct sim_worker *s = &j->worker[i];
	const struct saina_job_conf *c = &j->conf;
	unsigned int burst = 16;

	if (!s->alive)
		return;
	if (s->stall) {
		s->stall--;
		return;
	}
	if (s->got_n == c->segments)
		next_round(w, j, s, s->round + 1);
	/* waits for a round that nobody makes any more: asks for the one before */
	if (++s->idle > 60 && rt_of(j)->next_round > j->first_round)
		next_round(w, j, s, rt_of(j)->next_round - 1);
	if (rng_chance(&w->rng, 5))
		emit(w, j, i, SAINA_MSG_PROBE, 0, false);
	if (rng_chance(&w->rng, 40))
		emit(w, j, i, SAINA_MSG_ASK, rng_below(&w->rng, c->segments), false);
	for (uint32_t seg = 0; seg < c->segments && burst; seg++) {
		if (test_bit(s->got, seg) ||
		    (seg >= c->pool && !test_bit(s->got, seg - c->pool)))
			continue;
		if (!test_bit(s->sent, seg)) {
			set_bit(s->sent, seg);
			emit_grad(w, j, i, seg, false);
			burst--;
		} else if (rng_chance(&w->rng, 150)) {
			if (rng_chance(&w->rng, 250))
				emit(w, j, i, SAINA_MSG_PULL, seg, true);
			else
				emit_grad(w, j, i, seg, true);
			burst--;
		}
	}
}

/* Everybody alive has a turn, in a random order of beginning. */
static void turns(struct world *w)
{
	for (unsigned int i = 0; i < WORLD_JOBS; i++) {
		struct sim_job *j = &w->job[i];
		unsigned int first;

		if (!j->present)
			continue;
		first = rng_below(&w->rng, j->workers);
		for (unsigned int n = 0; n < j->workers; n++)
			worker_turn(w, j, (first + n) % j->workers);
	}
}

bool world_next(struct world *w, struct message *m)
{
	unsigned int i;

	if (w->in_attic && rng_chance(&w->rng, 15)) {
		*m = w->attic[rng_below(&w->rng, w->in_attic)];
		return true;
	}
	if (w->in_flight < 16)
		turns(w);
	if (!w->in_flight)
		return false;
	i = rng_below(&w->rng, w->in_flight);
	*m = w->flight[i];
	if (rng_chance(&w->rng, w->dup))
		return true;		/* and it comes again */
	w->flight[i] = w->flight[--w->in_flight];
	if (rng_chance(&w->rng, w->hold)) {
		i = w->in_attic < WORLD_ATTIC ? w->in_attic++ : rng_below(&w->rng, WORLD_ATTIC);
		w->attic[i] = *m;
		return false;
	}
	return !rng_chance(&w->rng, w->loss_up);
}

bool world_more(struct world *w, const struct message *like, struct message *m)
{
	for (unsigned int i = 0; i < w->in_flight; i++) {
		*m = w->flight[i];
		if (m->job != like->job || m->worker != like->worker)
			continue;
		w->flight[i] = w->flight[--w->in_flight];
		return true;
	}
	return false;
}

unsigned int world_frame(struct world *w, const struct message *m, uint8_t *frame)
{
	struct sim_job *j = world_job(w, m->job);
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION,
		.type = m->type,
		.flags = m->flags,
		.elem = SAINA_ELEM_INT32,
		.job = m->job,
		.session = m->session,
		.round = m->round,
		.segment = m->segment,
		.worker = m->worker,
		.exponent = m->exponent,
	};
	struct saina_ask ask = { .time = (uint64_t)m->segment << 32 | m->round,
				 .counted = ~0ull, .done = m->round };
	struct saina_bell bell = { .rung = m->rung, .done = m->round };
	const void *payload = values;

	if (!j)		/* its job is gone: it arrives all the same */
		return frame_make(frame, &w->rig->g, &(struct saina_binding){}, &h, NULL, 0);
	if (m->type == SAINA_MSG_ASK)
		return frame_make(frame, &w->rig->g, &j->conf.worker[m->worker], &h, &ask,
				  sizeof(ask));
	if (m->type == SAINA_MSG_BELL)
		return frame_make(frame, &w->rig->g, &j->conf.worker[m->worker], &h, &bell,
				  sizeof(bell));
	if (m->type != SAINA_MSG_PROBE)
		h.count = j->conf.payload;
	if (m->type == SAINA_MSG_GRAD)
		payload = world_value(j, m->worker, m->round, m->segment, m->lie);
	return frame_make(frame, &w->rig->g, &j->conf.worker[m->worker], &h,
			  payload ? payload : values, 4 * h.count);
}

static void hear(struct world *w, struct sim_job *j, unsigned int i, const struct saina_hdr *h)
{
	struct sim_worker *s = &j->worker[i];

	if (!s->alive || rng_chance(&w->rng, w->loss_down))
		return;
	if (h->type == SAINA_MSG_STALE && h->round == s->round) {
		next_round(w, j, s, h->slot_round - (h->slot_round > j->first_round &&
						     rng_chance(&w->rng, 800)));
	} else if (h->type == SAINA_MSG_RESULT && h->round >= s->round) {
		if (h->round > s->round)
			next_round(w, j, s, h->round);
		if (!test_bit(s->got, h->segment)) {
			set_bit(s->got, h->segment);
			s->got_n++;
			s->idle = 0;
		}
	}
}

static bool one_answer(struct world *w, const uint8_t *message, uint64_t to);

/* What a RUNG says, as the RESULTs that would say the same. */
static bool rung(struct world *w, struct sim_job *j, const struct saina_hdr *h,
		 const struct saina_bell *bell, uint64_t to)
{
	static uint8_t message[sizeof(struct saina_hdr) + 4 * SAINA_ELEMS_MAX];

	for (unsigned int i = 0; i < SAINA_BELL_SEGMENTS; i++) {
		uint32_t segment = h->segment + i;
		const struct saina_board_head *b;
		struct saina_hdr r = *h;
		bool first;

		if (!(bell->done >> i & 1))
			continue;
		if (!rig_check_board(w->rig, h->job, h->round, segment)) {
			snprintf(w->error, sizeof(w->error), "%.500s", w->rig->diff);
			return false;
		}
		b = rig_board(w->rig, h->job, h->round, segment);
		if (!b || b->tag != h->round + 1ull)
			continue;
		first = h->worker == 0xff && !ledger_has(&j->ledger, h->round, segment);
		r.type = SAINA_MSG_RESULT;
		r.segment = segment;
		r.count = j->conf.payload;
		r.worker = 0xff;
		r.session = 0;
		r.exponent = b->exponent;
		r.contributors = b->contributors;
		r.mask = b->mask;
		r.k = b->k;
		r.policy = b->policy;
		r.flags = b->flags;
		memcpy(message, &r, sizeof(r));
		memcpy(message + sizeof(r), b + 1, 4 * j->conf.payload);
		if (first && !one_answer(w, message, to))
			return false;
		for (unsigned int n = 0; !first && n < j->workers; n++)
			if (to >> n & 1)
				hear(w, j, n, &r);
	}
	return true;
}

static unsigned int kind_of(const struct saina_policy *p)
{
	if (p->mode == SAINA_POLICY_FASTEST && p->timeout_us)
		return WORLD_FASTEST_TIMEOUT;
	if (p->mode == SAINA_POLICY_SFCD && p->flags & SAINA_POLICY_F_DOWN)
		return WORLD_SFCD_DOWN;
	return p->mode;
}

static bool one_answer(struct world *w, const uint8_t *message, uint64_t to)
{
	const void *payload = message + sizeof(struct saina_hdr);
	struct sim_job *j;
	struct saina_hdr h;

	memcpy(&h, message, sizeof(h));
	j = world_job(w, h.job);
	if (!j)
		return true;
	if (h.type == SAINA_MSG_RUNG) {
		struct saina_bell bell;

		memcpy(&bell, payload, sizeof(bell));
		return rung(w, j, &h, &bell, to);
	}
	if (!ledger_answer(&j->ledger, &h, payload)) {
		snprintf(w->error, sizeof(w->error), "ledger of job %u: %s", h.job,
			 j->ledger.error);
		return false;
	}
	if (h.type == SAINA_MSG_RESULT && h.worker == 0xff &&
	    !recompute_result(&j->recompute, &h, payload, rt_of(j))) {
		snprintf(w->error, sizeof(w->error), "SFCD of job %u: %s", h.job,
			 j->recompute.error);
		return false;
	}
	if (h.type == SAINA_MSG_RESULT && h.worker == 0xff)
		w->results[kind_of(&rt_of(j)->policy)]++;
	for (unsigned int i = 0; i < j->workers; i++)
		if (to >> i & 1)
			hear(w, j, i, &h);
	return true;
}

bool world_answer(struct world *w)
{
	const struct rig *r = w->rig;

	for (unsigned int i = 0; i < r->answers; i++)
		if (!one_answer(w, r->answer[i].message, r->answer[i].to))
			return false;
	return true;
}

/* A change is in force either at once, or the way the agent does it. */
static int publish(struct world *w, struct sim_job *j)
{
	if (rng_chance(&w->rng, 6))
		return rig_job(w->rig, &j->conf, 0);
	return rig_job_poke(w->rig, &j->conf);
}

static int death_or_birth(struct world *w, struct sim_job *j)
{
	struct saina_job_conf *c = &j->conf;
	unsigned int i = rng_below(&w->rng, j->workers);

	if (c->active >> i & 1) {
		if (!(c->active & (c->active - 1)))
			return 0;	/* the last one lives */
		c->active &= ~(1ull << i);
		j->worker[i].alive = false;
		/* seldom, because it waits for grace periods */
		if (rng_chance(&w->rng, 50))
			return rig_share(w->rig, c->job, i, false);
	} else {
		c->active |= 1ull << i;
		c->worker[i].session = ++j->sessions;
		worker_begin(w, j, i);
		if (w->rig->o.job[c->job].board && rng_chance(&w->rng, 50))
			return rig_share(w->rig, c->job, i, true);
	}
	return 0;
}

int world_happens(struct world *w)
{
	struct sim_job *j = &w->job[rng_below(&w->rng, WORLD_JOBS)];

	if (!j->present)
		return 0;
	if (j->conf.state != SAINA_JOB_RUNNING)
		return 0;
	switch (rng_below(&w->rng, 12)) {
	case 0 ... 3:
		if (death_or_birth(w, j))
			return -EINVAL;
		break;
	case 4 ... 6:
		new_policy(w, j);
		break;
	case 7 ... 8:
		j->conf.k_set = rng_below(&w->rng, j->workers + 1);
		break;
	case 9 ... 10:
		return rig_time_passes(w->rig, 1000ull * WORLD_TICK_US * rng_range(&w->rng, 1, 3));
	case 11:
		if (w->paused)
			return 0;
		j->conf.state = rng_chance(&w->rng, 500) ? SAINA_JOB_FORMING : SAINA_JOB_STOPPED;
		w->paused = j;
		break;
	}
	return publish(w, j);
}

int world_resume(struct world *w)
{
	struct sim_job *j = w->paused;

	w->paused = NULL;
	if (!j || !j->present)
		return 0;
	j->conf.state = SAINA_JOB_RUNNING;
	return publish(w, j);
}

int world_unstick(struct world *w)
{
	for (unsigned int i = 0; i < WORLD_JOBS; i++) {
		struct sim_job *j = &w->job[i];
		unsigned int number = j->conf.job, payload = j->conf.payload;
		int err;

		if (!j->present)
			continue;
		if (j->ledger.results != j->results_seen) {
			j->results_seen = j->ledger.results;
			j->seen_at = w->rig->packets;
		}
		if (w->rig->packets - j->seen_at < 20000)
			continue;
		w->stuck++;
		ledger_exit(&j->ledger);
		recompute_exit(&j->recompute);
		oracle_job_remove(&w->rig->o, number);
		err = world_job_new(w, i, number, payload);
		if (err)
			return err;
	}
	return 0;
}
