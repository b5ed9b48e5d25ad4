// SPDX-License-Identifier: GPL-2.0
/*
 * The XDP program on the ports of the bridge: one message a frame, which becomes its reply.
 * Specification: Documentation/datapath.rst.  The path of a gradient: parse, check, dispatch,
 * slot (round, sfcd), reply, xdp_tx.
 */
#define HOOK_CTX	struct xdp_md
#define hook_load	bpf_xdp_load_bytes
#define hook_job	saina_xdp_job
#define hook_event	saina_xdp_event
#define HOOK_CSUM(v)	((__u32)(v) + ((v) >> 32))

#include "dispatch.bpf.h"
#include "xdp_tx.bpf.h"
#include "delay.bpf.h"

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

/* A non-linear payload is copied to scratch memory and back: no helper may be called under
 * the slot's lock.
 */
static __always_inline int run_nonlinear(struct xdp_md *ctx, struct saina_ctx *c,
					 const struct saina_job_conf *conf, bool ps)
{
	struct ctx_scratch *scratch = ctx_scratch();
	__u32 len = config_bytes(conf, conf->payload);
	int verdict;

	/* for the verifier: the bounds of what the helpers get */
	asm volatile("" : "+r"(len));
	if (!scratch || len < 4 || len > sizeof(scratch->payload) ||
	    (!c->in.pull && bpf_xdp_load_bytes(ctx, SAINA_DATA_OFF, scratch->payload, len)))
		return VERDICT_DROP;
	verdict = run_payload(c, conf, scratch->payload, NULL, false, ps);
	if ((verdict == VERDICT_RESULT_ALL || verdict == VERDICT_RESULT ||
	     verdict == VERDICT_SUM) &&
	    bpf_xdp_store_bytes(ctx, SAINA_DATA_OFF, scratch->payload, len)) {
		c->out.reason = SAINA_C_INTERNAL;
		return VERDICT_DROP;
	}
	return verdict;
}

static __noinline int run_slot_nonlinear(struct xdp_md *ctx, struct saina_ctx *c,
					 const struct saina_job_conf *conf)
{
	return run_nonlinear(ctx, c, conf, false);
}

static __noinline int run_ps_nonlinear(struct xdp_md *ctx, struct saina_ctx *c,
				       const struct saina_job_conf *conf)
{
	return run_nonlinear(ctx, c, conf, true);
}

static __always_inline int hook_run(struct xdp_md *ctx, struct saina_ctx *c,
				    const struct saina_job_conf *conf, bool ps)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	int verdict = run_payload(c, conf, data + SAINA_DATA_OFF, end, true, ps);

	if (verdict != VERDICT_MISS)
		return verdict;
	return ps ? run_ps_nonlinear(ctx, c, conf) : run_slot_nonlinear(ctx, c, conf);
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
		if (f.global->flags & SAINA_GLOBAL_F_INJECT && delay_in(ctx) != XDP_PASS)
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
	return delay_out(ctx);
}
