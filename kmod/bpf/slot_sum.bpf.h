/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sums of a slot of ELEMS elements; included by slot.bpf.h once per size, hence no include
 * guard.  With ELEMS_HALVED the elements are bfloat16, which saina.ko sums as float32: only
 * results have half the width.
 *
 * Functions that are not static are global to the verifier: it walks each once, whatever the
 * states and memory of the callers.
 */
#ifdef ELEMS_HALVED
#define SIZED(name)	CAT(name##_half_, ELEMS)
#define WORDS		(ELEMS / 2)
#define WORD(sum, i)	float_halves(((const __u64 *)(sum))[i])
#define FLOAT_SUM	saina_bf16_sum
#define BY_DOORBELL(c)		false
/* fewer at once: six calls deep share 512 bytes of stack */
#define UNROLL		_Pragma("clang loop unroll_count(4)")
#define UNROLL_FINISH	UNROLL
#else
#define SIZED(name)	CAT(name##_, ELEMS)
#define WORDS		ELEMS
#define WORD(sum, i)	((__u32)(sum)[i])
#define FLOAT_SUM	saina_f32_sum
#define BY_DOORBELL(c)		((c)->by_doorbell)
#define UNROLL		_Pragma("clang loop unroll_count(16)")
/* three streams at once: more of each would exceed the stack of a DOORBELL */
#define UNROLL_FINISH	_Pragma("clang loop unroll_count(8)")
#endif

static __always_inline void SIZED(copy)(__s32 *to, const __s32 *from)
{
	__u64 *d = (__u64 *)to;
	const __u64 *s = (const __u64 *)from;

	UNROLL
	for (__u32 i = 0; i < WORDS / 2; i++)
		d[i] = s[i];
}

static __always_inline void SIZED(sum)(__s32 *sum, const __s32 *in)
{
	UNROLL
	for (__u32 i = 0; i < WORDS; i++)
		sum[i] += in[i];
}

/*
 * The sum at the coarser of two scales: the finer integers are shifted, @coarser: those of the
 * sum, else those of the input.  One loop for both, which the verifier walks once.
 */
static __always_inline void SIZED(sum_mixed)(__s32 *sum, const __s32 *in, __u32 less, bool coarser)
{
	const __s32 *finer = coarser ? sum : in, *other = coarser ? in : sum;

	UNROLL
	for (__u32 i = 0; i < WORDS; i++)
		sum[i] = slot_shift(finer[i], less) + (__u32)other[i];
}

/* The same of pairs of int16. */
static __always_inline void SIZED(sum_mixed_pairs)(__s32 *sum, const __s32 *in, __u32 less,
						   bool coarser)
{
	const __s32 *finer = coarser ? sum : in, *other = coarser ? in : sum;
	const __u32 mask = slot_pair_mask(less), bias = slot_pair_bias(less);

	UNROLL
	for (__u32 i = 0; i < WORDS; i++)
		sum[i] = slot_shift_pair(finer[i], less, mask) + (__u32)other[i] - bias;
}

/* The loops that make a result leave it in the ring and in the output, and
 * return its checksum (not folded).  The hot slot's sums are dead from then
 * on: as long as it has the tag, so has the ring entry.
 */
static __always_inline __u64 SIZED(finish_add)(const __s32 *sum, const __s32 *in, __s32 *ring,
					       __s32 *out)
{
	__u64 csum = 0;

	UNROLL_FINISH
	for (__u32 i = 0; i < WORDS; i++) {
		__u32 v = (__u32)sum[i] + (__u32)in[i];

		ring[i] = v;
		out[i] = v;
		csum += v;
	}
	return csum;
}

static __always_inline __u64 SIZED(finish)(const __s32 *sum, __s32 *ring, __s32 *out)
{
	__u64 csum = 0;

	UNROLL_FINISH
	for (__u32 i = 0; i < WORDS; i++) {
		__u32 v = WORD(sum, i);

		ring[i] = v;
		out[i] = v;
		csum += v;
	}
	return csum;
}

/* The result of a segment with a NaN is zeros, its exponent says so; with types that differ, @ints
 * comes first.
 */
