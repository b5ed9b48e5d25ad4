// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The XDP program that asks saina.ko for its jobs (saina_xdp_kmod.bpf.o): real
 * frames by BPF_PROG_TEST_RUN while the job is changed by netlink alone.  Nobody
 * plays the agent after the maps are made.
 *
 *	xdp_kmod_test PROGRAM HELPERS	in the test VM, module loaded, no jobs; as root
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "ctl/obj.h"
#include "dp/dp.h"
#include "../lib/frame.h"
#include "../lib/tap.h"

#define PAYLOAD	256
#define IFINDEX	1	/* BPF_PROG_TEST_RUN comes in by lo */

static struct saina_ctl *ctl;
static struct saina_dp *dp;
static struct saina_job_conf conf;
static const struct saina_global global = { .ip = 0x0100be0a, .mac = { 2, 90, 0, 0, 0, 1 } };

static void tell(int cmd, const struct saina_ctl_class *c, const void *obj)
{
	struct nlmsghdr *nlh = saina_ctl_msg(ctl, cmd, 0);

	saina_ctl_encode(nlh, c, obj);
	if (saina_ctl_call(ctl, nlh, NULL, NULL))
		tap_note("command %d: %s", cmd, saina_ctl_error(ctl));
}

static void worker_set(int id)
{
	struct saina_ctl_worker w = {
		.job_id = 0, .id = id, .ifindex = IFINDEX, .ip = htonl(0x0abe0002 + id),
		.udp_port = htons(20000 + id), .session = 7 + id, .mac = { 2, 90, 0, 0, 1, id },
	};

	w.has = 1ull << SAINA_A_WORKER_JOB_ID | 1ull << SAINA_A_WORKER_ID |
		1ull << SAINA_A_WORKER_IFINDEX | 1ull << SAINA_A_WORKER_IP |
		1ull << SAINA_A_WORKER_UDP_PORT | 1ull << SAINA_A_WORKER_SESSION |
		1ull << SAINA_A_WORKER_MAC;
	tell(SAINA_CMD_WORKER_SET, &saina_ctl_worker_class, &w);
}

static void worker_state(int id, int state)
{
	struct saina_ctl_worker w = { .job_id = 0, .id = id, .state = state };

	w.has = 1ull << SAINA_A_WORKER_JOB_ID | 1ull << SAINA_A_WORKER_ID | 1ull << SAINA_A_WORKER_STATE;
	tell(SAINA_CMD_WORKER_SET, &saina_ctl_worker_class, &w);
}

static void job_set(const char *policy, int state)
{
	struct saina_ctl_job job = { .id = 0, .state = state };

	SAINA_CTL_SET(&job, SAINA_A_JOB_ID);
	if (policy) {
		snprintf(job.policy, sizeof(job.policy), "%s", policy);
		SAINA_CTL_SET(&job, SAINA_A_JOB_POLICY);
	}
	if (state)
		SAINA_CTL_SET(&job, SAINA_A_JOB_STATE);
	tell(SAINA_CMD_JOB_SET, &saina_ctl_job_class, &job);
}

/* Reads the snapshot of job 0 by the module's own kfunc. */
static int conf_read(const char *helpers)
{
	struct bpf_object *o = bpf_object__open_file(helpers, NULL);
	char packet[64] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet));
	__u32 zero = 0;
	int ret = -1;

	if (o && !bpf_object__load(o) &&
	    !bpf_prog_test_run_opts(bpf_program__fd(bpf_object__find_program_by_name(o, "xdp_conf")), &opts) &&
	    opts.retval == 2)
		ret = bpf_map_lookup_elem(bpf_object__find_map_fd_by_name(o, "conf"), &zero, &conf);
	bpf_object__close(o);
	return ret;
}

/* A gradient of worker @w, all elements @value. */
static int grad(int w, __u32 round, __u32 segment, __s32 value)
{
	struct saina_hdr hdr = {
		.version = SAINA_PROTO_VERSION, .type = SAINA_MSG_GRAD, .elem = SAINA_ELEM_INT32,
		.session = conf.worker[w].session, .round = round, .segment = segment,
		.count = PAYLOAD, .worker = w, .exponent = 20,
	};
	__s32 v[PAYLOAD];
	uint8_t frame[FRAME_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame);

	for (int i = 0; i < PAYLOAD; i++)
		v[i] = value;
	opts.data_size_in = frame_make(frame, &global, &conf.worker[w], &hdr, v, sizeof(v));
	if (bpf_prog_test_run_opts(saina_dp_prog_fd(dp), &opts)) {
		tap_note("BPF_PROG_TEST_RUN: %s", strerror(errno));
		return -1;
	}
	return opts.retval;
}

