// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Attackers and broken workers.  If a message could be counted, its elements are
 * those that the ledger expects of the worker in the header: so the ledger can
 * tell an accepted contribution from a polluted sum.
 */
#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include "malformed.h"
#include "sim_channel.h"

struct bad {
	struct sim *w;
	struct rng *r;
	struct sim_job *j;
	struct malformed *s;
	uint8_t *f;
	struct saina_hdr *h;	/* in the frame */
	bool bad_exponent, bad_weight;
};

/* Sets all lengths for @elems elements. */
static void set_length(struct bad *b, unsigned int elems)
{
	b->s->len = FRAME_PAYLOAD + 4 * elems;
	frame_be16(b->f + FRAME_IP + 2, b->s->len - FRAME_IP);
	frame_be16(b->f + FRAME_UDP + 4, b->s->len - FRAME_UDP);
}

static void bad_udp_length(struct bad *b)
{
	frame_be16(b->f + FRAME_UDP + 4, rng_chance(b->r, 500) ? rng_below(b->r, 56) :
		   rng_below(b->r, 65536));
}

static void bad_ip_length(struct bad *b)
{
	frame_be16(b->f + FRAME_IP + 2, rng_chance(b->r, 500) ? b->s->len + 6 - 4 * rng_below(b->r, 9) :
		   rng_below(b->r, 65536));
}

static void bad_short_frame(struct bad *b)
{
	b->s->len = rng_range(b->r, 14, b->s->len - 1);
}

static void bad_both_short(struct bad *b)
{
	unsigned int udp = rng_below(b->r, 56);

	frame_be16(b->f + FRAME_UDP + 4, udp);
	frame_be16(b->f + FRAME_IP + 2, udp + 20);
}

static void bad_trailer(struct bad *b)	/* allowed: the answer will have no trailer */
{
	b->s->len += rng_range(b->r, 1, 40);
}

static void bad_version(struct bad *b)
{
	b->h->version = rng_chance(b->r, 500) ? 0 : rng_range(b->r, 2, 255);
}

static void bad_forged_answer(struct bad *b)
{
	static const uint8_t type[] = { SAINA_MSG_RESULT, SAINA_MSG_STALE, SAINA_MSG_PROBE_REPLY };

	b->h->type = type[rng_below(b->r, 3)];
}

static void bad_type(struct bad *b)
{
	b->h->type = rng_u64(b->r);
}

static void bad_flags(struct bad *b)
{
	switch (rng_below(b->r, 3)) {
	case 0:
		b->h->flags ^= 1 << rng_below(b->r, 8);
		break;
	case 1:
		b->h->k = rng_range(b->r, 1, 255);
		break;
	case 2:
		b->h->reserved = rng_range(b->r, 1, 255);
		break;
	}
}

static void bad_job(struct bad *b)
{
	b->h->job = rng_chance(b->r, 500) ? rng_u64(b->r) : rng_below(b->r, 256);
}

static void bad_worker(struct bad *b)
{
	b->h->worker = rng_chance(b->r, 500) ? rng_range(b->r, 64, 255) :
		       rng_below(b->r, 64);
}

static void bad_name(struct bad *b)	/* another worker's, with its session */
{
	b->h->worker = rng_below(b->r, b->j->workers + (b->j->uplink >= 0));
	b->h->session = b->j->conf.worker[b->h->worker].session;
}

static void bad_port(struct bad *b)
{
	b->s->ifindex = b->w->harness->port[rng_below(b->r, HARNESS_PORTS)];
}

static void bad_mac(struct bad *b)
{
	b->f[6 + rng_below(b->r, 6)] ^= 1 << rng_below(b->r, 8);
}

static void bad_ip(struct bad *b)
{
	const __be32 from[] = { 0, htonl(INADDR_LOOPBACK), htonl(INADDR_BROADCAST), harness_group(b->j->conf.job) };

	if (rng_chance(b->r, 300))
		memcpy(b->f + FRAME_IP + 12, &from[rng_below(b->r, 4)], 4);
	else
		b->f[FRAME_IP + 12 + rng_below(b->r, 4)] ^= 1 << rng_below(b->r, 8);
}

