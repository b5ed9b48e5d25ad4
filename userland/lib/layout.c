// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Residuals: reads and replaces them, and moves elements of the gradient to other places. */
#include <errno.h>
#include "base.h"

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

/* Is no round open? */
static int check_between(struct saina *s)
{
	const struct saina_flow *f = &s->round.flow;
	int ret = saina_session_error(s);

	if (!ret && (s->round.reqs || f->assigned))
		ret = saina_error(s, -EBUSY, "round %u is open: close it with saina_round_done() first",
				  f->round);
	return ret;
}

int saina_layout(struct saina *s, const struct saina_move *moves, size_t n)
{
	int ret = saina_lock(s);

	if (ret)
		return ret;
	ret = check_between(s);
	if (!ret && n && !moves)
		ret = saina_error(s, -EINVAL, "saina_layout: moves is NULL");
	for (size_t i = 0; i < n && !ret; i++)
		ret = check_move(s, &moves[i]);
	if (ret)
		return saina_unlock(s, ret);
	ret = saina_gradient_move(&s->round.grad, moves, n);
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

static int check_range(struct saina *s, const char *name, uint64_t first, uint64_t n,
		       enum saina_type type)
{
	const struct saina_job *job = &s->session.job;
	uint64_t end = (uint64_t)job->segments * job->payload;

	if (type != SAINA_INT32 && type != SAINA_FLOAT32)
		return saina_error(s, -EINVAL, "%s: type %d is neither SAINA_INT32 nor SAINA_FLOAT32",
				   name, (int)type);
	if (first + n < first || first + n > end)
		return saina_error(s, -EINVAL, "%s: the gradient ends at element %llu", name,
				   (unsigned long long)end);
	return 0;
}

int saina_residual(struct saina *s, uint64_t first, uint64_t n, enum saina_type type, void *out)
{
	uint32_t at;
	int ret;

	if (n && !out)
		return -EINVAL;
	ret = saina_lock(s);
	if (ret)
		return ret;
	ret = check_range(s, "saina_residual", first, n, type);
	if (!ret && saina_residual_get(&s->round.grad, first, n, type, out, &at))
		ret = saina_error(s, -EINVAL,
				  "saina_residual: segment %u keeps elements of the other type", at);
	return saina_unlock(s, ret);
}

int saina_residual_set(struct saina *s, uint64_t first, uint64_t n, enum saina_type type,
		       const void *in)
{
	uint32_t at = 0;
	int ret;

	if (n && !in)
		return -EINVAL;
	ret = saina_lock(s);
	if (ret)
		return ret;
	ret = check_between(s);
	if (!ret)
		ret = check_range(s, "saina_residual_set", first, n, type);
	if (ret)
		return saina_unlock(s, ret);
	ret = saina_residual_put(&s->round.grad, first, n, type, in, &at);
	if (ret == -EDOM)
		ret = saina_error(s, -EINVAL, "saina_residual_set: an element is infinite or not a number");
	else if (ret)
		saina_error(s, ret, "saina_residual_set: segment %u keeps elements of the other type", at);
	return saina_unlock(s, ret);
}
