/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rounds of a job: who may open one, what it latches, how it ends.  All of it
 * under saina_job_rt.lock.  Documentation/datapath.rst sections 3 and 5.
 */
#ifndef SAINA_ROUND_BPF_H
#define SAINA_ROUND_BPF_H

#include "ctx.bpf.h"
#include "event.bpf.h"
#include "maps.bpf.h"
#include "sfcd.bpf.h"

/* Does the policy to come apply to the round that opens?  Under rt->lock. */
static __always_inline bool round_next_is_due(const struct saina_job_rt *rt,
					      const struct saina_job_conf *conf)
{
	if (!conf->next.seq)
		return false;
	if (rt->policy.seq == conf->next.seq)
		return true;
	return rt->next_round >= conf->next_from &&
	       (!conf->next_on ||
		(rt->asked == conf->next.seq && rt->happened & conf->next_on));
}

/* Policy of a round that opened now.  Under rt->lock, or as an estimate. */
static __always_inline const struct saina_policy *round_target(const struct saina_job_rt *rt,
							       const struct saina_job_conf *conf)
{
	return round_next_is_due(rt, conf) ? &conf->next : &conf->policy;
}

/* Does the policy run steps (parameter-server mode), not rounds? */
static __always_inline bool round_has_steps(const struct saina_policy *p)
{
	return p->window || p->groups;
}

/* Does the mode of policy @p end before @target comes into force? */
static __always_inline bool round_ends_ps(const struct saina_policy *p,
					  const struct saina_policy *target)
{
	const __u64 *a = (const void *)p->group, *b = (const void *)target->group;
	__u64 differ = p->groups ^ target->groups;

	if (!round_has_steps(target))
		return true;
	if (p->seq == target->seq)
		return false;
#pragma unroll
	for (int i = 0; i < SAINA_WORKERS_MAX / 8; i++)
		differ |= a[i] ^ b[i];
	return differ;
}

/* The first round after PS waits for all: they read the parameters before it.  Under rt->lock. */
static __always_inline bool round_is_fence(const struct saina_job_rt *rt, __u32 round)
{
	return rt->mode == SAINA_RT_FENCE && round == rt->base;
}

/* Notes which workers joined or died since the last round opened.  Under rt->lock. */
static __always_inline void round_note_events(struct saina_job_rt *rt,
					      const struct saina_job_conf *conf)
{
	__u64 old = rt->members;

	if (rt->asked != conf->next.seq) {
		rt->asked = conf->next.seq;
		rt->happened = 0;
	}
	if (old & ~conf->active)
		rt->happened |= 1u << SAINA_EV_WORKER_DEAD;
	if (old && conf->active & ~old)
		rt->happened |= 1u << SAINA_EV_WORKER_JOINED;
}

/* CODED: number of parts; else 0. */
static __always_inline __u32 round_parts(const struct saina_policy *p,
					 const struct saina_job_conf *conf)
{
	return p->mode == SAINA_POLICY_CODED ? conf->workers / (p->spread + 1u) : 0;
}

/* k_set is for the policy to come only if the one before is not external, too. */
static __always_inline bool round_k_is_of_another(const struct saina_policy *p,
						  const struct saina_job_conf *conf)
{
	return conf->policy.mode == SAINA_POLICY_EXTERNAL && p->seq != conf->policy.seq;
}

/* k of the round that opens, before it is bounded by @n, the number of its members. */
static __always_inline __u32 round_k(const struct saina_job_rt *rt,
				     const struct saina_job_conf *conf, __u32 k, __u32 n)
{
	const struct saina_policy *p = &rt->policy;
	__u32 limit;

	switch (p->mode) {
	case SAINA_POLICY_SFCD:
		limit = p->k_max ? p->k_max : n;
		if (k < p->k_min)
			k = p->k_min;
		return k > limit ? limit : k;
	case SAINA_POLICY_FASTEST:
		return p->k;
	case SAINA_POLICY_EXTERNAL:
		return conf->k_set && !round_k_is_of_another(p, conf) ? conf->k_set : p->k;
	case SAINA_POLICY_CODED:
		return popcount64(coded_parts(rt->members, round_parts(p, conf)));
	}
	return n;
}

