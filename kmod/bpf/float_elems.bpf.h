/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Slot machine for messages of ELEMS floats of FLOAT_BITS; included by float.bpf.h once
 * per size and type, hence no include guard.  What differs from slot_elems.bpf.h and
 * why: float.bpf.h.
 */
#define CAT_(a, b, c)	a##b##_##c
#define CAT(a, b, c)	CAT_(a, b, c)
#define SLOT		CAT(saina_, slot, ELEMS)
#define HOT		CAT(saina_, hot, ELEMS)
#define RING		CAT(saina_, ring, ELEMS)
#if FLOAT_BITS == 32
#define TYPED(name)	CAT(f32_, name, ELEMS)
#define WORDS		ELEMS
#define FLOAT_SUM	saina_f32_sum
#else
#define TYPED(name)	CAT(bf16_, name, ELEMS)
#define WORDS		(ELEMS / 2)
#define FLOAT_SUM	saina_bf16_sum
#endif

struct TYPED(payload) {
	__u32 w[WORDS];
};

/* The sums as the wire has them, into the ring and the payload; returns their
 * checksum (not folded). */
static __always_inline __u64 TYPED(finish)(const struct SLOT *h, struct SLOT *e,
					   struct TYPED(payload) *p)
{
	__u64 csum = 0;

#pragma clang loop unroll_count(16)
	for (__u32 i = 0; i < WORDS; i++) {
#if FLOAT_BITS == 32
		__u32 v = h->sum[i];
#else
		__u32 v = float_halves(((const __u64 *)h->sum)[i]);
#endif

		e->sum[i] = v;
		p->w[i] = v;
		csum += v;
	}
	return csum;
}

static __always_inline void TYPED(read)(const struct SLOT *e, struct TYPED(payload) *p)
{
	const __u64 *s = (const __u64 *)e->sum;
	__u64 *d = (__u64 *)p->w;

#pragma clang loop unroll_count(16)
	for (__u32 i = 0; i < WORDS / 2; i++)
		d[i] = s[i];
}

/* Under the slot's lock, before the addition. */
__noinline int TYPED(claim)(struct slot_call *c, struct SLOT *h, struct SLOT *e,
			    struct saina_counted *cnt, struct TYPED(payload) *p)
{
	struct saina_slot_lock *lk;
	__u32 round, w, lock;
	int verdict;

	if (!c || !h || !e || !cnt || !p)
		return SLOT_DROP;
	lock = c->lock;
	lk = bpf_map_lookup_elem(&saina_locks, &lock);
	if (!lk)
		return SLOT_DROP;
	round = c->round;
	w = c->worker & (SAINA_WORKERS_MAX - 1);

	bpf_spin_lock(&lk->lock);
	if (h->meta.round == round && h->meta.segment == c->segment &&
	    h->meta.state != SAINA_SLOT_EMPTY) {
		if (h->meta.state == SAINA_SLOT_DONE)
			goto from_ring;
		verdict = float_claim(c, &h->meta);
		if (verdict == SLOT_CLAIMED)
			cnt->last[w] = round + 1;
		goto unlock;
	}
	if (e->meta.state == SAINA_SLOT_DONE && e->meta.round == round)
		goto from_ring;
	verdict = float_open(c, &h->meta);
	if (verdict == SLOT_CLAIMED)
		cnt->last[w] = round + 1;
	goto unlock;

from_ring:
	slot_answer_from(c, &e->meta);
	c->last = cnt->last[w];
	TYPED(read)(e, p);
	verdict = SLOT_ANSWER;
unlock:
	bpf_spin_unlock(&lk->lock);
	return verdict;
}

/*
 * Under the slot's lock, after the addition, and for a PULL or duplicate that may find
 * the slot complete.  SLOT_RESULT: it is DONE now.
 */
__noinline int TYPED(commit)(struct slot_call *c, struct SLOT *h, struct SLOT *e,
			     struct saina_counted *cnt, struct TYPED(payload) *p)
{
	struct saina_slot_lock *lk;
	struct saina_job_rt *rt;
	__u32 w, lock, job;
	bool complete;
	__u64 csum;

