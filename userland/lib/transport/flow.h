/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The transport state machine: what to send, and when.  It knows the numbers of rounds and
 * segments, but no bytes, no sockets and no clock: events and the time go in, actions come out, so
 * that a simulator can drive it (selftests/unit/flow_test.c).  Only saina_flow_init() allocates.
 */
#ifndef SAINA_FLOW_H
#define SAINA_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "cwnd.h"
#include "reorder.h"
#include "wire/job.h"

/**
 * struct saina_batch - job->per_batch consecutive segments that leave together
 *
 * All segment masks are of the present round; bit i is segment i of the batch.
 *
 * @out: in flight: a GRAD or PULL was sent, the result has not come
 * @catch_up: PULLed of the previous round, while this worker catches up
 * @sent: a GRAD was sent
 * @over: the result was taken, or cannot be had
 * @counted: the aggregator said that our gradient is in, or that the result is there
 * @resend: GRADs to send again
 * @pull: PULLs to send (again) at @pull_ns
 * @pulled: a PULL was sent because the result was there
 * @grad_ns: when a GRAD was sent last
 * @pulled_ns: when a PULL of @pulled was sent last
 * @activity_ns: when anything was sent or received last
 * @pull_ns: when to send @pull
 * @first_ns: when the first GRAD of the round was sent
 * @timeout_pull_ns: send no PULL for the policy's time-out before this
 * @tries: ASKs since the last change
 * @unanswered: ASKs since the last answer
 * @timeout_pulls: PULLs sent for the policy's time-out
 * @probe_burst: ASKs to send at once
 * @waits_for_peers: the last answer said that nothing of it is lost
 * @away: an answer has come that says AWAY, and is being looked at
 */
struct saina_batch {
	uint64_t out, catch_up, sent, over, counted, resend, pull, pulled;
	uint64_t grad_ns, pulled_ns, activity_ns, pull_ns;
	uint64_t first_ns, timeout_pull_ns;
	uint8_t	 tries, unanswered, timeout_pulls, probe_burst;
	bool	 waits_for_peers, away;
};

/**
 * struct saina_flow - the transport state of one worker
 * @segments: of the job
 * @pool: of the job
 * @ring: of the job
 * @per_batch: segments of a batch
 * @batches: of all segments
 * @round: the present one
 * @floor: the data path began with this round, and has nothing of earlier ones
 * @known_next: the data path opens this round next, at least
 * @assigned: segments that the trainer has submitted in this round
 * @last_assigned: likewise in the previous round
 * @ready: of @assigned, segments below were looked up in @reorder and may be sent
 * @first: batches below are over
 * @end: no batch from here on is in flight
 * @inflight: batches in flight
 * @catching_up: joined a running job and may not send yet; see rx.c
 * @may_rejoin_prev: may take part in the previous round, should that stall; see rx.c
 * @no_peers: no other worker is alive
 * @stale: results are gone (-ESTALE), until the next round begins
 * @gap: @stale because the round that the others have finished never had all our segments
 * @result_since_ask: a result has come since @ask_ns
 * @prev_complete: all results of the previous round were taken
 * @held: mask of workers too many rounds behind, for which the round does not begin
 * @reported: the data path knows that this worker is in the round
 * @catch_up_ns: when anything of the previous round came last
 * @ask_ns: when an ASK was sent last
 * @completion_ns: smoothed time from sending a batch to its last result
 * @timeout_ns: the policy's time-out as the last result or the agent said; 0: none
 * @timeout_ms: the policy's time-out as the agent said last
 * @lost: gradients lost, lately
 * @loss_samples: gradients known to be lost or to have arrived, lately
 * @closed: answers that this round is not open although gradients of it were sent
 * @closed_ns: when the first of them came
 * @away_ns: when an answer last said that a sum is with the parent
 * @fetch_ns: when to PULL next while the trainer computes
 * @fetch_tries: how often all were PULLed
 * @fetch_at: next batch to PULL
 * @fetch_left: batches left of that
 * @cwnd: how many batches may be in flight
 * @batch: [batches]
 * @known: [segments]: the round after that of the last result seen
 * @reorder: results that came before they are wanted
 */
