/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Parameter server: workers step on their own, within a window.  A message goes to the clock of
 * its job first, then to the parameters of its segment, each under its own lock.
 * Documentation/datapath.rst section 11.
 */
#ifndef SAINA_PS_BPF_H
#define SAINA_PS_BPF_H

#include "ctx.bpf.h"
#include "hook.bpf.h"
#include "maps.bpf.h"
#include "sized.bpf.h"

static __always_inline bool ps_is_type(__u32 type)
{
	return type - SAINA_MSG_INC <= SAINA_MSG_CLOCK - SAINA_MSG_INC;
}

/*
 * The following runs under the clock's lock, where no function may be called.  Loops over all
 * workers have no branches: the verifier would follow both ways for each worker.
 */

/* @yes if @bit is 1, @no if it is 0 */
static __always_inline __u64 ps_select(__u64 bit, __u64 yes, __u64 no)
{
	return no ^ ((no ^ yes) & -bit);
}

/* 1 if a > b, else 0, for numbers below 2^63: fewer steps than is_above() */
static __always_inline __u64 ps_above(__u64 a, __u64 b)
{
	__u64 borrow = b - a;

	/* or clang knows what it is, and branches */
	asm volatile("" : "+r"(borrow));
	return borrow >> 63;
}

static __always_inline __u32 ps_group(const struct saina_clock *k, __u32 w)
{
	return k->group[w] & (SAINA_WORKERS_MAX - 1);
}

/* Updates the steps that all members, and those of each group, have finished. */
static __always_inline void ps_update_low(struct saina_clock *k)
{
	__u64 low = ~0u, members = k->members;

	for (__u32 g = 0; g < SAINA_WORKERS_MAX; g++)
		k->lows[g] = ~0u;
	for (__u32 w = 0; w < SAINA_WORKERS_MAX; w++) {
		__u32 g = ps_group(k, w);
		__u64 done = k->done[w], of = k->lows[g], member = members >> w;

		low = ps_select(member & ps_above(low, done) & 1, done, low);
		k->lows[g] = ps_select(member & ps_above(of, done) & 1, done, of);
	}
	k->low = ps_select(is_above(members, 0), low, k->low);
}

/* Updates the members to the workers in @active. */
static __always_inline void ps_update_members(struct saina_clock *k, __u64 active)
{
	__u64 came = active & ~k->members, top, none;

	k->members &= active;
	k->going &= active;
	k->waiting &= active;
	ps_update_low(k);
	/* a group without members goes on at the highest step begun */
	top = ps_select(ps_above(k->top, k->low), k->top, k->low);
	none = is_above(1, k->members) & is_above(came, 0);
	k->low = ps_select(none, top, k->low);
	for (__u32 w = 0; w < SAINA_WORKERS_MAX; w++) {
		__u32 g = ps_group(k, w);
		__u64 begun = k->begun[w], of = k->lows[g], at, comes = came >> w & 1;

		at = ps_select(ps_above(of, SAINA_ROUND_MAX), top, of);
		begun = ps_select(ps_above(begun, at), begun, at);
		k->session[w] &= -(active >> w & 1);
		k->done[w] = ps_select(comes, begun, k->done[w]);
		k->lows[g] = ps_select(comes & ps_above(of, begun), begun, of);
	}
	k->members = active;
}

/*
 * Chooses the round with which the job goes back to rounds: after all steps that were begun,
 * also by workers that died.  Its results must not use the ring entries of the parameters.
 */
static __always_inline void ps_set_fence(struct saina_clock *k, __u32 ring)
{
	__u64 fence = k->low, members = k->members, going = k->going;

	fence = ps_select(ps_above(k->top, fence), k->top, fence);
	for (__u32 w = 0; w < SAINA_WORKERS_MAX; w++) {
		__u64 end = (__u64)k->done[w] + (going >> w & 1);

		fence = ps_select(members >> w & ps_above(end, fence) & 1, end, fence);
	}
	if (!((fence - k->base) & (ring - 1)))
		fence++;
	k->fence = fence <= SAINA_ROUND_MAX ? fence : 0;
}

