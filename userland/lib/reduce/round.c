// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include <errno.h>
#include <stdlib.h>
#include "size_check.h"

int saina_round_init(struct saina_round *r, const struct saina_job *job, uint32_t room,
		     uint32_t window, uint64_t ask_min)
{
	int ret;

	r->job = job;
	r->acts = 0;
	r->mismatch_ns = saina_size_check_ns(job);
	ret = saina_flow_init(&r->flow, job, room, window, ask_min);
	if (!ret)
		ret = saina_gradient_init(&r->grad, job);
	if (!ret)
		ret = saina_kept_init(&r->kept, job);
	if (!ret && !(r->copy = malloc(job->msglen)))
		ret = -ENOMEM;
	return ret;
}

void saina_round_exit(struct saina_round *r)
{
	saina_flow_exit(&r->flow);
	saina_gradient_exit(&r->grad);
	saina_kept_exit(&r->kept);
	free(r->copy);
}

void saina_round_start(struct saina_round *r, struct saina_req *q, uint64_t now)
{
	struct saina_req **tail = &r->reqs;
	uint32_t first = r->flow.assigned;

	q->t.first = first;
	q->segments = (q->t.n - 1) / r->job->payload + 1;
	q->start_ns = now;
	r->submitted = q->t.n + (first ? r->submitted : 0);
	q->call.round = r->flow.round;
	q->call.segments = q->segments;
	q->call.mask_all = ~0ull;
	for (uint32_t i = first; i < first + q->segments; i++) {
		r->grad.state[i].t = &q->t;
		r->grad.state[i].chosen = false;
	}
	while (*tail)
		tail = &(*tail)->next;
	*tail = q;
	saina_round_assign(r, q);
}

void saina_round_assign(struct saina_round *r, const struct saina_req *q)
{
	saina_flow_add(&r->flow, q->segments);
}

void saina_round_forget(struct saina_round *r, struct saina_req *q)
{
	struct saina_req **p = &r->reqs;

	while (*p && *p != q)
		p = &(*p)->next;
	if (*p)
		*p = q->next;
	for (uint32_t i = q->t.first; i < q->t.first + q->segments; i++)
		r->grad.state[i].t = NULL;
}

int saina_round_move(struct saina_round *r, const struct saina_move *moves, size_t n)
{
	return saina_gradient_move(&r->grad, moves, n);
}

static struct saina_req *request_of(const struct saina_segment_state *p)
{
	return (void *)((char *)p->t - offsetof(struct saina_req, t));
}

struct saina_req *saina_round_request(const struct saina_round *r, uint32_t segment)
{
	return request_of(&r->grad.state[segment]);
}

static void req_finish(struct saina_round *r, struct saina_req *q, int err)
{
	q->finished = true;
	q->err = err;
	r->any_finished = true;
}

void saina_round_fail(struct saina_round *r, int err)
{
	for (struct saina_req *q = r->reqs; q; q = q->next)
		if (!q->finished)
			req_finish(r, q, err);
}

/* The result of a segment of @q was taken, or cannot be had. */
static void segment_done(struct saina_round *r, struct saina_req *q, uint64_t now)
{
	const struct saina_flow *f = &r->flow;
	uint32_t newest = f->known_next > 1 ? f->known_next - 2 : 0;

	r->progress_ns = now;
	if (++q->done < q->segments)
		return;
	if (newest < f->round)
		newest = f->round;
	while (saina_flow_complete(f, newest + 1))
		newest++;
	q->call.round = f->round; /* it may have rejoined the previous round */
	q->call.rounds_behind = newest - f->round;
	q->call.time_us = (now - q->start_ns) / 1000;
	req_finish(r, q, q->err);
}

void saina_round_segment_over(struct saina_round *r, uint32_t segment, uint64_t now)
{
	segment_done(r, saina_round_request(r, segment), now);
}

static void account_result(struct saina_round *r, uint32_t segment, const struct saina_hdr *h, bool late)
{
	struct saina_segment_state *p = &r->grad.state[segment];
	struct saina_req *q = request_of(p);
	struct saina_call *c = &q->call;

	p->last.round = le32toh(h->round);
	p->last.mask = le64toh(h->mask);
	p->last.contributors = h->contributors;
	p->last.k = h->k;
	p->last.flags = h->flags;
	p->last.policy = le16toh(h->policy);
	p->last.exponent = h->exponent;

	if (!q->done || h->contributors < c->count_min)
		c->count_min = h->contributors;
	if (h->contributors > c->count_max)
		c->count_max = h->contributors;
	c->mask_any |= p->last.mask;
	c->mask_all &= p->last.mask;
	if (h->k > c->k)
		c->k = h->k;
	c->next_k = h->next_k;
	if (h->flags & SAINA_F_DEGRADED)
		c->degraded_segments++;
	if (h->exponent == SAINA_EXPONENT_NAN) {
		c->nonfinite_segments++;
		r->stats.nonfinite_segments++;
	}
	if (late) {
		c->late_segments++;
		r->stats.late_segments++;
		if (!saina_flow_was_sent(&r->flow, segment))
			c->skipped_segments++;
	}
	r->stats.segments++;
}

