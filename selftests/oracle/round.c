// SPDX-License-Identifier: GPL-2.0-or-later
/* Sections 5 and 6 of Documentation/datapath.rst: rounds, policies, SFCD. */
#include <string.h>
#include "internal.h"

static unsigned int samples_of(const struct saina_job_conf *c, const struct saina_policy *p)
{
	return (c->payload + p->stride - 1) / p->stride;
}

static void adopt(struct saina_job_rt *rt, const struct saina_policy *new)
{
	const struct saina_policy *old = &rt->policy;

	switch (new->mode) {
	case SAINA_POLICY_SFCD:
		if (old->mode == SAINA_POLICY_SFCD && old->k == new->k) {
			if (old->stride != new->stride || old->flags != new->flags)
				rt->primed = rt->converged = rt->resumed = 0;
		} else {
			rt->k_next = new->k;
			rt->primed = rt->converged = rt->resumed = 0;
		}
		break;
	}
	rt->policy = *new;
	rt->policy_swaps++;
}

static void k_changes(struct oracle *o, struct oracle_job *j, unsigned int from, unsigned int to)
{
	j->rt.happened |= 1u << SAINA_EV_K;
	oracle_event(o, j, SAINA_EV_K, 0xff, j->rt.next_round - 1, from, to);
}

/* Is the scheduled policy the one for round @round? */
static bool is_due(const struct saina_job_conf *c, const struct saina_job_rt *rt, uint32_t round)
{
	if (!c->next.seq)
		return false;
	if (rt->policy.seq == c->next.seq)
		return true;
	return round >= c->next_from &&
	       (!c->next_on || (rt->asked == c->next.seq && rt->happened & c->next_on));
}

const struct saina_policy *oracle_target_policy(const struct oracle_job *j)
{
	return is_due(&j->conf, &j->rt, j->rt.next_round) ? &j->conf.next : &j->conf.policy;
}

void oracle_note_events(struct oracle_job *j)
{
	const struct saina_job_conf *c = &j->conf;
	struct saina_job_rt *rt = &j->rt;
	uint64_t old = rt->members;

	rt->members = c->active;
	if (rt->asked != c->next.seq) {
		rt->asked = c->next.seq;
		rt->happened = 0;
	}
	if (old & ~rt->members)
		rt->happened |= 1u << SAINA_EV_WORKER_DEAD;
	if (old && rt->members & ~old)
		rt->happened |= 1u << SAINA_EV_WORKER_JOINED;
}

/* Parts of the gradient that a live worker computes. */
static unsigned int parts_alive(const struct saina_job_conf *c, const struct saina_job_rt *rt)
{
	unsigned int parts = c->workers / (rt->policy.spread + 1), n = 0;
	uint64_t mask;

	for (unsigned int p = 0; p < parts; p++) {
		mask = 0;
		for (unsigned int w = p; w < SAINA_WORKERS_MAX; w += parts)
			mask |= 1ull << w;
		n += (rt->members & mask) != 0;
	}
	return n;
}

void oracle_ps_adopt(struct oracle *o, struct oracle_job *j)
{
	const struct saina_policy *target = oracle_target_policy(j);
	unsigned int old_seq = j->rt.policy.seq;

	if (!oracle_has_steps(target) || target->seq == old_seq)
		return;
	j->rt.policy = *target;
	j->rt.policy_swaps++;
	oracle_event(o, j, SAINA_EV_POLICY, 0xff, j->rt.next_round, old_seq, target->seq);
}

void oracle_ps_begin(struct oracle *o, struct oracle_job *j)
{
	j->rt.mode = SAINA_RT_PS;
	j->rt.base = j->rt.next_round;
	oracle_ps_adopt(o, j);
}

bool oracle_is_fence(const struct oracle_job *j, uint32_t round)
{
	return j->rt.mode == SAINA_RT_FENCE && round == j->rt.base;
}

void oracle_reached(struct oracle_job *j, unsigned int w, uint32_t round)
{
	if (j->rt.at[w] < round)
		j->rt.at[w] = round;
}

void oracle_note_starts(struct oracle_job *j, unsigned int w)
{
	uint32_t round = j->rt.next_round;
	uint64_t starts = j->conf.active & ~j->rt.members;

	if (oracle_is_fence(j, round))
		starts = j->conf.active;
	starts |= 1ull << w;
	for (w = 0; w < SAINA_WORKERS_MAX; w++)
		if (starts >> w & 1)
			oracle_reached(j, w, round);
}

uint64_t oracle_too_far_behind(const struct oracle_job *j)
{
	const struct saina_policy *p = oracle_target_policy(j);
	uint32_t lead = p->lead ? p->lead : j->conf.ring > 3 ? j->conf.ring - 2 : 1;
	uint64_t behind = 0;

	if (p->mode == SAINA_POLICY_BSP || p->mode == SAINA_POLICY_SSP ||
	    p->lead == SAINA_LEAD_NONE || oracle_is_fence(j, j->rt.next_round))
		return 0;
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		if (j->conf.active >> w & 1 && (uint64_t)j->rt.at[w] + lead < j->rt.next_round)
			behind |= 1ull << w;
	return behind;
}

