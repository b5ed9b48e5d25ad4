/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A worker's rounds: does to the bytes what the transport (transport/flow.h) decides.  Messages go
 * in and out; sockets, time and locks are the caller's.
 */
#ifndef SAINA_ROUND_H
#define SAINA_ROUND_H

#include "transport/flow.h"
#include "gradient/gradient.h"
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
 * @job: of the handle
 * @flow: the transport
 * @grad: what is in the segments
 * @reqs: all-reduces not waited for yet
 * @shm: memory shared with the aggregator, or NULL
 * @notes: where lines for people go, or NULL
 * @copy: a RESULT made of an entry of the output array
 * @ps: replaces @flow where the job has steps instead of rounds
 * @any_finished: a request has finished
 * @closed: the trainer waits for what it has submitted: nothing more comes in a step
 * @act: actions of @flow that were not sent yet, for a batch has messages of one length
 * @acts: how many
 * @submitted: elements submitted in this round
 * @prev_submitted: elements submitted in the previous round
 * @progress_ns: when a segment was over last
 * @checked_ns: when saina_size_check() was called last
 * @mismatch_ns: how long saina_size_check() waits
 * @stats: of the handle
 */
struct saina_round {
	const struct saina_job *job;
	struct saina_flow flow;
	struct saina_gradient grad;
	struct saina_req *reqs;
	const struct saina_shm *shm;
	struct saina_notes *notes;
	struct saina_hdr *copy;
	struct saina_ps ps;
	bool	any_finished, closed;
	struct saina_act act[SAINA_ASK_SEGMENTS];
	size_t	acts;
	uint64_t submitted, prev_submitted, progress_ns, checked_ns, mismatch_ns;
	struct saina_stats stats;
};

/* As saina_flow_init(). */
int saina_round_init(struct saina_round *r, const struct saina_job *job, uint32_t room,
		     uint32_t window, uint64_t ask_min);
void saina_round_exit(struct saina_round *r);

/* Begin @q, which has t.buf, t.n, t.type and op. */
void saina_round_start(struct saina_round *r, struct saina_req *q, uint64_t now);
/* Take @q, which has finished, out of the round. */
void saina_round_forget(struct saina_round *r, struct saina_req *q);
/* The next segments of the round are those of @q (ps.c). */
void saina_round_assign(struct saina_round *r, const struct saina_req *q);
/* The all-reduce that @segment is part of. */
struct saina_req *saina_round_request(const struct saina_round *r, uint32_t segment);
/* The result of @segment was taken, or cannot be had. */
void saina_round_segment_over(struct saina_round *r, uint32_t segment, uint64_t now);
/* A RESULT that saina_session_check() has accepted. */
void saina_round_result(struct saina_round *r, const struct saina_hdr *h, uint64_t now);
/* Takes the result of a segment of the present round. */
void saina_round_take(struct saina_round *r, const struct saina_hdr *h, uint64_t now);
/* The result of a segment of the present round cannot be had; @counted: our gradient is in it. */
void saina_round_lose(struct saina_round *r, uint32_t segment, bool counted, uint64_t now);
/* Notes who is in a result; @late: this worker is not. */
void saina_round_account(struct saina_round *r, uint32_t segment, const struct saina_hdr *h,
			 bool late);
/* Writes the sums into the caller's elements. */
void saina_round_decode(struct saina_round *r, uint32_t segment, const struct saina_hdr *h,
			const void *sums);
/* Finish all requests with @err. */
void saina_round_fail(struct saina_round *r, int err);
/* The contribution to @segment was not counted: keep it in the residual. */
void saina_round_keep(struct saina_round *r, uint32_t segment);
/* @n elements of @segment did not fit. */
void saina_round_saturated(struct saina_round *r, uint32_t segment, size_t n);

/* Between rounds: elements change places, as in saina_gradient_move(). */
int saina_round_move(struct saina_round *r, const struct saina_move *moves, size_t n);

/* transfer.c: a RESULT, COMPLETION, STALE or ASK_REPLY that saina_session_check() has accepted. */
void saina_round_input(struct saina_round *r, const struct saina_hdr *h, uint64_t now);

/**
 * saina_round_output() - the messages to send now, back to back
 * @buf: room for job->per_batch messages of job->msglen bytes each, and for a batch of doorbells
 * @len: out, length of each
 * @when: out, when to call again at the latest if there are none
 * Return: how many; call again until there are none
 */
unsigned int saina_round_output(struct saina_round *r, uint64_t now, uint8_t *buf, size_t *len,
				uint64_t *when);
/* @n messages of @len bytes of saina_round_output() or saina_ps_output() were sent: count them. */
void saina_round_sent(struct saina_round *r, const uint8_t *buf, unsigned int n, size_t len);

#endif /* SAINA_ROUND_H */
