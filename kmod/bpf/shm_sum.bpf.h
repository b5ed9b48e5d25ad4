/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A segment of a DOORBELL through the slot machine: as slot_sum.bpf.h, which includes this,
 * but the gradient lies in the worker's input array and the result goes to the board, each
 * behind a head.
 * Documentation/datapath.rst section 8.3.
 */
#define INPUT		CAT(saina_input_, ELEMS)
#define OUTPUT		CAT(saina_output_, ELEMS)

/* The common case, as slot_add_ELEMS(). */
static __always_inline bool SIZED(shm_add)(struct saina_ctx *c, struct SLOT *h,
					   const struct INPUT *in)
{
	struct saina_slot_lock *lk;
	struct saina_counted *cnt;
	__u32 lock = c->in.lock, w = c->in.worker;
	bool plain;

	if (h->meta.round != c->in.round || h->meta.count + 1 >= h->meta.k || !c->in.segment ||
	    h->meta.exponent != c->in.exponent)
		return false;
	c->in.now = h->meta.deadline ? bpf_ktime_get_coarse_ns() : 0;
	lk = bpf_map_lookup_elem(&saina_locks, &lock);
	cnt = slot_counted(c->in.job, c->in.segment);
	if (!lk || !cnt)
		return false;
	asm volatile("" : "+r"(w));
	w &= SAINA_WORKERS_MAX - 1;

	bpf_spin_lock(&lk->lock);
	plain = shm_take_input(&in->head, c) && slot_is_plain(&h->meta, &c->in);
	if (plain) {
		h->meta.seen |= c->in.bit;
		h->meta.count++;
		cnt->last[w] = c->in.round + 1;
		SIZED(sum)(h->sum, in->v);
	}
	bpf_spin_unlock(&lk->lock);
	return plain;
}

/* shm_run_ELEMS() - a segment of a DOORBELL; @conf as slot_run_ELEMS() */
__noinline int SIZED(shm_run)(struct saina_ctx *c, const struct saina_job_conf *conf)
{
	struct SLOT *h, *e;
	struct INPUT *in;
	struct OUTPUT *b;
	int verdict;
	__u32 key;	/* of one look-up after the other: stack is scarce */
	void *map;

	if (!c || !conf)
		return VERDICT_DROP;
	c->out.reason = SAINA_C_REFERENCE;
	key = c->in.job * SAINA_WORKERS_MAX + c->in.worker;
	map = bpf_map_lookup_elem(&INPUT, &key);
	if (!map)
		return VERDICT_DROP;
	key = c->in.segment & (c->in.pool - 1);
	in = bpf_map_lookup_elem(map, &key);
	if (!in)
		return VERDICT_DROP;
	key = c->in.job;
	map = bpf_map_lookup_elem(&HOT, &key);
	if (!map)
		return VERDICT_DROP;
	key = c->in.segment & (c->in.pool - 1);
	h = bpf_map_lookup_elem(map, &key);
	if (!h)
		return VERDICT_DROP;
	c->in.exponent = shm_input_exponent(&in->head);
	if (SIZED(shm_add)(c, h, in)) {
		c->out.counted = SAINA_C_ADDED;
		return VERDICT_CONSUMED;
	}
	key = c->in.job;
	map = bpf_map_lookup_elem(&OUTPUT, &key);
	if (!map)
		return VERDICT_DROP;
	key = (c->in.round & (SAINA_OUTPUT_ROUNDS - 1)) * conf->segments + c->in.segment;
	b = bpf_map_lookup_elem(map, &key);
	if (!b)
		return VERDICT_DROP;
	c->out.reason = SAINA_C_INTERNAL;
	key = c->in.job;
	map = bpf_map_lookup_elem(&RING, &key);
	if (!map)
		return VERDICT_DROP;
	key = (c->in.round & (conf->ring - 1)) * conf->segments + c->in.segment;
	e = bpf_map_lookup_elem(map, &key);
	if (!e)
		return VERDICT_DROP;

	if (h->meta.parts)
		slot_find_parts(c, &h->meta);
	verdict = SIZED(slot_try)(c, h, e, (void *)in, (void *)b);
	if (verdict == VERDICT_MISS) {
		verdict = round_permit(c, conf);
		if (verdict == VERDICT_STALE &&
		    SIZED(slot_step)(c, h, e, (void *)in, (void *)b) == VERDICT_RESULT)
			return VERDICT_RESULT;
		if (verdict != VERDICT_MISS)
			return verdict;
		if (c->latch.parts)
			slot_find_parts(c, &h->meta);
		verdict = SIZED(slot_try)(c, h, e, (void *)in, (void *)b);
		if (!c->latch.opened)
			round_undo(c);
	}
	if (verdict == VERDICT_RESULT_ALL) {
		if (!slot_is_nan(c->out.exponent))
			SIZED(sfcd_signs)(c, conf, e);
		round_account(c, conf);
	}
	return verdict;
}

#undef OUTPUT
#undef INPUT
