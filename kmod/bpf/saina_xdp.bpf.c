// SPDX-License-Identifier: GPL-2.0
/*
 * The XDP program on the ports of the bridge: one message a frame, which becomes its reply.
 * Specification: Documentation/datapath.rst.  The path of a gradient: parse, check, dispatch,
 * slot (round, sfcd), reply, xdp_tx.
 */

#include "dispatch.bpf.h"
#include "fault.bpf.h"
#include "xdp_tx.bpf.h"

char _license[] SEC("license") = "GPL";

/* Check 1: the frame and its lengths.  The header of the message is linear then. */
static __always_inline bool is_whole(struct xdp_md *ctx, const void *data, const void *end)
{
	__u32 ip_len = bpf_ntohs(RD(__be16, data + SAINA_IP_OFF + 2));
	__u32 udp_len = bpf_ntohs(RD(__be16, data + SAINA_UDP_OFF + 4));

	if (udp_len < sizeof(struct udphdr) + sizeof(struct saina_hdr) || udp_len != ip_len - 20)
		return false;
	return data + ETH_HLEN + ip_len <= end ||
	       bpf_xdp_get_buff_len(ctx) >= ETH_HLEN + ip_len;
}

static __always_inline int data_message(struct xdp_md *ctx, const struct frame *f)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct message m = {};
	__u32 len;

	if (data + SAINA_DATA_OFF > end || !is_whole(ctx, data, end)) {
		count_global(SAINA_C_TRUNCATED);
		return XDP_DROP;
	}
	len = bpf_ntohs(RD(__be16, data + SAINA_UDP_OFF + 4)) - sizeof(struct udphdr);
	switch (dispatch_data(ctx, f, data + SAINA_HDR_OFF, len, data + SAINA_DATA_OFF, end, true,
			      &m)) {
	case VERDICT_RESULT_ALL:
	case VERDICT_GO_ALL:
	case VERDICT_COMPLETION_ALL:
		return xdp_tx_all(ctx, f->global, m.c, m.conf, m.wc);
	case VERDICT_RESULT:
	case VERDICT_STALE:
	case VERDICT_ASK_REPLY:
	case VERDICT_SUM:
	case VERDICT_NAK:
	case VERDICT_GO:
	case VERDICT_COMPLETION:
		return xdp_tx_sender(ctx, f->global, m.c, m.conf, m.wc);
	case VERDICT_PROBE_REPLY:
		return xdp_tx_probe(ctx, f->global, m.conf, f->ifindex, m.wc);
	}
	return XDP_DROP;
}

SEC("xdp.frags")
int saina_xdp(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct frame f;
	enum frame_kind kind;

	if (data + SAINA_HDR_OFF > end)
		return XDP_PASS;
	kind = parse_frame(ctx, data, &f);
	if (kind == FRAME_FOREIGN)
		return XDP_PASS;
	if (kind == FRAME_DATA || kind == FRAME_CONTROL) {
		f.ifindex = ctx->ingress_ifindex;
		if (f.global->flags & SAINA_GLOBAL_F_INJECT && fault_in(f.ifindex))
			return XDP_DROP;
		if (!frame_is_fragment(&f) && kind == FRAME_DATA)
			return data_message(ctx, &f);
		if (!frame_is_fragment(&f))
			return dispatch_control(ctx, &f, end) ? XDP_PASS : XDP_DROP;
		kind = FRAME_FRAGMENT;
	}
	count_global(kind == FRAME_FRAGMENT ? SAINA_C_FRAGMENT : SAINA_C_FORGED);
	return XDP_DROP;
}

/* Run by the devmap entries of ports with faults on egress. */
SEC("xdp.frags/devmap")
int saina_egress(struct xdp_md *ctx)
{
	return fault_out(ctx->egress_ifindex) ? XDP_DROP : XDP_PASS;
}
