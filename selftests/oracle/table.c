// SPDX-License-Identifier: GPL-2.0-or-later
/* Section 11 of Documentation/datapath.rst: table mode. */
#include <string.h>
#include "oracle.h"

static bool is_in(uint64_t set, unsigned int w)
{
	return set >> w & 1;
}

static bool fits(const struct oracle_job *j, unsigned int w)
{
	return (uint64_t)j->clock.done[w] <= (uint64_t)j->clock.low + j->conf.window;
}

static void forget(struct saina_clock *k, unsigned int w)
{
	k->members &= ~(1ull << w);
	k->going &= ~(1ull << w);
	k->waiting &= ~(1ull << w);
}

/* Low follows the slowest member. */
static void follow(struct saina_clock *k)
{
	bool first = true;

	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		if (!is_in(k->members, w))
			continue;
		if (first || k->done[w] < k->low)
			k->low = k->done[w];
		first = false;
	}
}

static void settle(struct oracle_job *j)
{
	struct saina_clock *k = &j->clock;

	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		if (is_in(j->conf.active, w))
			continue;
		forget(k, w);
		k->session[w] = 0;
	}
	follow(k);
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		if (!is_in(j->conf.active & ~k->members, w))
			continue;
		k->done[w] = k->low;
		if (k->begun[w] > k->low)
			k->done[w] = k->begun[w];
	}
	k->members = j->conf.active;
	follow(k);
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		if (is_in(k->members, w) && fits(j, w))
			k->going |= 1ull << w;
}

static void hello(struct oracle_msg *m)
{
	struct saina_clock *k = &m->j->clock;
	uint64_t session = m->j->conf.worker[m->w].session;

	if (k->session[m->w] && k->session[m->w] != session)
		forget(k, m->w);
	k->session[m->w] = session;
}

static struct oracle_table_answer now(const struct oracle_msg *m)
{
	const struct saina_clock *k = &m->j->clock;

	return (struct oracle_table_answer){ .low = k->low, .done = k->done[m->w],
					     .going = k->going };
}

/* INC and READ meet the clock. */
static void look(struct oracle_msg *m)
{
	struct saina_clock *k = &m->j->clock;

	hello(m);
	if (k->members != m->j->conf.active)
		settle(m->j);
	if (fits(m->j, m->w))
		k->going |= 1ull << m->w;
}

static struct oracle_slot *entry(const struct oracle_msg *m)
{
	return &m->j->ring[(size_t)m->segment * m->j->conf.ring];
}

/* Would step @next, of whoever it is, fit? */
static unsigned int fresh(const struct oracle_msg *m, uint64_t next, uint32_t low)
{
	return next <= (uint64_t)low + m->j->conf.window ? SAINA_F_FRESH : 0;
}

static void nak(struct oracle_msg *m, struct oracle_table_answer *a, int reason, int counter)
{
	a->reason = reason;
	oracle_count(m, counter);
	oracle_answer_nak(m, a);
}

static void add(struct oracle_msg *m, struct oracle_slot *t)
{
	if (!t->meta.sum_tag) {
		t->meta.state = SAINA_SLOT_TABLE;
		t->meta.segment = m->segment;
		t->meta.exponent = m->hdr->exponent;
	}
	for (uint32_t i = 0; i < m->j->conf.payload; i++) {
		uint32_t v;

		memcpy(&v, m->payload + 4 * i, 4);
		t->sum[i] = (uint32_t)t->sum[i] + v;
	}
	t->meta.sum_tag++;
	m->j->last[m->segment][m->w] = m->round + 1;
}

void oracle_inc(struct oracle_msg *m)
{
	struct saina_clock *k = &m->j->clock;
	struct oracle_slot *t = entry(m);
	struct oracle_table_answer a;
	uint32_t done;

	look(m);
	a = now(m);
	done = a.done;
	if (m->round > done || (m->round == done && m->round > SAINA_ROUND_MAX))
		return nak(m, &a, SAINA_NAK_ORDER, SAINA_C_INC_ORDER);
	if (m->round == done && !is_in(k->going, m->w))
		return nak(m, &a, SAINA_NAK_WAIT, SAINA_C_INC_WAIT);
	if (m->round == done && k->begun[m->w] < m->round + 1)
		k->begun[m->w] = m->round + 1;

	if (m->j->last[m->segment][m->w] > m->round) {
		a.flags = SAINA_F_RESEND;
		oracle_count(m, SAINA_C_RESENT);
	} else if (m->round < done) {
		return nak(m, &a, SAINA_NAK_ORDER, SAINA_C_INC_ORDER);
	} else if (t->meta.sum_tag && t->meta.exponent != m->hdr->exponent) {
		a.exponent = t->meta.exponent;
		return nak(m, &a, SAINA_NAK_EXPONENT, SAINA_C_EXPONENT);
	} else {
		add(m, t);
		oracle_count(m, SAINA_C_INCED);
	}
	a.flags |= fresh(m, (uint64_t)m->round + 1, a.low);
	oracle_answer_sum(m, &a, t);
}

void oracle_read(struct oracle_msg *m)
{
	struct oracle_table_answer a;

	look(m);
	a = now(m);
	a.flags = SAINA_F_PULLED | fresh(m, m->round, a.low);
	oracle_count(m, SAINA_C_READ);
	oracle_answer_sum(m, &a, entry(m));
}

void oracle_clock(struct oracle_msg *m)
{
	struct saina_clock *k = &m->j->clock;
	struct oracle_table_answer a;
	uint64_t me = 1ull << m->w, woken;
	uint32_t c = m->round;

	hello(m);
	settle(m->j);
	if (c == k->done[m->w] && c <= SAINA_ROUND_MAX && k->going & me) {
		k->done[m->w]++;
		if (k->begun[m->w] < k->done[m->w])
			k->begun[m->w] = k->done[m->w];
		k->going &= ~me;
		settle(m->j);
		oracle_count(m, SAINA_C_CLOCKED);
	} else if (c != SAINA_ROUND_ASK && c + 1 != k->done[m->w]) {
		oracle_count(m, SAINA_C_CLOCK_ORDER);
	}
	if (k->going & me) {
		k->waiting &= ~me;
	} else {
		k->waiting |= me;
		oracle_count(m, SAINA_C_CLOCK_WAIT);
	}
	woken = k->waiting & k->going;
	k->waiting &= ~woken;
	a = now(m);
	oracle_answer_go(m, &a, woken != 0);
}
