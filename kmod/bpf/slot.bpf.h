/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The slot machine.  It takes a message that has been checked (struct slot_in,
 * payload in memory) and returns a verdict; it knows nothing of the hook that
 * brought the message nor of frames.  Its rules: Documentation/datapath.rst
 * sections 3, 4, 8 and 9.
 *
 * slot_decide() says what is to be done with the sums; slot_elems.bpf.h does it,
 * once for each payload size.
 *
 * Two kinds of locks, never two at once (the verifier allows no more): the
 * lock of a slot (saina_locks) guards the hot slot, the ring entries and the
 * counted[] of its segments; the lock in struct saina_job_rt guards the
 * round.  A slot that is being opened counts in open_slots before it is open,
 * and one that is DONE until it is accounted for, so a round cannot end under
 * either.
 *
 * No function may be called under a lock: look-ups and clocks come before, and
 * what runs under it is inlined.
 */
#ifndef SAINA_SLOT_BPF_H
#define SAINA_SLOT_BPF_H

#include "maps.bpf.h"
#include "control.bpf.h"

enum slot_verdict {
	SLOT_DROP,	/* reason says why */
	SLOT_KEPT,	/* summed, nothing to send yet */
	SLOT_RESULT,	/* the result is in the output: to everybody */
	SLOT_ANSWER,	/* the result is in the output: to the sender */
	SLOT_STALE,	/* that round cannot be had: tell the sender */
	SLOT_TOLD,	/* what an ASK asked is in told: to the sender */
	SLOT_RUNG,	/* bell says what has come of a BELL: to everybody */
	SLOT_RUNG_ONE,	/* likewise: to the sender */
	SLOT_PROBED,	/* not the slot machine's: a PROBE, to be answered */
	SLOT_SUM,	/* table mode: the sums are in the output: to the sender */
	SLOT_NAK,	/* table mode, or the wrong mode: not counted: tell the sender */
	SLOT_GO,	/* table mode: who may go: to the sender */
	SLOT_GO_ALL,	/* table mode: the same, to everybody */
	SLOT_MISS,	/* inside the slot machine only: not in hot slot or ring */
	SLOT_CLAIMED,	/* likewise: to be added without the lock, and settled */
};

#define SLOT_BEFORE	64	/* bytes of the head that a payload may have */

/* What a decision asks of the sums. */
enum slot_action {
	SLOT_DO_NOTHING,
	SLOT_DO_STORE,		/* hot = input */
	SLOT_DO_ADD,		/* hot += input */
	SLOT_DO_READ,		/* output = ring */
	SLOT_DO_FINISH,		/* ring, output = hot */
	SLOT_DO_FINISH_STORE,	/* ring, output = input */
	SLOT_DO_FINISH_ADD,	/* ring, output = hot + input */
};

/* Why the hot slot cannot be opened for this segment. */
enum slot_busy {
	SLOT_FREE,
	SLOT_OPEN_ELSEWHERE,	/* it is open for another segment */
	SLOT_OUT_OF_WINDOW,	/* the segment that must be done before is not */
};

/**
 * struct slot_in - a message that has been checked
 * @active: of the snapshot it was checked against
 * @now: CLOCK_MONOTONIC ns, where somebody asks; 0: nobody does
 * @members: CODED: those that @parts_alive is of
 * @session: of its sender
 * @bit: 1 << worker
 * @job: number of its job
 * @generation: of the snapshot
 * @worker: its sender
 * @round: its round
 * @segment: its segment
 * @exponent: block scale of its payload
 * @lock: of its slot
 * @pool: hot slots of its job
 * @pull: PULL, else GRAD
 * @away: its job's elements are added by saina.ko, without the slot's lock
 * @parts: CODED: of the gradient
 * @parts_alive: CODED: those of which somebody is alive, as bits
 */
struct slot_in {
	__u64	active;
	__u64	now;
	__u64	members;
	__u64	session;
	__u64	bit;
	__u32	job;
	__u32	generation;
	__u32	worker;
	__u32	round;
	__u32	segment;
	__u32	lock;
	__u32	pool;
	__s32	exponent;
	__u32	pull;
	__u32	away;
	__u32	parts;
	__u32	parts_alive;
};