	if (!c || !h || !e || !cnt || !p)
		return SLOT_DROP;
	lock = c->lock;
	job = c->job;
	lk = bpf_map_lookup_elem(&saina_locks, &lock);
	rt = bpf_map_lookup_elem(&saina_rt, &job);
	if (!lk || !rt)
		return SLOT_DROP;
	w = c->worker & (SAINA_WORKERS_MAX - 1);

	bpf_spin_lock(&lk->lock);
	complete = float_commit(c, &h->meta);
	if (complete) {
		csum = TYPED(finish)(h, e, p);
		/* The policy in rt stays while this slot counts as open. */
		h->meta.flags = (h->meta.count < h->meta.k ? SAINA_F_DEGRADED : 0) |
				(rt->policy.late == SAINA_LATE_DROP ? SAINA_F_DROP_LATE : 0);
		h->meta.csum = csum_fold64(csum);
		h->meta.state = SAINA_SLOT_DONE;
		e->meta = h->meta;
		slot_answer_from(c, &e->meta);
		c->last = cnt->last[w];
	}
	bpf_spin_unlock(&lk->lock);
	if (complete)
		return SLOT_RESULT;
	return c->claimed && !c->failed ? SLOT_KEPT : SLOT_DROP;
}

#if FLOAT_BITS == 16
#define SIGNS		TYPED(signs)
#define SIGNS_PAYLOAD	TYPED(payload)
#define SIGNS_ELEM	__u16
#include "sign_elems.bpf.h"
#endif

/* As slot_run_ELEMS(). */
static __always_inline int TYPED(run)(struct slot_call *c, const struct saina_job_conf *conf,
				      struct TYPED(payload) *p)
{
	struct saina_counted *cnt;
	struct SLOT *h, *e;
	void *hot, *ring, *counted;
	__u32 job = c->job;
	__u32 segment = c->segment;
	__u32 pool = conf->pool;
	__u32 slot = segment & (pool - 1);
	__u32 entry = segment * conf->ring + (c->round & (conf->ring - 1));
	int verdict;

	hot = bpf_map_lookup_elem(&HOT, &job);
	ring = bpf_map_lookup_elem(&RING, &job);
	counted = bpf_map_lookup_elem(&saina_counted, &job);
	if (!hot || !ring || !counted)
		return SLOT_DROP;
	h = bpf_map_lookup_elem(hot, &slot);
	e = bpf_map_lookup_elem(ring, &entry);
	cnt = bpf_map_lookup_elem(counted, &segment);
	if (!h || !e || !cnt)
		return SLOT_DROP;

	c->pool = pool;
	verdict = TYPED(claim)(c, h, e, cnt, p);
	if (verdict == SLOT_MISS) {
		verdict = c->pull ? round_missed(c) : round_permit(c, conf);
		if (verdict == SLOT_STALE)
			c->last = cnt->last[c->worker & (SAINA_WORKERS_MAX - 1)];
		if (verdict != SLOT_MISS)
			return verdict;
		verdict = TYPED(claim)(c, h, e, cnt, p);
		if (!c->opened)
			round_undo(c);
	}
	if (verdict == SLOT_CLAIMED && c->claimed)
		c->failed = FLOAT_SUM(h, sizeof(*h), p, sizeof(*p), float_tag(c)) != 0;
	if (verdict == SLOT_CLAIMED)
		verdict = TYPED(commit)(c, h, e, cnt, p);
	if (verdict == SLOT_RESULT) {
#if FLOAT_BITS == 32
		CAT(slot_, signs, ELEMS)(c, conf, (void *)p);
#else
		TYPED(signs)(c, conf, p);
#endif
		round_account(c, conf);
	}
	return verdict;
}

#undef FLOAT_SUM
#undef WORDS
#undef TYPED
#undef RING
#undef HOT
#undef SLOT
#undef CAT
#undef CAT_
