/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A worker's steps in parameter-server mode: what to send when.  Numbers of steps and
 * segments, no bytes, no clock and no socket of its own.  A step is: push all segments
 * (INC), say so when all are acknowledged (CLOCK), wait for GO, read what is not fresh.
 * Documentation/datapath.rst section 11.
 */
#ifndef SAINA_STEPS_H
#define SAINA_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/job.h"

enum saina_steps_phase {
	SAINA_STEPS_ASKS,	/* which step am I in, may I do it? */
	SAINA_STEPS_IDLE,	/* the trainer computes, or has not seen that the step is over */
	SAINA_STEPS_PUSHES,
	SAINA_STEPS_CLOCKS,	/* all is acknowledged: waits for GO */
	SAINA_STEPS_READS,
	SAINA_STEPS_LEFT,	/* there are rounds (again), and nothing of the step is counted */
	SAINA_STEPS_FAILED,
};

/* What a SUM means for its segment; bits. */
enum saina_steps_take {
	SAINA_STEPS_COUNTED	= 1,	/* the parameter server has counted this worker's update */
	SAINA_STEPS_LOST	= 2,	/* it is not, and never will be */
	SAINA_STEPS_TAKE	= 4,	/* its sums are for the trainer */
	SAINA_STEPS_MORE	= 8,	/* .. which has some of this step already */
};

struct saina_steps_act {
	uint8_t type;		/* SAINA_MSG_INC, READ or CLOCK */
	bool again;
	uint32_t round, segment;
};

struct saina_steps_segment {
	uint64_t sent_ns;	/* 0: has nothing to send, or has not sent it; 1: is to be sent again */
	uint64_t version;	/* of the sums this worker has */
	uint8_t tries;
	bool counted;		/* this worker's update of the step is settled */
	bool done, fresh;	/* acknowledged or read; may be used for the next step */
	bool taken;		/* the trainer has some of its sums */
};

/**
 * struct saina_steps
 * @segments: that there are; @n: of this step; @left: of these, not done
 * @closed: no more will come
 * @over: the step is over, and the trainer is to see it
 * @begun: some of it may be counted
 * @leaves: there are rounds from @step on, when it has been read
 * @base: first step since the parameter server began
 * @step: the one this worker is in; @pushed: the one that its update is of
 * @next: of a CLOCK that was told to wait: the step it waits for
 * @low: steps that all have finished, as of the oldest sums of the last update
 * @window: as last heard
 * @flying: messages in flight, at most @room; @first: not done, @end: behind the last sent
 * @err: FAILED: why
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

/* Of @segments segments, at most @room messages in flight; 0 or -ENOMEM. */
int saina_steps_init(struct saina_steps *t, uint32_t segments, uint32_t room);
void saina_steps_exit(struct saina_steps *t);

/*
 * Which step am I in?  At the beginning, and in a new incarnation: what of the step is
 * counted that was being pushed is found out.
 */
void saina_steps_ask(struct saina_steps *t);
/* The trainer: @n more segments of the step; there are no more; it has seen that it is over. */
void saina_steps_add(struct saina_steps *t, uint32_t n);
void saina_steps_close(struct saina_steps *t);
void saina_steps_next(struct saina_steps *t);

/* Answers that saina_session_check() has let through; SUM: enum saina_steps_take. */
unsigned int saina_steps_sum(struct saina_steps *t, const struct saina_hdr *h, uint64_t now);
void saina_steps_nak(struct saina_steps *t, const struct saina_hdr *h);
/* The segment was refused for its exponent, and has another one now: it is sent again at once. */
void saina_steps_again(struct saina_steps *t, const struct saina_hdr *h);
void saina_steps_go(struct saina_steps *t, const struct saina_hdr *h, unsigned int worker);
/* A STATUS: window or members may have changed, so who waits asks at once. */
void saina_steps_poke(struct saina_steps *t);

/* At most @max things to send now; how many.  @when: come back at the latest then. */
size_t saina_steps_run(struct saina_steps *t, uint64_t now, struct saina_steps_act *act, size_t max,
		       uint64_t *when);

#endif /* SAINA_STEPS_H */
