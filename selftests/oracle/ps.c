// SPDX-License-Identifier: GPL-2.0-or-later
/* Section 11 of Documentation/datapath.rst: parameter-server (PS) mode, with steps. */
#include <string.h>
#include "internal.h"

/* The group of a worker; without groups all are in one. */
static int group_of(const struct oracle_job *j, unsigned int w)
{
	return j->rt.policy.groups ? j->rt.policy.group[w] : 0;
}

/* The members of the clock, of worker @w's group alone or (-1) of all. */
static struct oracle_workers members_of(const struct oracle_job *j, int group)
{
	struct oracle_workers l = {};

	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		if (j->step[w].member && (group < 0 || group == group_of(j, w)))
			l.w[l.n++] = w;
	return l;
}

/* Steps that all of these have finished; of nobody: @otherwise. */
static uint32_t least_done(const struct oracle_job *j, const struct oracle_workers *l, uint32_t otherwise)
{
	uint32_t least = otherwise;

	for (unsigned int i = 0; i < l->n; i++)
		if (!i || j->step[l->w[i]].done < least)
			least = j->step[l->w[i]].done;
	return least;
}

static void renew_low(struct oracle_job *j)
{
	struct oracle_workers all = members_of(j, -1);

	j->clock.low = least_done(j, &all, j->clock.low);
}

/* The first step that no worker of the table has begun, nor finished. */
static uint32_t first_untouched(const struct oracle_job *j)
{
	uint32_t step = j->clock.low;

	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		if (j->step[w].begun > step)
			step = j->step[w].begun;
	return step;
}

/* Steps that all members of a group have finished; an empty group starts after every step begun. */
static uint32_t low_of(const struct oracle_job *j, int group)
{
	struct oracle_workers l = members_of(j, group);

	return least_done(j, &l, first_untouched(j));
}

/* There are groups, and this worker is the only member of its own. */
static bool is_alone(const struct oracle_job *j, unsigned int w)
{
	struct oracle_workers l = members_of(j, group_of(j, w));

	return j->rt.policy.groups && l.n == oracle_is_one_of(&l, w);
}

/* PS mode is to end: the policy to come has rounds, or other groups. */
static bool is_ending(const struct oracle_job *j)
{
	const struct saina_policy *to = oracle_target_policy(j), *from = &j->rt.policy;

	if (!oracle_has_steps(to) || to->groups != from->groups)
		return true;
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		if (to->group[w] != from->group[w])
			return true;
	return false;
}

static uint32_t window_of(const struct oracle_job *j)
{
	return is_ending(j) ? j->rt.policy.window : oracle_target_policy(j)->window;
}

/* May the worker do the step it is in?  Nobody is ahead of its group by more than the window. */
static bool fits(const struct oracle_job *j, unsigned int w)
{
	uint32_t done = j->step[w].done, low = low_of(j, group_of(j, w));

	return done <= low || done - low <= window_of(j);
}

static void leave(struct oracle_stepper *s)
{
	s->member = s->going = s->waiting = false;
}

/* The first round after PS mode: behind every step that a worker has begun, or may begin. */
static uint32_t fence_of(const struct oracle_job *j)
{
	uint64_t fence = first_untouched(j), end;

	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		if (!j->step[w].member)
			continue;
		end = (uint64_t)j->step[w].done + j->step[w].going;
		if (end > fence)
			fence = end;
	}
	/* its results must not take the place of the parameters */
	if ((fence - j->clock.base) % j->conf.ring == 0)
		fence++;
	return fence > SAINA_ROUND_MAX ? 0 : fence;
}

/* Workers that came become members where their group is, or where they were, if that is further. */
static void let_in(struct oracle_job *j)
{
	struct oracle_workers alive = oracle_alive(j), came = {};
	uint32_t at[SAINA_WORKERS_MAX];

	for (unsigned int i = 0; i < alive.n; i++) {
		unsigned int w = alive.w[i];

		if (j->step[w].member)
			continue;
		at[came.n] = low_of(j, group_of(j, w));
		if (at[came.n] < j->step[w].begun)
			at[came.n] = j->step[w].begun;
		came.w[came.n++] = w;
	}
	for (unsigned int i = 0; i < came.n; i++) {
		j->step[came.w[i]].member = true;
		j->step[came.w[i]].done = at[i];
	}
}

