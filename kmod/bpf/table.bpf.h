/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Table mode: workers step on their own, within a window.  A message meets the clock of
 * its job first, then the table entry of its segment, each under a lock of its own.
 * Documentation/datapath.rst section 11.
 */
#ifndef SAINA_TABLE_BPF_H
#define SAINA_TABLE_BPF_H

#include "slot.bpf.h"

static __always_inline bool table_is_type(__u32 type)
{
	return type - SAINA_MSG_INC <= SAINA_MSG_CLOCK - SAINA_MSG_INC;
}

/*
 * What follows is under the clock's lock, where no function may be called, and goes through
 * all workers without a branch: the verifier would take both ways of each, for each of them.
 */

/* @yes if @bit is 1, @no if it is 0 */
static __always_inline __u64 table_choose(__u64 bit, __u64 yes, __u64 no)
{
	return no ^ ((no ^ yes) & -bit);
}

/* 1 if a > b, else 0, of numbers of less than 63 bits: fewer steps than slot_above() */
static __always_inline __u64 table_above(__u64 a, __u64 b)
{
	__u64 borrow = b - a;

	/* or clang knows what it is, and branches */
	asm volatile("" : "+r"(borrow));
	return borrow >> 63;
}

static __always_inline __u32 table_group(const struct saina_clock *k, __u32 w)
{
	return k->group[w] & (SAINA_WORKERS_MAX - 1);
}

/* What all members, and those of each group, have finished. */
static __always_inline void table_low(struct saina_clock *k)
{
	__u64 low = ~0u, members = k->members;

	for (__u32 g = 0; g < SAINA_WORKERS_MAX; g++)
		k->lows[g] = ~0u;
	for (__u32 w = 0; w < SAINA_WORKERS_MAX; w++) {
		__u32 g = table_group(k, w);
		__u64 done = k->done[w], of = k->lows[g], member = members >> w;

		low = table_choose(member & table_above(low, done) & 1, done, low);
		k->lows[g] = table_choose(member & table_above(of, done) & 1, done, of);
	}
	k->low = table_choose(slot_above(members, 0), low, k->low);
}

/* Members are whoever is active. */
static __always_inline void table_members(struct saina_clock *k, __u64 active)
{
	__u64 came = active & ~k->members, top, none;

	k->members &= active;
	k->going &= active;
	k->waiting &= active;
	table_low(k);
	/* a group that has no member goes on where any has been */
	top = table_choose(table_above(k->top, k->low), k->top, k->low);
	none = slot_above(1, k->members) & slot_above(came, 0);
	k->low = table_choose(none, top, k->low);
	for (__u32 w = 0; w < SAINA_WORKERS_MAX; w++) {
		__u32 g = table_group(k, w);
		__u64 begun = k->begun[w], of = k->lows[g], at, comes = came >> w & 1;

		at = table_choose(table_above(of, SAINA_ROUND_MAX), top, of);
		begun = table_choose(table_above(begun, at), begun, at);
		k->session[w] &= -(active >> w & 1);
		k->done[w] = table_choose(comes, begun, k->done[w]);
		k->lows[g] = table_choose(comes & table_above(of, begun), begun, of);
	}
	k->members = active;
}

/*
 * The job goes back to rounds: with which one?  Who goes finishes its step, nobody begins
 * another; who died ahead of others has begun steps, too.  The results of that round must not
 * lie where the table does.
 */
static __always_inline void table_fence(struct saina_clock *k, __u32 ring)
{
	__u64 fence = k->low, members = k->members, going = k->going;

	fence = table_choose(table_above(k->top, fence), k->top, fence);
	for (__u32 w = 0; w < SAINA_WORKERS_MAX; w++) {
		__u64 end = (__u64)k->done[w] + (going >> w & 1);

		fence = table_choose(members >> w & table_above(end, fence) & 1, end, fence);
	}
	if (!((fence - k->base) & (ring - 1)))
		fence++;
	k->fence = fence <= SAINA_ROUND_MAX ? fence : 0;
}

