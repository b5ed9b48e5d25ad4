/* SPDX-License-Identifier: GPL-2.0 */
/*
 * SFCD: k follows the share of gradient signs that flip from round to round.
 * The bitmap (one bit per sampled element of the whole gradient) lives in
 * saina_signs and is written once per segment and round, when the segment's
 * result is made.  Documentation/datapath.rst section 6.
 */
#ifndef SAINA_SFCD_BPF_H
#define SAINA_SFCD_BPF_H

#include "ctx.bpf.h"
#include "maps.bpf.h"
#include "sized.bpf.h"

struct sfcd_segment {
	__u32	job;
	__u32	stride;
	__u32	samples;	/* of this segment */
	__u32	counting;	/* of these, the first ones whose flips count */
	__u32	first_word;
	__u32	flips;
#ifdef SAINA_KMOD
	__u64	largest;	/* of what is not negative, read as an unsigned number */
#else
	__u32	borrow;		/* what the first number of a pair may have taken from the second */
#endif
};

/* 1 if the sum is negative; minus zero of floats is not.  Of a pair: the second number. */
static __always_inline __u64 sfcd_negative(const struct sfcd_segment *s, __u32 sum)
{
#ifdef SAINA_KMOD
	__u64 below = s->largest - sum;

	/* or clang makes a branch of it, and a loop that 6.1 refuses */
	asm volatile("" : "+r"(below));
	return below >> 63;
#else
	return (sum + s->borrow) >> 31;
#endif
}

/* 0 if the round's policy is not SFCD.  No lock: the policy stays while the caller's slot counts
 * as open.  Global, as sfcd_word(), so that the verifier does not carry its branches into the
 * loops.
 */
__noinline int sfcd_segment_init(struct sfcd_segment *s, const struct ctx_in *in,
				 const struct saina_job_conf *conf, __u32 elems)
{
	const struct saina_job_rt *rt;
	__u32 stride, job;

	if (!s || !in || !conf)
		return 0;
	job = in->job;
	rt = bpf_map_lookup_elem(&saina_rt, &job);
	if (!rt || rt->policy.mode != SAINA_POLICY_SFCD)
		return 0;
	stride = rt->policy.stride;
	if (stride == 0 || stride > 64)
		return 0;
	s->job = job;
	s->stride = stride;
	s->samples = (elems + stride - 1) / stride;
	s->counting = s->samples;
	s->first_word = in->segment * conf->sign_words;
	s->flips = 0;
#ifdef SAINA_KMOD
	s->largest = conf->elem == SAINA_ELEM_INT32	 ? 0x7fffffff :
		     conf->elem == SAINA_ELEM_FLOAT32 ? 0x80000000 :
							 0x8000;
#else
	s->borrow = conf->elem == SAINA_ELEM_INT16 ? 0x8000 : 0;
#endif
	if (rt->policy.flags & SAINA_POLICY_F_PARITY) {
		/* the original SAINA counts flips in whole words of 32 only */
		__u32 each = elems / 32;
		__u32 counted = (conf->segments * each) & ~31u;
		__u32 before = in->segment * each;

		if (before >= counted)
			s->counting = 0;
		else if (counted - before < s->samples)
			s->counting = counted - before;
	}
	return 1;
}

static __always_inline __u64 sfcd_mask(__u32 n, __u32 word)
{
	__u32 from = word * 64;

	if (n <= from)
		return 0;
	n -= from;
	return n >= 64 ? ~0ull : (1ull << (n & 63)) - 1;
}

/* One word of new signs.  Global: the verifier does not follow its branches for each word of
 * each caller.
 */
__noinline int sfcd_word(struct sfcd_segment *s, __u32 word, __u64 bits)
{
	__u32 job, key;
	__u64 mask, *old;
	void *signs;

	if (!s)
		return 0;
	job = s->job;
	signs = bpf_map_lookup_elem(&saina_signs, &job);
	if (!signs)
		return 0;
	key = s->first_word + word;
	old = bpf_map_lookup_elem(signs, &key);
	if (!old)
		return 0;
	mask = sfcd_mask(s->samples, word);
	s->flips += popcount64((*old ^ bits) & sfcd_mask(s->counting, word));
	*old = (*old & ~mask) | (bits & mask);
	return 0;
}

/* The round is complete: decides k of the next one.  Under rt->lock.  True if it changed. */
static __always_inline bool sfcd_decide(struct saina_job_rt *rt)
{
	const struct saina_policy *p = &rt->policy;
	bool parity = p->flags & SAINA_POLICY_F_PARITY;
	bool changed = false;

	/* every segment had a NaN */
	if (!rt->observed)
		return false;
	if (rt->primed || parity) {
		__u32 members = popcount64(rt->members);
		__u32 limit = p->k_max && p->k_max < members ? p->k_max : members;
		__u32 need = p->c_th ? p->c_th : rt->k;
		__u64 scaled = (__u64)p->s_th * rt->observed;
		bool reached = parity ? rt->flips >= scaled / 1000 : rt->flips * 1000 >= scaled;

		if (reached)
			rt->converged++;
		else if (rt->converged)
			rt->converged--;
		if (!reached && p->flags & SAINA_POLICY_F_DOWN)
			rt->resumed++;
		else if (rt->resumed)
			rt->resumed--;
		if (rt->converged >= need) {
			rt->converged = 0;
			if (rt->k_next < limit) {
				rt->k_next++;
				rt->resumed = 0;
				changed = true;
			}
		}
		if (rt->resumed >= need) {
			rt->resumed = 0;
			rt->converged = 0;
			if (rt->k_next > 1 && rt->k_next > p->k_min) {
				rt->k_next--;
				changed = true;
			}
		}
	}
	rt->primed = 1;
	rt->last_flips = rt->flips;
	rt->last_observed = rt->observed;
	rt->last_round = rt->next_round - 1;
	return changed;
}

/* The part that depends on the payload size, once for each. */
#define EACH_SIZE "sfcd_signs.bpf.h"
#include "each_size.bpf.h"
#ifdef SAINA_KMOD
#define ELEMS_HALVED
#include "each_size.bpf.h"
#undef ELEMS_HALVED
#endif
#undef EACH_SIZE

#endif /* SAINA_SFCD_BPF_H */
