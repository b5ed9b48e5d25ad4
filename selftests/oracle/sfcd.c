// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Section 6 of Documentation/datapath.rst: SFCD.  It compares the signs of two results of a segment
 * and keeps a list of rounds: which of them had enough flips.  What the document counts up and down
 * follows from the list whenever it is needed.
 */
#include <stdlib.h>
#include <string.h>
#include "internal.h"

/*
 * A number that each round of one kind raises by 1 and each other round lowers by 1, never below 0,
 * is the largest surplus of that kind in any run of rounds that ends now.
 */
static unsigned int surplus(const struct oracle_sfcd *s, size_t from, bool kind)
{
	int now = 0, largest = 0;

	for (size_t i = s->rounds; i > from; i--) {
		now += s->reached[i - 1] == kind ? 1 : -1;
		if (now > largest)
			largest = now;
	}
	return largest;
}

static unsigned int converged(const struct oracle_job *j)
{
	return surplus(&j->sfcd, j->sfcd.up_from, true);
}

static unsigned int resumed(const struct oracle_job *j)
{
	if (!(j->rt.policy.flags & SAINA_POLICY_F_DOWN))
		return 0;
	return surplus(&j->sfcd, j->sfcd.down_from, false);
}

void oracle_sfcd_forget(struct oracle_job *j)
{
	j->sfcd.rounds = j->sfcd.up_from = j->sfcd.down_from = 0;
	j->rt.primed = j->rt.converged = j->rt.resumed = 0;
}

void oracle_sfcd_adopt(struct oracle_job *j, const struct saina_policy *old)
{
	const struct saina_policy *new = &j->rt.policy;
	bool same_k = old->mode == SAINA_POLICY_SFCD && old->k == new->k;

	if (!same_k)
		j->rt.k_next = new->k;
	if (!same_k || old->stride != new->stride || old->flags != new->flags)
		oracle_sfcd_forget(j);
}

static void append(struct oracle_sfcd *s, bool reached)
{
	if (s->rounds == s->room) {
		s->room = 2 * s->room + 64;
		s->reached = realloc(s->reached, s->room * sizeof(*s->reached));
		if (!s->reached)
			abort();
	}
	s->reached[s->rounds++] = reached;
}

static void k_becomes(struct oracle *o, struct oracle_job *j, unsigned int k)
{
	j->rt.k_next = k;
	j->sfcd.down_from = j->sfcd.rounds;
	oracle_k_changes(o, j, j->round.k, k);
}

/* The newest round is on the list: does another k follow from it? */
static void decide(struct oracle *o, struct oracle_job *j)
{
	const struct saina_policy *p = &j->round.policy;
	unsigned int least = p->k_min > 1 ? p->k_min : 1, most = j->round.members.n;
	unsigned int rounds = p->c_th ? p->c_th : j->round.k;

	if (p->k_max && p->k_max < most)
		most = p->k_max;
	if (converged(j) >= rounds) {
		j->sfcd.up_from = j->sfcd.rounds;
		if (j->rt.k_next < most)
			k_becomes(o, j, j->rt.k_next + 1);
	}
	if (resumed(j) >= rounds) {
		j->sfcd.up_from = j->sfcd.down_from = j->sfcd.rounds;
		if (j->rt.k_next > least)
			k_becomes(o, j, j->rt.k_next - 1);
	}
}

/* All segments of the round are done, and some of its signs were looked at. */
static void round_done(struct oracle *o, struct oracle_job *j)
{
	struct saina_job_rt *rt = &j->rt;
	const struct saina_policy *p = &j->round.policy;
	bool parity = p->flags & SAINA_POLICY_F_PARITY;
	uint64_t thousandths = p->s_th * rt->observed, enough;

	enough = parity ? thousandths / 1000 : (thousandths + 999) / 1000;
	if (parity || rt->primed) {
		append(&j->sfcd, rt->flips >= enough);
		decide(o, j);
	}
	rt->primed = 1;
	rt->converged = converged(j);
	rt->resumed = resumed(j);
	rt->last_flips = rt->flips;
	rt->last_observed = rt->observed;
	rt->last_round = rt->next_round - 1;
}

/* The sign of element @i of a result: zeros of both signs are positive.  Of a pair the second one counts. */
static int sign_of(const struct saina_job_conf *c, const void *sum, unsigned int i)
{
	uint16_t half;
	uint32_t v;

	if (c->elem == SAINA_ELEM_BFLOAT16) {
		memcpy(&half, (const uint8_t *)sum + 2 * i, 2);
		return half > 0x8000 ? -1 : 1;
	}
	memcpy(&v, (const uint8_t *)sum + 4 * i, 4);
	if (c->elem == SAINA_ELEM_INT16)
		return oracle_second(v) < 0 ? -1 : 1;
	if (c->elem == SAINA_ELEM_INT32)
		return (int32_t)v < 0 ? -1 : 1;
	return v > 0x80000000 ? -1 : 1;
}

/* Samples that count: SAINA leaves out those behind its last whole word of 32, of the whole gradient. */
static uint64_t samples_counted(const struct saina_job_conf *c, const struct saina_policy *p, uint32_t segment)
{
	uint64_t each = c->payload / 32, before = segment * each, all = c->segments * each / 32 * 32;

	if (!(p->flags & SAINA_POLICY_F_PARITY))
		return UINT64_MAX;
	return all > before ? all - before : 0;
}

void oracle_sfcd_segment(struct oracle *o, struct oracle_job *j, const struct oracle_slot *s)
{
	const struct saina_job_conf *c = &j->conf;
	const struct saina_policy *p = &j->round.policy;
	int8_t *sign = j->sfcd.sign + (size_t)s->meta.segment * c->sign_words * 64;
	int8_t now[SAINA_ELEMS_MAX];
	uint64_t counted;
	unsigned int n = 0;

	if (p->mode != SAINA_POLICY_SFCD)
		return;
	if (s->meta.exponent != SAINA_EXPONENT_NAN) {
		for (unsigned int i = 0; i < c->payload; i += p->stride)
			now[n++] = sign_of(c, s->sum, i);
		counted = samples_counted(c, p, s->meta.segment);
		/* a segment without a result is positive */
		for (unsigned int i = 0; i < n && i < counted; i++)
			j->rt.flips += (sign[i] < 0) != (now[i] < 0);
		memcpy(sign, now, n);
	}
	j->rt.observed += n;
	if (j->rt.segs_done == c->segments && j->rt.observed)
		round_done(o, j);
}

uint64_t oracle_sign_word(const struct oracle_job *j, size_t i)
{
	uint64_t word = 0;

	for (unsigned int bit = 0; bit < 64; bit++)
		if (j->sfcd.sign[64 * i + bit] < 0)
			word += 1ull << bit;
	return word;
}
