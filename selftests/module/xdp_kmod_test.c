// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The XDP program that asks saina.ko for its jobs (saina_xdp_kmod.bpf.o): real
 * frames by BPF_PROG_TEST_RUN while the job is changed by netlink alone.  Nobody
 * plays the agent after the maps are made.
 *
 *	xdp_kmod_test PROGRAM HELPERS	in the test VM, module loaded, no jobs; as root
 */
#include "../lib/tap.h"
#include "xdp_harness.h"

#define PAYLOAD	352	/* what a job has if nothing is said */

static struct xdp_harness harness;

/* A gradient of worker @w, all elements @value. */
static void grad(int w, __u32 round, __u32 segment, __s32 value)
{
	struct saina_hdr hdr = {
		.type = SAINA_MSG_GRAD, .elem = SAINA_ELEM_INT32, .round = round,
		.segment = segment, .count = PAYLOAD, .worker = w, .exponent = 20,
	};
	struct xdp_sent sent;
	__s32 v[PAYLOAD];

	for (int i = 0; i < PAYLOAD; i++)
		v[i] = value;
	xdp_harness_send(&harness, hdr, v, sizeof(v), &sent);
}

static __u64 counted(int job, int w, int counter)
{
	return xdp_harness_counted(&harness, job, w, counter);
}

/* Is the sum of (round, segment) @value in all elements, of the workers @mask? */
static bool result(__u32 round, __u32 segment, __u64 mask, int k, __s32 value)
{
	struct saina_slot_meta m;
	__s32 sums[PAYLOAD];

	if (saina_dp_result(harness.dp, 0, segment, round, &m, sums))
		return false;
	for (int i = 0; i < PAYLOAD; i++)
		if (sums[i] != value)
			return false;
	return m.seen == mask && m.k == k;
}

static int event_cb(const struct nlmsghdr *nlh, void *arg)
{
	return saina_ctl_decode(nlh, &saina_event_class, arg);
}

/* Nobody empties the ring, as when the agent is dead: 256 KiB are full long before. */
#define RING_EVENTS	(256 * 1024 / sizeof(struct saina_event))

static void events_without_agent(void)
{
	struct saina_event_attrs got = { 0 };
	struct saina_ctl *sub;
	const char *error;
	__u32 round;
	__u64 full;
	int ret;

	tap_ok(!xdp_harness_check(request_job_new("b", 1, PAYLOAD)) && !xdp_harness_bind(1) &&
		       !xdp_harness_snapshot(&harness) &&
		       !saina_dp_job_publish(harness.dp, &harness.conf, 0),
	       "a job of one worker runs: each gradient makes an event");
	full = counted(-1, -1, SAINA_C_NO_MEMORY);
	for (round = 0; round < RING_EVENTS; round++)
		grad(0, round, 0, 1);
	tap_ok(counted(-1, -1, SAINA_C_NO_MEMORY) > full, "the ring of events is full");
	if (saina_ctl_open(&sub, "kernel", &error) || saina_ctl_subscribe(sub, SAINA_GROUPS_EVENTS)) {
		tap_ok(false, "subscribing: %s", error);
		return;
	}
	grad(0, round, 0, 1);
	ret = saina_ctl_next(sub, 2000, event_cb, &got);
	tap_ok(!ret && got.type == SAINA_EV_ROUND && got.round == round,
	       "subscribers of the module get events also while the ring is full");
	saina_ctl_close(sub);
	xdp_harness_check(request_job_del(0));
}

int main(int argc, char **argv)
{
	__u64 n;

	if (argc != 3) {
		fprintf(stderr, "usage: xdp_kmod_test PROGRAM HELPERS\n");
		return 2;
	}
	requests_open();
	tap_ok(!xdp_harness_check(request_job_new("a", 2, 2 * PAYLOAD)) && !xdp_harness_bind(2) &&
		       !xdp_harness_helpers(&harness, argv[2]) && !xdp_harness_snapshot(&harness) &&
		       harness.conf.state == SAINA_JOB_RUNNING && harness.conf.active == 3,
	       "a job with two workers runs in the kernel");
	if (!tap_ok(!xdp_harness_load(&harness, argv[1]), "the XDP program for saina.ko is loaded"))
		return tap_done();
	tap_ok(!saina_dp_job_publish(harness.dp, &harness.conf, 0),
	       "the maps of a job are made once");

	grad(0, 0, 0, 5);
	tap_ok(!result(0, 0, 1, 2, 5) && counted(0, 0, SAINA_C_STORED) == 1, "bsp: one gradient of two makes no result");
	grad(1, 0, 0, 7);
	tap_ok(result(0, 0, 3, 2, 12), "bsp: the second gradient of two makes the result");
	grad(0, 0, 1, -5);
	grad(1, 0, 1, 3);
	tap_ok(result(0, 1, 3, 2, -2), "bsp: another segment has a result of its own");

	xdp_harness_check(request_job_policy(0, "fastest:k=1"));
	grad(1, 1, 0, 9);
	tap_ok(result(1, 0, 2, 1, 9), "a k set by netlink is in force in the next round");
	grad(1, 1, 1, 9);

	xdp_harness_check(request_job_state(0, SAINA_JOB_STOPPED));
	n = counted(0, 0, SAINA_C_NOT_RUNNING);
	grad(0, 2, 0, 1);
	tap_ok(counted(0, 0, SAINA_C_NOT_RUNNING) == n + 1 && !result(2, 0, 1, 1, 1),
	       "a job stopped by netlink takes no gradient");
	xdp_harness_check(request_job_state(0, SAINA_JOB_RUNNING));
	grad(0, 2, 0, 1);
	tap_ok(result(2, 0, 1, 1, 1), "a job set running by netlink takes gradients again");
	grad(0, 2, 1, 1);

	xdp_harness_check(request_worker_state(0, 1, SAINA_WORKER_STATE_DEAD));
	n = counted(0, 1, SAINA_C_INACTIVE);
	grad(1, 3, 0, 1);
	tap_ok(counted(0, 1, SAINA_C_INACTIVE) == n + 1, "a worker declared dead by netlink is not counted");

	xdp_harness_check(request_job_del(0));
	n = counted(-1, -1, SAINA_C_NO_JOB);
	grad(0, 3, 0, 1);
	tap_ok(counted(-1, -1, SAINA_C_NO_JOB) == n + 1, "a deleted job is unknown to the next packet");
	events_without_agent();
	xdp_harness_close(&harness);
	saina_ctl_close(requests_ctl);
	return tap_done();
}