/**
 * struct slot_latch - permission to open the slot, and what it latches of its round
 * @members: workers that the round waits for
 * @opened_at: now, CLOCK_MONOTONIC ns
 * @deadline: of the time-out, 0: none
 * @policy: seq of the policy
 * @k: 0: there is none
 * @flags: SAINA_F_* of every answer from the slot
 * @busy: enum slot_busy, as last seen
 * @opened: permission was made use of
 * @claimed: counted in the slot, but not in its sums yet
 * @failed: saina.ko could not add it
 * @k_min: contributors that are enough at the deadline
 * @parts: CODED: of the gradient, else 0
 */
struct slot_latch {
	__u64	members;
	__u64	opened_at;
	__u64	deadline;
	__u32	policy;
	__u32	k;
	__u32	flags;
	__u32	busy;
	__u32	opened;
	__u32	claimed;
	__u32	failed;
	__u16	k_min;
	__u16	parts;
};

/**
 * struct slot_out - what has become of a message
 * @verdict: enum slot_verdict
 * @reason: SLOT_DROP: counter
 * @counted: STORED, ADDED or COUNT_NONE
 * @next_round: SLOT_STALE: of the job
 * @last: counted[segment].last[worker]
 * @mask: of the result, as all to @flags
 * @opened_at: of the slot that a GRAD of segment 0 was counted in or came too late for;
 *	CLOCK: when the first of the group finished that step; else 0
 * @csum: sum of its payload
 * @contributors: how many are in it
 * @exponent: its block scale
 * @policy: seq of its policy
 * @k: latched
 * @flags: SAINA_F_*
 * @next_k: of the job, after SLOT_RESULT
 * @flips: SFCD: of the segment
 * @observed: SFCD: of the segment
 * @timeout: of the policy, after SLOT_RESULT
 */
struct slot_out {
	__u64	mask;
	__u64	opened_at;
	__u32	verdict;
	__u32	reason;
	__u32	counted;
	__u32	next_round;
	__u32	last;
	__u32	csum;
	__u32	contributors;
	__s32	exponent;
	__u32	policy;
	__u32	k;
	__u32	next_k;
	__u32	flags;
	__u32	flips;
	__u32	observed;
	__u32	timeout;
};

/* What a round that opened has changed, for the events; not on the stack, where the calls are
 * deepest.
 */
struct round_opened {
	__u32	old_seq, seq;
	__u8	old_k, k;
	bool	policy, changed;
};

/**
 * struct slot_table - table mode: a message's dealings with the clock
 * @session: its sender's incarnation
 * @window: of its job
 * @base: first step of the table
 * @ring: rounds of results kept
 * @leave: the job is to go back to rounds
 * @left: all are there: it has
 * @after: READ of a table that is over
 * @tick: CLOCK, else INC or READ
 * @over: INC of a step that its worker has finished
 * @waits: CLOCK: the sender must wait
 * @nak: SLOT_NAK: enum saina_nak
 * @add: all ones or 0: an INC that is counted; a READ with which the table becomes the view
 * @keep: all ones or 0: what is in the entry is the table's
 * @seen: all ones or 0: the view is of the step
 * @all: steps that all have finished
 * @low: the same of the sender's group
 * @done: steps that the sender has finished
 * @going: who may do the step they are in, of the sender's group
 * @group: the sender's
 * @view: there are groups, and others in this one: what is read is their common view
 */
struct slot_table {
	__u64	session;
	__u64	going;
	__u64	add;
	__u64	keep;
	__u64	seen;
	__u32	window;
	__u32	base;
	__u32	ring;
	__u32	leave;
	__u32	left;
	__u32	after;
	__u32	tick;
	__u32	over;
	__u32	waits;
	__u32	nak;
	__u32	all;
	__u32	low;
	__u32	done;
	__u32	group;
	__u32	view;
};

/* One message on its way.  It lives in a per-CPU map: six calls deep there are
 * not 512 bytes of stack for it.
 */
struct slot_call {
	struct slot_in in;
	struct slot_latch latch;
	struct slot_out out;
	struct slot_table table;
	struct round_opened opened;
	__u32	rung;		/* it is a segment of a BELL */
	struct saina_ask told;
	struct saina_bell bell;
	__u32	completed;	/* some segment of the BELL */
	__u32	pad;
};

struct slot_scratch {
	struct slot_call call;
	union {
		struct saina_relay_msg relay;
		struct saina_delay_msg delay;
		__s32 payload[SAINA_ELEMS_MAX];	/* of a frame in pieces */
	};
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct slot_scratch);
} saina_scratch SEC(".maps");

static __always_inline struct slot_scratch *slot_scratch(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&saina_scratch, &zero);
}

