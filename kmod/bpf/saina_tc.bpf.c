// SPDX-License-Identifier: GPL-2.0
/*
 * The tc program on the ports of the bridge, clsact or tcx, ingress: many messages in a
 * GSO batch (UDP_SEGMENT), each checked by itself and replaced by its reply.
 * Documentation/datapath.rst section 10.  The path of a gradient: parse, check, dispatch, slot
 * (round, sfcd), reply, gso.
 */

#include <linux/pkt_cls.h>
#include "check_skb.bpf.h"
#include "dispatch.bpf.h"
#include "fault.bpf.h"
#include "gso.bpf.h"

char _license[] SEC("license") = "GPL";

#define CONTROL_LINEAR	(SAINA_DATA_OFF + (__u32)sizeof(struct saina_join))

static __always_inline bool is_lost(const struct frame *f)
{
	return f->global->flags & SAINA_GLOBAL_F_INJECT && fault_in(f->ifindex);
}

/* Check 1: the frame, its lengths and its metadata.  COUNT_NONE if good. */
static __always_inline __u32 data_check(struct __sk_buff *skb, const void *head,
					enum skb_state *state)
{
	__u32 ip_len = bpf_ntohs(RD(__be16, head + SAINA_IP_OFF + 2));
	__u32 udp_len = bpf_ntohs(RD(__be16, head + SAINA_UDP_OFF + 4));

	if (udp_len < sizeof(struct udphdr) + sizeof(struct saina_hdr) || udp_len != ip_len - 20 ||
	    skb->len < ETH_HLEN + ip_len)
		return SAINA_C_TRUNCATED;
	/* all of a GSO batch is cut into datagrams, not only what the lengths say */
	if (skb->gso_size && skb->len != ETH_HLEN + ip_len)
		return SAINA_C_FRAGMENT;
	*state = check_skb(skb);
	return *state == SKB_BAD ? SAINA_C_FRAGMENT : COUNT_NONE;
}

/* Message @i of the frame. */
__noinline int one_message(struct __sk_buff *skb, __u32 i)
{
	struct gso_batch *t = gso_batch();
	struct message m = {};
	struct frame f;
	int verdict;
	__u32 len;

	f.global = map_global();
	if (!t || !f.global)
		return 0;
	f.head = t->head;
	f.ifindex = t->ifindex;
	if (is_lost(&f))
		return 0;
	len = gso_load(skb, t, i);
	if (len < sizeof(struct saina_hdr)) {
		count_global(SAINA_C_TRUNCATED);
		return 0;
	}
	verdict = dispatch_data(skb, &f, &t->msg.hdr, len, t->msg.payload, NULL, false, &m);
	if (verdict != VERDICT_DROP && verdict != VERDICT_CONSUMED)
		gso_reply(skb, t, i, len, verdict, &m);
	return 0;
}

static __always_inline int data_frame(struct __sk_buff *skb, const void *head, enum skb_state state)
{
	__u32 n = gso_begin(skb, head, state == SKB_PARTIAL);

	for (__u32 i = 0; i < GSO_SEGMENTS_MAX; i++) {
		if (i >= n)
			break;
		one_message(skb, i);
	}
	return gso_send(skb);
}

static __always_inline int control_frame(struct __sk_buff *skb, struct frame *f)
{
	void *data, *end;

	bpf_skb_pull_data(skb, skb->len < CONTROL_LINEAR ? skb->len : CONTROL_LINEAR);
	data = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	if (data + SAINA_HDR_OFF > end)
		return TC_ACT_SHOT;
	f->head = data;
	return dispatch_control(skb, f, end) ? TC_ACT_UNSPEC : TC_ACT_SHOT;
}

/*
 * XDP cannot see the frame's metadata and has written a full UDP checksum.  Where the kernel
 * will finish it, the field must have the sum of the pseudo header instead.
 */
static __always_inline bool handoff_checksum(struct __sk_buff *skb, __u32 saddr, __u32 daddr)
{
	__u16 udp_len, sum;

	if (bpf_skb_load_bytes(skb, SAINA_UDP_OFF + 4, &udp_len, sizeof(udp_len)))
		return false;
	sum = csum_pseudo(udp_len, saddr, daddr);
	return !bpf_skb_store_bytes(skb, SAINA_UDP_OFF + 6, &sum, sizeof(sum), 0);
}