struct saina_flow {
	uint32_t segments, pool, ring, per_batch, batches;
	uint32_t round, floor, known_next;
	uint32_t assigned, last_assigned, ready;
	uint32_t first, end, inflight;
	bool	 catching_up, may_rejoin_prev, no_peers, stale, gap, result_since_ask, prev_complete;
	bool	 reported;
	uint64_t held;
	uint64_t catch_up_ns, ask_ns, completion_ns, timeout_ns;
	uint16_t timeout_ms;
	uint32_t lost, loss_samples, closed;
	uint64_t closed_ns, away_ns;
	uint64_t fetch_ns;
	uint32_t fetch_tries, fetch_at, fetch_left;
	struct saina_cwnd cwnd;
	struct saina_batch *batch;
	uint32_t *known;
	struct saina_reorder reorder;
};

enum saina_act_type {
	SAINA_ACT_GRAD,		/* send the gradient of the segment */
	SAINA_ACT_PULL,		/* ask for a result */
	SAINA_ACT_ASK,		/* ask what has become of SAINA_ASK_SEGMENTS from here on */
	SAINA_ACT_REORDERED,	/* take the result that came early: the segment is over */
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
	SAINA_RESULT_DUPLICATE,	/* nothing: it came before */
	SAINA_RESULT_LEARN,	/* of the previous round: only its exponent is of use */
	SAINA_RESULT_KEEP,	/* keep it until SAINA_ACT_REORDERED */
	SAINA_RESULT_TAKE,	/* take it: the segment is over */
};

/**
 * saina_flow_init() - allocate the state of a job
 * @room: batches that the socket for results holds
 * @window: as in struct saina_opts, messages
 * @ask_min: shortest silence to ask about, nanoseconds; 0: default
 * Return: 0 or -ENOMEM; saina_flow_exit() is due either way
 */
int saina_flow_init(struct saina_flow *f, const struct saina_job *job, uint32_t room,
		    uint32_t window, uint64_t ask_min);
void saina_flow_exit(struct saina_flow *f);

/* Admitted for the first time. */
void saina_flow_begin(struct saina_flow *f, uint32_t first_round, bool formed, uint64_t now);
/* Admitted once more; false: this worker cannot finish its round. */
bool saina_flow_again(struct saina_flow *f, uint32_t first_round, bool formed, uint64_t now);

/* The trainer has submitted the next @n segments of the round. */
void saina_flow_add(struct saina_flow *f, uint32_t n);
/* @round begins with nothing in flight. */
void saina_flow_round(struct saina_flow *f, uint32_t round);
/* @round begins, and this worker was in another one: it catches up first. */
void saina_flow_set(struct saina_flow *f, uint32_t round, uint64_t now);
/* Would a result of @round be taken? */
bool saina_flow_wants(const struct saina_flow *f, uint32_t round, uint32_t segment);
/* Has a gradient of the present round been sent? */
bool saina_flow_was_sent(const struct saina_flow *f, uint32_t segment);

/* A RESULT has come. */
enum saina_verdict saina_flow_result(struct saina_flow *f, uint32_t round, uint32_t segment,
				     uint64_t now);
/* A STALE has come.  @next: the round the data path opens next.  True: as SAINA_ACT_LOST */
bool saina_flow_stale(struct saina_flow *f, uint32_t round, uint32_t segment, uint32_t next,
		      uint64_t now);
/* An ASK_REPLY has come.  @behind: workers that @round waits for before it begins */
void saina_flow_ask_reply(struct saina_flow *f, uint32_t round, uint32_t segment,
			  const struct saina_ask *reply, uint64_t behind, uint32_t next,
			  uint64_t now);
/*
 * That ASK_REPLY has flag AWAY: what it is about waits for the parent's job.  Before
 * saina_flow_ask_reply().
 */
void saina_flow_away(struct saina_flow *f, uint32_t segment, uint64_t now);
/* The data path opens @next next. */
void saina_flow_next(struct saina_flow *f, uint32_t next, uint64_t now);

/**
 * saina_flow_run() - what to do now
 * @max: room in @acts, at least SAINA_ASK_SEGMENTS
 * @when: out, when to call again at the latest if the answer is 0
 * Return: how many; messages among them are to leave together.  0: nothing (more)
 */
size_t saina_flow_run(struct saina_flow *f, uint64_t now, struct saina_act *acts, size_t max,
		      uint64_t *when);

/* Has a later round been opened? */
bool saina_flow_decided(const struct saina_flow *f);
/*
 * Have all results of @round come?  The size of a round is taken to be that of the previous one
 * or, in a worker's first round, of this one.
 */
bool saina_flow_complete(const struct saina_flow *f, uint32_t round);

#endif /* SAINA_FLOW_H */
