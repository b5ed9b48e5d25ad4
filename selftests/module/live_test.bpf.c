// SPDX-License-Identifier: GPL-2.0
/* On an interface under traffic: does with each packet what the data path does with the
 * module, for job 0; live_test.c makes that job come and go meanwhile. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "saina/bpf.h"

char _license[] SEC("license") = "GPL";

extern const __u8 *saina_xdp_job(struct xdp_md *ctx, __u32 job, const __u32 rdonly_buf_size) __ksym;
extern int saina_xdp_event(struct xdp_md *ctx, const struct saina_event *ev, __u32 ev__sz) __ksym;

/* as in live_test.c */
enum { HIT, MISS, EVENT_SENT, TORN, N_TALLY };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, N_TALLY);
	__type(key, __u32);
	__type(value, __u64);
} tally SEC(".maps");

static __always_inline void tick(__u32 what)
{
	__u64 *n = bpf_map_lookup_elem(&tally, &what);

	if (n)
		++*n;
}

SEC("xdp")
int live(struct xdp_md *ctx)
{
	struct saina_event ev = { .type = SAINA_EV_K, .worker = 0xff, .k = 1 };
	const struct saina_job_conf *conf;

	conf = (void *)saina_xdp_job(ctx, 0, sizeof(*conf));
	if (!conf) {
		tick(MISS);
		return XDP_DROP;
	}
	tick(HIT);
	ev.generation = conf->generation;
	/* a snapshot is of one moment, and alive as long as this runs: in this test the
	 * policy's number is k, or, at first, 1 with k 0 */
	if (conf->policy.k && conf->policy.k != conf->policy.seq - 1)
		tick(TORN);
	if (!saina_xdp_event(ctx, &ev, sizeof(ev)))
		tick(EVENT_SENT);
	if (conf->job || !conf->generation)
		tick(TORN);
	return XDP_DROP;
}
