// SPDX-License-Identifier: GPL-2.0
/* One program for each thing that the module's kfuncs do; run by kfunc_test.c. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#include "saina/bpf.h"
#include "kfunc_test.h"

char _license[] SEC("license") = "GPL";

extern const __u8 *saina_xdp_job(struct xdp_md *ctx, __u32 job, const __u32 rdonly_buf_size) __ksym;
extern const __u8 *saina_tc_job(struct __sk_buff *ctx, __u32 job, const __u32 rdonly_buf_size) __ksym;
extern int saina_xdp_event(struct xdp_md *ctx, const struct saina_event *ev, __u32 ev__sz) __ksym;
extern int saina_tc_event(struct __sk_buff *ctx, const struct saina_event *ev, __u32 ev__sz) __ksym;
extern int saina_f32_sum(void *slot, __u32 slot__sz, const void *msg, __u32 msg__sz,
			 __u64 tag) __ksym;
extern int saina_bf16_sum(void *slot, __u32 slot__sz, const void *msg, __u32 msg__sz,
			  __u64 tag) __ksym;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct io);
} io SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vec);
} vec SEC(".maps");

static __always_inline struct io *the_io(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&io, &zero);
}

static __always_inline void copy_conf(struct io *x, const struct saina_job_conf *conf)
{
	x->found = !!conf;
	if (!conf)
		return;
	x->policy = conf->policy;
	x->active = conf->active;
	x->generation = conf->generation;
	x->binding = conf->worker[x->worker & (SAINA_WORKERS_MAX - 1)];
}

SEC("xdp")
int xdp_job(struct xdp_md *ctx)
{
	struct io *x = the_io();

	if (x)
		copy_conf(x, (void *)saina_xdp_job(ctx, x->job, sizeof(struct saina_job_conf)));
	return XDP_PASS;
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct saina_job_conf);
} conf SEC(".maps");

/* The whole snapshot, for those who need it in user space. */
SEC("xdp")
int xdp_conf(struct xdp_md *ctx)
{
	struct io *x = the_io();
	__u32 zero = 0;
	__u64 *to = bpf_map_lookup_elem(&conf, &zero);
	const __u64 *from;

	if (!x || !to)
		return XDP_ABORTED;
	from = (const void *)saina_xdp_job(ctx, x->job, sizeof(struct saina_job_conf));
	if (!from)
		return XDP_ABORTED;
	for (int i = 0; i < (int)sizeof(struct saina_job_conf) / 8; i++) {
		to[i] = from[i];
		asm volatile("" ::: "memory");	/* no call of memcpy() */
	}
	return XDP_PASS;
}

SEC("tc")
int tc_job(struct __sk_buff *ctx)
{
	struct io *x = the_io();

	if (x)
		copy_conf(x, (void *)saina_tc_job(ctx, x->job, sizeof(struct saina_job_conf)));
	return TC_ACT_OK;
}

SEC("xdp")
int xdp_job_too_long(struct xdp_md *ctx)
{
	struct io *x = the_io();

	if (x)
		x->found = !!saina_xdp_job(ctx, x->job, sizeof(struct saina_job_conf) + 1);
	return XDP_PASS;
}

SEC("xdp")
int xdp_event(struct xdp_md *ctx)
{
	struct io *x = the_io();

	if (x)
		x->ret = saina_xdp_event(ctx, &x->ev, sizeof(x->ev));
	return XDP_PASS;
}

SEC("tc")
int tc_event(struct __sk_buff *ctx)
{
	struct io *x = the_io();

	if (x)
		x->ret = saina_tc_event(ctx, &x->ev, sizeof(x->ev));
	return TC_ACT_OK;
}

SEC("xdp")
int f32_sum(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct vec *v = bpf_map_lookup_elem(&vec, &zero);
	struct io *x = the_io();

	if (v && x && saina_f32_sum(&v->slot, sizeof(v->slot), v->msg, sizeof(v->msg), x->tag))
		return XDP_ABORTED;
	return XDP_PASS;
}

SEC("xdp")
int bf16_sum(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct vec *v = bpf_map_lookup_elem(&vec, &zero);
	struct io *x = the_io();

	if (v && x && saina_bf16_sum(&v->slot, sizeof(v->slot), v->half, sizeof(v->half), x->tag))
		return XDP_ABORTED;
	return XDP_PASS;
}

/* Lengths that do not fit: sums and message differ, not a multiple of 32, no room for
 * the head. */
SEC("xdp")
int sum_bad(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct vec *v = bpf_map_lookup_elem(&vec, &zero);
	struct io *x = the_io();

	if (v && x)
		x->ret = saina_f32_sum(&v->slot, 64 + 64, v->msg, 32, 1) == -22 &&
			 saina_f32_sum(&v->slot, 64 + 32, v->msg, 64, 1) == -22 &&
			 saina_f32_sum(&v->slot, 64 + 36, v->msg, 36, 1) == -22 &&
			 saina_f32_sum(&v->slot, 32, v->msg, 32, 1) == -22 &&
			 saina_f32_sum(&v->slot, 32, v->msg, 1024, 1) == -22 &&
			 saina_bf16_sum(&v->slot, 64 + 64, v->half, 64, 1) == -22 &&
			 saina_bf16_sum(&v->slot, 64 + 65, v->half, 32, 1) == -22 &&
			 saina_bf16_sum(&v->slot, 64 + 48, v->half, 24, 1) == -22 &&
			 saina_bf16_sum(&v->slot, 32, v->half, 16, 1) == -22;
	return XDP_PASS;
}
