// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Steps: the same calls whether workers step on their own (ssp, asp, grouped) or in rounds.  A push
 * is an all-reduce of the step's round, or an update of the parameter server.
 */
#include <errno.h>
#include <stdlib.h>
#include "progress/progress.h"
#include "reduce/round.h"
#include "request.h"

#define WRONG_SIZE "step.size is not sizeof(struct saina_step)"

int saina_push(struct saina *s, void *buf, size_t n, enum saina_type type)
{
	struct saina_req *req;
	int ret = saina_lock(s);

	if (ret)
		return ret;
	if (s->clocked)
		ret = saina_error(s, -EINVAL, "step %u is complete: call saina_read() first",
				  s->round.flow.round);
	else
		ret = saina_req_start(s, buf, NULL, n, type, SAINA_SUM, &req);
	if (!ret)
		saina_wake(s);
	return saina_unlock(s, ret);
}

/* Caller holds s->lock. */
static int step_complete(struct saina *s)
{
	int ret = saina_session_error(s);

	if (!ret && !s->round.reqs)
		ret = saina_error(s, -EINVAL, "step %u: nothing was pushed in it",
				  s->round.flow.round);
	if (ret)
		return ret;
	s->clocked = true;
	saina_step_close(s);
	return 0;
}

int saina_clock(struct saina *s)
{
	int ret = saina_lock(s);

	return ret ? ret : saina_unlock(s, step_complete(s));
}

/* Caller holds s->lock.  Waits for all requests of the step.  0 or -ETIMEDOUT */
static int wait_all(struct saina *s, int timeout_ms)
{
	uint64_t until = saina_deadline(timeout_ms);

	for (struct saina_req *q = s->round.reqs; q; q = q->next)
		if (!saina_progress_until(s, q, until))
			return saina_error(s, -ETIMEDOUT,
					   "step %u is not over yet: call saina_read() again",
					   s->round.flow.round);
	return 0;
}

int saina_read(struct saina *s, struct saina_step *step, int timeout_ms)
{
	struct saina_step d = {0};
	struct saina_req *q;
	int ret = saina_lock(s);

	if (ret)
		return ret;
	if (step)
		ret = saina_check_size(s, step, WRONG_SIZE);
	if (!ret && !s->clocked)
		ret = step_complete(s);
	if (!ret)
		ret = wait_all(s, timeout_ms);
	if (ret)
		goto out;
	s->round.ops->fill(&s->round, &d);
	if (step)
		saina_copy_out(s, step, &d, sizeof(d), WRONG_SIZE);
	for (q = s->round.reqs; q && !q->err; q = q->next)
		;
	ret = q ? saina_req_error(s, q, q->err) : 0;
	while ((q = s->round.reqs)) {
		saina_round_forget(&s->round, q);
		free(q);
	}
	if (!ret)
		s->round.stats.rounds++;
	/* A round that is lost stays open until saina_set_round(), as with all-reduces; one of which
	 * other workers had another type is over.
	 */
	if (!ret || s->round.ops->fails_end || ret == -EPROTO)
		saina_step_next(s);
	else
		s->clocked = s->round.closed = false;
out:
	return saina_unlock(s, ret);
}
