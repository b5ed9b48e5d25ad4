// SPDX-License-Identifier: GPL-2.0-or-later
/* The network of a simulated tree: frames are lost, come twice, and in any order. */
#include <stdlib.h>
#include <string.h>
#include "lib/frame.h"
#include "tree.h"

static struct tree_msg *add(struct tree *t)
{
	if (t->msgs == t->room) {
		t->room = t->room ? 2 * t->room : 256;
		t->msg = realloc(t->msg, t->room * sizeof(*t->msg));
		if (!t->msg)
			abort();
	}
	memset(&t->msg[t->msgs], 0, sizeof(*t->msg));
	return &t->msg[t->msgs++];
}

static void drop(struct tree *t, unsigned int i)
{
	free(t->msg[i].in);
	t->msg[i] = t->msg[--t->msgs];
}

void tree_net_clear(struct tree *t)
{
	while (t->msgs)
		drop(t, 0);
}

static struct tree_tags *copy(const struct tree_tags *in)
{
	struct tree_tags *c = NULL;

	if (in) {
		c = malloc(sizeof(*c));
		if (!c)
			abort();
		*c = *in;
	}
	return c;
}

/* Puts the last message into the network: it is lost, or twice in it. */
static void lose(struct tree *t)
{
	struct tree_msg *m;

	if (t->fair)
		return;
	if (rng_chance(&t->rng, t->loss)) {
		drop(t, t->msgs - 1);
	} else if (rng_chance(&t->rng, 50)) {
		m = add(t);
		*m = t->msg[t->msgs - 2];
		m->in = copy(m->in);
	}
}

/* The node that a worker of a place is; 0: none. */
static unsigned int node_of(const struct tree *t, unsigned int place, unsigned int worker)
{
	for (unsigned int p = place + 1; p < t->places; p++)
		if (t->place[p].parent == place && t->place[p].node == worker)
			return p;
	return 0;
}

static unsigned int make(struct tree *t, unsigned int place, struct saina_hdr h, const int32_t *sum, uint8_t *frame)
{
	const struct saina_job_conf *c = &t->place[place].conf;
	struct saina_ask ask = { .time = t->now };
	uint64_t zeros[TREE_ELEMS / 2] = {};

	h.version = SAINA_PROTO_VERSION;
	h.elem = SAINA_ELEM_INT32;
	h.job = place;
	if (h.type == SAINA_MSG_ASK)
		return frame_make(frame, &t->o.global, &c->worker[h.worker], &h, &ask, sizeof(ask));
	h.count = TREE_ELEMS;
	return frame_make(frame, &t->o.global, &c->worker[h.worker], &h, sum ? (const void *)sum : zeros, 4 * TREE_ELEMS);
}

void tree_send(struct tree *t, unsigned int place, unsigned int worker, const struct saina_hdr *h, const int32_t *sum,
	       const struct tree_tags *in)
{
	struct tree_msg *m = add(t);
	struct saina_hdr hdr = *h;

	hdr.worker = worker;
	m->up = true;
	m->place = place;
	m->worker = worker;
	m->node = node_of(t, place, worker);
	m->len = make(t, place, hdr, sum, m->data);
	m->in = copy(in);
	lose(t);
}

static void answer_to(struct tree *t, unsigned int place, unsigned int worker)
{
	struct tree_msg *m = add(t);

	m->place = place;
	m->worker = worker;
	m->node = node_of(t, place, worker);
	m->len = t->out.len - FRAME_HDR;
	memcpy(m->data, t->out.frame + FRAME_HDR, m->len);
	lose(t);
}

/* All ports that have a worker get answers to all: some of them have an inactive one, or the uplink's. */
static void answer(struct tree *t, unsigned int place)
{
	const struct saina_job_conf *c = &t->place[place].conf;

	if (t->out.verdict != ORACLE_REDIRECT)
		return;
	if (!t->out.multicast)
		return answer_to(t, place, t->out.worker);
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		if (c->active >> w & 1 || (c->worker[w].flags && rng_chance(&t->rng, 500)))
			answer_to(t, place, w);
}

