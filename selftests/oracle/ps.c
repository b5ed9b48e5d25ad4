// SPDX-License-Identifier: GPL-2.0-or-later
/* Section 11 of Documentation/datapath.rst: parameter-server (PS) mode, with steps. */
#include <string.h>
#include "internal.h"

static bool is_in(uint64_t set, unsigned int w)
{
	return set >> w & 1;
}

/* The group of a worker; without groups all are in one. */
static unsigned int group_of(const struct oracle_job *j, unsigned int w)
{
	return j->rt.policy.groups ? j->rt.policy.group[w] : 0;
}

/* PS mode is to end: the policy to come has rounds, or other groups. */
static bool is_ending(const struct oracle_job *j)
{
	const struct saina_policy *target = oracle_target_policy(j), *have = &j->rt.policy;

	return !oracle_has_steps(target) || target->groups != have->groups ||
	       memcmp(target->group, have->group, sizeof(have->group));
}

/* Steps that all members of a group have finished; an empty group starts after every step begun. */
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
	return is_ending(j) ? j->rt.policy.window : oracle_target_policy(j)->window;
}

static bool fits(const struct oracle_job *j, unsigned int w)
{
	return (uint64_t)j->clock.done[w] <= (uint64_t)low_of(j, group_of(j, w)) + window_of(j);
}

static void worker_remove(struct saina_clock *k, unsigned int w)
{
	k->members &= ~(1ull << w);
	k->going &= ~(1ull << w);
	k->waiting &= ~(1ull << w);
}

/* Low is the number of steps that the slowest member has finished. */
static void clock_update_low(struct saina_clock *k)
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

/* The first round after PS mode: behind every step that a worker has begun, or may begin. */
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

static void clock_update_members(struct oracle_job *j)
{
	struct saina_clock *k = &j->clock;
	uint32_t at[SAINA_WORKERS_MAX];

	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		if (is_in(j->conf.active, w))
			continue;
		worker_remove(k, w);
		k->session[w] = 0;
	}
	clock_update_low(k);
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
	clock_update_low(k);
	if (!is_ending(j))
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
	clock_update_low(k);
}

static bool is_ended(const struct oracle_job *j)
{
	return j->clock.fence && j->clock.low == j->clock.fence;
}

/* Follows a clock that may have moved: the round to come, the policy, the end of PS mode. */
static void job_update(struct oracle_msg *m)
{
	struct saina_job_rt *rt = &m->j->rt;
	const struct saina_policy *target = oracle_target_policy(m->j);
	bool adopts = !is_ending(m->j) && target->seq != rt->policy.seq;

	if (m->j->clock.low <= rt->next_round && !adopts && !is_ended(m->j))
		return;
	if (m->j->clock.low > rt->next_round)
		rt->next_round = m->j->clock.low;
	oracle_note_events(m->j);
	oracle_members_renew(m->j);
	/* the events may make a scheduled policy the one to adopt */
	if (!is_ending(m->j)) {
		oracle_ps_adopt(m->o, m->j);
	} else if (is_ended(m->j)) {
		rt->mode = SAINA_RT_FENCE;
		rt->base = m->j->clock.low;
		rt->open_slots = rt->segs_done = 0;
	}
}

