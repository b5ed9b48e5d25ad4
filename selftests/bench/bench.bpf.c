// SPDX-License-Identifier: GPL-2.0
/*
 * The driver program, and programs to compare with; bench-datapath.c describes the method.
 */
#include "common.bpf.h"
#include "bench.h"

char _license[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bench_state);
} bench_state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, BENCH_TARGETS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} bench_targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAINA_LOCKS);
	__type(key, __u32);
	__type(value, struct saina_slot_lock);
} bench_locks SEC(".maps");

struct bench_scratch {
	__s32 v[SAINA_ELEMS_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bench_scratch);
} bench_scratch SEC(".maps");

/* Writes the headers of the next frame and tail-calls the program under test.  The index is
 * not constant: with a constant one each change would patch kernel text. */
SEC("xdp.frags")
int bench_driver(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct bench_state *s;
	__u32 zero = 0;

	s = bpf_map_lookup_elem(&bench_state, &zero);
	if (!s || data + BENCH_HEAD > end)
		return XDP_ABORTED;
#pragma unroll
	for (int i = 0; i < BENCH_HEAD / 8; i++)
		WR(__u64, data + 8 * i, s->head[i]);
	WR(__u16, data + 88, s->head[11]);
	WR(__u32, data + HDR_OFF(segment), s->segment);
	WR(__u8, data + HDR_OFF(worker), s->worker);
	WR(__u8, data + HDR_OFF(exponent), s->exponent);
	WR(__be16, data + SAINA_UDP_OFF, bpf_htons(BENCH_UDP_PORT + s->worker));
	if (++s->segment >= s->segment_end) {
		s->segment = s->segment_begin;
		s->worker += s->worker_step;
		s->exponent += s->exponent_step;
	}
	bpf_tail_call(ctx, &bench_targets, s->target);
	return XDP_ABORTED;
}

SEC("xdp.frags")
int bench_empty(struct xdp_md *ctx)
{
	return XDP_PASS;
}

/* Slot of a GRAD; -1: the frame is none. */
static __always_inline int parse(struct xdp_md *ctx, __u32 *slot)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (data + SAINA_DATA_OFF > end)
		return -1;
	if (RD(__be16, data + 12) != bpf_htons(ETH_P_IP) || RD(__u8, data + SAINA_IP_OFF) != 0x45 ||
	    RD(__u8, data + SAINA_IP_OFF + 9) != IPPROTO_UDP ||
	    RD(__be16, data + SAINA_UDP_OFF + 2) != bpf_htons(SAINA_PORT_DATA) ||
	    RD(__u8, data + HDR_OFF(version)) != SAINA_PROTO_VERSION ||
	    RD(__u8, data + HDR_OFF(type)) != SAINA_MSG_GRAD)
		return -1;
	*slot = RD(__u32, data + HDR_OFF(segment)) & (BENCH_SLOTS - 1);
	return 0;
}

SEC("xdp.frags")
int bench_parse(struct xdp_md *ctx)
{
	__u32 slot;

	return parse(ctx, &slot) ? XDP_PASS : XDP_DROP;
}

/* The least work of an aggregator: parse, lock, add. */
#define BENCH_ADD(E)								\
struct {									\
	__uint(type, BPF_MAP_TYPE_ARRAY);					\
	__uint(max_entries, BENCH_SLOTS);					\
	__type(key, __u32);							\
	__type(value, struct saina_slot_##E);					\
} bench_slots_##E SEC(".maps");							\
										\
struct payload_##E { __s32 v[E]; };						\
										\
static __always_inline int add_##E(__u32 slot, const struct payload_##E *p)	\
{										\
	struct saina_slot_lock *lk = bpf_map_lookup_elem(&bench_locks, &slot);	\
	struct saina_slot_##E *s = bpf_map_lookup_elem(&bench_slots_##E, &slot); \
										\
	if (!lk || !s)								\
		return XDP_ABORTED;						\
	bpf_spin_lock(&lk->lock);						\
	_Pragma("clang loop unroll_count(16)")					\
	for (__u32 i = 0; i < E; i++)						\
		s->sum[i] += p->v[i];						\
	bpf_spin_unlock(&lk->lock);						\
	return XDP_DROP;							\
}										\
										\
SEC("xdp.frags")								\
int bench_add_##E(struct xdp_md *ctx)						\
{										\
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end; \
	struct bench_scratch *scratch;						\
	__u32 slot, zero = 0;							\
										\
	if (parse(ctx, &slot))							\
		return XDP_PASS;						\
	if (data + SAINA_DATA_OFF + 4 * E <= end)				\
		return add_##E(slot, data + SAINA_DATA_OFF);			\
	scratch = bpf_map_lookup_elem(&bench_scratch, &zero);			\
	if (!scratch || bpf_xdp_load_bytes(ctx, SAINA_DATA_OFF, scratch, 4 * E)) \
		return XDP_ABORTED;						\
	return add_##E(slot, (struct payload_##E *)scratch);			\
}
SAINA_ELEMS_LIST(BENCH_ADD)
