// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * No message says what the other workers have started.  But where all start the same sizes, these
 * two do not happen:
 *
 *	This worker has had all results of a round, and its gradients of the next one are not taken,
 *	however often, because no worker can open that round.  So slots of the round before still
 *	wait: for segments that this worker does not have.  It has started less than others.
 *
 *	All live workers are in some segment of an all-reduce, so all have begun it, and each one's
 *	library sends the rest by itself.  But of the last segments, in which this worker is counted,
 *	nothing is heard.  It has started more than others.
 *
 * A worker that dies, or whose host stands still, looks like that until the agent declares it dead.
 */
#include "transport/batch.h"
#include "size_check.h"

#define PATIENCE_NS (10000 * MSEC)
#define SHUT_MIN    16	/* answers: gradients can be lost, too */

uint64_t saina_unequal_patience(const struct saina_job *job)
{
	uint64_t dead = 2 * job->dead_ms * MSEC;

	return dead > PATIENCE_NS ? dead : PATIENCE_NS;
}

/* Of @q, the first segment without a result; q->segments if there is one behind that. */
static uint32_t results(const struct saina_flow *f, const struct saina_req *q)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < q->segments; i++) {
		bool over = train_of(f, q->t.first + i)->over & bit_of(f, q->t.first + i);

		if (over && n < i)
			return q->segments;
		n += over;
	}
	return n;
}

static bool others_have_less(const struct saina_round *r, const struct saina_req *q, uint64_t active,
			     char *text, size_t size)
{
	const struct saina_job *job = r->job;
	uint64_t others = active & ~(1ull << job->worker);
	uint32_t n = results(&r->flow, q);
	const struct saina_train *t;
	char who[48];
	uint64_t bit;

	if (q->finished || !n || n == q->segments || !others || active & ~q->call.mask_any)
		return false;
	t = train_of(&r->flow, q->t.first + n);
	bit = bit_of(&r->flow, q->t.first + n);
	/* This worker is in it, and it has no result that is only lost. */
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
		 (unsigned long long)(r->patience_ns / (1000 * MSEC)));
	return true;
}

bool saina_unequal(struct saina_round *r, uint64_t active, uint64_t heard, uint64_t now, char *text,
		   size_t size)
{
	struct saina_flow *f = &r->flow;
	uint64_t limit = r->patience_ns;

	/* This process has stood still: what it knows is old.  Or the agent is away: nobody is found dead. */
	if (now > r->looked_ns + limit / 2 || now > heard + limit / 2)
		r->moved_ns = f->shut_ns = now;
	r->looked_ns = now;
	if (!r->reqs || f->broken || f->known_next > f->round + 1)
		return false;
	if (f->shut >= SHUT_MIN && f->known_next <= f->round && now >= f->shut_ns + limit) {
		snprintf(text, size,
			 "round %u cannot begin: others still wait for more than this worker's %llu "
			 "elements of round %u (or messages of %zu bytes are lost).  "
			 SAINA_SAME_SIZES,
			 f->round, (unsigned long long)r->gave, f->round - 1, r->job->msglen);
		return true;
	}
	if (now < r->moved_ns + limit)
		return false;
	for (const struct saina_req *q = r->reqs; q; q = q->next)
		if (others_have_less(r, q, active, text, size))
			return true;
	return false;
}