static __always_inline __u64 SIZED(finish_nan)(__s32 *ring, __s32 *out, __u64 ints)
{
	__u64 *r = (__u64 *)ring, *o = (__u64 *)out;

	UNROLL
	for (__u32 i = 0; i < WORDS / 2; i++) {
		r[i] = 0;
		o[i] = 0;
	}
	r[0] = ints;
	o[0] = ints;
	return (__u32)ints + (ints >> 32);
}

#ifndef ELEMS_HALVED
/* slot_add_mixed_ELEMS() - as slot_add_ELEMS(), of exponents that seem to differ */
__noinline int SIZED(slot_add_mixed)(const struct ctx_in *in, struct saina_slot_meta *h,
				     struct SIZED(payload) *sum, const struct SIZED(payload) *p)
{
	__u32 w, lock;
	struct saina_slot_lock *lk;
	struct saina_counted *cnt;
	int added = SLOT_NOT_ADDED;
	__s32 difference;

	if (!in || !h || !sum || !p)
		return SLOT_NOT_ADDED;
	w = in->worker;
	lock = in->lock;
	lk = bpf_map_lookup_elem(&saina_locks, &lock);
	cnt = map_counted(in->job, in->segment);
	if (!lk || !cnt)
		return SLOT_NOT_ADDED;
	asm volatile("" : "+r"(w));
	w &= SAINA_WORKERS_MAX - 1;

	bpf_spin_lock(&lk->lock);
	difference = h->exponent - in->exponent;
	/* without the check of @difference the verifier walks the loop twice */
	if (difference && exponent_is_scale(h->exponent) && exponent_is_scale(in->exponent) &&
	    slot_is_waiting(h, in)) {
		h->seen |= in->bit;
		h->count++;
		cnt->last[w] = in->round + 1;
		SIZED(sum_mixed)(sum->v, p->v, slot_shift_less(difference), difference > 0);
		/* behind the loop, which the verifier would walk for each of its branches */
		asm volatile("" : : : "memory");
		added = SLOT_ADDED + slot_take_scale(h, in, h->exponent > in->exponent);
	}
	bpf_spin_unlock(&lk->lock);
	return added;
}

/*
 * slot_add_ELEMS() - the fast path of a gradient: enum slot_added
 *
 * Few calls: on machines that mitigate return speculation each return costs more than a
 * look-up.
 */
__noinline int SIZED(slot_add)(struct ctx_in *in, const struct SIZED(payload) *p)
{
	__u32 job, slot, w, lock;
	struct saina_slot_lock *lk;
	void *hot;
	struct saina_counted *cnt;
	struct SLOT *h;
	bool plain;

	if (!in || !p)
		return SLOT_NOT_ADDED;
	job = in->job;
	slot = in->segment & (in->pool - 1);
	w = in->worker;
	lock = in->lock;
	lk = bpf_map_lookup_elem(&saina_locks, &lock);
	hot = bpf_map_lookup_elem(&HOT, &job);
	if (!lk || !hot)
		return SLOT_NOT_ADDED;
	h = bpf_map_lookup_elem(hot, &slot);
	/* without the lock, to reject most others early.  Segment 0 is timed. */
	if (!h || h->meta.round != in->round || h->meta.count + 1 >= h->meta.k || !in->segment ||
	    in->uplink & UPLINK_SENDER)
		return SLOT_NOT_ADDED;
	/* coarse: up to a tick behind, but cheap; a later PULL completes the slot */
	in->now = h->meta.deadline ? bpf_ktime_get_coarse_ns() : 0;
	if (h->meta.exponent != in->exponent)
		return slot_has_pairs(in) || in->weight ?
			       SLOT_NOT_ADDED :
			       SIZED(slot_add_mixed)(in, &h->meta, (void *)h->sum, p);
	cnt = map_counted(job, in->segment);
	if (!cnt)
		return SLOT_NOT_ADDED;
	asm volatile("" : "+r"(w));
	w &= SAINA_WORKERS_MAX - 1;

	bpf_spin_lock(&lk->lock);
	plain = slot_is_plain(&h->meta, in);
	if (plain) {
		h->meta.seen |= in->bit;
		h->meta.count++;
		cnt->last[w] = in->round + 1;
		SIZED(sum)(h->sum, p->v);
		/* behind the loop, or the verifier walks that for each of its values */
		h->meta.weight += in->weight;
	}
	bpf_spin_unlock(&lk->lock);
	return plain ? SLOT_ADDED : SLOT_NOT_ADDED;
}

