// SPDX-License-Identifier: GPL-2.0-or-later
/* Section 8.3 of Documentation/datapath.rst: shared memory: DOORBELL, input and output arrays. */
#include <string.h>
#include "internal.h"

/* Writes the result to the output array, unless a later one is in its place. */
static void publish(struct oracle_msg *m, bool made)
{
	struct oracle_job *j = m->j;
	struct oracle_output *b = &j->output[(m->round % SAINA_OUTPUT_ROUNDS) * j->conf.segments +
					     m->segment];

	if (!made && b->tag >= m->round + 1ull)
		return;
	b->tag = m->round + 1ull;
	b->meta = m->result->meta;
	memcpy(b->sum, m->result->sum, 4 * j->conf.payload);
}

void oracle_doorbell(struct oracle_msg *m)
{
	size_t entry = sizeof(struct saina_input_head) + 4 * m->j->conf.payload;
	const uint8_t *input;
	struct saina_input_head head;
	struct saina_doorbell doorbell = {};
	struct saina_hdr hdr = *m->hdr;
	struct oracle_msg one = *m;
	bool all = false;

	memcpy(&doorbell.posted, m->payload, sizeof(doorbell.posted));
	m->out->verdict = ORACLE_DROP;
	one.hdr = &hdr;
	one.by_doorbell = true;
	for (unsigned int i = 0; i < SAINA_DOORBELL_SEGMENTS; i++) {
		if (!(doorbell.posted >> i & 1))
			continue;
		one.segment = m->segment + i;
		if (one.segment >= m->j->conf.segments)
			break;
		if (!m->j->input[m->w]) {
			oracle_drop(m, SAINA_C_REFERENCE);
			continue;
		}
		input = m->j->input[m->w] + one.segment % m->j->conf.pool * entry;
		memcpy(&head, input, sizeof(head));
		if (head.session != hdr.session || head.round != m->round ||
		    head.segment != one.segment) {
			oracle_drop(m, SAINA_C_STAMP);
			continue;
		}
		if (!oracle_exponent_fits(&m->j->conf, head.exponent)) {
			oracle_drop(m, SAINA_C_EXPONENT);
			continue;
		}
		hdr.exponent = head.exponent;
		one.payload = input + sizeof(head);
		m->out->answer = 0;
		m->out->multicast = false;
		oracle_grad(&one);
		if (m->out->answer == SAINA_MSG_STALE || m->out->answer == SAINA_MSG_NAK)
			break;
		if (m->out->answer != SAINA_MSG_RESULT)
			continue;
		publish(&one, m->out->multicast);
		doorbell.done |= 1ull << i;
		all |= m->out->multicast;
	}
	if (doorbell.done) {
		oracle_answer_completion(m, &doorbell, all);
	} else if (m->out->answer == SAINA_MSG_STALE) {
		m->segment = one.segment;
		oracle_answer_stale(m);
	} else if (m->out->answer == SAINA_MSG_NAK) {
		m->segment = one.segment;
		oracle_answer_mode(m, m->j->rt.base);
	} else {
		m->out->answer = 0;
		m->out->verdict = ORACLE_DROP;
	}
}
