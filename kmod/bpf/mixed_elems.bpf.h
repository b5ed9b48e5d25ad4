/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sums of contributions with different exponents; included by slot_elems.bpf.h, hence no include
 * guard.  The coarser scale is kept: the finer integers are shifted, those of the input or those
 * of the slot.  Documentation/datapath.rst section 3.1.
 */
#ifndef SLOT_SHIFT
#define SLOT_SHIFT
/* x / 2^(@less + 1) to the nearest, halves upwards */
static __always_inline __u32 slot_shift(__s32 x, __u32 less)
{
	return ((__s32)((__u32)(x >> less) + 1)) >> 1;
}
#endif

static __always_inline void SIZED(mixed_add)(__s32 *sum, const __s32 *in, __u32 less, bool coarser)
{
	UNROLL
	for (__u32 i = 0; i < WORDS; i++)
		sum[i] = coarser ? slot_shift(sum[i], less) + (__u32)in[i] :
				   (__u32)sum[i] + slot_shift(in[i], less);
}

/* As finish_add_ELEMS(). */
static __always_inline __u64 SIZED(mixed_finish)(const __s32 *sum, const __s32 *in, __s32 *ring,
						 __s32 *out, __u32 less, bool coarser)
{
	__u64 csum = 0;

	UNROLL_FINISH
	for (__u32 i = 0; i < WORDS; i++) {
		__u32 v = coarser ? slot_shift(sum[i], less) + (__u32)in[i] :
				    (__u32)sum[i] + slot_shift(in[i], less);

		ring[i] = v;
		out[i] = v;
		csum += v;
	}
	return csum;
}

/*
 * slot_mixed_ELEMS() - a gradient that slot_is_mixed(); as slot_step_ELEMS()
 *
 * SLOT_RETRY: it is not, and nothing has changed.
 */
__noinline int SIZED(slot_mixed)(struct slot_call *c, struct SLOT *h, struct SLOT *e,
				 const struct SIZED(place) *in, struct SIZED(place) *out)
{
	struct saina_slot_lock *lk;
	struct saina_counted *cnt;
	__u32 lock, less, coarser;
	__u64 csum;
	int action;

	if (!c || !h || !e || !in || !out)
		return SLOT_DROP;
	lock = c->in.lock;
	lk = bpf_map_lookup_elem(&saina_locks, &lock);
	cnt = slot_counted(c->in.job, c->in.segment);
	if (!lk || !cnt)
		return SLOT_DROP;
	if (h->meta.deadline || !c->in.segment)
		c->in.now = bpf_ktime_get_ns();
	SIZED(touch)(h);
	if (h->meta.count + 1 >= h->meta.k)
		SIZED(touch)(e);

	bpf_spin_lock(&lk->lock);
	action = SLOT_DO_NOTHING;
	less = 0;
	coarser = 0;
	if (RUNG(c) && !slot_take_input(&in->input, c)) {
		/* c->out says why */
	} else if (!slot_is_mixed(&h->meta, &c->in)) {
		c->out.verdict = SLOT_RETRY;
	} else {
		int difference = h->meta.exponent - c->in.exponent;

		coarser = difference > 0;
		less = (coarser ? difference : -difference) - 1;
		if (less > 30)
			less = 30;
		action = slot_decide_open(c, &h->meta, cnt);
	}
	action = slot_by_memory(&c->latch.action, action);
	less = slot_by_memory(&c->latch.less, less) & 31;
	coarser = slot_by_memory(&c->latch.coarser, coarser);
	if (action == SLOT_DO_ADD) {
		if (coarser)
			SIZED(mixed_add)(h->sum, in->v, less, true);
		else
			SIZED(mixed_add)(h->sum, in->v, less, false);
	} else if (action == SLOT_DO_FINISH_ADD) {
		if (RUNG(c))
			slot_unpublish(&out->board);
		if (coarser)
			csum = SIZED(mixed_finish)(h->sum, in->v, e->sum, out->v, less, true);
		else
			csum = SIZED(mixed_finish)(h->sum, in->v, e->sum, out->v, less, false);
		slot_done(c, &h->meta, &e->meta, cnt, csum);
		if (RUNG(c))
			slot_publish(&out->board, &h->meta);
	}
	bpf_spin_unlock(&lk->lock);
	return c->out.verdict;
}