/*
 * slot_ask_reply_ELEMS() - state of SAINA_ASK_SEGMENTS segments, into c->ask
 *
 * Return: 0: it is unknown, because the job has no ring while that is replaced
 */
__noinline int SIZED(slot_ask_reply)(struct saina_ctx *c, const struct saina_job_conf *conf)
{
	void *hot, *ring, *counted;
	__u32 job;

	if (!c || !conf)
		return 0;
	job = c->in.job;
	hot = bpf_map_lookup_elem(&HOT, &job);
	ring = bpf_map_lookup_elem(&RING, &job);
	counted = bpf_map_lookup_elem(&saina_counted, &job);
	if (!hot || !ring || !counted)
		return 0;
	for (__u32 i = 0; i < SAINA_ASK_SEGMENTS; i++) {
		__u32 segment = c->in.segment + i;
		__u32 slot = segment & (c->in.pool - 1);
		__u32 entry = (c->in.round & (conf->ring - 1)) * conf->segments + segment;
		const struct saina_counted *cnt;
		const struct SLOT *h, *e;

		cnt = bpf_map_lookup_elem(counted, &segment);
		h = bpf_map_lookup_elem(hot, &slot);
		e = bpf_map_lookup_elem(ring, &entry);
		if (!cnt || !h || !e)
			break;
		if (!i)
			c->out.last = cnt->last[c->in.worker & (SAINA_WORKERS_MAX - 1)];
		slot_peek(c, i, &h->meta, &e->meta, cnt);
	}
	return 1;
}
#endif

/*
 * Everything under the slot's lock, also by reference: in a separate function the verifier
 * would walk all the loops once more, and exceed its million steps.
 */
__noinline int SIZED(slot_step)(struct saina_ctx *c, struct SLOT *h, struct SLOT *e,
				struct SIZED(buffer) *in, struct SIZED(buffer) *out)
{
	struct saina_slot_lock *lk;
	struct saina_counted *cnt;
	bool done = true;
	__u64 csum = 0;
	__u32 lock;
	int action;

	if (!c || !h || !e || !in || !out)
		return VERDICT_DROP;
	lock = c->in.lock;
	lk = bpf_map_lookup_elem(&saina_locks, &lock);
	cnt = map_counted(c->in.job, c->in.segment);
	if (!lk || !cnt)
		return VERDICT_DROP;

	/* a slot that opens now cannot have expired */
	if (h->meta.deadline || !c->in.segment)
		c->in.now = bpf_ktime_get_ns();

	bpf_spin_lock(&lk->lock);
	if (BY_DOORBELL(c) && !c->in.pull && !shm_take_input(&in->input, c)) {
		action = SLOT_DO_NOTHING;
	} else if (slot_is_mixed(&h->meta, &c->in)) {
		c->out.verdict = VERDICT_RETRY;
		action = SLOT_DO_NOTHING;
	} else {
		action = slot_decide(c, &h->meta, &e->meta, cnt);
		if (action == SLOT_DO_TAKE)
			action = slot_take_result(c, &h->meta, cnt);
	}
	action = through_memory(&c->latch.action, action);
	if (action >= SLOT_DO_FINISH)
		slot_unpublish(&e->meta);
	switch (action) {
#ifndef ELEMS_HALVED
	case SLOT_DO_STORE:
		SIZED(copy)(h->sum, in->v);
		done = false;
		break;
	case SLOT_DO_ADD:
		SIZED(sum)(h->sum, in->v);
		done = false;
		break;
	case SLOT_DO_FINISH_STORE:
		csum = SIZED(finish)(in->v, e->sum, out->v);
		break;
	case SLOT_DO_FINISH_ADD:
		csum = SIZED(finish_add)(h->sum, in->v, e->sum, out->v);
		break;
#endif
	case SLOT_DO_FINISH_NAN:
		csum = SIZED(finish_nan)(e->sum, out->v, slot_integers(&h->meta));
		break;
	case SLOT_DO_FINISH:
		csum = SIZED(finish)(h->sum, e->sum, out->v);
		break;
	case SLOT_DO_READ:
		done = false;
		if (!BY_DOORBELL(c))
			SIZED(copy)(out->v, e->sum);
		break;
	default:
		done = false;
	}
	if (done)
		slot_done(c, &h->meta, &e->meta, cnt, csum);
	else if (c->latch.away)
		slot_set_state(&h->meta, SAINA_SLOT_AWAY);
	bpf_spin_unlock(&lk->lock);
	return c->out.verdict;
}