static __always_inline void slot_call_begin(struct slot_call *c)
{
	c->in.now = 0;
	c->latch.k = 0;
	c->latch.parts = 0;
	c->latch.busy = SLOT_FREE;
	c->latch.opened = 0;
	c->latch.claimed = 0;
	c->latch.failed = 0;
	c->out.reason = SAINA_C_INTERNAL;
	c->out.counted = COUNT_NONE;
	c->out.flips = 0;
	c->out.observed = 0;
}

static __always_inline void slot_call_init(struct slot_call *c, const struct slot_in *in)
{
	c->in = *in;
	c->rung = false;
	c->out.opened_at = 0;
	slot_call_begin(c);
}

/* Without the module nothing is added elsewhere. */
static __always_inline bool slot_away(const struct slot_in *in)
{
#ifdef SAINA_KMOD
	return in->away;
#else
	return false;
#endif
}

static __always_inline bool slot_is_of(const struct saina_slot_meta *h, const struct slot_in *in)
{
	return h->round == in->round && h->segment == in->segment &&
	       h->state != SAINA_SLOT_EMPTY;
}

/* 1 if a > b, else 0: without a branch, for the verifier goes through all that is inlined
 * under the lock with each size.
 */
static __always_inline __u64 slot_above(__u64 a, __u64 b)
{
	__u64 borrow = (~b & a) | (~(b ^ a) & (b - a));

	/* or clang knows what it is, and branches */
	asm volatile("" : "+r"(borrow));
	return borrow >> 63;
}

#define SLOT_SPREAD_MAX	8	/* workers that compute the same part */

/* CODED: the parts that @workers compute, as bits; @parts: how many there are. */
static __always_inline __u32 slot_parts(__u64 workers, __u32 parts)
{
	__u64 have = 0;

	for (__u32 i = 0, shift = 0; i < SLOT_SPREAD_MAX && shift < 64; i++, shift += parts)
		have |= workers >> shift;
	return have & ((1ull << (parts & 63)) - 1);
}

/* CODED: the bit of the part that @worker computes; 0 if there are no parts. */
static __always_inline __u32 slot_part(__u32 parts, __u32 worker)
{
	/* x % 0 is x */
	return slot_above(parts, 0) << (worker % parts & 31);
}

/*
 * slot_look_at_parts() - CODED: which parts will come, into c->in
 *
 * Without the lock, under which no function may be called: whoever uses it sees to it that
 * the slot is the same still.
 */
__noinline int slot_look_at_parts(struct slot_call *c, const struct saina_slot_meta *h)
{
	if (!c || !h)
		return 0;
	c->in.parts = c->latch.k ? c->latch.parts : h->parts;
	c->in.members = c->latch.k ? c->latch.members : h->members;
	c->in.parts_alive = slot_parts(c->in.members & c->in.active, c->in.parts);
	return 0;
}

/* Is it time to go without the rest? */
static __always_inline __u64 slot_expired(const struct saina_slot_meta *h, __u64 now)
{
	/* without a deadline, 0, there is nothing above it less one */
	return slot_above(now, h->deadline - 1) & slot_above((__u64)h->count + 1, h->k_min);
}

/* Are enough workers in it? */
static __always_inline bool slot_complete(const struct saina_slot_meta *h,
					  const struct slot_in *in)
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
 * The slots of a round are used in order: the one before in this hot slot must
 * be done.  Without that rule a worker that breaks its window would take the
 * slot from segments that nobody could open any more.
 */
static __always_inline __u32 slot_busy(const struct saina_slot_meta *h, const struct slot_in *in)
{
	if (h->state == SAINA_SLOT_OPEN)
		return SLOT_OPEN_ELSEWHERE;
	if (in->segment >= in->pool &&
	    (h->state != SAINA_SLOT_DONE || h->round != in->round ||
	     h->segment != in->segment - in->pool))
		return SLOT_OUT_OF_WINDOW;
	return SLOT_FREE;
}

static __always_inline int slot_drop(struct slot_out *out, __u32 reason)
{
	out->verdict = SLOT_DROP;
	out->reason = reason;
	return SLOT_DO_NOTHING;
}

static __always_inline void slot_answer_from(struct slot_out *out, const struct saina_slot_meta *m)
{
	out->mask = m->seen;
	out->contributors = m->count;
	out->exponent = m->exponent;
	out->policy = m->policy;
	out->k = m->k;
	out->flags = m->flags;
	out->csum = m->csum;
}