static __u64 counted(int job, int w, int counter)
{
	struct saina_counters c;

	return saina_dp_counters(dp, job, w, &c) ? ~0ull : c.c[counter];
}

/* Is the sum of (round, segment) @value in all elements, of the workers @mask? */
static bool result(__u32 round, __u32 segment, __u64 mask, int k, __s32 value)
{
	struct saina_slot_meta m;
	__s32 sums[PAYLOAD];

	if (saina_dp_result(dp, 0, segment, round, &m, sums))
		return false;
	for (int i = 0; i < PAYLOAD; i++)
		if (sums[i] != value)
			return false;
	return m.seen == mask && m.k == k;
}

static void log_line(void *arg, int level, const char *line)
{
	if (level <= 1)
		tap_note("%.300s", line);
}

int main(int argc, char **argv)
{
	struct saina_dp_opts opts = { .log = log_line };
	struct saina_ctl_job job = { .workers = 2, .elements = 2 * PAYLOAD, .name = "a" };
	const char *error;
	__u64 n;

	if (argc != 3) {
		fprintf(stderr, "usage: xdp_kmod_test PROGRAM HELPERS\n");
		return 2;
	}
	if (saina_ctl_open(&ctl, "kernel", &error)) {
		printf("Bail out! %s\n", error);
		return 1;
	}
	SAINA_CTL_SET(&job, SAINA_A_JOB_NAME);
	SAINA_CTL_SET(&job, SAINA_A_JOB_WORKERS);
	SAINA_CTL_SET(&job, SAINA_A_JOB_ELEMENTS);
	tell(SAINA_CMD_JOB_NEW, &saina_ctl_job_class, &job);
	worker_set(0);
	worker_set(1);
	tap_ok(!conf_read(argv[2]) && conf.state == SAINA_JOB_RUNNING && conf.active == 3,
	       "a job with two workers runs in the kernel");

	opts.object = argv[1];
	if (saina_dp_open(&dp, &opts)) {
		tap_ok(false, "%s loads: %s", argv[1], saina_dp_error(dp));
		return tap_done();
	}
	tap_ok(true, "the program that asks the module loads");
	saina_dp_global_set(dp, &global);
	tap_ok(!saina_dp_job_publish(dp, &conf, 0), "its maps are made once");

	grad(0, 0, 0, 5);
	tap_ok(!result(0, 0, 1, 2, 5) && counted(0, 0, SAINA_C_STORED) == 1, "bsp: one gradient is not enough");
	grad(1, 0, 0, 7);
	tap_ok(result(0, 0, 3, 2, 12), "two are");
	grad(0, 0, 1, -5);
	grad(1, 0, 1, 3);
	tap_ok(result(0, 1, 3, 2, -2), "the other segment likewise");

	job_set("fastest:k=1", 0);
	grad(1, 1, 0, 9);
	tap_ok(result(1, 0, 2, 1, 9), "k set by netlink alone is in force in the next round");
	grad(1, 1, 1, 9);

	job_set(NULL, SAINA_JOB_STOPPED);
	n = counted(0, 0, SAINA_C_NOT_RUNNING);
	grad(0, 2, 0, 1);
	tap_ok(counted(0, 0, SAINA_C_NOT_RUNNING) == n + 1 && !result(2, 0, 1, 1, 1),
	       "a job stopped by netlink takes nothing");
	job_set(NULL, SAINA_JOB_RUNNING);
	grad(0, 2, 0, 1);
	tap_ok(result(2, 0, 1, 1, 1), "set running, it does again");
	grad(0, 2, 1, 1);

	worker_state(1, SAINA_WORKER_DEAD);
	n = counted(0, 1, SAINA_C_INACTIVE);
	grad(1, 3, 0, 1);
	tap_ok(counted(0, 1, SAINA_C_INACTIVE) == n + 1, "nor from a worker that is dead by netlink");

	tell(SAINA_CMD_JOB_DEL, &saina_ctl_job_class, &(struct saina_ctl_job){ .has = 1ull << SAINA_A_JOB_ID });
	n = counted(-1, -1, SAINA_C_NO_JOB);
	grad(0, 3, 0, 1);
	tap_ok(counted(-1, -1, SAINA_C_NO_JOB) == n + 1, "a deleted job is gone for the next packet");
	saina_dp_close(dp, true);
	saina_ctl_close(ctl);
	return tap_done();
}
