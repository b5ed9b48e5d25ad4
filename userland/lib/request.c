// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * All-reduces of both interfaces (allreduce.c, step.c): how they are submitted and fail, and how
 * rounds and steps end.
 */
#include <errno.h>
#include <stdlib.h>
#include "progress/progress.h"
#include "reduce/round.h"
#include "request.h"

int saina_req_error(struct saina *s, const struct saina_req *q, int err)
{
	if (err != -ESTALE && err != -EDOM && (saina_session_error(s) || err != -EPROTO))
		return err;
	s->round.ops->explain(&s->round, q, err, s->error, sizeof(s->error));
	return err;
}

int saina_check_startable(struct saina *s)
{
	int ret = saina_session_error(s);

	if (!ret && s->round.flow.stale)
		ret = saina_req_error(s, NULL, -ESTALE);
	if (!ret && s->round.flow.round > SAINA_ROUND_MAX)
		ret = saina_error(s, -EINVAL, "job %u has no round after %u", s->session.job.id,
				  SAINA_ROUND_MAX);
	return ret;
}

/*
 * Is there a residual of another type?  One of zeros, as a late part in a broadcast leaves it, is
 * forgotten.
 */
static bool residual_differs(struct saina *s, uint32_t segment, enum saina_type type)
{
	struct saina_gradient *g = &s->round.grad;
	const uint32_t *kept = g->residual + (size_t)segment * s->session.job.payload;

	if (!g->state[segment].residual || g->state[segment].residual == type)
		return false;
	for (uint32_t i = 0; i < s->session.job.payload; i++)
		if (kept[i])
			return true;
	g->state[segment].residual = 0;
	return false;
}

static int check_request(struct saina *s, size_t n, enum saina_type type, enum saina_result_op op,
			 uint32_t segments)
{
	const struct saina_job *job = &s->session.job;
	uint32_t assigned = s->round.flow.assigned;

	if (type != SAINA_INT32 && type != SAINA_FLOAT32)
		return saina_error(s, -EINVAL, "all-reduce: type %d is neither SAINA_INT32 nor SAINA_FLOAT32",
				   (int)type);
	if (job->elem != SAINA_ELEM_INT32 && type != SAINA_FLOAT32)
		return saina_error(
			s, -EINVAL,
			"all-reduce of int32: job %u is not of int32; pass float32, or create "
			"the job with type int32",
			job->id);
	if (op != SAINA_SUM && op != SAINA_MEAN && op != SAINA_SUM_ONCE)
		return saina_error(s, -EINVAL,
				   "all-reduce: result %d is none of enum saina_result_op",
				   (int)op);
	if (op == SAINA_SUM_ONCE && type != SAINA_INT32)
		return saina_error(
			s, -EINVAL,
			"SAINA_SUM_ONCE is a sum of int32: pass int32, or use SAINA_SUM");
	if (op == SAINA_MEAN && type == SAINA_INT32)
		return saina_error(s, -EINVAL,
				   "a mean of int32 would not be exact: use SAINA_SUM and divide by "
				   "the number of contributors");
	if (segments > job->segments - assigned)
		return saina_error(s, -EINVAL,
				   "all-reduce of %zu elements: the job has %llu, of which %llu "
				   "are taken by this round's earlier all-reduces",
				   n, (unsigned long long)job->elements,
				   (unsigned long long)assigned * job->payload);
	for (uint32_t i = assigned; op != SAINA_SUM_ONCE && i < assigned + segments; i++)
		if (residual_differs(s, i, type))
			return saina_error(s, -EINVAL,
					   "segment %u keeps a residual of the other type: a range "
					   "of the gradient must keep its type",
					   i);
	return 0;
}

int saina_req_start(struct saina *s, void *buf, const float *base, size_t n, enum saina_type type,
		    enum saina_result_op op, struct saina_req **req)
{
	const struct saina_tensor t = {
		.buf = buf, .base = base, .n = n, .type = type, .once = op == SAINA_SUM_ONCE};
	struct saina_req *r;
	uint64_t segments;
	int ret = saina_check_startable(s);

	if (!ret && (!n || !buf))
		ret = saina_error(s, -EINVAL, "all-reduce of no elements, or without a buffer");
	if (!ret && base && type != SAINA_FLOAT32)
		ret = saina_error(s, -EINVAL, "all-reduce: only float32 has a base");
	if (ret)
		return ret;
	segments = (n - 1) / s->session.job.payload + 1;
	if (segments > UINT32_MAX)
		segments = UINT32_MAX;
	ret = check_request(s, n, type, op, segments);
	if (ret)
		return ret;
	if (s->round.ops->check)
		ret = s->round.ops->check(&s->round, &t, s->error, sizeof(s->error));
	if (ret)
		return ret;
	r = calloc(1, sizeof(*r));
	if (!r)
		return saina_error(s, -ENOMEM, "out of memory");
	r->s = s;
	r->t = t;
	r->op = op;
	s->round.ops->start(&s->round, r, saina_now());
	*req = r;
	return 0;
}

void saina_step_close(struct saina *s)
{
	if (s->round.closed)
		return;
	s->round.closed = true;
	if (s->round.ops->close)
		s->round.ops->close(&s->round, saina_now());
	saina_wake(s);
}

void saina_step_next(struct saina *s)
{
	s->clocked = false;
	s->round.closed = false;
	s->round.prev_submitted = s->round.submitted;
	s->round.ops->next(&s->round, saina_now());
}
