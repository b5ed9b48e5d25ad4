// SPDX-License-Identifier: GPL-2.0-or-later
/* Section 11 of Documentation/datapath.rst: table mode. */
#include <string.h>
#include "oracle.h"

static bool is_in(uint64_t set, unsigned int w)
{
	return set >> w & 1;
}

/* The group of a worker; without groups all are in one. */
static unsigned int group_of(const struct oracle_job *j, unsigned int w)
{
	return j->rt.policy.groups ? j->rt.policy.group[w] : 0;
}

/* The table is to end: there will be rounds, or other groups. */
static bool leaves(const struct oracle_job *j)
{
	const struct saina_policy *target = oracle_target(j), *have = &j->rt.policy;

	return !oracle_has_steps(target) || target->groups != have->groups ||
	       memcmp(target->group, have->group, sizeof(have->group));
}

/* Steps that all members of a group have finished; an empty one goes on where any has been. */
static uint32_t low_of(const struct oracle_job *j, unsigned int group)
{
	uint32_t low = 0;
	bool any = false;

	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		if (!is_in(j->clock.members, w) || group_of(j, w) != group)
			continue;
		if (!any || j->clock.done[w] < low)
			low = j->clock.done[w];
		any = true;
	}
	if (any)
		return low;
	low = j->clock.low;
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		if (j->clock.begun[w] > low)
			low = j->clock.begun[w];
	return low;
}

static uint64_t peers_of(const struct oracle_job *j, unsigned int w)
{
	uint64_t peers = 0;

	for (unsigned int i = 0; i < SAINA_WORKERS_MAX; i++)
		if (group_of(j, i) == group_of(j, w))
			peers |= 1ull << i;
	return peers;
}

/* There are groups, and this worker is the only member of its own. */
static bool is_alone(const struct oracle_job *j, unsigned int w)
{
	return j->rt.policy.groups && !(j->clock.members & peers_of(j, w) & ~(1ull << w));
}

static uint32_t window_of(const struct oracle_job *j)
{
	return leaves(j) ? j->rt.policy.window : oracle_target(j)->window;
}

static bool fits(const struct oracle_job *j, unsigned int w)
{
	return (uint64_t)j->clock.done[w] <= (uint64_t)low_of(j, group_of(j, w)) + window_of(j);
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

/* The first round after the table: no step that anybody has begun, or may begin. */
static uint32_t fence_of(const struct oracle_job *j)
{
	const struct saina_clock *k = &j->clock;
	uint64_t fence = k->low, end;

	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		end = k->begun[w];
		if (is_in(k->members, w) && (uint64_t)k->done[w] + is_in(k->going, w) > end)
			end = (uint64_t)k->done[w] + is_in(k->going, w);
		if (end > fence)
			fence = end;
	}
	if (fence % j->conf.ring == k->base % j->conf.ring)
		fence++;
	return fence <= SAINA_ROUND_MAX ? fence : 0;
}

static void settle(struct oracle_job *j)
{
	struct saina_clock *k = &j->clock;
	uint32_t at[SAINA_WORKERS_MAX];

	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		if (is_in(j->conf.active, w))
			continue;
		forget(k, w);
		k->session[w] = 0;
	}
	follow(k);
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		if (is_in(j->conf.active & ~k->members, w))
			at[w] = low_of(j, group_of(j, w));
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		if (!is_in(j->conf.active & ~k->members, w))
			continue;
		k->done[w] = at[w];
		if (k->begun[w] > at[w])
			k->done[w] = k->begun[w];
	}
	k->members = j->conf.active;
	follow(k);
	if (!leaves(j))
		k->fence = 0;
	else if (!k->fence)
		k->fence = fence_of(j);
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		if (!is_in(k->members, w))
			continue;
		if (k->fence && !k->going)
			k->done[w] = k->fence;
		else if (!k->fence && fits(j, w))
			k->going |= 1ull << w;
	}
	follow(k);
}

static bool is_left(const struct oracle_job *j)
{
	return j->clock.fence && j->clock.low == j->clock.fence;
}

