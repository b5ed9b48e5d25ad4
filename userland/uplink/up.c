// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sums to the parent.  libsaina's transport says what to send when; the bytes come from the slots.
 * They do not change until the result is there, so every sending of a segment has the same bits.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "relay.h"

/*
 * The relay does not know how long a round is, so what has become AWAY goes up when a batch is
 * full, or when nothing more has come for this long.
 */
#define QUIET_NS 50000

static void result_rx(struct relay *r, const struct saina_hdr *h)
{
	down_put(r, h);
	r->up.over++;
}

static void lost(struct relay *r, uint32_t round, uint32_t segment)
{
	relay_end(r, UPLINK_STALE,
		  "the parent's job has no result of round %u, segment %u any more: this job begins anew, "
		  "and its workers join again with the model of a worker of another host",
		  round, segment);
}

static void input(struct member *m, const struct saina_hdr *h, uint64_t now)
{
	uint32_t round = le32toh(h->round), segment = le32toh(h->segment);
	struct relay *r = m->arg;
	struct saina_flow *f = &r->up.flow;

	switch (h->type) {
	case SAINA_MSG_RESULT:
		switch (saina_flow_result(f, round, segment, now)) {
		case SAINA_RESULT_KEEP:
			saina_reorder_put(&f->reorder, h);
			break;
		case SAINA_RESULT_TAKE:
			result_rx(r, h);
			break;
		default:
			break;
		}
		break;
	case SAINA_MSG_STALE:
		if (saina_flow_stale(f, round, segment, le32toh(h->slot_round), now))
			lost(r, round, segment);
		break;
	case SAINA_MSG_ASK_REPLY:
		saina_flow_ask_reply(f, round, segment, (const void *)(h + 1), le64toh(h->mask),
				     le32toh(h->slot_round), now);
		break;
	}
}

/* The parent's job must be cut as the own one is: then a segment here is one there. */
static bool parent_fits(struct relay *r)
{
	const struct saina_job *job = &r->up.member.session.job;
	const struct uplink_handover *c = &r->conf;

	if (saina_job_count(job) == c->payload && job->segments == c->segments && job->elem == c->elem)
		return true;
	relay_end(r, UPLINK_ENDED,
		  "the parent's job has %u segments of %u elements, type %u, this one %u of %u, type %u: "
		  "create both with the same elements, payload and type",
		  job->segments, saina_job_count(job), job->elem, c->segments, c->payload, c->elem);
	return false;
}

static void begin(struct relay *r, uint64_t now)
{
	struct up *u = &r->up;
	const struct saina_job *job = &u->member.session.job;

	if (!parent_fits(r))
		return;
	if (saina_flow_init(&u->flow, job, saina_io_room(&u->member.io), 0, 0) ||
	    (!u->member.io.buf && saina_io_buffer(&u->member.io))) {
		relay_end(r, UPLINK_ENDED, "out of memory for a job of %llu elements",
			  (unsigned long long)job->elements);
		return;
	}
	saina_flow_begin(&u->flow, job->first_round, job->formed, now);
	if (u->member.session.rtt_ns)
		saina_cwnd_sample(&u->flow.cwnd, u->member.session.rtt_ns, now);
	u->ready = true;
	u->over = u->seen = 0;
}

static void event(struct member *m, enum saina_session_event event, uint64_t now)
{
	struct relay *r = m->arg;
	struct up *u = &r->up;
	struct saina_session *j = &m->session;

	if (event == SAINA_SESSION_BEGINS) {
		begin(r, now);
	} else if (event == SAINA_SESSION_RESUMES && u->ready) {
		if ((j->job.formed && j->job.first_round < u->flow.round) ||
		    !saina_flow_again(&u->flow, j->job.first_round, j->job.formed, now))
			relay_end(r, UPLINK_STALE,
				  "the parent's job was restarted in the middle of round %u: this job "
				  "begins anew, and its workers join again", u->flow.round);
	} else if (event == SAINA_SESSION_STATUS && u->ready) {
		saina_flow_next(&u->flow, j->next_round, now);
	}
	if (u->ready && j->timeout_ms != u->flow.timeout_ms) {
		u->flow.timeout_ms = j->timeout_ms;
		u->flow.timeout_ns = j->timeout_ms * MSEC;
	}
}

static const struct member_ops ops = {event, input};

