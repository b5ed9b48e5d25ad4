// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>
#include "harness_shm.h"
#include "sim_uplink.h"
#include "sim_workers.h"

static bool test_bit(const uint64_t *map, uint32_t i)
{
	return map[i / 64] >> (i % 64) & 1;
}

static void set_bit(uint64_t *map, uint32_t i)
{
	map[i / 64] |= 1ull << (i % 64);
}

/*
 * More workers than the sender may stand for; flags that only an uplink worker's gradient may have; TYPES,
 * which a node's or the uplink worker's may have, if there is no sum.
 */
static void spoil_gradient(struct sim *w, const struct sim_job *j, struct message *m)
{
	uint32_t most = sim_max_weight(j, m->worker);

	if (!w->uplinks)
		return;
	if (rng_chance(&w->rng, 8))
		m->weight = (most ? most : 1) + (rng_chance(&w->rng, 700) ? 0 : (uint32_t)rng_u64(&w->rng) >> 8);
	if (rng_chance(&w->rng, 8) && (int)m->worker != j->uplink)
		m->flags |= rng_chance(&w->rng, 500) ? SAINA_F_LATE : rng_chance(&w->rng, 500) ? SAINA_F_DEGRADED :
			    SAINA_F_DROP_LATE;
	if (rng_chance(&w->rng, m->exponent == SAINA_EXPONENT_NAN ? 400 : 4))
		m->flags |= SAINA_F_TYPES;
}

struct message *sim_emit(struct sim *w, struct sim_job *j, unsigned int worker, int type, uint32_t round,
			 uint32_t segment)
{
	struct message *m;

	if (w->in_flight == SIM_FLIGHT)
		return NULL;
	m = &w->flight[w->in_flight++];
	memset(m, 0, sizeof(*m));
	m->job = j->conf.job;
	m->worker = worker;
	m->type = type;
	m->session = j->conf.worker[worker].session;
	m->round = round;
	m->segment = segment;
	m->lie = type == SAINA_MSG_GRAD && j->liar == (int)worker && rng_chance(&w->rng, 300);
	if (type == SAINA_MSG_GRAD)
		m->exponent = sim_gradient(j, worker, round, segment, m->lie).exponent;
	else
		m->exponent = rng_below(&w->rng, 256);	/* ignored */
	m->weight = type == SAINA_MSG_GRAD ? sim_gradient(j, worker, round, segment, m->lie).weight :
					     rng_below(&w->rng, 3);	/* ignored */
	if (type == SAINA_MSG_GRAD)
		spoil_gradient(w, j, m);
	return m;
}

static void emit(struct sim *w, struct sim_job *j, unsigned int worker, int type,
		 uint32_t segment, bool again)
{
	struct message *m = sim_emit(w, j, worker, type, j->worker[worker].round, segment);

	if (m && again)
		m->flags |= SAINA_F_RETRANSMIT;
}

/* Writes a segment into the worker's input array, now and then a bad one; false: it has none. */
static bool write_input(struct sim *w, struct sim_job *j, unsigned int worker, uint32_t segment)
{
	struct saina_input_head *in = harness_shm_input(w->harness, j->conf.job, worker, segment);
	const struct sim_worker *s = &j->worker[worker];
	struct ledger_gradient said;

	if (!in)
		return false;
	in->session = j->conf.worker[worker].session;
	in->round = s->round;
	in->segment = segment;
	if (rng_chance(&w->rng, 10))
		in->round += rng_chance(&w->rng, 500) ? 1 : -1;
	/* the gradient of the round in the header tag: a DOORBELL for that round makes it count */
	said = sim_gradient(j, worker, in->round, segment, 0);
	in->exponent = said.exponent;
	in->flags = rng_u64(&w->rng);	/* not looked at, nor this: */
	in->weight = rng_u64(&w->rng);
	memcpy(in + 1, said.v, 4 * j->conf.payload);
	if (rng_chance(&w->rng, 5))
		in->session ^= 1ull << rng_below(&w->rng, 64);
	if (rng_chance(&w->rng, 5))
		sim_spoil_exponent(j, &in->exponent);
	return true;
}

