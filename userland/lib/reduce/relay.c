// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The mode of a relay: rounds whose sums come from the caller and go to it. */
#include <errno.h>
#include <stdlib.h>
#include "reduce_msg.h"
#include "relay.h"

/**
 * struct relay
 * @want: ASKs and PULLs that the caller wants beside the transport's, @wants of them
 */
struct relay {
	const struct saina_relay_calls *calls;
	void *arg;
	struct saina_act want[SAINA_ASK_SEGMENTS];
	size_t wants;
};

static struct relay *relay_of(const struct saina_round *r)
{
	return r->mode;
}

static void take(struct saina_round *r, const struct saina_hdr *h)
{
	relay_of(r)->calls->take(relay_of(r)->arg, h);
}

static void lost(struct saina_round *r, uint32_t round, uint32_t segment, bool counted)
{
	relay_of(r)->calls->lost(relay_of(r)->arg, round, segment, counted);
}

/* What comes before its segment is submitted is taken at once: the slot here may not even be open. */
static void result_rx(struct saina_round *r, const struct saina_hdr *h, uint64_t now)
{
	uint32_t round = le32toh(h->round);
	enum saina_verdict verdict;

	if (h->worker == SAINA_WORKER_ANY && round >= r->flow.round)
		r->flow.timeout_ns = le32toh(h->aux) * 1000ull;
	verdict = saina_flow_result(&r->flow, round, le32toh(h->segment), now);
	if (verdict != SAINA_RESULT_TAKE && verdict != SAINA_RESULT_KEEP) {
		r->stats.duplicate_results += verdict != SAINA_RESULT_NONE;
		return;
	}
	/* Without memory the result counts as lost: it can be pulled again. */
	if (round != r->flow.round && !saina_reorder_put(&r->flow.reorder, h))
		return;
	r->stats.results++;
	r->stats.results_bytes += r->job->msglen;
	if (round == r->flow.round)
		take(r, h);
}

static void stale_rx(struct saina_round *r, const struct saina_hdr *h, uint64_t now)
{
	uint32_t round = le32toh(h->round), segment = le32toh(h->segment);
	bool unsubmitted = round == r->flow.round && segment >= r->flow.assigned;

	if (saina_flow_stale(&r->flow, round, segment, le32toh(h->slot_round), now) || unsubmitted)
		lost(r, round, segment, le32toh(h->aux) == round + 1);
}

static int input(struct saina_round *r, const struct saina_hdr *h, uint64_t now)
{
	if (h->type == SAINA_MSG_RESULT) {
		result_rx(r, h, now);
	} else if (h->type == SAINA_MSG_STALE) {
		stale_rx(r, h, now);
	} else if (h->type == SAINA_MSG_ASK_REPLY) {
		saina_round_ask_reply(r, h, now);
		relay_of(r)->calls->asked(relay_of(r)->arg, h);
	}
	return 0;
}

static void put_grad(struct saina_round *r, void *buf, const struct saina_act *a)
{
	struct saina_relay_grad g = {0};
	struct saina_hdr *h = saina_msg_put_long_header(r, buf, SAINA_MSG_GRAD, a);

	relay_of(r)->calls->fill(relay_of(r)->arg, a->segment, &g, h + 1);
	h->exponent = g.exponent;
	h->flags |= g.flags;
	h->slot_round = htole32(g.slot_round);
}

/* Does the actions; returns how many messages of @len bytes are in @buf. */
static unsigned int put_acts(struct saina_round *r, const struct saina_act *act, size_t acts,
			     uint64_t now, uint8_t *buf, size_t *len)
{
	unsigned int n = 0;

	*len = act->type == SAINA_ACT_ASK ? sizeof(struct saina_hdr) + sizeof(struct saina_ask)
					  : r->job->msglen;
	for (const struct saina_act *a = act; a < act + acts; a++) {
		if (a->type == SAINA_ACT_GRAD)
			put_grad(r, buf + *len * n++, a);
		else if (a->type == SAINA_ACT_PULL)
			saina_msg_put_pull(r, buf + *len * n++, a);
		else if (a->type == SAINA_ACT_ASK)
			saina_msg_put_ask(r, buf + *len * n++, a, now);
		else if (a->type == SAINA_ACT_LOST)
			lost(r, a->round, a->segment, false);
		/* REORDERED was taken when it came, or when its round began. */
	}
	return n;
}

