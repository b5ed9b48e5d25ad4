// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "recompute.h"

void recompute_init(struct recompute *c, uint32_t payload, uint32_t segments)
{
	memset(c, 0, sizeof(*c));
	c->payload = payload;
	c->segments = segments;
	c->round = ~0u;
	c->negative = calloc(segments, payload);
	c->stride = calloc(segments, sizeof(*c->stride));
	if (!c->negative || !c->stride)
		abort();
}

void recompute_exit(struct recompute *c)
{
	free(c->negative);
	free(c->stride);
	memset(c, 0, sizeof(*c));
}

void recompute_policy(struct recompute *c, const struct saina_policy *p)
{
	c->policy[p->seq % RECOMPUTE_POLICIES] = *p;
}

static void segment_done(struct recompute *c, const struct saina_hdr *h,
			 const uint8_t *payload, const struct saina_policy *p)
{
	uint8_t *negative = c->negative + (size_t)h->segment * c->payload;
	uint64_t counting = ~0ull, number = (uint64_t)h->segment * (c->payload / 32);

	if (h->exponent == SAINA_EXPONENT_NAN)
		return;
	if (p->flags & SAINA_POLICY_F_PARITY)
		counting = (uint64_t)c->segments * (c->payload / 32) / 32 * 32;
	if (c->stride[h->segment] != p->stride)
		c->known = false;
	c->stride[h->segment] = p->stride;
	for (uint32_t i = 0; i < c->payload; i += p->stride, number++) {
		/* a negative first element has taken 1 from the second */
		uint8_t borrow = c->pairs && payload[4 * i + 1] >> 7;
		uint8_t is = (uint16_t)(payload[4 * i + 3] * 256 + payload[4 * i + 2] + borrow) >> 15;

		c->flips += negative[i] != is && number < counting;
		c->observed++;
		negative[i] = is;
	}
}

/* A round of nothing but NaN: no decision, the state must not change. */
static bool nothing_done(struct recompute *c, const struct saina_hdr *h,
			 const struct saina_policy *p, const struct saina_job_rt *rt)
{
	bool follows = c->decided && c->last_round + 1 == h->round && c->last_seq == p->seq &&
		       c->members == rt->members;
	/* Before the first decision last_round is 0, as in round 0 itself. */
	bool decides = h->round ? rt->last_round == h->round : rt->primed;

	if (decides ||
	    (follows && (rt->converged != c->converged || rt->resumed != c->resumed ||
			 rt->k_next != h->k))) {
		snprintf(c->error, sizeof(c->error), "round %u: a decision on nothing but NaN", h->round);
		return false;
	}
	c->decided = follows;
	c->last_round = h->round;
	return true;
}

static bool round_done(struct recompute *c, const struct saina_hdr *h,
		       const struct saina_policy *p, const struct saina_job_rt *rt)
{
	unsigned int members = __builtin_popcountll(rt->members);
	unsigned int top = p->k_max && p->k_max < members ? p->k_max : members;
	unsigned int c_th = p->c_th ? p->c_th : h->k;
	unsigned int t = c->converged, d = c->resumed, k = h->k;
	bool follows, reached;

	if (rt->last_round != h->round || rt->last_observed != c->observed ||
	    (c->known && rt->last_flips != c->flips)) {
		snprintf(c->error, sizeof(c->error),
			 "round %u: %llu of %llu signs flipped, by rt %llu of %llu in round %u",
			 h->round, (unsigned long long)c->flips, (unsigned long long)c->observed,
			 rt->last_flips, rt->last_observed, rt->last_round);
		return false;
	}
	c->rounds += c->known;
	/* the old counters are known if this policy decided the previous round */
	follows = c->decided && c->last_round + 1 == h->round && c->last_seq == p->seq &&
		  c->members == rt->members && c->known;
	if (follows) {
		if (p->flags & SAINA_POLICY_F_PARITY)
			reached = c->flips >= p->s_th * c->observed / 1000;
		else
			reached = c->flips * 1000 >= p->s_th * c->observed;
		t = reached ? t + 1 : t ? t - 1 : 0;
		d = !(p->flags & SAINA_POLICY_F_DOWN) ? 0 : !reached ? d + 1 : d ? d - 1 : 0;
		if (t >= c_th) {
			t = 0;
			d = k < top ? 0 : d;
			k += k < top;
		} else if (d >= c_th) {
			t = d = 0;
			k -= k > 1 && k > p->k_min;
		}
		c->decisions++;
		c->lowered += k < h->k;
		if (rt->converged != t || rt->resumed != d || rt->k_next != k) {
			snprintf(c->error, sizeof(c->error),
				 "round %u: converged %u, resumed %u and k %u next, by rt %u, %u and %u",
				 h->round, t, d, k, rt->converged, rt->resumed, rt->k_next);
			return false;
		}
	}
	c->decided = true;
	c->last_round = h->round;
	c->last_seq = p->seq;
	c->converged = rt->converged;
	c->resumed = rt->resumed;
	c->members = rt->members;
	return true;
}

bool recompute_result(struct recompute *c, const struct saina_hdr *h, const uint8_t *payload,
		      const struct saina_job_rt *rt)
{
	const struct saina_policy *p = &c->policy[h->policy % RECOMPUTE_POLICIES];

	if ((p->seq & 0xffff) != h->policy) {
		snprintf(c->error, sizeof(c->error), "round %u: policy %u was never asked for",
			 h->round, h->policy);
		return false;
	}
	if (p->mode != SAINA_POLICY_SFCD)
		return true;
	if (c->round != h->round) {
		c->round = h->round;
		c->done = 0;
		c->flips = c->observed = 0;
		c->known = true;
	}
	segment_done(c, h, payload, p);
	if (++c->done < c->segments)
		return true;
	return c->observed ? round_done(c, h, p, rt) : nothing_done(c, h, p, rt);
}
