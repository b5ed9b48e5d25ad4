// SPDX-License-Identifier: GPL-2.0-or-later
/* Section 5 of Documentation/datapath.rst: a round opens, if no worker is too far behind. */
#include <string.h>
#include "internal.h"

void oracle_ps_adopt(struct oracle *o, struct oracle_job *j)
{
	const struct saina_policy *target = oracle_target_policy(j);
	unsigned int old_seq = j->rt.policy.seq;

	if (!oracle_has_steps(target) || target->seq == old_seq)
		return;
	j->rt.policy = *target;
	j->rt.count[SAINA_JC_POLICY_SWAPS]++;
	oracle_event(o, j, SAINA_EV_POLICY, 0xff, j->rt.next_round, old_seq, target->seq);
}

void oracle_ps_begin(struct oracle *o, struct oracle_job *j)
{
	oracle_members_renew(j);
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
	if (round > j->rt.at[w])
		j->rt.at[w] = round;
}

void oracle_note_starts(struct oracle_job *j, unsigned int w)
{
	struct oracle_workers alive = oracle_alive(j);
	uint32_t round = j->rt.next_round;
	bool fence = oracle_is_fence(j, round);

	oracle_reached(j, w, round);
	for (unsigned int i = 0; i < alive.n; i++)
		if (fence || !oracle_is_one_of(&j->members, alive.w[i]))
			oracle_reached(j, alive.w[i], round);
}

/* Rounds that a worker may be behind the one that opens; UINT32_MAX: any number. */
static uint32_t lead_of(const struct oracle_job *j, const struct saina_policy *p)
{
	bool all = p->mode == SAINA_POLICY_BSP ? !j->conf.uplink : p->mode == SAINA_POLICY_SSP;

	if (all || p->lead == SAINA_LEAD_NONE || oracle_is_fence(j, j->rt.next_round))
		return UINT32_MAX;
	if (p->lead)
		return p->lead;
	return j->conf.ring == SAINA_RING_MIN ? 1 : j->conf.ring - 2;
}

struct oracle_workers oracle_too_far_behind(const struct oracle_job *j)
{
	struct oracle_workers alive = oracle_alive(j), behind = {};
	uint32_t lead = lead_of(j, oracle_target_policy(j)), round = j->rt.next_round, at;

	for (unsigned int i = 0; i < alive.n; i++) {
		at = j->rt.at[alive.w[i]];
		if (at < round && round - at > lead)
			behind.w[behind.n++] = alive.w[i];
	}
	return behind;
}

/* Parts of the gradient that any of these workers computes. */
static unsigned int parts_alive(const struct oracle_workers *l, unsigned int parts)
{
	bool computed[SAINA_WORKERS_MAX] = {};
	unsigned int n = 0;

	for (unsigned int i = 0; i < l->n; i++)
		computed[l->w[i] % parts] = true;
	for (unsigned int p = 0; p < parts; p++)
		n += computed[p];
	return n;
}

/* The k that a controller has set for this policy, 0: none. */
static unsigned int k_set_for(const struct saina_job_conf *c, const struct saina_policy *p)
{
	const struct saina_policy *of = c->policy.mode == SAINA_POLICY_EXTERNAL ? &c->policy : &c->next;

	return of->seq == p->seq ? c->k_set : 0;
}

/* Section 5, 3: k by the policy in force, before it is bounded by the members. */
static unsigned int k_by_policy(const struct oracle_job *j)
{
	const struct saina_policy *p = &j->rt.policy;
	unsigned int n = j->members.n, k = j->rt.k_next, set, most;

	switch (p->mode) {
	case SAINA_POLICY_FASTEST:
		return p->k;
	case SAINA_POLICY_EXTERNAL:
		set = k_set_for(&j->conf, p);
		return set ? set : p->k;
	case SAINA_POLICY_CODED:
		return parts_alive(&j->members, j->conf.workers / (p->spread + 1));
	case SAINA_POLICY_SFCD:
		most = p->k_max ? p->k_max : n;
		return k < p->k_min ? p->k_min : k > most ? most : k;
	default:
		return n;
	}
}

/* Section 5, 4: says that k is another one, if the policy is not. */
static void tell_k(struct oracle *o, struct oracle_job *j, unsigned int was, unsigned int planned)
{
	unsigned int k = j->round.k;

	switch (j->rt.policy.mode) {
	case SAINA_POLICY_SFCD:
		was = planned;
		/* fallthrough */
	case SAINA_POLICY_FASTEST:
		if (k < was)
			oracle_k_changes(o, j, was, k);
		break;
	case SAINA_POLICY_EXTERNAL:
		if (k != was)
			oracle_k_changes(o, j, was, k);
		break;
	}
}

/* Adopts the target; false if it is in force already. */
static bool adopt(struct oracle_job *j)
{
	const struct saina_policy *target = oracle_target_policy(j);
	struct saina_policy old = j->rt.policy;

	if (target->seq == old.seq)
		return false;
	j->rt.policy = *target;
	j->rt.count[SAINA_JC_POLICY_SWAPS]++;
	if (target->mode == SAINA_POLICY_SFCD)
		oracle_sfcd_adopt(j, &old);
	return true;
}

void oracle_round_open(struct oracle *o, struct oracle_job *j)
{
	struct saina_job_rt *rt = &j->rt;
	struct oracle_workers old = j->members;
	unsigned int old_k = rt->k, old_next = rt->k_next, old_seq = rt->policy.seq, n, k;
	bool fence = oracle_is_fence(j, rt->next_round), adopted = adopt(j);

	oracle_members_renew(j);
	n = j->members.n;
	if (!adopted && old.n && memcmp(&old, &j->members, sizeof(old)))
		oracle_sfcd_forget(j);
	k = k_by_policy(j);
	k = k > n ? n : k;
	rt->k_next = k ? k : 1;

	j->round = (struct oracle_round){ .policy = rt->policy, .members = j->members };
	if (fence) {
		j->round.k = n;
	} else {
		j->round.k = rt->k_next;
		j->round.timeout_ns = 1000ull * rt->policy.timeout_us;
		if (rt->policy.mode == SAINA_POLICY_CODED)
			j->round.parts = j->conf.workers / (rt->policy.spread + 1);
	}
	rt->k = j->round.k;
	rt->open_slots = rt->segs_done = 0;
	rt->flips = rt->observed = 0;
	rt->behind = 0;
	rt->next_round++;
	if (adopted)
		oracle_event(o, j, SAINA_EV_POLICY, 0xff, rt->next_round - 1, old_seq, rt->policy.seq);
	else
		tell_k(o, j, old_k, old_next);
}