/* FNV-1a of the node's name. */
static uint64_t name_hash(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 0x100000001b3;
	return hash;
}

static void fill_node(struct saina_join_node *n, const struct uplink_handover *c)
{
	*n = (struct saina_join_node){
		.incarnation = htole64(c->incarnation),
		.name_hash = htole64(name_hash(c->node)),
		.max_weight = htole32(c->max_weight),
		.segments = htole32(c->segments),
		.payload = htole16(c->payload),
		.pool = htole16(c->pool),
		.ring = htole16(c->ring),
		.elem = c->elem,
	};
}

int up_open(struct relay *r, uint64_t now)
{
	const struct uplink_handover *c = &r->conf;
	struct member *m = &r->up.member;
	struct saina_join_node node;
	struct member_conf conf = {
		.ip.s_addr = c->parent_ip,
		.port = c->parent_udp_port,
		.job = c->parent_job,
		.worker = c->parent_worker,
		.job_name = c->parent_name,
		.name = c->node,
		.token = c->parent_token,
		.elements = c->elements,
		.node = &node,
		.round = r->up.pending ? r->up.round : 0,
	};

	fill_node(&node, c);
	m->ops = &ops;
	m->arg = r;
	m->what = "parent";
	m->group = true;
	return member_open(m, &conf, now);
}

void up_close(struct relay *r)
{
	saina_io_close(&r->up.member.io);
	if (r->up.ready)
		saina_flow_exit(&r->up.flow);
}

void up_away(struct relay *r, uint32_t round)
{
	struct up *u = &r->up;

	if (u->ready && round <= u->flow.round && u->flow.assigned)
		return;
	if (!u->pending || round > u->round)
		u->round = round;
	u->pending = true;
}

/*
 * Which segments of the first round have a result from an earlier relay.  Nothing becomes DONE while
 * no relay runs, but a slot may just be opened, and its head be half written: so what counts is what
 * two looks agree on.
 */
static void find_results(struct relay *r)
{
	uint32_t n = r->conf.segments, round = r->up.round;

	r->begun = true;
	r->had_round = round;
	for (uint32_t i = 0; i < n; i++)
		r->had[i] = uplink_slots_where(&r->slots, round, i) == UPLINK_OVER;
	usleep(1000);
	for (uint32_t i = 0; i < n; i++)
		r->had[i] &= uplink_slots_where(&r->slots, round, i) == UPLINK_OVER;
}

/* The round of the sums that are AWAY now; the one before has all its results. */
static void begin_round(struct relay *r)
{
	struct up *u = &r->up;
	struct saina_flow *f = &u->flow;

	if (!u->pending || u->over < f->assigned)
		return;
	if (!r->begun)
		find_results(r);
	saina_flow_round(f, u->round);
	u->member.session.round = u->round;
	u->pending = false;
	u->over = u->seen = 0;
}

/* Has @segment of the flow's round a result that an earlier relay has brought? */
static bool had_result(const struct relay *r, uint32_t segment)
{
	return r->up.flow.round == r->had_round && r->had[segment];
}

/* Segments up to @end may go up. */
static void submit(struct relay *r, uint32_t end)
{
	struct up *u = &r->up;
	struct saina_flow *f = &u->flow;
	struct saina_batch *b;

	for (uint32_t i = f->assigned; i < end; i++) {
		saina_flow_add(f, 1);
		if (!had_result(r, i))
			continue;
		b = &f->batch[i / f->per_batch];
		b->over |= 1ull << i % f->per_batch;
		f->known[i] = f->round + 1;
		u->over++;
	}
}

/* Looks for sums that have become AWAY. */
static void look(struct relay *r, uint64_t now, uint64_t *when)
{
	struct up *u = &r->up;
	struct saina_flow *f = &u->flow;
	uint32_t seen = u->seen, full;

	for (; seen < f->segments; seen++) {
		uplink_slots_ahead(&r->slots, seen);
		if (!had_result(r, seen) &&
		    uplink_slots_where(&r->slots, f->round, seen) != UPLINK_AWAY)
			break;
	}
	if (seen > u->seen) {
		u->seen = seen;
		u->seen_ns = now;
	}
	full = seen == f->segments ? seen : seen - seen % f->per_batch;
	if (full > f->assigned)
		submit(r, full);
	if (seen == f->assigned)
		return;
	if (now >= u->seen_ns + QUIET_NS)
		submit(r, seen);
	else
		earliest(when, u->seen_ns + QUIET_NS);
}

