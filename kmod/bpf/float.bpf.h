/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What float32 and bfloat16 need of the slot machine: saina.ko adds, by kfunc, and a
 * kfunc may not be called under a slot's lock.  So a gradient takes three steps:
 *
 *	claim	under the slot's lock: its worker is in `seen` and `count`
 *	apply	without it: the kfunc stores it or adds it to the sums, under a
 *		lock of its own.  Which of the two is decided there, by the tag that
 *		the sums carry: claims may be applied in another order than made
 *	settle	under the slot's lock: `applied` counts it.  Who finds all claims
 *		applied and the slot complete makes the result
 *
 * A slot with a claim that is not applied is never DONE, so it cannot be taken over
 * under the kfunc.  When the claims alone make it complete, its mask is settled:
 * whoever comes then is too late, but the result is not there yet to be sent, so the
 * packet is dropped as if lost on the way.  Documentation/datapath.rst section 9.
 */
#ifndef SAINA_FLOAT_BPF_H
#define SAINA_FLOAT_BPF_H

#include "ctx.bpf.h"

extern int saina_f32_sum(void *slot, __u32 slot__sz, const void *msg, __u32 msg__sz,
			 __u64 tag) __ksym;
extern int saina_bf16_sum(void *slot, __u32 slot__sz, const void *msg, __u32 msg__sz,
			  __u64 tag) __ksym;

/* Of a segment in a round, never 0; in the life of a job's maps no two are alike. */
static __always_inline __u64 float_tag(const struct ctx_in *in)
{
	return (__u64)(in->round + 1) << 32 | in->segment;
}

/*
 * The upper halves of two floats side by side, rounded to nearest even; a NaN stays one.
 * Without branches, which the verifier would follow for each element, and in as few steps
 * as may be, for it counts them.
 */
static __always_inline __u32 float_halves(__u64 x)
{
	const __u64 ones = 0x0000000100000001ull;
	/* carries into the sign's place if exponent and fraction exceed infinity's */
	__u64 nan = ((x & 0x7fffffff7fffffffull) + 0x007fffff007fffffull) >> 31 & ones;

	x += (0x00007fff00007fffull + (x >> 16 & ones)) & ~((nan << 16) - nan);
	return (x >> 16 & 0xffff) | (x >> 32 & 0xffff0000) | (__u32)(nan << 6 | nan >> 10);
}

#endif /* SAINA_FLOAT_BPF_H */
