/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Slots: a checked message (struct ctx_in, payload in memory) becomes a verdict, whichever
 * hook it came by.  Rules: Documentation/datapath.rst sections 3, 4, 8 and 9.
 *
 * slot_decide() decides what happens to the sums; slot_sum.bpf.h does it, once for each
 * payload size.
 *
 * Two kinds of locks, never both held (the verifier allows one): a slot's lock (saina_locks)
 * guards the hot slot, the ring entries and the counted[] of its segments; the lock in struct
 * saina_job_rt guards the round.  A slot counts in open_slots from before it is opened until
 * its result is accounted for, so the round cannot end in between.
 *
 * No function may be called under a lock: look-ups and clocks come before, and
 * what runs under it is inlined.
 */
#ifndef SAINA_SLOT_BPF_H
#define SAINA_SLOT_BPF_H

#include "ctx.bpf.h"
#include "float.bpf.h"
#include "maps.bpf.h"
#include "round.bpf.h"
#include "sfcd.bpf.h"
#include "shm_head.bpf.h"
#include "sized.bpf.h"

/* What to do to the sums. */
enum slot_action {
	SLOT_DO_NOTHING,
	SLOT_DO_STORE,		/* hot = input */
	SLOT_DO_ADD,		/* hot += input */
	SLOT_DO_READ,		/* output = ring */
	SLOT_DO_TAKE,		/* slot_take_result() says */
	SLOT_DO_FINISH,		/* ring, output = hot */
	SLOT_DO_FINISH_STORE,	/* ring, output = input */
	SLOT_DO_FINISH_ADD,	/* ring, output = hot + input */
	SLOT_DO_FINISH_NAN,	/* ring, output = 0 */
};

/* Only with the module: is it added there, without the slot's lock?  Floats are. */
static __always_inline bool slot_is_deferred(const struct ctx_in *in)
{
#ifdef SAINA_KMOD
	return !elem_is_int(in->elem);
#else
	return false;
#endif
}

static __always_inline bool slot_is_of(const struct saina_slot_meta *h, const struct ctx_in *in)
{
	return h->round == in->round && h->segment == in->segment &&
	       h->state != SAINA_SLOT_EMPTY;
}

/*
 * slot_find_parts() - CODED: parts that can still come, into c->in
 *
 * Without the lock, under which no function may be called; slot_complete() checks that the
 * slot is still the same.
 */
__noinline int slot_find_parts(struct saina_ctx *c, const struct saina_slot_meta *h)
{
	if (!c || !h)
		return 0;
	c->in.parts = c->latch.k ? c->latch.parts : h->parts;
	c->in.members = c->latch.k ? c->latch.members : h->members;
	c->in.parts_alive = coded_parts(c->in.members & c->in.active, c->in.parts);
	return 0;
}

/*
 * Changes the state alone.  An exchange: the relay reads slots without their lock, so what it
 * finds in an AWAY one was there before, and stays until that is over.
 */
static __always_inline void slot_set_state(struct saina_slot_meta *h, __u32 state)
{
	__u32 *word = (__u32 *)&h->state;

	__sync_lock_test_and_set(word, (*word & ~0xffu) | state);
}

/* Is the deadline over, with enough contributors? */
static __always_inline __u64 slot_expired(const struct saina_slot_meta *h, __u64 now)
{
	/* deadline 0 is none: nothing is above 0 - 1 */
	return is_above(now, h->deadline - 1) & is_above((__u64)h->count + 1, h->k_min);
}

/* Does the slot have enough contributors? */
static __always_inline bool slot_complete(const struct saina_slot_meta *h, const struct ctx_in *in)
{
	__u64 live = h->members & in->active;
	__u32 need = popcount64(live);

	if (h->parts)
		return h->parts == in->parts && h->members == in->members &&
		       !(in->parts_alive & ~h->csum);
	if (h->k < need)
		need = h->k;
	return popcount64(h->seen & live) >= need || slot_expired(h, in->now);
}

