/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Framing that hides our ports: VLAN tags and IP options.  No worker sends
 * such frames, but Linux receives a priority-tagged frame, or one a switch has
 * stripped of its tag, and one with IP options, like any other: forged results
 * and control messages could come that way.  Off the path of everything that
 * is IPv4 without options.
 */
#ifndef SAINA_FRAMING_BPF_H
#define SAINA_FRAMING_BPF_H

#include "maps.bpf.h"
#include "control.bpf.h"

#define FRAMING_TAGS	4	/* a frame with more is hiding something */

#define GROUP_NET	bpf_htonl(SAINA_GROUP_BASE)
#define GROUP_MASK	bpf_htonl(0xffff0000u)

static __always_inline bool is_our_port(__be16 port)
{
	return port == bpf_htons(SAINA_PORT_DATA) || port == bpf_htons(SAINA_PORT_CTRL);
}

/* Says it comes from the aggregator, or is a result. */
static __always_inline bool is_forged(const struct saina_global *g, __be32 saddr, __be32 daddr,
				      __be16 sport, __be16 dport)
{
	return (dport == bpf_htons(SAINA_PORT_RESULT) && (daddr & GROUP_MASK) == GROUP_NET) ||
	       (is_our_port(sport) && saddr == g->ip);
}

static __always_inline bool is_tag(__be16 proto)
{
	return proto == bpf_htons(ETH_P_8021Q) || proto == bpf_htons(ETH_P_8021AD);
}

static __noinline int framing_odd(struct xdp_md *ctx)
{
	const struct saina_global *g;
	__u32 zero = 0, off = 12;
	__be16 proto, port[2];
	__be32 addr[2];
	__u8 ip[12];

	if (bpf_xdp_load_bytes(ctx, off, &proto, sizeof(proto)))
		return XDP_PASS;
	for (int i = 0; i < FRAMING_TAGS && is_tag(proto); i++) {
		off += 4;
		if (bpf_xdp_load_bytes(ctx, off, &proto, sizeof(proto)))
			return XDP_PASS;
	}
	if (is_tag(proto))
		goto forged;
	off += 2;
	if (proto != bpf_htons(ETH_P_IP) || bpf_xdp_load_bytes(ctx, off, ip, sizeof(ip)) ||
	    bpf_xdp_load_bytes(ctx, off + 12, addr, sizeof(addr)))
		return XDP_PASS;
	if (ip[0] < 0x45 || ip[0] > 0x4f || ip[9] != IPPROTO_UDP || (ip[6] & 0x1f) || ip[7])
		return XDP_PASS;
	if (bpf_xdp_load_bytes(ctx, off + 4 * (ip[0] & 15), port, sizeof(port)))
		return XDP_PASS;
	g = bpf_map_lookup_elem(&saina_global, &zero);
	if (!g)
		return XDP_PASS;
	if (addr[1] == g->ip && is_our_port(port[1])) {
		count_global(SAINA_C_FRAGMENT);
		return XDP_DROP;
	}
	if (!is_forged(g, addr[0], addr[1], port[0], port[1]))
		return XDP_PASS;
forged:
	count_global(SAINA_C_FORGED);
	return XDP_DROP;
}

#endif /* SAINA_FRAMING_BPF_H */