static __always_inline void table_settle(struct saina_clock *k, struct slot_call *c)
{
	__u64 fence, window = c->table.window, going, left;

	table_members(k, c->in.active);
	if (!c->table.leave)
		k->fence = 0;
	else if (!k->fence)
		table_fence(k, c->table.ring);
	fence = k->fence;
	going = k->going;
	/* the last one has finished its step: all meet at the fence */
	left = table_above(fence, 0) & ~slot_above(going, 0);
	k->low = table_choose(left, fence, k->low);
	for (__u32 w = 0; w < SAINA_WORKERS_MAX; w++) {
		__u32 g = table_group(k, w);
		__u64 done = k->done[w], of = k->lows[g], member = k->members >> w & 1;

		going |= (member & table_above(1, fence) &
			  ~table_above((__u32)(done - of), window)) << w;
		k->done[w] = table_choose(member & left, fence, done);
		k->lows[g] = table_choose(member & left, fence, of);
	}
	k->going = going;
	c->table.left = left;
}

static __always_inline void table_has_begun(struct saina_clock *k, __u32 w, __u32 step)
{
	if (k->begun[w] <= step)
		k->begun[w] = step + 1;
	if (k->top <= step)
		k->top = step + 1;
}

/* Another table: its steps go on where the rounds before it ended. */
static __always_inline void table_begin(struct saina_clock *k, __u32 base)
{
	k->base = base;
	k->low = base;
	k->fence = 0;
	k->members = 0;
	k->going = 0;
	k->waiting = 0;
}

/* Who is in which group, of a table that nobody is in. */
static __always_inline void table_deal(struct saina_clock *k, const struct saina_policy *p)
{
	k->groups = p->groups;
	for (__u32 g = 0; g < SAINA_WORKERS_MAX; g++) {
		k->mask[g] = 0;
		k->first[g] = 0;
	}
	for (__u32 w = 0; w < SAINA_WORKERS_MAX; w++) {
		k->group[w] = p->group[w];
		k->mask[table_group(k, w)] |= 1ull << w;
	}
}

/* Is the sender another incarnation than the one that was heard last? */
static __always_inline void table_hello(struct saina_clock *k, const struct slot_call *c, __u32 w)
{
	if (k->session[w] == c->table.session)
		return;
	if (k->session[w]) {
		k->members &= ~c->in.bit;
		k->going &= ~c->in.bit;
		k->waiting &= ~c->in.bit;
	}
	k->session[w] = c->table.session;
}

/* A worker has finished @step: how much later is that than the first of its group?  For
 * arrival_note(), which is for who has groups.
 */
static __always_inline void table_arrive(struct saina_clock *k, struct slot_call *c, __u32 w,
					 __u32 step)
{
	__u32 g = table_group(k, w);

	if (!k->groups)
		return;
	if (k->first[g] != step + 1) {
		k->first[g] = step + 1;
		k->first_at[g] = c->in.now;
	}
	c->out.opened_at = k->first_at[g];
}

/* CLOCK, but for hello and settle; true if others of the sender's group are to hear the answer. */
static __always_inline bool table_tick(struct saina_clock *k, struct slot_call *c, __u32 w)
{
	__u32 step = c->in.round, done;
	__u64 woken;

	done = k->done[w];
	if (step == done && step <= SAINA_ROUND_MAX && k->going & c->in.bit) {
		k->done[w] = done + 1;
		table_has_begun(k, w, done);
		k->going &= ~c->in.bit;
		table_arrive(k, c, w, done);
		table_settle(k, c);
		c->out.counted = SAINA_C_CLOCKED;
	} else if (step != SAINA_ROUND_ASK && step + 1 != done) {
		c->out.counted = SAINA_C_CLOCK_ORDER;
	}
	if (k->going & c->in.bit) {
		k->waiting &= ~c->in.bit;
	} else {
		k->waiting |= c->in.bit;
		c->table.waits = true;
	}
	woken = c->table.left ? k->waiting : k->waiting & k->going & k->mask[table_group(k, w)];
	k->waiting &= ~woken;
	return woken != 0;
}