bool oracle_is_wrong_mode(struct oracle_msg *m)
{
	struct saina_job_rt *rt = &m->j->rt;
	struct saina_clock *k = &m->j->clock;

	switch (m->hdr->type) {
	case SAINA_MSG_GRAD:
	case SAINA_MSG_PULL:
	case SAINA_MSG_ASK:
	case SAINA_MSG_DOORBELL:
	case SAINA_MSG_FETCH:
		return rt->mode == SAINA_RT_PS && m->round >= rt->base;
	case SAINA_MSG_READ:
		if (rt->mode == SAINA_RT_FENCE)
			return false;
		/* fallthrough */
	case SAINA_MSG_INC:
	case SAINA_MSG_CLOCK:
		if (rt->mode == SAINA_RT_SLOTS && !rt->members &&
		    oracle_has_steps(oracle_target_policy(m->j))) {
			oracle_note_events(m->j);
			if (oracle_has_steps(oracle_target_policy(m->j)))
				oracle_ps_begin(m->o, m->j);
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

static void session_update(struct oracle_msg *m)
{
	struct saina_clock *k = &m->j->clock;
	uint64_t session = m->j->conf.worker[m->w].session;

	if (k->session[m->w] && k->session[m->w] != session)
		worker_remove(k, m->w);
	k->session[m->w] = session;
}

static struct oracle_ps_answer answer_prepare(const struct oracle_msg *m)
{
	const struct saina_clock *k = &m->j->clock;

	return (struct oracle_ps_answer){ .low = low_of(m->j, group_of(m->j, m->w)),
					     .done = k->done[m->w],
					     .going = k->going & peers_of(m->j, m->w),
					     .base = k->base, .alone = is_alone(m->j, m->w),
					     .window = is_alone(m->j, m->w) ? SAINA_WINDOW_NONE :
									      window_of(m->j) };
}

/* INC and READ: updates the clock if members or policy have changed; may the sender go? */
static void clock_update(struct oracle_msg *m)
{
	struct saina_clock *k = &m->j->clock;

	session_update(m);
	if (k->members != m->j->conf.active || is_ending(m->j) != (k->fence != 0))
		clock_update_members(m->j);
	if (!k->fence && fits(m->j, m->w))
		k->going |= 1ull << m->w;
}

static struct oracle_slot *sum_entry(const struct oracle_msg *m)
{
	const struct saina_job_conf *c = &m->j->conf;

	return &m->j->ring[(size_t)m->segment * c->ring + m->j->clock.base % c->ring];
}

/* Is it a sum of the present steps?  Else it is an old result of rounds, or of earlier steps. */
static bool is_ps_entry(const struct oracle_msg *m, const struct oracle_slot *t)
{
	return t->meta.state == SAINA_SLOT_PS && t->meta.round == m->j->clock.base;
}

/* SAINA_F_FRESH if step @next is within the window. */
static unsigned int fresh_flag(uint64_t next, const struct oracle_ps_answer *a)
{
	return next <= (uint64_t)a->low + a->window ? SAINA_F_FRESH : 0;
}

static void refuse(struct oracle_msg *m, struct oracle_ps_answer *a, int reason, int counter)
{
	a->reason = reason;
	oracle_count(m, counter);
	oracle_answer_nak(m, a);
}

static void sum_add(struct oracle_msg *m, struct oracle_slot *t)
{
	if (!is_ps_entry(m, t)) {
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

static void answer_sum(struct oracle_msg *m, const struct oracle_ps_answer *a)
{
	static int32_t zeros[SAINA_ELEMS_MAX];
	static const struct oracle_slot nothing = { .sum = zeros };
	const struct oracle_slot *t = sum_entry(m);

	oracle_answer_sum(m, a, is_ps_entry(m, t) ? t : &nothing);
}

/* 11.9: the sums that the reader's group sees; NULL: none yet, answer with the current ones. */
static const struct oracle_slot *group_view(struct oracle_msg *m, const struct oracle_ps_answer *a)
{
	struct oracle_slot *v = &m->j->view[m->segment][group_of(m->j, m->w)];
	const struct oracle_slot *t = sum_entry(m);
	uint32_t base = m->j->clock.base;

	if (v->meta.state == SAINA_SLOT_PS && v->meta.policy == base && v->meta.round >= m->round)
		return v;
	if (m->round != a->done || m->round != a->low)
		return NULL;
	v->meta = (struct saina_slot_meta){ .state = SAINA_SLOT_PS, .policy = base,
					    .round = m->round, .segment = m->segment };
	memset(v->sum, 0, 4 * m->j->conf.payload);
	if (is_ps_entry(m, t)) {
		v->meta.exponent = t->meta.exponent;
		v->meta.sum_tag = t->meta.sum_tag;
		memcpy(v->sum, t->sum, 4 * m->j->conf.payload);
	}
	return v;
}

void oracle_inc(struct oracle_msg *m)
{
	struct saina_clock *k = &m->j->clock;
	struct oracle_slot *t = sum_entry(m);
	struct oracle_ps_answer a;
	uint32_t done;

	clock_update(m);
	a = answer_prepare(m);
	done = a.done;
	if (m->round == done && m->round <= SAINA_ROUND_MAX && is_in(k->going, m->w) &&
	    k->begun[m->w] < m->round + 1)
		k->begun[m->w] = m->round + 1;
	job_update(m);
	if (m->round > done || (m->round == done && m->round > SAINA_ROUND_MAX))
		return refuse(m, &a, SAINA_NAK_ORDER, SAINA_C_INC_ORDER);
	if (m->round == done && !is_in(a.going, m->w))
		return refuse(m, &a, SAINA_NAK_WAIT, SAINA_C_INC_WAIT);

	if (m->j->last[m->segment][m->w] > m->round) {
		a.flags = SAINA_F_RESEND;
		oracle_count(m, SAINA_C_RESENT);
	} else if (m->round < done) {
		return refuse(m, &a, SAINA_NAK_ORDER, SAINA_C_INC_ORDER);
	} else if (is_ps_entry(m, t) && t->meta.exponent != m->hdr->exponent) {
		a.exponent = t->meta.exponent;
		return refuse(m, &a, SAINA_NAK_EXPONENT, SAINA_C_EXPONENT);
	} else {
		sum_add(m, t);
		oracle_count(m, SAINA_C_INCED);
	}
	a.flags |= fresh_flag((uint64_t)m->round + 1, &a);
	answer_sum(m, &a);
}

void oracle_read(struct oracle_msg *m)
{
	const struct oracle_slot *view = NULL;
	struct oracle_ps_answer a;

	if (m->j->rt.mode == SAINA_RT_FENCE) {
		/* PS mode is over, and all its steps are in the sums */
		const struct oracle_slot *t = sum_entry(m);

		a = answer_prepare(m);
		a.low = m->j->clock.fence;
		a.window = window_of(m->j);
		if (t->meta.state != SAINA_SLOT_EMPTY && t->meta.round > m->j->clock.base)
			return oracle_answer_mode(m, a.low);
	} else {
		clock_update(m);
		a = answer_prepare(m);
		if (m->j->rt.policy.groups && !a.alone)
			view = group_view(m, &a);
		job_update(m);
	}
	a.flags = SAINA_F_PULLED | fresh_flag(m->round, &a);
	oracle_count(m, SAINA_C_READ);
	if (view)
		oracle_answer_sum(m, &a, view);
	else
		answer_sum(m, &a);
}

void oracle_clock(struct oracle_msg *m)
{
	struct saina_clock *k = &m->j->clock;
	struct oracle_ps_answer a;
	uint64_t me = 1ull << m->w, woken;
	uint32_t c = m->round;

	session_update(m);
	clock_update_members(m->j);
	if (c == k->done[m->w] && c <= SAINA_ROUND_MAX && k->going & me) {
		k->done[m->w]++;
		if (k->begun[m->w] < k->done[m->w])
			k->begun[m->w] = k->done[m->w];
		k->going &= ~me;
		clock_update_members(m->j);
		oracle_count(m, SAINA_C_CLOCKED);
		if (m->j->rt.policy.groups)
			oracle_note_arrival(m);
	} else if (c != SAINA_ROUND_ASK && c + 1 != k->done[m->w]) {
		oracle_count(m, SAINA_C_CLOCK_ORDER);
	}
	if (k->going & me) {
		k->waiting &= ~me;
	} else {
		k->waiting |= me;
		oracle_count(m, SAINA_C_CLOCK_WAIT);
	}
	woken = is_ended(m->j) ? k->waiting : k->waiting & k->going & peers_of(m->j, m->w);
	k->waiting &= ~woken;
	a = answer_prepare(m);
	if (is_ended(m->j))
		a.reason = SAINA_NAK_MODE;
	job_update(m);
	oracle_answer_go(m, &a, woken != 0);
}
