/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rounds of a job: who may open one, what it latches, how it ends.  All of it
 * under saina_job_rt.lock.  Documentation/datapath.rst sections 3 and 5.
 */
#ifndef SAINA_ROUND_BPF_H
#define SAINA_ROUND_BPF_H

#include "sfcd.bpf.h"

struct round_opened {
	__u32	old_seq, seq;
	__u32	old_k, k;
	bool	policy, lowered;
};

/* Under rt->lock.  What is new is left in @o for the events. */
static __always_inline void round_open(struct saina_job_rt *rt, const struct saina_job_conf *conf,
				       __u64 now, struct round_opened *o)
{
	__u64 old = rt->members;
	__u32 n = popcount64(conf->active);
	__u32 k;

	rt->members = conf->active;
	rt->next_round++;
	rt->open_slots = 0;
	rt->segs_done = 0;
	rt->flips = 0;
	rt->observed = 0;
	rt->opened_at = now;
	o->old_seq = rt->policy.seq;
	o->old_k = rt->k;
	o->policy = conf->policy.seq != rt->policy.seq;
	k = rt->k_next;
	if (o->policy) {
		if (conf->policy.mode == SAINA_POLICY_SFCD) {
			bool same = rt->policy.mode == SAINA_POLICY_SFCD &&
				    rt->policy.k == conf->policy.k;

			if (!same)
				k = conf->policy.k;
			if (!same || rt->policy.stride != conf->policy.stride ||
			    rt->policy.flags != conf->policy.flags) {
				rt->primed = 0;
				rt->converged = 0;
			}
		}
		rt->policy = conf->policy;
		rt->policy_swaps++;
	} else if (old && old != conf->active) {
		rt->converged = 0;
		rt->primed = 0;
	}
	if (rt->policy.mode == SAINA_POLICY_SFCD) {
		__u32 limit = rt->policy.k_max ? rt->policy.k_max : n;

		if (k < rt->policy.k_min)
			k = rt->policy.k_min;
		if (k > limit)
			k = limit;
	} else if (rt->policy.mode == SAINA_POLICY_FASTEST) {
		k = rt->policy.k;
	} else {
		k = n;
	}
	if (k > n)
		k = n;
	if (k < 1)
		k = 1;
	rt->k = k;
	rt->k_next = k;
	o->k = k;
	o->seq = rt->policy.seq;
	o->lowered = !o->policy && rt->policy.mode != SAINA_POLICY_BSP && k < o->old_k;
}

/**
 * round_permit() - may this GRAD open a slot?
 * @c: the message
 * @conf: its job's snapshot
 *
 * Opens the round if need be.
 *
 * Return: SLOT_MISS: yes, and the slot counts as open
 * already (round_undo() if it does not come to that); c->latch has what it latches.
 * Else the verdict.
 */
__noinline int round_permit(struct slot_call *c, const struct saina_job_conf *conf)
{
	struct round_opened o = {};
	struct saina_job_rt *rt;
	__u32 job, r;
	__u64 now;
	int verdict = SLOT_DROP;

	if (!c || !conf)
		return SLOT_DROP;
	c->out.reason = SAINA_C_INTERNAL;
	job = c->in.job;
	rt = bpf_map_lookup_elem(&saina_rt, &job);
	if (!rt)
		return SLOT_DROP;
	r = c->in.round;
	now = bpf_ktime_get_ns();

	bpf_spin_lock(&rt->lock);
	c->out.next_round = rt->next_round;
	if (rt->generation != c->in.generation) {
		c->out.reason = SAINA_C_INTERNAL;
	} else if (r > rt->next_round || r > SAINA_ROUND_MAX) {
		c->out.reason = SAINA_C_FUTURE;
	} else if (rt->next_round - r > 1 || (r < rt->next_round && !rt->members)) {
		/* also a job that began later than this and has opened nothing */
		verdict = SLOT_STALE;
	} else if (r == rt->next_round && rt->open_slots) {
		c->out.reason = SAINA_C_ROUND_BUSY;
	} else if (c->latch.busy == SLOT_OUT_OF_WINDOW || (r != rt->next_round && c->latch.busy)) {
		c->out.reason = SAINA_C_SLOT_BUSY;
	} else {
		if (r == rt->next_round)
			round_open(rt, conf, now, &o);
		rt->open_slots++;
		c->latch.k = rt->k;
		c->latch.policy = rt->policy.seq;
		c->latch.flags = rt->policy.late == SAINA_LATE_DROP ? SAINA_F_DROP_LATE : 0;
		c->latch.members = rt->members;
		c->latch.opened_at = now;
		verdict = SLOT_MISS;
	}
	bpf_spin_unlock(&rt->lock);

	if (o.policy)
		control_event(SAINA_EV_POLICY, EV_OF(job, EV_NOBODY, o.k), r, o.old_seq, o.seq);
	if (o.lowered)
		control_event(SAINA_EV_K, EV_OF(job, EV_NOBODY, o.k), r, o.old_k, o.k);
	return verdict;
}

