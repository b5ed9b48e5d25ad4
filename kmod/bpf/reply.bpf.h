/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replies: header and destination.  How they leave is the hook's.
 * Documentation/datapath.rst section 7.
 */
#ifndef SAINA_REPLY_BPF_H
#define SAINA_REPLY_BPF_H

#include "config.bpf.h"
#include "ctx.bpf.h"

/**
 * struct reply - the contents of the frame
 * @hdr: the new header, as words
 * @csum: sum of the payload, 0 if there is none
 * @mac: Ethernet address (6 bytes)
 * @daddr: IP address
 * @dport: UDP port
 * @ttl: of the IP header
 * @words: of 4 bytes in the payload
 */
struct reply {
	__u64	hdr[6];
	__u8	mac[8];
	__be32	daddr;
	__be16	dport;
	__u16	words;
	__u32	csum;
	__u32	ttl;
};

SAINA_ASSERT(offsetof(struct saina_hdr, job) == 4, "reply_header");
SAINA_ASSERT(offsetof(struct saina_hdr, worker) == 18, "reply_header");
SAINA_ASSERT(offsetof(struct saina_hdr, exponent) == 19, "reply_header");
SAINA_ASSERT(offsetof(struct saina_hdr, contributors) == 20, "reply_header");
SAINA_ASSERT(offsetof(struct saina_hdr, next_k) == 21, "reply_header");
SAINA_ASSERT(offsetof(struct saina_hdr, policy) == 22, "reply_header");
SAINA_ASSERT(offsetof(struct saina_hdr, k) == 6, "reply_header");
SAINA_ASSERT(offsetof(struct saina_hdr, session) == 40, "reply_header");

static __always_inline __u64 reply_word0(__u32 type, __u32 flags, __u32 elem, __u32 job, __u32 k)
{
	return SAINA_PROTO_VERSION | type << 8 | flags << 16 | elem << 24 | (__u64)job << 32 |
	       (__u64)(k & 0xff) << 48;
}

static __always_inline void reply_to_group(struct reply *a, const struct saina_job_conf *conf)
{
	__u32 group = bpf_ntohl(conf->group);

	a->daddr = conf->group;
	a->dport = bpf_htons(SAINA_PORT_RESULT);
	a->ttl = 1;
	a->mac[0] = 0x01;
	a->mac[1] = 0x00;
	a->mac[2] = 0x5e;
	a->mac[3] = group >> 16 & 0x7f;
	a->mac[4] = group >> 8;
	a->mac[5] = group;
}

static __always_inline void reply_to_worker(struct reply *a, const struct saina_binding *b)
{
	a->daddr = b->ip;
	a->dport = b->udp_port;
	a->ttl = 64;
	WR(__u32, a->mac, RD(__u32, b->mac));
	WR(__u16, a->mac + 4, RD(__u16, b->mac + 4));
}

/* RESULT; the destination is the caller's. */
static __always_inline void reply_result(struct reply *a, const struct saina_ctx *c,
					 const struct saina_job_conf *conf, __u32 flags,
					 __u32 worker)
{
	const struct ctx_out *o = &c->out;

	a->hdr[0] = reply_word0(SAINA_MSG_RESULT, o->flags | flags, conf->elem, c->in.job, o->k);
	a->hdr[1] = c->in.round | (__u64)c->in.segment << 32;
	a->hdr[2] = conf->payload | worker << 16 | (o->exponent & 0xffu) << 24 |
		    (__u64)o->contributors << 32 | (__u64)(o->next_k & 0xff) << 40 |
		    (__u64)(o->policy & 0xffff) << 48;
	a->hdr[3] = o->mask;
	a->hdr[4] = (__u64)o->weight << 32;
	a->words = config_bytes(conf, conf->payload) / 4;
	a->csum = o->csum;
}

static __always_inline __u32 reply_ask_csum(const struct saina_ask *ask)
{
	const __u32 *w = (const void *)ask;
	__u64 sum = 0;

#pragma unroll
	for (int i = 0; i < (int)sizeof(*ask) / 4; i++)
		sum += w[i];
	return csum_fold64(sum);
}

/* May these sums be used for the sender's next step? */
static __always_inline bool reply_is_fresh(const struct saina_ctx *c)
{
	__u32 next = c->in.round + !c->in.pull;

	return next <= c->ps.low || next - c->ps.low <= c->ps.window;
}

