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
#include "early.h"
#include "job.h"
#include "window.h"

enum saina_seg_state {
	SEG_IDLE,		/* not part of this round (yet) */
	SEG_QUEUED,		/* may be sent when window and gate allow */
	SEG_ASKING,		/* PULLing the previous round's, for its exponent */
	SEG_SENT,		/* GRAD sent at least once */
	SEG_PULLING,		/* never sent, decided: PULL sent */
	SEG_DONE,
	SEG_STALE,		/* its result cannot be had */
};

/**
 * struct saina_flow_seg - one segment of the present round
 * @first_ns, @sent_ns, @due_ns: first and last transmission, and when to send again
 * @known: round that the exponent of the next contribution is known for
 * @state: enum saina_seg_state
 * @tries: transmissions in this state
 * @was_sent: a GRAD of the present round has left
 * @scaled: contributions need an exponent
 */
struct saina_flow_seg {
	uint64_t first_ns, sent_ns, due_ns;
	uint32_t known;
	uint8_t	 state, tries;
	bool	 was_sent, scaled;
};

/**
 * struct saina_flow
 * @round: the present one
 * @floor: the data path began here: nothing below can be had
 * @known_next: the data path opens this round next, at least
 * @assigned: segments given to all-reduces so far; @last_assigned: in the round before
 * @taken: of these, those below have been looked for among the early results
 * @first_open: segments below are over; @sent_end: from here on none was sent
 * @gated: joined a running job: see flow.c
 * @broken: results are gone (-ESTALE), until the next reset
 * @saw_result: of this round
 * @due_ns: earliest of the segments'
 * @progress_ns: when something moved; @stall_tries: since then, 0 = it moves
 * @passed_ns, @passed: latest transmission known to be answered: when, which segment
 * @fetch_ns, @fetch_tries: PULLs while the trainer computes: next time
 */
struct saina_flow {
	uint32_t segments, pool, ring;
	uint32_t round, floor, known_next;
	uint32_t assigned, last_assigned, taken;
	uint32_t first_open, sent_end, inflight;
	bool	 gated, broken, saw_result;
	uint64_t gate_ns, due_ns, progress_ns, passed_ns, fetch_ns;
	unsigned int stall_tries, fetch_tries;
	uint32_t stall_cursor, passed;
	struct saina_window window;
	struct saina_flow_seg *seg;	/* [segments] */
	struct saina_early early;	/* results that came before they are wanted */
};

enum saina_act_type {
	SAINA_ACT_GRAD,		/* send the gradient of the segment */
	SAINA_ACT_PULL,		/* ask for a result */
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
	SAINA_RESULT_LEARN,	/* of the round before: the segment's exponent follows from it */
	SAINA_RESULT_KEEP,	/* keep it until SAINA_ACT_EARLY */
	SAINA_RESULT_TAKE,	/* take it: the segment is over */
};

/* What a STALE means. */
enum saina_gone {
	SAINA_GONE_NONE,	/* nothing */
	SAINA_GONE_FIRST,	/* the segment begins with the first exponent again */
	SAINA_GONE_LOST,	/* as SAINA_ACT_LOST */
};

/* @window, @rto_min: as in struct saina_opts.  0 or -ENOMEM. */
int saina_flow_init(struct saina_flow *f, const struct saina_job *job, uint32_t window,
		    uint64_t rto_min);
void saina_flow_exit(struct saina_flow *f);

/* Admitted, for the first time; again: false if the round cannot be gone on with. */
void saina_flow_begin(struct saina_flow *f, uint32_t first_round, bool formed, uint64_t now);
bool saina_flow_again(struct saina_flow *f, uint32_t first_round, bool formed, uint64_t now);

/* The trainer: the next @n segments of the round; a round (set: some other) begins. */
void saina_flow_add(struct saina_flow *f, uint32_t n, bool scaled);
void saina_flow_round(struct saina_flow *f, uint32_t round);
void saina_flow_set(struct saina_flow *f, uint32_t round, uint64_t now);

/* The network.  @flags: of the RESULT; @next: the round the data path opens next. */
enum saina_verdict saina_flow_result(struct saina_flow *f, uint32_t round, uint32_t segment,
				     unsigned int flags, uint64_t now);
enum saina_gone saina_flow_stale(struct saina_flow *f, uint32_t round, uint32_t segment,
				 uint32_t next, uint64_t now);
void saina_flow_next(struct saina_flow *f, uint32_t next);

/* Time: what to do now.  Comes back with fewer than @max when that is all until @when. */
size_t saina_flow_run(struct saina_flow *f, uint64_t now, struct saina_act *act, size_t max,
		      uint64_t *when);

bool saina_flow_decided(const struct saina_flow *f);
/* Are all segments of a round here already, going by the size of the last one (or, in a
 * worker's first round, of this one)?
 */
bool saina_flow_complete(const struct saina_flow *f, uint32_t round);

#endif /* SAINA_FLOW_H */
