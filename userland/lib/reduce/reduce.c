// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* All-reduces: in rounds, or in steps. */
#include "reduce.h"

void saina_reduce_exit(struct saina_round *r)
{
	saina_ps_exit(&r->ps);
	saina_round_exit(r);
}

void saina_reduce_start(struct saina_round *r, struct saina_req *q, uint64_t now)
{
	saina_round_start(r, q, now);
	if (r->ps.on)
		saina_ps_start(r, q);
}

unsigned int saina_reduce_output(struct saina_round *r, uint64_t now, uint8_t *buf, size_t *len,
				 uint64_t *when)
{
	return r->ps.on ? saina_ps_output(r, now, buf, len, when)
			: saina_round_output(r, now, buf, len, when);
}

void saina_reduce_close(struct saina_round *r, uint64_t now)
{
	r->closed = true;
	if (r->ps.on)
		saina_ps_close(r, now);
}

void saina_reduce_next(struct saina_round *r, uint64_t now)
{
	r->closed = false;
	r->prev_submitted = r->submitted;
	if (r->ps.on) {
		saina_ps_next(r, now);
		return;
	}
	r->ps.fresh = false;
	saina_flow_round(&r->flow, r->flow.round + 1);
}

bool saina_reduce_waits(const struct saina_round *r)
{
	const struct saina_steps *t = &r->ps.steps;

	return r->ps.on
		       ? t->flying || t->phase == SAINA_STEPS_ASKS || t->phase == SAINA_STEPS_CLOCKS
		       : r->flow.inflight;
}
