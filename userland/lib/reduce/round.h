/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A worker's rounds: what the flow machine decides, done to the bytes.  Messages come in
 * and go out; sockets, time and locks are the caller's.
 */
#ifndef SAINA_ROUND_H
#define SAINA_ROUND_H

#include "transport/flow.h"
#include "gradient/gradient.h"
#include "gradient/kept.h"
#include "shm/shm.h"
#include "ps.h"

#define SAINA_DOORBELLS_MAX 16	/* doorbells in a batch */

/* An all-reduce in flight: a range of segments of the present round. */
struct saina_req {
	struct saina_req *next;		/* of the same round */
	struct saina	*s;
	struct saina_tensor t;
	enum saina_result_op op;
	uint32_t	segments, done;
	bool		finished;
	int		err;
	uint64_t	start_ns;
	struct saina_call call;
};

/**
 * struct saina_round
 * @reqs: all-reduces not waited for yet
 * @news: set when one has finished
 * @lent: memory shared with the aggregator
 * @notes: where lines for people go, or NULL
 * @copy: a message made of what is there
 * @act, @acts: what the flow machine wants, and was not sent yet: it would have been mixed with
 *	messages of another length
 * @table: in the place of @flow, where the job has steps
 * @given: elements started in this round; @gave: in the one before
 * @moved_ns: when a segment was over last; @looked_ns: when saina_unequal() was called last,
 *	@patience_ns: how long it waits
 * @closed: the trainer waits for what it has started: in a step there is nothing more
 */
struct saina_round {
	const struct saina_job *job;
	struct saina_flow flow;
	struct saina_gradient grad;
	struct saina_kept kept;
	struct saina_req *reqs;
	const struct saina_lent *lent;
	struct saina_notes *notes;
	struct saina_hdr *copy;
	struct saina_table table;
	bool	news, closed;
	struct saina_act act[SAINA_ASK_SEGMENTS];
	size_t	acts;
	uint64_t given, gave, moved_ns, looked_ns, patience_ns;
	struct saina_stats stats;
};

/* As saina_flow_init(); to be given to exit in any case. */
int saina_round_init(struct saina_round *r, const struct saina_job *job, uint32_t room,
		     uint32_t window, uint64_t ask_min);
void saina_round_exit(struct saina_round *r);

/* Begin @q, which has t.buf, t.n, t.type and op; forget it; end all with @err. */
void saina_round_start(struct saina_round *r, struct saina_req *q, uint64_t now);
void saina_round_forget(struct saina_round *r, struct saina_req *q);
/* It is the next part of the round (table.c). */
void saina_round_assign(struct saina_round *r, const struct saina_req *q);
/* Whose segment it is; it is over, one way or the other. */
struct saina_req *saina_round_request(const struct saina_round *r, uint32_t segment);
void saina_round_segment_over(struct saina_round *r, uint32_t segment, uint64_t now);
void saina_round_fail(struct saina_round *r, int err);
/* Its contribution was not counted, and stays in the residual; @n of its elements do not fit. */
void saina_round_keep(struct saina_round *r, uint32_t segment);
void saina_round_saturated(struct saina_round *r, uint32_t segment, size_t n);

/* Between rounds: elements change their places; as saina_gradient_move(). */
int saina_round_move(struct saina_round *r, const struct saina_move *moves, size_t n);

/* A RESULT, COMPLETION, STALE or ASK_REPLY that saina_check() has let through. */
void saina_round_input(struct saina_round *r, const struct saina_hdr *h, uint64_t now);

/**
 * saina_round_output() - the messages to send now, one behind the other
 * @buf: room for job->train messages of job->msglen bytes each, and for a batch of doorbells
 * @len: out, length of each of them
 * @when: out, when to come back at the latest if there are none
 * Return: how many; to be called again until there are none
 */
unsigned int saina_round_output(struct saina_round *r, uint64_t now, uint8_t *buf, size_t *len,
				uint64_t *when);
/* @n messages of @len bytes, of this or saina_table_output(), have left: they count from here on. */
void saina_round_left(struct saina_round *r, const uint8_t *buf, unsigned int n, size_t len);

#endif /* SAINA_ROUND_H */
