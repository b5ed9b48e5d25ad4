/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The slot machine for float32 and bfloat16: saina.ko adds, by kfunc, and a kfunc may
 * not be called under a slot's lock.  So a gradient takes three steps:
 *
 *	claim	under the slot's lock: its worker is in `seen` and `count`
 *	apply	without it: the kfunc stores it or adds it to the sums, under a
 *		lock of its own.  Which of the two is decided there, by the tag that
 *		the sums carry: claims may be applied in another order than made
 *	commit	under the slot's lock: `applied` counts it.  Who finds all claims
 *		applied and the slot complete makes the result.  (A PULL or duplicate
 *		that finds it so comes here at once, without a claim.)
 *
 * A slot with a claim that is not applied is never DONE, so it cannot be taken over
 * under the kfunc.  When the claims alone make it complete, its mask is settled:
 * whoever comes then is too late, but the result is not there yet to be sent, so the
 * packet is dropped as if lost on the way.  Documentation/datapath.rst section 9.
 */
#ifndef SAINA_FLOAT_BPF_H
#define SAINA_FLOAT_BPF_H

#include "slot.bpf.h"

extern int saina_f32_sum(void *slot, __u32 slot__sz, const void *msg, __u32 msg__sz,
			 __u64 tag) __ksym;
extern int saina_bf16_sum(void *slot, __u32 slot__sz, const void *msg, __u32 msg__sz,
			  __u64 tag) __ksym;

/* Of a segment in a round, never 0; in the life of a job's maps no two are alike. */
static __always_inline __u64 float_tag(const struct slot_call *c)
{
	return (__u64)(c->round + 1) << 32 | c->segment;
}

/* May the result be made?  Under the slot's lock, as the next three. */
static __always_inline bool float_complete(const struct saina_slot_meta *m, __u64 active)
{
	return m->applied == m->count && slot_complete(m, active);
}

/* A message for a slot that is open for its segment. */
static __always_inline int float_claim(struct slot_call *c, struct saina_slot_meta *m)
{
	if (c->pull || (m->seen & c->bit)) {
		c->reason = c->pull ? SAINA_C_PULL_EARLY : SAINA_C_DUPLICATE;
		return float_complete(m, c->active) ? SLOT_CLAIMED : SLOT_DROP;
	}
	if (m->exponent != c->exponent) {
		c->reason = SAINA_C_EXPONENT;
		return SLOT_DROP;
	}
	if (m->applied != m->count && slot_complete(m, c->active)) {
		/* too late for a result that is not there yet */
		c->reason = SAINA_C_PULL_EARLY;
		return SLOT_DROP;
	}
	m->seen |= c->bit;
	m->count++;
	c->counted = SAINA_C_ADDED;
	c->claimed = 1;
	return SLOT_CLAIMED;
}

/* A message for a slot that is not. */
static __always_inline int float_open(struct slot_call *c, struct saina_slot_meta *m)
{
	c->busy = slot_busy(m, c);
	if (!c->permitted)
		return SLOT_MISS;
	if (c->busy) {
		/* somebody was faster between the two locks */
		c->reason = SAINA_C_SLOT_BUSY;
		return SLOT_DROP;
	}
	m->round = c->round;
	m->segment = c->segment;
	m->state = SAINA_SLOT_OPEN;
	m->k = c->k;
	m->count = 1;
	m->applied = 0;
	m->exponent = c->exponent;
	m->policy = c->policy;
	m->seen = c->bit;
	m->members = c->members;
	m->opened_at = c->opened_at;
	m->csum = 0;
	m->flags = 0;
	c->opened = 1;
	c->counted = SAINA_C_STORED;
	c->claimed = 1;
	return SLOT_CLAIMED;
}

/*
 * After the addition: is the result to be made now?  A slot with a claim of ours is
 * still the same; for one without, somebody else may have been faster.
 */
static __always_inline bool float_commit(struct slot_call *c, struct saina_slot_meta *m)
{
	if (c->claimed && c->failed) {
		m->seen &= ~c->bit;
		m->count--;
		c->counted = SLOT_NONE;
		c->reason = SAINA_C_INTERNAL;
	} else if (c->claimed) {
		m->applied++;
	}
	return m->state == SAINA_SLOT_OPEN && m->round == c->round && m->segment == c->segment &&
	       m->count && float_complete(m, c->active);
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

#define FLOAT_BITS 32
#define EACH_SIZE "float_elems.bpf.h"
#include "each_size.bpf.h"
#undef FLOAT_BITS

#define FLOAT_BITS 16
#define EACH_SIZE "float_elems.bpf.h"
#include "each_size.bpf.h"
#undef FLOAT_BITS

/*
 * As in saina_xdp.bpf.c: the payload where it lies, or in scratch memory and back.
 */
#define RUN_FLOAT(type, E)							\
static __noinline int run_##type##_##E(struct xdp_md *ctx, struct slot_call *c,	\
				       const struct saina_job_conf *conf)	\
{										\
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end; \
	struct type##_payload_##E *payload;					\
	struct slot_scratch *scratch;						\
	int verdict;								\
										\
	if (data + SAINA_DATA_OFF + sizeof(*payload) <= end)			\
		return type##_run_##E(c, conf, data + SAINA_DATA_OFF);		\
	scratch = slot_scratch();						\
	if (!scratch)								\
		goto internal;							\
	payload = (void *)scratch->payload;					\
	if (!c->pull && bpf_xdp_load_bytes(ctx, SAINA_DATA_OFF, payload,	\
					   sizeof(*payload)))			\
		goto internal;							\
	verdict = type##_run_##E(c, conf, payload);				\
	if ((verdict == SLOT_RESULT || verdict == SLOT_ANSWER) &&		\
	    bpf_xdp_store_bytes(ctx, SAINA_DATA_OFF, payload, sizeof(*payload))) \
		goto internal;							\
	return verdict;								\
internal:									\
	c->reason = SAINA_C_INTERNAL;						\
	return SLOT_DROP;							\
}
#define RUN_F32(E) RUN_FLOAT(f32, E)
#define RUN_BF16(E) RUN_FLOAT(bf16, E)
SAINA_ELEMS_LIST(RUN_F32)
SAINA_ELEMS_LIST(RUN_BF16)

/* Any message of a job whose elements are not int32. */
static __always_inline int float_message(struct xdp_md *ctx, struct slot_call *c,
					 const struct saina_job_conf *conf)
{
	c->claimed = 0;
	c->failed = 0;
	if (conf->elem == SAINA_ELEM_FLOAT32) {
		switch (conf->payload) {
#define CASE_F32(E)		\
		case E:		\
			return run_f32_##E(ctx, c, conf);
		SAINA_ELEMS_LIST(CASE_F32)
		}
	} else if (conf->elem == SAINA_ELEM_BFLOAT16) {
		switch (conf->payload) {
#define CASE_BF16(E)		\
		case E:		\
			return run_bf16_##E(ctx, c, conf);
		SAINA_ELEMS_LIST(CASE_BF16)
		}
	}
	c->reason = SAINA_C_INTERNAL;
	return SLOT_DROP;
}

#endif /* SAINA_FLOAT_BPF_H */
