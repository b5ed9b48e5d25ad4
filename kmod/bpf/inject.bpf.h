/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Faults on purpose, for the lab: frames of ours are lost or held by port and
 * direction, from a seeded sequence.  Documentation/datapath.rst section 7.
 */
#ifndef SAINA_INJECT_BPF_H
#define SAINA_INJECT_BPF_H

#include "slot.bpf.h"

#define INJECT_OUT_SALT	0x5851f42d4c957f2dull

static __always_inline __u64 splitmix64(__u64 x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static __always_inline bool inject_lost(__u64 seed, __u64 n, __u32 loss)
{
	return (splitmix64(seed + n * 0x9e3779b97f4a7c15ull) >> 32) < loss;
}

/* Hands the whole frame to the process that will let it go again. */
static __always_inline int inject_hold(struct xdp_md *ctx, __u32 ifindex, __u32 delay_us, __u32 out)
{
	__u64 len = bpf_xdp_get_buff_len(ctx);
	struct saina_delay_msg *m;
	struct slot_scratch *scratch = slot_scratch();

	if (!scratch || len < ETH_HLEN || len > sizeof(m->frame))
		goto no_memory;
	m = &scratch->delay;
	m->time = bpf_ktime_get_ns();
	m->ifindex = ifindex;
	m->delay_us = delay_us;
	m->out = out;
	m->len = len;
	if (bpf_xdp_load_bytes(ctx, 0, m->frame, len) ||
	    bpf_ringbuf_output(&saina_delay, m, offsetof(struct saina_delay_msg, frame) + len, 0))
		goto no_memory;
	count_global(SAINA_C_DELAYED);
	return XDP_DROP;

no_memory:
	count_global(SAINA_C_NO_MEMORY);
	return XDP_DROP;
}

/* A frame of ours comes in: XDP_PASS to go on with it, XDP_DROP if it is lost
 * or held.
 */
static __noinline int inject_in(struct xdp_md *ctx)
{
	void *meta = (void *)(long)ctx->data_meta;
	void *data = (void *)(long)ctx->data;
	__u32 ifindex = ctx->ingress_ifindex;
	struct saina_port_conf *port;
	__u64 n;

	if (meta + sizeof(__u64) <= data && RD(__u64, meta) == SAINA_DELAYED_MAGIC)
		return XDP_PASS;
	port = bpf_map_lookup_elem(&saina_ports, &ifindex);
	if (!port)
		return XDP_PASS;
	if (port->loss_in) {
		n = __sync_fetch_and_add(&port->drawn_in, 1);
		if (inject_lost(port->seed, n, port->loss_in)) {
			count_global(SAINA_C_INJECTED_IN);
			return XDP_DROP;
		}
	}
	return port->delay_in_us ? inject_hold(ctx, ifindex, port->delay_in_us, 0) : XDP_PASS;
}

/* The same for a copy that leaves; runs only behind devmap entries of ports
 * that have faults on the way out.
 */
static __noinline int inject_out(struct xdp_md *ctx)
{
	__u32 ifindex = ctx->egress_ifindex;
	struct saina_port_conf *port = bpf_map_lookup_elem(&saina_ports, &ifindex);
	__u64 n;

	if (!port)
		return XDP_PASS;
	if (port->loss_out) {
		n = __sync_fetch_and_add(&port->drawn_out, 1);
		if (inject_lost(port->seed + INJECT_OUT_SALT, n, port->loss_out)) {
			count_global(SAINA_C_INJECTED_OUT);
			return XDP_DROP;
		}
	}
	return port->delay_out_us ? inject_hold(ctx, ifindex, port->delay_out_us, 1) : XDP_PASS;
}

#endif /* SAINA_INJECT_BPF_H */
