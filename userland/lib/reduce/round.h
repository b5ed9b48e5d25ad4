/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A worker's rounds: does to the bytes what the transport (transport/flow.h) decides.  Messages go
 * in and out; sockets, time and locks are the caller's.
 */
#ifndef SAINA_ROUND_H
#define SAINA_ROUND_H

#include "state.h"

#define SAINA_DOORBELLS_MAX 4	/* in a send: what they post, some 240 KiB, stays in a cache until it is added */

/* As saina_flow_init(). */
int saina_round_init(struct saina_round *r, const struct saina_job *job, uint32_t room,
		     uint32_t window, uint64_t ask_min);
void saina_round_exit(struct saina_round *r);

/* Begin @q, which has t.buf, t.n, t.type and op. */
void saina_round_start(struct saina_round *r, struct saina_req *q, uint64_t now);
/* Take @q, which has finished, out of the round. */
void saina_round_forget(struct saina_round *r, struct saina_req *q);
/* The all-reduce that @segment is part of. */
struct saina_req *saina_round_request(const struct saina_round *r, uint32_t segment);
/* The result of @segment was taken, or is lost. */
void saina_round_segment_over(struct saina_round *r, uint32_t segment, uint64_t now);
/* A result of any round: notes who was counted in the newest. */
void saina_round_heard(struct saina_round *r, const struct saina_hdr *h);
/* A RESULT that saina_session_check() has accepted. */
void saina_round_result(struct saina_round *r, const struct saina_hdr *h, uint64_t now);
/* Takes the result of a segment of the present round. */
void saina_round_take(struct saina_round *r, const struct saina_hdr *h, uint64_t now);
/* The result of a segment of the present round is lost; @counted: it has our gradient. */
void saina_round_lose(struct saina_round *r, uint32_t segment, bool counted, uint64_t now);
/* Notes the contributors of a result; @late: this worker is not one of them. */
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

extern const struct saina_reduce_ops saina_rounds;

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
/* @n messages of @len bytes of saina_reduce_ops.output() were sent: count them. */
void saina_round_sent(struct saina_round *r, const uint8_t *buf, unsigned int n, size_t len);

#endif /* SAINA_ROUND_H */
