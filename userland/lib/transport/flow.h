/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The flow machine: what to send when.  It knows numbers of rounds and segments, no bytes,
 * no sockets and no clock: events and the time go in, actions come out, so that a
 * simulator can drive it (selftests/unit/flow_test.c).  No call allocates but init.
 */
#ifndef SAINA_FLOW_H
#define SAINA_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "reorder.h"
#include "wire/job.h"
#include "cwnd.h"

/**
 * struct saina_train - job->train segments, from a multiple of that on; bit i is segment i
 *	of it, in the present round
 * @out: in flight: a GRAD or PULL has left, the result is not here
 * @learn: PULLed of the round before, while the gate is shut
 * @sent: a GRAD has left
 * @over: the result is taken, or cannot be had
 * @counted: the aggregator has said that our gradient is in, or the result there
 * @again: GRADs, @pull: PULLs to be sent (again), the latter at @pull_ns
 * @pulled: a PULL has left because the result was there
 * @grad_ns, @pulled_ns: when a GRAD, when such a PULL left last
 * @quiet_ns: when anything left or came
 * @first_ns: when the first GRAD of the round left; @limit_ns: no PULL because of the time-out
 *	before this, @limits: such PULLs so far
 * @tries: times asked without news, @unanswered: without an answer
 * @waits: as the last answer said, nothing is lost
 * @hasty: questions to be asked at once
 */
struct saina_train {
	uint64_t out, learn, sent, over, counted, again, pull, pulled;
	uint64_t grad_ns, pulled_ns, quiet_ns, pull_ns;
	uint64_t first_ns, limit_ns;
	uint8_t	 tries, unanswered, limits, hasty;
	bool	 waits;
};

/**
 * struct saina_flow
 * @cut: segments of a train; @trains: of all segments
 * @round: the present one
 * @floor: the data path began here: nothing below can be had
 * @known_next: the data path opens this round next, at least
 * @assigned: segments given to all-reduces so far; @last_assigned: in the round before
 * @taken: of these, those below have been looked for among the early results
 * @first: trains below are over; @end: of those from here on none is in flight
 * @inflight: trains that are
 * @gated: joined a running job: see flow.c; @may_step_back: likewise
 * @alone: no other worker is alive
 * @broken: results are gone (-ESTALE), until the next reset; @hole: because the round that others
 *	have gone on from never had them
 * @timeout_ns: of the policy, as the last result or the agent has said; 0: none
 * @timeout_ms: the same, as the agent has said last
 * @news: a result has come since @asked_ns, the last ASK
 * @follows: all results of the round before have been taken
 * @shut: answers of this round that said that it is not open, although gradients of it were sent;
 *	@shut_ns: when the first of them came (unequal.c)
 * @gate_ns: when something of the round before came last
 * @took: from a train to the last of its results, lately
 * @lost, @told: gradients lost, of so many that were lost or arrived lately
 * @fetch_ns, @fetch_tries, @fetch_at, @fetch_left: PULLs while the trainer computes: next
 *	time; times; next train; trains to go this time
 */
struct saina_flow {
	uint32_t segments, pool, ring, cut, trains;
	uint32_t round, floor, known_next;
	uint32_t assigned, last_assigned, taken;
	uint32_t first, end, inflight;
	bool	 gated, may_step_back, alone, broken, hole, news, follows;
	uint64_t gate_ns, asked_ns, took, timeout_ns;
	uint16_t timeout_ms;
	uint32_t lost, told, shut;
	uint64_t shut_ns;
	uint64_t fetch_ns;
	uint32_t fetch_tries, fetch_at, fetch_left;
	struct saina_window window;
	struct saina_train *train;	/* [trains] */
	uint32_t *known;		/* [segments]: the round behind the last result that was seen */
	struct saina_early early;	/* results that came before they are wanted */
};

enum saina_act_type {
	SAINA_ACT_GRAD,		/* send the gradient of the segment */
	SAINA_ACT_PULL,		/* ask for a result */
	SAINA_ACT_ASK,		/* ask what has become of SAINA_ASK_SEGMENTS from here on */
	SAINA_ACT_EARLY,	/* take the result that came early: the segment is over */
	SAINA_ACT_LOST,		/* its result cannot be had: the segment is over */
};

struct saina_act {
	enum saina_act_type type;
	uint32_t round, segment;
	bool	 again;		/* sent before */
};

/* What is to be done with a result. */
enum saina_verdict {
	SAINA_RESULT_NONE,	/* nothing */
	SAINA_RESULT_AGAIN,	/* nothing: it came before */
	SAINA_RESULT_LEARN,	/* of the round before: only its exponent is of use */
	SAINA_RESULT_KEEP,	/* keep it until SAINA_ACT_EARLY */
	SAINA_RESULT_TAKE,	/* take it: the segment is over */
};

/**
 * saina_flow_init()
 * @room: trains that the socket for results holds
 * @window, @ask_min: as in struct saina_opts; messages, nanoseconds
 * Return: 0 or -ENOMEM
 */
int saina_flow_init(struct saina_flow *f, const struct saina_job *job, uint32_t room,
		    uint32_t window, uint64_t ask_min);
void saina_flow_exit(struct saina_flow *f);

/* Admitted, for the first time; again: false if the round cannot be gone on with. */
void saina_flow_begin(struct saina_flow *f, uint32_t first_round, bool formed, uint64_t now);
bool saina_flow_again(struct saina_flow *f, uint32_t first_round, bool formed, uint64_t now);

/* The trainer: the next @n segments of the round; a round (set: some other) begins. */
void saina_flow_add(struct saina_flow *f, uint32_t n);
void saina_flow_round(struct saina_flow *f, uint32_t round);
void saina_flow_set(struct saina_flow *f, uint32_t round, uint64_t now);
/* Would a result of @round be taken? */
bool saina_flow_wants(const struct saina_flow *f, uint32_t round, uint32_t segment);
/* Has a gradient of the present round been sent? */
bool saina_flow_was_sent(const struct saina_flow *f, uint32_t segment);

/* The network.  @next: the round the data path opens next. */
enum saina_verdict saina_flow_result(struct saina_flow *f, uint32_t round, uint32_t segment,
				     uint64_t now);
/* True: as SAINA_ACT_LOST */
bool saina_flow_stale(struct saina_flow *f, uint32_t round, uint32_t segment, uint32_t next,
		      uint64_t now);
void saina_flow_told(struct saina_flow *f, uint32_t round, uint32_t segment,
		     const struct saina_ask *told, uint32_t next, uint64_t now);
void saina_flow_next(struct saina_flow *f, uint32_t next, uint64_t now);

/**
 * saina_flow_run() - what to do now
 * @max: room in @acts, at least SAINA_ASK_SEGMENTS
 * @when: out, when to come back at the latest if the answer is 0
 * Return: how many; messages among them are to leave together.  0: nothing (more)
 */
size_t saina_flow_run(struct saina_flow *f, uint64_t now, struct saina_act *acts, size_t max,
		      uint64_t *when);

bool saina_flow_decided(const struct saina_flow *f);
/* Are all segments of a round here already, going by the size of the last one (or, in a
 * worker's first round, of this one)?
 */
bool saina_flow_complete(const struct saina_flow *f, uint32_t round);

#endif /* SAINA_FLOW_H */