/*
 * round_find_behind() - notes who begins with the next round, and finds out who is too far behind
 *
 * Before rt->lock is taken, and as a global function, so that the verifier walks the loop once.
 * The masks are for both policies that may come into force: which one does is seen under the lock.
 */
__noinline int round_find_behind(struct saina_ctx *c, const struct saina_job_conf *conf)
{
	__u64 starts, behind = 0, behind_next = 0;
	struct saina_job_rt *rt;
	__u32 job, r, lead, lead_next;

	if (!c || !conf)
		return 0;
	job = c->in.job;
	r = c->in.round;
	rt = bpf_map_lookup_elem(&saina_rt, &job);
	if (!rt || rt->generation != c->in.generation || rt->next_round != r || SAINA_ROUND_MAX < r)
		return 0;
	lead = saina_policy_lead(&conf->policy, conf->ring, conf->uplink);
	lead_next = saina_policy_lead(&conf->next, conf->ring, conf->uplink);
	starts = round_is_fence(rt, r) ? conf->active : conf->active & ~rt->members;
	starts |= c->in.bit;
	for (int w = 0; w < SAINA_WORKERS_MAX; w++) {
		__u32 at = rt->at[w];

		if (starts >> w & 1 && at < r) {
			at = r;
			rt->at[w] = r;
		}
		behind |= is_above(r, (__u64)at + lead) << w;
		behind_next |= is_above(r, (__u64)at + lead_next) << w;
	}
	c->latch.behind = behind & conf->active;
	c->latch.behind_next = behind_next & conf->active;
	c->latch.searched = true;
	return 0;
}

/* Under rt->lock. */
static __always_inline void round_adopt(struct saina_job_rt *rt, const struct saina_policy *target,
					struct round_opened *o)
{
	o->old_seq = rt->policy.seq;
	o->policy = target->seq != rt->policy.seq;
	o->seq = target->seq;
	o->k = rt->k;
	if (!o->policy)
		return;
	rt->policy = *target;
	rt->count[SAINA_JC_POLICY_SWAPS]++;
}

/* No round opens: steps begin instead.  Under rt->lock. */
static __always_inline void round_begin_ps(struct saina_job_rt *rt,
					   const struct saina_job_conf *conf,
					   const struct saina_policy *target,
					   struct round_opened *o)
{
	rt->members = conf->active;
	rt->mode = SAINA_RT_PS;
	rt->base = rt->next_round;
	round_adopt(rt, target, o);
}

/* Under rt->lock.  Changes go into @o, for events. */
static __always_inline void round_open(struct saina_job_rt *rt, const struct saina_job_conf *conf,
				       const struct saina_policy *target, __u64 now,
				       struct round_opened *o)
{
	__u64 old = rt->members;
	__u32 n = popcount64(conf->active);
	__u32 k, mode;

	rt->members = conf->active;
	rt->next_round++;
	rt->open_slots = 0;
	rt->segs_done = 0;
	rt->flips = 0;
	rt->observed = 0;
	rt->opened_at = now;
	rt->behind = 0;
	k = rt->k_next;
	/* sfcd_decide() has sent an event if it lowered k */
	o->old_k = rt->policy.mode == SAINA_POLICY_SFCD ? k : rt->k;
	if (target->seq != rt->policy.seq) {
		if (target->mode == SAINA_POLICY_SFCD) {
			bool same = rt->policy.mode == SAINA_POLICY_SFCD &&
				    rt->policy.k == target->k;

			if (!same)
				k = target->k;
			if (!same || rt->policy.stride != target->stride ||
			    rt->policy.flags != target->flags) {
				rt->primed = 0;
				rt->converged = 0;
				rt->resumed = 0;
			}
		}
	} else if (old && old != conf->active) {
		rt->converged = 0;
		rt->primed = 0;
		rt->resumed = 0;
	}
	round_adopt(rt, target, o);
	k = round_k(rt, conf, k, n);
	if (k > n)
		k = n;
	if (k < 1)
		k = 1;
	rt->k_next = k;
	if (round_is_fence(rt, rt->next_round - 1))
		k = n;
	rt->k = k;
	o->k = k;
	mode = rt->policy.mode;
	o->changed = !o->policy &&
		     (mode == SAINA_POLICY_EXTERNAL ? k != o->old_k :
		      (mode == SAINA_POLICY_FASTEST || mode == SAINA_POLICY_SFCD) && k < o->old_k);
	if (o->changed)
		rt->happened |= 1u << SAINA_EV_K;
}