/*
 * Segments use a hot slot in order: the one before must be done.  Else a worker that breaks
 * its window could take the slot from segments that then nobody can open.
 */
static __always_inline __u32 slot_busy(const struct saina_slot_meta *h, const struct ctx_in *in)
{
	if (h->state == SAINA_SLOT_OPEN || h->state == SAINA_SLOT_AWAY)
		return SLOT_OPEN_ELSEWHERE;
	if (in->segment >= in->pool &&
	    (h->state != SAINA_SLOT_DONE || h->round != in->round ||
	     h->segment != in->segment - in->pool))
		return SLOT_OUT_OF_WINDOW;
	return SLOT_FREE;
}

static __always_inline int slot_drop(struct ctx_out *out, __u32 reason)
{
	out->verdict = VERDICT_DROP;
	out->reason = reason;
	return SLOT_DO_NOTHING;
}

static __always_inline void slot_fill_result(struct ctx_out *out, const struct saina_slot_meta *m)
{
	out->mask = m->seen;
	out->contributors = m->count;
	out->exponent = m->exponent;
	out->policy = m->policy;
	out->k = m->k;
	out->flags = m->flags;
	out->csum = m->csum;
	out->weight = m->weight;
}

/* Counts the gradient; it is added here, or by saina.ko. */
static __always_inline int slot_count_in(struct saina_ctx *c, const struct saina_slot_meta *h,
					 struct saina_counted *cnt, __u32 counter, int action)
{
	__u32 *last = &cnt->last[c->in.worker & (SAINA_WORKERS_MAX - 1)];

	c->latch.last = *last;
	*last = c->in.round + 1;
	c->out.counted = counter;
	if (!c->in.segment)
		c->out.opened_at = h->opened_at;
	if (slot_is_deferred(&c->in)) {
		c->latch.claimed = 1;
		c->out.verdict = VERDICT_CLAIMED;
		return SLOT_DO_NOTHING;
	}
	c->out.verdict = VERDICT_CONSUMED;
	if (exponent_is_nan(h->exponent))
		return action >= SLOT_DO_FINISH ? SLOT_DO_FINISH_NAN : SLOT_DO_NOTHING;
	return action;
}

/*
 * A gradient with another scale than the slot's: the coarser one is the slot's from now on.
 * Returns 1 + the worker that brought that one if this is to be counted for it: once, and neither
 * for zeros, which lose nothing, nor for scales that are near to each other.  Else 0.
 */
static __always_inline __u32 slot_take_scale(struct saina_slot_meta *h, const struct ctx_in *in,
					     bool coarser)
{
	__u32 by = coarser ? in->worker + 1 : h->scale_by;
	__s32 finer = coarser ? h->exponent : in->exponent;
	__s32 gap = coarser ? h->exponent - in->exponent : in->exponent - h->exponent;
	bool harmless = finer == SAINA_EXPONENT_MAX || gap < SAINA_COARSE_BITS;

	h->scale_by = harmless ? by : 0;
	if (coarser)
		h->exponent = in->exponent;
	return harmless ? 0 : by;
}

/* With SAINA_F_TYPES the slot's sums, which mean nothing, begin with whom integers are from. */
static __always_inline __u64 *slot_ints(struct saina_slot_meta *h)
{
	return (__u64 *)(h + 1);
}

/* SAINA_F_TYPES: the contributors that sent integers; else 0.  Without a branch, as is_above(). */
static __always_inline __u64 slot_integers(struct saina_slot_meta *h)
{
	return *slot_ints(h) & -(__u64)(h->flags / SAINA_F_TYPES & 1);
}

/*
 * A gradient that the slot cannot be summed with: one of both is a NaN, or of integers.  With
 * SAINA_F_TYPES, a node's: it is of integers and floats, which are not this switch's to name.
 */