static void bad_checksum(struct bad *b)	/* allowed: the answer has its own */
{
	frame_be16(b->f + FRAME_UDP + 6, rng_chance(b->r, 500) ? 0 : rng_u64(b->r));
}

static void bad_udp_port(struct bad *b)
{
	b->f[FRAME_UDP + rng_below(b->r, 2)] ^= 1 << rng_below(b->r, 8);
}

static void bad_session(struct bad *b)
{
	if (rng_chance(b->r, 300)) {
		b->h->session = b->j->conf.worker[rng_below(b->r, b->j->workers)].session;
		return;
	}
	b->h->session += rng_chance(b->r, 700) ? -1ull : 1ull << rng_below(b->r, 64);
}

static void bad_count(struct bad *b)
{
	b->h->count = rng_chance(b->r, 500) ? rng_u64(b->r) : b->h->count + rng_below(b->r, 9) - 4;
}

static void bad_elems(struct bad *b)
{
	static const uint16_t size[] = { 0, 1, 63, 64, 128, 256, 352, 1024, 2048 };

	b->h->count = size[rng_below(b->r, 9)];
	set_length(b, b->h->count);
}

static void bad_elem_type(struct bad *b)
{
	if (rng_chance(b->r, 300))
		b->h->elem = b->h->elem == SAINA_ELEM_INT32 ? SAINA_ELEM_INT16 : SAINA_ELEM_INT32;
	else
		b->h->elem = rng_chance(b->r, 500) ? SAINA_ELEM_FLOAT32 : rng_u64(b->r);
}

static void bad_segment(struct bad *b)	/* the last one is allowed, with a DOORBELL's bits behind it, too */
{
	b->h->segment = rng_chance(b->r, 300) ? b->j->conf.segments : rng_chance(b->r, 300) ? b->j->conf.segments - 1 :
			rng_chance(b->r, 300) ? 0xffffffff : rng_u64(b->r) | 1u << 31;
}

static void bad_future(struct bad *b)
{
	static const uint32_t by[] = { 2, 3, 16, 0x10000 };
	static const uint32_t edge[] = { 0, 0x7fffffff, 0x80000000, SAINA_ROUND_MAX, 0xffffffff };

	b->h->round += by[rng_below(b->r, 4)];
	if (rng_chance(b->r, 300))
		b->h->round = edge[rng_below(b->r, 5)];
}

static void bad_replay(struct bad *b)
{
	b->h->round -= rng_below(b->r, 40);
}

static void bad_window(struct bad *b)	/* any segment, or the next round, whatever the window */
{
	b->h->segment = rng_below(b->r, b->j->conf.segments);
	if (rng_chance(b->r, 50))
		b->h->round = b->w->harness->o.job[b->j->conf.job].rt.next_round;
}

static void bad_exponent(struct bad *b)	/* see make_true() */
{
	b->bad_exponent = true;
}

static void bad_weight(struct bad *b)	/* see make_true() */
{
	b->bad_weight = true;
}

static void bad_fragment(struct bad *b)
{
	frame_be16(b->f + FRAME_IP + 6, 0x2000);
}

static void bad_from_us(struct bad *b)
{
	memcpy(b->f + FRAME_IP + 12, &b->w->harness->g.ip, 4);
	frame_be16(b->f + FRAME_UDP, rng_chance(b->r, 500) ? SAINA_PORT_DATA : SAINA_PORT_CTRL);
	if (rng_chance(b->r, 700)) {
		frame_be16(b->f + FRAME_UDP + 2, 20000);
		b->f[FRAME_IP + 19] ^= 3;
	}
}

static void bad_to_group(struct bad *b)
{
	__be32 ip = harness_group(rng_below(b->r, 65536));

	memcpy(b->f + FRAME_IP + 16, &ip, 4);
	frame_be16(b->f + FRAME_UDP + 2, SAINA_PORT_RESULT);
	b->h->type = SAINA_MSG_RESULT;
}