/**
 * round_permit() - may this GRAD open a slot?
 * @c: the message
 * @conf: its job's snapshot
 *
 * Opens the round if need be.
 *
 * Return: VERDICT_MISS: yes, and the slot counts as open
 * already (round_undo() if it does not come to that); c->latch has what it latches.
 * Else the verdict.
 */
__noinline int round_permit(struct saina_ctx *c, const struct saina_job_conf *conf)
{
	const struct saina_policy *target;
	struct round_opened *o;
	struct saina_job_rt *rt;
	__u32 job, r;
	__u64 now, behind;
	int verdict = VERDICT_DROP;
	bool may = false;

	if (!c || !conf)
		return VERDICT_DROP;
	c->out.reason = SAINA_C_INTERNAL;
	job = c->in.job;
	rt = bpf_map_lookup_elem(&saina_rt, &job);
	if (!rt)
		return VERDICT_DROP;
	r = c->in.round;
	now = bpf_ktime_get_ns();
	o = &c->opened;
	o->policy = false;
	o->changed = false;
	c->latch.searched = false;
	if (rt->next_round == r)
		round_find_behind(c, conf);

	bpf_spin_lock(&rt->lock);
	c->out.next_round = rt->next_round;
	if (rt->generation != c->in.generation) {
		c->out.reason = SAINA_C_INTERNAL;
	} else if (r > rt->next_round || r > SAINA_ROUND_MAX) {
		c->out.reason = SAINA_C_FUTURE;
	} else if (rt->next_round - r > 1 || r < rt->base) {
		/* also a job that began later than this and has opened nothing */
		verdict = VERDICT_STALE;
	} else if (r == rt->next_round && (rt->open_slots || !c->latch.searched)) {
		c->out.reason = SAINA_C_ROUND_BUSY;
	} else if (c->latch.busy == SLOT_OUT_OF_WINDOW || (r != rt->next_round && c->latch.busy)) {
		c->out.reason = SAINA_C_SLOT_BUSY;
	} else {
		may = true;
	}
	if (may && r == rt->next_round) {
		round_note_events(rt, conf);
		target = round_target(rt, conf);
		behind = target == &conf->next ? c->latch.behind_next : c->latch.behind;
		if (round_has_steps(target) && !round_is_fence(rt, r)) {
			round_begin_ps(rt, conf, target, o);
			verdict = ctx_nak_mode(c, r);
			may = false;
		} else if (behind) {
			rt->behind = behind;
			c->out.reason = SAINA_C_LEAD;
			may = false;
		} else {
			round_open(rt, conf, target, now, o);
		}
	}
	if (may) {
		bool fence = round_is_fence(rt, r);

		rt->open_slots++;
		c->latch.k = rt->k;
		c->latch.policy = rt->policy.seq;
		c->latch.parts = fence ? 0 : round_parts(&rt->policy, conf);
		c->latch.flags = rt->policy.late == SAINA_LATE_DROP ||
				 rt->policy.mode == SAINA_POLICY_CODED ? SAINA_F_DROP_LATE : 0;
		c->latch.k_min = rt->policy.k_min;
		c->latch.deadline = rt->policy.timeout_us && !fence ?
					    now + 1000ull * rt->policy.timeout_us : 0;
		c->latch.members = rt->members;
		c->latch.opened_at = now;
		verdict = VERDICT_MISS;
	}
	bpf_spin_unlock(&rt->lock);

	if (o->policy)
		event_send(SAINA_EV_POLICY, EV_OF(job, EV_NOBODY, o->k), r, o->old_seq, o->seq);
	if (o->changed)
		event_send(SAINA_EV_K, EV_OF(job, EV_NOBODY, o->k), r, o->old_k, o->k);
	return verdict;
}

