// SPDX-License-Identifier: GPL-2.0
/*
 * The XDP program on the ports of the bridge: one message a frame, answered in place.
 * What it must do: Documentation/datapath.rst.  A gradient's way: here, frame,
 * message, slot (round, sfcd), answer, send.
 */
#define HOOK_CTX	struct xdp_md
#define hook_load	bpf_xdp_load_bytes
#define hook_job	saina_xdp_job
#define hook_event	saina_xdp_event

#include "message.bpf.h"
#include "send.bpf.h"
#include "inject.bpf.h"

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

/* A payload in pieces goes through scratch memory and back: no helper may be called
 * under the slot's lock.
 */
static __noinline int run_pieces(struct xdp_md *ctx, struct slot_call *c,
				 const struct saina_job_conf *conf)
{
	struct slot_scratch *scratch = slot_scratch();
	__u32 len = control_bytes(conf, conf->payload);
	int verdict;

	/* for the verifier: bounds of what the helpers are given */
	asm volatile("" : "+r"(len));
	if (!scratch || len < 4 || len > sizeof(scratch->payload) ||
	    (!c->in.pull && bpf_xdp_load_bytes(ctx, SAINA_DATA_OFF, scratch->payload, len)))
		return SLOT_DROP;
	verdict = message_run(c, conf, scratch->payload, NULL, false);
	if ((verdict == SLOT_RESULT || verdict == SLOT_ANSWER) &&
	    bpf_xdp_store_bytes(ctx, SAINA_DATA_OFF, scratch->payload, len)) {
		c->out.reason = SAINA_C_INTERNAL;
		return SLOT_DROP;
	}
	return verdict;
}

static __always_inline int run_message(struct xdp_md *ctx, struct slot_call *c,
				       const struct saina_job_conf *conf)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	int verdict = message_run(c, conf, data + SAINA_DATA_OFF, end, true);

	return verdict == SLOT_MISS ? run_pieces(ctx, c, conf) : verdict;
}

static __always_inline int data_message(struct xdp_md *ctx, const struct frame *f)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const void *h = data + SAINA_HDR_OFF;
	const struct saina_job_conf *conf, *plain;
	const struct saina_job_rt *rt;
	struct slot_scratch *scratch;
	struct saina_counters *wc;
	struct message m = {};
	struct slot_call *c;
	__u32 job, reason;

	reason = SAINA_C_TRUNCATED;
	if (data + SAINA_DATA_OFF > end || !is_whole(ctx, data, end))
		goto drop_global;
	reason = message_check(ctx, h, &m);
	if (reason != COUNT_NONE)
		goto drop_global;
	conf = m.conf;
	job = m.in.job;
	reason = SAINA_C_INTERNAL;
	wc = control_counters(job, m.in.worker);
	if (!wc)
		goto drop_global;
	reason = message_check_sender(f, h, bpf_ntohs(RD(__be16, data + SAINA_UDP_OFF + 4)) -
						    sizeof(struct udphdr), &m);
	if (reason != COUNT_NONE)
		goto drop;
	rt = bpf_map_lookup_elem(&saina_rt, &job);
	reason = SAINA_C_INTERNAL;
	if (!rt || rt->generation != conf->generation)
		goto drop;
	if (message_add(&m, data + SAINA_DATA_OFF, end)) {
		wc->c[SAINA_C_ADDED]++;
		return XDP_DROP;
	}
	if (m.type == SAINA_MSG_PROBE)
		return send_probe(ctx, f->global, conf, f->ifindex, wc);

	scratch = slot_scratch();
	plain = control_plain(conf);
	if (!scratch || !plain)
		goto drop;
	c = &scratch->call;
	slot_call_init(c, &m.in);
	c->out.verdict = run_message(ctx, c, plain);
	control_flush_events(ctx);

	if (c->out.counted == SAINA_C_ADDED)
		wc->c[SAINA_C_ADDED]++;
	else if (c->out.counted == SAINA_C_STORED)
		wc->c[SAINA_C_STORED]++;
	switch (c->out.verdict) {
	case SLOT_KEPT:
		return XDP_DROP;
	case SLOT_RESULT:
		wc->c[SAINA_C_COMPLETED]++;
		if (c->out.flags & SAINA_F_DEGRADED)
			wc->c[SAINA_C_DEGRADED]++;
		return send_result(ctx, f->global, c, conf, wc);
	case SLOT_ANSWER:
		if (c->in.pull)
			wc->c[SAINA_C_PULLED]++;
		else if (c->out.mask & c->in.bit)
			wc->c[SAINA_C_RESENT]++;
		else
			wc->c[SAINA_C_LATE]++;
		c->out.next_k = rt->k_next;
		return send_sender(ctx, f->global, c, conf, wc);
	case SLOT_STALE:
		wc->c[SAINA_C_STALE]++;
		control_event(SAINA_EV_STALE, EV_OF(job, c->in.worker, rt->k), c->in.round,
			      c->in.segment, 0);
		control_flush_events(ctx);
		return send_sender(ctx, f->global, c, conf, wc);
	}
	reason = c->out.reason;
drop:
	count_worker(wc, reason);
	return XDP_DROP;

drop_global:
	count_global(reason);
	return XDP_DROP;
}

/* Passed up to the agent. */
static __always_inline int control_message(struct xdp_md *ctx, const struct frame *f)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const void *h = data + SAINA_HDR_OFF;

	if (data + SAINA_DATA_OFF <= end && H(__u8, h, version) == SAINA_PROTO_VERSION) {
		__u32 type = H(__u8, h, type);

		if ((type == SAINA_MSG_READY || type == SAINA_MSG_HEARTBEAT ||
		     type == SAINA_MSG_LEAVE) && message_is_spoofed(ctx, f, h))
			return XDP_DROP;
		if (type == SAINA_MSG_JOIN &&
		    data + SAINA_DATA_OFF + sizeof(struct saina_join) <= end)
			message_learn(f, h);
	}
	count_global(SAINA_C_CONTROL);
	return XDP_PASS;
}

SEC("xdp.frags")
int saina_xdp(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct frame f;
	enum frame_kind kind;

	if (data + SAINA_HDR_OFF > end)
		return XDP_PASS;
	kind = frame_sort(ctx, data, &f);
	if (kind == FRAME_FOREIGN)
		return XDP_PASS;
	if (kind == FRAME_DATA || kind == FRAME_CONTROL) {
		f.ifindex = ctx->ingress_ifindex;
		if (f.global->flags & SAINA_GLOBAL_F_INJECT && inject_in(ctx) != XDP_PASS)
			return XDP_DROP;
		if (!frame_is_fragment(&f))
			return kind == FRAME_DATA ? data_message(ctx, &f) :
						    control_message(ctx, &f);
		kind = FRAME_FRAGMENT;
	}
	count_global(kind == FRAME_FRAGMENT ? SAINA_C_FRAGMENT : SAINA_C_FORGED);
	return XDP_DROP;
}

/* Behind the devmap entries of ports that lose or delay on the way out. */
SEC("xdp.frags/devmap")
int saina_egress(struct xdp_md *ctx)
{
	return inject_out(ctx);
}
