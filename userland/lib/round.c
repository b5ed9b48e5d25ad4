// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Rounds and the all-reduces in them: the calls of the trainer, and what
 * becomes of a segment when its result is there.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "private.h"

/* The caller's elements of a segment of the present round. */
const void *saina_round_data(const struct saina *s, uint32_t segment, size_t *n)
{
	const struct saina_req *r = s->seg[segment].req;
	size_t first = (size_t)(segment - r->first) * s->payload;

	*n = r->n - first < s->payload ? r->n - first : s->payload;
	return (const uint32_t *)r->buf + first;
}

static void request_finish(struct saina *s, struct saina_req *r, uint64_t now)
{
	uint32_t newest = s->known_next > 1 ? s->known_next - 2 : 0;

	if (newest < s->round)
		newest = s->round;
	while (saina_kept_complete(s, newest + 1))
		newest++;
	r->call.rounds_behind = newest - s->round;
	r->call.time_us = (now - r->start_ns) / 1000;
	r->finished = true;
	pthread_cond_broadcast(&s->cond);
}

/* One segment of @r is over, one way or the other. */
static void request_count(struct saina *s, struct saina_req *r)
{
	if (++r->done == r->segments)
		request_finish(s, r, saina_now());
}

/* Everything that the next contribution depends on, and saina_segment(). */
static void note_result(struct saina *s, struct saina_seg *g, const struct saina_hdr *h)
{
	g->last.round = le32toh(h->round);
	g->last.mask = le64toh(h->mask);
	g->last.contributors = h->contributors;
	g->last.k = h->k;
	g->last.flags = h->flags;
	g->last.policy = le16toh(h->policy);
	g->last.exponent = h->exponent;
}

static void account(struct saina *s, struct saina_seg *g, struct saina_req *r, bool late)
{
	struct saina_call *c = &r->call;

	if (!r->done || g->last.contributors < c->count_min)
		c->count_min = g->last.contributors;
	if (g->last.contributors > c->count_max)
		c->count_max = g->last.contributors;
	c->mask_any |= g->last.mask;
	c->mask_all &= g->last.mask;
	if (g->last.k > c->k)
		c->k = g->last.k;
	if (g->last.flags & SAINA_F_DEGRADED)
		c->degraded_segments++;
	if (late) {
		c->late_segments++;
		s->stats.late_segments++;
		if (!g->was_sent)
			c->skipped_segments++;
	}
	s->stats.segments++;
}

/**
 * saina_round_consume() - the result of a segment of the present round is there
 *
 * Settles the residual first, while the caller's gradient is still in the
 * buffer, then puts the result there.
 */
void saina_round_consume(struct saina *s, uint32_t segment, const struct saina_hdr *h,
			 const void *sums)
{
	struct saina_seg *g = &s->seg[segment];
	struct saina_req *r = g->req;
	bool in = le64toh(h->mask) >> s->worker & 1;
	unsigned int div;
	uint32_t max;
	size_t n;
	void *out = (void *)saina_round_data(s, segment, &n);

	if (g->was_sent && in) {
		saina_residual_counted(s, segment, h->exponent);
		r->call.saturated += g->clipped;
		s->stats.saturated += g->clipped;
	} else if (!in && (h->flags & SAINA_F_DROP_LATE)) {
		saina_residual_drop(s, segment);
	} else {
		/* Late; or counted is what an earlier incarnation of this
		 * worker sent, not this.
		 */
		saina_residual_keep(s, segment);
	}

	note_result(s, g, h);
	account(s, g, r, !in);
	r->call.next_k = h->next_k;
	div = r->op == SAINA_MEAN ? h->contributors : 1;
	if (s->elem == SAINA_ELEM_FLOAT32) {
		saina_float_decode(out, sums, n, div);
	} else if (s->elem == SAINA_ELEM_BFLOAT16) {
		saina_half_decode(out, sums, n, div);
	} else if (r->type == SAINA_INT32) {
		memcpy(out, sums, 4 * n);
		g->exponent = 0;
	} else {
		max = s->quant->decode(out, sums, n, h->exponent, div);
		g->exponent = saina_quant_next(h->exponent, max, h->contributors, s->workers,
					       s->exponent0);
	}
	g->exp_round = s->round + 1;
	g->state = SEG_DONE;
	request_count(s, r);
}

/* The result of a segment of the present round cannot be had. */
void saina_round_stale(struct saina *s, uint32_t segment, bool counted)
{
	struct saina_seg *g = &s->seg[segment];
	struct saina_req *r = g->req;

	if (counted && g->was_sent)
		saina_residual_counted(s, segment, g->exponent);
	else
		saina_residual_keep(s, segment);
	g->state = SEG_STALE;
	s->stale++;
	s->broken = true;
	r->err = saina_error(s, -ESTALE,
			     "the results of round %u are gone (the aggregator keeps %u rounds): "
			     "get the model from another worker, then saina_set_round()",
			     s->round, s->ring);
	request_count(s, r);
}