static __always_inline void ps_settle(struct saina_clock *k, struct saina_ctx *c)
{
	__u64 fence, window = c->ps.window, going, left;

	ps_update_members(k, c->in.active);
	if (!c->ps.leave)
		k->fence = 0;
	else if (!k->fence)
		ps_set_fence(k, c->ps.ring);
	fence = k->fence;
	going = k->going;
	/* the last worker has finished its step: all are at the fence */
	left = ps_above(fence, 0) & ~is_above(going, 0);
	k->low = ps_select(left, fence, k->low);
	for (__u32 w = 0; w < SAINA_WORKERS_MAX; w++) {
		__u32 g = ps_group(k, w);
		__u64 done = k->done[w], of = k->lows[g], member = k->members >> w & 1;

		going |= (member & ps_above(1, fence) & ~ps_above((__u32)(done - of), window)) << w;
		k->done[w] = ps_select(member & left, fence, done);
		k->lows[g] = ps_select(member & left, fence, of);
	}
	k->going = going;
	c->ps.left = left;
}

static __always_inline void ps_mark_begun(struct saina_clock *k, __u32 w, __u32 step)
{
	if (k->begun[w] <= step)
		k->begun[w] = step + 1;
	if (k->top <= step)
		k->top = step + 1;
}

/* Begins the mode: its steps go on where the rounds before it ended. */
static __always_inline void ps_begin(struct saina_clock *k, __u32 base)
{
	k->base = base;
	k->low = base;
	k->fence = 0;
	k->members = 0;
	k->going = 0;
	k->waiting = 0;
}

/* Takes the groups of the policy; there are no members yet. */
static __always_inline void ps_assign_groups(struct saina_clock *k, const struct saina_policy *p)
{
	k->groups = p->groups;
	for (__u32 g = 0; g < SAINA_WORKERS_MAX; g++) {
		k->mask[g] = 0;
		k->first[g] = 0;
	}
	for (__u32 w = 0; w < SAINA_WORKERS_MAX; w++) {
		k->group[w] = p->group[w];
		k->mask[ps_group(k, w)] |= 1ull << w;
	}
}

/* Removes the worker from the members if its session has changed. */
static __always_inline void ps_check_session(struct saina_clock *k, const struct saina_ctx *c,
					     __u32 w)
{
	if (k->session[w] == c->ps.session)
		return;
	if (k->session[w]) {
		k->members &= ~c->in.bit;
		k->going &= ~c->in.bit;
		k->waiting &= ~c->in.bit;
	}
	k->session[w] = c->ps.session;
}

/* With groups: notes when the first of the worker's group finished @step, for
 * lateness_record().
 */
static __always_inline void ps_note_arrival(struct saina_clock *k, struct saina_ctx *c, __u32 w,
					    __u32 step)
{
	__u32 g = ps_group(k, w);

	if (!k->groups)
		return;
	if (k->first[g] != step + 1) {
		k->first[g] = step + 1;
		k->first_at[g] = c->in.now;
	}
	c->out.opened_at = k->first_at[g];
}

/* CLOCK, after session and members; true if others of the sender's group wait for the reply. */
static __always_inline bool ps_clock_tick(struct saina_clock *k, struct saina_ctx *c, __u32 w)
{
	__u32 step = c->in.round, done;
	__u64 woken;

	done = k->done[w];
	if (step == done && step <= SAINA_ROUND_MAX && k->going & c->in.bit) {
		k->done[w] = done + 1;
		ps_mark_begun(k, w, done);
		k->going &= ~c->in.bit;
		ps_note_arrival(k, c, w, done);
		ps_settle(k, c);
		c->out.counted = SAINA_C_CLOCKED;
	} else if (step != SAINA_ROUND_ASK && step + 1 != done) {
		c->out.counted = SAINA_C_CLOCK_ORDER;
	}
	if (k->going & c->in.bit) {
		k->waiting &= ~c->in.bit;
	} else {
		k->waiting |= c->in.bit;
		c->ps.must_wait = true;
	}
	woken = c->ps.left ? k->waiting : k->waiting & k->going & k->mask[ps_group(k, w)];
	k->waiting &= ~woken;
	return woken != 0;
}

