// SPDX-License-Identifier: GPL-2.0-or-later
/* Section 7 of Documentation/datapath.rst: answers. */
#include <arpa/inet.h>
#include <string.h>
#include "internal.h"

/* RFC 1071, over @len bytes (the odd one out padded with zero). */
static uint32_t sum_be16(const uint8_t *p, unsigned int len, uint32_t sum)
{
	/*
	 * One's complement sums do not care for the byte order they are taken
	 * in as long as the result is swapped back.
	 */
	uint64_t s = 0;
	uint32_t v;
	uint16_t tail = 0;

	for (; len >= 4; p += 4, len -= 4) {
		memcpy(&v, p, 4);
		s += v;
	}
	if (len >= 2) {
		memcpy(&tail, p, 2);
		s += tail;
		p += 2;
		len -= 2;
	}
	if (len) {
		tail = 0;
		memcpy(&tail, p, 1);
		s += tail;
	}
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return sum + ntohs((uint16_t)s);
}

static unsigned int fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

/* Ethernet, IPv4 and UDP around the @len bytes that stand behind them. */
static void add_headers(struct oracle_msg *m, unsigned int len, bool multicast)
{
	const struct saina_job_conf *c = &m->j->conf;
	const struct saina_binding *b = &c->worker[m->w];
	uint8_t *f = m->out->frame, *ip = f + 14, *udp = f + 34;
	unsigned int sum;

	if (multicast) {
		memcpy(f, "\x01\x00\x5e", 3);
		memcpy(f + 3, (const uint8_t *)&c->group + 1, 3);
		f[3] &= 0x7f;
	} else {
		memcpy(f, b->mac, 6);
	}
	memcpy(f + 6, m->o->global.mac, 6);
	put_be16(f + 12, 0x0800);

	memset(ip, 0, 20);
	ip[0] = 0x45;
	put_be16(ip + 2, 20 + 8 + len);
	put_be16(ip + 6, 0x4000);
	ip[8] = multicast ? 1 : 64;
	ip[9] = 17;
	memcpy(ip + 12, &m->o->global.ip, 4);
	memcpy(ip + 16, multicast ? &c->group : &b->ip, 4);
	put_be16(ip + 10, fold(sum_be16(ip, 20, 0)));

	put_be16(udp, SAINA_PORT_DATA);
	if (multicast)
		put_be16(udp + 2, SAINA_PORT_RESULT);
	else
		memcpy(udp + 2, &b->udp_port, 2);
	put_be16(udp + 4, 8 + len);
	put_be16(udp + 6, 0);
	sum = fold(sum_be16(udp, 8 + len, sum_be16(ip + 12, 8, 17 + 8 + len)));
	put_be16(udp + 6, sum ? sum : 0xffff);
	m->out->len = HEADERS + len;
}

/* Splits the receivers: redirected or relayed.  A frame in pieces cannot be redirected. */
static void send_to(struct oracle_msg *m, uint64_t workers, uint64_t relay)
{
	if (m->o->tc)
		relay = 0;
	else if (m->out->len > m->o->linear)
		relay = ~0ull;
	m->out->relayed = workers & relay;
	m->out->to = workers & ~relay;
	if (m->out->relayed)
		oracle_count(m, SAINA_C_RELAYED);
	m->out->verdict = m->out->to ? ORACLE_REDIRECT : ORACLE_DROP;
}

/* The header of a RESULT from slot or ring entry @s, its sums behind it. */
static struct saina_hdr *result_header(struct oracle_msg *m, const struct oracle_slot *s)
{
	struct saina_hdr *h = (void *)(m->out->frame + HEADERS);

	m->out->answer = SAINA_MSG_RESULT;
	memset(h, 0, sizeof(*h));
	h->version = SAINA_PROTO_VERSION;
	h->type = SAINA_MSG_RESULT;
	h->elem = m->hdr->elem;
	h->job = m->hdr->job;
	h->round = m->round;
	h->segment = m->segment;
	h->count = m->hdr->count;
	h->exponent = s->meta.exponent;
	h->contributors = s->meta.count;
	h->mask = s->meta.seen;
	h->slot_round = s->weight;
	h->k = s->meta.k;
	h->policy = s->meta.policy & 0xffff;
	h->next_k = m->j->rt.k_next;
	h->flags = s->meta.flags;
	memcpy(h + 1, s->sum, oracle_bytes(&m->j->conf, m->j->conf.payload));
	return h;
}

/* A DOORBELL or FETCH is answered once, at its end: remembers the answer to one of its segments. */
static bool hold_back(struct oracle_msg *m, int type, bool multicast, const struct oracle_slot *s)
{
	if (!m->by_reference)
		return false;
	m->out->answer = type;
	m->out->multicast = multicast;
	m->result = s;
	return true;
}

void oracle_answer_all(struct oracle_msg *m, const struct oracle_slot *s)
{
	struct saina_hdr *h;

	if (hold_back(m, SAINA_MSG_RESULT, true, s))
		return;
	h = result_header(m, s);

	h->worker = 0xff;
	h->aux = m->j->rt.policy.timeout_us;
	add_headers(m, sizeof(*h) + oracle_bytes(&m->j->conf, m->j->conf.payload), true);
	m->out->multicast = true;
	/* a frame that may lie in pieces cannot be redirected to many */
	send_to(m, m->j->conf.active,
		m->j->conf.payload > SAINA_ELEMS_LINEAR_MAX ? ~0ull : m->j->conf.relay);
}

void oracle_answer_one(struct oracle_msg *m, const struct oracle_slot *s, unsigned int how)
{
	struct saina_hdr *h;

	if (hold_back(m, SAINA_MSG_RESULT, false, s))
		return;
	h = result_header(m, s);

	h->flags |= how;
	h->worker = m->w;
	h->session = m->hdr->session;
	h->aux = m->j->last[m->segment][m->w];
	add_headers(m, sizeof(*h) + oracle_bytes(&m->j->conf, m->j->conf.payload), false);
	send_to(m, 1ull << m->w, m->j->conf.relay);
}