/* Section 11.2: settle */
static void settle(struct oracle_job *j)
{
	struct oracle_workers all;
	bool any_going = false;

	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		if (oracle_is_alive(j, w))
			continue;
		leave(&j->step[w]);
		j->step[w].session = 0;
	}
	renew_low(j);
	let_in(j);
	renew_low(j);
	if (!is_ending(j))
		j->clock.fence = 0;
	else if (!j->clock.fence)
		j->clock.fence = fence_of(j);

	all = members_of(j, -1);
	for (unsigned int i = 0; i < all.n; i++) {
		struct oracle_stepper *s = &j->step[all.w[i]];

		s->going |= !j->clock.fence && fits(j, all.w[i]);
		any_going |= s->going;
	}
	if (j->clock.fence && !any_going) {
		for (unsigned int i = 0; i < all.n; i++)
			j->step[all.w[i]].done = j->clock.fence;
		j->clock.low = j->clock.fence;
	}
}

static bool is_ended(const struct oracle_job *j)
{
	return j->clock.fence && j->clock.low == j->clock.fence;
}

/* Section 11.2: follow.  The round to come, the policy and the end of PS mode follow the clock. */
static void follow(struct oracle_job *j, struct oracle *o)
{
	struct saina_job_rt *rt = &j->rt;
	bool moved = j->clock.low > rt->next_round;

	if (!moved && !is_ended(j) && (is_ending(j) || oracle_target_policy(j)->seq == rt->policy.seq))
		return;
	if (moved)
		rt->next_round = j->clock.low;
	oracle_note_events(j);
	oracle_members_renew(j);
	/* what has happened may have made another policy the target */
	if (!is_ending(j)) {
		oracle_ps_adopt(o, j);
	} else if (is_ended(j)) {
		rt->mode = SAINA_RT_FENCE;
		rt->base = j->clock.low;
		rt->open_slots = rt->segs_done = 0;
	}
}

/* Fills in the clock as the program has it. */
static void show_clock(struct oracle_job *j)
{
	struct saina_clock *k = &j->clock;

	k->members = k->going = k->waiting = 0;
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		const struct oracle_stepper *s = &j->step[w];

		k->members += (uint64_t)s->member << w;
		k->going += (uint64_t)s->going << w;
		k->waiting += (uint64_t)s->waiting << w;
		k->session[w] = s->session;
		k->done[w] = s->done;
		k->begun[w] = s->begun;
	}
}

/* The clock's part of a message is over. */
static void clock_moved(struct oracle_msg *m)
{
	follow(m->j, m->o);
	show_clock(m->j);
}

/* A job that has opened no round begins with steps, if that is its policy. */
static void begin_with_steps(struct oracle_msg *m)
{
	struct saina_job_rt *rt = &m->j->rt;

	if (rt->mode != SAINA_RT_SLOTS || m->j->members.n || !oracle_has_steps(oracle_target_policy(m->j)))
		return;
	oracle_note_events(m->j);
	oracle_ps_begin(m->o, m->j);
}

/* The clock is of an earlier table: this one begins with nobody. */
static void begin_table(struct oracle_job *j)
{
	j->clock.base = j->clock.low = j->rt.base;
	j->clock.fence = 0;
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		leave(&j->step[w]);
	show_clock(j);
}

bool oracle_is_wrong_mode(struct oracle_msg *m)
{
	struct saina_job_rt *rt = &m->j->rt;
	bool reads = m->hdr->type == SAINA_MSG_READ;

	if (m->hdr->type == SAINA_MSG_PROBE)
		return false;
	if (!reads && m->hdr->type != SAINA_MSG_INC && m->hdr->type != SAINA_MSG_CLOCK)
		return rt->mode == SAINA_RT_PS && m->round >= rt->base;
	if (reads && rt->mode == SAINA_RT_FENCE)
		return false;
	begin_with_steps(m);
	if (rt->mode != SAINA_RT_PS)
		return true;
	if (m->j->clock.base != rt->base)
		begin_table(m->j);
	return false;
}

/* Section 11.2: hello */
static void hello(struct oracle_msg *m)
{
	struct oracle_stepper *s = &m->j->step[m->w];
	uint64_t session = m->j->conf.worker[m->w].session;

	if (s->session && s->session != session)
		leave(s);
	s->session = session;
}

/* Members of the sender's group that may do the step they are in. */
static uint64_t going_with(const struct oracle_msg *m)
{
	struct oracle_workers l = members_of(m->j, group_of(m->j, m->w)), going = {};

	for (unsigned int i = 0; i < l.n; i++)
		if (m->j->step[l.w[i]].going)
			going.w[going.n++] = l.w[i];
	return oracle_mask(&going);
}

static struct oracle_ps_answer answer_prepare(const struct oracle_msg *m)
{
	bool alone = is_alone(m->j, m->w);