/* The clock has been looked at, and may have moved: what comes of it for the job. */
static void job_follows(struct oracle_msg *m)
{
	struct saina_job_rt *rt = &m->j->rt;
	const struct saina_policy *target = oracle_target(m->j);
	bool adopts = !leaves(m->j) && target->seq != rt->policy.seq;

	if (m->j->clock.low <= rt->next_round && !adopts && !is_left(m->j))
		return;
	if (m->j->clock.low > rt->next_round)
		rt->next_round = m->j->clock.low;
	oracle_happenings(m->j);
	/* what has happened may have made another policy the one to be in force */
	if (!leaves(m->j)) {
		oracle_table_adopt(m->o, m->j);
	} else if (is_left(m->j)) {
		rt->mode = SAINA_RT_FENCE;
		rt->base = m->j->clock.low;
		rt->open_slots = rt->segs_done = 0;
	}
}

bool oracle_is_other_mode(struct oracle_msg *m)
{
	struct saina_job_rt *rt = &m->j->rt;
	struct saina_clock *k = &m->j->clock;

	switch (m->hdr->type) {
	case SAINA_MSG_GRAD:
	case SAINA_MSG_PULL:
	case SAINA_MSG_ASK:
	case SAINA_MSG_DOORBELL:
		return rt->mode == SAINA_RT_PS && m->round >= rt->base;
	case SAINA_MSG_READ:
		if (rt->mode == SAINA_RT_FENCE)
			return false;
		/* fallthrough */
	case SAINA_MSG_INC:
	case SAINA_MSG_CLOCK:
		if (rt->mode == SAINA_RT_SLOTS && !rt->members &&
		    oracle_has_steps(oracle_target(m->j))) {
			oracle_happenings(m->j);
			if (oracle_has_steps(oracle_target(m->j)))
				oracle_table_begin(m->o, m->j);
		}
		if (rt->mode != SAINA_RT_PS)
			return true;
		if (k->base != rt->base) {
			k->base = k->low = rt->base;
			k->fence = 0;
			k->members = k->going = k->waiting = 0;
		}
	}
	return false;
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

	return (struct oracle_table_answer){ .low = low_of(m->j, group_of(m->j, m->w)),
					     .done = k->done[m->w],
					     .going = k->going & peers_of(m->j, m->w),
					     .base = k->base, .alone = is_alone(m->j, m->w),
					     .window = is_alone(m->j, m->w) ? SAINA_WINDOW_NONE :
									      window_of(m->j) };
}

/* INC and READ meet the clock. */
static void look(struct oracle_msg *m)
{
	struct saina_clock *k = &m->j->clock;

	hello(m);
	if (k->members != m->j->conf.active || leaves(m->j) != (k->fence != 0))
		settle(m->j);
	if (!k->fence && fits(m->j, m->w))
		k->going |= 1ull << m->w;
}

static struct oracle_slot *entry(const struct oracle_msg *m)
{
	const struct saina_job_conf *c = &m->j->conf;

	return &m->j->ring[(size_t)m->segment * c->ring + m->j->clock.base % c->ring];
}

/* Is it of this table, or what the ring has kept of rounds? */
static bool is_of_table(const struct oracle_msg *m, const struct oracle_slot *t)
{
	return t->meta.state == SAINA_SLOT_PS && t->meta.round == m->j->clock.base;
}

/* Would step @next, of whoever it is, fit? */
static unsigned int fresh(uint64_t next, const struct oracle_table_answer *a)
{
	return next <= (uint64_t)a->low + a->window ? SAINA_F_FRESH : 0;
}

static void nak(struct oracle_msg *m, struct oracle_table_answer *a, int reason, int counter)
{
	a->reason = reason;
	oracle_count(m, counter);
	oracle_answer_nak(m, a);
}

static void add(struct oracle_msg *m, struct oracle_slot *t)
{
	if (!is_of_table(m, t)) {
		t->meta.state = SAINA_SLOT_PS;
		t->meta.round = m->j->clock.base;
		t->meta.segment = m->segment;
		t->meta.exponent = m->hdr->exponent;
		t->meta.sum_tag = 0;
		memset(t->sum, 0, 4 * m->j->conf.payload);
	}
	for (uint32_t i = 0; i < m->j->conf.payload; i++) {
		uint32_t v;

		memcpy(&v, m->payload + 4 * i, 4);
		t->sum[i] = (uint32_t)t->sum[i] + v;
	}
	t->meta.sum_tag++;
	m->j->last[m->segment][m->w] = m->round + 1;
}

