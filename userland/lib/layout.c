// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Moves elements of the gradient to other places, between rounds. */
#include <errno.h>
#include "base.h"
#include "reduce/reduce.h"

static int check_move(struct saina *s, const struct saina_move *m)
{
	const struct saina_job *job = &s->session.job;
	uint64_t end = (uint64_t)job->segments * job->payload;

	if (m->from + m->n < m->n || m->to + m->n < m->n || m->from + m->n > end ||
	    m->to + m->n > end)
		return saina_error(s, -EINVAL, "saina_layout: the gradient ends at element %llu",
				   (unsigned long long)end);
	return 0;
}

/**
 * saina_layout() - see saina.h
 * @moves: @n of them; what they do not name must have no residual
 */
int saina_layout(struct saina *s, const struct saina_move *moves, size_t n)
{
	struct saina_flow *f;
	int ret = saina_lock(s);

	if (ret)
		return ret;
	f = &s->round.flow;
	ret = saina_session_error(s);
	if (!ret && n && !moves)
		ret = saina_error(s, -EINVAL, "saina_layout: moves is NULL");
	if (!ret && (s->round.reqs || f->assigned))
		ret = saina_error(s, -EBUSY, "round %u is open: close it with saina_round_done() first",
				  f->round);
	for (size_t i = 0; i < n && !ret; i++)
		ret = check_move(s, &moves[i]);
	if (ret)
		return saina_unlock(s, ret);
	ret = saina_round_move(&s->round, moves, n);
	if (ret == -ENOTEMPTY)
		ret = saina_error(s, -EINVAL,
				  "saina_layout: residual would be lost: no move covers some of it, "
				  "or moves overlap");
	else if (ret == -EINVAL)
		saina_error(s, ret, "saina_layout: int32 and float32 would meet in one segment");
	else if (ret)
		saina_error(s, ret, "out of memory");
	return saina_unlock(s, ret);
}
