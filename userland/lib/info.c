// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Calls that read the state of a handle. */
#include <errno.h>
#include "base.h"

int saina_info(struct saina *s, struct saina_job_info *info)
{
	const struct saina_job *job;
	const struct saina_session *j;
	struct saina_job_info i;
	int ret;

	if (!info)
		return -EINVAL;
	ret = saina_lock(s);
	if (ret)
		return ret;
	j = &s->session;
	job = &j->job;
	i = (struct saina_job_info){
		.job = job->id,
		.worker = job->worker,
		.workers = job->workers,
		.elements = job->elements,
		.segments = job->segments,
		.payload = job->payload,
		.pool = job->pool,
		.ring = job->ring,
		.round = s->round.flow.round,
		.active = j->active,
		.relayed = j->relayed,
		.next_round = s->round.flow.known_next,
		.type = (enum saina_type)job->elem,
		.part = job->part,
		.parts = job->parts,
		.behind = s->round.flow.held,
		.counted = s->round.newest_counted,
		.counted_round = s->round.newest_round,
		.missing = j->missing_round == s->round.flow.round ? j->missing : 0,
		.timeout_ms = j->timeout_ms,
		.ranks = saina_job_weight(job),
		.rank = saina_job_rank(job),
		.depth = job->depth,
	};
	if (i.missing)
		memcpy(i.reason, j->reason, sizeof(j->reason));
	return saina_unlock(s, saina_copy_out(s, info, &i, sizeof(i),
					      "info.size is not sizeof(struct saina_job_info)"));
}

int saina_get_stats(struct saina *s, struct saina_stats *stats)
{
	const struct saina_cwnd *w;
	struct saina_stats now;
	int ret;

	if (!stats)
		return -EINVAL;
	ret = saina_lock(s);
	if (ret)
		return ret;
	w = &s->round.flow.cwnd;
	now = s->round.stats;
	now.bad_messages = s->bad_messages;
	now.rejoins = s->session.rejoins;
	now.rtt_us = w->srtt / 1000;
	now.rto_us = saina_cwnd_rto(w) / 1000;
	now.window = w->size * s->session.job.per_batch;
	return saina_unlock(s, saina_copy_out(s, stats, &now, sizeof(now),
					      "stats.size is not sizeof(struct saina_stats)"));
}

/* For users: a block scale, 0 if there is none, or SAINA_EXPONENT_NAN. */
static int exponent_of(const struct saina_job *job, int e)
{
	if (!SAINA_ELEM_IS_INT(job->elem) || e == SAINA_EXPONENT_INT)
		return 0;
	return e == SAINA_EXPONENT_NAN ? e : e + SAINA_EXPONENT_BIAS;
}

int saina_segment(struct saina *s, uint32_t segment, struct saina_segment *out)
{
	const struct saina_segment_state *p;
	struct saina_segment g;
	int ret;

	if (!out)
		return -EINVAL;
	ret = saina_lock(s);
	if (ret)
		return ret;
	if (segment >= s->session.job.segments)
		return saina_unlock(s, saina_error(s, -EINVAL, "segment %u: the gradient has %u segments",
						   segment, s->session.job.segments));
	p = &s->round.grad.state[segment];
	if (!p->last.weight)
		return saina_unlock(
			s, saina_error(s, -ENODATA, "segment %u has no result yet", segment));
	g = (struct saina_segment){
		.round = p->last.round,
		.mask = p->last.mask,
		.contributors = p->last.contributors,
		.weight = p->last.weight,
		.k = p->last.k,
		.exponent = exponent_of(&s->session.job, p->last.exponent),
		.policy = p->last.policy,
		.flags = p->last.flags & (SAINA_F_DEGRADED | SAINA_F_DROP_LATE),
	};
	return saina_unlock(s, saina_copy_out(s, out, &g, sizeof(g),
					      "out.size is not sizeof(struct saina_segment)"));
}

const char *saina_strerror(const struct saina *s, int err)
{
	const char *text = saina_error_text(s);

	return text[0] ? text : strerror(err < 0 ? -err : err);
}

const char *saina_version(void)
{
	return SAINA_VERSION;
}