static __always_inline void slot_spoil(struct saina_slot_meta *h, const struct ctx_in *in)
{
	bool ints = h->exponent == SAINA_EXPONENT_INT, more = in->exponent == SAINA_EXPONENT_INT;

	if (ints != more || in->flags & SAINA_F_TYPES) {
		if (ints)
			*slot_ints(h) = h->seen;
		else
			*slot_ints(h) = slot_integers(h) | (in->bit & -(__u64)more);
		h->flags |= SAINA_F_TYPES;
	}
	h->exponent = SAINA_EXPONENT_NAN;
}

/* Is it complete, and the message's job without an uplink?  With one the slot becomes AWAY. */
static __always_inline bool slot_completes(struct saina_ctx *c, const struct saina_slot_meta *h)
{
	if (!slot_complete(h, &c->in))
		return false;
	if (!(c->in.uplink & UPLINK_JOB))
		return true;
	c->latch.away = 1;
	return false;
}

/* Is the message the result of its slot?  Then the slot may be OPEN or AWAY. */
static __always_inline bool slot_is_result(const struct ctx_in *in)
{
	return in->uplink & UPLINK_SENDER && !in->pull;
}

/* A GRAD of the uplink worker is the result, whatever the slot holds. */
static __always_inline int slot_take_result(struct saina_ctx *c, struct saina_slot_meta *h,
					    struct saina_counted *cnt)
{
	const struct ctx_in *in = &c->in;
	__u64 uncounted = h->state != SAINA_SLOT_AWAY || in->flags & SAINA_F_LATE ? h->seen : 0;

	/* its fields are the sum's until it is not AWAY any more */
	slot_set_state(h, SAINA_SLOT_OPEN);
	/* without branches, which the verifier would follow for each worker */
	for (int w = 0; w < SAINA_WORKERS_MAX; w++) {
		__u32 other = cnt->last[w] ^ (in->round + 1);

		cnt->last[w] &= -(__u32)(is_above(other, 0) | (~(uncounted >> w) & 1));
	}
	h->seen &= ~uncounted;
	if (!h->seen)
		h->count = 0;
	*slot_ints(h) = (slot_integers(h) & ~uncounted) |
			(h->seen & -(__u64)!is_above(h->exponent ^ SAINA_EXPONENT_INT, 0));
	h->exponent = in->exponent;
	h->weight = in->weight;
	h->flags &= ~SAINA_F_TYPES;
	h->flags |= in->flags & (SAINA_F_DEGRADED | SAINA_F_DROP_LATE);
	if (!exponent_is_nan(in->exponent))
		return SLOT_DO_FINISH_STORE;
	h->flags |= in->flags & SAINA_F_TYPES;
	return SLOT_DO_FINISH_NAN;
}

/* A message for a slot that is open for its segment; @mixed: slot_is_mixed(). */
static __always_inline int slot_decide_open(struct saina_ctx *c, struct saina_slot_meta *h,
					    struct saina_counted *cnt, bool mixed)
{
	const struct ctx_in *in = &c->in;
	bool deferred = slot_is_deferred(in), applied = !deferred || h->applied == h->count;
	bool complete = slot_complete(h, in), in_it = h->seen & in->bit;
	bool spare = h->csum & coded_part(h->parts, in->worker);
	__u32 reason = in->pull ? SAINA_C_PULL_EARLY : in_it ? SAINA_C_DUPLICATE : SAINA_C_SPARE;

	if (in->pull || in_it || spare) {
		if (!applied || !complete)
			return slot_drop(&c->out, reason);
		if (in->uplink) {
			c->latch.away = 1;
			c->out.verdict = VERDICT_CONSUMED;
			return SLOT_DO_NOTHING;
		}
		return exponent_is_nan(h->exponent) ? SLOT_DO_FINISH_NAN : SLOT_DO_FINISH;
	}
	if (!applied && complete)
		/* too late for a result that is not made yet */
		return slot_drop(&c->out, SAINA_C_PULL_EARLY);
	if (mixed)
		c->out.coarsened = slot_take_scale(h, in, in->exponent < h->exponent);
	else if (in->exponent != h->exponent || in->flags & SAINA_F_TYPES)
		slot_spoil(h, in);
	h->seen |= in->bit;
	h->csum |= coded_part(h->parts, in->worker);
	h->count++;
	if (!deferred)
		h->weight += in->weight;
	return slot_count_in(c, h, cnt, SAINA_C_ADDED,
			     !deferred && slot_completes(c, h) ? SLOT_DO_FINISH_ADD : SLOT_DO_ADD);
}

