/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The slot machine.  It takes a message that has been checked (header fields
 * in struct slot_call, payload in memory) and returns a verdict; it knows
 * nothing of the hook that brought the message nor of frames.  Its rules:
 * Documentation/datapath.rst sections 3, 4 and 8.
 *
 * Two kinds of locks, never two at once (the verifier allows no more): the
 * lock of a slot (saina_locks) guards the hot slot, the ring entries and the
 * counted[] of its segments; the lock in struct saina_job_rt guards the
 * round.  A slot that is being opened counts in open_slots before it is open,
 * and one that is DONE until it is accounted for, so a round cannot end under
 * either.
 *
 * No helper may be called under a lock: look-ups and clocks come before.
 */
#ifndef SAINA_SLOT_BPF_H
#define SAINA_SLOT_BPF_H

#include "maps.bpf.h"
#include "control.bpf.h"

enum slot_verdict {
	SLOT_DROP,	/* reason says why */
	SLOT_KEPT,	/* summed, nothing to send yet */
	SLOT_RESULT,	/* payload holds the result: to everybody */
	SLOT_ANSWER,	/* payload holds the result: to the sender */
	SLOT_STALE,	/* that round cannot be had: tell the sender */
	SLOT_MISS,	/* inside the slot machine only: not in hot slot or ring */
	SLOT_CLAIMED,	/* likewise: to be added without the lock, and committed (float.bpf.h) */
};

/* Why the hot slot cannot be opened for this segment. */
enum slot_busy {
	SLOT_FREE,
	SLOT_OPEN_ELSEWHERE,	/* it is open for another segment */
	SLOT_OUT_OF_WINDOW,	/* the segment that must be done before is not */
};

#define SLOT_NONE	0xffffffffu	/* no counter */

/* Who sends what where, as far as slot_add_ELEMS() wants to know. */
struct slot_key {
	__u32	job;
	__u32	worker;
	__u32	round;
	__u32	segment;
	__s32	exponent;
};

/**
 * struct slot_call - one message on its way through the slot machine
 *
 * slot_call_init() and the first block make it ready.  It lives in a per-CPU
 * map: six calls deep there are not 512 bytes of stack for it.
 */
struct slot_call {
	/* the message and its job */
	__u64	active;
	__u64	bit;		/* 1 << worker */
	__u32	job;
	__u32	generation;
	__u32	worker;
	__u32	round;
	__u32	segment;
	__u32	pool;
	__u32	lock;
	__u32	pull;		/* PULL, else GRAD */
	__s32	exponent;
	/* permission to open, from the round */
	__u64	members;
	__u64	opened_at;
	__u32	permitted;
	__u32	opened;
	__u32	busy;		/* enum slot_busy */
	__u32	policy;
	__u32	k;
	/* the verdict */
	__u32	verdict;	/* enum slot_verdict */
	__u32	reason;		/* SLOT_DROP: counter */
	__u32	counted;	/* STORED, ADDED or SLOT_NONE */
	__u32	next_round;	/* SLOT_STALE */
	/* the result */
	__u64	mask;
	__u32	last;		/* counted[segment].last[worker] */
	__u32	csum;
	__u32	contributors;
	__u32	next_k;
	__u32	flags;
	__u32	flips;
	__u32	observed;
	/* for who answers */
	__u32	linear;		/* the frame is in one piece */
#ifdef SAINA_KMOD
	/* float.bpf.h */
	__u32	claimed;	/* counted in the slot */
	__u32	failed;		/* could not be added */
#endif
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

static __always_inline void slot_call_init(struct slot_call *c)
{
	c->permitted = 0;
	c->opened = 0;
	c->busy = 0;
	c->counted = SLOT_NONE;
	c->reason = SAINA_C_INTERNAL;
	c->flips = 0;
	c->observed = 0;
}

static __always_inline bool slot_complete(const struct saina_slot_meta *m, __u64 active)
{
	__u64 live = m->members & active;
	__u32 need = popcount64(live);

	if (m->k < need)
		need = m->k;
	return popcount64(m->seen & live) >= need;
}

/*
 * The slots of a round are used in order: the one before in this hot slot must
 * be done.  Without that rule a worker that breaks its window would take the
 * slot from segments that nobody could open any more.
 */
static __always_inline __u32 slot_busy(const struct saina_slot_meta *m, const struct slot_call *c)
{
	if (m->state == SAINA_SLOT_OPEN)
		return SLOT_OPEN_ELSEWHERE;
	if (c->segment >= c->pool &&
	    (m->state != SAINA_SLOT_DONE || m->round != c->round ||
	     m->segment != c->segment - c->pool))
		return SLOT_OUT_OF_WINDOW;
	return SLOT_FREE;
}

static __always_inline void slot_answer_from(struct slot_call *c, const struct saina_slot_meta *m)
{
	c->mask = m->seen;
	c->contributors = m->count;
	c->exponent = m->exponent;
	c->policy = m->policy;
	c->k = m->k;
	c->flags = m->flags;
	c->csum = m->csum;
}

#include "round.bpf.h"
#include "sfcd.bpf.h"

/* The part that depends on the payload size, once for each. */
#define EACH_SIZE "slot_elems.bpf.h"
#include "each_size.bpf.h"

#endif /* SAINA_SLOT_BPF_H */
