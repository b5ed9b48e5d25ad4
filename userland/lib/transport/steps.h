/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A worker's steps with the parameter server: what to send when.  It knows the numbers of steps and
 * segments, but no bytes, no clock and no socket.  In a step a worker pushes all segments (INC),
 * sends CLOCK when all are acknowledged, waits for GO, and reads the segments that are not fresh.
 * Documentation/datapath.rst section 11.
 */
#ifndef SAINA_STEPS_H
#define SAINA_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/job.h"

enum saina_steps_phase {
	SAINA_STEPS_ASKS,	/* a CLOCK asks which step this worker is in, and if it may begin */
	SAINA_STEPS_IDLE,	/* the trainer computes, or has not seen that the step is over */
	SAINA_STEPS_PUSHES,
	SAINA_STEPS_CLOCKS,	/* all segments are acknowledged: waits for GO */
	SAINA_STEPS_READS,
	SAINA_STEPS_LEFT,	/* the job has rounds (again), and nothing of the step is counted */
	SAINA_STEPS_FAILED,
};

/* What a SUM means for its segment; bits. */
enum saina_steps_take {
	SAINA_STEPS_COUNTED	= 1,	/* the server has this worker's update */
	SAINA_STEPS_LOST	= 2,	/* the server does not have it, and never will */
	SAINA_STEPS_TAKE	= 4,	/* the trainer gets these sums */
	SAINA_STEPS_MORE	= 8,	/* the trainer has sums of this step already: add to them */
};

struct saina_steps_act {
	uint8_t type;		/* SAINA_MSG_INC, READ or CLOCK */
	bool again;
	uint32_t round, segment;
};

struct saina_steps_segment {
	uint64_t sent_ns;	/* 0: nothing was sent, or it is answered; 1: send it again */
	uint64_t version;	/* of the sums that this worker has */
	uint8_t tries;
	bool counted;		/* this worker's update of the step is settled */
	bool done, fresh;	/* acknowledged or read; may be used for the next step */
	bool taken;		/* the trainer has some of its sums */
};

/**
 * struct saina_steps
 * @phase: of the step
 * @segments: of the job
 * @n: segments of this step
 * @left: segments of this step that are not done
 * @closed: the trainer pushes no more segments in this step
 * @over: the step is over, and the trainer has not seen it
 * @begun: some segment of the step may be counted
 * @leaves: the job has rounds from @step on, once the sums are read
 * @base: first step of the server
 * @step: the one that this worker is in
 * @pushed: the step of this worker's last update
 * @next: the step that a CLOCK answered with "wait" waits for
 * @low: steps that all workers have finished, as of the oldest sums of the last update
 * @window: how many steps a worker may be ahead, as last heard
 * @flying: messages in flight
 * @room: limit of @flying
 * @first: segments below are done
 * @end: segments from here on were not sent
 * @rtt_ns: smoothed time of an answer
 * @ask_ns: when the last CLOCK was sent; 0: send one now
 * @tries: CLOCKs without an answer
 * @waits: the last answer to a CLOCK was "wait"
 * @err: why @phase is SAINA_STEPS_FAILED
 * @seg: [segments]
 */
struct saina_steps {
	enum saina_steps_phase phase;
	uint32_t segments, n, left;
	bool closed, over, begun, leaves;
	uint32_t base, step, pushed, next, low, window;
	uint32_t flying, room, first, end;
	uint64_t rtt_ns, ask_ns;
	unsigned int tries;
	bool waits;
	int err;
	struct saina_steps_segment *seg;
};

/* Allocates the state of @segments segments, with @room messages in flight.  0 or -ENOMEM */
int saina_steps_init(struct saina_steps *t, uint32_t segments, uint32_t room);
void saina_steps_exit(struct saina_steps *t);

/*
 * Asks which step this worker is in: at the beginning, and when it is admitted again, to find out
 * what is counted of the step that it was pushing.
 */
void saina_steps_ask(struct saina_steps *t);
/* The trainer has pushed @n more segments of the step. */
void saina_steps_add(struct saina_steps *t, uint32_t n);
/* The trainer has pushed all segments of the step. */
void saina_steps_close(struct saina_steps *t);
/* The trainer has seen that the step is over. */
void saina_steps_next(struct saina_steps *t);

/* Answers that saina_session_check() has accepted.  Of a SUM: enum saina_steps_take */
unsigned int saina_steps_sum(struct saina_steps *t, const struct saina_hdr *h, uint64_t now);
void saina_steps_nak(struct saina_steps *t, const struct saina_hdr *h);
/* The segment was refused for its exponent, which is another one now: sends it again at once. */
void saina_steps_again(struct saina_steps *t, const struct saina_hdr *h);
void saina_steps_go(struct saina_steps *t, const struct saina_hdr *h, unsigned int worker);
/* A STATUS has come.  Window or members may have changed: asks at once if this worker waits. */
void saina_steps_poke(struct saina_steps *t);

/* What to send now: at most @max messages; returns how many.  @when: out, when to call again. */
size_t saina_steps_run(struct saina_steps *t, uint64_t now, struct saina_steps_act *act, size_t max,
		       uint64_t *when);

#endif /* SAINA_STEPS_H */