/* The slot was opened by somebody else meanwhile. */
__noinline int round_undo(struct slot_call *c)
{
	struct saina_job_rt *rt;
	__u32 job;

	if (!c)
		return 0;
	job = c->in.job;
	rt = bpf_map_lookup_elem(&saina_rt, &job);
	if (!rt)
		return 0;
	bpf_spin_lock(&rt->lock);
	if (rt->generation == c->in.generation && rt->open_slots)
		rt->open_slots--;
	bpf_spin_unlock(&rt->lock);
	return 0;
}

/* Can round @r be had no more? */
static __always_inline bool round_gone(const struct saina_job_rt *rt, __u32 r)
{
	__u32 next = rt->next_round;

	return r < next && (next - r > 1 || !rt->members);
}

/* A PULL that found nothing: too early, or gone? */
static __always_inline int round_missed(struct slot_call *c)
{
	__u32 job = c->in.job;
	const struct saina_job_rt *rt = bpf_map_lookup_elem(&saina_rt, &job);

	if (!rt) {
		c->out.reason = SAINA_C_INTERNAL;
		return SLOT_DROP;
	}
	c->out.next_round = rt->next_round;
	if (round_gone(rt, c->in.round))
		return SLOT_STALE;
	c->out.reason = SAINA_C_PULL_EARLY;
	return SLOT_DROP;
}

/**
 * round_account() - a slot is DONE: count it, decide if the round is
 * @c: the message that made it so
 * @conf: its job's snapshot
 *
 * Leaves next_k, as it is after that, in @c.
 *
 * Return: 0
 */
__noinline int round_account(struct slot_call *c, const struct saina_job_conf *conf)
{
	bool raised = false, ended = false;
	__u64 flips = 0, observed = 0;
	struct saina_job_rt *rt;
	__u32 job, k, next_k;

	if (!c || !conf)
		return 0;
	job = c->in.job;
	rt = bpf_map_lookup_elem(&saina_rt, &job);
	if (!rt)
		return 0;

	bpf_spin_lock(&rt->lock);
	if (rt->generation == c->in.generation) {
		bool sfcd = rt->policy.mode == SAINA_POLICY_SFCD;

		if (rt->open_slots)
			rt->open_slots--;
		rt->segs_done++;
		if (rt->policy.seq != c->out.policy)
			rt->policy_mix++;
		if (sfcd) {
			rt->flips += c->out.flips;
			rt->observed += c->out.observed;
		}
		if (rt->segs_done == conf->segments) {
			ended = true;
			flips = rt->flips;
			observed = rt->observed;
			if (sfcd)
				raised = sfcd_decide(rt);
		}
	}
	k = rt->k;
	next_k = rt->k_next;
	bpf_spin_unlock(&rt->lock);

	c->out.next_k = next_k;
	if (raised)
		control_event(SAINA_EV_K, EV_OF(job, EV_NOBODY, k), c->in.round, k, next_k);
	if (c->out.flags & SAINA_F_DEGRADED)
		control_event(SAINA_EV_DEGRADED, EV_OF(job, EV_NOBODY, k), c->in.round,
			      c->in.segment, c->out.contributors);
	if (ended)
		control_event(SAINA_EV_ROUND, EV_OF(job, EV_NOBODY, k), c->in.round, flips,
			      observed);
	return 0;
}

#endif /* SAINA_ROUND_BPF_H */
