// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>
#include "harness_shm.h"
#include "sim_uplink.h"
#include "sim_workers.h"

static const struct oracle_job *oracle_of(const struct sim *w, const struct sim_job *j)
{
	return &w->harness->o.job[j->conf.job];
}

bool sim_uplink_is_idle(const struct sim *w, const struct sim_job *j)
{
	const struct oracle_job *oj = oracle_of(w, j);

	for (uint32_t i = 0; i < j->conf.pool; i++)
		if (oj->hot[i].meta.state == SAINA_SLOT_AWAY)
			return false;
	return true;
}

/* A slot that is AWAY, from a random one on; NULL: none is. */
static const struct saina_slot_meta *some_away(struct sim *w, const struct sim_job *j)
{
	const struct oracle_job *oj = oracle_of(w, j);
	uint32_t from = rng_below(&w->rng, j->conf.pool);

	for (uint32_t i = 0; i < j->conf.pool; i++) {
		const struct saina_slot_meta *m = &oj->hot[(from + i) % j->conf.pool].meta;

		if (m->state == SAINA_SLOT_AWAY)
			return m;
	}
	return NULL;
}

static unsigned int some_flags(struct sim *w, unsigned int late)
{
	return (rng_chance(&w->rng, late) ? SAINA_F_LATE : 0) | (rng_chance(&w->rng, 200) ? SAINA_F_DEGRADED : 0) |
	       (rng_chance(&w->rng, 200) ? SAINA_F_DROP_LATE : 0) | (rng_chance(&w->rng, 200) ? SAINA_F_RETRANSMIT : 0);
}

/* A result of the parent, in a message or, if there is an input array, by reference. */
static void send_result(struct sim *w, struct sim_job *j, uint32_t round, uint32_t segment, unsigned int flags)
{
	struct saina_input_head *in = harness_shm_input(w->harness, j->conf.job, j->uplink, segment);
	struct ledger_gradient said = sim_gradient(j, j->uplink, round, segment, 0);
	struct message *m;

	if (!in || rng_chance(&w->rng, 500)) {
		m = sim_emit(w, j, j->uplink, SAINA_MSG_GRAD, round, segment);
		if (m)
			m->flags |= flags;
		return;
	}
	*in = (struct saina_input_head){
		.session = j->conf.worker[j->uplink].session, .round = round, .segment = segment,
		.exponent = said.exponent, .flags = flags | (rng_u64(&w->rng) & 0xcc), .weight = said.weight,
	};
	memcpy(in + 1, said.v, 4 * j->conf.payload);
	m = sim_emit(w, j, j->uplink, SAINA_MSG_DOORBELL, round, segment);
	if (m)
		m->posted = 1;
}

static void send_one(struct sim *w, struct sim_job *j)
{
	static const uint8_t others[] = { SAINA_MSG_ASK, SAINA_MSG_ASK, SAINA_MSG_PULL, SAINA_MSG_PROBE };
	const struct saina_slot_meta *away = some_away(w, j);
	uint32_t next = sim_rt(j)->next_round, segment = rng_below(&w->rng, j->conf.segments);
	unsigned int dice = rng_below(&w->rng, 1000);
	uint32_t round = next > j->first_round ? next - 1 : next;

	if (away && dice < 750)
		send_result(w, j, away->round, away->segment, some_flags(w, 250));
	else if (dice < 830)	/* of a slot that waits, or of the next round */
		send_result(w, j, round + rng_below(&w->rng, 2), segment, some_flags(w, 850));
	else if (dice < 850)	/* long past, or far ahead */
		send_result(w, j, round + 2 - rng_below(&w->rng, 8), segment, some_flags(w, 500));
	else if (dice < 900)
		sim_emit(w, j, j->uplink, others[rng_below(&w->rng, 4)], round, segment);
}

void sim_uplink_send(struct sim *w, struct sim_job *j)
{
	if (j->uplink < 0)
		return;
	/* the parent is slow now and then, or gone for a while */
	if (j->parent_rests) {
		j->parent_rests--;
		return;
	}
	if (rng_chance(&w->rng, 20))
		j->parent_rests = rng_below(&w->rng, 30);
	for (unsigned int n = rng_below(&w->rng, 8); n; n--)
		send_one(w, j);
}
