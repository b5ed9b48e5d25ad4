/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The oracle: a plain model of the slot machine and its policies, written from
 * Documentation/datapath.rst and from nothing else.  It gets the frames that
 * the XDP program gets and says what must come out.  No cleverness here: a
 * difference from the program is settled by reading that document.
 */
#ifndef SAINA_ORACLE_H
#define SAINA_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "saina/bpf.h"

#define ORACLE_FRAME_MAX	9216
#define ORACLE_PORTS		8	/* ifindexes 0..7 may have injected faults */
#define ORACLE_JOIN_SRCS	1024

enum oracle_verdict {
	ORACLE_PASS,		/* goes on to the bridge, untouched */
	ORACLE_DROP,		/* ends here */
	ORACLE_REDIRECT,	/* rewritten, goes to a worker or to all */
};

/* Workers by number, none of them twice. */
struct oracle_workers {
	unsigned int n;
	uint8_t w[SAINA_WORKERS_MAX];
};

/**
 * struct oracle_slot - a hot slot, a result, parameters or a view of them
 * @meta: what tests compare and answers have; csum is not modelled, nor sum_tag in rounds
 * @sum: int16: words; floats: float32 if OPEN, as on the wire if DONE
 * @in: the workers in @sum, in the order in which they came; NULL: steps, not rounds
 * @integers: of them, those whose gradients had exponent INT
 * @spoiled_below: one of them is a node's sum of integers and floats
 * @weight: workers that its nodes stand for, less the nodes
 * @scale_of: who brought the scale; -1: that has been counted
 */
struct oracle_slot {
	struct saina_slot_meta meta;
	int32_t *sum;
	struct oracle_workers *in;
	uint64_t integers;
	bool spoiled_below;
	uint32_t weight;
	int scale_of;
};

/**
 * struct oracle_round - the newest round, as it was when it opened: its slots latch all of this
 * @policy: in force
 * @members: workers that were alive; a fence is complete when all of them are in
 * @k: this many of them are enough
 * @parts: CODED: parts of the gradient; else 0
 * @timeout_ns: for so long a slot waits for @k; 0: for ever
 */
struct oracle_round {
	struct saina_policy policy;
	struct oracle_workers members;
	unsigned int k, parts;
	uint64_t timeout_ns;
};

/**
 * struct oracle_history - when something happened last, for a policy that waits for it
 * @moment: the present one; counts what has happened
 * @last: by type of event: the moment of the last one, 0: there was none
 * @asked_at: when the schedule was first seen
 */
struct oracle_history {
	uint64_t moment;
	uint64_t last[16];
	uint64_t asked_at;
};

/**
 * struct oracle_sfcd - what SFCD knows of earlier rounds
 * @sign: [segment][sample]: of the last result, -1 or 1; 0: there was none
 * @reached: of each round decided, oldest first: did enough signs flip?
 * @rounds, @room: of @reached
 * @up_from, @down_from: rounds from here on count for a larger, or a smaller, k
 */
struct oracle_sfcd {
	int8_t *sign;
	bool *reached;
	size_t rounds, room, up_from, down_from;
};

/* A worker in PS mode, as struct saina_clock has it. */
struct oracle_stepper {
	bool member, going, waiting;
	uint32_t done, begun;
	uint64_t session;
};

/**
 * struct oracle_job - a job, its state and its counters
 * @present: there is such a job
 * @conf: the snapshot in force
 * @rt: what the program's must be (lock and times unused)
 * @members: those of @rt, ascending
 * @round: the newest round
 * @history: for the schedule
 * @sfcd: for decisions of SFCD
 * @step: PS mode: each worker
 * @clock: what the program's must be (lock unused)
 * @hot: conf.pool slots
 * @ring: conf.segments * conf.ring results
 * @last: [segment][worker], 1 + last round that the worker was counted in
 * @view: PS mode: [segment][group], the sums that a group sees
 * @arrival: arrivals of each worker; times are not modelled
 * @sums: memory of all the sums above
 * @in: memory of the lists of hot slots and results
 * @input: shared memory: each worker's array, entries of 64 + 4 * payload bytes; NULL: none
 * @wcount: counters of each worker
 * @event_seen: of the last STALE event of each worker, and of the last DEGRADED and TYPES of the job
 */