static void answer_sum(struct oracle_msg *m, const struct oracle_table_answer *a)
{
	static int32_t zeros[SAINA_ELEMS_MAX];
	static const struct oracle_slot nothing = { .sum = zeros };
	const struct oracle_slot *t = entry(m);

	oracle_answer_sum(m, a, is_of_table(m, t) ? t : &nothing);
}

/* 11.9: what the reader's group sees of the segment; the table, until somebody has seen that. */
static const struct oracle_slot *seen(struct oracle_msg *m, const struct oracle_table_answer *a)
{
	struct oracle_slot *v = &m->j->view[m->segment][group_of(m->j, m->w)];
	const struct oracle_slot *t = entry(m);
	uint32_t base = m->j->clock.base;

	if (v->meta.state == SAINA_SLOT_PS && v->meta.policy == base && v->meta.round >= m->round)
		return v;
	if (m->round != a->done || m->round != a->low)
		return NULL;
	v->meta = (struct saina_slot_meta){ .state = SAINA_SLOT_PS, .policy = base,
					    .round = m->round, .segment = m->segment };
	memset(v->sum, 0, 4 * m->j->conf.payload);
	if (is_of_table(m, t)) {
		v->meta.exponent = t->meta.exponent;
		v->meta.sum_tag = t->meta.sum_tag;
		memcpy(v->sum, t->sum, 4 * m->j->conf.payload);
	}
	return v;
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
	if (m->round == done && m->round <= SAINA_ROUND_MAX && is_in(k->going, m->w) &&
	    k->begun[m->w] < m->round + 1)
		k->begun[m->w] = m->round + 1;
	job_follows(m);
	if (m->round > done || (m->round == done && m->round > SAINA_ROUND_MAX))
		return nak(m, &a, SAINA_NAK_ORDER, SAINA_C_INC_ORDER);
	if (m->round == done && !is_in(a.going, m->w))
		return nak(m, &a, SAINA_NAK_WAIT, SAINA_C_INC_WAIT);

	if (m->j->last[m->segment][m->w] > m->round) {
		a.flags = SAINA_F_RESEND;
		oracle_count(m, SAINA_C_RESENT);
	} else if (m->round < done) {
		return nak(m, &a, SAINA_NAK_ORDER, SAINA_C_INC_ORDER);
	} else if (is_of_table(m, t) && t->meta.exponent != m->hdr->exponent) {
		a.exponent = t->meta.exponent;
		return nak(m, &a, SAINA_NAK_EXPONENT, SAINA_C_EXPONENT);
	} else {
		add(m, t);
		oracle_count(m, SAINA_C_INCED);
	}
	a.flags |= fresh((uint64_t)m->round + 1, &a);
	answer_sum(m, &a);
}

void oracle_read(struct oracle_msg *m)
{
	const struct oracle_slot *view = NULL;
	struct oracle_table_answer a;

	if (m->j->rt.mode == SAINA_RT_FENCE) {
		/* the table is over, and all steps of it are in */
		const struct oracle_slot *t = entry(m);

		a = now(m);
		a.low = m->j->clock.fence;
		a.window = window_of(m->j);
		if (t->meta.state != SAINA_SLOT_EMPTY && t->meta.round > m->j->clock.base)
			return oracle_answer_mode(m, a.low);
	} else {
		look(m);
		a = now(m);
		if (m->j->rt.policy.groups && !a.alone)
			view = seen(m, &a);
		job_follows(m);
	}
	a.flags = SAINA_F_PULLED | fresh(m->round, &a);
	oracle_count(m, SAINA_C_READ);
	if (view)
		oracle_answer_sum(m, &a, view);
	else
		answer_sum(m, &a);
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
		if (m->j->rt.policy.groups)
			oracle_arrived(m);
	} else if (c != SAINA_ROUND_ASK && c + 1 != k->done[m->w]) {
		oracle_count(m, SAINA_C_CLOCK_ORDER);
	}
	if (k->going & me) {
		k->waiting &= ~me;
	} else {
		k->waiting |= me;
		oracle_count(m, SAINA_C_CLOCK_WAIT);
	}
	woken = is_left(m->j) ? k->waiting : k->waiting & k->going & peers_of(m->j, m->w);
	k->waiting &= ~woken;
	a = now(m);
	if (is_left(m->j))
		a.reason = SAINA_NAK_MODE;
	job_follows(m);
	oracle_answer_go(m, &a, woken != 0);
}