/* The gradient is in the slot; is it to be added here, or by saina.ko? */
static __always_inline int slot_count_in(struct slot_call *c, const struct saina_slot_meta *h,
					 struct saina_counted *cnt, __u32 counter, int action)
{
	cnt->last[c->in.worker & (SAINA_WORKERS_MAX - 1)] = c->in.round + 1;
	c->out.counted = counter;
	if (!c->in.segment)
		c->out.opened_at = h->opened_at;
	if (slot_away(&c->in)) {
		c->latch.claimed = 1;
		c->out.verdict = SLOT_CLAIMED;
		return SLOT_DO_NOTHING;
	}
	c->out.verdict = SLOT_KEPT;
	return action;
}

/* A message for a slot that is open for its segment. */
static __always_inline int slot_decide_open(struct slot_call *c, struct saina_slot_meta *h,
					    struct saina_counted *cnt)
{
	const struct slot_in *in = &c->in;
	bool away = slot_away(in), applied = !away || h->applied == h->count;
	bool complete = slot_complete(h, in), in_it = h->seen & in->bit;
	bool spare = h->csum & slot_part(h->parts, in->worker);
	__u32 reason = in->pull ? SAINA_C_PULL_EARLY : in_it ? SAINA_C_DUPLICATE : SAINA_C_SPARE;

	if (!in->pull && !in_it && h->exponent != in->exponent) {
		/* it cannot be added: nobody waits for it, as if its worker had died */
		h->members &= ~in->bit;
		h->flags |= SAINA_F_DEGRADED; /* for slot_is_plain() */
		return slot_drop(&c->out, SAINA_C_EXPONENT);
	}
	if (in->pull || in_it || spare)
		return applied && complete ? SLOT_DO_FINISH : slot_drop(&c->out, reason);
	if (!applied && complete)
		/* too late for a result that is not there yet */
		return slot_drop(&c->out, SAINA_C_PULL_EARLY);
	h->seen |= in->bit;
	h->csum |= slot_part(h->parts, in->worker);
	h->count++;
	return slot_count_in(c, h, cnt, SAINA_C_ADDED,
			     !away && slot_complete(h, in) ? SLOT_DO_FINISH_ADD : SLOT_DO_ADD);
}

/* A message for a slot that is not, and whose result is not in the ring. */
static __always_inline int slot_decide_new(struct slot_call *c, struct saina_slot_meta *h,
					   struct saina_counted *cnt)
{
	const struct slot_in *in = &c->in;
	struct slot_latch *latch = &c->latch;

	latch->busy = slot_busy(h, in);
	if (!latch->k) {
		c->out.last = cnt->last[in->worker & (SAINA_WORKERS_MAX - 1)];
		c->out.verdict = SLOT_MISS;
		return SLOT_DO_NOTHING;
	}
	if (latch->busy)
		/* somebody was faster between the two locks */
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
	h->csum = slot_part(latch->parts, in->worker);
	h->flags = latch->flags;
	latch->opened = 1;
	return slot_count_in(c, h, cnt, SAINA_C_STORED,
			     !slot_away(in) && slot_complete(h, in) ? SLOT_DO_FINISH_STORE :
									      SLOT_DO_STORE);
}

/* saina.ko has added a claimed gradient, or could not: is it the last one?  Until then
 * the slot was not DONE, so it is the same still.
 */
static __always_inline int slot_settle(struct slot_call *c, struct saina_slot_meta *h)
{
	if (c->latch.failed) {
		h->seen &= ~c->in.bit;
		h->count--;
		c->out.counted = COUNT_NONE;
		slot_drop(&c->out, SAINA_C_INTERNAL);
	} else {
		h->applied++;
		c->out.verdict = SLOT_KEPT;
	}
	return h->count && h->applied == h->count && slot_complete(h, &c->in) ?
		       SLOT_DO_FINISH : SLOT_DO_NOTHING;
}

/**
 * slot_decide() - what becomes of a message
 * @c: the message
 * @h: head of its hot slot
 * @e: head of its ring entry
 * @cnt: who was counted when in its segment
 *
 * All but the sums, under the slot's lock.
 *
 * Return: the action that the sums need, after the SLOT_DO_FINISH ones of which comes
 * slot_done().
 */
