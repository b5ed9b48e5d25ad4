/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How replies leave by XDP: the frame of the request becomes the reply and is redirected,
 * or passed to the tc program of the same port, or copied to the agent for workers whose
 * ports cannot take redirected frames.
 * Documentation/datapath.rst section 7.
 */
#ifndef SAINA_SEND_BPF_H
#define SAINA_SEND_BPF_H

#include "reply.bpf.h"

/* Trims the frame to the reply; writes headers and checksums. */
static __always_inline bool xdp_write_reply(struct xdp_md *ctx, const struct saina_global *g,
					    const struct reply *a)
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

/* The reply, which is in the frame, to the agent. */
static __noinline void xdp_tx_relay(struct xdp_md *ctx, __u64 workers, __u32 words,
				    struct saina_counters *wc)
{
	struct ctx_scratch *scratch = ctx_scratch();
	struct saina_relay_msg *m;
	__u32 len;

	if (!scratch)
		goto no_memory;
	/* the verifier must see that the length is computed from the bounded number */
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

static __always_inline int xdp_tx_port(__u32 ifindex, struct saina_counters *wc, __u32 failed)
{
	long ret = bpf_redirect_map(&saina_tx, ifindex, XDP_DROP);

	if (ret != XDP_REDIRECT)
		wc->c[failed]++;
	return ret;
}

/*
 * Does the frame lie in one piece?  Kernels before 6.3 redirect no other, and for several ports
 * no kernel copies one (xdpf_clone()): it goes by tc or, where that cannot be, by the agent.
 */
static __always_inline bool is_linear(struct xdp_md *ctx)
{
	return ctx->data_end - ctx->data == bpf_xdp_get_buff_len(ctx);
}

static __noinline int xdp_tx_all(struct xdp_md *ctx, const struct saina_global *g,
				 const struct saina_ctx *c, const struct saina_job_conf *conf,
				 struct saina_counters *wc)
{
	bool completion = c->out.verdict == VERDICT_COMPLETION_ALL;
	__u64 relay = conf->active;
	__u32 job = c->in.job;
	struct reply a = {};
	void *ports;

	reply_all(&a, c, conf);
	if (completion &&
	    bpf_xdp_store_bytes(ctx, SAINA_DATA_OFF, (void *)&c->doorbell, sizeof(c->doorbell)))
		goto internal;
	if (!xdp_write_reply(ctx, g, &a))
		goto internal;
	/* a frame that is copied must fit a page */
	if ((conf->payload <= SAINA_ELEMS_LINEAR_MAX || completion || !a.words) && is_linear(ctx))
		relay &= conf->relay;
	/* tc can send any frame to everybody */
	if (relay && map_fanout_ifb(job) && map_tc_handoff(ctx->ingress_ifindex))
		return XDP_PASS;
	if (relay)
		xdp_tx_relay(ctx, relay, a.words, wc);
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

static __noinline int xdp_tx_sender(struct xdp_md *ctx, const struct saina_global *g,
				    const struct saina_ctx *c, const struct saina_job_conf *conf,
				    struct saina_counters *wc)
{
	__u32 failed = c->out.verdict == VERDICT_STALE ? SAINA_C_ROUND_OLD : SAINA_C_INTERNAL;
	struct reply a = {};
	bool relay;

	reply_sender(&a, c, conf);
	if ((c->out.verdict == VERDICT_ASK_REPLY &&
	     bpf_xdp_store_bytes(ctx, SAINA_DATA_OFF, (void *)&c->ask, sizeof(c->ask))) ||
	    (c->out.verdict == VERDICT_COMPLETION &&
	     bpf_xdp_store_bytes(ctx, SAINA_DATA_OFF, (void *)&c->doorbell, sizeof(c->doorbell))) ||
	    !xdp_write_reply(ctx, g, &a)) {
		wc->c[failed]++;
		return XDP_DROP;
	}
	relay = conf->relay & c->in.bit || !is_linear(ctx);
	if (relay && map_tc_handoff(ctx->ingress_ifindex))
		return XDP_PASS;
	if (relay) {
		xdp_tx_relay(ctx, c->in.bit, a.words, wc);
		return XDP_DROP;
	}
	return xdp_tx_port(conf->worker[c->in.worker & (SAINA_WORKERS_MAX - 1)].ifindex, wc,
			   failed);
}

static __noinline int xdp_tx_probe(struct xdp_md *ctx, const struct saina_global *g,
				   const struct saina_job_conf *conf, __u32 ifindex,
				   struct saina_counters *wc)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct reply a = {};

	if (data + SAINA_DATA_OFF > end)
		return XDP_DROP;
	reply_probe(&a, data + SAINA_HDR_OFF, conf);
	if (!xdp_write_reply(ctx, g, &a)) {
		wc->c[SAINA_C_INTERNAL]++;
		return XDP_DROP;
	}
	return xdp_tx_port(ifindex, wc, SAINA_C_INTERNAL);
}

#endif /* SAINA_SEND_BPF_H */
