// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/rng.h"
#include "wire/job.h"
#include "lib_link.h"

bool link_lost(struct lib_link *l, uint64_t now)
{
	const struct sim_conf *c = l->c;
	uint64_t bad = c->burst_us * 1000ull;

	if (!c->burst_us)
		return rng_next_chance(l->rng, c->loss);
	/* Good times and bad ones; the share of the latter is c->loss. */
	while (l->turns <= now) {
		l->bursting = !l->bursting;
		l->turns += 1 + rng_next_below(l->rng, 2 * (l->bursting ? bad :
							    bad * (1 - c->loss) / c->loss));
	}
	return l->bursting;
}

/* How long the link takes for @len bytes. */
static uint64_t link_ns(const struct lib_link *l, unsigned int len)
{
	unsigned int us = l->worker == 0 && l->c->slow_svc_us ? l->c->slow_svc_us : l->c->svc_us;

	return us * 1000ull * len / SIM_MSGLEN;
}

static bool is_result(const struct saina_hdr *h)
{
	return h->type == SAINA_MSG_RESULT;
}

/* What a GSO batch would be: messages of one batch, sent at about the same time. */
static bool lost_together(const struct lib_link *l, const struct saina_hdr *h, uint64_t now)
{
	uint64_t batch = h->segment / l->c->per_batch;

	return rng_mix(l->c->seed + l->worker + (batch << 8) + ((uint64_t)h->round << 32) +
		       ((uint64_t)h->type << 56) + rng_mix(now / MSEC)) %
		       (1u << 30) < l->c->loss * (1u << 30);
}

unsigned int link_carry(struct lib_link *l, enum link_way way, const void *msg, unsigned int len,
			uint64_t now, uint64_t arrive[2])
{
	const struct sim_conf *c = l->c;
	unsigned int copies;
	uint64_t at = now, ns = link_ns(l, len);

	if (c->together && way == LINK_IN && is_result(msg) ? lost_together(l, msg, now) :
							       link_lost(l, now))
		return 0;
	if (ns) {
		at = (l->free[way] > at ? l->free[way] : at) + ns;
		if (c->queue && at > now + c->queue * ns)
			return 0;
		l->free[way] = at;
	}
	copies = rng_next_chance(l->rng, c->dup) ? 2 : 1;
	for (unsigned int i = 0; i < copies; i++) {
		arrive[i] = at + c->delay_us * 1000ull + rng_next_below(l->rng, c->jitter_us * 1000ull + 1);
		if (!c->reorder) {
			if (arrive[i] < l->came[way])
				arrive[i] = l->came[way];
			l->came[way] = arrive[i];
		}
	}
	return copies;
}
