/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A segment of a DOORBELL or FETCH; included by shm.bpf.h once per size, hence no include guard.
 * As slot_run_ELEMS(), but the gradient is in the worker's input array, behind a head, and the
 * result is where it is kept for everybody: workers have mapped the ring.
 */
#define SIZED(name)	CAT(name##_, ELEMS)

/* The common case, as slot_add_ELEMS(). */
static __always_inline bool SIZED(shm_add)(struct saina_ctx *c, struct SLOT *h,
					   const struct INPUT *in)
{
	struct saina_slot_lock *lk;
	struct saina_counted *cnt;
	__u32 lock = c->in.lock, w = c->in.worker;
	bool plain;

	if (h->meta.round != c->in.round || h->meta.count + 1 >= h->meta.k || !c->in.segment ||
	    c->in.uplink & UPLINK_SENDER || h->meta.exponent != c->in.exponent)
		return false;
	c->in.now = h->meta.deadline ? bpf_ktime_get_coarse_ns() : 0;
	lk = bpf_map_lookup_elem(&saina_locks, &lock);
	cnt = map_counted(c->in.job, c->in.segment);
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

/* shm_run_ELEMS() - a segment of a DOORBELL or FETCH; @conf as slot_run_ELEMS() */
__noinline int SIZED(shm_run)(struct saina_ctx *c, const struct saina_job_conf *conf)
{
	struct SLOT *h, *e;
	struct INPUT *in;
	int verdict;
	__u32 key;	/* shared by all look-ups, to save stack */
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
	if (!c->in.pull && SIZED(shm_add)(c, h, in)) {
		c->out.counted = SAINA_C_ADDED;
		return VERDICT_CONSUMED;
	}
	key = c->in.job;
	map = bpf_map_lookup_elem(&RING, &key);
	if (!map)
		return VERDICT_DROP;
	c->out.reason = SAINA_C_INTERNAL;
	key = (c->in.round & (conf->ring - 1)) * conf->segments + c->in.segment;
	e = bpf_map_lookup_elem(map, &key);
	if (!e)
		return VERDICT_DROP;

	verdict = SIZED(slot_enter)(c, conf, h, e, (void *)in, (void *)e);
	if (verdict == VERDICT_RESULT_ALL)
		SIZED(slot_finished)(c, conf, e);
	return verdict;
}

#undef SIZED
