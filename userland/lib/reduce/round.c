// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Rounds: all-reduces, and what becomes of their results. */
#include <errno.h>
#include <stdlib.h>
#include "round.h"
#include "wire/check.h"

int saina_round_init(struct saina_round *r, const struct saina_job *job, uint32_t room,
		     uint32_t window, uint64_t ask_min)
{
	int ret;

	r->job = job;
	r->acts = 0;
	saina_size_check_init(&r->sizes, job);
	ret = saina_flow_init(&r->flow, job, room, window, ask_min);
	if (!ret)
		ret = saina_gradient_init(&r->grad, job);
	if (!ret && !(r->copy = malloc(job->msglen)))
		ret = -ENOMEM;
	return ret;
}

void saina_round_exit(struct saina_round *r)
{
	saina_flow_exit(&r->flow);
	saina_gradient_exit(&r->grad);
	free(r->copy);
}

void saina_round_start(struct saina_round *r, struct saina_req *q, uint64_t now)
{
	struct saina_req **tail = &r->reqs;
	uint32_t first = r->flow.assigned;

	q->t.first = first;
	q->segments = (q->t.n - 1) / r->job->payload + 1;
	q->start_ns = now;
	r->submitted = q->t.n + (first ? r->submitted : 0);
	q->call.round = r->flow.round;
	q->call.segments = q->segments;
	q->call.mask_all = ~0ull;
	for (uint32_t i = first; i < first + q->segments; i++) {
		r->grad.state[i].t = &q->t;
		r->grad.state[i].chosen = false;
	}
	while (*tail)
		tail = &(*tail)->next;
	*tail = q;
	saina_flow_add(&r->flow, q->segments);
}

void saina_round_forget(struct saina_round *r, struct saina_req *q)
{
	struct saina_req **p = &r->reqs;

	while (*p && *p != q)
		p = &(*p)->next;
	if (*p)
		*p = q->next;
	for (uint32_t i = q->t.first; i < q->t.first + q->segments; i++)
		r->grad.state[i].t = NULL;
}

static struct saina_req *request_of(const struct saina_segment_state *p)
{
	return (void *)((char *)p->t - offsetof(struct saina_req, t));
}

struct saina_req *saina_round_request(const struct saina_round *r, uint32_t segment)
{
	return request_of(&r->grad.state[segment]);
}

static void req_finish(struct saina_round *r, struct saina_req *q, int err)
{
	q->finished = true;
	q->err = err;
	r->any_finished = true;
}

void saina_round_fail(struct saina_round *r, int err)
{
	for (struct saina_req *q = r->reqs; q; q = q->next)
		if (!q->finished)
			req_finish(r, q, err);
}

/* The result of a segment of @q was taken, or is lost. */
static void segment_done(struct saina_round *r, struct saina_req *q, uint64_t now)
{
	const struct saina_flow *f = &r->flow;
	uint32_t newest = f->known_next > 1 ? f->known_next - 2 : 0;

	r->sizes.progress_ns = now;
	if (++q->done < q->segments)
		return;
	if (newest < f->round)
		newest = f->round;
	while (saina_flow_complete(f, newest + 1))
		newest++;
	q->call.round = f->round; /* the transport may have gone back to the previous round */
	q->call.rounds_behind = newest - f->round;
	q->call.time_us = (now - q->start_ns) / 1000;
	req_finish(r, q, q->err);
}

void saina_round_segment_over(struct saina_round *r, uint32_t segment, uint64_t now)
{
	segment_done(r, saina_round_request(r, segment), now);
}

void saina_round_account(struct saina_round *r, uint32_t segment, const struct saina_hdr *h,
			 bool late)
{
	struct saina_segment_state *p = &r->grad.state[segment];
	struct saina_req *q = request_of(p);
	struct saina_call *c = &q->call;
	uint32_t weight = saina_check_weight(r->job, h);

	p->last.round = le32toh(h->round);
	p->last.mask = le64toh(h->mask);
	p->last.contributors = h->contributors;
	p->last.weight = weight;
	p->last.k = h->k;
	p->last.flags = h->flags;
	p->last.policy = le16toh(h->policy);
	p->last.exponent = h->exponent;

	if (!q->done || weight < c->count_min)
		c->count_min = weight;
	if (weight > c->count_max)
		c->count_max = weight;
	c->mask_any |= p->last.mask;
	c->mask_all &= p->last.mask;
	if (h->k > c->k)
		c->k = h->k;
	c->next_k = h->next_k;
	if (h->flags & SAINA_F_DEGRADED)
		c->degraded_segments++;
	if (h->exponent == SAINA_EXPONENT_NAN && !(h->flags & SAINA_F_TYPES)) {
		c->nonfinite_segments++;
		r->stats.nonfinite_segments++;
	}
	if (late) {
		c->late_segments++;
		r->stats.late_segments++;
		if (!saina_flow_was_sent(&r->flow, segment))
			c->skipped_segments++;
	}
	r->stats.segments++;
}

