// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdio.h>
#include <string.h>
#include "harness_shm.h"
#include "sim_answers.h"
#include "sim_workers.h"

static bool deliver_answer(struct sim *w, const uint8_t *message, uint64_t to);

/* Delivers a COMPLETION as the RESULTs that it stands for. */
static bool deliver_completion(struct sim *w, struct sim_job *j, const struct saina_hdr *h,
		 const struct saina_doorbell *doorbell, uint64_t to)
{
	static uint8_t message[sizeof(struct saina_hdr) + 4 * SAINA_ELEMS_MAX];

	for (unsigned int i = 0; i < SAINA_DOORBELL_SEGMENTS; i++) {
		uint32_t segment = h->segment + i;
		const struct saina_output_head *b;
		struct saina_hdr r = *h;
		bool first;

		if (!(doorbell->done >> i & 1))
			continue;
		if (!harness_check_output(w->harness, h->job, h->round, segment)) {
			snprintf(w->error, sizeof(w->error), "%.500s", w->harness->diff);
			return false;
		}
		b = harness_shm_output(w->harness, h->job, h->round, segment);
		if (!b || b->state != SAINA_OUTPUT_VALID || b->round != h->round)
			continue;
		first = h->worker == 0xff && !ledger_has(&j->ledger, h->round, segment);
		r.type = SAINA_MSG_RESULT;
		r.segment = segment;
		r.count = j->conf.payload;
		r.worker = 0xff;
		r.session = 0;
		r.exponent = b->exponent;
		r.contributors = b->contributors;
		r.mask = b->mask;
		r.k = b->k;
		r.policy = b->policy;
		r.flags = b->flags;
		r.slot_round = b->weight;
		memcpy(message, &r, sizeof(r));
		memcpy(message + sizeof(r), b + 1, 4 * j->conf.payload);
		if (first && !deliver_answer(w, message, to))
			return false;
		for (unsigned int n = 0; !first && n < j->workers; n++)
			if (to >> n & 1)
				sim_worker_receive(w, j, n, &r);
	}
	return true;
}

static unsigned int kind_of(const struct saina_policy *p)
{
	if (p->mode == SAINA_POLICY_FASTEST && p->timeout_us)
		return SIM_FASTEST_TIMEOUT;
	if (p->mode == SAINA_POLICY_SFCD && p->flags & SAINA_POLICY_F_DOWN)
		return SIM_SFCD_DOWN;
	return p->mode;
}

static bool deliver_answer(struct sim *w, const uint8_t *message, uint64_t to)
{
	const void *payload = message + sizeof(struct saina_hdr);
	struct sim_job *j;
	struct saina_hdr h;

	memcpy(&h, message, sizeof(h));
	j = sim_job_find(w, h.job);
	if (!j)
		return true;
	if (h.type == SAINA_MSG_COMPLETION) {
		struct saina_doorbell doorbell;

		memcpy(&doorbell, payload, sizeof(doorbell));
		return deliver_completion(w, j, &h, &doorbell, to);
	}
	if (!ledger_answer(&j->ledger, &h, payload)) {
		snprintf(w->error, sizeof(w->error), "ledger of job %u: %s", h.job,
			 j->ledger.error);
		return false;
	}
	if (h.type == SAINA_MSG_RESULT && h.worker == 0xff && j->conf.uplink) {
		w->from_parent++;
		w->not_counted += !h.mask;
		w->types_above += !!(h.flags & SAINA_F_TYPES);
	}
	if (h.type == SAINA_MSG_RESULT && h.worker == 0xff)
		w->results[kind_of(&sim_rt(j)->policy)]++;
	for (unsigned int i = 0; i < j->workers; i++)
		if (to >> i & 1)
			sim_worker_receive(w, j, i, &h);
	return true;
}

bool sim_deliver(struct sim *w)
{
	const struct harness *r = w->harness;

	for (unsigned int i = 0; i < r->answers; i++)
		if (!deliver_answer(w, r->answer[i].message, r->answer[i].to))
			return false;
	return true;
}
