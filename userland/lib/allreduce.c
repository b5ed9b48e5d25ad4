// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* All-reduces and rounds: the calls of the trainer. */
#include <errno.h>
#include <stdlib.h>
#include "progress/progress.h"
#include "reduce/round.h"
#include "request.h"
#include "session/timeout.h"

int saina_allreduce_start(struct saina *s, void *buf, size_t n, enum saina_type type,
			  enum saina_result_op op, struct saina_req **req)
{
	return saina_allreduce_start_from(s, buf, NULL, n, type, op, req);
}

int saina_allreduce_start_from(struct saina *s, void *buf, const float *base, size_t n,
			       enum saina_type type, enum saina_result_op op,
			       struct saina_req **req)
{
	int ret;

	if (!req)
		return -EINVAL;
	*req = NULL;
	ret = saina_lock(s);
	if (ret)
		return ret;
	ret = saina_req_start(s, buf, base, n, type, op, req);
	if (!ret)
		saina_wake(s);
	return saina_unlock(s, ret);
}

static const char call_size[] = "call.size is not sizeof(struct saina_call)";

/* Is @call what a result can be written to?  Caller holds s->lock. */
static int check_call(struct saina *s, const struct saina_call *call)
{
	return call ? saina_check_size(s, call, call_size) : 0;
}

/* Caller holds s->lock. */
static int req_wait(struct saina *s, struct saina_req *req, struct saina_call *call)
{
	int ret;

	saina_step_close(s);
	saina_progress_until(s, req, NEVER);
	ret = req->err;
	if (ret)
		saina_req_error(s, req, ret);
	if (call)
		saina_copy_out(s, call, &req->call, sizeof(*call), call_size);
	saina_round_forget(&s->round, req);
	free(req);
	/* No call closes it. */
	if (ret && s->round.ops->fails_end && !s->round.reqs)
		saina_step_next(s);
	return ret;
}

/* 0: s->lock is held, and @req is one of @s. */
static int lock_req(struct saina *s, const struct saina_req *req)
{
	int ret = saina_lock(s);

	if (ret || (req && req->s == s))
		return ret;
	return saina_unlock(s, saina_error(s, -EINVAL,
					   req ? "this request belongs to another handle"
					       : "the request is NULL: pass the one from saina_allreduce_start()"));
}

int saina_wait(struct saina *s, struct saina_req *req, struct saina_call *call)
{
	int ret = lock_req(s, req);

	if (ret)
		return ret;
	ret = check_call(s, call);
	return saina_unlock(s, ret ? ret : req_wait(s, req, call));
}

/* A round is over: logs which workers have left or died since the last one with all workers. */
static void log_missing(struct saina *s)
{
	struct saina_session *j = &s->session;
	uint64_t counted = s->round.grad.state[0].last.mask;
	char missing[256];

	if (s->round.grad.state[0].last.round != s->round.flow.round)
		return; /* in steps */
	if (s->round.grad.state[0].last.weight == saina_job_weight(&j->job)) {
		s->full_round = s->round.flow.round;
		s->together = counted;
	} else if (s->together & ~counted & ~j->active) {
		s->together &= counted | j->active;
		saina_session_missing(j, missing, sizeof(missing));
		saina_note(&j->notes, "job %u: no round since round %u has all workers: %s",
			   j->job.id, s->full_round, missing);
	}
}

/* Caller holds s->lock. */
static int round_done(struct saina *s)
{
	struct saina_flow *f = &s->round.flow;
	int ret;

	if (s->round.reqs)
		return saina_error(s, -EBUSY, "round %u: wait for its all-reduces first", f->round);
	ret = saina_check_startable(s);
	if (!ret && !f->assigned)
		ret = saina_error(s, -EINVAL, "round %u: nothing was reduced in it", f->round);
	if (!ret) {
		s->round.stats.rounds++;
		log_missing(s);
		saina_step_next(s);
	}
	return ret;
}

int saina_poll(struct saina *s, struct saina_req *req, int timeout_ms)
{
	uint64_t until = saina_deadline(timeout_ms);
	int ret = lock_req(s, req);

	if (ret)
		return ret;
	if (timeout_ms)
		saina_step_close(s);
	return saina_unlock(s, saina_progress_until(s, req, until));
}

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
		ret = check_call(s, call);
	if (!ret)
		ret = saina_req_start(s, buf, NULL, n, type, op, &req);
	if (!ret)
		ret = req_wait(s, req, call);
	/* If other workers had another type the round is over, too. */
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

int saina_set_round(struct saina *s, uint32_t round)
{
	const struct saina_flow *f;
	int ret = saina_lock(s);

	if (ret)
		return ret;
	f = &s->round.flow;
	ret = saina_session_error(s);
	if (!ret && (s->round.reqs || (f->assigned && !f->stale)))
		ret = saina_error(s, -EBUSY, "round %u is open: close it first", f->round);
	if (!ret) {
		ret = s->round.ops->set(&s->round, round, saina_now(), s->error, sizeof(s->error));
		saina_wake(s);
	}
	return saina_unlock(s, ret);
}