/* INC and READ: VERDICT_MISS if they may go on to the parameters. */
static __always_inline int ps_admit(struct saina_clock *k, struct saina_ctx *c, __u32 w)
{
	__u32 step = c->in.round, done;

	done = k->done[w];
	if (!k->fence && done - k->lows[ps_group(k, w)] <= c->ps.window)
		k->going |= c->in.bit;
	if (c->in.pull)
		return VERDICT_MISS;
	if (step > done || (step == done && step > SAINA_ROUND_MAX)) {
		c->ps.nak = SAINA_NAK_ORDER;
		c->out.counted = SAINA_C_INC_ORDER;
		return VERDICT_NAK;
	}
	c->ps.step_done = step < done;
	if (c->ps.step_done)
		return VERDICT_MISS;
	if (!(k->going & c->in.bit)) {
		c->ps.nak = SAINA_NAK_WAIT;
		c->out.counted = SAINA_C_INC_WAIT;
		return VERDICT_NAK;
	}
	ps_mark_begun(k, w, step);
	return VERDICT_MISS;
}

/**
 * ps_open() - set up the job's clock for the mode that a message is in
 * @c: the message
 *
 * Does nothing if the mode has ended, also if it did so after the message looked at rt.
 *
 * Return: 0
 */
__noinline int ps_open(struct saina_ctx *c)
{
	const struct saina_job_rt *rt;
	struct saina_clock *k;
	__u32 job, base;

	if (!c)
		return 0;
	job = c->in.job;
	base = c->ps.base;
	k = bpf_map_lookup_elem(&saina_clock, &job);
	rt = bpf_map_lookup_elem(&saina_rt, &job);
	if (!k || !rt || (k->base == base && k->members) || c->ps.ended)
		return 0;

	bpf_spin_lock(&k->lock);
	/* no mode begins at the fence */
	if (k->generation == c->in.generation && k->base < base &&
	    !(k->fence && k->fence == base))
		ps_begin(k, base);
	if (k->base == base && !k->members)
		ps_assign_groups(k, &rt->policy);
	bpf_spin_unlock(&k->lock);
	return 0;
}

/* Fills in the reply, and what a READ is to return. */
static __always_inline void ps_fill_reply(const struct saina_clock *k, struct saina_ctx *c, __u32 w)
{
	__u32 g = ps_group(k, w), groups = c->ps.ended ? 0 : k->groups;
	__u64 peers = k->mask[g];

	c->ps.all = c->ps.ended ? k->fence : k->low;
	c->ps.low = c->ps.ended ? k->fence : k->lows[g];
	c->ps.done = k->done[w];
	c->ps.going = k->going & peers;
	c->ps.group = g;
	c->ps.view = groups && k->members & peers & ~c->in.bit;
	/* the sender is alone in its group */
	if (groups && !c->ps.view)
		c->ps.window = SAINA_WINDOW_NONE;
}

/**
 * ps_clock() - a message at the clock of its job
 * @c: the message; c->ps is set
 *
 * Return: enum verdict; VERDICT_MISS: INC or READ, on to the parameters
 */
__noinline int ps_clock(struct saina_ctx *c)
{
	struct saina_clock *k;
	int verdict;
	__u32 job, w;

	if (!c)
		return VERDICT_DROP;
	c->out.reason = SAINA_C_INTERNAL;
	job = c->in.job;
	w = c->in.worker & (SAINA_WORKERS_MAX - 1);
	k = bpf_map_lookup_elem(&saina_clock, &job);
	if (!k)
		return VERDICT_DROP;
	if (c->ps.is_clock)
		c->in.now = bpf_ktime_get_ns();

	bpf_spin_lock(&k->lock);
	if (c->ps.ended) {
		/* rounds have begun, and all steps are finished */
		c->ps.base = k->base;
		verdict = VERDICT_MISS;
	} else if (k->generation != c->in.generation || k->base != c->ps.base) {
		verdict = VERDICT_DROP;
	} else {
		ps_check_session(k, c, w);
		if (c->ps.is_clock || k->members != c->in.active || !c->ps.leave != !k->fence)
			ps_settle(k, c);
		if (c->ps.is_clock)
			verdict = ps_clock_tick(k, c, w) ? VERDICT_GO_ALL : VERDICT_GO;
		else
			verdict = ps_admit(k, c, w);
	}
	ps_fill_reply(k, c, w);
	bpf_spin_unlock(&k->lock);
	return verdict;
}

