/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which frames are for the aggregator.
 * Documentation/datapath.rst section 1.
 */
#ifndef SAINA_FRAME_BPF_H
#define SAINA_FRAME_BPF_H

#include "maps.bpf.h"
#include "config.bpf.h"

#define FRAME_TAGS	4	/* VLAN tags; a frame with more is taken for forged */

#define GROUP_NET	bpf_htonl(SAINA_GROUP_BASE)
#define GROUP_MASK	bpf_htonl(0xffff0000u)

/**
 * struct frame - a frame with Ethernet, IPv4 and UDP headers, nothing between
 * @head: these SAINA_HDR_OFF bytes, in memory that may be read
 * @ifindex: where it came in
 * @global: whose frames are ours
 */
struct frame {
	const void *head;
	__u32 ifindex;
	const struct saina_global *global;
};

enum frame_kind {
	FRAME_FOREIGN,	/* passed on */
	FRAME_DATA,
	FRAME_CONTROL,
	FRAME_FRAGMENT,	/* for the aggregator, with framing that no worker uses */
	FRAME_FORGED,
};

static __always_inline const struct saina_global *config_global(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&saina_global, &zero);
}

static __always_inline bool is_our_port(__be16 port)
{
	return port == bpf_htons(SAINA_PORT_DATA) || port == bpf_htons(SAINA_PORT_CTRL);
}

static __always_inline bool is_tag(__be16 proto)
{
	return proto == bpf_htons(ETH_P_8021Q) || proto == bpf_htons(ETH_P_8021AD);
}

/* Classifies by addresses and ports. */
static __always_inline enum frame_kind parse_kind(const struct saina_global *g, __be32 saddr,
						  __be32 daddr, __be16 sport, __be16 dport)
{
	if (daddr == g->ip && is_our_port(dport))
		return dport == bpf_htons(SAINA_PORT_DATA) ? FRAME_DATA : FRAME_CONTROL;
	/* claims to be a result, or to come from the aggregator */
	if ((dport == bpf_htons(SAINA_PORT_RESULT) && (daddr & GROUP_MASK) == GROUP_NET) ||
	    (is_our_port(sport) && saddr == g->ip))
		return FRAME_FORGED;
	return FRAME_FOREIGN;
}

/*
 * Framing that hides our ports: VLAN tags and IP options.  No worker sends
 * such frames, but Linux receives a priority-tagged frame, or one a switch has
 * stripped of its tag, and one with IP options, like any other: forged results
 * and control messages could come that way.  Off the path of everything that
 * is IPv4 without options.
 */
static __noinline int parse_unusual(HOOK_CTX *ctx)
{
	const struct saina_global *g;
	enum frame_kind kind;
	__be16 proto, port[2];
	__u32 off = 12;
	__be32 addr[2];
	__u8 ip[12];

	if (hook_load(ctx, off, &proto, sizeof(proto)))
		return FRAME_FOREIGN;
	for (int i = 0; i < FRAME_TAGS && is_tag(proto); i++) {
		off += 4;
		if (hook_load(ctx, off, &proto, sizeof(proto)))
			return FRAME_FOREIGN;
	}
	if (is_tag(proto))
		return FRAME_FORGED;
	off += 2;
	if (proto != bpf_htons(ETH_P_IP) || hook_load(ctx, off, ip, sizeof(ip)) ||
	    hook_load(ctx, off + 12, addr, sizeof(addr)))
		return FRAME_FOREIGN;
	if (ip[0] < 0x45 || ip[0] > 0x4f || ip[9] != IPPROTO_UDP || (ip[6] & 0x1f) || ip[7])
		return FRAME_FOREIGN;
	if (hook_load(ctx, off + 4 * (ip[0] & 15), port, sizeof(port)))
		return FRAME_FOREIGN;
	g = config_global();
	if (!g)
		return FRAME_FOREIGN;
	kind = parse_kind(g, addr[0], addr[1], port[0], port[1]);
	return kind == FRAME_FOREIGN || kind == FRAME_FORGED ? kind : FRAME_FRAGMENT;
}

/* Classifies SAINA_HDR_OFF bytes at @head; fills @f. */
static __always_inline enum frame_kind parse_frame(HOOK_CTX *ctx, const void *head, struct frame *f)
{
	__be16 proto = RD(__be16, head + 12), sport, dport;

	if (proto != bpf_htons(ETH_P_IP))
		return is_tag(proto) ? parse_unusual(ctx) : FRAME_FOREIGN;
	if (RD(__u8, head + SAINA_IP_OFF) != 0x45)
		return parse_unusual(ctx);
	if (RD(__u8, head + SAINA_IP_OFF + 9) != IPPROTO_UDP ||
	    RD(__be16, head + SAINA_IP_OFF + 6) & bpf_htons(0x1fff))
		return FRAME_FOREIGN;
	/* foreign traffic costs no look-up */
	sport = RD(__be16, head + SAINA_UDP_OFF);
	dport = RD(__be16, head + SAINA_UDP_OFF + 2);
	if (!is_our_port(dport) && dport != bpf_htons(SAINA_PORT_RESULT) && !is_our_port(sport))
		return FRAME_FOREIGN;
	f->head = head;
	f->global = config_global();
	if (!f->global)
		return FRAME_FOREIGN;
	return parse_kind(f->global, RD(__be32, head + SAINA_IP_OFF + 12),
			  RD(__be32, head + SAINA_IP_OFF + 16), sport, dport);
}

/* A fragment (the first one: the others have no ports). */
static __always_inline bool frame_is_fragment(const struct frame *f)
{
	return RD(__be16, f->head + SAINA_IP_OFF + 6) & bpf_htons(0x2000);
}

/* Checks 8 to 11: does it come from where the worker was admitted?  COUNT_NONE if so. */
static __always_inline __u32 check_source(const struct frame *f, const struct saina_binding *b)
{
	if (f->ifindex != b->ifindex)
		return SAINA_C_BAD_PORT;
	if (RD(__u32, f->head + 6) != RD(__u32, b->mac) ||
	    RD(__u16, f->head + 10) != RD(__u16, b->mac + 4))
		return SAINA_C_BAD_MAC;
	if (RD(__be32, f->head + SAINA_IP_OFF + 12) != b->ip)
		return SAINA_C_BAD_IP;
	if (RD(__be16, f->head + SAINA_UDP_OFF) != b->udp_port)
		return SAINA_C_BAD_UDP;
	return COUNT_NONE;
}

#endif /* SAINA_FRAME_BPF_H */
