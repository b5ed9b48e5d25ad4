// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The mode of a job whose policy has rounds. */
#include <errno.h>
#include "ps.h"
#include "round.h"
#include "size_mismatch.h"

/*
 * An answer to a message about the present or the previous round may say that the job has steps.
 * One from before the rounds began is ignored, and any in a job that cannot have steps.
 */
static bool says_steps(const struct saina_round *r, const struct saina_hdr *h)
{
	return r->job->elem == SAINA_ELEM_INT32 && h->type == SAINA_MSG_NAK &&
	       h->k == SAINA_NAK_MODE && r->flow.round - le32toh(h->round) <= 1 &&
	       le32toh(h->slot_round) >= r->flow.floor;
}

static int input(struct saina_round *r, const struct saina_hdr *h, uint64_t now)
{
	if (says_steps(r, h))
		return saina_ps_enter(r, le32toh(h->slot_round), now);
	saina_round_input(r, h, now);
	return 0;
}

static bool waits(const struct saina_round *r)
{
	return r->flow.inflight;
}

static void status(struct saina_round *r, uint32_t next, uint64_t now)
{
	saina_flow_next(&r->flow, next, now);
}

/* Goes on where this worker was. */
static bool again(struct saina_round *r, uint64_t now, char *text, size_t size)
{
	const struct saina_job *job = r->job;
	uint32_t round = r->flow.round;

	if (job->formed && job->first_round < round)
		snprintf(text, size,
			 "job %u begins again at round %u, where most of its workers are, and this one "
			 "is at %u: join it again, with the model of one of them",
			 job->id, job->first_round, round);
	else if (!saina_flow_again(&r->flow, job->first_round, job->formed, now))
		snprintf(text, size,
			 "job %u was restarted in the middle of round %u: join it again, with the "
			 "model of a worker that is not in this round",
			 job->id, round);
	else
		return true;
	return false;
}

static void next(struct saina_round *r, uint64_t now)
{
	r->fresh = false;
	saina_flow_round(&r->flow, r->flow.round + 1);
}

static int set(struct saina_round *r, uint32_t round, uint64_t now, char *text, size_t size)
{
	struct saina_flow *f = &r->flow;

	if (round < f->round) {
		snprintf(text, size, "round %u is over: this worker is at %u", round, f->round);
		return -EINVAL;
	}
	if (round > SAINA_ROUND_MAX) {
		snprintf(text, size, "job %u has no round after %u", r->job->id, SAINA_ROUND_MAX);
		return -EINVAL;
	}
	if (round != f->round || f->stale) {
		saina_flow_set(f, round, now);
		r->fresh = true;
	}
	return 0;
}

static void fill(const struct saina_round *r, struct saina_step *d)
{
	const struct saina_call *c = &r->reqs->call;

	d->step = c->round;
	d->low = c->round + 1;
	d->updates_min = c->count_min;
	d->updates_max = c->count_max;
	for (const struct saina_req *q = r->reqs; q; q = q->next) {
		if (q->call.count_min < d->updates_min)
			d->updates_min = q->call.count_min;
		if (q->call.count_max > d->updates_max)
			d->updates_max = q->call.count_max;
	}
}

static void explain(const struct saina_round *r, const struct saina_req *q, int err, char *text,
		    size_t size)
{
	if (err == -EPROTO)
		saina_type_mismatch(r, q, text, size);
	else if (r->flow.gap)
		snprintf(text, size,
			 "round %u is over and never had all of this worker's %llu elements: the "
			 "others went on to round %u with fewer.  " SAINA_SAME_SIZES,
			 r->flow.round, (unsigned long long)r->submitted, r->flow.known_next - 1);
	else
		snprintf(text, size,
			 "the results of round %u are gone (the aggregator keeps %u rounds): get the "
			 "model from another worker (saina_info() says which were counted last), then "
			 "call saina_set_round()",
			 r->flow.round, r->job->ring);
}

const struct saina_reduce_ops saina_rounds = {
	.input = input,
	.output = saina_round_output,
	.waits = waits,
	.status = status,
	.again = again,
	.exit = saina_round_exit,
	.start = saina_round_start,
	.next = next,
	.set = set,
	.fill = fill,
	.explain = explain,
	.stuck = saina_size_mismatch,
};