/* INC and READ: SLOT_MISS if they may go on to the table entry. */
static __always_inline int table_look(struct saina_clock *k, struct slot_call *c, __u32 w)
{
	__u32 step = c->in.round, done;

	done = k->done[w];
	if (!k->fence && done - k->lows[table_group(k, w)] <= c->table.window)
		k->going |= c->in.bit;
	if (c->in.pull)
		return SLOT_MISS;
	if (step > done || (step == done && step > SAINA_ROUND_MAX)) {
		c->table.nak = SAINA_NAK_ORDER;
		c->out.counted = SAINA_C_INC_ORDER;
		return SLOT_NAK;
	}
	c->table.over = step < done;
	if (c->table.over)
		return SLOT_MISS;
	if (!(k->going & c->in.bit)) {
		c->table.nak = SAINA_NAK_WAIT;
		c->out.counted = SAINA_C_INC_WAIT;
		return SLOT_NAK;
	}
	table_has_begun(k, w, step);
	return SLOT_MISS;
}

/**
 * table_open() - the clock of its job is that of the table that a message is for
 * @c: the message
 *
 * It stays as it is if the table is over: then rt changed while it was looked at.
 *
 * Return: 0
 */
__noinline int table_open(struct slot_call *c)
{
	const struct saina_job_rt *rt;
	struct saina_clock *k;
	__u32 job, base;

	if (!c)
		return 0;
	job = c->in.job;
	base = c->table.base;
	k = bpf_map_lookup_elem(&saina_clock, &job);
	rt = bpf_map_lookup_elem(&saina_rt, &job);
	if (!k || !rt || (k->base == base && k->members) || c->table.after)
		return 0;

	bpf_spin_lock(&k->lock);
	/* no table begins with the fence */
	if (k->generation == c->in.generation && k->base < base &&
	    !(k->fence && k->fence == base))
		table_begin(k, base);
	if (k->base == base && !k->members)
		table_deal(k, &rt->policy);
	bpf_spin_unlock(&k->lock);
	return 0;
}

/* What the answer is to say, and where a READ is to look. */
static __always_inline void table_note(const struct saina_clock *k, struct slot_call *c, __u32 w)
{
	__u32 g = table_group(k, w), groups = c->table.after ? 0 : k->groups;
	__u64 peers = k->mask[g];

	c->table.all = c->table.after ? k->fence : k->low;
	c->table.low = c->table.after ? k->fence : k->lows[g];
	c->table.done = k->done[w];
	c->table.going = k->going & peers;
	c->table.group = g;
	c->table.view = groups && k->members & peers & ~c->in.bit;
	/* alone in its group */
	if (groups && !c->table.view)
		c->table.window = SAINA_WINDOW_NONE;
}

/**
 * table_clock() - what the clock of its job says to a message
 * @c: the message; the clock's answer is left in c->table
 *
 * Return: enum slot_verdict; SLOT_MISS: INC or READ, to the table entry
 */
__noinline int table_clock(struct slot_call *c)
{
	struct saina_clock *k;
	int verdict;
	__u32 job, w;

	if (!c)
		return SLOT_DROP;
	c->out.reason = SAINA_C_INTERNAL;
	job = c->in.job;
	w = c->in.worker & (SAINA_WORKERS_MAX - 1);
	k = bpf_map_lookup_elem(&saina_clock, &job);
	if (!k)
		return SLOT_DROP;
	if (c->table.tick)
		c->in.now = bpf_ktime_get_ns();

	bpf_spin_lock(&k->lock);
	if (c->table.after) {
		/* rounds have begun after it, and all have finished its steps */
		c->table.base = k->base;
		verdict = SLOT_MISS;
	} else if (k->generation != c->in.generation || k->base != c->table.base) {
		verdict = SLOT_DROP;
	} else {
		table_hello(k, c, w);
		if (c->table.tick || k->members != c->in.active || !c->table.leave != !k->fence)
			table_settle(k, c);
		if (c->table.tick)
			verdict = table_tick(k, c, w) ? SLOT_GO_ALL : SLOT_GO;
		else
			verdict = table_look(k, c, w);
	}
	table_note(k, c, w);
	bpf_spin_unlock(&k->lock);
	return verdict;
}