/* Takes requests the trainer has started since: what is decided, at once. */
void saina_round_take(struct saina *s, uint64_t now)
{
	struct saina_kept *k = saina_kept_get(s, s->round);

	for (struct saina_req *r = s->reqs; r; r = r->next) {
		if (r->taken)
			continue;
		r->taken = true;
		for (uint32_t i = r->first; i < r->first + r->segments; i++) {
			s->seg[i].state = SEG_QUEUED;
			if (k && k->present[i])
				saina_round_consume(s, i, &k->hdr[i], saina_kept_sums(s, k, i));
		}
		if (s->progress_ns < now)
			s->progress_ns = now;
	}
}

/* Begins @round with nothing in flight.  Residuals stay. */
void saina_round_reset(struct saina *s, uint32_t round)
{
	for (uint32_t i = 0; i < s->assigned; i++) {
		struct saina_seg *g = &s->seg[i];

		g->req = NULL;
		g->state = SEG_IDLE;
		g->tries = g->was_sent = 0;
		g->clipped = 0;
	}
	if (s->assigned)
		s->last_assigned = s->assigned;
	s->assigned = s->first_open = s->sent_end = s->inflight = s->stale = 0;
	s->saw_result = false;
	s->stall_tries = 0;
	s->gated = false;
	s->stall_cursor = 0;
	s->due_ns = NEVER;
	s->fetch_ns = 0;
	s->fetch_tries = 0;
	s->round = round;
	saina_kept_drop(s, round);
}

/* Why nothing can be started, or 0. */
static int refuse_start(struct saina *s)
{
	if (s->phase == PHASE_FAILED)
		return s->err;
	if (s->broken)
		return saina_error(s, -ESTALE,
				   "the results of round %u are gone: get the model from another "
				   "worker, then saina_set_round()",
				   s->round);
	return 0;
}

static int check_request(struct saina *s, size_t n, enum saina_type type, enum saina_result_op op,
			 uint32_t segments)
{
	if (type != SAINA_INT32 && type != SAINA_FLOAT32)
		return saina_error(s, -EINVAL, "all-reduce of type %d: int32 and float32 exist",
				   (int)type);
	if (s->elem != SAINA_ELEM_INT32 && type != SAINA_FLOAT32)
		return saina_error(s, -EINVAL,
				   "all-reduce of int32: job %u sums floats; give it float32, or ask "
				   "for a job of type int32",
				   s->job);
	if (op != SAINA_SUM && op != SAINA_MEAN)
		return saina_error(s, -EINVAL, "all-reduce: result %d is neither sum nor mean",
				   (int)op);
	if (op == SAINA_MEAN && type == SAINA_INT32)
		return saina_error(s, -EINVAL,
				   "a mean of int32 would not be exact: ask for the sum and divide "
				   "by the contributors");
	if (segments > s->segments - s->assigned)
		return saina_error(s, -EINVAL,
				   "all-reduce of %zu elements: the job has %llu, of which %llu "
				   "are taken by this round's earlier ones",
				   n, (unsigned long long)s->elements,
				   (unsigned long long)s->assigned * s->payload);
	for (uint32_t i = s->assigned; i < s->assigned + segments; i++)
		if (s->seg[i].residual && s->seg[i].residual != type)
			return saina_error(s, -EINVAL,
					   "segment %u keeps a residual of the other type: a range "
					   "of the gradient must keep its type",
					   i);
	return 0;
}

/**
 * saina_allreduce_start() - begin an all-reduce, as part of the present round
 * @buf: @n elements, read and written by the library until saina_wait() returns
 * @n: 1 ..; takes ceil(n / payload) segments, from where the round's last one ended
 * @req: out, to be given to saina_wait() once
 *
 * Returns 0, -EINVAL, -ESTALE, -ECONNRESET, -ETIMEDOUT or -ENOMEM.
 */
int saina_allreduce_start(struct saina *s, void *buf, size_t n, enum saina_type type,
			  enum saina_result_op op, struct saina_req **req)
{
	struct saina_req *r, **tail;
	uint64_t segments;
	int ret;

	if (!s || !req)
		return -EINVAL;
	*req = NULL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	pthread_mutex_lock(&s->lock);
	ret = refuse_start(s);
	if (ret)
		goto unlock;
	if (!n || !buf) {
		ret = saina_error(s, -EINVAL, "all-reduce of nothing");
		goto unlock;
	}
	segments = (n - 1) / s->payload + 1;
	if (segments > UINT32_MAX)
		segments = UINT32_MAX;
	ret = check_request(s, n, type, op, segments);
	if (ret)
		goto unlock;