void saina_round_saturated(struct saina_round *r, uint32_t segment, size_t n)
{
	saina_round_request(r, segment)->call.saturated += n;
	r->stats.saturated += n;
}

void saina_round_keep(struct saina_round *r, uint32_t segment)
{
	saina_round_saturated(r, segment, saina_residual_keep(&r->grad, segment));
}

/* Writes the sums into the caller's elements. */
static void decode_sums(struct saina_round *r, uint32_t segment, const struct saina_hdr *h, const void *sums)
{
	struct saina_req *q = request_of(&r->grad.state[segment]);
	int ret = saina_gradient_decode(&r->grad, segment, h, sums,
					q->op == SAINA_MEAN ? h->contributors : 1);

	q->err = ret ? ret : q->err;
}

/*
 * Takes the result of a segment of the present round.  Settles the residual first, while the buffer
 * still has the caller's gradient.
 */
static void take_result(struct saina_round *r, const struct saina_hdr *h, uint64_t now)
{
	uint32_t segment = le32toh(h->segment);
	bool in = le64toh(h->mask) >> r->job->worker & 1;

	if (saina_flow_was_sent(&r->flow, segment) && in) {
		saina_residual_counted(&r->grad, segment, h->exponent);
	} else if (!in && (h->flags & SAINA_F_DROP_LATE)) {
		saina_residual_drop(&r->grad, segment);
	} else {
		/* Late, or what was counted is an earlier incarnation's. */
		saina_round_keep(r, segment);
	}
	account_result(r, segment, h, !in);
	decode_sums(r, segment, h, h + 1);
	saina_round_segment_over(r, segment, now);
}

/* The result of a segment of the present round cannot be had. */
static void lose_segment(struct saina_round *r, uint32_t segment, bool counted, uint64_t now)
{
	struct saina_segment_state *p = &r->grad.state[segment];
	struct saina_req *q = request_of(p);

	if (counted && saina_flow_was_sent(&r->flow, segment))
		saina_residual_counted(&r->grad, segment, p->exponent);
	else
		saina_round_keep(r, segment);
	q->err = -ESTALE;
	segment_done(r, q, now);
}

static void result_rx(struct saina_round *r, const struct saina_hdr *h, uint64_t now)
{
	uint32_t round = le32toh(h->round), segment = le32toh(h->segment);

	if (h->flags & SAINA_F_LATE)
		r->stats.late_answers++;
	/* a result of the round that the aggregator is in, or was in just now */
	if (h->worker == SAINA_WORKER_ANY && round >= r->flow.round)
		r->flow.timeout_ns = le32toh(h->aux) * 1000ull;
	switch (saina_flow_result(&r->flow, round, segment, now)) {
	case SAINA_RESULT_NONE:
		return;
	case SAINA_RESULT_LEARN:
		saina_gradient_learn(&r->grad, segment, h);
		r->stats.duplicate_results++;
		return;
	case SAINA_RESULT_DUPLICATE:
		r->stats.duplicate_results++;
		return;
	case SAINA_RESULT_KEEP:
		if (!saina_kept_put(&r->kept, h)) {
			/* As if it was lost: it can be pulled again. */
			saina_reorder_remove(&r->flow.reorder, round, segment);
			return;
		}
		break;
	case SAINA_RESULT_TAKE:
		take_result(r, h, now);
		break;
	}
	r->stats.results++;
	r->stats.results_bytes += r->job->msglen;
}

/* The header that a RESULT has, of an entry of the output array. */
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
	h->count = htole16(r->job->payload);
	h->exponent = b->exponent;
	h->contributors = b->contributors;
	h->mask = htole64(b->mask);
	h->k = b->k;
	h->next_k = next_k;
	h->policy = htole16(b->policy);
	h->flags = b->flags;
}

/*
 * The common case of a result in the output array: our gradient was counted without residual or
 * shift, so nothing of it is needed any more and the sums can be decoded in place.  If the
 * aggregator overwrites the entry meanwhile, the result comes again, as a message.
 */
