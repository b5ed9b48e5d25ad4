// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * No message says what the other workers have submitted.  But where all submit the same sizes,
 * neither of these can happen:
 *
 *	This worker has all results of a round, but its gradients of the next one are refused time
 *	and again, because no worker can open that round.  So slots of the previous round still
 *	wait for segments that this worker does not have.  It has submitted less than others.
 *
 *	All live workers are counted in some segment of an all-reduce, so all have begun it, and
 *	each one's library sends the rest by itself.  But the last segments, in which this worker
 *	is counted, do not complete.  It has submitted more than others.
 *
 * A worker that dies, or whose host is suspended, looks the same until the agent declares it dead.
 * So does a sum that waits for the parent's job, which answers tell.
 */
#include "batch.h"
#include "size_check.h"

#define MISMATCH_NS (10000 * MSEC)
#define CLOSED_MIN  16 /* answers, because gradients can be lost, too */

void saina_size_check_init(struct saina_size_check *c, const struct saina_job *job)
{
	uint64_t dead = 2 * job->dead_ms * MSEC;

	c->wait_ns = dead > MISMATCH_NS ? dead : MISMATCH_NS;
}

enum saina_sizes saina_size_check(struct saina_size_check *c, struct saina_flow *f, uint64_t heard,
				  uint64_t now)
{
	/* This process was suspended and knows nothing new, or the agent is down and finds nobody
	 * dead. */
	if (now > c->checked_ns + c->wait_ns / 2 || now > heard + c->wait_ns / 2)
		c->progress_ns = f->closed_ns = now;
	c->checked_ns = now;
	if (f->away_ns > c->progress_ns)
		c->progress_ns = f->closed_ns = f->away_ns;
	if (f->stale || f->known_next > f->round + 1)
		return SAINA_SIZES_UNKNOWN;
	if (f->closed >= CLOSED_MIN && f->known_next <= f->round &&
	    now >= f->closed_ns + c->wait_ns)
		return SAINA_SIZES_TOO_FEW;
	return now < c->progress_ns + c->wait_ns ? SAINA_SIZES_UNKNOWN : SAINA_SIZES_STALLED;
}

/* The first of @n segments from @first on without a result; @n if a later one has its result. */
static uint32_t first_without_result(const struct saina_flow *f, uint32_t first, uint32_t n)
{
	uint32_t over = 0;

	for (uint32_t i = 0; i < n; i++) {
		bool has = batch_of(f, first + i)->over & bit_of(f, first + i);

		if (has && over < i)
			return n;
		over += has;
	}
	return over;
}

uint32_t saina_size_check_others(const struct saina_flow *f, uint32_t first, uint32_t segments,
				 uint64_t counted, uint64_t active)
{
	uint32_t n = first_without_result(f, first, segments);
	const struct saina_batch *b;
	uint64_t bit;

	if (n == segments || active & ~counted)
		return 0;
	b = batch_of(f, first + n);
	bit = bit_of(f, first + n);
	/* This worker is counted in that segment, and its result is not merely lost. */
	return b->unanswered > 2 || !(b->counted & bit) || (b->pull | b->pulled) & bit ? 0 : n;
}
