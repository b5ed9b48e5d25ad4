/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Answers are made in place: the request's frame becomes the RESULT, STALE or
 * PROBE_REPLY and leaves by redirect, or its content goes to the agent for
 * workers behind slow ports.  Documentation/datapath.rst section 7.
 */
#ifndef SAINA_ANSWER_BPF_H
#define SAINA_ANSWER_BPF_H

#include "slot.bpf.h"

/**
 * struct answer - what answer_write() puts in the frame
 * @hdr: the new header, as words
 * @csum: sum of the payload, 0 if there is none
 * @words: of 4 bytes in the payload
 */
struct answer {
	__u64	hdr[6];
	__u8	mac[8];
	__be32	daddr;
	__be16	dport;
	__u16	words;
	__u32	csum;
	__u32	ttl;
};

SAINA_ASSERT(offsetof(struct saina_hdr, job) == 4, "answer_header");
SAINA_ASSERT(offsetof(struct saina_hdr, worker) == 18, "answer_header");
SAINA_ASSERT(offsetof(struct saina_hdr, exponent) == 19, "answer_header");
SAINA_ASSERT(offsetof(struct saina_hdr, contributors) == 20, "answer_header");
SAINA_ASSERT(offsetof(struct saina_hdr, next_k) == 21, "answer_header");
SAINA_ASSERT(offsetof(struct saina_hdr, policy) == 22, "answer_header");
SAINA_ASSERT(offsetof(struct saina_hdr, k) == 6, "answer_header");
SAINA_ASSERT(offsetof(struct saina_hdr, session) == 40, "answer_header");

static __always_inline __u64 answer_word0(__u32 type, __u32 flags, __u32 elem, __u32 job,
					  __u32 k)
{
	return SAINA_PROTO_VERSION | type << 8 | flags << 16 | elem << 24 | (__u64)job << 32 |
	       (__u64)(k & 0xff) << 48;
}