/* A message for a slot that is not open, and whose result is not in the ring. */
static __always_inline int slot_decide_new(struct saina_ctx *c, struct saina_slot_meta *h,
					   struct saina_counted *cnt)
{
	const struct ctx_in *in = &c->in;
	struct ctx_latch *latch = &c->latch;

	latch->busy = slot_busy(h, in);
	if (!latch->k) {
		c->out.last = cnt->last[in->worker & (SAINA_WORKERS_MAX - 1)];
		c->out.verdict = VERDICT_MISS;
		return SLOT_DO_NOTHING;
	}
	if (latch->busy)
		/* another message was faster, between the two locks */
		return slot_drop(&c->out, SAINA_C_SLOT_BUSY);
	h->round = in->round;
	h->segment = in->segment;
	h->state = SAINA_SLOT_OPEN;
	h->k = latch->k;
	h->count = 1;
	h->applied = 0;
	h->exponent = in->exponent;
	h->policy = latch->policy;
	h->seen = in->bit;
	h->members = latch->members;
	h->opened_at = latch->opened_at;
	h->deadline = latch->deadline;
	h->k_min = latch->k_min;
	h->parts = latch->parts;
	h->csum = coded_part(latch->parts, in->worker);
	h->flags = latch->flags;
	if (!slot_is_deferred(in)) {
		h->scale_by = in->worker + 1;
		h->weight = in->weight;
	}
	latch->opened = 1;
	if (slot_is_result(in))
		return SLOT_DO_TAKE;
	if (in->flags & SAINA_F_TYPES) {
		*slot_ints(h) = 0;
		h->flags |= SAINA_F_TYPES;
	}
	return slot_count_in(c, h, cnt, SAINA_C_STORED,
			     !slot_is_deferred(in) && slot_completes(c, h) ? SLOT_DO_FINISH_STORE :
									      SLOT_DO_STORE);
}

/* saina.ko has added a claimed gradient, or failed to.  The slot cannot be DONE before that, so
 * it is still the same.
 */
static __always_inline int slot_settle(struct saina_ctx *c, struct saina_slot_meta *h,
				       struct saina_counted *cnt)
{
	if (c->latch.failed) {
		h->seen &= ~c->in.bit;
		h->count--;
		cnt->last[c->in.worker & (SAINA_WORKERS_MAX - 1)] = c->latch.last;
		c->out.counted = COUNT_NONE;
		slot_drop(&c->out, SAINA_C_INTERNAL);
	} else {
		h->applied++;
		c->out.verdict = VERDICT_CONSUMED;
	}
	return h->count && h->applied == h->count && slot_complete(h, &c->in) ?
		       SLOT_DO_FINISH : SLOT_DO_NOTHING;
}

/**
 * slot_decide() - what a message does to its slot
 * @c: the message
 * @h: head of its hot slot
 * @e: head of its ring entry
 * @cnt: who was counted when in its segment
 *
 * All but the sums, under the slot's lock.
 *
 * Return: enum slot_action for the sums.  After those that finish the slot, slot_done() is due.
 */