static bool take_result_in_place(struct saina_round *r, const struct saina_output_head *b,
			     const struct saina_hdr *h, uint32_t round, uint32_t segment,
			     uint64_t now)
{
	const struct saina_segment_state *p = &r->grad.state[segment];

	if (!saina_flow_wants(&r->flow, round, segment) ||
	    !saina_flow_was_sent(&r->flow, segment) || p->exponent != h->exponent || p->residual ||
	    !(le64toh(h->mask) >> r->job->worker & 1))
		return false;
	decode_sums(r, segment, h, b + 1);
	if (!saina_shm_output_holds(b, round))
		return true;
	saina_flow_result(&r->flow, round, segment, now);
	account_result(r, segment, h, false);
	saina_round_segment_over(r, segment, now);
	r->stats.results++;
	r->stats.results_bytes += r->job->msglen;
	return true;
}

/* Takes a result from the output array; false: it is not there (any more). */
static bool shm_result_rx(struct saina_round *r, uint32_t round, uint32_t segment, uint8_t next_k,
			 uint64_t now)
{
	const struct saina_output_head *b;

	if (!r->shm || !saina_shm_ready(r->shm, r->job))
		return false;
	b = saina_shm_output(r->shm, round, segment);
	if (!saina_shm_output_holds(b, round))
		return false;
	shm_result_header(r, b, round, segment, next_k, r->copy);
	if (!saina_shm_output_holds(b, round) || !saina_exponent_valid_in_result(r->job->elem, r->copy->exponent))
		return false;
	if (take_result_in_place(r, b, r->copy, round, segment, now))
		return true;
	memcpy(r->copy + 1, b + 1, r->job->wire);
	if (!saina_shm_output_holds(b, round))
		return false;
	result_rx(r, r->copy, now);
	return true;
}

/* Results are in the output array.  Those that were overwritten are asked about, like lost ones. */
static void completion_rx(struct saina_round *r, const struct saina_hdr *h, uint64_t now)
{
	uint32_t round = le32toh(h->round), first = le32toh(h->segment);
	const struct saina_doorbell *doorbell = (const void *)(h + 1);
	uint64_t done = le64toh(doorbell->done);

	for (; done; done &= done - 1) {
		uint32_t segment = first + __builtin_ctzll(done);

		if (segment >= r->job->segments)
			return;
		shm_result_rx(r, round, segment, h->next_k, now);
	}
}

static void stale_rx(struct saina_round *r, const struct saina_hdr *h, uint64_t now)
{
	uint32_t round = le32toh(h->round), segment = le32toh(h->segment);

	if (saina_flow_stale(&r->flow, round, segment, le32toh(h->slot_round), now))
		lose_segment(r, segment, le32toh(h->aux) == round + 1, now);
}

void saina_round_input(struct saina_round *r, const struct saina_hdr *h, uint64_t now)
{
	if (h->type == SAINA_MSG_RESULT)
		result_rx(r, h, now);
	else if (h->type == SAINA_MSG_COMPLETION)
		completion_rx(r, h, now);
	else if (h->type == SAINA_MSG_ASK_REPLY)
		saina_flow_ask_reply(&r->flow, le32toh(h->round), le32toh(h->segment), (const void *)(h + 1),
				le32toh(h->slot_round), now);
	else
		stale_rx(r, h, now);
}

static struct saina_hdr *put_header(struct saina_round *r, void *buf, int type, const struct saina_act *a)
{
	struct saina_hdr *h = buf;

	saina_job_header(r->job, h, type);
	h->elem = r->job->elem;
	h->round = htole32(a->round);
	h->segment = htole32(a->segment);
	return h;
}

static struct saina_hdr *put_long_header(struct saina_round *r, void *buf, int type,
				     const struct saina_act *a)
{
	struct saina_hdr *h = put_header(r, buf, type, a);

	h->count = htole16(r->job->payload);
	h->flags = a->again ? SAINA_F_RETRANSMIT : 0;
	return h;
}

static void put_ask(struct saina_round *r, void *buf, const struct saina_act *a, uint64_t now)
{
	struct saina_ask ask = {.time = htole64(now)};

	memcpy(put_header(r, buf, SAINA_MSG_ASK, a) + 1, &ask, sizeof(ask));
}

/* As long as the result it asks for, so that answers are never longer than requests. */
static void put_pull(struct saina_round *r, void *buf, const struct saina_act *a)
{
	memset(put_long_header(r, buf, SAINA_MSG_PULL, a) + 1, 0, r->job->wire);
}

static void put_grad(struct saina_round *r, void *buf, const struct saina_act *a)
{
	struct saina_hdr *h = put_long_header(r, buf, SAINA_MSG_GRAD, a);

	h->exponent = saina_gradient_encode(&r->grad, a->segment, h + 1);
}

