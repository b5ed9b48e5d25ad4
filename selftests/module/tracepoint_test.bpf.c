// SPDX-License-Identifier: GPL-2.0
/* A program that tells of events and asks for jobs, for tracepoint_test.c. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "saina/bpf.h"

char _license[] SEC("license") = "GPL";

extern const __u8 *saina_xdp_job(struct xdp_md *ctx, __u32 job, const __u32 rdonly_buf_size) __ksym;
extern int saina_xdp_event(struct xdp_md *ctx, const struct saina_event *ev, __u32 ev__sz) __ksym;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct saina_event);
} what SEC(".maps");

SEC("xdp")
int send_event(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct saina_event *at = bpf_map_lookup_elem(&what, &zero), ev;

	const __u32 *generation;

	if (!at)
		return XDP_ABORTED;
	ev = *at;
	generation = (const void *)saina_xdp_job(ctx, ev.job, sizeof(*generation));
	if (!generation)
		return XDP_DROP;
	ev.generation = *generation;
	return saina_xdp_event(ctx, &ev, sizeof(ev)) ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int ask(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct saina_event *at = bpf_map_lookup_elem(&what, &zero);

	return at && saina_xdp_job(ctx, at->job, sizeof(__u32)) ? XDP_PASS : XDP_DROP;
}