/* What an INC or READ does to its entry @e; under the slot's lock. */
static __always_inline int table_decide(struct slot_call *c, struct saina_slot_meta *e,
					struct saina_counted *cnt)
{
	__u32 w = c->in.worker & (SAINA_WORKERS_MAX - 1), base = c->table.base;
	/* else it has a result of an earlier round, or nothing */
	bool begun = e->state == SAINA_SLOT_PS && e->round == base;

	c->out.verdict = SLOT_SUM;
	if (c->table.after && e->state != SAINA_SLOT_EMPTY && e->round > base) {
		slot_other_mode(c, c->table.low);
	} else if (c->in.pull) {
		c->out.counted = SAINA_C_READ;
		c->out.flags = SAINA_F_PULLED;
	} else if (cnt->last[w] > c->in.round) {
		c->out.counted = SAINA_C_RESENT;
		c->out.flags = SAINA_F_RESEND;
	} else if (c->table.over) {
		c->out.counted = SAINA_C_INC_ORDER;
		c->out.verdict = SLOT_NAK;
		c->table.nak = SAINA_NAK_ORDER;
	} else if (begun && e->exponent != c->in.exponent) {
		c->out.counted = SAINA_C_EXPONENT;
		c->out.verdict = SLOT_NAK;
		c->out.exponent = e->exponent;
		c->table.nak = SAINA_NAK_EXPONENT;
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
	if (c->out.verdict == SLOT_NAK)
		return SLOT_DO_NOTHING;
	if (c->out.counted != SAINA_C_INCED && !begun) {
		c->out.mask = 0;
		c->out.exponent = 0;
		return SLOT_DO_READ;
	}
	c->out.mask = e->sum_tag;
	c->out.exponent = e->exponent;
	return c->out.counted == SAINA_C_INCED ? SLOT_DO_ADD : SLOT_DO_READ;
}

/* May these sums be used for the sender's next step? */
static __always_inline bool table_is_fresh(const struct slot_call *c)
{
	__u32 next = c->in.round + !c->in.pull;

	return next <= c->table.low || next - c->table.low <= c->table.window;
}

/*
 * What a READ is given where its worker has a group: its view, or the table itself (of which
 * @e is the entry), which becomes the view with the first READ of a step.  Under the slot's lock.
 */
static __always_inline void table_look_at_view(struct slot_call *c, const struct saina_slot_meta *e,
					       struct saina_slot_meta *v,
					       const struct saina_counted *cnt)
{
	__u32 w = c->in.worker & (SAINA_WORKERS_MAX - 1), base = c->table.base;
	__u32 step = c->in.round;
	bool begun = e->state == SAINA_SLOT_PS && e->round == base;
	bool seen = v->state == SAINA_SLOT_PS && v->policy == base && v->round >= step;
	bool take = !seen && step == c->table.done && step == c->table.low;
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
	c->table.keep = begun ? ~0ull : 0;
	c->table.seen = seen ? ~0ull : 0;
	c->table.add = take ? ~0ull : 0;
	c->out.counted = SAINA_C_READ;
	c->out.flags = SAINA_F_PULLED;
	c->out.last = cnt->last[w];
	c->out.mask = seen ? v->sum_tag : version;
	c->out.exponent = seen ? v->exponent : exponent;
	c->out.verdict = SLOT_SUM;
}

#define EACH_SIZE "table_elems.bpf.h"
#include "each_size.bpf.h"
#undef EACH_SIZE

#endif /* SAINA_TABLE_BPF_H */
