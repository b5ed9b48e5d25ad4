// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Section 8.3 of Documentation/datapath.rst: shared memory: DOORBELL, FETCH, input and output
 * arrays.
 */
#include <string.h>
#include "internal.h"

static void put(struct oracle_output *b, const struct oracle_msg *m)
{
	b->tag = m->round + 1ull;
	b->meta = m->result->meta;
	memcpy(b->sum, m->result->sum, 4 * m->j->conf.payload);
}

/* Writes the result to the output array, unless a later one is in its place. */
static void publish(struct oracle_msg *m, bool made)
{
	struct oracle_job *j = m->j;
	struct oracle_output *b = &j->output[(m->round % SAINA_OUTPUT_ROUNDS) * j->conf.segments +
					     m->segment];

	if (made || b->tag < m->round + 1ull)
		put(b, m);
}

/* The entry of a segment in the sender's input array. */
static uint8_t *input_of(const struct oracle_msg *m, uint32_t segment)
{
	return m->j->input[m->w] +
	       segment % m->j->conf.pool * (sizeof(struct saina_input_head) + 4 * m->j->conf.payload);
}

/* Writes the result over what the sender has in its input array. */
static void put_fetched(struct oracle_msg *m)
{
	struct saina_input_head *in = (void *)input_of(m, m->segment);

	in->round = ~0u;
	put(&m->j->fetched[m->w][m->segment % m->j->conf.pool], m);
}

/* The gradient of a segment in the input array becomes that of @one; false: it has none. */
static bool take_input(struct oracle_msg *m, struct oracle_msg *one, struct saina_hdr *hdr)
{
	const uint8_t *input = input_of(m, one->segment);
	struct saina_input_head head;

	/* the worker has written there */
	m->j->fetched[m->w][one->segment % m->j->conf.pool].tag = 0;
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
		if (fetch && !m->out->multicast)
			put_fetched(&one);
		else
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
