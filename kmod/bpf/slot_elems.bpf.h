/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Slot machine for messages of ELEMS elements; included by slot.bpf.h once per
 * size, hence no include guard.
 *
 * The functions that are not static are global functions in the sense of the
 * verifier: verified once on their own, whatever the callers' states.
 */
#define CAT_(a, b)	a##b
#define CAT(a, b)	CAT_(a, b)
#define SIZED(name)	CAT(name##_, ELEMS)

struct SIZED(payload) {
	__s32	v[ELEMS];
};

/* First packet of a slot: its payload is stored, whatever was there. */
static __always_inline void SIZED(store)(struct SIZED(saina_slot) *to,
					 const struct SIZED(payload) *p)
{
	__u64 *d = (__u64 *)to->sum;
	const __u64 *s = (const __u64 *)p->v;

#pragma clang loop unroll_count(16)
	for (__u32 i = 0; i < ELEMS / 2; i++)
		d[i] = s[i];
}

static __always_inline void SIZED(add)(struct SIZED(saina_slot) *to,
				       const struct SIZED(payload) *p)
{
#pragma clang loop unroll_count(16)
	for (__u32 i = 0; i < ELEMS; i++)
		to->sum[i] += p->v[i];
}

/* The loops that make a result leave it in the ring and in the payload, and
 * return its checksum (not folded).  The hot slot's sums are dead from then
 * on: as long as it has the tag, so has the ring entry. */
static __always_inline __u64 SIZED(finish_add)(const struct SIZED(saina_slot) *h,
					       struct SIZED(saina_slot) *e,
					       struct SIZED(payload) *p)
{
	__u64 csum = 0;

#pragma clang loop unroll_count(16)
	for (__u32 i = 0; i < ELEMS; i++) {
		__u32 v = (__u32)h->sum[i] + (__u32)p->v[i];

		e->sum[i] = v;
		p->v[i] = v;
		csum += v;
	}
	return csum;
}

static __always_inline __u64 SIZED(finish)(const __s32 *sum, struct SIZED(saina_slot) *e,
					   struct SIZED(payload) *p)
{
	__u64 csum = 0;

#pragma clang loop unroll_count(16)
	for (__u32 i = 0; i < ELEMS; i++) {
		__u32 v = sum[i];

		e->sum[i] = v;
		p->v[i] = v;
		csum += v;
	}
	return csum;
}

static __always_inline void SIZED(read)(const struct SIZED(saina_slot) *e,
					struct SIZED(payload) *p)
{
	const __u64 *s = (const __u64 *)e->sum;
	__u64 *d = (__u64 *)p->v;

#pragma clang loop unroll_count(16)
	for (__u32 i = 0; i < ELEMS / 2; i++)
		d[i] = s[i];
}

/**
 * slot_add_ELEMS() - the common case, cut short
 *
 * One more gradient into a slot that is open for it, does not complete with it
 * and has nothing unusual about it: true.  False changes nothing: slot_run_ELEMS()
 * must have it.  With all members alive, k is at most their number, so below k
 * contributors the slot cannot be complete.  Few calls: each return costs more than
 * a look-up on machines that mitigate return speculation.
 */
static __always_inline bool SIZED(slot_add)(const struct slot_key *m,
					    const struct saina_job_conf *conf,
					    const struct SIZED(payload) *p)
{
	__u32 job = m->job, segment = m->segment, round = m->round, w = m->worker;
	__u32 slot = segment & (conf->pool - 1);
	__u32 lock = (conf->lock_base + slot) & (SAINA_LOCKS - 1);
	struct saina_slot_lock *lk = bpf_map_lookup_elem(&saina_locks, &lock);
	void *hot = bpf_map_lookup_elem(&SIZED(saina_hot), &job);
	void *counted = bpf_map_lookup_elem(&saina_counted, &job);
	__u64 bit = 1ull << (w & (SAINA_WORKERS_MAX - 1));
	__u64 active = conf->active;
	struct SIZED(saina_slot) *h;
	struct saina_counted *cnt;
	bool fit;

	if (!lk || !hot || !counted)
		return false;
	h = bpf_map_lookup_elem(hot, &slot);
	/* a glance without the lock: most others are seen here */
	if (!h || h->meta.round != round || h->meta.count + 1 >= h->meta.k)
		return false;
	cnt = bpf_map_lookup_elem(counted, &segment);
	if (!cnt)
		return false;
	asm volatile("" : "+r"(w));
	w &= SAINA_WORKERS_MAX - 1;

	bpf_spin_lock(&lk->lock);
	fit = h->meta.state == SAINA_SLOT_OPEN && h->meta.round == round &&
	      h->meta.segment == segment && h->meta.count + 1 < h->meta.k &&
	      h->meta.exponent == m->exponent && !(h->meta.seen & bit) &&
	      !(h->meta.members & ~active);
	if (fit) {
		h->meta.seen |= bit;
		h->meta.count++;
		cnt->last[w] = round + 1;
		SIZED(add)(h, p);
	}
	bpf_spin_unlock(&lk->lock);
	return fit;
}

/* All that happens under the slot's lock. */
__noinline int SIZED(slot_locked)(struct slot_call *c, struct SIZED(saina_slot) *h,
		       struct SIZED(saina_slot) *e, struct saina_counted *cnt,
		       struct SIZED(payload) *p)
{
	struct saina_slot_lock *lk;
	struct saina_job_rt *rt;
	__u32 round, w, lock, job;
	__u64 csum;
	int verdict;

	if (!c || !h || !e || !cnt || !p)
		goto internal;
	lock = c->lock;
	job = c->job;
	lk = bpf_map_lookup_elem(&saina_locks, &lock);
	rt = bpf_map_lookup_elem(&saina_rt, &job);
	if (!lk || !rt)
		goto internal;
	round = c->round;
	w = c->worker & (SAINA_WORKERS_MAX - 1);

