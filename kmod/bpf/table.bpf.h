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

/* What all members have finished. */
static __always_inline void table_low(struct saina_clock *k)
{
	__u64 low = ~0u, members = k->members;

	if (!members)
		return;
	for (__u32 w = 0; w < SAINA_WORKERS_MAX; w++) {
		__u64 done = k->done[w];

		low = table_choose(members >> w & slot_above(low, done) & 1, done, low);
	}
	k->low = low;
}

/* Members are whoever is active. */
static __always_inline void table_members(struct saina_clock *k, __u64 active)
{
	__u64 came, low;

	k->members &= active;
	k->going &= active;
	k->waiting &= active;
	table_low(k);
	low = k->low;
	came = active & ~k->members;
	for (__u32 w = 0; w < SAINA_WORKERS_MAX; w++) {
		__u64 begun = k->begun[w];

		begun = table_choose(slot_above(begun, low), begun, low);
		k->session[w] &= -(active >> w & 1);
		k->done[w] = table_choose(came >> w & 1, begun, k->done[w]);
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

	for (__u32 w = 0; w < SAINA_WORKERS_MAX; w++) {
		__u64 end = (__u64)k->done[w] + (going >> w & 1);

		/* of a member it is not more */
		end = table_choose(members >> w & 1, end, k->begun[w]);
		fence = table_choose(slot_above(end, fence), end, fence);
	}
	if (!((fence - k->base) & (ring - 1)))
		fence++;
	k->fence = fence <= SAINA_ROUND_MAX ? fence : 0;
}

static __always_inline void table_settle(struct saina_clock *k, struct slot_call *c)
{
	__u64 fence, low, window = c->table.window, going, left;

	if (k->members != c->in.active)
		table_members(k, c->in.active);
	table_low(k);
	if (!c->table.leave)
		k->fence = 0;
	else if (!k->fence)
		table_fence(k, c->table.ring);
	fence = k->fence;
	going = k->going;
	/* the last one has finished its step: all meet at the fence */
	left = slot_above(fence, 0) & ~slot_above(going, 0);
	low = table_choose(left, fence, k->low);
	k->low = low;
	for (__u32 w = 0; w < SAINA_WORKERS_MAX; w++) {
		__u64 done = k->done[w], member = k->members >> w & 1;

		going |= (member & slot_above(1, fence) &
			  ~slot_above((__u32)(done - low), window)) << w;
		k->done[w] = table_choose(member & left, fence, done);
	}
	k->going = going;
	c->table.left = left;
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

/* CLOCK, but for hello; true if somebody else is to hear the answer. */
static __always_inline bool table_tick(struct saina_clock *k, struct slot_call *c, __u32 w)
{
	__u32 step = c->in.round, done;
	__u64 woken;

	table_settle(k, c);
	done = k->done[w];
	if (step == done && step <= SAINA_ROUND_MAX && k->going & c->in.bit) {
		k->done[w] = done + 1;
		if (k->begun[w] <= done)
			k->begun[w] = done + 1;
		k->going &= ~c->in.bit;
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
	woken = c->table.left ? k->waiting : k->waiting & k->going;
	k->waiting &= ~woken;
	return woken != 0;
}

/* INC and READ: SLOT_MISS if they may go on to the table entry. */
static __always_inline int table_look(struct saina_clock *k, struct slot_call *c, __u32 w)
{
	__u32 step = c->in.round, done;

	if (k->members != c->in.active || !c->table.leave != !k->fence)
		table_settle(k, c);
	done = k->done[w];
	if (!k->fence && done - k->low <= c->table.window)
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
	if (k->begun[w] <= step)
		k->begun[w] = step + 1;
	return SLOT_MISS;
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

	bpf_spin_lock(&k->lock);
	if (c->table.after) {
		/* rounds have begun after it, and all have finished its steps */
		c->table.base = k->base;
		verdict = SLOT_MISS;
	} else if (k->generation != c->in.generation || k->base > c->table.base ||
		   (k->fence && k->fence == c->table.base)) {
		/* no table begins with the fence: rt changed while it was looked at */
		verdict = SLOT_DROP;
	} else {
		if (k->base != c->table.base)
			table_begin(k, c->table.base);
		table_hello(k, c, w);
		if (c->table.tick)
			verdict = table_tick(k, c, w) ? SLOT_GO_ALL : SLOT_GO;
		else
			verdict = table_look(k, c, w);
	}
	c->table.low = c->table.after ? k->fence : k->low;
	c->table.done = k->done[w];
	c->table.going = k->going;
	bpf_spin_unlock(&k->lock);
	return verdict;
}

/* What an INC or READ does to its entry @e; under the slot's lock. */
static __always_inline int table_decide(struct slot_call *c, struct saina_slot_meta *e,
					struct saina_counted *cnt)
{
	__u32 w = c->in.worker & (SAINA_WORKERS_MAX - 1), base = c->table.base;
	/* else it has a result of an earlier round, or nothing */
	bool begun = e->state == SAINA_SLOT_TABLE && e->round == base;

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
			e->state = SAINA_SLOT_TABLE;
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

#define EACH_SIZE "table_elems.bpf.h"
#include "each_size.bpf.h"
#undef EACH_SIZE

#endif /* SAINA_TABLE_BPF_H */