/* Writes the message of @a; false: there is nothing to send any more. */
static bool put_grad(struct relay *r, const struct saina_act *a, struct saina_hdr *h)
{
	struct saina_slot_meta meta;

	uplink_slots_ahead(&r->slots, a->segment);
	if (!uplink_slots_read(&r->slots, a->round, a->segment, &meta, h + 1))
		return false;
	h->exponent = meta.exponent;
	h->slot_round = htole32(meta.count + meta.weight - 1);
	if (meta.exponent == SAINA_EXPONENT_NAN) {
		h->flags |= meta.flags & SAINA_F_TYPES;
		memset(h + 1, 0, r->slots.wire); /* what is there means nothing */
	}
	if (a->again)
		r->up.resent++;
	else
		r->up.sent++;
	return true;
}

/* Does the actions; returns how many messages of @len bytes are to be sent. */
static unsigned int put_acts(struct relay *r, const struct saina_act *act, size_t acts, uint64_t now,
			     size_t *len)
{
	struct up *u = &r->up;
	const struct saina_job *job = &u->member.session.job;
	struct saina_ask ask = {.time = htole64(now)};
	unsigned int n = 0;

	*len = act->type == SAINA_ACT_ASK ? sizeof(struct saina_hdr) + sizeof(ask) : job->msglen;
	for (const struct saina_act *a = act; a < act + acts; a++) {
		struct saina_hdr *h = (void *)(u->member.io.buf + *len * n);

		if (a->type == SAINA_ACT_REORDERED) {
			result_rx(r, saina_reorder_get(&u->flow.reorder, a->round, a->segment));
			continue;
		} else if (a->type == SAINA_ACT_LOST) {
			lost(r, a->round, a->segment);
			continue;
		}
		saina_job_header(job, h, a->type == SAINA_ACT_ASK    ? SAINA_MSG_ASK
					 : a->type == SAINA_ACT_PULL ? SAINA_MSG_PULL
								     : SAINA_MSG_GRAD);
		h->elem = job->elem;
		h->round = htole32(a->round);
		h->segment = htole32(a->segment);
		if (a->type == SAINA_ACT_ASK) {
			memcpy(h + 1, &ask, sizeof(ask));
			n++;
			continue;
		}
		h->count = htole16(saina_job_count(job));
		h->flags = a->again ? SAINA_F_RETRANSMIT : 0;
		if (a->type == SAINA_ACT_PULL)
			memset(h + 1, 0, job->wire);
		n += a->type == SAINA_ACT_PULL || put_grad(r, a, h);
	}
	return n;
}

static void fill_report(struct up *u, uint64_t now)
{
	const struct member *m = &u->member;

	u->member.session.report = (struct saina_report){
		.refused = htole32(m->io.err),
		.refused_ms = htole32(m->io.err ? (now - m->session.sent_ns) / MSEC : 0),
		.sent = htole64(u->sent),
		.resent = htole64(u->resent),
		.rtt_us = htole32(u->flow.cwnd.srtt / 1000),
		.window = htole32(u->flow.cwnd.size * m->session.job.per_batch),
	};
}

uint64_t up_run(struct relay *r, uint64_t now)
{
	struct up *u = &r->up;
	struct member *m = &u->member;
	struct saina_act act[SAINA_ASK_SEGMENTS];
	uint64_t when, flow_when = NEVER;
	unsigned int n;
	size_t acts, len;

	fill_report(u, now);
	when = member_run(m, now);
	if (member_failed(m))
		relay_end(r, UPLINK_ENDED, "%s", m->error);
	if (!u->ready || m->session.phase != PHASE_RUNNING)
		return when;
	if (m->io.congested)
		saina_cwnd_overflow(&u->flow.cwnd, now);
	m->io.congested = false;
	begin_round(r);
	if (!u->pending)
		look(r, now, &when);
	while (!saina_io_pending(&m->io) && !r->error[0] &&
	       (acts = saina_flow_run(&u->flow, now, act, SAINA_ASK_SEGMENTS, &flow_when))) {
		n = put_acts(r, act, acts, now, &len);
		if (n)
			member_send(m, n, len, now);
	}
	if (u->over == u->flow.assigned)
		u->waits_ns = 0;
	else if (!u->waits_ns)
		u->waits_ns = now;
	earliest(&when, flow_when);
	return when;
}