/* Puts @n gradients into the input array, and a DOORBELL for them into @buf. */
static void put_doorbell(struct saina_round *r, void *buf, const struct saina_act *a, size_t n)
{
	struct saina_hdr *h = put_header(r, buf, SAINA_MSG_DOORBELL, a);
	uint64_t posted = 0;
	struct saina_doorbell doorbell;

	h->flags = a->again ? SAINA_F_RETRANSMIT : 0;
	for (size_t i = 0; i < n; i++) {
		struct saina_input_head *in = saina_shm_input(r->shm, a[i].segment);

		/* a retransmission is the same to the bit */
		if (in->session != r->job->session || in->round != a[i].round ||
		    in->segment != a[i].segment) {
			saina_shm_write_begin(in);
			in->round = a[i].round;
			in->segment = a[i].segment;
			in->exponent = saina_gradient_encode(&r->grad, a[i].segment, in + 1);
			saina_shm_write_end(in, r->job->session);
		}
		posted |= 1ull << (a[i].segment - a->segment);
	}
	doorbell = (struct saina_doorbell){.posted = htole64(posted)};
	memcpy(h + 1, &doorbell, sizeof(doorbell));
}

/* Are these nothing but gradients of one round, within the reach of one DOORBELL? */
static bool fits_doorbell(const struct saina_round *r, const struct saina_act *a, size_t n)
{
	if (!r->shm || !saina_shm_ready(r->shm, r->job))
		return false;
	for (size_t i = 0; i < n; i++)
		if (a[i].type != SAINA_ACT_GRAD || a[i].round != a->round ||
		    a[i].segment - a->segment >= SAINA_DOORBELL_SEGMENTS)
			return false;
	return true;
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
			put_grad(r, buf + *len * n++, a);
			break;
		case SAINA_ACT_PULL:
			if (shm_result_rx(r, a->round, a->segment, 0, now))
				break;
			put_pull(r, buf + *len * n++, a);
			break;
		case SAINA_ACT_ASK:
			*len = sizeof(struct saina_hdr) + sizeof(struct saina_ask);
			put_ask(r, buf + *len * n++, a, now);
			break;
		case SAINA_ACT_REORDERED:
			take_result(r, saina_kept_get(&r->kept, a->round, a->segment), now);
			break;
		case SAINA_ACT_LOST:
			lose_segment(r, a->segment, false, now);
			break;
		}
	}
	return n;
}

static bool is_message_act(const struct saina_act *a)
{
	return a->type != SAINA_ACT_REORDERED && a->type != SAINA_ACT_LOST;
}

/* What to do now: first what did not fit into the last batch of doorbells. */
static size_t next_acts(struct saina_round *r, uint64_t now, uint64_t *when)
{
	if (!r->acts)
		r->acts = saina_flow_run(&r->flow, now, r->act, SAINA_ASK_SEGMENTS, when);
	return r->acts;
}

unsigned int saina_round_output(struct saina_round *r, uint64_t now, uint8_t *buf, size_t *len,
				uint64_t *when)
{
	const size_t doorbell = sizeof(struct saina_hdr) + sizeof(struct saina_doorbell);
	unsigned int doorbells = 0, n = 0;
	size_t acts;

	while (!n && doorbells < SAINA_DOORBELLS_MAX && (acts = next_acts(r, now, when))) {
		if (fits_doorbell(r, r->act, acts))
			put_doorbell(r, buf + doorbell * doorbells++, r->act, acts);
		else if (!doorbells || !is_message_act(r->act))
			n = put_acts(r, r->act, acts, now, buf, len);
		else
			break; /* of another length: in the next call */
		r->acts = 0;
	}
	if (doorbells)
		*len = doorbell;
	return doorbells + n;
}

/* The gradients of @segments, from the one in @h on, were sent.  Their all-reduce may be over. */
static void count_gradients(struct saina_round *r, const struct saina_hdr *h, uint64_t segments)
{
	const struct saina_segment_state *p = &r->grad.state[le32toh(h->segment)];
	unsigned int n = __builtin_popcountll(segments);

	if (!(h->flags & SAINA_F_RETRANSMIT)) {
		r->stats.sent += n;
		r->stats.sent_bytes += n * r->job->msglen;
		return;
	}
	r->stats.resent += n;
	for (; segments && le32toh(h->round) == r->flow.round; segments &= segments - 1)
		if (p[__builtin_ctzll(segments)].t)
			request_of(&p[__builtin_ctzll(segments)])->call.resent++;
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
		case SAINA_MSG_ASK:
			r->stats.asked++;
			break;
		}
	}
}
