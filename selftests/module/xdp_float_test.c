// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Jobs of floats in the XDP program that asks saina.ko (saina_xdp_kmod.bpf.o): frames by
 * BPF_PROG_TEST_RUN from several threads at once into the same slots, and frames that do
 * not fit the job.
 *
 *	xdp_float_test PROGRAM HELPERS	in the test VM, module loaded, no jobs; as root
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "ctl/obj.h"
#include "dp/dp.h"
#include "../lib/frame.h"
#include "../lib/tap.h"

#define PAYLOAD	 256
#define SEGMENTS 4
#define WORKERS	 12
#define THREADS	 4	/* WORKERS / THREADS workers each */
#define ROUNDS	 60
#define IFINDEX	 1	/* BPF_PROG_TEST_RUN comes in by lo */

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

/* Job 0 with all its workers, its snapshot read by the module's own kfunc. */
static int job_new(const char *helpers, int type, const char *policy)
{
	struct bpf_object *o = bpf_object__open_file(helpers, NULL);
	struct saina_ctl_job job = {
		.workers = WORKERS, .elements = SEGMENTS * PAYLOAD, .elem_type = type, .name = "a",
	};
	char packet[64] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet));
	__u32 zero = 0;
	int ret = -1;

	snprintf(job.policy, sizeof(job.policy), "%s", policy);
	SAINA_CTL_SET(&job, SAINA_A_JOB_NAME);
	SAINA_CTL_SET(&job, SAINA_A_JOB_WORKERS);
	SAINA_CTL_SET(&job, SAINA_A_JOB_ELEMENTS);
	SAINA_CTL_SET(&job, SAINA_A_JOB_ELEM_TYPE);
	SAINA_CTL_SET(&job, SAINA_A_JOB_POLICY);
	tell(SAINA_CMD_JOB_NEW, &saina_ctl_job_class, &job);
	for (int w = 0; w < WORKERS; w++)
		worker_set(w);
	if (o && !bpf_object__load(o) &&
	    !bpf_prog_test_run_opts(bpf_program__fd(bpf_object__find_program_by_name(o, "xdp_conf")), &opts) &&
	    opts.retval == 2)
		ret = bpf_map_lookup_elem(bpf_object__find_map_fd_by_name(o, "conf"), &zero, &conf);
	bpf_object__close(o);
	return ret ? ret : saina_dp_job_publish(dp, &conf, 0);
}

static void job_del(void)
{
	tell(SAINA_CMD_JOB_DEL, &saina_ctl_job_class,
	     &(struct saina_ctl_job){ .has = 1ull << SAINA_A_JOB_ID });
	saina_dp_job_remove(dp, 0);
}

/* What @w sends: small integers, whose sums are exact in any order, and never 0. */
static int value(int w, __u32 round, __u32 segment, int i)
{
	return 1 + (w * 7 + round * 3 + segment * 5 + i) % 15;
}

static __u32 bits_of(float f)
{
	__u32 u;

	memcpy(&u, &f, 4);
	return u;
}

/* A message of @type with an element type of its own; returns what the program did. */
static int send_as(int type, int elem, int w, __u32 round, __u32 segment)
{
	struct saina_hdr hdr = {
		.version = SAINA_PROTO_VERSION, .type = type, .elem = elem,
		.session = conf.worker[w].session, .round = round, .segment = segment,
		.count = PAYLOAD, .worker = w,
	};
	bool half = elem == SAINA_ELEM_BFLOAT16;
	uint8_t frame[FRAME_MAX], payload[4 * PAYLOAD];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame);

	for (int i = 0; i < PAYLOAD; i++) {
		__u32 u = bits_of(value(w, round, segment, i));
		__u16 h = u >> 16;

		if (half)
			memcpy(payload + 2 * i, &h, 2);
		else
			memcpy(payload + 4 * i, &u, 4);
	}
	opts.data_size_in = frame_make(frame, &global, &conf.worker[w], &hdr, payload,
				       (half ? 2 : 4) * PAYLOAD);
	if (bpf_prog_test_run_opts(saina_dp_prog_fd(dp), &opts)) {
		tap_note("BPF_PROG_TEST_RUN: %s", strerror(errno));
		return -1;
	}
	return opts.retval;
}

static __u64 counted(int w, int counter)
{
	struct saina_counters c;

	return saina_dp_counters(dp, 0, w, &c) ? ~0ull : c.c[counter];
}

static __u64 counted_all(int counter)
{
	__u64 n = 0;

	for (int w = 0; w < WORKERS; w++)
		n += counted(w, counter);
	return n;
}

static pthread_barrier_t barrier;
static __u32 the_round;
static bool ended;

/* Workers id, id + THREADS, ..; each sends every segment twice, some duplicates. */
static void *sender(void *arg)
{
	int id = (int)(long)arg;

	for (;;) {
		pthread_barrier_wait(&barrier);
		if (ended)
			return NULL;
		for (__u32 s = 0; s < SEGMENTS; s++)
			for (int w = id; w < WORKERS; w += THREADS)
				for (int again = 0; again < 2; again++)
					send_as(SAINA_MSG_GRAD, conf.elem, w, the_round, s);
		pthread_barrier_wait(&barrier);
	}
}

