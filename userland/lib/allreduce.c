// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* All-reduces and rounds: the calls of the trainer. */
#include <errno.h>
#include <stdlib.h>
#include "base.h"
#include "reduce/size_check.h"

int saina_stale_error(struct saina *s)
{
	const struct saina_ps *t = &s->round.ps;

	if (t->on || t->steps.leaves)
		return saina_error(s, -ESTALE,
				   "step %u: the updates since this worker's last one cannot be told any "
				   "more: they are too many (at most %u), or their table is gone: get the "
				   "model from another worker and go on",
				   s->round.flow.round, SAINA_PS_UPDATES - 1);
	if (s->round.flow.gap)
		return saina_error(s, -ESTALE,
				   "round %u is over and never had all of this worker's %llu elements: the "
				   "others went on to round %u with fewer.  " SAINA_SAME_SIZES,
				   s->round.flow.round, (unsigned long long)s->round.submitted,
				   s->round.flow.known_next - 1);
	return saina_error(s, -ESTALE,
			   "the results of round %u are gone (the aggregator keeps %u rounds): "
			   "get the model from another worker, then saina_set_round()",
			   s->round.flow.round, s->session.job.ring);
}

int saina_not_finite_error(struct saina *s, size_t element)
{
	return saina_error(s, -EDOM,
			   "step %u: element %zu is infinite or not a number, which a table would keep for "
			   "ever: push finite updates, or zeros to leave a step out",
			   s->round.flow.round, element);
}

int saina_req_error(struct saina *s, int err)
{
	if (err == -ESTALE)
		return saina_stale_error(s);
	if (err == -EDOM)
		return saina_not_finite_error(s, s->round.ps.bad);
	if (saina_session_error(s))
		return err;
	if (err == -EPROTO)
		return saina_error(s, err,
				   "round %u: other workers have started float32 where this one has int32: "
				   "all workers must start the same types and sizes in the same order",
				   s->round.flow.round);
	return err;
}

/* Why nothing can be started, or 0. */
static int check_startable(struct saina *s)
{
	int ret = saina_session_error(s);

	if (!ret && s->round.flow.stale)
		ret = saina_stale_error(s);
	if (!ret && s->round.flow.round > SAINA_ROUND_MAX)
		ret = saina_error(s, -EINVAL, "job %u has no round after %u", s->session.job.id,
				  SAINA_ROUND_MAX);
	return ret;
}

static int check_request(struct saina *s, size_t n, enum saina_type type, enum saina_result_op op,
			 uint32_t segments)
{
	const struct saina_job *job = &s->session.job;
	uint32_t assigned = s->round.flow.assigned;

	if (type != SAINA_INT32 && type != SAINA_FLOAT32)
		return saina_error(s, -EINVAL, "all-reduce of type %d: int32 and float32 exist",
				   (int)type);
	if (job->elem != SAINA_ELEM_INT32 && type != SAINA_FLOAT32)
		return saina_error(s, -EINVAL,
				   "all-reduce of int32: job %u sums floats; give it float32, or ask "
				   "for a job of type int32",
				   job->id);
	if (op != SAINA_SUM && op != SAINA_MEAN)
		return saina_error(s, -EINVAL, "all-reduce: result %d is neither sum nor mean",
				   (int)op);
	if (s->round.ps.on && s->round.closed)
		return saina_error(s, -EINVAL,
				   "step %u is complete: with this policy (ssp, asp) all of a step is "
				   "started before any of it is waited for",
				   s->round.flow.round);
	if (op == SAINA_MEAN && type == SAINA_INT32)
		return saina_error(s, -EINVAL,
				   "a mean of int32 would not be exact: ask for the sum and divide "
				   "by the contributors");
	if (segments > job->segments - assigned)
		return saina_error(s, -EINVAL,
				   "all-reduce of %zu elements: the job has %llu, of which %llu "
				   "are taken by this round's earlier ones",
				   n, (unsigned long long)job->elements,
				   (unsigned long long)assigned * job->payload);
	for (uint32_t i = assigned; i < assigned + segments; i++)
		if (s->round.grad.state[i].residual && s->round.grad.state[i].residual != type)
			return saina_error(s, -EINVAL,
					   "segment %u keeps a residual of the other type: a range "
					   "of the gradient must keep its type",
					   i);
	return 0;
}

