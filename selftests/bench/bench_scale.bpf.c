// SPDX-License-Identifier: GPL-2.0
/*
 * The drivers of bench-scale: write the headers of the next frame, of any round, and tail-call the
 * program under test.  bench-scale.c describes the method.
 */
#include <linux/pkt_cls.h>
#include "common.bpf.h"
#include "bench.h"

char _license[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SCALE_CPUS);
	__type(key, __u32);
	__type(value, struct scale_state);
} scale_state SEC(".maps");

#define SCALE_PROGS(name)				\
struct {						\
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);		\
	__uint(max_entries, SCALE_TARGETS);		\
	__uint(key_size, sizeof(__u32));		\
	__uint(value_size, sizeof(__u32));		\
} name SEC(".maps")

SCALE_PROGS(scale_xdp_targets);
SCALE_PROGS(scale_tc_targets);

static __always_inline struct scale_state *scale_next(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&scale_state, &cpu);
}

/* What differs from frame to frame; @at: the segment. */
static __always_inline void scale_fill(struct scale_state *s, __u32 at)
{
	WR(__u32, s->head + HDR_OFF(segment), at);
	WR(__u32, s->head + HDR_OFF(round), s->round);
	WR(__u8, s->head + HDR_OFF(worker), s->worker);
	WR(__be16, s->head + SAINA_UDP_OFF, bpf_htons(BENCH_UDP_PORT + s->worker));
}

/* All segments of a window, worker by worker; then the next window, and the next round. */
static __always_inline void scale_advance(struct scale_state *s)
{
	s->segment += s->step;
	if (s->segment < s->window + s->window_size)
		return;
	s->segment = s->window;
	if (++s->worker < s->workers)
		return;
	s->worker = 0;
	s->window += s->window_size;
	if (s->window >= s->segments) {
		s->window = 0;
		s->round++;
	}
	s->segment = s->window;
}

SEC("xdp.frags")
int scale_xdp(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct scale_state *s = scale_next();
	__u32 target;

	if (!s || data + BENCH_HEAD > end)
		return XDP_ABORTED;
	scale_fill(s, s->segment);
#pragma unroll
	for (int i = 0; i < BENCH_HEAD / 2; i++)
		WR(__u16, data + 2 * i, RD(__u16, s->head + 2 * i));
	target = s->target;
	scale_advance(s);
	bpf_tail_call(ctx, &scale_xdp_targets, target);
	return XDP_ABORTED;
}

SEC("xdp.frags")
int scale_xdp_empty(struct xdp_md *ctx)
{
	return XDP_DROP;
}

/* TC_ACT_OK stands for a failure. */
SEC("tc")
int scale_tc(struct __sk_buff *skb)
{
	struct scale_state *s = scale_next();
	__u32 target;

	if (!s)
		return TC_ACT_OK;
	for (__u32 i = 0; i < SCALE_FRAME && i < s->messages; i++) {
		scale_fill(s, s->segment + i);
		if (i ? bpf_skb_store_bytes(skb, SAINA_HDR_OFF + i * s->bytes, s->head + SAINA_HDR_OFF, SCALE_COPY, 0)
		      : bpf_skb_store_bytes(skb, 0, s->head, SAINA_HDR_OFF + SCALE_COPY, 0))
			return TC_ACT_OK;
	}
	target = s->target;
	scale_advance(s);
	bpf_tail_call(skb, &scale_tc_targets, target);
	return TC_ACT_OK;
}

SEC("tc")
int scale_tc_empty(struct __sk_buff *skb)
{
	return TC_ACT_SHOT;
}
