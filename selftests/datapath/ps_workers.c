// SPDX-License-Identifier: GPL-2.0-or-later
#include "ps_rules.h"
#include "ps_workers.h"

static struct ps_message *emit(struct ps_sim *w, unsigned int i, int type, uint32_t round,
			       uint32_t segment)
{
	static struct ps_message none;
	struct ps_message *m = w->in_flight < PS_FLIGHT ? &w->flight[w->in_flight++] : &none;

	*m = (struct ps_message){ .type = type, .worker = i, .exponent = segment % 20,
				     .session = w->conf.worker[i].session, .round = round,
				     .segment = segment };
	return m;
}

/* Sends a message that no correct worker sends. */
static void emit_dishonest(struct ps_sim *w, unsigned int i)
{
	static const uint8_t type[] = { SAINA_MSG_INC, SAINA_MSG_INC, SAINA_MSG_CLOCK,
					SAINA_MSG_CLOCK, SAINA_MSG_READ, SAINA_MSG_GRAD,
					SAINA_MSG_PULL, SAINA_MSG_ASK, SAINA_MSG_DOORBELL,
					SAINA_MSG_FETCH, SAINA_MSG_GO };
	static const int8_t other[] = { SAINA_EXPONENT_NAN, SAINA_EXPONENT_INT, SAINA_EXPONENT_MIN,
					SAINA_EXPONENT_MAX };
	struct rng *r = &w->rng;
	uint32_t round = w->worker[i].step + rng_range(r, 0, 6) - 3;
	struct ps_message *m;

	if (rng_chance(r, 100))
		round = rng_u64(r);
	if (rng_chance(r, 50))
		round = SAINA_ROUND_ASK;
	m = emit(w, i, type[rng_below(r, sizeof(type))], round, rng_below(r, w->conf.segments));
	m->exponent += rng_chance(r, 200);
	if (rng_chance(r, 100))
		m->exponent = other[rng_below(r, sizeof(other))];
}

/* The gradient of a round; scales of workers differ, some have a NaN. */
static void emit_grad(struct ps_sim *w, unsigned int i, uint32_t segment, bool again)
{
	struct ps_message *m = emit(w, i, SAINA_MSG_GRAD, w->worker[i].step, segment);

	m->flags = again ? SAINA_F_RETRANSMIT : 0;
	if (rng_chance(&w->rng, 300))
		m->exponent += rng_below(&w->rng, 60);
	if (rng_chance(&w->rng, 5))
		m->exponent = SAINA_EXPONENT_NAN;
}

void ps_worker_send(struct ps_sim *w, unsigned int i)
{
	struct ps_worker *s = &w->worker[i];
	uint32_t all = (1u << w->conf.segments) - 1;
	enum ps_state state = s->state;
	struct rng *r = &w->rng;

	if (!(w->conf.active >> i & 1))
		return;
	if (s->stall) {
		s->stall--;
		return;
	}
	if (rng_chance(r, w->dense ? 4 : 20))
		emit_dishonest(w, i);
	if (rng_chance(r, w->dense ? 4 : 50))
		emit(w, i, SAINA_MSG_READ, s->step, rng_below(r, w->conf.segments));
	switch (s->state) {
	case PS_ROUNDS:
		if (rng_chance(r, 30))
			emit(w, i, SAINA_MSG_PULL, s->step, rng_below(r, w->conf.segments));
		if (rng_chance(r, 30))
			emit(w, i, SAINA_MSG_ASK, s->step, rng_below(r, w->conf.segments));
		for (uint32_t n = 0; n < w->conf.segments; n++) {
			bool again = s->sent >> n & 1;

			if (s->acked >> n & 1 || (again && !rng_chance(r, 200)) ||
			    (n >= w->conf.pool && !(s->acked >> (n - w->conf.pool) & 1)))
				continue;
			emit_grad(w, i, n, again);
			s->sent |= 1u << n;
		}
		return;
	case PS_ASKS:
		emit(w, i, SAINA_MSG_CLOCK, SAINA_ROUND_ASK, 0);
		return;
	case PS_WAITS:
		if (rng_chance(r, w->dense ? 30 : 100))
			emit(w, i, SAINA_MSG_CLOCK, s->step - 1, 0);
		return;
	case PS_PUSHES:
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
		s->state = PS_CLOCKS;
		/* fallthrough */
	case PS_CLOCKS:
		if (!w->dense || s->state != state || rng_chance(r, 300))
			emit(w, i, SAINA_MSG_CLOCK, s->step, 0);
	}
}

static void begin_step(struct ps_sim *w, struct ps_worker *s, uint32_t step, bool go)
{
	if (step != s->step || s->state == PS_ASKS) {
		s->acked = s->sent = 0;
		s->unread = ps_rt(w)->policy.groups ? (1u << w->conf.segments) - 1 : 0;
		if (rng_chance(&w->rng, 150))	/* it straggles */
			s->stall = rng_below(&w->rng, 60);
	}
	s->step = step;
	s->state = !go ? PS_WAITS : s->state == PS_CLOCKS ? PS_CLOCKS : PS_PUSHES;
	if (go && s->acked != (1u << w->conf.segments) - 1)
		s->state = PS_PUSHES;
}

static void begin_rounds(struct ps_sim *w, struct ps_worker *s, uint32_t round)
{
	s->acked = s->sent = 0;
	s->state = PS_ROUNDS;
	s->step = round;
	if (rng_chance(&w->rng, 150))
		s->stall = rng_below(&w->rng, 60);
}

/* Steps have ended: begins rounds with @since.  Rounds have ended: asks which step it is in. */
static void change_mode(struct ps_sim *w, struct ps_worker *s, uint32_t since)
{
	if (s->state != PS_ROUNDS) {
		begin_rounds(w, s, since);
		return;
	}
	s->acked = s->sent = 0;
	s->state = PS_ASKS;
}

static void hear_result(struct ps_sim *w, struct ps_worker *s, const struct saina_hdr *h)
{
	/* the result of its round is gone: goes on with the oldest round that is still kept */
	if (h->type == SAINA_MSG_STALE && h->round == s->step)
		begin_rounds(w, s, s->step + 1 < h->slot_round ? h->slot_round - 1 : h->slot_round);
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

void ps_worker_receive(struct ps_sim *w, unsigned int i, const struct saina_hdr *h)
{
	struct ps_worker *s = &w->worker[i];
	bool go = h->mask >> i & 1;

	if (rng_chance(&w->rng, w->loss_down) || !(w->conf.active >> i & 1))
		return;
	if (h->k == SAINA_NAK_MODE && (h->type == SAINA_MSG_NAK || h->type == SAINA_MSG_GO)) {
		/* the NAK is for a message of an old round: the mode may have changed since */
		if (h->type == SAINA_MSG_NAK && h->round + 1ull < s->step)
			return;
		change_mode(w, s, h->slot_round);
	} else if (s->state == PS_ROUNDS) {
		hear_result(w, s, h);
	} else if (h->type == SAINA_MSG_STALE || h->type == SAINA_MSG_RESULT ||
		   h->type == SAINA_MSG_ASK_REPLY) {
		return;
	} else if (h->type == SAINA_MSG_SUM) {
		if (!(h->flags & SAINA_F_PULLED) && h->round == s->step)
			s->acked |= 1u << h->segment;
		if (h->flags & SAINA_F_PULLED && h->round == s->step)
			s->unread &= ~(1u << h->segment);
	} else if (h->worker != 0xff) {
		begin_step(w, s, h->aux, go);
	} else if (s->state == PS_WAITS && go && s->step - h->slot_round <= h->segment) {
		begin_step(w, s, s->step, true);
	}
}