/* Locked; nobody is told that there is something to send. */
int saina_req_start(struct saina *s, void *buf, size_t n, enum saina_type type,
		enum saina_result_op op, struct saina_req **req)
{
	struct saina_req *r;
	uint64_t segments;
	int ret = check_startable(s);

	if (!ret && (!n || !buf))
		ret = saina_error(s, -EINVAL, "all-reduce of nothing");
	if (ret)
		return ret;
	segments = (n - 1) / s->session.job.payload + 1;
	if (segments > UINT32_MAX)
		segments = UINT32_MAX;
	ret = check_request(s, n, type, op, segments);
	if (ret)
		return ret;
	if (s->round.ps.on) {
		struct saina_tensor t = {.buf = buf, .n = n, .type = type};
		size_t bad = saina_ps_finite(&s->round, &t);

		if (bad < n)
			return saina_not_finite_error(s, bad);
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		return saina_error(s, -ENOMEM, "out of memory");
	r->s = s;
	r->t = (struct saina_tensor){.buf = buf, .n = n, .type = type};
	r->op = op;
	saina_round_start(&s->round, r, saina_now());
	*req = r;
	return 0;
}

/**
 * saina_allreduce_start() - begin an all-reduce, as part of the present round
 * @buf: @n elements, read and written by the library until saina_wait() returns
 * @n: 1 ..; takes ceil(n / payload) segments, from where the round's last one ended
 * @req: out, pass it to saina_wait() once
 *
 * Returns 0, -EINVAL, -ESTALE, -ECONNRESET, -ETIMEDOUT or -ENOMEM.
 */
int saina_allreduce_start(struct saina *s, void *buf, size_t n, enum saina_type type,
			  enum saina_result_op op, struct saina_req **req)
{
	int ret;

	if (!req)
		return -EINVAL;
	*req = NULL;
	ret = saina_lock(s);
	if (ret)
		return ret;
	ret = saina_req_start(s, buf, n, type, op, req);
	if (!ret)
		saina_wake(s);
	return saina_unlock(s, ret);
}

/* Locked. */
static int req_wait(struct saina *s, struct saina_req *req, struct saina_call *call)
{
	size_t size = call ? call->size : 0;
	int ret;

	saina_step_close(s);
	saina_progress_until(s, req, NEVER);
	ret = req->err;
	if (ret)
		saina_req_error(s, ret);
	if (call && (size < sizeof(size_t) || size > 4096)) {
		if (!ret)
			ret = saina_error(s, -EINVAL, "call->size is not sizeof(struct saina_call)");
	} else if (call) {
		memset(call, 0, size);
		memcpy(call, &req->call, size < sizeof(*call) ? size : sizeof(*call));
		call->size = size;
	}
	saina_round_forget(&s->round, req);
	free(req);
	/* there is no other way out of a step */
	if (ret && s->round.ps.on && !s->round.reqs)
		saina_step_next(s);
	return ret;
}

/**
 * saina_wait() - until the result is in the buffer; frees @req
 * @call: out, may be NULL; call->size is the caller's
 *
 * By any thread, also while others wait for other requests.
 */
int saina_wait(struct saina *s, struct saina_req *req, struct saina_call *call)
{
	int ret;

	if (!s || !req || req->s != s)
		return -EINVAL;
	ret = saina_lock(s);
	return ret ? ret : saina_unlock(s, req_wait(s, req, call));
}

/* Locked. */
static int round_done(struct saina *s)
{
	struct saina_flow *f = &s->round.flow;
	int ret;

	if (s->round.reqs)
		return saina_error(s, -EBUSY, "round %u: wait for its all-reduces first", f->round);
	ret = check_startable(s);
	if (!ret && !f->assigned)
		ret = saina_error(s, -EINVAL, "round %u: nothing was reduced in it", f->round);
	if (!ret) {
		s->round.stats.rounds++;
		saina_step_next(s);
	}
	return ret;
}

/**
 * saina_poll() - see saina.h
 * @timeout_ms: 0: only look; -1: as long as it takes
 */
int saina_poll(struct saina *s, struct saina_req *req, int timeout_ms)
{
	uint64_t until = saina_deadline(timeout_ms);
	int ret;

	if (!s || !req || req->s != s)
		return -EINVAL;
	ret = saina_lock(s);
	if (ret)
		return ret;
	if (timeout_ms)
		saina_step_close(s);
	return saina_unlock(s, saina_progress_until(s, req, until));
}

/**
 * saina_round_done() - close the round: all that was started has been waited for
 *
 * Returns 0, -EBUSY if an all-reduce has not been waited for, -EINVAL if none was
 * started, or the round's failure.
 */
int saina_round_done(struct saina *s)
{
	int ret = saina_lock(s);

	return ret ? ret : saina_unlock(s, round_done(s));
}

int saina_allreduce(struct saina *s, void *buf, size_t n, enum saina_type type,
		    enum saina_result_op op, struct saina_call *call)
{
	const struct saina_flow *f;
	struct saina_req *req;
	int ret = saina_lock(s);

