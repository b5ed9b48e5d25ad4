/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The relay between a job and its parent's: up.c is the worker of the parent's job, whose gradients
 * are sums that are AWAY; down.c is the uplink worker of the own job, whose gradients are the
 * parent's results.  What a segment is at is kept in the slots, not here: so a relay that was killed
 * goes on where the slots say.
 */
#ifndef SAINA_UPLINK_RELAY_H
#define SAINA_UPLINK_RELAY_H

#include "handover.h"
#include "member.h"
#include "slots.h"
#include "transport/flow.h"

/**
 * struct up - to the parent
 * @member: its worker
 * @flow: what to send when; a round of it has the segments that have become AWAY, in order
 * @ready: @flow is there
 * @round: newest round of which a slot was AWAY, if @pending
 * @pending: there is one, and @flow is not in it yet
 * @over: segments of the flow's round that have a result
 * @seen: segments below were seen AWAY, or had a result when this process began
 * @seen_ns: when @seen was last increased
 * @waits_ns: since when a sum of the round waits; 0: none does
 * @sent: sums sent for the first time
 * @resent: sums sent again
 */
struct up {
	struct member member;
	struct saina_flow flow;
	bool	 ready, pending;
	uint32_t round, over, seen;
	uint64_t seen_ns, waits_ns;
	uint64_t sent, resent;
};

/**
 * struct down_result - a result that the own job's slot does not have yet
 * @round: of it
 * @segment: of it
 * @due_ns: when to send it (again)
 * @tries: how often it was sent
 */
struct down_result {
	uint32_t round, segment;
	uint64_t due_ns;
	unsigned int tries;
};

/**
 * struct down - to the own job
 * @member: its uplink worker
 * @open: @member joins, or has joined
 * @msglen: bytes of a GRAD
 * @msg: [pool * msglen]: GRADs, by slot
 * @result: [pool]
 * @waits: bit by slot: @result is valid, and the slot may not be DONE
 * @taken: results given to the own job
 * @lost: batches since one arrived at once
 */
struct down {
	struct member member;
	bool	 open;
	size_t	 msglen;
	uint8_t	 *msg;
	struct down_result *result;
	uint64_t waits[SAINA_POOL_MAX / 64];
	uint64_t taken;
	unsigned int lost;
};

/**
 * struct relay
 * @conf: what sainad has said
 * @netns: network namespace of the port of the own bridge
 * @slots: of the own job
 * @up: to the parent
 * @down: to the own job
 * @had: [segments]: 1: of @had_round, and had a result before this process took part
 * @had_round: the first round of this process
 * @begun: it has begun
 * @end: why the process ends, if @error is not empty
 * @error: a sentence
 */
struct relay {
	struct uplink_handover conf;
	int	netns;
	struct uplink_slots slots;
	struct up up;
	struct down down;
	uint8_t	*had;
	uint32_t had_round;
	bool	begun;
	enum uplink_state end;
	char	error[SAINA_TEXT_LEN];
};

/* The process ends for this reason. */
void relay_end(struct relay *r, enum uplink_state how, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* up.c */
int up_open(struct relay *r, uint64_t now);
void up_close(struct relay *r);
/* A slot has become AWAY. */
void up_away(struct relay *r, uint32_t round);
/* Does what is due; returns when to call again at the latest. */
uint64_t up_run(struct relay *r, uint64_t now);

/* down.c */
int down_init(struct relay *r);
void down_exit(struct relay *r);
/* Begins to join the own job. */
int down_open(struct relay *r, uint64_t now);
/* The parent's result of a segment that is AWAY. */
void down_put(struct relay *r, const struct saina_hdr *h);
uint64_t down_run(struct relay *r, uint64_t now);

static inline void earliest(uint64_t *when, uint64_t ns)
{
	if (ns < *when)
		*when = ns;
}

#endif /* SAINA_UPLINK_RELAY_H */