/* Another message has opened the slot meanwhile. */
__noinline int round_undo(struct saina_ctx *c)
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

/* Has round @r expired? */
static __always_inline bool round_gone(const struct saina_job_rt *rt, __u32 r)
{
	__u32 next = rt->next_round;

	return r < next && (next - r > 1 || r < rt->base);
}

/* The sender needs no result of an earlier round.  Without the lock: its messages come in order. */
static __always_inline void round_reached(struct saina_job_rt *rt, const struct ctx_in *in)
{
	__u32 *at = &rt->at[in->worker & (SAINA_WORKERS_MAX - 1)];

	if (rt->generation == in->generation && in->round <= rt->next_round && *at < in->round)
		*at = in->round;
}

/* A GRAD of segment 0 was counted, or came too late. */
__noinline int round_gradient(const struct saina_ctx *c)
{
	struct saina_job_rt *rt;
	__u32 job;

	if (!c)
		return 0;
	job = c->in.job;
	rt = bpf_map_lookup_elem(&saina_rt, &job);
	if (rt)
		round_reached(rt, &c->in);
	return 0;
}

/* An ASK: what the reply says of the round. */
__noinline int round_asked(struct saina_ctx *c)
{
	struct saina_job_rt *rt;
	__u32 job;

	if (!c)
		return 0;
	job = c->in.job;
	rt = bpf_map_lookup_elem(&saina_rt, &job);
	if (!rt)
		return 0;
	round_reached(rt, &c->in);
	c->out.next_round = rt->next_round;
	c->out.mask = c->in.round == rt->next_round ? rt->behind : 0;
	return 0;
}

/**
 * round_enter_ps() - does an INC, READ or CLOCK go on to the parameter server?
 * @c: the message
 * @conf: its job's snapshot
 *
 * Enters the mode if the job begins with steps: then no gradient has done so.
 *
 * Return: VERDICT_MISS: yes, and c->ps says how; else VERDICT_NAK
 */
__noinline int round_enter_ps(struct saina_ctx *c, const struct saina_job_conf *conf)
{
	const struct saina_policy *target;
	struct round_opened *o;
	struct saina_job_rt *rt;
	__u32 job;

	if (!c || !conf)
		return VERDICT_DROP;
	job = c->in.job;
	rt = bpf_map_lookup_elem(&saina_rt, &job);
	if (!rt)
		return VERDICT_DROP;
	o = &c->opened;
	o->policy = false;
	if (rt->mode == SAINA_RT_SLOTS && !rt->members &&
	    round_has_steps(round_target(rt, conf))) {
		bpf_spin_lock(&rt->lock);
		if (rt->generation == c->in.generation && rt->mode == SAINA_RT_SLOTS &&
		    !rt->members) {
			round_note_events(rt, conf);
			target = round_target(rt, conf);
			if (round_has_steps(target))
				round_begin_ps(rt, conf, target, o);
		}
		bpf_spin_unlock(&rt->lock);
	}
	if (o->policy)
		event_send(SAINA_EV_POLICY, EV_OF(job, EV_NOBODY, o->k), rt->base, o->old_seq,
			   o->seq);
	c->ps.ended = c->in.pull && rt->mode == SAINA_RT_FENCE;
	if (rt->mode != SAINA_RT_PS && !c->ps.ended)
		return ctx_nak_mode(c, rt->base);
	target = round_target(rt, conf);
	c->ps.base = rt->base;
	c->ps.ring = conf->ring;
	c->ps.leave = round_ends_ps(&rt->policy, target);
	c->ps.left = 0;
	c->ps.window = c->ps.leave ? rt->policy.window : target->window;
	return VERDICT_MISS;
}

/**
 * round_follow() - follow the clock, or a change of policy
 * @c: the message; c->ps.all: steps that all have finished
 * @conf: its job's snapshot
 *
 * Return: 0
 */
