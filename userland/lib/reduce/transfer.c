// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Messages of a worker's rounds, received and sent, with gradients and results in them
 * (reduce_msg.c) or in shared memory (reduce_shm.c).
 */
#include "reduce_msg.h"
#include "reduce_shm.h"

#define RETRY_NS (20 * MSEC)

static void stale_rx(struct saina_round *r, const struct saina_hdr *h, uint64_t now)
{
	uint32_t round = le32toh(h->round), segment = le32toh(h->segment);

	if (saina_flow_stale(&r->flow, round, segment, le32toh(h->slot_round), now))
		saina_round_lose(r, segment, le32toh(h->aux) == round + 1, now);
}

static void ask_reply_rx(struct saina_round *r, const struct saina_hdr *h, uint64_t now)
{
	if (h->flags & SAINA_F_AWAY)
		saina_flow_away(&r->flow, le32toh(h->segment), now);
	saina_flow_ask_reply(&r->flow, le32toh(h->round), le32toh(h->segment), (const void *)(h + 1),
			     le64toh(h->mask), le32toh(h->slot_round), now);
}

void saina_round_input(struct saina_round *r, const struct saina_hdr *h, uint64_t now)
{
	if (h->type == SAINA_MSG_RESULT)
		saina_round_result(r, h, now);
	else if (h->type == SAINA_MSG_COMPLETION)
		saina_shm_completion(r, h, now);
	else if (h->type == SAINA_MSG_ASK_REPLY)
		ask_reply_rx(r, h, now);
	else if (h->type == SAINA_MSG_STALE)
		stale_rx(r, h, now);
}

/* Does @act; returns how many messages of @len bytes are in @buf. */
static unsigned int put_acts(struct saina_round *r, const struct saina_act *act, size_t acts,
			     uint64_t now, uint8_t *buf, size_t *len)
{
	unsigned int n = 0;

	*len = r->job->msglen;
	for (size_t i = 0; i < acts; i++) {
		const struct saina_act *a = &act[i];

		switch (a->type) {
		case SAINA_ACT_GRAD:
			saina_msg_put_grad(r, buf + *len * n++, a);
			break;
		case SAINA_ACT_PULL:
			if (saina_shm_result(r, a->round, a->segment, 0, now))
				break;
			saina_msg_put_pull(r, buf + *len * n++, a);
			break;
		case SAINA_ACT_ASK:
			*len = sizeof(struct saina_hdr) + sizeof(struct saina_ask);
			saina_msg_put_ask(r, buf + *len * n++, a, now);
			break;
		case SAINA_ACT_REORDERED:
			saina_round_take(
				r, saina_reorder_get(&r->flow.reorder, a->round, a->segment), now);
			break;
		case SAINA_ACT_LOST:
			saina_round_lose(r, a->segment, false, now);
			break;
		}
	}
	return n;
}

static bool is_message_act(const struct saina_act *a)
{
	return a->type != SAINA_ACT_REORDERED && a->type != SAINA_ACT_LOST;
}

/* The next actions: first those that did not fit into the last batch of doorbells. */
static size_t next_acts(struct saina_round *r, uint64_t now, uint64_t *when)
{
	if (!r->acts)
		r->acts = saina_flow_run(&r->flow, now, r->act, SAINA_ASK_SEGMENTS, when);
	return r->acts;
}

/* @n of them are done. */
static void drop_acts(struct saina_round *r, size_t n)
{
	r->acts -= n;
	memmove(r->act, r->act + n, r->acts * sizeof(*r->act));
}

unsigned int saina_round_output(struct saina_round *r, uint64_t now, uint8_t *buf, size_t *len,
				uint64_t *when)
{
	unsigned int doorbells = 0, n = 0;
	size_t acts, taken;

	/* no message may hold a segment, and there is no shared memory yet */
	if (r->job->by_reference == SAINA_REFERENCE_ONLY &&
	    !(r->shm && saina_shm_ready(r->shm, r->job))) {
		*when = now + RETRY_NS;
		return 0;
	}
	while (!n && doorbells < SAINA_DOORBELLS_MAX && (acts = next_acts(r, now, when))) {
		taken = saina_shm_takes(r, r->act, acts);
		if (taken) {
			doorbells += saina_shm_put(r, buf + SAINA_DOORBELL_LEN * doorbells, r->act,
						   taken, now);
		} else if (!doorbells || !is_message_act(r->act)) {
			taken = acts;
			n = put_acts(r, r->act, acts, now, buf, len);
		} else {
			break; /* messages of another length: in the next call */
		}
		drop_acts(r, taken);
	}
	if (doorbells)
		*len = SAINA_DOORBELL_LEN;
	return doorbells + n;
}

/* The gradients of @segments, from the one in @h on, were sent.  Their all-reduce may be over. */
static void count_gradients(struct saina_round *r, const struct saina_hdr *h, uint64_t segments)
{
	uint32_t first = le32toh(h->segment);
	unsigned int n = __builtin_popcountll(segments);

	if (!(h->flags & SAINA_F_RETRANSMIT)) {
		r->stats.sent += n;
		r->stats.sent_bytes += n * r->job->msglen;
		return;
	}
	r->stats.resent += n;
	for (; segments && le32toh(h->round) == r->flow.round; segments &= segments - 1)
		if (r->grad.state[first + __builtin_ctzll(segments)].t)
			saina_round_request(r, first + __builtin_ctzll(segments))->call.resent++;
}

void saina_round_sent(struct saina_round *r, const uint8_t *buf, unsigned int n, size_t len)
{
	for (; n--; buf += len) {
		const struct saina_hdr *h = (const void *)buf;
		const struct saina_doorbell *doorbell = (const void *)(h + 1);

		switch (h->type) {
		case SAINA_MSG_GRAD:
		case SAINA_MSG_INC:
			count_gradients(r, h, 1);
			break;
		case SAINA_MSG_DOORBELL:
			count_gradients(r, h, le64toh(doorbell->posted));
			break;
		case SAINA_MSG_PULL:
		case SAINA_MSG_READ:
			r->stats.pulled++;
			break;
		case SAINA_MSG_FETCH:
			r->stats.pulled += __builtin_popcountll(le64toh(doorbell->posted));
			break;
		case SAINA_MSG_ASK:
			r->stats.asked++;
			break;
		}
	}
}