/* What has been counted by the last packet: the tags of the slot. */
static void note_tags(struct tree *t, unsigned int place, const struct saina_hdr *h, const struct tree_tags *in)
{
	struct tree_tags *tags = &t->place[place].in[h->segment % t->o.job[place].conf.pool];
	int i = t->worker_at[place][h->worker];
	uint16_t tag = i < 0 ? 0 : t->worker[i].id << 8 | (h->policy & 0xff);

	if (!in && i < 0)
		abort();
	for (unsigned int n = 0; n < (in ? in->n : 1); n++) {
		if (tags->n == TREE_WORKERS)
			return tree_break(t, 2, "round %u segment %u: too many gradients", h->round, h->segment);
		tags->tag[tags->n++] = in ? in->tag[n] : tag;
	}
}

/* Plants TREE_TORN: the sum as it was before the gradient that makes the slot AWAY. */
static void tear(struct tree *t, unsigned int place, const struct saina_hdr *h, const int32_t *before)
{
	struct tree_place *p = &t->place[place];

	if (t->fault != TREE_TORN || !place || tree_slot(t, place, h->segment)->meta.state != SAINA_SLOT_AWAY)
		return;
	p->torn[h->segment] = rng_chance(&t->rng, 300);
	memcpy(p->torn_sum[h->segment], before, sizeof(p->torn_sum[0]));
}

static uint64_t contributions(const struct oracle_job *j, unsigned int w, bool first)
{
	return j->wcount[w].c[SAINA_C_STORED] + (first ? 0 : j->wcount[w].c[SAINA_C_ADDED]);
}

static void packet(struct tree *t, unsigned int place, const uint8_t *frame, unsigned int len, const struct tree_tags *in)
{
	struct oracle_job *j = &t->o.job[place];
	int32_t before[TREE_ELEMS];
	uint32_t last[SAINA_WORKERS_MAX], next = j->rt.next_round;
	struct saina_hdr h;
	uint64_t stored, counted;

	memcpy(&h, frame + FRAME_HDR, sizeof(h));
	stored = contributions(j, h.worker, true);
	counted = contributions(j, h.worker, false);
	memcpy(before, tree_slot(t, place, h.segment)->sum, sizeof(before));
	memcpy(last, j->last[h.segment], sizeof(last));
	t->packets++;
	oracle_packet(&t->o, frame, len, 1, &t->out);
	if (contributions(j, h.worker, true) != stored)
		t->place[place].in[h.segment % j->conf.pool].n = 0;
	if (contributions(j, h.worker, false) != counted) {
		note_tags(t, place, &h, in);
		tear(t, place, &h, before);
	}
	if (t->fault == TREE_LAST && place && h.worker == t->place[place].uplink && h.type == SAINA_MSG_GRAD)
		memcpy(j->last[h.segment], last, sizeof(last));
	tree_check_packet(t, place, h.worker, next);
	oracle_events_clear(&t->o);
}

void tree_pull_now(struct tree *t, unsigned int place, unsigned int worker, uint32_t round, uint32_t segment)
{
	struct saina_hdr h = {
		.type = SAINA_MSG_PULL, .round = round, .segment = segment, .worker = worker,
		.session = t->place[place].conf.worker[worker].session,
	};
	uint8_t frame[FRAME_HDR + TREE_BODY];

	packet(t, place, frame, make(t, place, h, NULL, frame), NULL);
	answer(t, place);
}

static void receive(struct tree *t, const struct tree_msg *m)
{
	struct tree_place *p = &t->place[m->place];
	int i = t->worker_at[m->place][m->worker];
	struct saina_hdr h;
	const uint8_t *body = m->data + sizeof(h);

	memcpy(&h, m->data, sizeof(h));
	if (m->place && m->worker == p->uplink) {
		if (p->relay.alive && p->relay.local && (h.worker == 0xff || h.session == p->relay.local))
			tree_relay_from_place(t, m->place, &h, body);
	} else if (i < 0) {
		struct tree_relay *r = &t->place[m->node].relay;

		if (r->alive && r->parent && (h.worker == 0xff || h.session == r->parent))
			tree_relay_from_parent(t, m->node, &h, body);
	} else if (t->worker[i].alive && (h.worker == 0xff || h.session == t->worker[i].session)) {
		tree_worker_receive(t, &t->worker[i], &h, body);
	}
}

void tree_deliver(struct tree *t, unsigned int i)
{
	struct tree_msg m = t->msg[i];

	t->msg[i] = t->msg[--t->msgs];
	if (!m.node || !t->place[m.node].link_down) {
		if (m.up) {
			packet(t, m.place, m.data, m.len, m.in);
			answer(t, m.place);
		} else {
			receive(t, &m);
		}
	}
	free(m.in);
}