/* The header of an answer to the sender without sums. */
static struct saina_hdr *answer_header(struct oracle_msg *m, int type)
{
	struct saina_hdr *h = (void *)(m->out->frame + HEADERS);

	m->out->answer = type;
	memset(h, 0, sizeof(*h));
	h->version = SAINA_PROTO_VERSION;
	h->type = type;
	h->elem = m->hdr->elem;
	h->job = m->hdr->job;
	h->session = m->hdr->session;
	h->round = m->round;
	h->segment = m->segment;
	h->worker = m->w;
	h->slot_round = m->j->rt.next_round;
	return h;
}

void oracle_answer_stale(struct oracle_msg *m)
{
	struct saina_hdr *h;

	if (hold_back(m, SAINA_MSG_STALE, false, NULL))
		return;
	h = answer_header(m, SAINA_MSG_STALE);

	h->aux = m->j->last[m->segment][m->w];
	add_headers(m, sizeof(*h), false);
	oracle_count(m, SAINA_C_STALE);
	oracle_event(m->o, m->j, SAINA_EV_STALE, m->w, m->round, m->segment, 0);
	send_to(m, 1ull << m->w, m->j->conf.relay);
}

void oracle_answer_ask(struct oracle_msg *m, const struct saina_ask *ask, bool away)
{
	struct saina_hdr *h = answer_header(m, SAINA_MSG_ASK_REPLY);

	if (m->round == m->j->rt.next_round)
		h->mask = m->j->rt.behind;
	h->flags = away ? SAINA_F_AWAY : 0;
	memcpy(h + 1, ask, sizeof(*ask));
	add_headers(m, sizeof(*h) + sizeof(*ask), false);
	oracle_count(m, SAINA_C_ASKED);
	send_to(m, 1ull << m->w, m->j->conf.relay);
}

/* To all if one of its segments completed, else to the sender. */
void oracle_answer_completion(struct oracle_msg *m, const struct saina_doorbell *doorbell, bool all)
{
	struct saina_hdr *h = answer_header(m, SAINA_MSG_COMPLETION);

	h->slot_round = 0;
	h->next_k = m->j->rt.k_next;
	if (all) {
		h->worker = 0xff;
		h->session = 0;
	}
	memcpy(h + 1, doorbell, sizeof(*doorbell));
	add_headers(m, sizeof(*h) + sizeof(*doorbell), all);
	m->out->multicast = all;
	send_to(m, all ? m->j->conf.active : 1ull << m->w, m->j->conf.relay);
}

void oracle_answer_probe(struct oracle_msg *m)
{
	struct saina_hdr *h = (void *)(m->out->frame + HEADERS);

	m->out->answer = SAINA_MSG_PROBE_REPLY;
	*h = *m->hdr;
	h->type = SAINA_MSG_PROBE_REPLY;
	h->flags = 0;
	add_headers(m, sizeof(*h), true);
	oracle_count(m, SAINA_C_PROBED);
	send_to(m, 1ull << m->w, 0);	/* not relayed: it asks whether XDP reaches the sender */
}

/* The header of an answer in PS mode; low takes the place of the next round. */
static struct saina_hdr *ps_answer_header(struct oracle_msg *m, int type,
					  const struct oracle_ps_answer *a)
{
	struct saina_hdr *h = answer_header(m, type);

	h->slot_round = a->low;
	h->policy = a->base;
	return h;
}

void oracle_answer_sum(struct oracle_msg *m, const struct oracle_ps_answer *a,
		       const struct oracle_slot *t)
{
	unsigned int bytes = oracle_bytes(&m->j->conf, m->j->conf.payload);
	struct saina_hdr *h = ps_answer_header(m, SAINA_MSG_SUM, a);

	h->count = m->hdr->count;
	h->flags = a->flags;
	h->mask = t->meta.sum_tag;
	h->exponent = t->meta.exponent;
	h->aux = m->j->last[m->segment][m->w];
	memcpy(h + 1, t->sum, bytes);
	add_headers(m, sizeof(*h) + bytes, false);
	send_to(m, 1ull << m->w, m->j->conf.relay);
}

void oracle_answer_nak(struct oracle_msg *m, const struct oracle_ps_answer *a)
{
	struct saina_hdr *h = ps_answer_header(m, SAINA_MSG_NAK, a);

	h->k = a->reason;
	h->exponent = a->exponent;
	h->mask = a->going;
	h->aux = a->done;
	add_headers(m, sizeof(*h), false);
	send_to(m, 1ull << m->w, m->j->conf.relay);
}

void oracle_answer_mode(struct oracle_msg *m, uint32_t since)
{
	struct oracle_ps_answer a = { .reason = SAINA_NAK_MODE, .low = since, .base = since };

	if (hold_back(m, SAINA_MSG_NAK, false, NULL))
		return;
	oracle_count(m, SAINA_C_MODE);
	oracle_answer_nak(m, &a);
}

void oracle_answer_go(struct oracle_msg *m, const struct oracle_ps_answer *a, bool all)
{
	struct saina_hdr *h = ps_answer_header(m, SAINA_MSG_GO, a);

	h->segment = a->window;
	h->k = a->reason;
	h->mask = a->going;
	h->aux = a->done;
	if (all) {
		h->worker = 0xff;
		h->session = 0;
		h->aux = 0;
	}
	add_headers(m, sizeof(*h), all);
	m->out->multicast = all;
	send_to(m, all ? m->j->conf.active : 1ull << m->w, m->j->conf.relay);
}
