// SPDX-License-Identifier: GPL-2.0-or-later
#include "world_channel.h"
#include "world_workers.h"

bool world_next(struct world *w, struct message *m)
{
	unsigned int i;

	if (w->in_attic && rng_chance(&w->rng, 15)) {
		*m = w->attic[rng_below(&w->rng, w->in_attic)];
		return true;
	}
	if (w->in_flight < 16)
		world_workers_turn(w);
	if (!w->in_flight)
		return false;
	i = rng_below(&w->rng, w->in_flight);
	*m = w->flight[i];
	if (rng_chance(&w->rng, w->dup))
		return true;		/* and it comes again */
	w->flight[i] = w->flight[--w->in_flight];
	if (rng_chance(&w->rng, w->hold)) {
		i = w->in_attic < WORLD_ATTIC ? w->in_attic++ : rng_below(&w->rng, WORLD_ATTIC);
		w->attic[i] = *m;
		return false;
	}
	return !rng_chance(&w->rng, w->loss_up);
}

bool world_more(struct world *w, const struct message *like, struct message *m)
{
	for (unsigned int i = 0; i < w->in_flight; i++) {
		*m = w->flight[i];
		if (m->job != like->job || m->worker != like->worker)
			continue;
		w->flight[i] = w->flight[--w->in_flight];
		return true;
	}
	return false;
}

unsigned int world_frame(struct world *w, const struct message *m, uint8_t *frame)
{
	struct sim_job *j = world_job(w, m->job);
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION,
		.type = m->type,
		.flags = m->flags,
		.elem = SAINA_ELEM_INT32,
		.job = m->job,
		.session = m->session,
		.round = m->round,
		.segment = m->segment,
		.worker = m->worker,
		.exponent = m->exponent,
	};
	struct saina_ask ask = { .time = (uint64_t)m->segment << 32 | m->round,
				 .counted = ~0ull, .done = m->round };
	struct saina_doorbell doorbell = { .posted = m->rung, .done = m->round };
	const void *payload = world_unread_values();

	if (!j)		/* its job is gone, yet the message arrives */
		return frame_make(frame, &w->rig->g, &(struct saina_binding){}, &h, NULL, 0);
	if (m->type == SAINA_MSG_ASK)
		return frame_make(frame, &w->rig->g, &j->conf.worker[m->worker], &h, &ask,
				  sizeof(ask));
	if (m->type == SAINA_MSG_DOORBELL)
		return frame_make(frame, &w->rig->g, &j->conf.worker[m->worker], &h, &doorbell,
				  sizeof(doorbell));
	if (m->type != SAINA_MSG_PROBE)
		h.count = j->conf.payload;
	if (m->type == SAINA_MSG_GRAD)
		payload = world_said(j, m->worker, m->round, m->segment, m->lie).v;
	return frame_make(frame, &w->rig->g, &j->conf.worker[m->worker], &h,
			  payload ? payload : world_unread_values(), 4 * h.count);
}
