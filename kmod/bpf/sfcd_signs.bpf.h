/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The signs of a finished segment; included by slot_sum.bpf.h, hence no include guard.
 * SIGNS_ELEM is an unsigned type that an element of the ring entry has the bits of.
 */

/* @stride is a constant where this is inlined: no bounds to check at run time. */
static __always_inline void SIZED(sfcd_signs_strided)(struct sfcd_segment *s, const struct SLOT *e,
						      __u32 stride)
{
	const SIGNS_ELEM *v = (const void *)e->sum;

	for (__u32 first = 0; first < ELEMS; first += 64 * stride) {
		__u64 bits = 0;

#pragma clang loop unroll_count(8)
		for (__u32 b = 0; b < 64; b++) {
			__u32 i = first + b * stride;

			if (i >= ELEMS)
				break;
			bits |= sfcd_negative(s, v[i]) << b;
		}
		sfcd_word(s, first / (64 * stride), bits);
	}
}

/* Signs of a finished segment into the bitmap; c->out.flips, c->out.observed. */
__noinline int SIZED(sfcd_signs)(struct saina_ctx *c, const struct saina_job_conf *conf,
				 const struct SLOT *e)
{
	struct sfcd_segment s = {};

	if (!c || !conf || !e || !sfcd_segment_init(&s, &c->in, conf, ELEMS))
		return 0;
	switch (s.stride) {
#define STRIDE_CASE(S)				\
	case S:					\
		SIZED(sfcd_signs_strided)(&s, e, S);	\
		break;
		STRIDE_CASE(1)
		STRIDE_CASE(2)
		STRIDE_CASE(4)
		STRIDE_CASE(8)
		STRIDE_CASE(16)
		STRIDE_CASE(32)
		STRIDE_CASE(64)
#undef STRIDE_CASE
	default:
		return 0;
	}
	c->out.flips = s.flips;
	c->out.observed = s.samples;
	return 0;
}
