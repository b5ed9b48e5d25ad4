// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>
#include "sim_policy.h"

/* Longer than any test takes: only harness_advance_time() gets there. */
static void some_timeout(struct sim *w, struct saina_policy *p, unsigned int n)
{
	p->timeout_us = w->harness->tick_us * rng_range(&w->rng, 1, 4);
	p->k_min = rng_range(&w->rng, 0, n);
}

/* How many more workers compute the same part, of @n workers; 0: no such number divides @n. */
static unsigned int some_spread(struct rng *r, unsigned int n)
{
	unsigned int s = rng_range(r, 2, 8);

	for (unsigned int i = 0; i < 7; i++, s = s == 8 ? 2 : s + 1)
		if (n % s == 0)
			return s - 1;
	return 0;
}

void sim_policy_draw(struct sim *w, struct sim_job *j, const struct saina_policy *before,
		     struct saina_policy *p)
{
	static const uint8_t with_uplink[] = { SAINA_POLICY_BSP, SAINA_POLICY_FASTEST, SAINA_POLICY_TIMEOUT,
						SAINA_POLICY_EXTERNAL };
	struct saina_policy old = *before;
	struct rng *r = &w->rng;
	unsigned int n = j->workers, kind = w->kind, mode;

	memset(p, 0, sizeof(*p));
	p->seq = ++j->policies;
	p->late = rng_chance(r, 700) ? SAINA_LATE_RESIDUAL : SAINA_LATE_DROP;
	/* now and then another kind, so that policies change from and to it */
	if (!kind || rng_chance(r, 250))
		kind = rng_range(r, SAINA_POLICY_BSP, SAINA_POLICY_CODED);
	mode = kind == SIM_FASTEST_TIMEOUT ? SAINA_POLICY_FASTEST :
	       kind == SIM_SFCD_DOWN ? SAINA_POLICY_SFCD : kind;
	if (mode == SAINA_POLICY_CODED && !some_spread(r, n))
		mode = SAINA_POLICY_SFCD;
	/* what a job with an uplink may have */
	if (j->uplink >= 0 && (mode == SAINA_POLICY_SFCD || mode == SAINA_POLICY_CODED))
		mode = with_uplink[rng_below(r, 4)];
	p->mode = mode;
	/* as far as the job's rounds reach: saina.ko refuses more */
	if (mode != SAINA_POLICY_BSP && rng_chance(r, 600))
		p->lead = rng_chance(r, 500) ? SAINA_LEAD_NONE :
			  rng_range(r, 1, j->conf.ring > 3 ? j->conf.ring - 2 : 1);
	switch (mode) {
	case SAINA_POLICY_BSP:
		return;
	case SAINA_POLICY_FASTEST:
		p->k = rng_range(r, 1, n);
		if (kind == SIM_FASTEST_TIMEOUT || rng_chance(r, 300))
			some_timeout(w, p, n);
		return;
	case SAINA_POLICY_TIMEOUT:
		some_timeout(w, p, n);
		return;
	case SAINA_POLICY_EXTERNAL:
		p->k = rng_range(r, 1, n);
		return;
	case SAINA_POLICY_CODED:
		p->spread = some_spread(r, n);
		return;
	}
	p->mode = SAINA_POLICY_SFCD;
	p->k = rng_range(r, 1, n);
	p->k_min = rng_chance(r, 500) ? 1 : rng_range(r, 1, p->k);
	p->k_max = rng_chance(r, 500) ? 0 : rng_range(r, p->k, n);
	p->s_th = rng_chance(r, 500) ? 500 : rng_range(r, 1, 700);
	p->c_th = rng_range(r, 1, 5);
	p->stride = 1 << rng_below(r, 7);
	if (rng_chance(r, 200))
		p->c_th = 0; /* as large as k */
	if (rng_chance(r, 300)) {
		p->flags |= SAINA_POLICY_F_PARITY;
		p->stride = 32;
	}
	if (kind == SIM_SFCD_DOWN || rng_chance(r, 400))
		p->flags |= SAINA_POLICY_F_DOWN;
	/* now and then the previous policy, with one or two parameters changed */
	if (old.mode == SAINA_POLICY_SFCD && rng_chance(r, 500)) {
		p->k = old.k;
		p->k_min = old.k_min;
		p->k_max = old.k_max;
		if (rng_chance(r, 700)) {
			p->stride = old.stride;
			p->flags = old.flags;
		}
	}
}