/* Is the result of (round, segment) the sum over its mask of @k workers, exactly? */
static bool exact(__u32 round, __u32 segment, int k)
{
	__s32 sums[SAINA_ELEMS_MAX];
	struct saina_slot_meta m;

	if (saina_dp_result(dp, 0, segment, round, &m, sums)) {
		tap_note("round %u segment %u: no result", round, segment);
		return false;
	}
	if (__builtin_popcountll(m.seen) != k || m.count != k || m.applied != k) {
		tap_note("round %u segment %u: mask %#llx count %u applied %u", round, segment,
			 (unsigned long long)m.seen, m.count, m.applied);
		return false;
	}
	for (int i = 0; i < PAYLOAD; i++) {
		__u32 want, got;
		int sum = 0;

		for (int w = 0; w < WORKERS; w++)
			if (m.seen >> w & 1)
				sum += value(w, round, segment, i);
		want = bits_of(sum);
		got = sums[i];
		if (conf.elem == SAINA_ELEM_BFLOAT16) {
			want >>= 16;	/* up to 180: 8 bits, nothing to round */
			got = ((const __u16 *)sums)[i];
		}
		if (got != want) {
			tap_note("round %u segment %u element %d: %#x, not %#x", round, segment, i, got,
				 want);
			return false;
		}
	}
	return true;
}

/* Rounds in which all threads send into the same slots at the same time. */
static void test_race(const char *helpers, int type, const char *name, const char *policy, int k)
{
	pthread_t t[THREADS];
	__u64 n;
	int bad = 0;

	if (job_new(helpers, type, policy)) {
		tap_ok(false, "%s, %s: a job", name, policy);
		return;
	}
	ended = false;
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, sender, (void *)i);
	for (the_round = 0; the_round < ROUNDS; the_round++) {
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		for (__u32 s = 0; s < SEGMENTS; s++)
			bad += !exact(the_round, s, k);
	}
	ended = true;
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	pthread_barrier_destroy(&barrier);
	tap_ok(!bad, "%s, %s: %d threads, %d rounds: every sum is that of its mask (%d are not)", name,
	       policy, THREADS, ROUNDS, bad);
	n = counted_all(SAINA_C_STORED) + counted_all(SAINA_C_ADDED);
	tap_ok(n == (__u64)ROUNDS * SEGMENTS * k, "%s, %s: as many were counted as are in the results",
	       name, policy);
	tap_ok(counted_all(SAINA_C_INTERNAL) == 0 && counted_all(SAINA_C_COMPLETED) == ROUNDS * SEGMENTS,
	       "%s, %s: each result was made once", name, policy);
	job_del();
}

/* What the module's tag must see to: a slot's next use begins with a store. */
static void test_odd(const char *helpers, int type, const char *name)
{
	int other = type == SAINA_ELEM_FLOAT32 ? SAINA_ELEM_INT32 : SAINA_ELEM_FLOAT32;
	int reason = type == SAINA_ELEM_FLOAT32 ? SAINA_C_ELEM_TYPE : SAINA_C_LENGTH;

	if (job_new(helpers, type, "fastest:k=1")) {
		tap_ok(false, "%s: a job", name);
		return;
	}
	send_as(SAINA_MSG_GRAD, other, 0, 0, 0);
	tap_ok(counted(0, reason) == 1, "%s: elements of another type are dropped and counted", name);
	send_as(SAINA_MSG_PULL, type, 1, 0, 0);
	tap_ok(counted(1, SAINA_C_PULL_EARLY) == 1, "%s: a pull before there is anything", name);
	send_as(SAINA_MSG_GRAD, type, 0, 0, 0);
	tap_ok(exact(0, 0, 1), "%s: k = 1: the first is the result", name);
	send_as(SAINA_MSG_GRAD, type, 1, 0, 0);
	send_as(SAINA_MSG_GRAD, type, 0, 0, 0);
	send_as(SAINA_MSG_PULL, type, 2, 0, 0);
	tap_ok(counted(1, SAINA_C_LATE) == 1 && counted(0, SAINA_C_RESENT) == 1 &&
	       counted(2, SAINA_C_PULLED) == 1 && exact(0, 0, 1),
	       "%s: late, again and by pull it is answered, and does not change", name);
	job_del();
}

static void log_line(void *arg, int level, const char *line)
{
	if (level <= 1)
		tap_note("%.300s", line);
}

int main(int argc, char **argv)
{
	struct saina_dp_opts opts = { .log = log_line };
	const char *error;

	if (argc != 3) {
		fprintf(stderr, "usage: xdp_float_test PROGRAM HELPERS\n");
		return 2;
	}
	if (saina_ctl_open(&ctl, "kernel", &error)) {
		printf("Bail out! %s\n", error);
		return 1;
	}
	opts.object = argv[1];
	if (saina_dp_open(&dp, &opts)) {
		printf("Bail out! %s does not load: %s\n", argv[1], saina_dp_error(dp));
		return 1;
	}
	saina_dp_global_set(dp, &global);
	test_odd(argv[2], SAINA_ELEM_FLOAT32, "float32");
	test_odd(argv[2], SAINA_ELEM_BFLOAT16, "bfloat16");
	test_race(argv[2], SAINA_ELEM_FLOAT32, "float32", "bsp", WORKERS);
	test_race(argv[2], SAINA_ELEM_FLOAT32, "float32", "fastest:k=5", 5);
	test_race(argv[2], SAINA_ELEM_BFLOAT16, "bfloat16", "bsp", WORKERS);
	test_race(argv[2], SAINA_ELEM_BFLOAT16, "bfloat16", "fastest:k=5", 5);
	saina_dp_close(dp, true);
	saina_ctl_close(ctl);
	return tap_done();
}