#ifndef ELEMS_HALVED
/*
 * slot_mixed_ELEMS() - a gradient with another exponent than the slot's; as slot_step_ELEMS()
 *
 * The coarser scale is kept: the finer integers are shifted, those of the input or those of the
 * slot.  Documentation/datapath.rst section 3.1.  VERDICT_RETRY: the exponents are the same, and
 * nothing has changed.
 */
__noinline int SIZED(slot_mixed)(struct saina_ctx *c, struct SLOT *h, struct SLOT *e,
				 const struct SIZED(buffer) *in, struct SIZED(buffer) *out)
{
	struct saina_slot_lock *lk;
	struct saina_counted *cnt;
	__u32 lock, less, coarser;
	__u64 csum;
	int action;

	if (!c || !h || !e || !in || !out)
		return VERDICT_DROP;
	lock = c->in.lock;
	lk = bpf_map_lookup_elem(&saina_locks, &lock);
	cnt = map_counted(c->in.job, c->in.segment);
	if (!lk || !cnt)
		return VERDICT_DROP;
	if (h->meta.deadline || !c->in.segment)
		c->in.now = bpf_ktime_get_ns();

	bpf_spin_lock(&lk->lock);
	action = SLOT_DO_NOTHING;
	less = 0;
	coarser = false;
	if (BY_DOORBELL(c) && !shm_take_input(&in->input, c)) {
		/* c->out says why */
	} else if (!slot_is_mixed(&h->meta, &c->in)) {
		c->out.verdict = VERDICT_RETRY;
	} else {
		int difference = h->meta.exponent - c->in.exponent;

		less = slot_shift_less(difference);
		if (slot_has_pairs(&c->in) && less > PAIR_LESS_MAX)
			less = PAIR_LESS_MAX;
		coarser = difference > 0;
		action = slot_decide_open(c, &h->meta, cnt, true);
	}
	action = through_memory(&c->latch.action, action);
	less = through_memory(&c->latch.less, less) & 31;
	coarser = through_memory(&c->latch.coarser, coarser);
	if (action == SLOT_DO_ADD || action == SLOT_DO_FINISH_ADD) {
		if (slot_has_pairs(&c->in))
			SIZED(sum_mixed_pairs)(h->sum, in->v, less, coarser);
		else
			SIZED(sum_mixed)(h->sum, in->v, less, coarser);
	}
	/* a separate pass: two loops that add and finish are too many for the verifier */
	if (*(volatile __u32 *)&c->latch.action == SLOT_DO_FINISH_ADD) {
		/* some jumps, so that the verifier keeps a state here, and walks finish() once */
#pragma clang loop unroll(disable)
		for (__u32 i = 0; i < 4; i++)
			(void)*(volatile __u32 *)&h->meta.round;
		slot_unpublish(&e->meta);
		csum = SIZED(finish)(h->sum, e->sum, out->v);
		slot_done(c, &h->meta, &e->meta, cnt, csum);
	}
	if (c->latch.away)
		slot_set_state(&h->meta, SAINA_SLOT_AWAY);
	bpf_spin_unlock(&lk->lock);
	return c->out.verdict;
}
#endif