	bpf_spin_lock(&lk->lock);
	if (h->meta.round == round && h->meta.segment == c->segment &&
	    h->meta.state != SAINA_SLOT_EMPTY) {
		if (h->meta.state == SAINA_SLOT_DONE)
			goto from_ring;
		if (c->pull || (h->meta.seen & c->bit)) {
			if (!slot_complete(&h->meta, c->active)) {
				c->reason = c->pull ? SAINA_C_PULL_EARLY : SAINA_C_DUPLICATE;
				verdict = SLOT_DROP;
				goto unlock;
			}
			csum = SIZED(finish)(h->sum, e, p);
			goto done;
		}
		if (h->meta.exponent != c->exponent) {
			c->reason = SAINA_C_EXPONENT;
			verdict = SLOT_DROP;
			goto unlock;
		}
		h->meta.seen |= c->bit;
		h->meta.count++;
		cnt->last[w] = round + 1;
		c->counted = SAINA_C_ADDED;
		if (slot_complete(&h->meta, c->active)) {
			csum = SIZED(finish_add)(h, e, p);
			goto done;
		}
		SIZED(add)(h, p);
		verdict = SLOT_KEPT;
		goto unlock;
	}
	if (e->meta.state == SAINA_SLOT_DONE && e->meta.round == round)
		goto from_ring;
	c->busy = slot_busy(&h->meta, c);
	if (!c->permitted) {
		verdict = SLOT_MISS;
		goto unlock;
	}
	if (c->busy) {
		/* somebody was faster between the two locks */
		c->reason = SAINA_C_SLOT_BUSY;
		verdict = SLOT_DROP;
		goto unlock;
	}
	h->meta.round = round;
	h->meta.segment = c->segment;
	h->meta.state = SAINA_SLOT_OPEN;
	h->meta.k = c->k;
	h->meta.count = 1;
	h->meta.exponent = c->exponent;
	h->meta.policy = c->policy;
	h->meta.seen = c->bit;
	h->meta.members = c->members;
	h->meta.opened_at = c->opened_at;
	h->meta.csum = 0;
	h->meta.flags = 0;
	cnt->last[w] = round + 1;
	c->opened = 1;
	c->counted = SAINA_C_STORED;
	if (slot_complete(&h->meta, c->active)) {
		csum = SIZED(finish)(p->v, e, p);
		goto done;
	}
	SIZED(store)(h, p);
	verdict = SLOT_KEPT;
	goto unlock;

from_ring:
	slot_answer_from(c, &e->meta);
	c->last = cnt->last[w];
	SIZED(read)(e, p);
	verdict = SLOT_ANSWER;
	goto unlock;

done:
	/* The policy in rt stays while this slot counts as open. */
	h->meta.flags = (h->meta.count < h->meta.k ? SAINA_F_DEGRADED : 0) |
			(rt->policy.late == SAINA_LATE_DROP ? SAINA_F_DROP_LATE : 0);
	h->meta.csum = csum_fold64(csum);
	h->meta.state = SAINA_SLOT_DONE;
	e->meta = h->meta;
	slot_answer_from(c, &e->meta);
	c->last = cnt->last[w];
	verdict = SLOT_RESULT;
unlock:
	bpf_spin_unlock(&lk->lock);
	return verdict;

internal:
	if (c)
		c->reason = SAINA_C_INTERNAL;
	return SLOT_DROP;
}

#define SIGNS		SIZED(slot_signs)
#define SIGNS_PAYLOAD	SIZED(payload)
#define SIGNS_ELEM	__u32
#include "sign_elems.bpf.h"

/**
 * slot_run_ELEMS() - a GRAD or PULL through the slot machine
 * @c: the message
 * @conf: its job's snapshot
 * @p: its payload; holds the result afterwards if the verdict says so
 */
static __always_inline int SIZED(slot_run)(struct slot_call *c, const struct saina_job_conf *conf,
					   struct SIZED(payload) *p)
{
	struct SIZED(saina_slot) *h, *e;
	struct saina_counted *cnt;
	void *hot, *ring, *counted;
	__u32 job = c->job;
	__u32 segment = c->segment;
	__u32 pool = conf->pool;
	__u32 slot = segment & (pool - 1);
	__u32 entry = segment * conf->ring + (c->round & (conf->ring - 1));
	int verdict;

	hot = bpf_map_lookup_elem(&SIZED(saina_hot), &job);
	ring = bpf_map_lookup_elem(&SIZED(saina_ring), &job);
	counted = bpf_map_lookup_elem(&saina_counted, &job);
	if (!hot || !ring || !counted)
		return SLOT_DROP;
	h = bpf_map_lookup_elem(hot, &slot);
	e = bpf_map_lookup_elem(ring, &entry);
	cnt = bpf_map_lookup_elem(counted, &segment);
	if (!h || !e || !cnt)
		return SLOT_DROP;

	c->pool = pool;
	verdict = SIZED(slot_locked)(c, h, e, cnt, p);
	if (verdict == SLOT_MISS) {
		verdict = c->pull ? round_missed(c) : round_permit(c, conf);
		if (verdict == SLOT_STALE)
			c->last = cnt->last[c->worker & (SAINA_WORKERS_MAX - 1)];
		if (verdict != SLOT_MISS)
			return verdict;
		verdict = SIZED(slot_locked)(c, h, e, cnt, p);
		if (!c->opened)
			round_undo(c);
	}
	if (verdict == SLOT_RESULT) {
		SIZED(slot_signs)(c, conf, p);
		round_account(c, conf);
	}
	return verdict;
}

#undef SIZED
#undef CAT
#undef CAT_
