/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The parameters of a job, as WELCOME gave them, and who we are in it. */
#ifndef SAINA_JOB_H
#define SAINA_JOB_H

#include <endian.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "saina/proto.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "libsaina copies int32 elements as they are; the wire is little endian"
#endif

#define MSEC  1000000ull
#define NEVER UINT64_MAX

/**
 * struct saina_job - constant while the handle is open, but for the fields marked *
 * @id: of the job
 * @worker: who we are
 * @workers: of the job
 * @tree: the job is in a tree: @weight, @rank, @depth and @quorum are valid, and results have a weight
 * @weight: workers of the whole tree
 * @rank: this worker's number among these
 * @depth: jobs above this one
 * @quorum: workers without which the tree stops; 0: none is set
 * @elem: enum saina_elem_type of the elements
 * @part: * of a coded policy: the part of the data that this worker computes, else 0
 * @parts: * of how many, else 0
 * @exponent0: for the first update of a segment, as on the wire
 * @elements: of a gradient
 * @segments: of a gradient; 0 until WELCOME has come
 * @payload: elements of a segment
 * @pool: slots of the aggregator
 * @ring: rounds that it keeps
 * @wire: bytes of a payload
 * @msglen: bytes of a GRAD, PULL or RESULT
 * @per_batch: segments that leave together, from a multiple of that on; the same for all workers
 * @group: multicast group of the results, host byte order
 * @session: * of this incarnation of the worker
 * @heartbeat_ms: between two heartbeats
 * @dead_ms: silence after which the agent declares a worker dead
 * @first_round: * first round this incarnation may contribute to
 * @formed: * its WELCOME came while the job was forming: there is no round before @first_round
 * @by_reference: * enum saina_reference: what its operator allows
 * @reports: * heartbeats may carry a report
 */
struct saina_job {
	uint16_t id;
	uint8_t	 worker, workers, elem, part, parts;
	int8_t	 exponent0;
	bool	 tree;
	uint8_t	 depth;
	uint32_t weight, rank, quorum;
	uint64_t elements;
	uint32_t segments, payload, pool, ring;
	size_t	 wire, msglen;
	uint32_t per_batch;
	uint32_t group;
	uint64_t session;
	uint16_t heartbeat_ms, dead_ms;
	uint32_t first_round;
	uint8_t	 by_reference;
	bool	 formed, reports;
};

/* Elements of a segment as messages count them: int16 by pairs. */
static inline uint32_t saina_job_count(const struct saina_job *job)
{
	return job->elem == SAINA_ELEM_INT16 ? job->payload / 2 : job->payload;
}

/* Workers whose gradients one sum may have. */
static inline uint32_t saina_job_weight(const struct saina_job *job)
{
	return job->tree ? job->weight : job->workers;
}

/* The worker's number among these. */
static inline uint32_t saina_job_rank(const struct saina_job *job)
{
	return job->tree ? job->rank : job->worker;
}

#define SAINA_DATAGRAM_MAX 65507	/* the largest UDP payload */
#define SAINA_IP_UDP_LEN   28		/* headers before it */

/* As many segments as one datagram can carry (UDP_SEGMENT), one ASK can name and the pool holds. */
static inline uint32_t saina_job_per_batch(size_t msglen, uint32_t pool)
{
	uint32_t n = SAINA_DATAGRAM_MAX / msglen;

	if (n > SAINA_ASK_SEGMENTS)
		n = SAINA_ASK_SEGMENTS;
	return n < pool ? n : pool;
}

/* A header from this worker; the rest is 0. */
static inline void saina_job_header(const struct saina_job *job, struct saina_hdr *h, int type)
{
	memset(h, 0, sizeof(*h));
	h->version = SAINA_PROTO_VERSION;
	h->type = type;
	h->job = htole16(job->id);
	h->session = htole64(job->session);
	h->worker = job->worker;
}

/* Lines for the user, printed when no lock is held. */
struct saina_notes {
	size_t used;
	char text[2000];	/* each line ends with '\0' */
};

/* Adds a line, or drops it if there is no room. */
__attribute__((format(printf, 2, 3))) static inline void saina_note(struct saina_notes *n,
								    const char *fmt, ...)
{
	size_t room = sizeof(n->text) - n->used;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(n->text + n->used, room, fmt, ap);
	va_end(ap);
	if (len >= 0 && (size_t)len < room)
		n->used += len + 1;
}

#endif /* SAINA_JOB_H */