/* What the caller wants: as many as a batch has, of one type. */
static unsigned int put_wants(struct saina_round *r, uint64_t now, uint8_t *buf, size_t *len)
{
	struct relay *e = relay_of(r);
	unsigned int n;
	size_t i = 0;

	while (i < e->wants && i < r->job->per_batch && e->want[i].type == e->want[0].type)
		i++;
	n = put_acts(r, e->want, i, now, buf, len);
	e->wants -= i;
	memmove(e->want, e->want + i, e->wants * sizeof(*e->want));
	return n;
}

static unsigned int output(struct saina_round *r, uint64_t now, uint8_t *buf, size_t *len,
			   uint64_t *when)
{
	unsigned int n = 0;
	size_t acts;

	if (relay_of(r)->wants)
		return put_wants(r, now, buf, len);
	while (!n && (acts = saina_flow_run(&r->flow, now, r->act, SAINA_ASK_SEGMENTS, when)))
		n = put_acts(r, r->act, acts, now, buf, len);
	return n;
}

static bool waits(const struct saina_round *r)
{
	return r->flow.inflight || relay_of(r)->wants;
}

static void status(struct saina_round *r, uint32_t next, uint64_t now)
{
	saina_flow_next(&r->flow, next, now);
}

/* The sums are where they were, so a job that is formed again can have them, if it is at this round. */
static bool again(struct saina_round *r, uint64_t now, char *text, size_t size)
{
	const struct saina_job *job = r->job;

	if ((!job->formed || job->first_round >= r->flow.round) &&
	    saina_flow_again(&r->flow, job->first_round, job->formed, now))
		return true;
	snprintf(text, size, "job %u was restarted at round %u, and this relay is in round %u", job->id,
		 job->first_round, r->flow.round);
	return false;
}

static void relay_exit(struct saina_round *r)
{
	saina_flow_exit(&r->flow);
	free(r->mode);
	r->mode = NULL;
}

static const struct saina_reduce_ops relay_ops = {
	.input = input,
	.output = output,
	.waits = waits,
	.status = status,
	.again = again,
	.exit = relay_exit,
};

int saina_relay_init(struct saina_round *r, const struct saina_job *job, uint32_t room,
		     const struct saina_relay_calls *calls, void *arg)
{
	struct relay *e = calloc(1, sizeof(*e));
	int ret = saina_flow_init(&r->flow, job, room, 0, 0);

	r->job = job;
	r->ops = &relay_ops;
	r->mode = e;
	if (!e)
		return -ENOMEM;
	e->calls = calls;
	e->arg = arg;
	if (ret)
		return ret;
	r->flow.floor = job->formed ? job->first_round : 0;
	saina_flow_next(&r->flow, job->first_round, 0);
	return 0;
}

void saina_relay_round(struct saina_round *r, uint32_t round, uint64_t now)
{
	struct saina_reorder *kept = &r->flow.reorder;

	/* What was taken of a round that begins once more is not kept. */
	if (round <= r->flow.round)
		saina_reorder_drop(kept, round, r->flow.round + 1);
	relay_of(r)->wants = 0;
	saina_flow_round(&r->flow, round);
	for (uint32_t i = 0; i < r->job->segments && r->flow.round == round; i++)
		if (saina_reorder_has(kept, round, i))
			take(r, saina_reorder_get(kept, round, i));
}

void saina_relay_submit(struct saina_round *r, uint32_t n)
{
	saina_flow_add(&r->flow, n);
}

void saina_relay_skip(struct saina_round *r, uint32_t n)
{
	for (uint32_t i = r->flow.assigned; i < r->flow.assigned + n; i++)
		saina_reorder_add(&r->flow.reorder, r->flow.round, i);
	saina_flow_add(&r->flow, n);
}

static bool want(struct saina_round *r, enum saina_act_type type, uint32_t segment)
{
	struct relay *e = relay_of(r);

	if (e->wants == SAINA_ASK_SEGMENTS)
		return false;
	e->want[e->wants++] = (struct saina_act){type, r->flow.round, segment, false};
	return true;
}

bool saina_relay_ask(struct saina_round *r, uint32_t segment)
{
	return want(r, SAINA_ACT_ASK, segment);
}

bool saina_relay_pull(struct saina_round *r, uint32_t segment)
{
	return want(r, SAINA_ACT_PULL, segment);
}

bool saina_relay_over(const struct saina_round *r, uint32_t segment)
{
	const struct saina_flow *f = &r->flow;

	return saina_reorder_has(&f->reorder, f->round, segment) ||
	       (segment < f->assigned && !saina_flow_wants(f, f->round, segment));
}