static __always_inline int slot_decide(struct saina_ctx *c, struct saina_slot_meta *h,
				       const struct saina_slot_meta *e, struct saina_counted *cnt)
{
	bool hot = slot_is_of(h, &c->in);

	if (slot_is_deferred(&c->in) && c->latch.claimed)
		return slot_settle(c, h, cnt);
	if (hot && c->in.uplink && h->state != SAINA_SLOT_DONE) {
		if (slot_is_result(&c->in))
			return SLOT_DO_TAKE;
		if (h->state == SAINA_SLOT_AWAY)
			return slot_drop(&c->out, c->in.pull ? SAINA_C_PULL_EARLY :
						  h->seen & c->in.bit ? SAINA_C_DUPLICATE :
									SAINA_C_AWAY);
	}
	if (hot && h->state == SAINA_SLOT_OPEN)
		return slot_decide_open(c, h, cnt, false);
	/* also where a table has taken the entry: the hot slot may be of that round still */
	if (e->state != SAINA_SLOT_DONE || e->round != c->in.round)
		return slot_decide_new(c, h, cnt);
	slot_fill_result(&c->out, e);
	if (!c->in.segment && !c->in.pull && !(e->seen & c->in.bit))
		c->out.opened_at = e->opened_at;
	c->out.last = cnt->last[c->in.worker & (SAINA_WORKERS_MAX - 1)];
	c->out.verdict = VERDICT_RESULT;
	return SLOT_DO_READ;
}

/*
 * Workers may have mapped the ring (saina/shm.h): they take nothing from an entry from here on,
 * until it is DONE again.  Exchanges, for the order that they rely on: of @state and what shares
 * its word.
 */
static __always_inline void slot_unpublish(struct saina_slot_meta *e)
{
	if (e->state != SAINA_SLOT_EMPTY)
		__sync_lock_test_and_set((__u32 *)&e->state, SAINA_SLOT_EMPTY);
}

static __always_inline void slot_publish(struct saina_slot_meta *e, const struct saina_slot_meta *h)
{
	const __u64 *from = (const __u64 *)h;
	__u32 state = *(const __u32 *)&h->state;
	__u64 *to = (__u64 *)e;

	to[0] = from[0];
	e->policy = h->policy;
#pragma unroll
	for (int i = 2; i < 8; i++)
		to[i] = from[i];
	__sync_lock_test_and_set((__u32 *)&e->state, state);
}

/* The result is made; @csum: of its payload, not folded. */
static __always_inline void slot_done(struct saina_ctx *c, struct saina_slot_meta *h,
				      struct saina_slot_meta *e, const struct saina_counted *cnt,
				      __u64 csum)
{
	if (h->count < h->k)
		h->flags |= SAINA_F_DEGRADED;
	/* of floats the tag was there: no gradient has it */
	if (slot_is_deferred(&c->in))
		h->weight = 0;
	h->csum = csum_fold64(csum);
	h->state = SAINA_SLOT_DONE;
	slot_publish(e, h);
	slot_fill_result(&c->out, h);
	c->out.ints = *slot_ints(h);
	c->out.last = cnt->last[c->in.worker & (SAINA_WORKERS_MAX - 1)];
	c->out.verdict = VERDICT_RESULT_ALL;
}

/*
 * The fast path: one more gradient for a slot that is open for it, does not complete with it
 * and has nothing unusual, but perhaps another exponent.  With all members alive k is at most
 * their number, so a slot with fewer than k contributors is not complete.
 */
static __always_inline bool slot_is_waiting(const struct saina_slot_meta *h,
					    const struct ctx_in *in)
{
	return h->state == SAINA_SLOT_OPEN && h->round == in->round &&
	       h->segment == in->segment && h->count + 1 < h->k &&
	       !exponent_is_nan(in->exponent) && !(h->seen & in->bit) &&
	       !(h->members & ~in->active) && !h->parts &&
	       (!h->deadline || in->now < h->deadline);
}

static __always_inline bool slot_is_plain(const struct saina_slot_meta *h, const struct ctx_in *in)
{
	return h->exponent == in->exponent && slot_is_waiting(h, in);
}

/* What the fast path did with a gradient. */
enum slot_added {
	SLOT_NOT_ADDED,		/* nothing has changed, call slot_run_ELEMS() */
	SLOT_ADDED,		/* + w + 1: count SAINA_C_COARSENED of worker w */
};