static void bad_control(struct bad *b)
{
	static const uint8_t type[] = { SAINA_MSG_JOIN, SAINA_MSG_READY, SAINA_MSG_HEARTBEAT,
					SAINA_MSG_LEAVE, SAINA_MSG_GRAD };

	frame_be16(b->f + FRAME_UDP + 2, SAINA_PORT_CTRL);
	b->h->type = type[rng_below(b->r, 5)];
	if (b->s->len >= FRAME_PAYLOAD + sizeof(struct saina_join))
		((struct saina_join *)(b->h + 1))->nonce = rng_below(b->r, 3);
	if (rng_chance(b->r, 100))
		b->h->version++;
}

/* Inserts 4 bytes: hides a message from a check for plain IPv4, not from a Linux host. */
static void insert4(struct bad *b, unsigned int at)
{
	if (b->s->len + 4 > FRAME_MAX || b->s->len < at)
		return;
	memmove(b->f + at + 4, b->f + at, b->s->len - at);
	b->s->len += 4;
}

static void bad_tag(struct bad *b)
{
	for (unsigned int n = rng_range(b->r, 1, 6); n; n--) {
		insert4(b, 12);
		frame_be16(b->f + 12, rng_chance(b->r, 500) ? 0x8100 : 0x88a8);
		frame_be16(b->f + 14, rng_chance(b->r, 700) ? 0 : rng_below(b->r, 65536));
		if (rng_chance(b->r, 700))
			break;
	}
}

static void bad_options(struct bad *b)
{
	unsigned int n = rng_range(b->r, 1, 10);

	for (unsigned int i = 0; i < n; i++)
		insert4(b, FRAME_IP + 20);
	memset(b->f + FRAME_IP + 20, 1, 4 * n);
	b->f[FRAME_IP] = 0x45 + n;
}

static void bad_hidden(struct bad *b)	/* a forgery behind options and tags */
{
	if (rng_chance(b->r, 500))
		bad_from_us(b);
	else
		bad_to_group(b);
	if (rng_chance(b->r, 500))
		bad_options(b);
	if (rng_chance(b->r, 700))
		bad_tag(b);
}

static void bad_control_place(struct bad *b)
{
	void (*const spoil[])(struct bad *b) = { bad_port, bad_mac, bad_ip, bad_udp_port };

	bad_control(b);
	spoil[rng_below(b->r, 4)](b);
}

static void bad_bits(struct bad *b)
{
	for (unsigned int n = rng_range(b->r, 1, 3); n; n--)
		b->f[rng_range(b->r, 0, FRAME_PAYLOAD - 1)] ^= 1 << rng_below(b->r, 8);
}

/* A GSO batch: messages of any size, or a result behind its datagram. */
static void bad_gso(struct bad *b)
{
	unsigned int n = b->s->len - FRAME_HDR;

	b->s->size = rng_range(b->r, 1, 3000);
	if (b->s->len <= FRAME_PAYLOAD || b->s->len + n > FRAME_MAX || rng_chance(b->r, 300))
		return;
	b->s->size = n;
	memcpy(b->f + b->s->len, b->f + FRAME_HDR, n);
	b->f[b->s->len + offsetof(struct saina_hdr, type)] = SAINA_MSG_RESULT;
	b->s->len += n;
}

