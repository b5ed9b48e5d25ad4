/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters of workers and, where no worker can be named, of the data path.
 */
#ifndef SAINA_COUNT_BPF_H
#define SAINA_COUNT_BPF_H

#include "ctx.bpf.h"
#include "maps.bpf.h"

static __always_inline void count_global(__u32 counter)
{
	__u32 zero = 0;
	struct saina_counters *c = bpf_map_lookup_elem(&saina_gcount, &zero);

	if (c && counter < SAINA_C_N)
		c->c[counter]++;
}

static __always_inline struct saina_counters *worker_counters(__u32 job, __u32 worker)
{
	void *inner = bpf_map_lookup_elem(&saina_wcount, &job);

	return inner ? bpf_map_lookup_elem(inner, &worker) : NULL;
}

/* A separate function: 6.1 forgets the bound of a copy spilled before the compare. */
static __noinline void count_worker(struct saina_counters *wc, __u32 counter)
{
	if (counter < SAINA_C_N)
		wc->c[counter]++;
}

/* Counts for worker @by - 1 that its scale is coarser than another's; 0: for nobody. */
static __always_inline void count_coarsened(__u32 job, __u32 by)
{
	struct saina_counters *wc = by ? worker_counters(job, by - 1) : NULL;

	if (wc)
		wc->c[SAINA_C_COARSENED]++;
}

/*
 * Counts the verdict for the worker.  A global function, which the verifier does not walk for
 * each segment of a DOORBELL.
 */
__noinline int count_verdict(const struct saina_ctx *c, struct saina_counters *wc)
{
	if (!c || !wc)
		return 0;
	if (c->out.counted == SAINA_C_ADDED)
		wc->c[SAINA_C_ADDED]++;
	else if (c->out.counted == SAINA_C_STORED)
		wc->c[SAINA_C_STORED]++;
	count_coarsened(c->in.job, c->out.coarsened);
	if ((c->out.counted == SAINA_C_ADDED || c->out.counted == SAINA_C_STORED) &&
	    exponent_is_nan(c->in.exponent))
		wc->c[SAINA_C_NONFINITE]++;
	switch (c->out.verdict) {
	case VERDICT_RESULT_ALL:
		wc->c[SAINA_C_COMPLETED]++;
		if (c->out.flags & SAINA_F_DEGRADED)
			wc->c[SAINA_C_DEGRADED]++;
		break;
	case VERDICT_RESULT:
		if (c->in.pull)
			wc->c[SAINA_C_PULLED]++;
		else if (c->out.mask & c->in.bit)
			wc->c[SAINA_C_RESENT]++;
		else
			wc->c[SAINA_C_LATE]++;
		break;
	case VERDICT_STALE:
		wc->c[SAINA_C_STALE]++;
		break;
	case VERDICT_ASK_REPLY:
		wc->c[SAINA_C_ASKED]++;
		break;
	case VERDICT_NAK:
		wc->c[SAINA_C_MODE]++;
		break;
	case VERDICT_DROP:
		count_worker(wc, c->out.reason);
		break;
	}
	return 0;
}

#endif /* SAINA_COUNT_BPF_H */
