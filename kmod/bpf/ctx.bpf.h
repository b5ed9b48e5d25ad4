/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Context of one message: what was checked of it, what it may open, what becomes of it.
 * ctx_init() begins; each stage reads and writes its part of struct saina_ctx.
 */
#ifndef SAINA_CTX_BPF_H
#define SAINA_CTX_BPF_H

#include "maps.bpf.h"

enum verdict {
	VERDICT_DROP,	/* reason says why */
	VERDICT_CONSUMED,	/* added; nothing to send yet */
	/* send that message: _ALL to the job's workers, else to the sender */
	VERDICT_RESULT_ALL,
	VERDICT_RESULT,
	VERDICT_STALE,
	VERDICT_ASK_REPLY,
	VERDICT_COMPLETION_ALL,
	VERDICT_COMPLETION,
	VERDICT_PROBE_REPLY,
	VERDICT_SUM,
	VERDICT_NAK,
	VERDICT_GO,
	VERDICT_GO_ALL,
	/* internal */
	VERDICT_MISS,		/* nothing done yet: the caller goes on with the next step */
	VERDICT_CLAIMED,	/* to be added by saina.ko without the lock, then settled */
	VERDICT_RETRY,		/* nothing changed; the exponents need the other function */
};

/* Why the hot slot cannot be opened for this segment. */
enum slot_busy {
	SLOT_FREE,
	SLOT_OPEN_ELSEWHERE,	/* it is open for another segment */
	SLOT_OUT_OF_WINDOW,	/* the segment that must be done before is not */
};

#define UPLINK_JOB	1	/* the job has an uplink */
#define UPLINK_SENDER	2	/* the message is from its uplink worker: a GRAD is the result */

/**
 * struct ctx_in - a message that has been checked
 * @active: of the snapshot it was checked against
 * @now: CLOCK_MONOTONIC ns if needed, else 0
 * @members: CODED: the members that @parts_alive was computed for
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
 * @pull: PULL, FETCH or READ, else GRAD, DOORBELL, INC or CLOCK
 * @elem: enum saina_elem_type of its job
 * @uplink: UPLINK_*
 * @flags: of a GRAD: SAINA_F_*
 * @weight: of a GRAD: workers that it stands for, less 1
 * @parts: CODED: of the gradient
 * @parts_alive: CODED: parts that some live worker computes, as bits
 */
struct ctx_in {
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
	__u8	pull;
	__u8	elem;
	__u8	uplink;
	__u8	flags;
	__u32	weight;
	__u32	parts;
	__u32	parts_alive;
};

/**
 * struct ctx_latch - permission to open the slot, and what it latches of its round
 * @members: workers that the round waits for
 * @opened_at: now, CLOCK_MONOTONIC ns
 * @deadline: of the time-out, 0: none
 * @policy: seq of the policy
 * @k: 0: there is none
 * @flags: SAINA_F_* of every reply from the slot
 * @busy: enum slot_busy, as last seen
 * @opened: the slot was opened
 * @claimed: counted in the slot, but not in its sums yet
 * @failed: saina.ko could not add it
 * @last: counted[segment].last[worker] before the claim
 * @action: enum slot_action; passed through memory, so that the verifier walks the loops once
 *	and not once for each decision
 * @less: mixed exponents: bits to shift by, less 1; likewise
 * @coarser: mixed exponents: the sum is shifted, not the input; likewise
 * @searched: @behind and @behind_next are known
 * @behind: live workers that are too far behind for the round to open with the present policy
 * @behind_next: ... with the one to come
 * @k_min: least number of contributors at the deadline
 * @parts: CODED: of the gradient, else 0
 * @away: the slot is complete, and becomes AWAY once its sums are
 * @pad: 0
 */
struct ctx_latch {
	__u64	members;
	__u64	opened_at;
	__u64	deadline;
	__u64	behind;
	__u64	behind_next;
	__u32	policy;
	__u32	k;
	__u32	flags;
	__u32	busy;
	__u32	opened;
	__u32	claimed;
	__u32	failed;
	__u32	last;
	__u32	action;
	__u32	less;
	__u32	coarser;
	__u32	searched;
	__u16	k_min;
	__u16	parts;
	__u32	away;
	__u32	pad;
};