static const struct {
	const char *name;
	void (*spoil)(struct bad *b);
} kinds[] = {
	{ "UDP length", bad_udp_length }, { "IP length", bad_ip_length },
	{ "cut short", bad_short_frame }, { "both lengths short", bad_both_short },
	{ "trailer", bad_trailer }, { "version", bad_version },
	{ "forged answer", bad_forged_answer }, { "type", bad_type }, { "flags", bad_flags },
	{ "job", bad_job }, { "worker", bad_worker }, { "port", bad_port }, { "MAC", bad_mac },
	{ "IP", bad_ip }, { "UDP port", bad_udp_port }, { "session", bad_session },
	{ "another's name", bad_name }, { "UDP checksum", bad_checksum },
	{ "count", bad_count }, { "payload size", bad_elems }, { "element type", bad_elem_type },
	{ "segment", bad_segment }, { "future", bad_future }, { "replay", bad_replay },
	{ "replay", bad_replay }, { "window", bad_window }, { "window", bad_window },
	{ "exponent", bad_exponent }, { "weight", bad_weight }, { "fragment", bad_fragment }, { "from us", bad_from_us },
	{ "to the group", bad_to_group }, { "control", bad_control }, { "bits", bad_bits },
	{ "tag", bad_tag }, { "options", bad_options }, { "hidden", bad_hidden },
	{ "control from elsewhere", bad_control_place }, { "GSO batch", bad_gso },
};

/*
 * If the message could be counted, makes elements and exponent those of the worker in its header.
 * With a bad exponent it cannot be counted.
 */
static void make_true(struct bad *b)
{
	struct saina_hdr h = *b->h;
	struct sim_job *j = sim_job_find(b->w, h.job);
	struct ledger_gradient said;

	if (!j || h.worker >= SAINA_WORKERS_MAX || h.count != j->conf.payload ||
	    h.type != SAINA_MSG_GRAD)
		return;
	said = sim_gradient(j, h.worker, h.round, h.segment, 0);
	memcpy(b->f + FRAME_PAYLOAD, said.v, 4 * h.count);
	if (!b->bad_exponent || !sim_spoil_exponent(j, &b->h->exponent))
		b->h->exponent = said.exponent;
	b->h->slot_round = said.weight;
	if (b->bad_weight)
		b->h->slot_round = sim_max_weight(j, h.worker) + 1 + rng_below(b->r, 3);
}

void malformed_hostile(struct sim *w, struct malformed *s)
{
	struct bad b = { .w = w, .r = &w->rng, .s = s, .f = s->frame };
	static const uint8_t others[] = { SAINA_MSG_PULL, SAINA_MSG_PULL, SAINA_MSG_PROBE, SAINA_MSG_ASK,
					  SAINA_MSG_DOORBELL, SAINA_MSG_FETCH };
	unsigned int first, n = 0, i;
	struct message m = {};

	for (i = rng_below(&w->rng, SIM_JOBS); !w->job[i].present; i = (i + 1) % SIM_JOBS)
		;
	b.j = &w->job[i];
	m.type = rng_chance(&w->rng, 700) ? SAINA_MSG_GRAD : others[rng_below(&w->rng, 6)];
	m.posted = rng_chance(&w->rng, 500) ? ~0ull : rng_u64(&w->rng);
	m.job = b.j->conf.job;
	m.worker = rng_below(&w->rng, b.j->workers + (b.j->uplink >= 0));
	m.session = b.j->conf.worker[m.worker].session;
	m.segment = rng_below(&w->rng, b.j->conf.segments);
	m.round = w->harness->o.job[m.job].rt.next_round - 1;
	if (m.round + 1 <= b.j->first_round)
		m.round = b.j->first_round;
	memset(s->frame, 0, FRAME_PAYLOAD);
	s->len = sim_frame(w, &m, s->frame);
	s->size = 0;
	s->ifindex = b.j->conf.worker[m.worker].ifindex;
	b.h = (struct saina_hdr *)(s->frame + FRAME_HDR);

	first = rng_below(&w->rng, sizeof(kinds) / sizeof(kinds[0]));
	i = first;
	do {
		unsigned int room = sizeof(s->what) - n;

		kinds[i].spoil(&b);
		n += snprintf(s->what + n, room, "%s%s", n ? " + " : "hostile: ", kinds[i].name);
		i = rng_below(&w->rng, sizeof(kinds) / sizeof(kinds[0]));
	} while (rng_chance(&w->rng, 200) && n < sizeof(s->what) - 24);
	make_true(&b);
}
