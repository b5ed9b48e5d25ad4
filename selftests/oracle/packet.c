// SPDX-License-Identifier: GPL-2.0-or-later
/* Sections 1 and 2 of Documentation/datapath.rst: which frames, which checks. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

static void drop_global(struct oracle *o, struct oracle_out *out, int reason)
{
	o->gcount.c[reason]++;
	out->verdict = ORACLE_DROP;
	out->reason = reason;
}

static uint64_t splitmix64(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)be16(p) << 16 | be16(p + 2);
}

static void record_join_src(struct oracle *o, const uint8_t *frame, unsigned int ifindex)
{
	const uint8_t *join = frame + 42 + sizeof(struct saina_hdr);
	struct saina_addr addr = {};
	struct oracle_join_src *l;

	memcpy(&addr.ip, frame + 26, 4);
	memcpy(&addr.udp_port, frame + 34, 2);
	memcpy(&addr.nonce, join + offsetof(struct saina_join, nonce), 8);
	for (unsigned int i = 0; i < o->join_srcs; i++)
		if (!memcmp(&o->join_src[i].addr, &addr, sizeof(addr)))
			return;
	if (o->join_srcs == ORACLE_JOIN_SRCS)
		abort();
	l = &o->join_src[o->join_srcs++];
	l->addr = addr;
	l->place.ifindex = ifindex;
	memcpy(l->place.mac, frame + 6, 6);
}

/* Section 2, checks 8 to 11: -1 or the reason. */
static int check_place(const struct oracle_msg *m, unsigned int ifindex)
{
	const struct saina_binding *b = &m->j->conf.worker[m->w];

	if (ifindex != b->ifindex)
		return SAINA_C_BAD_PORT;
	if (memcmp(m->frame + 6, b->mac, 6))
		return SAINA_C_BAD_MAC;
	if (memcmp(m->frame + 26, &b->ip, 4))
		return SAINA_C_BAD_IP;
	if (memcmp(m->frame + 34, &b->udp_port, 2))
		return SAINA_C_BAD_UDP;
	return -1;
}

/* Section 2, checks 19 to 21: -1 or the reason. */
static int check_gradient(const struct oracle_msg *m)
{
	const struct saina_job_conf *c = &m->j->conf;
	unsigned int flags = SAINA_F_RETRANSMIT;

	if (m->hdr->type == SAINA_MSG_INC && !oracle_in_range(m->hdr->exponent) &&
	    !(m->hdr->exponent == SAINA_EXPONENT_INT && c->elem == SAINA_ELEM_INT32))
		return SAINA_C_EXPONENT;
	if (m->hdr->type != SAINA_MSG_GRAD)
		return -1;
	if (!oracle_exponent_fits(c, m->hdr->exponent))
		return SAINA_C_EXPONENT;
	if (oracle_is_uplink(m->j, m->w))
		flags |= SAINA_F_LATE | SAINA_F_DEGRADED | SAINA_F_DROP_LATE;
	if (m->hdr->exponent == SAINA_EXPONENT_NAN && c->worker[m->w].max_weight > 1)
		flags |= SAINA_F_TYPES;
	if (m->hdr->flags & ~flags)
		return SAINA_C_FLAGS;
	if (m->hdr->slot_round && m->hdr->slot_round >= c->worker[m->w].max_weight)
		return SAINA_C_WEIGHT;
	return -1;
}

/* Check 14: a message that only an active worker may send. */
static bool is_of_active(const struct oracle_msg *m)
{
	bool question = m->hdr->type == SAINA_MSG_PULL || m->hdr->type == SAINA_MSG_ASK;

	if (m->hdr->type == SAINA_MSG_PROBE || oracle_is_uplink(m->j, m->w))
		return false;
	return !(question && m->j->conf.worker[m->w].max_weight > 1);
}

/* Section 2 from check 8 on: -1 or the reason. */
static int check_message(const struct oracle_msg *m, unsigned int ifindex)
{
	const struct saina_job_conf *c = &m->j->conf;
	const struct saina_binding *b = &c->worker[m->w];
	bool probe = m->hdr->type == SAINA_MSG_PROBE, ask = m->hdr->type == SAINA_MSG_ASK;
	bool doorbell = m->hdr->type == SAINA_MSG_DOORBELL || m->hdr->type == SAINA_MSG_FETCH;
	unsigned int udp_len = be16(m->frame + 38);
	int reason = check_place(m, ifindex);

	if (reason >= 0)
		return reason;
	if (m->hdr->session != b->session)
		return SAINA_C_SESSION;
	if (c->state != SAINA_JOB_RUNNING && !(probe && c->state == SAINA_JOB_FORMING))
		return SAINA_C_NOT_RUNNING;
	if (is_of_active(m) && !(c->active >> m->w & 1))
		return SAINA_C_INACTIVE;
	if (udp_len != 8 + sizeof(struct saina_hdr) + oracle_bytes(c, m->hdr->count) +
			       (ask ? sizeof(struct saina_ask) : 0) +
			       (doorbell ? sizeof(struct saina_doorbell) : 0))
		return SAINA_C_LENGTH;
	if (m->hdr->count != (probe || ask || doorbell || m->hdr->type == SAINA_MSG_CLOCK ? 0 : c->payload))
		return SAINA_C_ELEMS;
	if (!probe && m->hdr->elem != c->elem)
		return SAINA_C_ELEM_TYPE;
	if (!probe && m->segment >= c->segments)
		return SAINA_C_SEGMENT;
	reason = check_gradient(m);
	if (reason >= 0)
		return reason;
	if (m->j->rt.generation != c->generation)
		return SAINA_C_INTERNAL;
	return -1;
}