void saina_round_saturated(struct saina_round *r, uint32_t segment, size_t n)
{
	saina_round_request(r, segment)->call.saturated += n;
	r->stats.saturated += n;
}

void saina_round_keep(struct saina_round *r, uint32_t segment)
{
	saina_round_saturated(r, segment, saina_residual_keep(&r->grad, segment));
}

void saina_round_decode(struct saina_round *r, uint32_t segment, const struct saina_hdr *h,
			const void *sums)
{
	struct saina_req *q = request_of(&r->grad.state[segment]);

	saina_gradient_decode(&r->grad, segment, h, sums,
			      q->op == SAINA_MEAN ? saina_check_weight(r->job, h) : 1);
}

/*
 * Is the result, or part of it, of another type than this worker's tensor?  Then nothing of it is
 * used, and tensor and residual stay as they are.
 */
static bool types_differ(struct saina_round *r, const struct saina_hdr *h)
{
	struct saina_req *q = saina_round_request(r, le32toh(h->segment));
	uint64_t integers = saina_gradient_integers(h, h + 1), me = 1ull << r->job->worker;
	bool is_int = q->t.type == SAINA_INT32;

	if (!(h->flags & SAINA_F_TYPES) && is_int == (h->exponent == SAINA_EXPONENT_INT))
		return false;
	q->err = -EPROTO;
	q->integers |= integers | (is_int ? me : 0);
	q->floats |= (le64toh(h->mask) & ~integers) | (is_int ? 0 : me);
	return true;
}

/*
 * Takes the result of a segment of the present round.  Settles the residual first, while the buffer
 * still has the caller's gradient.
 */
void saina_round_take(struct saina_round *r, const struct saina_hdr *h, uint64_t now)
{
	uint32_t segment = le32toh(h->segment);
	bool in = le64toh(h->mask) >> r->job->worker & 1;

	if (types_differ(r, h)) {
		saina_round_account(r, segment, h, !in);
		saina_round_segment_over(r, segment, now);
		return;
	}
	if (saina_flow_was_sent(&r->flow, segment) && in) {
		saina_residual_counted(&r->grad, segment, h->exponent);
	} else if (!in && (h->flags & SAINA_F_DROP_LATE)) {
		saina_residual_drop(&r->grad, segment);
	} else {
		/* Late, or the gradient that was counted is of an earlier incarnation. */
		saina_round_keep(r, segment);
	}
	saina_round_account(r, segment, h, !in);
	saina_round_decode(r, segment, h, h + 1);
	saina_round_segment_over(r, segment, now);
}

void saina_round_lose(struct saina_round *r, uint32_t segment, bool counted, uint64_t now)
{
	struct saina_segment_state *p = &r->grad.state[segment];
	struct saina_req *q = request_of(p);

	if (counted && saina_flow_was_sent(&r->flow, segment))
		saina_residual_counted(&r->grad, segment, p->exponent);
	else
		saina_round_keep(r, segment);
	q->err = -ESTALE;
	segment_done(r, q, now);
}

void saina_round_heard(struct saina_round *r, const struct saina_hdr *h)
{
	uint32_t round = le32toh(h->round);

	if (round < r->newest_round)
		return;
	if (round > r->newest_round)
		r->newest_counted = 0;
	r->newest_round = round;
	r->newest_counted |= le64toh(h->mask);
}

void saina_round_result(struct saina_round *r, const struct saina_hdr *h, uint64_t now)
{
	uint32_t round = le32toh(h->round), segment = le32toh(h->segment);

	saina_round_heard(r, h);
	if (h->flags & SAINA_F_LATE)
		r->stats.late_answers++;
	/* Results that all workers get, of this round or a later one, have the present policy. */
	if (h->worker == SAINA_WORKER_ANY && round >= r->flow.round)
		r->flow.timeout_ns = le32toh(h->aux) * 1000ull;
	switch (saina_flow_result(&r->flow, round, segment, now)) {
	case SAINA_RESULT_NONE:
		return;
	case SAINA_RESULT_LEARN:
		saina_gradient_learn(&r->grad, segment, h);
		r->stats.duplicate_results++;
		return;
	case SAINA_RESULT_DUPLICATE:
		r->stats.duplicate_results++;
		return;
	case SAINA_RESULT_KEEP:
		/* Without memory the result counts as lost: it can be pulled again. */
		if (!saina_reorder_put(&r->flow.reorder, h))
			return;
		break;
	case SAINA_RESULT_TAKE:
		saina_round_take(r, h, now);
		break;
	}
	r->stats.results++;
	r->stats.results_bytes += r->job->msglen;
}