	if (ret)
		return ret;
	f = &s->round.flow;
	if (f->assigned && !f->stale && s->session.phase != PHASE_FAILED)
		ret = saina_error(s, -EINVAL,
				  "round %u is open: close it with saina_round_done() first",
				  f->round);
	if (!ret)
		ret = saina_req_start(s, buf, n, type, op, &req);
	if (!ret)
		ret = req_wait(s, req, call);
	/* also if others had another type: that round is over */
	if (!ret || (ret == -EPROTO && s->session.phase != PHASE_FAILED)) {
		int done = round_done(s);

		ret = ret ? ret : done;
	}
	return saina_unlock(s, ret);
}

int saina_decided(struct saina *s)
{
	const struct saina_flow *f;
	int ret = saina_lock(s);

	if (ret)
		return ret;
	f = &s->round.flow;
	ret = saina_session_error(s);
	if (!ret)
		ret = saina_flow_decided(f) || saina_flow_complete(f, f->round);
	return saina_unlock(s, ret);
}

/**
 * saina_set_round() - see saina.h
 *
 * Residuals stay: they are of gradients that were never counted.  -EBUSY with
 * an all-reduce in flight, -EINVAL for a round before the present one.
 */
int saina_set_round(struct saina *s, uint32_t round)
{
	struct saina_flow *f;
	int ret = saina_lock(s);

	if (ret)
		return ret;
	f = &s->round.flow;
	ret = saina_session_error(s);
	if (ret) {
		/* said */
	} else if (s->round.reqs || (f->assigned && !f->stale)) {
		ret = saina_error(s, -EBUSY, "round %u is open: close it first", f->round);
	} else if (s->round.ps.on) {
		s->round.ps.fresh = true;
	} else if (round < f->round) {
		ret = saina_error(s, -EINVAL, "round %u is over: this worker is at %u", round,
				  f->round);
	} else if (round > SAINA_ROUND_MAX) {
		ret = saina_error(s, -EINVAL, "job %u has no round after %u", s->session.job.id,
				  SAINA_ROUND_MAX);
	} else if (round != f->round || f->stale) {
		saina_flow_set(f, round, saina_now());
		s->round.ps.fresh = true;
		saina_wake(s);
	}
	return saina_unlock(s, ret);
}
