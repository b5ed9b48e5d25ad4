/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much later than the round's first gradient a worker's own comes (segment 0); with groups,
 * how much later than the first of its group it finishes a step.
 * Documentation/datapath.rst section 8.2.
 *
 * No lock: a worker's gradients come one after another.  If two copies of one are handled on two
 * processors at once, that round may be counted twice.
 */
#ifndef SAINA_LATENESS_BPF_H
#define SAINA_LATENESS_BPF_H

#include "ctx.bpf.h"
#include "maps.bpf.h"

/*
 * 0 for 0, else 1 + floor(log2(us)), at most the last bucket.  Without branches, so that the
 * verifier does not walk what follows for each outcome.
 */
static __always_inline __u32 lateness_bucket(__u64 us)
{
	__u32 b = 0;

	if (us >> 32)
		return SAINA_ARRIVAL_BUCKETS - 1;
#pragma unroll
	for (int bit = 16; bit; bit /= 2) {
		__u32 above = is_above(us >> bit, 0) * bit;

		b += above;
		us >>= above;
	}
	b += is_above(us, 0);
	return b < SAINA_ARRIVAL_BUCKETS ? b : SAINA_ARRIVAL_BUCKETS - 1;
}

/* A GRAD of segment 0 that was counted in a slot that opened at @opened_at, or came too late; a
 * CLOCK of a step that the first of the group finished then.
 */
static __noinline int lateness_record(const struct ctx_in *in, __u64 opened_at)
{
	__u32 key = in->job * SAINA_WORKERS_MAX + in->worker, b;
	struct saina_arrival *a = bpf_map_lookup_elem(&saina_arrival, &key);
	__u64 us;

	if (!a)
		return 0;
	if (a->generation != in->generation) {
		__builtin_memset(a, 0, sizeof(*a));
		a->generation = in->generation;
	}
	if (a->round == in->round + 1)
		return 0;
	us = in->now > opened_at ? (in->now - opened_at) / 1000 : 0;
	b = lateness_bucket(us);
	a->round = in->round + 1;
	a->n++;
	a->sum_us += us;
	a->last_us = us;
	if (b < SAINA_ARRIVAL_BUCKETS)
		a->hist[b]++;
	return 0;
}

#endif /* SAINA_LATENESS_BPF_H */
