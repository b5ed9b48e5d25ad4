// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim_channel.h"
#include "sim_workers.h"

bool sim_next(struct sim *w, struct message *m)
{
	unsigned int i;

	if (w->in_stale && rng_chance(&w->rng, 15)) {
		*m = w->stale[rng_below(&w->rng, w->in_stale)];
		return true;
	}
	if (w->in_flight < 16)
		sim_workers_send(w);
	if (!w->in_flight)
		return false;
	i = rng_below(&w->rng, w->in_flight);
	*m = w->flight[i];
	if (rng_chance(&w->rng, w->dup))
		return true;		/* it stays in flight: a duplicate will come */
	w->flight[i] = w->flight[--w->in_flight];
	if (rng_chance(&w->rng, w->delay)) {
		i = w->in_stale < SIM_STALE ? w->in_stale++ : rng_below(&w->rng, SIM_STALE);
		w->stale[i] = *m;
		return false;
	}
	return !rng_chance(&w->rng, w->loss_up);
}

bool sim_more(struct sim *w, const struct message *like, struct message *m)
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

unsigned int sim_frame(struct sim *w, const struct message *m, uint8_t *frame)
{
	struct sim_job *j = sim_job_find(w, m->job);
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION,
		.type = m->type,
		.flags = m->flags,
		.elem = j ? j->conf.elem : SAINA_ELEM_INT32,
		.job = m->job,
		.session = m->session,
		.round = m->round,
		.segment = m->segment,
		.worker = m->worker,
		.exponent = m->exponent,
		.slot_round = m->weight,
	};
	struct saina_ask ask = { .time = (uint64_t)m->segment << 32 | m->round,
				 .counted = ~0ull, .done = m->round };
	struct saina_doorbell doorbell = { .posted = m->posted, .done = m->round };
	const void *payload = sim_unread_values();

	if (!j)		/* the job is gone, but the message arrives */
		return frame_make(frame, &w->harness->g, &(struct saina_binding){}, &h, NULL, 0);
	if (m->type == SAINA_MSG_ASK)
		return frame_make(frame, &w->harness->g, &j->conf.worker[m->worker], &h, &ask,
				  sizeof(ask));
	if (m->type == SAINA_MSG_DOORBELL || m->type == SAINA_MSG_FETCH)
		return frame_make(frame, &w->harness->g, &j->conf.worker[m->worker], &h, &doorbell,
				  sizeof(doorbell));
	if (m->type != SAINA_MSG_PROBE)
		h.count = j->conf.payload;
	if (m->type == SAINA_MSG_GRAD)
		payload = sim_gradient(j, m->worker, m->round, m->segment, m->lie).v;
	return frame_make(frame, &w->harness->g, &j->conf.worker[m->worker], &h,
			  payload ? payload : sim_unread_values(), 4 * h.count);
}