__noinline int round_follow(struct saina_ctx *c, const struct saina_job_conf *conf)
{
	const struct saina_policy *target;
	struct round_opened *o;
	struct saina_job_rt *rt;
	__u32 job, low;

	if (!c || !conf)
		return 0;
	job = c->in.job;
	low = c->ps.all;
	rt = bpf_map_lookup_elem(&saina_rt, &job);
	if (!rt)
		return 0;
	target = round_target(rt, conf);
	if (low <= rt->next_round && !c->ps.left &&
	    (target->seq == rt->policy.seq || round_ends_ps(&rt->policy, target)))
		return 0;
	o = &c->opened;
	o->policy = false;
	bpf_spin_lock(&rt->lock);
	if (rt->generation == c->in.generation && rt->mode == SAINA_RT_PS &&
	    rt->base == c->ps.base) {
		if (low > rt->next_round)
			rt->next_round = low;
		round_note_events(rt, conf);
		rt->members = conf->active;
		target = round_target(rt, conf);
		if (!round_ends_ps(&rt->policy, target)) {
			round_adopt(rt, target, o);
		} else if (c->ps.left) {
			rt->mode = SAINA_RT_FENCE;
			rt->base = low;
			rt->open_slots = 0;
			rt->segs_done = 0;
		}
	}
	bpf_spin_unlock(&rt->lock);
	if (o->policy)
		event_send(SAINA_EV_POLICY, EV_OF(job, EV_NOBODY, o->k), low, o->old_seq, o->seq);
	return 0;
}

/* A PULL without a result: too early, or expired? */
static __always_inline int round_missed(struct saina_ctx *c)
{
	__u32 job = c->in.job;
	const struct saina_job_rt *rt = bpf_map_lookup_elem(&saina_rt, &job);

	if (!rt) {
		c->out.reason = SAINA_C_INTERNAL;
		return VERDICT_DROP;
	}
	c->out.next_round = rt->next_round;
	if (round_gone(rt, c->in.round))
		return VERDICT_STALE;
	c->out.reason = SAINA_C_PULL_EARLY;
	return VERDICT_DROP;
}

/**
 * round_account() - count a slot that is DONE; end the round with the last
 * @c: the message that made it so
 * @conf: its job's snapshot
 *
 * Sets next_k and timeout in @c.
 *
 * Return: 0
 */
__noinline int round_account(struct saina_ctx *c, const struct saina_job_conf *conf)
{
	bool changed = false, ended = false;
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
			rt->count[SAINA_JC_POLICY_MIX]++;
		if (c->out.flags & SAINA_F_DEGRADED)
			rt->happened |= 1u << SAINA_EV_DEGRADED;
		if (sfcd) {
			rt->flips += c->out.flips;
			rt->observed += c->out.observed;
		}
		if (rt->segs_done == conf->segments) {
			ended = true;
			flips = rt->flips;
			observed = rt->observed;
			if (sfcd)
				changed = sfcd_decide(rt);
		}
	}
	if (changed)
		rt->happened |= 1u << SAINA_EV_K;
	k = rt->k;
	next_k = rt->k_next;
	c->out.timeout = rt->policy.timeout_us;
	bpf_spin_unlock(&rt->lock);

	c->out.next_k = next_k;
	if (changed)
		event_send(SAINA_EV_K, EV_OF(job, EV_NOBODY, k), c->in.round, k, next_k);
	if (c->out.flags & SAINA_F_DEGRADED)
		event_send(SAINA_EV_DEGRADED, EV_OF(job, EV_NOBODY, k), c->in.round, c->in.segment,
			   c->out.contributors);
	if (c->out.flags & SAINA_F_TYPES)
		event_send(SAINA_EV_TYPES, EV_OF(job, EV_NOBODY, k), c->in.round, c->out.ints,
			   c->out.mask);
	if (ended)
		event_send(SAINA_EV_ROUND, EV_OF(job, EV_NOBODY, k), c->in.round, flips, observed);
	return 0;
}

#endif /* SAINA_ROUND_BPF_H */
