/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sums of contributions with different exponents; included by slot_sum.bpf.h, hence no include
 * guard.  The coarser scale is kept: the finer integers are shifted, those of the input or those
 * of the slot.  Documentation/datapath.rst section 3.1.
 */
#ifndef SLOT_SHIFT
#define SLOT_SHIFT
enum slot_shifts {
	SLOT_SHIFTS_NOTHING,
	SLOT_SHIFTS_SUM,
	SLOT_SHIFTS_INPUT,
};

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

/*
 * slot_mixed_ELEMS() - a gradient that slot_is_mixed(); as slot_step_ELEMS()
 *
 * VERDICT_RETRY: it is not, and nothing has changed.
 */
__noinline int SIZED(slot_mixed)(struct saina_ctx *c, struct SLOT *h, struct SLOT *e,
				 const struct SIZED(buffer) *in, struct SIZED(buffer) *out)
{
	struct saina_slot_lock *lk;
	struct saina_counted *cnt;
	__u32 lock, less, shifts;
	__u64 csum;
	int action;

	if (!c || !h || !e || !in || !out)
		return VERDICT_DROP;
	lock = c->in.lock;
	lk = bpf_map_lookup_elem(&saina_locks, &lock);
	cnt = slot_counted(c->in.job, c->in.segment);
	if (!lk || !cnt)
		return VERDICT_DROP;
	if (h->meta.deadline || !c->in.segment)
		c->in.now = bpf_ktime_get_ns();
	SIZED(prefetch)(h);
	if (h->meta.count + 1 >= h->meta.k)
		SIZED(prefetch)(e);

	bpf_spin_lock(&lk->lock);
	action = SLOT_DO_NOTHING;
	less = 0;
	shifts = SLOT_SHIFTS_NOTHING;
	if (BY_DOORBELL(c) && !shm_take_input(&in->input, c)) {
		/* c->out says why */
	} else if (!slot_is_mixed(&h->meta, &c->in)) {
		c->out.verdict = VERDICT_RETRY;
	} else {
		int difference = h->meta.exponent - c->in.exponent;

		less = (difference > 0 ? difference : -difference) - 1;
		if (less > 30)
			less = 30;
		action = slot_decide_open(c, &h->meta, cnt);
		if (action == SLOT_DO_ADD || action == SLOT_DO_FINISH_ADD)
			shifts = difference > 0 ? SLOT_SHIFTS_SUM : SLOT_SHIFTS_INPUT;
	}
	*(volatile __u32 *)&c->latch.action = action;
	less = through_memory(&c->latch.less, less) & 31;
	shifts = through_memory(&c->latch.shifts, shifts);
	if (shifts == SLOT_SHIFTS_SUM)
		SIZED(mixed_add)(h->sum, in->v, less, true);
	else if (shifts == SLOT_SHIFTS_INPUT)
		SIZED(mixed_add)(h->sum, in->v, less, false);
	/* a pass of its own: two loops that add and finish are too many for the verifier */
	if (*(volatile __u32 *)&c->latch.action == SLOT_DO_FINISH_ADD) {
		if (BY_DOORBELL(c))
			shm_unpublish(&out->output);
		csum = SIZED(finish)(h->sum, e->sum, out->v);
		slot_done(c, &h->meta, &e->meta, cnt, csum);
		if (BY_DOORBELL(c))
			shm_publish(&out->output, &h->meta);
	}
	bpf_spin_unlock(&lk->lock);
	return c->out.verdict;
}