/*
 * Is it to be added to a slot with another exponent?  slot_mixed_ELEMS() does that: loops that
 * shift would slow down slot_step_ELEMS() and the verifier.
 */
static __always_inline bool slot_is_mixed(const struct saina_slot_meta *h, const struct ctx_in *in)
{
	return h->exponent != in->exponent && !slot_is_result(in) &&
	       exponent_is_scale(h->exponent) && exponent_is_scale(in->exponent) &&
	       h->state == SAINA_SLOT_OPEN && slot_is_of(h, in) && !in->pull &&
	       !(h->seen & in->bit) &&
	       !(h->csum & coded_part(h->parts, in->worker));
}

/*
 * State of segment @i of an ASK, read without the lock.  A global function, which the verifier
 * does not walk for each of SAINA_ASK_SEGMENTS.
 */
__noinline int slot_peek(struct saina_ctx *c, __u32 i, const struct saina_slot_meta *h,
			 const struct saina_slot_meta *e, const struct saina_counted *cnt)
{
	__u64 bit = 1ull << (i & (SAINA_ASK_SEGMENTS - 1));
	bool open, away;

	if (!c || !h || !e || !cnt)
		return 0;
	away = h->state == SAINA_SLOT_AWAY;
	open = (away || h->state == SAINA_SLOT_OPEN) && h->round == c->in.round &&
	       h->segment == c->in.segment + i;
	if (cnt->last[c->in.worker & (SAINA_WORKERS_MAX - 1)] == c->in.round + 1 ||
	    (open && h->csum & coded_part(h->parts, c->in.worker)))
		c->ask.counted |= bit;
	if (e->state == SAINA_SLOT_DONE && e->round == c->in.round) {
		c->ask.done |= bit;
	} else if (open && away) {
		c->ask_away = 1;
	} else if (open) {
		slot_find_parts(c, h);
		if (slot_complete(h, &c->in))
			c->ask.due |= bit;
	}
	return 0;
}

/* Of exponents that differ by @difference, not 0: bits to shift the finer integers by, less 1. */
static __always_inline __u32 slot_shift_less(__s32 difference)
{
	__u32 less = (difference > 0 ? difference : -difference) - 1;

	return less > 30 ? 30 : less;
}

/* x / 2^(@less + 1), rounded to nearest, halves up */
static __always_inline __u32 slot_shift(__s32 x, __u32 less)
{
	return ((__s32)((__u32)(x >> less) + 1)) >> 1;
}

/* Is its payload pairs of int16?  Not with the module: elem_is_int(). */
static __always_inline bool slot_has_pairs(const struct ctx_in *in)
{
#ifdef SAINA_KMOD
	return false;
#else
	return in->elem == SAINA_ELEM_INT16;
#endif
}

#define PAIR_LESS_MAX	14u	/* 2^15 is the largest power of two to divide an int16 by */

/*
 * Both numbers of a pair, likewise; @less is at most PAIR_LESS_MAX.  With 2^15 added neither is
 * negative, so bits that one shift moves from the second to the first are all there is to mask.
 * What is added becomes 2^(14 - @less): the caller subtracts slot_pair_bias().
 */
static __always_inline __u32 slot_shift_pair(__u32 x, __u32 less, __u32 mask)
{
	x = (x + 0x80008000) >> less;
	return (x >> 1 & mask) + (x & 0x00010001);
}

static __always_inline __u32 slot_pair_mask(__u32 less)
{
	return (0x7fff >> less) * 0x00010001;
}

static __always_inline __u32 slot_pair_bias(__u32 less)
{
	return (0x4000 >> less) * 0x00010001;
}

/* The part that depends on the payload size, once for each. */
#define EACH_SIZE "slot_sum.bpf.h"
#include "each_size.bpf.h"
#ifdef SAINA_KMOD
#define ELEMS_HALVED
#include "each_size.bpf.h"
#undef ELEMS_HALVED
#endif
#undef EACH_SIZE

#endif /* SAINA_SLOT_BPF_H */