/* What the aggregator does with a message of a worker; which messages are its own answers. */
static const struct message_kind {
	void (*handle)(struct oracle_msg *m);
	bool is_answer;
} message_kind[256] = {
	[SAINA_MSG_GRAD] = { oracle_grad },		[SAINA_MSG_PULL] = { oracle_pull },
	[SAINA_MSG_ASK] = { oracle_ask },		[SAINA_MSG_PROBE] = { oracle_answer_probe },
	[SAINA_MSG_DOORBELL] = { oracle_by_reference },	[SAINA_MSG_FETCH] = { oracle_by_reference },
	[SAINA_MSG_INC] = { oracle_inc },		[SAINA_MSG_READ] = { oracle_read },
	[SAINA_MSG_CLOCK] = { oracle_clock },
	[SAINA_MSG_RESULT] = { .is_answer = true },	[SAINA_MSG_STALE] = { .is_answer = true },
	[SAINA_MSG_ASK_REPLY] = { .is_answer = true },	[SAINA_MSG_PROBE_REPLY] = { .is_answer = true },
	[SAINA_MSG_COMPLETION] = { .is_answer = true },	[SAINA_MSG_SUM] = { .is_answer = true },
	[SAINA_MSG_NAK] = { .is_answer = true },	[SAINA_MSG_GO] = { .is_answer = true },
};

static void data_message(struct oracle *o, const uint8_t *frame, unsigned int len,
			 unsigned int ifindex, struct oracle_out *out)
{
	unsigned int ip_len = be16(frame + 16), udp_len = be16(frame + 38);
	struct saina_hdr hdr;
	struct oracle_msg m = { .o = o, .out = out, .frame = frame, .hdr = &hdr };
	const struct message_kind *kind;
	unsigned int flags;
	int reason;

	if (udp_len < 8 + sizeof(hdr) || udp_len != ip_len - 20 || len < 14 + ip_len)
		return drop_global(o, out, SAINA_C_TRUNCATED);
	memcpy(&hdr, frame + 42, sizeof(hdr));
	m.payload = frame + 42 + sizeof(hdr);

	if (hdr.version != SAINA_PROTO_VERSION)
		return drop_global(o, out, SAINA_C_VERSION);
	kind = &message_kind[hdr.type];
	if (!kind->handle)
		return drop_global(o, out, kind->is_answer ? SAINA_C_FORGED : SAINA_C_TYPE);
	flags = hdr.type == SAINA_MSG_GRAD ? 0xff :	/* check 20 */
		hdr.type == SAINA_MSG_PROBE || hdr.type == SAINA_MSG_ASK ? 0 : SAINA_F_RETRANSMIT;
	if (hdr.k || hdr.reserved || hdr.flags & ~flags)
		return drop_global(o, out, SAINA_C_FLAGS);
	if (hdr.job >= SAINA_JOBS_MAX || !o->job[hdr.job].present)
		return drop_global(o, out, SAINA_C_NO_JOB);
	m.j = &o->job[hdr.job];
	if (hdr.worker >= SAINA_WORKERS_MAX ||
	    !(m.j->conf.worker[hdr.worker].flags & SAINA_BIND_BOUND))
		return drop_global(o, out, SAINA_C_NO_WORKER);

	m.w = hdr.worker;
	m.round = hdr.round;
	m.segment = hdr.segment;
	out->job = hdr.job;
	out->worker = hdr.worker;
	reason = check_message(&m, ifindex);
	if (reason >= 0)
		return oracle_drop(&m, reason);

	if (oracle_is_wrong_mode(&m))
		oracle_answer_mode(&m, m.j->rt.base);
	else
		kind->handle(&m);
}

/* 1.1: in the name of a live worker, but not from its place. */
static bool is_spoofed(struct oracle *o, const uint8_t *frame, unsigned int len,
		       unsigned int ifindex, struct oracle_out *out)
{
	struct oracle_msg m = { .o = o, .out = out, .frame = frame };
	struct saina_hdr hdr;
	int reason;

	if (len < 42 + sizeof(hdr))
		return false;
	memcpy(&hdr, frame + 42, sizeof(hdr));
	if (hdr.version != SAINA_PROTO_VERSION ||
	    (hdr.type != SAINA_MSG_READY && hdr.type != SAINA_MSG_HEARTBEAT &&
	     hdr.type != SAINA_MSG_LEAVE))
		return false;
	if (hdr.job >= SAINA_JOBS_MAX || !o->job[hdr.job].present ||
	    hdr.worker >= SAINA_WORKERS_MAX)
		return false;
	m.j = &o->job[hdr.job];
	m.w = hdr.worker;
	m.hdr = &hdr;
	if (!(m.j->conf.active >> m.w & 1 || oracle_is_uplink(m.j, m.w)) ||
	    !(m.j->conf.worker[m.w].flags & SAINA_BIND_BOUND))
		return false;
	reason = check_place(&m, ifindex);
	if (reason < 0)
		return false;
	out->job = hdr.job;
	out->worker = hdr.worker;
	oracle_drop(&m, reason);
	return true;
}

