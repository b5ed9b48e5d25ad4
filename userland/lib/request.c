// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * All-reduces of both interfaces (allreduce.c, step.c): how they are submitted and fail, and how
 * rounds and steps end.
 */
#include <errno.h>
#include <stdlib.h>
#include "progress/progress.h"
#include "reduce/reduce.h"
#include "reduce/size_mismatch.h"
#include "request.h"

/* Sets the message of -ESTALE and returns it. */
static int set_stale_error(struct saina *s)
{
	const struct saina_ps *t = &s->round.ps;

	if (t->on || t->steps.leaves)
		return saina_error(
			s, -ESTALE,
			"step %u: this worker has missed updates: more than %u since it last read, "
			"or the parameter server was restarted or ended: get the model from "
			"another worker and go on",
			s->round.flow.round, SAINA_PS_UPDATES - 1);
	if (s->round.flow.gap)
		return saina_error(
			s, -ESTALE,
			"round %u is over and never had all of this worker's %llu elements: the "
			"others went on to round %u with fewer.  " SAINA_SAME_SIZES,
			s->round.flow.round, (unsigned long long)s->round.submitted,
			s->round.flow.known_next - 1);
	return saina_error(s, -ESTALE,
			   "the results of round %u are gone (the aggregator keeps %u rounds): "
			   "get the model from another worker (saina_info() says which were "
			   "counted last), then call saina_set_round()",
			   s->round.flow.round, s->session.job.ring);
}

/* Sets the message of -EDOM and returns it: @element of the update is not finite. */
static int set_not_finite_error(struct saina *s, size_t element)
{
	return saina_error(
		s, -EDOM,
		"step %u: element %zu is infinite or not a number, which the parameter server "
		"would keep for ever: push finite updates, or zeros to leave a step out",
		s->round.flow.round, element);
}

/* Sets the message of -EPROTO and returns it: other workers have another type than @q. */
static int set_types_error(struct saina *s, const struct saina_req *q)
{
	bool is_int = q->t.type == SAINA_INT32;
	char text[400];

	if (s->round.ps.on)
		return saina_error(s, -EPROTO,
				   "step %u: this worker pushes %s, and other workers have pushed %s: "
				   "all workers must push the same types and sizes in the same order",
				   s->round.flow.round, is_int ? "int32" : "float32",
				   is_int ? "float32" : "int32");
	saina_type_mismatch(&s->round, q, text, sizeof(text));
	return saina_error(s, -EPROTO, "%s", text);
}

int saina_req_error(struct saina *s, const struct saina_req *q, int err)
{
	if (err == -ESTALE)
		return set_stale_error(s);
	if (err == -EDOM)
		return set_not_finite_error(s, s->round.ps.bad);
	if (saina_session_error(s))
		return err;
	return err == -EPROTO ? set_types_error(s, q) : err;
}

int saina_check_startable(struct saina *s)
{
	int ret = saina_session_error(s);

	if (!ret && s->round.flow.stale)
		ret = set_stale_error(s);
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
	if (op == SAINA_SUM_ONCE && s->round.ps.on)
		return saina_error(
			s, -EINVAL,
			"the policy has steps (ssp, asp, grouped), and SAINA_SUM_ONCE needs rounds "
			"(`saina job set JOB policy bsp')");
	if (s->round.ps.on && s->round.closed)
		return saina_error(
			s, -EINVAL,
			"step %u is complete: with this policy (ssp, asp, grouped), start all "
			"all-reduces of a step before you wait for one",
			s->round.flow.round);
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
	if (s->round.ps.on) {
		struct saina_tensor t = {.buf = buf, .n = n, .type = type};
		size_t bad = saina_ps_finite(&s->round, &t);

		if (bad < n)
			return set_not_finite_error(s, bad);
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		return saina_error(s, -ENOMEM, "out of memory");
	r->s = s;
	r->t = (struct saina_tensor){
		.buf = buf, .base = base, .n = n, .type = type, .once = op == SAINA_SUM_ONCE};
	r->op = op;
	saina_reduce_start(&s->round, r, saina_now());
	*req = r;
	return 0;
}

void saina_step_close(struct saina *s)
{
	if (s->round.closed)
		return;
	saina_reduce_close(&s->round, saina_now());
	saina_wake(s);
}

void saina_step_next(struct saina *s)
{
	s->clocked = false;
	saina_reduce_next(&s->round, saina_now());
}
