/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The sums of table mode for messages of ELEMS elements; included by table.bpf.h once per
 * size, hence no include guard.
 */
#define CAT_(a, b)	a##b
#define CAT(a, b)	CAT_(a, b)
#define SIZED(name)	CAT(name##_, ELEMS)
#define SLOT		CAT(saina_slot_, ELEMS)
#define RING		CAT(saina_ring_, ELEMS)

/*
 * table_run_ELEMS() - an INC or READ that its clock has let through
 * @c: the message
 * @conf: its job's snapshot
 * @in: its payload; each element is read once
 * @out: for the sums; may be @in
 */
__noinline int SIZED(table_run)(struct slot_call *c, const struct saina_job_conf *conf,
				const struct SIZED(payload) *in, struct SIZED(payload) *out)
{
	struct saina_slot_lock *lk;
	struct saina_counted *cnt;
	__u32 job, lock, entry;
	__u64 csum = 0;
	struct SLOT *e;
	void *ring;

	if (!c || !conf || !in || !out)
		return SLOT_DROP;
	job = c->in.job;
	entry = (c->table.base & (conf->ring - 1)) * conf->segments + c->in.segment;
	lock = c->in.lock;
	ring = bpf_map_lookup_elem(&RING, &job);
	lk = bpf_map_lookup_elem(&saina_locks, &lock);
	cnt = slot_counted(job, c->in.segment);
	if (!ring || !lk || !cnt)
		return SLOT_DROP;
	e = bpf_map_lookup_elem(ring, &entry);
	if (!e)
		return SLOT_DROP;

	bpf_spin_lock(&lk->lock);
	/*
	 * One loop for INC and READ, told what to do by way of memory: the verifier goes through
	 * it with each thing that it knows.  What is there before the first INC is no sum of the
	 * table, and stays for READ.
	 */
	c->table.add = table_decide(c, &e->meta, cnt) == SLOT_DO_ADD ? ~0u : 0;
	c->table.keep = c->out.mask > (c->table.add & 1) ? ~0u : 0;
	if (c->out.verdict == SLOT_SUM) {
		__u32 add = c->table.add, keep = c->table.keep;

		_Pragma("clang loop unroll_count(8)")
		for (__u32 i = 0; i < ELEMS; i++) {
			__u32 old = e->sum[i], v = (old & keep) + ((__u32)in->v[i] & add);

			e->sum[i] = old ^ ((old ^ v) & add);
			out->v[i] = v;
			csum += v;
		}
	}
	bpf_spin_unlock(&lk->lock);
	c->out.csum = csum_fold64(csum);
	return c->out.verdict;
}

#undef RING
#undef SLOT
#undef SIZED
#undef CAT
#undef CAT_