/* SUM, NAK or GO.  A separate function, to keep the callers' stack small. */
static __noinline void reply_ps(struct reply *a, const struct saina_ctx *c,
				const struct saina_job_conf *conf, __u32 worker)
{
	const struct ctx_ps *t = &c->ps;
	__u32 verdict = c->out.verdict, segment = c->in.segment;

	a->hdr[4] = (__u64)t->low << 32;
	if (verdict == VERDICT_SUM) {
		a->hdr[0] = reply_word0(SAINA_MSG_SUM,
					c->out.flags | (reply_is_fresh(c) ? SAINA_F_FRESH : 0),
					conf->elem, c->in.job, 0);
		a->hdr[2] = conf->payload;
		a->hdr[3] = c->out.mask;
		a->hdr[4] |= c->out.last;
		a->words = config_bytes(conf, conf->payload) / 4;
		a->csum = c->out.csum;
	} else {
		bool nak = verdict == VERDICT_NAK;

		a->hdr[0] = reply_word0(nak ? SAINA_MSG_NAK : SAINA_MSG_GO, 0, conf->elem,
					c->in.job, nak ? t->nak : t->left ? SAINA_NAK_MODE : 0);
		a->hdr[3] = t->going;
		if (verdict != VERDICT_GO_ALL)
			a->hdr[4] |= t->done;
		if (!nak)
			segment = t->window;
	}
	a->hdr[1] = c->in.round | (__u64)segment << 32;
	a->hdr[2] |= worker << 16 | (c->out.exponent & 0xffu) << 24 |
		     (__u64)(t->base & 0xffff) << 48;
}

/* COMPLETION without its body; the destination is the caller's. */
static __always_inline void reply_completion(struct reply *a, const struct saina_ctx *c,
					     const struct saina_job_conf *conf, __u32 worker)
{
	const __u32 *w = (const void *)&c->doorbell;

	a->hdr[0] = reply_word0(SAINA_MSG_COMPLETION, 0, conf->elem, c->in.job, 0);
	a->hdr[1] = c->in.round | (__u64)c->in.segment << 32;
	a->hdr[2] = worker << 16 | (__u64)(c->out.next_k & 0xff) << 40;
	a->words = sizeof(struct saina_doorbell) / 4;
	a->csum = csum_fold64((__u64)w[0] + w[1] + w[2] + w[3]);
}

/* RESULT, COMPLETION or GO to everybody. */
static __always_inline void reply_all(struct reply *a, const struct saina_ctx *c,
				      const struct saina_job_conf *conf)
{
	if (c->out.verdict == VERDICT_GO_ALL) {
		reply_ps(a, c, conf, 0xff);
	} else if (c->out.verdict == VERDICT_COMPLETION_ALL) {
		reply_completion(a, c, conf, 0xff);
	} else {
		reply_result(a, c, conf, 0, 0xff);
		a->hdr[4] |= c->out.timeout;
	}
	reply_to_group(a, conf);
}

/* To the sender: RESULT (RESEND, LATE, PULLED), STALE, SUM, NAK, GO; ASK_REPLY and COMPLETION
 * without their bodies.
 */
static __always_inline void reply_sender(struct reply *a, const struct saina_ctx *c,
					 const struct saina_job_conf *conf)
{
	const struct saina_binding *b = &conf->worker[c->in.worker & (SAINA_WORKERS_MAX - 1)];

	if (c->out.verdict == VERDICT_STALE) {
		a->hdr[0] = reply_word0(SAINA_MSG_STALE, 0, conf->elem, c->in.job, 0);
		a->hdr[1] = c->in.round | (__u64)c->in.segment << 32;
		a->hdr[2] = c->in.worker << 16;
		a->hdr[4] = c->out.last | (__u64)c->out.next_round << 32;
	} else if (c->out.verdict == VERDICT_ASK_REPLY) {
		a->hdr[0] = reply_word0(SAINA_MSG_ASK_REPLY, c->ask_away ? SAINA_F_AWAY : 0,
					conf->elem, c->in.job, 0);
		a->hdr[1] = c->in.round | (__u64)c->in.segment << 32;
		a->hdr[2] = c->in.worker << 16;
		a->hdr[3] = c->out.mask;
		a->hdr[4] = (__u64)c->out.next_round << 32;
		a->words = sizeof(struct saina_ask) / 4;
		a->csum = reply_ask_csum(&c->ask);
	} else if (c->out.verdict == VERDICT_SUM || c->out.verdict == VERDICT_NAK ||
		   c->out.verdict == VERDICT_GO) {
		reply_ps(a, c, conf, c->in.worker);
	} else if (c->out.verdict == VERDICT_COMPLETION) {
		reply_completion(a, c, conf, c->in.worker);
	} else {
		reply_result(a, c, conf,
			     (c->out.mask & c->in.bit ? SAINA_F_RESEND : SAINA_F_LATE) |
				     (c->in.pull ? SAINA_F_PULLED : 0),
			     c->in.worker);
		a->hdr[4] |= c->out.last;
	}
	a->hdr[5] = b->session;
	reply_to_worker(a, b);
}

/* PROBE_REPLY to the PROBE at @h: shows whether redirected frames arrive behind this port. */
static __always_inline void reply_probe(struct reply *a, const void *h,
					const struct saina_job_conf *conf)
{
#pragma unroll
	for (int i = 0; i < 6; i++)
		a->hdr[i] = RD(__u64, h + 8 * i);
	/* type and flags, bytes 1 and 2 */
	a->hdr[0] = (a->hdr[0] & ~0xffff00ull) | SAINA_MSG_PROBE_REPLY << 8;
	reply_to_group(a, conf);
}

#endif /* SAINA_REPLY_BPF_H */
