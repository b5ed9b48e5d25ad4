/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Injected faults of XDP ports: loss, and delays, which tc has not.  Documentation/datapath.rst
 * section 7.
 */
#ifndef SAINA_DELAY_BPF_H
#define SAINA_DELAY_BPF_H

#include "count.bpf.h"
#include "ctx.bpf.h"
#include "fault.bpf.h"

/* Hands the whole frame to the process that re-injects it. */
static __always_inline int delay_frame(struct xdp_md *ctx, __u32 ifindex, __u32 delay_us, __u32 out)
{
	__u64 len = bpf_xdp_get_buff_len(ctx);
	struct saina_delay_msg *m;
	struct ctx_scratch *scratch = ctx_scratch();

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

/* A frame of ours comes in: XDP_PASS to go on, XDP_DROP if it is lost or delayed. */
static __noinline int delay_in(struct xdp_md *ctx)
{
	void *meta = (void *)(long)ctx->data_meta;
	void *data = (void *)(long)ctx->data;
	__u32 ifindex = ctx->ingress_ifindex;
	struct saina_port_conf *port;

	if (meta + sizeof(__u64) <= data && RD(__u64, meta) == SAINA_DELAYED_MAGIC)
		return XDP_PASS;
	port = bpf_map_lookup_elem(&saina_ports, &ifindex);
	if (fault_port_in(port))
		return XDP_DROP;
	if (!port || !port->delay_in_us)
		return XDP_PASS;
	return delay_frame(ctx, ifindex, port->delay_in_us, 0);
}

/* The same for a copy that leaves; run only by devmap entries of ports with faults on egress. */
static __noinline int delay_out(struct xdp_md *ctx)
{
	__u32 ifindex = ctx->egress_ifindex;
	struct saina_port_conf *port = bpf_map_lookup_elem(&saina_ports, &ifindex);

	if (fault_port_out(port))
		return XDP_DROP;
	if (!port || !port->delay_out_us)
		return XDP_PASS;
	return delay_frame(ctx, ifindex, port->delay_out_us, 1);
}

#endif /* SAINA_DELAY_BPF_H */