static void control_message(struct oracle *o, const uint8_t *frame, unsigned int len,
			    unsigned int ifindex, struct oracle_out *out)
{
	if (is_spoofed(o, frame, len, ifindex, out))
		return;
	o->gcount.c[SAINA_C_CONTROL]++;
	if (o->linear < len)
		len = o->linear;
	if (len >= 42 + sizeof(struct saina_hdr) + sizeof(struct saina_join) && frame[42] == SAINA_PROTO_VERSION && frame[43] == SAINA_MSG_JOIN)
		record_join_src(o, frame, ifindex);
}

/* Section 7, injected loss: draws a number if the port has loss. */
static bool lost_in(struct oracle *o, unsigned int ifindex)
{
	struct saina_port_conf *p = &o->port[ifindex];

	if (ifindex >= ORACLE_PORTS || !p->loss_in)
		return false;
	return splitmix64(p->seed + p->drawn_in++ * 0x9e3779b97f4a7c15ull) >> 32 < p->loss_in;
}

/* Section 1, tags and options: what is hidden behind them. */
static void drop_odd_framing(struct oracle *o, const uint8_t *frame, unsigned int len,
			     struct oracle_out *out)
{
	const uint8_t *p = frame + 12;	/* at the ethertype, then at the IP header */
	unsigned int tags = 0, ihl, src, dst;

	while (p + 2 <= frame + len && (be16(p) == 0x8100 || be16(p) == 0x88a8)) {
		if (++tags > 4)
			return drop_global(o, out, SAINA_C_FORGED);
		p += 4;
	}
	if (p + 2 + 20 > frame + len || be16(p) != 0x0800)
		return;
	p += 2;
	ihl = (p[0] & 15) * 4;
	if (p[0] >> 4 != 4 || ihl < 20 || p[9] != 17 || be16(p + 6) & 0x1fff ||
	    p + ihl + 4 > frame + len)
		return;
	src = be16(p + ihl);
	dst = be16(p + ihl + 2);
	if (!memcmp(p + 16, &o->global.ip, 4) &&
	    (dst == SAINA_PORT_DATA || dst == SAINA_PORT_CTRL))
		return drop_global(o, out, SAINA_C_FRAGMENT);
	if ((dst == SAINA_PORT_RESULT && be32(p + 16) >> 16 == SAINA_GROUP_BASE >> 16) ||
	    (!memcmp(p + 12, &o->global.ip, 4) &&
	     (src == SAINA_PORT_DATA || src == SAINA_PORT_CTRL)))
		return drop_global(o, out, SAINA_C_FORGED);
}

void oracle_packet(struct oracle *o, const uint8_t *frame, unsigned int len,
		   unsigned int ifindex, struct oracle_out *out)
{
	unsigned int fragment, src, dst;
	bool ours, ours_src;

	out->verdict = ORACLE_PASS;
	out->len = 0;
	out->multicast = false;
	out->to = out->relayed = 0;
	out->job = out->worker = -1;
	out->answer = 0;
	out->reason = -1;

	if (len < 14 + 20 + 8)
		return;
	if (be16(frame + 12) != 0x0800 || frame[14] != 0x45)
		return drop_odd_framing(o, frame, len, out);
	if (frame[23] != 17)
		return;
	fragment = be16(frame + 20);
	if (fragment & 0x1fff)		/* not the first one: has no ports */
		return;
	src = be16(frame + 34);
	dst = be16(frame + 36);
	ours = !memcmp(frame + 30, &o->global.ip, 4);
	ours_src = !memcmp(frame + 26, &o->global.ip, 4);

	if (ours && (dst == SAINA_PORT_DATA || dst == SAINA_PORT_CTRL)) {
		if (lost_in(o, ifindex))
			return drop_global(o, out, SAINA_C_INJECTED_IN);
		if (fragment & 0x2000)
			return drop_global(o, out, SAINA_C_FRAGMENT);
		if (dst == SAINA_PORT_DATA)
			data_message(o, frame, len, ifindex, out);
		else
			control_message(o, frame, len, ifindex, out);
		return;
	}
	if (dst == SAINA_PORT_RESULT && be32(frame + 30) >> 16 == SAINA_GROUP_BASE >> 16)
		return drop_global(o, out, SAINA_C_FORGED);
	if (ours_src && (src == SAINA_PORT_DATA || src == SAINA_PORT_CTRL))
		return drop_global(o, out, SAINA_C_FORGED);
}