static __always_inline int slot_decide(struct slot_call *c, struct saina_slot_meta *h,
				       const struct saina_slot_meta *e, struct saina_counted *cnt)
{
	bool hot = slot_is_of(h, &c->in);

	if (slot_away(&c->in) && c->latch.claimed)
		return slot_settle(c, h);
	if (hot && h->state == SAINA_SLOT_OPEN)
		return slot_decide_open(c, h, cnt);
	/* also where a table has taken the entry: the hot slot may be of that round still */
	if (e->state != SAINA_SLOT_DONE || e->round != c->in.round)
		return slot_decide_new(c, h, cnt);
	slot_answer_from(&c->out, e);
	if (!c->in.segment && !c->in.pull && !(e->seen & c->in.bit))
		c->out.opened_at = e->opened_at;
	c->out.last = cnt->last[c->in.worker & (SAINA_WORKERS_MAX - 1)];
	c->out.verdict = SLOT_ANSWER;
	return SLOT_DO_READ;
}

/* The result is made, @csum is its sum (not folded). */
static __always_inline void slot_done(struct slot_call *c, struct saina_slot_meta *h,
				      struct saina_slot_meta *e, const struct saina_counted *cnt,
				      __u64 csum)
{
	if (h->count < h->k)
		h->flags |= SAINA_F_DEGRADED;
	else
		h->flags &= ~SAINA_F_DEGRADED;
	h->csum = csum_fold64(csum);
	h->state = SAINA_SLOT_DONE;
	*e = *h;
	slot_answer_from(&c->out, h);
	c->out.last = cnt->last[c->in.worker & (SAINA_WORKERS_MAX - 1)];
	c->out.verdict = SLOT_RESULT;
}

/*
 * The common case, cut short: is it one more gradient into a slot that is open for it,
 * does not complete with it and has nothing unusual about it?  With all members alive and
 * none taken out, k is at most their number, so below k contributors the slot cannot be
 * complete.
 */
static __always_inline bool slot_is_plain(const struct saina_slot_meta *h, const struct slot_in *in)
{
	return h->state == SAINA_SLOT_OPEN && h->round == in->round &&
	       h->segment == in->segment && h->count + 1 < h->k &&
	       h->exponent == in->exponent && !(h->seen & in->bit) && !(h->members & ~in->active) &&
	       !(h->flags & SAINA_F_DEGRADED) && !h->parts &&
	       (!h->deadline || in->now < h->deadline);
}

static __always_inline struct saina_counted *slot_counted(__u32 job, __u32 segment)
{
	void *inner = bpf_map_lookup_elem(&saina_counted, &job);

	return inner ? bpf_map_lookup_elem(inner, &segment) : NULL;
}

/*
 * What a glance, without lock, says of segment @i of an ASK.  A function of its own for the
 * verifier, which would go through it for each of SAINA_ASK_SEGMENTS.
 */
__noinline int slot_glance(struct slot_call *c, __u32 i, const struct saina_slot_meta *h,
			   const struct saina_slot_meta *e, const struct saina_counted *cnt)
{
	__u64 bit = 1ull << (i & (SAINA_ASK_SEGMENTS - 1));
	bool open;

	if (!c || !h || !e || !cnt)
		return 0;
	open = h->state == SAINA_SLOT_OPEN && h->round == c->in.round &&
	       h->segment == c->in.segment + i;
	if (cnt->last[c->in.worker & (SAINA_WORKERS_MAX - 1)] == c->in.round + 1 ||
	    (open && h->csum & slot_part(h->parts, c->in.worker)))
		c->told.counted |= bit;
	if (e->state == SAINA_SLOT_DONE && e->round == c->in.round) {
		c->told.done |= bit;
	} else if (open) {
		slot_look_at_parts(c, h);
		if (slot_complete(h, &c->in))
			c->told.due |= bit;
	}
	return 0;
}

#include "board.bpf.h"

/* A message of rounds where there are steps, or the other way round: since when. */
static __always_inline int slot_other_mode(struct slot_call *c, __u32 since)
{
	c->out.counted = SAINA_C_MODE;
	c->out.verdict = SLOT_NAK;
	c->out.exponent = 0;
	c->table.nak = SAINA_NAK_MODE;
	c->table.low = since;
	c->table.base = since;
	c->table.done = 0;
	c->table.going = 0;
	return SLOT_NAK;
}

#include "round.bpf.h"
#ifdef SAINA_KMOD
#include "float.bpf.h"
#endif

/* The part that depends on the payload size, once for each. */
#define EACH_SIZE "slot_elems.bpf.h"
#include "each_size.bpf.h"
#ifdef SAINA_KMOD
#define ELEMS_HALVED
#include "each_size.bpf.h"
#undef ELEMS_HALVED
#endif
#undef EACH_SIZE

#endif /* SAINA_SLOT_BPF_H */
