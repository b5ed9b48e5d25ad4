// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Section 8.3 of Documentation/datapath.rst: shared memory: DOORBELL, FETCH, input arrays.  A
 * result is where it is kept, in the ring.
 */
#include <string.h>
#include "internal.h"

/* The entry of a segment in the sender's input array. */
static uint8_t *input_of(const struct oracle_msg *m, uint32_t segment)
{
	return m->j->input[m->w] +
	       segment % m->j->conf.pool * (sizeof(struct saina_input_head) + 4 * m->j->conf.payload);
}

/* The gradient of a segment in the input array becomes that of @one; false: it has none. */
static bool take_input(struct oracle_msg *m, struct oracle_msg *one, struct saina_hdr *hdr)
{
	const uint8_t *input = input_of(m, one->segment);
	struct saina_input_head head;

	memcpy(&head, input, sizeof(head));
	if (head.session != hdr->session || head.round != m->round || head.segment != one->segment) {
		oracle_drop(m, SAINA_C_STAMP);
		return false;
	}
	if (!oracle_exponent_fits(&m->j->conf, head.exponent)) {
		oracle_drop(m, SAINA_C_EXPONENT);
		return false;
	}
	hdr->exponent = head.exponent;
	hdr->slot_round = 0;
	if (oracle_is_uplink(m->j, m->w)) {
		hdr->slot_round = head.weight;
		hdr->flags = head.flags;
	}
	one->payload = input + sizeof(head);
	return true;
}

void oracle_by_reference(struct oracle_msg *m)
{
	struct saina_doorbell doorbell = {};
	struct saina_hdr hdr = *m->hdr;
	struct oracle_msg one = *m;
	bool fetch = hdr.type == SAINA_MSG_FETCH, all = false;

	memcpy(&doorbell.posted, m->payload, sizeof(doorbell.posted));
	m->out->verdict = ORACLE_DROP;
	one.hdr = &hdr;
	one.by_reference = true;
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
		if (!fetch && !take_input(m, &one, &hdr))
			continue;
		m->out->answer = 0;
		m->out->multicast = false;
		if (fetch)
			oracle_pull(&one);
		else
			oracle_grad(&one);
		if (m->out->answer == SAINA_MSG_STALE || m->out->answer == SAINA_MSG_NAK)
			break;
		if (m->out->answer != SAINA_MSG_RESULT)
			continue;
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