/**
 * struct ctx_out - what became of a message
 * @verdict: enum verdict
 * @reason: VERDICT_DROP: counter
 * @counted: the counter of a message that is not dropped, or COUNT_NONE
 * @coarsened: 1 + the worker whose block scale is coarser than another's in the slot; 0: none new
 * @next_round: VERDICT_STALE, VERDICT_ASK_REPLY: of the job
 * @last: counted[segment].last[worker]
 * @mask: of the result, as are @csum to @flags; VERDICT_ASK_REPLY: whom the round waits for
 * @ints: of a result with SAINA_F_TYPES: mask of the contributors that sent integers
 * @opened_at: of the slot that a GRAD of segment 0 was counted in or came too late for;
 *	CLOCK: when the first of the group finished that step; else 0
 * @csum: sum of its payload
 * @contributors: how many are in it
 * @exponent: its block scale
 * @policy: seq of its policy
 * @k: latched
 * @flags: SAINA_F_*
 * @next_k: of the job, after VERDICT_RESULT_ALL
 * @flips: SFCD: of the segment
 * @observed: SFCD: of the segment
 * @timeout: of the policy, after VERDICT_RESULT_ALL
 * @weight: of the result: workers in it, less @contributors
 */
struct ctx_out {
	__u64	mask;
	__u64	ints;
	__u64	opened_at;
	__u32	verdict;
	__u32	reason;
	__u32	counted;
	__u32	coarsened;
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
	__u32	weight;
};

/* Changes by the round that opened, for events.  Not on the stack: calls are deepest here. */
struct round_opened {
	__u32	old_seq, seq;
	__u8	old_k, k;
	bool	policy, changed;
};

/**
 * struct ctx_ps - parameter-server mode: what the clock says to a message
 * @session: of its sender
 * @window: of its job
 * @base: first step of the mode
 * @ring: rounds of results kept
 * @leave: the policy to come has rounds or other groups
 * @left: all workers are at the fence: rounds may begin
 * @ended: READ after the mode has ended
 * @is_clock: CLOCK, else INC or READ
 * @step_done: INC of a step that its worker has finished
 * @must_wait: CLOCK: the sender may not begin its next step
 * @nak: VERDICT_NAK: enum saina_nak
 * @add: all ones or 0: an INC that is counted; a READ that makes the group's view of its step
 * @keep: all ones or 0: the ring entry has parameters
 * @seen: all ones or 0: the group's view is of this step
 * @all: steps that all have finished
 * @low: steps that all of the sender's group have finished
 * @done: steps that the sender has finished
 * @going: workers of the sender's group that may do the step they are in
 * @group: of the sender
 * @view: the group has other workers: READ returns their common view
 */
struct ctx_ps {
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
	__u32	ended;
	__u32	is_clock;
	__u32	step_done;
	__u32	must_wait;
	__u32	nak;
	__u32	all;
	__u32	low;
	__u32	done;
	__u32	group;
	__u32	view;
};

/* One message.  In a per-CPU map: six calls deep, 512 bytes of stack do not hold it. */
struct saina_ctx {
	struct ctx_in in;
	struct ctx_latch latch;
	struct ctx_out out;
	struct ctx_ps ps;
	struct round_opened opened;
	__u32	by_doorbell;		/* its payload is in shared memory */
	struct saina_ask ask;
	struct saina_doorbell doorbell;
	__u32	completed;	/* some segment of the DOORBELL */
	__u32	max_weight;	/* of the sender's binding */
	__u32	ask_away;	/* some segment of the ASK is AWAY */
	__u32	pad;
};

struct ctx_scratch {
	struct saina_ctx ctx;
	union {
		struct saina_relay_msg relay;
		__s32 payload[SAINA_ELEMS_MAX];	/* of a frame in pieces */
	};
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ctx_scratch);
} saina_scratch SEC(".maps");

static __always_inline struct ctx_scratch *ctx_scratch(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&saina_scratch, &zero);
}

static __always_inline void ctx_reset(struct saina_ctx *c)
{
	c->in.now = 0;
	c->latch.k = 0;
	c->latch.parts = 0;
	c->latch.busy = SLOT_FREE;
	c->latch.opened = 0;
	c->latch.away = 0;
	c->latch.claimed = 0;
	c->latch.failed = 0;
	c->out.reason = SAINA_C_INTERNAL;
	c->out.counted = COUNT_NONE;
	c->out.coarsened = 0;
	c->out.flips = 0;
	c->out.observed = 0;
}

static __always_inline void ctx_init(struct saina_ctx *c, const struct ctx_in *in)
{
	c->in = *in;
	c->by_doorbell = false;
	c->out.opened_at = 0;
	ctx_reset(c);
}

/* NAK of a message of rounds in a job that runs steps, or the reverse, @since a round or step. */
static __always_inline int ctx_nak_mode(struct saina_ctx *c, __u32 since)
{
	c->out.counted = SAINA_C_MODE;
	c->out.verdict = VERDICT_NAK;
	c->out.exponent = 0;
	c->ps.nak = SAINA_NAK_MODE;
	c->ps.low = since;
	c->ps.base = since;
	c->ps.done = 0;
	c->ps.going = 0;
	return VERDICT_NAK;
}

#endif /* SAINA_CTX_BPF_H */
