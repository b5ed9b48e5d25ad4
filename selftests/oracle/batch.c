// SPDX-License-Identifier: GPL-2.0-or-later
/* Section 10 of Documentation/datapath.rst: a frame of several messages, at the tc hook. */
#include <arpa/inet.h>
#include <string.h>
#include "internal.h"

#define BATCH_MAX	64

enum kind { NO_ANSWER, PORT, PROBE, ALL };

/* The frame that leaves. */
struct batch {
	enum kind kind;
	int job;
	struct oracle_out *out;
	unsigned int size, bytes;
	bool is_gso;
	bool is_answer[BATCH_MAX];
};

/* A datagram to this port of the aggregator, not a fragment. */
static bool is_to(const struct oracle *o, const uint8_t *f, unsigned int len, unsigned int port)
{
	return len >= HEADERS && be16(f + 12) == 0x0800 && f[14] == 0x45 && f[23] == 17 &&
	       !(be16(f + 20) & 0x3fff) && !memcmp(f + 30, &o->global.ip, 4) &&
	       be16(f + 36) == port;
}

/* A whole datagram to the data port: it may have several messages. */
static bool has_messages(const struct oracle *o, const uint8_t *f, unsigned int len)
{
	unsigned int udp_len;

	if (!is_to(o, f, len, SAINA_PORT_DATA))
		return false;
	udp_len = be16(f + 38);
	return udp_len >= 8 + sizeof(struct saina_hdr) && udp_len == be16(f + 16) - 20 &&
	       len >= 14 + be16(f + 16);
}

/* A GSO batch that no worker sends. */
static bool is_malformed_gso(const struct oracle *o, const uint8_t *f, unsigned int len)
{
	return is_to(o, f, len, SAINA_PORT_CTRL) ||
	       (has_messages(o, f, len) && len != 14 + be16(f + 16));
}

static uint32_t add_be16(const uint8_t *p, unsigned int n, uint32_t sum)
{
	for (; n; n -= 2, p += 2)
		sum += be16(p);
	return sum;
}

static unsigned int fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static unsigned int pseudo(const uint8_t *f)
{
	return fold(add_be16(f + 26, 8, 17 + be16(f + 38)));
}

/* Copies the addresses of one answer; the frame keeps its length. */
static void readdress(struct batch *t, const uint8_t *answer)
{
	uint8_t *f = t->out->frame;
	unsigned int ip_len = be16(f + 16), udp_len = be16(f + 38);

	memcpy(f, answer, HEADERS);
	put_be16(f + 16, ip_len);
	put_be16(f + 24, 0);
	put_be16(f + 24, ~fold(add_be16(f + 14, 20, 0)));
	put_be16(f + 38, udp_len);
	put_be16(f + 40, t->is_gso ? pseudo(f) : 0);
}

static void count_unsent(struct oracle *o, const struct oracle_out *one)
{
	o->job[one->job].wcount[one->worker].c[SAINA_C_UNSENT]++;
}

/*
 * Puts the answer to message @i of @n bytes into the frame, unless answers of another kind or job
 * are in it; an answer to all displaces those.
 */
static void batch_add(struct oracle *o, struct batch *t, unsigned int i, unsigned int n,
		      const struct oracle_out *one)
{
	enum kind kind = one->answer == SAINA_MSG_PROBE_REPLY ? PROBE :
			 one->multicast ? ALL : PORT;
	uint8_t *to = t->out->frame + HEADERS + i * t->size;

	if (t->kind != NO_ANSWER && (kind != t->kind || one->job != t->job)) {
		if (kind != ALL || t->kind == ALL)
			return count_unsent(o, one);
		for (unsigned int k = 0; k < BATCH_MAX; k++)
			if (t->is_answer[k])
				count_unsent(o, one);
		memset(t->is_answer, 0, sizeof(t->is_answer));
	}
	t->kind = kind;
	t->job = one->job;
	t->is_answer[i] = true;
	memset(to, 0, n);
	memcpy(to, one->frame + HEADERS, one->len - HEADERS);
	t->out->to = one->to;
	t->out->job = one->job;
	t->out->worker = one->worker;
	t->out->answer = one->answer;
	t->out->multicast = one->multicast;
}

void oracle_batch(struct oracle *o, const uint8_t *frame, unsigned int len, unsigned int size,
		  unsigned int ifindex, struct oracle_out *out)
{
	static uint8_t last[HEADERS];
	static struct oracle_out one;
	struct batch t = { .out = out, .is_gso = size };
	uint8_t sub[ORACLE_FRAME_MAX];
	unsigned int n;

	if (size && is_malformed_gso(o, frame, len)) {
		/* dropped as a fragment is */
		memcpy(sub, frame, HEADERS);
		put_be16(sub + 20, 0x2000);
		oracle_packet(o, sub, HEADERS, ifindex, out);
		return;
	}
	if (!has_messages(o, frame, len)) {
		oracle_packet(o, frame, len, ifindex, out);
		return;
	}
	memset(out, 0, offsetof(struct oracle_out, frame));
	out->verdict = ORACLE_DROP;
	out->reason = -1;
	out->job = -1;
	/* bytes behind the datagram are cut off */
	len = 14 + be16(frame + 16);
	out->len = len;
	memcpy(out->frame, frame, len);
	t.bytes = be16(frame + 38) - 8;
	t.size = size ? size : t.bytes;
	if ((t.bytes + t.size - 1) / t.size > BATCH_MAX) {
		out->reason = SAINA_C_LENGTH;
		o->gcount.c[SAINA_C_LENGTH]++;
		return;
	}
	for (unsigned int i = 0; i * t.size < t.bytes; i++) {
		n = t.bytes - i * t.size < t.size ? t.bytes - i * t.size : t.size;
		memcpy(sub, frame, HEADERS);
		put_be16(sub + 16, 28 + n);
		put_be16(sub + 38, 8 + n);
		memcpy(sub + HEADERS, frame + HEADERS + i * t.size, n);
		oracle_packet(o, sub, HEADERS + n, ifindex, &one);
		if (out->job < 0) {
			out->job = one.job;
			out->worker = one.worker;
		}
		out->reason = one.reason;
		if (!one.answer)
			continue;
		batch_add(o, &t, i, n, &one);
		if (t.is_answer[i])
			memcpy(last, one.frame, HEADERS);
	}
	if (t.kind == NO_ANSWER)
		return;
	out->verdict = ORACLE_REDIRECT;
	for (unsigned int i = 0; i * t.size < t.bytes; i++) {
		struct saina_hdr nop = { .version = SAINA_PROTO_VERSION, .type = SAINA_MSG_NOP };
		uint8_t *m = out->frame + HEADERS + i * t.size;

		if (t.is_answer[i])
			continue;
		n = t.bytes - i * t.size < t.size ? t.bytes - i * t.size : t.size;
		memset(m, 0, n);
		memcpy(m, &nop, n < sizeof(nop) ? n : sizeof(nop));
	}
	readdress(&t, last);
}