/* The choice between the two functions is made without the lock, so it may be wrong once. */
static __always_inline int SIZED(slot_try)(struct saina_ctx *c, struct SLOT *h, struct SLOT *e,
					   struct SIZED(buffer) *in,
					   struct SIZED(buffer) *out)
{
	int verdict = VERDICT_RETRY;

#ifndef ELEMS_HALVED
	if (slot_is_mixed(&h->meta, &c->in))
		verdict = SIZED(slot_mixed)(c, h, e, in, out);
	if (verdict == VERDICT_RETRY)
		verdict = SIZED(slot_step)(c, h, e, in, out);
	if (verdict == VERDICT_RETRY)
		verdict = SIZED(slot_mixed)(c, h, e, in, out);
#else
	verdict = SIZED(slot_step)(c, h, e, in, out);
#endif
	if (verdict != VERDICT_RETRY)
		return verdict;
	c->out.reason = SAINA_C_SLOT_BUSY;
	return VERDICT_DROP;
}

/* A message through its slot, whose round opens if need be. */
static __always_inline int SIZED(slot_enter)(struct saina_ctx *c, const struct saina_job_conf *conf,
					     struct SLOT *h, struct SLOT *e,
					     struct SIZED(buffer) *in,
					     struct SIZED(buffer) *out)
{
	int verdict;

	/* here, to save stack: slot_step() has the most of it */
	if (h->meta.parts)
		slot_find_parts(c, &h->meta);
	verdict = SIZED(slot_try)(c, h, e, in, out);
	if (verdict != VERDICT_MISS)
		return verdict;
	verdict = c->in.pull ? round_missed(c) : round_permit(c, conf);
	/* the result may have been made, and its round have passed, between the two locks */
	if (verdict == VERDICT_STALE && SIZED(slot_step)(c, h, e, in, out) == VERDICT_RESULT)
		return VERDICT_RESULT;
	if (verdict != VERDICT_MISS)
		return verdict;
	if (c->latch.parts)
		slot_find_parts(c, &h->meta);
	verdict = SIZED(slot_try)(c, h, e, in, out);
	if (!c->latch.opened)
		round_undo(c);
	return verdict;
}

/* Its result is made.  No round can take the ring entry before this one is accounted for. */
static __always_inline void
SIZED(slot_finished)(struct saina_ctx *c, const struct saina_job_conf *conf, const struct SLOT *e)
{
	if (!exponent_is_nan(c->out.exponent))
		SIZED(sfcd_signs)(c, conf, e);
	round_account(c, conf);
}

/*
 * slot_run_ELEMS() - a GRAD or PULL through its slot
 * @c: the message
 * @conf: its job's snapshot
 * @in: its payload, SHM_HEAD_LEN bytes on; each element is read once, and none is written
 * @out: for the result, if the verdict says so, likewise; may be @in
 */
__noinline int SIZED(slot_run)(struct saina_ctx *c, const struct saina_job_conf *conf,
			       struct SIZED(buffer) *in, struct SIZED(buffer) *out)
{
	__u32 job, slot, entry;
	struct SLOT *h, *e;
	void *hot, *ring;
	int verdict;

	if (!c || !conf || !in || !out)
		return VERDICT_DROP;
	job = c->in.job;
	slot = c->in.segment & (c->in.pool - 1);
	entry = (c->in.round & (conf->ring - 1)) * conf->segments + c->in.segment;
	hot = bpf_map_lookup_elem(&HOT, &job);
	ring = bpf_map_lookup_elem(&RING, &job);
	if (!hot || !ring)
		return VERDICT_DROP;
	h = bpf_map_lookup_elem(hot, &slot);
	e = bpf_map_lookup_elem(ring, &entry);
	if (!h || !e)
		return VERDICT_DROP;

	verdict = SIZED(slot_enter)(c, conf, h, e, in, out);
#ifdef SAINA_KMOD
	if (verdict == VERDICT_CLAIMED) {
		c->latch.failed = FLOAT_SUM(h, sizeof(*h), in->v, sizeof(in->v),
					    float_tag(&c->in)) != 0;
		verdict = SIZED(slot_step)(c, h, e, in, out);
	}
#endif
	if (verdict == VERDICT_RESULT_ALL)
		SIZED(slot_finished)(c, conf, e);
	return verdict;
}

#undef UNROLL_FINISH
#undef UNROLL
#undef BY_DOORBELL
#undef FLOAT_SUM
#undef WORD
#undef WORDS
#undef SIZED
