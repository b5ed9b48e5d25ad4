/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Batches: helpers of rx.c, tx.c and size_check.c. */
#ifndef SAINA_BATCH_H
#define SAINA_BATCH_H

#include "flow.h"

static inline struct saina_batch *batch_of(const struct saina_flow *f, uint32_t segment)
{
	return &f->batch[segment / f->per_batch];
}

static inline uint64_t bit_of(const struct saina_flow *f, uint32_t segment)
{
	return 1ull << segment % f->per_batch;
}

/* The segments of batch @j that are below @below. */
static inline uint64_t batch_below(const struct saina_flow *f, uint32_t j, uint32_t below)
{
	uint32_t first = j * f->per_batch, n = below > first ? below - first : 0;

	if (n > f->per_batch)
		n = f->per_batch;
	return n ? ~0ull >> (64 - n) : 0;
}

static inline bool batch_busy(const struct saina_batch *b)
{
	return b->out | b->catch_up;
}

/* @out and @catch_up are in flight now. */
static inline void batch_set(struct saina_flow *f, struct saina_batch *b, uint64_t out,
			     uint64_t catch_up)
{
	bool was = batch_busy(b);

	b->out = out;
	b->catch_up = catch_up;
	f->inflight += (int)batch_busy(b) - was;
}

/* A message of the batch arrived, or its state changed: if it falls silent, ask soon. */
static inline void batch_refresh(struct saina_batch *b, uint64_t now)
{
	b->activity_ns = now;
	b->tries = b->unanswered = 0;
	b->waits_for_peers = false;
}

/* How long to wait for results that may still be on their way. */
static inline uint64_t saina_flow_grace(const struct saina_flow *f)
{
	uint64_t ns = f->cwnd.srtt / 2;

	return ns < MSEC / 5 ? MSEC / 5 : ns < 5 * MSEC ? ns : 5 * MSEC;
}

#endif /* SAINA_BATCH_H */
