// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Rounds through shared memory: doorbells and fetches, and where results are. */
#include "reduce_msg.h"
#include "reduce_shm.h"
#include "wire/check.h"

/* Makes the header of a RESULT from that of an entry. */
static void shm_result_header(const struct saina_round *r, const struct saina_output_head *b,
			      uint32_t round, uint32_t segment, uint8_t next_k, struct saina_hdr *h)
{
	memset(h, 0, sizeof(*h));
	h->version = SAINA_PROTO_VERSION;
	h->type = SAINA_MSG_RESULT;
	h->elem = r->job->elem;
	h->job = htole16(r->job->id);
	h->worker = SAINA_WORKER_ANY;
	h->round = htole32(round);
	h->segment = htole32(segment);
	h->count = htole16(saina_job_count(r->job));
	h->exponent = b->exponent;
	h->contributors = b->contributors;
	h->slot_round = htole32(b->weight);
	h->mask = htole64(b->mask);
	h->k = b->k;
	h->next_k = next_k;
	h->policy = htole16(b->policy);
	h->flags = b->flags;
}

/*
 * The common case of a result in shared memory: our gradient was counted without residual or
 * shift, so nothing of it is needed any more and the sums can be decoded in place.  If the
 * aggregator overwrites the entry meanwhile, the result is asked for again.
 */
static bool take_result_in_place(struct saina_round *r, const struct saina_output_head *b,
				 const struct saina_hdr *h, uint32_t round, uint32_t segment,
				 uint64_t now)
{
	const struct saina_segment_state *p = &r->grad.state[segment];

	if (!saina_flow_wants(&r->flow, round, segment) ||
	    !saina_flow_was_sent(&r->flow, segment) || p->exponent != h->exponent || p->residual ||
	    h->flags & SAINA_F_TYPES ||
	    !(le64toh(h->mask) >> r->job->worker & 1))
		return false;
	saina_round_decode(r, segment, h, b + 1);
	if (!saina_shm_holds(b, round, segment))
		return true;
	saina_round_heard(r, h);
	saina_flow_result(&r->flow, round, segment, now);
	saina_round_account(r, segment, h, false);
	saina_round_segment_over(r, segment, now);
	r->stats.results++;
	r->stats.results_bytes += r->job->msglen;
	return true;
}

bool saina_shm_result(struct saina_round *r, uint32_t round, uint32_t segment, uint8_t next_k,
		      uint64_t now)
{
	const struct saina_output_head *b;

	if (!r->shm || !saina_shm_ready(r->shm, r->job))
		return false;
	b = saina_shm_output(r->shm, round, segment);
	if (!saina_shm_holds(b, round, segment))
		return false;
	shm_result_header(r, b, round, segment, next_k, r->copy);
	if (!saina_shm_holds(b, round, segment) ||
	    !saina_exponent_valid_in_result(r->job->elem, r->copy->exponent) ||
	    !saina_check_weight(r->job, r->copy))
		return false;
	if (take_result_in_place(r, b, r->copy, round, segment, now))
		return true;
	memcpy(r->copy + 1, b + 1, r->job->wire);
	if (!saina_shm_holds(b, round, segment))
		return false;
	saina_round_result(r, r->copy, now);
	return true;
}

/* Results that were overwritten are asked about, like lost ones. */
void saina_shm_completion(struct saina_round *r, const struct saina_hdr *h, uint64_t now)
{
	uint32_t round = le32toh(h->round), first = le32toh(h->segment);
	const struct saina_doorbell *doorbell = (const void *)(h + 1);
	uint64_t done = le64toh(doorbell->done);

	for (; done; done &= done - 1) {
		uint32_t segment = first + __builtin_ctzll(done);

		if (segment >= r->job->segments)
			return;
		saina_shm_result(r, round, segment, h->next_k, now);
	}
}

/* Writes the gradient that @a is about into the input array. */
static void write_input(struct saina_round *r, const struct saina_act *a)
{
	struct saina_input_head *in = saina_shm_input(r->shm, a->segment);

	/* A retransmission is the same to the bit: what is there is left. */
	if (in->session == r->job->session && in->round == a->round && in->segment == a->segment)
		return;
	saina_shm_write_begin(in);
	in->round = a->round;
	in->segment = a->segment;
	in->exponent = saina_gradient_encode(&r->grad, a->segment, in + 1);
	saina_shm_write_end(in, r->job->session);
}

bool saina_shm_put(struct saina_round *r, void *buf, const struct saina_act *a, size_t n,
		   uint64_t now)
{
	bool fetch = a->type == SAINA_ACT_PULL;
	struct saina_doorbell doorbell = {0};
	struct saina_hdr *h;
	uint64_t posted = 0;

	for (size_t i = 0; i < n; i++) {
		if (!fetch)
			write_input(r, &a[i]);
		else if (saina_shm_result(r, a[i].round, a[i].segment, 0, now))
			continue;
		posted |= 1ull << (a[i].segment - a->segment);
	}
	h = saina_msg_put_header(r, buf, fetch ? SAINA_MSG_FETCH : SAINA_MSG_DOORBELL, a);
	h->flags = a->again ? SAINA_F_RETRANSMIT : 0;
	doorbell.posted = htole64(posted);
	memcpy(h + 1, &doorbell, sizeof(doorbell));
	return posted;
}

size_t saina_shm_takes(const struct saina_round *r, const struct saina_act *a, size_t n)
{
	size_t i = 0;

	if (!r->shm || !saina_shm_ready(r->shm, r->job) ||
	    (a->type != SAINA_ACT_GRAD && a->type != SAINA_ACT_PULL))
		return 0;
	while (i < n && a[i].type == a->type && a[i].round == a->round &&
	       a[i].segment - a->segment < SAINA_DOORBELL_SEGMENTS)
		i++;
	return i;
}
