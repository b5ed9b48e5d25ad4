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
 */
#include "transport/batch.h"
#include "size_check.h"

#define MISMATCH_NS (10000 * MSEC)
#define CLOSED_MIN  16 /* answers: gradients can be lost, too */

uint64_t saina_size_check_ns(const struct saina_job *job)
{
	uint64_t dead = 2 * job->dead_ms * MSEC;

	return dead > MISMATCH_NS ? dead : MISMATCH_NS;
}

/* The first segment of @q without a result; q->segments if a later one has its result. */
static uint32_t first_without_result(const struct saina_flow *f, const struct saina_req *q)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < q->segments; i++) {
		bool over = batch_of(f, q->t.first + i)->over & bit_of(f, q->t.first + i);

		if (over && n < i)
			return q->segments;
		n += over;
	}
	return n;
}

static bool others_have_less(const struct saina_round *r, const struct saina_req *q,
			     uint64_t active, char *text, size_t size)
{
	const struct saina_job *job = r->job;
	uint64_t others = active & ~(1ull << job->worker);
	uint32_t n = first_without_result(&r->flow, q);
	const struct saina_batch *t;
	char who[48];
	uint64_t bit;

	if (q->finished || !n || n == q->segments || !others || active & ~q->call.mask_any)
		return false;
	t = batch_of(&r->flow, q->t.first + n);
	bit = bit_of(&r->flow, q->t.first + n);
	/* This worker is counted in it, and its result is not merely lost. */
	if (t->unanswered > 2 || !(t->counted & bit) || (t->pull | t->pulled) & bit)
		return false;
	if (others & (others - 1))
		snprintf(who, sizeof(who), "another (`saina slot show %u' names it)", job->id);
	else
		snprintf(who, sizeof(who), "worker %u", __builtin_ctzll(others));
	snprintf(text, size,
		 "round %u: worker %u started %zu elements, %s at most %llu: all have begun, and "
		 "nothing of the rest has come for %llu s.  " SAINA_SAME_SIZES,
		 r->flow.round, job->worker, q->t.n, who, (unsigned long long)n * job->payload,
		 (unsigned long long)(r->mismatch_ns / (1000 * MSEC)));
	return true;
}

bool saina_size_check(struct saina_round *r, uint64_t active, uint64_t heard, uint64_t now,
		      char *text, size_t size)
{
	struct saina_flow *f = &r->flow;
	uint64_t limit = r->mismatch_ns;

	/* This process was suspended and knows nothing new, or the agent is down and finds nobody
	 * dead. */
	if (now > r->checked_ns + limit / 2 || now > heard + limit / 2)
		r->progress_ns = f->closed_ns = now;
	r->checked_ns = now;
	if (!r->reqs || f->stale || f->known_next > f->round + 1)
		return false;
	if (f->closed >= CLOSED_MIN && f->known_next <= f->round && now >= f->closed_ns + limit) {
		snprintf(
			text, size,
			"round %u cannot begin: others still wait for more than this worker's %llu "
			"elements of round %u (or messages of %zu bytes are lost). "
			" " SAINA_SAME_SIZES,
			f->round, (unsigned long long)r->prev_submitted, f->round - 1,
			r->job->msglen);
		return true;
	}
	if (now < r->progress_ns + limit)
		return false;
	for (const struct saina_req *q = r->reqs; q; q = q->next)
		if (others_have_less(r, q, active, text, size))
			return true;
	return false;
}
