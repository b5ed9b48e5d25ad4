// SPDX-License-Identifier: GPL-2.0
/* Reads the snapshot of a job that saina.ko publishes. */
#include "common.bpf.h"

char _license[] SEC("license") = "GPL";

extern const __u8 *saina_xdp_job(struct xdp_md *ctx, __u32 job, const __u32 rdonly_buf_size) __ksym;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct saina_job_conf);
} bench_conf SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} bench_job SEC(".maps");

SEC("xdp")
int bench_snapshot(struct xdp_md *ctx)
{
	__u32 zero = 0, *job = bpf_map_lookup_elem(&bench_job, &zero);
	__u64 *to = bpf_map_lookup_elem(&bench_conf, &zero);
	const __u64 *from;

	if (!job || !to)
		return XDP_ABORTED;
	from = (const void *)saina_xdp_job(ctx, *job, sizeof(struct saina_job_conf));
	if (!from)
		return XDP_DROP;
	for (int i = 0; i < (int)sizeof(struct saina_job_conf) / 8; i++) {
		to[i] = from[i];
		asm volatile("" ::: "memory");	/* no call of memcpy() */
	}
	return XDP_PASS;
}
