/* SPDX-License-Identifier: GPL-2.0 */
/*
 * DOORBELL and FETCH: gradients and results in memory that workers share with the data path.
 * Documentation/datapath.rst section 8.3.
 */
#ifndef SAINA_SHM_BPF_H
#define SAINA_SHM_BPF_H

#include "away.bpf.h"
#include "count.bpf.h"
#include "lateness.bpf.h"
#include "slot.bpf.h"

#define EACH_SIZE "shm_sum.bpf.h"
#include "each_size.bpf.h"
#undef EACH_SIZE

/*
 * Segment @i of a DOORBELL or FETCH, as a GRAD or PULL of that segment; 0: skip the rest.  A global
 * function, which the verifier does not walk for each of SAINA_DOORBELL_SEGMENTS.
 */
__noinline int shm_doorbell_segment(struct saina_ctx *c, const struct saina_job_conf *conf,
				    struct saina_counters *wc, __u32 i)
{
	int verdict = VERDICT_DROP;

	if (!c || !conf || !wc)
		return 0;

	c->in.lock = (conf->lock_base + (c->in.segment & (c->in.pool - 1))) & (SAINA_LOCKS - 1);
	ctx_reset(c);
	switch (conf->payload) {
#define DOORBELL_CASE(E)			\
	case E:					\
		verdict = shm_run_##E(c, conf);	\
		break;
	SAINA_ELEMS_LIST(DOORBELL_CASE)
	}
	c->out.verdict = verdict;
	if (c->latch.away)
		away_note(c);
	/* segment 0 can only be the first */
	if (!i && c->out.opened_at) {
		lateness_record(&c->in, c->out.opened_at);
		round_gradient(c);
		c->out.opened_at = 0;
	}
	if (verdict == VERDICT_STALE || verdict == VERDICT_NAK)
		return 0;
	if (verdict == VERDICT_RESULT_ALL || verdict == VERDICT_RESULT)
		c->doorbell.done |= 1ull << (i & (SAINA_DOORBELL_SEGMENTS - 1));
	if (verdict == VERDICT_RESULT_ALL)
		c->completed = 1;
	count_verdict(c, wc);
	return 1;
}

/* A DOORBELL or FETCH; c->doorbell.posted is set. */
static __always_inline int shm_doorbell(struct saina_ctx *c, const struct saina_job_conf *conf,
					struct saina_counters *wc)
{
	__u32 first = c->in.segment, i;
	__u64 posted = c->doorbell.posted;

	c->by_doorbell = true;
	c->in.flags = 0;
	c->in.weight = 0;
	c->doorbell.done = 0;
	c->completed = 0;
	c->out.verdict = VERDICT_DROP;
	for (i = 0; i < SAINA_DOORBELL_SEGMENTS; i++) {
		if (!(posted >> i & 1))
			continue;
		c->in.segment = first + i;
		if (c->in.segment >= conf->segments || !shm_doorbell_segment(c, conf, wc, i))
			break;
	}
	if (c->doorbell.done) {
		c->in.segment = first;
		return c->completed ? VERDICT_COMPLETION_ALL : VERDICT_COMPLETION;
	}
	/* a NAK or STALE names the segment it is about */
	if (c->out.verdict == VERDICT_NAK) {
		wc->c[SAINA_C_MODE]++;
		return VERDICT_NAK;
	}
	if (c->out.verdict != VERDICT_STALE)
		return VERDICT_CONSUMED;
	wc->c[SAINA_C_STALE]++;
	return VERDICT_STALE;
}

#endif /* SAINA_SHM_BPF_H */