/* Frame cut to what the answer needs, headers and checksums written. */
static __always_inline bool answer_write(struct xdp_md *ctx, const struct saina_global *g,
					 const struct answer *a)
{
	__u32 udp_len = sizeof(struct udphdr) + sizeof(struct saina_hdr) + 4u * a->words;
	__u32 ip_len = sizeof(struct iphdr) + udp_len;
	int surplus = (int)bpf_xdp_get_buff_len(ctx) - (int)(ETH_HLEN + ip_len);
	void *data, *end;
	__u64 sum;

	if (surplus && bpf_xdp_adjust_tail(ctx, -surplus))
		return false;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (data + SAINA_DATA_OFF > end)
		return false;

	WR(__u32, data, RD(__u32, a->mac));
	WR(__u16, data + 4, RD(__u16, a->mac + 4));
	WR(__u32, data + 6, RD(__u32, g->mac));
	WR(__u16, data + 10, RD(__u16, g->mac + 4));

	/* version, IHL, TOS, length; id 0, DF; TTL, protocol, checksum */
	sum = 0x0045 + bpf_htons(ip_len) + bpf_htons(0x4000) +
	      (a->ttl | IPPROTO_UDP << 8) + (g->ip & 0xffff) + (g->ip >> 16) +
	      (a->daddr & 0xffff) + (a->daddr >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	WR(__u32, data + SAINA_IP_OFF, 0x0045 | (__u32)bpf_htons(ip_len) << 16);
	WR(__u32, data + SAINA_IP_OFF + 4, (__u32)bpf_htons(0x4000) << 16);
	WR(__u32, data + SAINA_IP_OFF + 8, a->ttl | IPPROTO_UDP << 8 | (~sum & 0xffff) << 16);
	WR(__u32, data + SAINA_IP_OFF + 12, g->ip);
	WR(__u32, data + SAINA_IP_OFF + 16, a->daddr);

	sum = (__u64)g->ip + a->daddr + bpf_htons(IPPROTO_UDP) + 2u * bpf_htons(udp_len) +
	      bpf_htons(SAINA_PORT_DATA) + a->dport + a->csum;
#pragma unroll
	for (int i = 0; i < 6; i++) {
		WR(__u64, data + SAINA_HDR_OFF + 8 * i, a->hdr[i]);
		sum += (a->hdr[i] & 0xffffffff) + (a->hdr[i] >> 32);
	}
	sum = ~csum_fold64(sum) & 0xffff;
	if (!sum)
		sum = 0xffff;
	WR(__u32, data + SAINA_UDP_OFF, bpf_htons(SAINA_PORT_DATA) | (__u32)a->dport << 16);
	WR(__u32, data + SAINA_UDP_OFF + 4, bpf_htons(udp_len) | (__u32)sum << 16);
	return true;
}

static __always_inline void answer_to_group(struct answer *a, const struct saina_job_conf *conf)
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

static __always_inline void answer_to_worker(struct answer *a, const struct saina_binding *b)
{
	a->daddr = b->ip;
	a->dport = b->udp_port;
	a->ttl = 64;
	WR(__u32, a->mac, RD(__u32, b->mac));
	WR(__u16, a->mac + 4, RD(__u16, b->mac + 4));
}

/* The answer that now is in the frame, to the agent. */
static __noinline void answer_relay(struct xdp_md *ctx, __u64 workers, __u32 words,
				    struct saina_counters *wc)
{
	struct slot_scratch *scratch = slot_scratch();
	struct saina_relay_msg *m;
	__u32 len;

	if (!scratch)
		goto no_memory;
	/* the verifier must see the length computed from the bounded number */
	asm volatile("" : "+r"(words));
	if (words > SAINA_ELEMS_MAX)
		goto no_memory;
	len = sizeof(struct saina_hdr) + 4 * words;
	m = &scratch->relay;
	m->workers = workers;
	m->len = len;
	m->pad = 0;
	if (bpf_xdp_load_bytes(ctx, SAINA_HDR_OFF, &m->hdr, len) ||
	    bpf_ringbuf_output(&saina_relay, m, offsetof(struct saina_relay_msg, hdr) + len, 0))
		goto no_memory;
	wc->c[SAINA_C_RELAYED]++;
	return;

no_memory:
	wc->c[SAINA_C_NO_MEMORY]++;
}

static __always_inline int answer_unicast(struct xdp_md *ctx, __u32 ifindex,
					  struct saina_counters *wc, __u32 failed)
{
	long ret = bpf_redirect_map(&saina_tx, ifindex, XDP_DROP);

	if (ret != XDP_REDIRECT)
		wc->c[failed]++;
	return ret;
}

/* RESULT to everybody.  The kernel copies only frames that are in one piece
 * and fit a page (xdpf_clone()); others the agent must send. */
static __noinline int answer_result(struct xdp_md *ctx, const struct saina_global *g,
				    const struct slot_call *c, const struct saina_job_conf *conf,
				    struct saina_counters *wc)
{
	bool copies = c->linear && conf->payload <= SAINA_ELEMS_LINEAR_MAX;
	__u64 relay = copies ? conf->relay & conf->active : conf->active;
	__u32 job = c->job;
	struct answer a = {};
	void *ports;

	a.hdr[0] = answer_word0(SAINA_MSG_RESULT, c->flags, conf->elem, job, c->k);
	a.hdr[1] = c->round | (__u64)c->segment << 32;
	a.hdr[2] = conf->payload | 0xffu << 16 | (c->exponent & 0xffu) << 24 |
		   (__u64)c->contributors << 32 | (__u64)(c->next_k & 0xff) << 40 |
		   (__u64)(c->policy & 0xffff) << 48;
	a.hdr[3] = c->mask;
	a.words = control_bytes(conf, conf->payload) / 4;
	a.csum = c->csum;
	answer_to_group(&a, conf);
	if (!answer_write(ctx, g, &a))
		goto internal;
	if (relay)
		answer_relay(ctx, relay, a.words, wc);
	if (!(conf->active & ~relay))
		return XDP_DROP;
	ports = bpf_map_lookup_elem(&saina_fanout, &job);
	if (!ports)
		goto internal;
	return bpf_redirect_map(ports, 0, BPF_F_BROADCAST);

internal:
	wc->c[SAINA_C_INTERNAL]++;
	return XDP_DROP;
}

/* RESULT to the sender: RESEND, LATE, PULLED; or STALE. */
static __noinline int answer_sender(struct xdp_md *ctx, const struct saina_global *g,
				    const struct slot_call *c, const struct saina_job_conf *conf,
				    struct saina_counters *wc)
{
	const struct saina_binding *b = &conf->worker[c->worker & (SAINA_WORKERS_MAX - 1)];
	bool stale = c->verdict == SLOT_STALE;
	__u32 flags = 0, k = 0, failed = SAINA_C_INTERNAL;
	struct answer a = {};

	if (stale) {
		failed = SAINA_C_ROUND_OLD;
		a.hdr[2] = c->worker << 16;
		a.hdr[4] = c->last | (__u64)c->next_round << 32;
	} else {
		flags = c->flags | (c->mask & c->bit ? SAINA_F_RESEND : SAINA_F_LATE) |
			(c->pull ? SAINA_F_PULLED : 0);
		a.hdr[2] = conf->payload | c->worker << 16 | (c->exponent & 0xffu) << 24 |
			   (__u64)c->contributors << 32 | (__u64)(c->next_k & 0xff) << 40 |
			   (__u64)(c->policy & 0xffff) << 48;
		a.hdr[3] = c->mask;
		a.hdr[4] = c->last;
		k = c->k;
		a.words = control_bytes(conf, conf->payload) / 4;
		a.csum = c->csum;
	}
	a.hdr[0] = answer_word0(stale ? SAINA_MSG_STALE : SAINA_MSG_RESULT, flags, conf->elem,
				c->job, k);
	a.hdr[5] = b->session;
	a.hdr[1] = c->round | (__u64)c->segment << 32;
	answer_to_worker(&a, b);
	if (!answer_write(ctx, g, &a)) {
		wc->c[failed]++;
		return XDP_DROP;
	}
	if (conf->relay & c->bit) {
		answer_relay(ctx, c->bit, a.words, wc);
		return XDP_DROP;
	}
	return answer_unicast(ctx, b->ifindex, wc, failed);
}

/* PROBE_REPLY: can what is redirected to this port be received there? */
static __noinline int answer_probe(struct xdp_md *ctx, const struct saina_global *g,
				   const struct saina_job_conf *conf,
				   const struct saina_binding *b, struct saina_counters *wc)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct answer a = {};

	if (data + SAINA_DATA_OFF > end)
		return XDP_DROP;
#pragma unroll
	for (int i = 0; i < 6; i++)
		a.hdr[i] = RD(__u64, data + SAINA_HDR_OFF + 8 * i);
	/* type and flags, bytes 1 and 2 */
	a.hdr[0] = (a.hdr[0] & ~0xffff00ull) | SAINA_MSG_PROBE_REPLY << 8;
	answer_to_group(&a, conf);
	if (!answer_write(ctx, g, &a)) {
		wc->c[SAINA_C_INTERNAL]++;
		return XDP_DROP;
	}
	wc->c[SAINA_C_PROBED]++;
	return answer_unicast(ctx, b->ifindex, wc, SAINA_C_INTERNAL);
}

#endif /* SAINA_ANSWER_BPF_H */