/* A frame from the aggregator's address is forged, unless XDP on the same port made it: XDP
 * drops all forged ones there.
 */
static __noinline int forged_frame(struct __sk_buff *skb)
{
	__u32 ifb, addr[2];
	enum skb_state state;
	__u16 job;

	if (map_tc_handoff(skb->ifindex) &&
	    !bpf_skb_load_bytes(skb, SAINA_IP_OFF + 12, addr, sizeof(addr)) &&
	    !bpf_skb_load_bytes(skb, HDR_OFF(job), &job, sizeof(job))) {
		state = skb->gso_size ? SKB_BAD : check_skb(skb);
		if (state == SKB_BAD) {
			count_global(SAINA_C_FRAGMENT);
			return TC_ACT_SHOT;
		}
		if (state == SKB_PARTIAL && !handoff_checksum(skb, addr[0], addr[1])) {
			count_global(SAINA_C_NO_MEMORY);
			return TC_ACT_SHOT;
		}
		if ((addr[1] & GROUP_MASK) != GROUP_NET)
			return bpf_redirect(skb->ifindex, 0);
		ifb = map_fanout_ifb(job);
		if (ifb)
			return bpf_redirect(ifb, 0);
	}
	count_global(SAINA_C_FORGED);
	return TC_ACT_SHOT;
}

SEC("tc")
int saina_tc(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct frame f;
	enum frame_kind kind;

	if (data + SAINA_HDR_OFF > end) {
		if (skb->len < SAINA_HDR_OFF || bpf_skb_pull_data(skb, SAINA_HDR_OFF))
			return TC_ACT_UNSPEC;
		data = (void *)(long)skb->data;
		end = (void *)(long)skb->data_end;
		if (data + SAINA_HDR_OFF > end)
			return TC_ACT_UNSPEC;
	}
	kind = parse_frame(skb, data, &f);
	/* the kernel has moved the tag out of the frame */
	if ((kind == FRAME_DATA || kind == FRAME_CONTROL) && skb->vlan_present)
		kind = FRAME_FRAGMENT;
	/* for other programs to see */
	if (kind == FRAME_FOREIGN)
		return TC_ACT_UNSPEC;
	if (kind == FRAME_DATA || kind == FRAME_CONTROL) {
		__u32 reason = SAINA_C_FRAGMENT;
		enum skb_state state;

		f.ifindex = skb->ifindex;
		if (!frame_is_fragment(&f)) {
			if (kind == FRAME_DATA)
				reason = data_check(skb, data, &state);
			else if (!skb->gso_size)
				reason = COUNT_NONE;
		}
		if (kind == FRAME_DATA && reason == COUNT_NONE)
			return data_frame(skb, data, state);
		if (is_lost(&f))
			return TC_ACT_SHOT;
		if (reason == COUNT_NONE)
			return control_frame(skb, &f);
		count_global(reason);
		return TC_ACT_SHOT;
	}
	if (kind == FRAME_FORGED)
		return forged_frame(skb);
	count_global(SAINA_C_FRAGMENT);
	return TC_ACT_SHOT;
}

/* Egress of ports with loss: drops a reply, or a GSO batch of them. */
SEC("tc")
int saina_tc_out(struct __sk_buff *skb)
{
	const struct saina_global *g = map_global();
	/* two bytes before it, so that reads of the stack are aligned */
	__u8 buf[2 + SAINA_HDR_OFF] __attribute__((aligned(8))), *head = buf + 2;

	if (!g || bpf_skb_load_bytes(skb, 0, head, SAINA_HDR_OFF) ||
	    RD(__be16, head + 12) != bpf_htons(ETH_P_IP) ||
	    RD(__u8, head + SAINA_IP_OFF + 9) != IPPROTO_UDP ||
	    RD(__be32, head + SAINA_IP_OFF + 12) != g->ip ||
	    RD(__be16, head + SAINA_UDP_OFF) != bpf_htons(SAINA_PORT_DATA))
		return TC_ACT_UNSPEC;
	return fault_out(skb->ifindex) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}