static bool by_reference(struct sim *w, struct sim_job *j, unsigned int worker, uint32_t segment)
{
	return rng_chance(&w->rng, 700) && write_input(w, j, worker, segment);
}

/* Sends a gradient: in a message of its own, or as one more segment of a DOORBELL. */
static void emit_grad(struct sim *w, struct sim_job *j, unsigned int worker, uint32_t segment,
		      bool again)
{
	struct message *last = w->in_flight ? &w->flight[w->in_flight - 1] : NULL;

	/* now and then a DOORBELL of a worker without an input array */
	if (!by_reference(w, j, worker, segment) && !rng_chance(&w->rng, 5)) {
		emit(w, j, worker, SAINA_MSG_GRAD, segment, again);
		return;
	}
	if (last && last->type == SAINA_MSG_DOORBELL && last->job == j->conf.job &&
	    last->worker == worker && last->round == j->worker[worker].round &&
	    segment - last->segment < SAINA_DOORBELL_SEGMENTS) {
		last->posted |= 1ull << (segment - last->segment);
		return;
	}
	emit(w, j, worker, SAINA_MSG_DOORBELL, segment, again);
	last = &w->flight[w->in_flight - 1];
	if (last->type == SAINA_MSG_DOORBELL && !last->posted)
		last->posted = 1 | (rng_chance(&w->rng, 20) ? rng_u64(&w->rng) : 0);
}

/* Asks for a result, and where the worker has an input array perhaps for more of them. */
static void emit_pull(struct sim *w, struct sim_job *j, unsigned int worker, uint32_t segment)
{
	struct message *m;

	if (!rng_chance(&w->rng, harness_shm_input(w->harness, j->conf.job, worker, segment) ? 700 : 10)) {
		emit(w, j, worker, SAINA_MSG_PULL, segment, true);
		return;
	}
	emit(w, j, worker, SAINA_MSG_FETCH, segment, true);
	m = &w->flight[w->in_flight - 1];
	if (m->type == SAINA_MSG_FETCH && !m->posted)
		m->posted = 1 | (rng_chance(&w->rng, 200) ? rng_u64(&w->rng) : 0);
}

static void next_round(struct sim *w, struct sim_job *j, struct sim_worker *s, uint32_t round)
{
	s->round = round;
	s->got_n = 0;
	s->idle = 0;
	memset(s->got, 0, sizeof(s->got));
	memset(s->sent, 0, sizeof(s->sent));
	if (rng_chance(&w->rng, 150))	/* it straggles */
		s->stall = rng_below(&w->rng, 8 * j->conf.segments + 8);
}

/* A worker sends what its window permits, and repeats some of it. */
static void worker_send(struct sim *w, struct sim_job *j, unsigned int i)
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
	/* nobody completes this round any more: back to the previous one */
	if (++s->idle > 60 && sim_rt(j)->next_round > j->first_round)
		next_round(w, j, s, sim_rt(j)->next_round - 1);
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
				emit_pull(w, j, i, seg);
			else
				emit_grad(w, j, i, seg, true);
			burst--;
		}
	}
}

void sim_workers_send(struct sim *w)
{
	for (unsigned int i = 0; i < SIM_JOBS; i++) {
		struct sim_job *j = &w->job[i];
		unsigned int first;

		if (!j->present)
			continue;
		sim_uplink_send(w, j);
		first = rng_below(&w->rng, j->workers);
		for (unsigned int n = 0; n < j->workers; n++)
			worker_send(w, j, (first + n) % j->workers);
	}
}

void sim_worker_receive(struct sim *w, struct sim_job *j, unsigned int i, const struct saina_hdr *h)
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
