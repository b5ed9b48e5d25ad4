/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The sums of table mode for messages of ELEMS elements; included by ps.bpf.h once per
 * size, hence no include guard.
 */
#define CAT_(a, b)	a##b
#define CAT(a, b)	CAT_(a, b)
#define SIZED(name)	CAT(name##_, ELEMS)
#define SLOT		CAT(saina_slot_, ELEMS)
#define RING		CAT(saina_ring_, ELEMS)
#define VIEW		CAT(saina_view_, ELEMS)

/*
 * ps_run_ELEMS() - an INC or READ that its clock has let through
 * @c: the message
 * @conf: its job's snapshot
 * @in: its payload; each element is read once
 * @out: for the sums; may be @in
 */
__noinline int SIZED(ps_run)(struct saina_ctx *c, const struct saina_job_conf *conf,
				const struct SIZED(payload) *in, struct SIZED(payload) *out)
{
	struct saina_slot_lock *lk;
	struct saina_counted *cnt;
	__u32 job, lock, entry;
	__u64 csum = 0;
	struct SLOT *e;
	void *ring;

	if (!c || !conf || !in || !out)
		return VERDICT_DROP;
	job = c->in.job;
	entry = (c->ps.base & (conf->ring - 1)) * conf->segments + c->in.segment;
	lock = c->in.lock;
	ring = bpf_map_lookup_elem(&RING, &job);
	lk = bpf_map_lookup_elem(&saina_locks, &lock);
	cnt = slot_counted(job, c->in.segment);
	if (!ring || !lk || !cnt)
		return VERDICT_DROP;
	e = bpf_map_lookup_elem(ring, &entry);
	if (!e)
		return VERDICT_DROP;

	bpf_spin_lock(&lk->lock);
	/*
	 * One loop for INC and READ, told what to do by way of memory: the verifier goes through
	 * it with each thing that it knows.  What is there before the first INC is no sum of the
	 * table, and stays for READ.
	 */
	c->ps.add = ps_decide(c, &e->meta, cnt) == SLOT_DO_ADD ? ~0ull : 0;
	c->ps.keep = c->out.mask > (c->ps.add & 1) ? ~0ull : 0;
	if (c->out.verdict == VERDICT_SUM) {
		const __u64 add = c->ps.add, keep = c->ps.keep, top = 0x8000000080000000;
		const __u64 *from = (const __u64 *)in->v;
		__u64 *sum = (__u64 *)e->sum, *to = (__u64 *)out->v;

		_Pragma("clang loop unroll_count(4)")
		for (__u32 i = 0; i < ELEMS / 2; i++) {
			__u64 old = sum[i], t = old & keep, v = from[i] & add;

			/* two sums at once, of which none carries into the other */
			v = ((t & ~top) + (v & ~top)) ^ ((t ^ v) & top);
			sum[i] = old ^ ((old ^ v) & add);
			to[i] = v;
			csum += HOOK_CSUM(v);
		}
	}
	bpf_spin_unlock(&lk->lock);
	c->out.csum = csum_fold64(csum);
	return c->out.verdict;
}

/*
 * ps_view_ELEMS() - a READ that its clock has let through, of a worker that is not alone in
 * its group: the same, and all of them are given the same sums for a step
 */
__noinline int SIZED(ps_view)(struct saina_ctx *c, const struct saina_job_conf *conf,
				 struct SIZED(payload) *out)
{
	struct saina_slot_lock *lk;
	struct saina_counted *cnt;
	__u32 key, lock, entry;
	struct SLOT *e, *v;
	void *ring, *view;
	__u64 csum = 0;

	if (!c || !conf || !out)
		return VERDICT_DROP;
	key = c->in.job;
	ring = bpf_map_lookup_elem(&RING, &key);
	cnt = slot_counted(key, c->in.segment);
	key = key * SAINA_WORKERS_MAX + c->ps.group;
	view = bpf_map_lookup_elem(&VIEW, &key);
	lock = c->in.lock;
	lk = bpf_map_lookup_elem(&saina_locks, &lock);
	if (!ring || !lk || !cnt || !view)
		return VERDICT_DROP;
	entry = (c->ps.base & (conf->ring - 1)) * conf->segments + c->in.segment;
	e = bpf_map_lookup_elem(ring, &entry);
	entry = c->in.segment;
	v = bpf_map_lookup_elem(view, &entry);
	if (!e || !v)
		return VERDICT_DROP;

	bpf_spin_lock(&lk->lock);
	ps_decide_view(c, &e->meta, &v->meta, cnt);
	{
		const __u64 take = c->ps.add, keep = c->ps.keep, seen = c->ps.seen;
		__u64 *to = (__u64 *)v->sum, *o = (__u64 *)out->v;
		const __u64 *from = (const __u64 *)e->sum;

		_Pragma("clang loop unroll_count(4)")
		for (__u32 i = 0; i < ELEMS / 2; i++) {
			__u64 old = to[i], t = from[i] & keep;

			t ^= (t ^ old) & seen;
			to[i] = old ^ ((old ^ t) & take);
			o[i] = t;
			csum += HOOK_CSUM(t);
		}
	}
	bpf_spin_unlock(&lk->lock);
	c->out.csum = csum_fold64(csum);
	return c->out.verdict;
}

#undef VIEW
#undef RING
#undef SLOT
#undef SIZED
#undef CAT
#undef CAT_