	return (struct oracle_ps_answer){
		.low = low_of(m->j, group_of(m->j, m->w)), .done = m->j->step[m->w].done,
		.going = going_with(m), .base = m->j->clock.base, .alone = alone,
		.window = alone ? SAINA_WINDOW_NONE : window_of(m->j),
	};
}

/* INC and READ: hello; settles the clock if members or policy have changed; may the sender go? */
static void clock_update(struct oracle_msg *m)
{
	struct oracle_job *j = m->j;
	bool settled = is_ending(j) == !!j->clock.fence;

	hello(m);
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		settled &= j->step[w].member == oracle_is_alive(j, w);
	if (!settled)
		settle(j);
	j->step[m->w].going |= !j->clock.fence && fits(j, m->w);
}

/* The worker is in a step, or has done one: it has begun it. */
static void note_begun(struct oracle_stepper *s, uint32_t steps)
{
	if (s->begun < steps)
		s->begun = steps;
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
	struct oracle_slot *t = sum_entry(m);
	struct oracle_ps_answer a;
	uint32_t c = m->round;
	bool going;

	clock_update(m);
	a = answer_prepare(m);
	going = m->j->step[m->w].going;
	if (c == a.done && c <= SAINA_ROUND_MAX && going)
		note_begun(&m->j->step[m->w], c + 1);
	clock_moved(m);
	if (c > a.done || (c == a.done && c > SAINA_ROUND_MAX))
		return refuse(m, &a, SAINA_NAK_ORDER, SAINA_C_INC_ORDER);
	if (c == a.done && !going)
		return refuse(m, &a, SAINA_NAK_WAIT, SAINA_C_INC_WAIT);

	if (m->j->last[m->segment][m->w] > c) {
		a.flags = SAINA_F_RESEND;
		oracle_count(m, SAINA_C_RESENT);
	} else if (c < a.done) {
		return refuse(m, &a, SAINA_NAK_ORDER, SAINA_C_INC_ORDER);
	} else if (is_ps_entry(m, t) && t->meta.exponent != m->hdr->exponent) {
		a.exponent = t->meta.exponent;
		return refuse(m, &a, SAINA_NAK_EXPONENT, SAINA_C_EXPONENT);
	} else {
		sum_add(m, t);
		oracle_count(m, SAINA_C_INCED);
	}
	a.flags |= fresh_flag((uint64_t)c + 1, &a);
	answer_sum(m, &a);
}

void oracle_read(struct oracle_msg *m)
{
	const struct oracle_slot *view = NULL, *t = sum_entry(m);
	struct oracle_ps_answer a;

	if (m->j->rt.mode == SAINA_RT_FENCE) {
		/* PS mode is over, and all its steps are in the sums */
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
		clock_moved(m);
	}
	a.flags = SAINA_F_PULLED | fresh_flag(m->round, &a);
	oracle_count(m, SAINA_C_READ);
	if (view)
		oracle_answer_sum(m, &a, view);
	else
		answer_sum(m, &a);
}

/* Section 11.5, 4: those that wait and may go on, all of them if PS mode has ended, wait no longer. */
static bool wake(struct oracle_msg *m)
{
	bool ended = is_ended(m->j), any = false;

	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		struct oracle_stepper *s = &m->j->step[w];

		if (!s->waiting || (!ended && (!s->going || group_of(m->j, w) != group_of(m->j, m->w))))
			continue;
		s->waiting = false;
		any = true;
	}
	return any;
}

void oracle_clock(struct oracle_msg *m)
{
	struct oracle_stepper *s = &m->j->step[m->w];
	struct oracle_ps_answer a;
	uint32_t c = m->round;
	bool all;

	hello(m);
	settle(m->j);
	if (c == s->done && c <= SAINA_ROUND_MAX && s->going) {
		s->done = c + 1;
		s->going = false;
		note_begun(s, c + 1);
		settle(m->j);
		oracle_count(m, SAINA_C_CLOCKED);
		if (m->j->rt.policy.groups)
			oracle_note_arrival(m);
	} else if (c != SAINA_ROUND_ASK && c + 1 != s->done) {
		oracle_count(m, SAINA_C_CLOCK_ORDER);
	}
	s->waiting = !s->going;
	if (s->waiting)
		oracle_count(m, SAINA_C_CLOCK_WAIT);
	all = wake(m);
	a = answer_prepare(m);
	a.reason = is_ended(m->j) ? SAINA_NAK_MODE : 0;
	clock_moved(m);
	oracle_answer_go(m, &a, all);
}