/* What an INC or READ does to its entry @e, under the slot's lock: true if it is added. */
static __always_inline bool ps_decide(struct saina_ctx *c, struct saina_slot_meta *e,
				      struct saina_counted *cnt)
{
	__u32 w = c->in.worker & (SAINA_WORKERS_MAX - 1), base = c->ps.base;
	/* else the entry has a result of an earlier round, or nothing */
	bool begun = e->state == SAINA_SLOT_PS && e->round == base;

	c->out.verdict = VERDICT_SUM;
	if (c->ps.ended && e->state != SAINA_SLOT_EMPTY && e->round > base) {
		ctx_nak_mode(c, c->ps.low);
	} else if (c->in.pull) {
		c->out.counted = SAINA_C_READ;
		c->out.flags = SAINA_F_PULLED;
	} else if (cnt->last[w] > c->in.round) {
		c->out.counted = SAINA_C_RESENT;
		c->out.flags = SAINA_F_RESEND;
	} else if (c->ps.step_done) {
		c->out.counted = SAINA_C_INC_ORDER;
		c->out.verdict = VERDICT_NAK;
		c->ps.nak = SAINA_NAK_ORDER;
	} else if (begun && e->exponent != c->in.exponent) {
		c->out.counted = SAINA_C_EXPONENT;
		c->out.verdict = VERDICT_NAK;
		c->out.exponent = e->exponent;
		c->ps.nak = SAINA_NAK_EXPONENT;
	} else {
		if (!begun) {
			e->exponent = c->in.exponent;
			e->segment = c->in.segment;
			e->round = base;
			e->state = SAINA_SLOT_PS;
			e->sum_tag = 0;
		}
		e->sum_tag++;
		cnt->last[w] = c->in.round + 1;
		c->out.counted = SAINA_C_INCED;
		c->out.flags = 0;
	}
	c->out.last = cnt->last[w];
	if (c->out.verdict == VERDICT_NAK)
		return false;
	if (c->out.counted != SAINA_C_INCED && !begun) {
		c->out.mask = 0;
		c->out.exponent = 0;
		return false;
	}
	c->out.mask = e->sum_tag;
	c->out.exponent = e->exponent;
	return c->out.counted == SAINA_C_INCED;
}

/*
 * What a READ returns to a worker of a group: the group's view @v, or the parameters @e, which
 * become the view at the first READ of a step.  Under the slot's lock.
 */
static __always_inline void ps_decide_view(struct saina_ctx *c, const struct saina_slot_meta *e,
					   struct saina_slot_meta *v,
					   const struct saina_counted *cnt)
{
	__u32 w = c->in.worker & (SAINA_WORKERS_MAX - 1), base = c->ps.base;
	__u32 step = c->in.round;
	bool begun = e->state == SAINA_SLOT_PS && e->round == base;
	bool seen = v->state == SAINA_SLOT_PS && v->policy == base && v->round >= step;
	bool take = !seen && step == c->ps.done && step == c->ps.low;
	__u64 version = begun ? e->sum_tag : 0;
	__s32 exponent = begun ? e->exponent : 0;

	if (take) {
		v->state = SAINA_SLOT_PS;
		v->segment = c->in.segment;
		v->policy = base;
		v->round = step;
		v->sum_tag = version;
		v->exponent = exponent;
	}
	c->ps.keep = begun ? ~0ull : 0;
	c->ps.seen = seen ? ~0ull : 0;
	c->ps.add = take ? ~0ull : 0;
	c->out.counted = SAINA_C_READ;
	c->out.flags = SAINA_F_PULLED;
	c->out.last = cnt->last[w];
	c->out.mask = seen ? v->sum_tag : version;
	c->out.exponent = seen ? v->exponent : exponent;
	c->out.verdict = VERDICT_SUM;
}

#define EACH_SIZE "ps_sum.bpf.h"
#include "each_size.bpf.h"
#undef EACH_SIZE

#endif /* SAINA_PS_BPF_H */
