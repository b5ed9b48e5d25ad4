/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The signs of a finished segment; included once per size and type of element, hence no
 * include guard.  The includer defines
 *
 *	SIGNS		name of the function
 *	SIGNS_PAYLOAD	structure of the results
 *	SIGNS_ELEM	unsigned type that one of them has the bits of
 */
#define SIGNS_CAT_(a, b) a##b
#define SIGNS_CAT(a, b)	 SIGNS_CAT_(a, b)

/* @stride is a constant where this is inlined: no bounds to check at run time. */
static __always_inline void SIGNS_CAT(SIGNS, _strided)(struct sfcd_segment *s,
							const struct SIGNS_PAYLOAD *p, __u32 stride)
{
	const SIGNS_ELEM *v = (const void *)p;

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

/* Signs of a finished segment into the bitmap; c->flips, c->observed. */
__noinline int SIGNS(struct slot_call *c, const struct saina_job_conf *conf,
		      const struct SIGNS_PAYLOAD *p)
{
	struct sfcd_segment s = {};

	if (!c || !conf || !p || !sfcd_segment_init(&s, c, conf, ELEMS))
		return 0;
	switch (s.stride) {
#define STRIDE_CASE(S)						\
	case S:							\
		SIGNS_CAT(SIGNS, _strided)(&s, p, S);		\
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
	c->flips = s.flips;
	c->observed = s.samples;
	return 0;
}

#undef SIGNS_CAT
#undef SIGNS_CAT_
#undef SIGNS_ELEM
#undef SIGNS_PAYLOAD
#undef SIGNS
