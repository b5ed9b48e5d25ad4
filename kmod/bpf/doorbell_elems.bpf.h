/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A segment of a DOORBELL through the slot machine: as slot_elems.bpf.h, which includes this,
 * but the gradient lies in the worker's input array and the result goes to the board, each
 * behind a head.
 * Documentation/datapath.rst section 8.3.
 */
#define INPUT		CAT(saina_input_, ELEMS)
#define BOARD		CAT(saina_output_, ELEMS)

/* The common case, as slot_add_ELEMS(). */
static __always_inline bool SIZED(doorbell_add)(struct slot_call *c, struct SLOT *h,
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
	plain = slot_take_input(&in->head, c) && slot_is_plain(&h->meta, &c->in);
	if (plain) {
		h->meta.seen |= c->in.bit;
		h->meta.count++;
		cnt->last[w] = c->in.round + 1;
		SIZED(sum)(h->sum, in->v);
	}
	bpf_spin_unlock(&lk->lock);
	return plain;
}

/* doorbell_run_ELEMS() - a segment of a DOORBELL; @conf as slot_run_ELEMS() */
__noinline int SIZED(doorbell_run)(struct slot_call *c, const struct saina_job_conf *conf)
{
	struct SLOT *h, *e;
	struct INPUT *in;
	struct BOARD *b;
	int verdict;
	__u32 key;	/* of one look-up after the other: stack is scarce */
	void *map;

	if (!c || !conf)
		return SLOT_DROP;
	c->out.reason = SAINA_C_REFERENCE;
	key = c->in.job * SAINA_WORKERS_MAX + c->in.worker;
	map = bpf_map_lookup_elem(&INPUT, &key);
	if (!map)
		return SLOT_DROP;
	key = c->in.segment & (c->in.pool - 1);
	in = bpf_map_lookup_elem(map, &key);
	if (!in)
		return SLOT_DROP;
	key = c->in.job;
	map = bpf_map_lookup_elem(&HOT, &key);
	if (!map)
		return SLOT_DROP;
	key = c->in.segment & (c->in.pool - 1);
	h = bpf_map_lookup_elem(map, &key);
	if (!h)
		return SLOT_DROP;
	c->in.exponent = slot_input_exponent(&in->head);
	if (SIZED(doorbell_add)(c, h, in)) {
		c->out.counted = SAINA_C_ADDED;
		return SLOT_KEPT;
	}
	key = c->in.job;
	map = bpf_map_lookup_elem(&BOARD, &key);
	if (!map)
		return SLOT_DROP;
	key = (c->in.round & (SAINA_OUTPUT_ROUNDS - 1)) * conf->segments + c->in.segment;
	b = bpf_map_lookup_elem(map, &key);
	if (!b)
		return SLOT_DROP;
	c->out.reason = SAINA_C_INTERNAL;
	key = c->in.job;
	map = bpf_map_lookup_elem(&RING, &key);
	if (!map)
		return SLOT_DROP;
	key = (c->in.round & (conf->ring - 1)) * conf->segments + c->in.segment;
	e = bpf_map_lookup_elem(map, &key);
	if (!e)
		return SLOT_DROP;

	if (h->meta.parts)
		slot_look_at_parts(c, &h->meta);
	verdict = SIZED(slot_try)(c, h, e, (void *)in, (void *)b);
	if (verdict == SLOT_MISS) {
		verdict = round_permit(c, conf);
		if (verdict == SLOT_STALE &&
		    SIZED(slot_step)(c, h, e, (void *)in, (void *)b) == SLOT_ANSWER)
			return SLOT_ANSWER;
		if (verdict != SLOT_MISS)
			return verdict;
		if (c->latch.parts)
			slot_look_at_parts(c, &h->meta);
		verdict = SIZED(slot_try)(c, h, e, (void *)in, (void *)b);
		if (!c->latch.opened)
			round_undo(c);
	}
	if (verdict == SLOT_RESULT) {
		if (!slot_is_nan(c->out.exponent))
			SIZED(slot_signs)(c, conf, e);
		round_account(c, conf);
	}
	return verdict;
}

#undef BOARD
#undef INPUT