	r->s = s;
	r->buf = buf;
	r->n = n;
	r->type = type;
	r->op = op;
	r->first = s->assigned;
	r->segments = segments;
	r->start_ns = saina_now();
	r->call.round = s->round;
	r->call.segments = segments;
	r->call.mask_all = ~0ull;
	for (uint32_t i = r->first; i < r->first + segments; i++)
		s->seg[i].req = r;
	s->assigned += segments;
	for (tail = &s->reqs; *tail; tail = &(*tail)->next)
		;
	*tail = r;
	*req = r;
	r = NULL;
	saina_recv_kick(s);
unlock:
	pthread_mutex_unlock(&s->lock);
	free(r);
	return ret;
}

static void request_unlink(struct saina *s, struct saina_req *r)
{
	struct saina_req **p = &s->reqs;

	while (*p && *p != r)
		p = &(*p)->next;
	if (*p)
		*p = r->next;
}

/**
 * saina_wait() - until the result is in the buffer; frees @req
 * @call: out, may be NULL; call->size is the caller's
 */
int saina_wait(struct saina *s, struct saina_req *req, struct saina_call *call)
{
	size_t size = call ? call->size : 0;
	int ret;

	if (!s || !req || req->s != s)
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	while (!req->finished)
		pthread_cond_wait(&s->cond, &s->lock);
	ret = req->err;
	if (call) {
		if (size < sizeof(size_t) || size > 4096) {
			if (!ret)
				ret = saina_error(s, -EINVAL,
						  "call->size is not sizeof(struct saina_call)");
		} else {
			memset(call, 0, size);
			memcpy(call, &req->call, size < sizeof(*call) ? size : sizeof(*call));
			call->size = size;
		}
	}
	request_unlink(s, req);
	pthread_mutex_unlock(&s->lock);
	free(req);
	return ret;
}

/**
 * saina_round_done() - close the round: all that was started has been waited for
 *
 * Returns 0, -EBUSY if an all-reduce has not been waited for, -EINVAL if none was
 * started, or the round's failure.
 */
int saina_round_done(struct saina *s)
{
	int ret;

	if (!s)
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	if (s->reqs) {
		ret = saina_error(s, -EBUSY, "round %u: wait for its all-reduces first", s->round);
		goto unlock;
	}
	ret = refuse_start(s);
	if (ret)
		goto unlock;
	if (!s->assigned) {
		ret = saina_error(s, -EINVAL, "round %u: nothing was reduced in it", s->round);
		goto unlock;
	}
	s->stats.rounds++;
	saina_round_reset(s, s->round + 1);
unlock:
	pthread_mutex_unlock(&s->lock);
	return ret;
}

int saina_allreduce(struct saina *s, void *buf, size_t n, enum saina_type type,
		    enum saina_result_op op, struct saina_call *call)
{
	struct saina_req *req;
	bool open;
	int ret;

	if (!s)
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	open = s->assigned && !s->broken && s->phase != PHASE_FAILED;
	if (open)
		saina_error(s, -EINVAL, "round %u is open: close it with saina_round_done() first",
			    s->round);
	pthread_mutex_unlock(&s->lock);
	if (open)
		return -EINVAL;

	ret = saina_allreduce_start(s, buf, n, type, op, &req);
	if (!ret)
		ret = saina_wait(s, req, call);
	if (!ret)
		ret = saina_round_done(s);
	return ret;
}

int saina_decided(struct saina *s)
{
	int ret;

	if (!s)
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	ret = s->phase == PHASE_FAILED
		      ? s->err
		      : s->known_next > s->round + 1 || saina_kept_complete(s, s->round);
	pthread_mutex_unlock(&s->lock);
	return ret;
}

/**
 * saina_set_round() - see saina.h
 *
 * Residuals stay: they are of gradients that were never counted.  -EBUSY with
 * an all-reduce in flight, -EINVAL for a round before the present one.
 */
int saina_set_round(struct saina *s, uint32_t round)
{
	int ret = 0;

	if (!s)
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	if (s->phase == PHASE_FAILED) {
		ret = s->err;
	} else if (s->reqs || (s->assigned && !s->broken)) {
		ret = saina_error(s, -EBUSY, "round %u is open: close it first", s->round);
	} else if (round < s->round) {
		ret = saina_error(s, -EINVAL, "round %u is over: this worker is at %u", round,
				  s->round);
	} else if (round != s->round || s->broken) {
		s->broken = false;
		saina_round_reset(s, round);
		saina_flow_gate(s);
		saina_recv_kick(s);
	}
	pthread_mutex_unlock(&s->lock);
	return ret;
}