/* @old_members: of the round before */
void oracle_round_open(struct oracle *o, struct oracle_job *j, uint64_t old_members)
{
	struct saina_job_rt *rt = &j->rt;
	const struct saina_policy *p = &rt->policy;
	unsigned int n = oracle_popcount(j->conf.active);
	unsigned int old_k = p->mode == SAINA_POLICY_SFCD ? rt->k_next : rt->k;
	unsigned int old_seq = p->seq, k, top;
	const struct saina_policy *target;
	bool adopted;

	target = oracle_target_policy(j);
	adopted = target->seq != p->seq;
	rt->next_round++;
	rt->open_slots = rt->segs_done = 0;
	rt->flips = rt->observed = 0;
	rt->behind = 0;

	if (adopted)
		adopt(rt, target);
	else if (rt->members != old_members && old_members)
		rt->primed = rt->converged = rt->resumed = 0;

	k = rt->k_next;
	if (p->mode == SAINA_POLICY_SFCD) {
		top = p->k_max ? p->k_max : n;
		if (k < p->k_min)
			k = p->k_min;
		if (k > top)
			k = top;
	} else if (p->mode == SAINA_POLICY_FASTEST) {
		k = p->k;
	} else if (p->mode == SAINA_POLICY_EXTERNAL) {
		/* a scheduled policy begins with its own k */
		if (j->conf.k_set && (p->seq == j->conf.policy.seq ||
				      j->conf.policy.mode != SAINA_POLICY_EXTERNAL))
			k = j->conf.k_set;
		else
			k = p->k;
	} else if (p->mode == SAINA_POLICY_CODED) {
		k = parts_alive(&j->conf, rt);
	} else {
		k = n;
	}
	if (k > n)
		k = n;
	if (k < 1)
		k = 1;
	rt->k_next = k;
	rt->k = oracle_is_fence(j, rt->next_round - 1) ? n : k;

	if (adopted)
		oracle_event(o, j, SAINA_EV_POLICY, 0xff, rt->next_round - 1, old_seq, p->seq);
	else if (((p->mode == SAINA_POLICY_FASTEST || p->mode == SAINA_POLICY_SFCD) &&
		  rt->k < old_k) || (p->mode == SAINA_POLICY_EXTERNAL && rt->k != old_k))
		k_changes(o, j, old_k, rt->k);
}

/* SFCD's decision once all segments of the round are done: do signs flip as in noise? */
static void decide(struct oracle *o, struct oracle_job *j)
{
	struct saina_job_rt *rt = &j->rt;
	const struct saina_policy *p = &rt->policy;
	bool parity = p->flags & SAINA_POLICY_F_PARITY, reached;
	unsigned int members = oracle_popcount(rt->members);
	unsigned int top = p->k_max && p->k_max < members ? p->k_max : members;
	unsigned int c_th = p->c_th ? p->c_th : rt->k;

	if (rt->primed || parity) {
		if (parity)
			reached = rt->flips >= p->s_th * rt->observed / 1000;
		else
			reached = rt->flips * 1000 >= p->s_th * rt->observed;
		if (reached)
			rt->converged++;
		else if (rt->converged)
			rt->converged--;
		if (!reached && p->flags & SAINA_POLICY_F_DOWN)
			rt->resumed++;
		else if (rt->resumed)
			rt->resumed--;
		if (rt->converged >= c_th) {
			rt->converged = 0;
			if (rt->k_next < top) {
				rt->k_next++;
				rt->resumed = 0;
				k_changes(o, j, rt->k, rt->k_next);
			}
		}
		if (rt->resumed >= c_th) {
			rt->resumed = rt->converged = 0;
			if (rt->k_next > 1 && rt->k_next > p->k_min) {
				rt->k_next--;
				k_changes(o, j, rt->k, rt->k_next);
			}
		}
	}
	rt->primed = 1;
	rt->last_flips = rt->flips;
	rt->last_observed = rt->observed;
	rt->last_round = rt->next_round - 1;
}

/* Is element @i of a result negative?  Minus zero is not.  Of a pair the second one counts. */
static bool negative(const struct saina_job_conf *c, const void *sum, unsigned int i)
{
	uint16_t half;
	uint32_t v;

	if (c->elem == SAINA_ELEM_BFLOAT16) {
		memcpy(&half, (const uint8_t *)sum + 2 * i, 2);
		return half > 0x8000;
	}
	memcpy(&v, (const uint8_t *)sum + 4 * i, 4);
	if (c->elem == SAINA_ELEM_INT16)
		return oracle_second(v) < 0;
	return c->elem == SAINA_ELEM_INT32 ? v >> 31 : v > 0x80000000;
}

void oracle_sfcd_segment(struct oracle *o, struct oracle_job *j, const struct oracle_slot *s)
{
	const struct saina_policy *p = &j->rt.policy;
	const struct saina_job_conf *c = &j->conf;
	uint32_t segment = s->meta.segment;
	uint64_t *words = j->signs + (size_t)segment * c->sign_words;
	bool parity = p->flags & SAINA_POLICY_F_PARITY;
	uint64_t per_segment = c->payload / 32, in_all = c->segments * per_segment;

	if (p->mode != SAINA_POLICY_SFCD)
		return;
	for (unsigned int i = 0; i < samples_of(c, p) && s->meta.exponent != SAINA_EXPONENT_NAN; i++) {
		uint64_t bit = 1ull << (i & 63), *word = &words[i >> 6];
		bool was = *word & bit, is = negative(c, s->sum, i * p->stride);
		bool counts = !parity || segment * per_segment + i < (in_all & ~31ull);

		if (was != is)
			*word ^= bit;
		if (was != is && counts)
			j->rt.flips++;
		j->rt.observed++;
	}
	if (j->rt.segs_done == c->segments && j->rt.observed)
		decide(o, j);
}