struct oracle_job {
	bool present;
	struct saina_job_conf conf;
	struct saina_job_rt rt;
	struct oracle_workers members;
	struct oracle_round round;
	struct oracle_history history;
	struct oracle_sfcd sfcd;
	struct oracle_stepper step[SAINA_WORKERS_MAX];
	struct saina_clock clock;
	struct oracle_slot *hot;
	struct oracle_slot *ring;
	uint32_t (*last)[SAINA_WORKERS_MAX];
	struct oracle_slot (*view)[SAINA_WORKERS_MAX];
	struct saina_arrival arrival[SAINA_WORKERS_MAX];
	int32_t *sums;
	struct oracle_workers *in;
	uint8_t *input[SAINA_WORKERS_MAX];
	struct saina_counters wcount[SAINA_WORKERS_MAX];
	struct oracle_event_seen {
		uint32_t generation, next;	/* 1 + the newest round */
	} event_seen[SAINA_WORKERS_MAX + 2];
};

struct oracle_join_src {
	struct saina_addr addr;
	struct saina_place place;
};

struct oracle {
	struct saina_global global;
	struct saina_port_conf port[ORACLE_PORTS];
	struct saina_counters gcount;
	struct oracle_job job[SAINA_JOBS_MAX];
	struct oracle_join_src join_src[ORACLE_JOIN_SRCS];	/* first of each address and nonce */
	unsigned int join_srcs;
	struct saina_event *event;	/* since oracle_events_clear() */
	unsigned int events, events_room;
	struct oracle_away {
		unsigned int job;
		uint32_t round, segment;
	} *away;			/* slots that became AWAY since oracle_events_clear() */
	unsigned int aways, aways_room;
	uint64_t now;			/* the time, ns: advanced by the test alone */
	bool tc;			/* the tc hook: sends to every port, relays nothing */
	unsigned int linear;		/* bytes of the next frame that are linear */
};

/**
 * struct oracle_out - what must come out for one packet
 * @verdict: enum oracle_verdict
 * @frame, @len: REDIRECT: the answer
 * @multicast: the answer goes to the job's group
 * @to: REDIRECT: workers it is redirected to
 * @relayed: workers it is relayed to; @frame holds the answer then, too
 * @job, @worker: whose, if it got past check 7
 * @answer: message type of the answer, 0 if there is none
 * @reason: the counter of a drop, -1 if it was not dropped for a reason
 */
struct oracle_out {
	int verdict;
	unsigned int len;
	bool multicast;
	uint64_t to;
	uint64_t relayed;
	int job;
	int worker;
	int answer;
	int reason;
	uint8_t frame[ORACLE_FRAME_MAX] __attribute__((aligned(8)));
};

void oracle_init(struct oracle *o, const struct saina_global *g);
void oracle_exit(struct oracle *o);

/* As saina_dp_job_publish(): a new generation has no earlier state. */
void oracle_job_publish(struct oracle *o, const struct saina_job_conf *conf,
			uint32_t first_round);
void oracle_job_remove(struct oracle *o, unsigned int job);

/* One frame that comes in by @ifindex; @out says what must happen. */
void oracle_packet(struct oracle *o, const uint8_t *frame, unsigned int len,
		   unsigned int ifindex, struct oracle_out *out);

/*
 * The same at the tc hook: a GSO batch of messages of @size bytes each, the last one may be
 * shorter (0: one message).  out->frame is what leaves, to out->to; job, worker and answer are
 * those of one of its answers.
 */
void oracle_batch(struct oracle *o, const uint8_t *frame, unsigned int len, unsigned int size,
		  unsigned int ifindex, struct oracle_out *out);

/* Shared memory: the input array of worker @w is at @input from now on; NULL: it has none. */
void oracle_input_set(struct oracle *o, unsigned int job, unsigned int w, uint8_t *input);

void oracle_events_clear(struct oracle *o);

/* Word @i of the job's saina_signs. */
uint64_t oracle_sign_word(const struct oracle_job *j, size_t i);

/* Section 3.1: @x in units that are 2^@d times as large. */
int32_t oracle_shift(int32_t x, unsigned int d);

/* The policy to be in force now. */
const struct saina_policy *oracle_target_policy(const struct oracle_job *j);

/* Section 11: do workers step on their own? */
static inline bool oracle_has_steps(const struct saina_policy *p)
{
	return p->window || p->groups;
}

/* Bytes that @count elements take in a message. */
static inline unsigned int oracle_bytes(const struct saina_job_conf *c, unsigned int count)
{
	return count * (c->elem == SAINA_ELEM_BFLOAT16 ? 2 : 4);
}

static inline unsigned int oracle_popcount(uint64_t v)
{
	return __builtin_popcountll(v);
}

#endif /* SAINA_ORACLE_H */
