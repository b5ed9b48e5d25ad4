// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Jobs of floats in the XDP program that asks saina.ko (saina_xdp_kmod.bpf.o): frames by
 * BPF_PROG_TEST_RUN from several threads at once into the same slots, and frames that do
 * not fit the job.
 *
 *	xdp_float_test PROGRAM HELPERS	in the test VM, module loaded, no jobs; as root
 */
#include <pthread.h>
#include <string.h>
#include "../lib/tap.h"
#include "xdp_rig.h"

#define PAYLOAD	 256
#define SEGMENTS 4
#define WORKERS	 12
#define THREADS	 4	/* WORKERS / THREADS workers each */
#define ROUNDS	 60

static struct xdp_rig rig;

/* Job 0 with all its workers, and its maps. */
static int job_new(int type, const char *policy)
{
	if (xdp_rig_told(call_job_new_as("a", WORKERS, SEGMENTS * PAYLOAD, PAYLOAD, type, policy)) ||
	    xdp_rig_bind(WORKERS) || xdp_rig_snapshot(&rig))
		return -1;
	return saina_dp_job_publish(rig.dp, &rig.conf, 0);
}

static void job_del(void)
{
	xdp_rig_told(call_job_del(0));
	saina_dp_job_remove(rig.dp, 0);
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

/* A message of @type with an element type of its own. */
static void send_as(int type, int elem, int w, __u32 round, __u32 segment)
{
	struct saina_hdr hdr = {
		.type = type, .elem = elem, .round = round, .segment = segment,
		.count = PAYLOAD, .worker = w,
	};
	bool half = elem == SAINA_ELEM_BFLOAT16;
	uint8_t payload[4 * PAYLOAD];
	struct xdp_sent sent;

	for (int i = 0; i < PAYLOAD; i++) {
		__u32 u = bits_of(value(w, round, segment, i));
		__u16 h = u >> 16;

		if (half)
			memcpy(payload + 2 * i, &h, 2);
		else
			memcpy(payload + 4 * i, &u, 4);
	}
	xdp_rig_send(&rig, hdr, payload, (half ? 2 : 4) * PAYLOAD, &sent);
}

static __u64 counted(int w, int counter)
{
	return xdp_rig_counted(&rig, 0, w, counter);
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
					send_as(SAINA_MSG_GRAD, rig.conf.elem, w, the_round, s);
		pthread_barrier_wait(&barrier);
	}
}

/* Is the result of (round, segment) the sum over its mask of @k workers, exactly? */
static bool exact(__u32 round, __u32 segment, int k)
{
	__s32 sums[SAINA_ELEMS_MAX];
	struct saina_slot_meta m;

	if (saina_dp_result(rig.dp, 0, segment, round, &m, sums)) {
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
		if (rig.conf.elem == SAINA_ELEM_BFLOAT16) {
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
static void test_race(int type, const char *name, const char *policy, int k)
{
	pthread_t t[THREADS];
	__u64 n;
	int bad = 0;

	if (job_new(type, policy)) {
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
static void test_odd(int type, const char *name)
{
	int other = type == SAINA_ELEM_FLOAT32 ? SAINA_ELEM_INT32 : SAINA_ELEM_FLOAT32;
	int reason = type == SAINA_ELEM_FLOAT32 ? SAINA_C_ELEM_TYPE : SAINA_C_LENGTH;

	if (job_new(type, "fastest:k=1")) {
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

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: xdp_float_test PROGRAM HELPERS\n");
		return 2;
	}
	calls_open();
	if (xdp_rig_helpers(&rig, argv[2]) || xdp_rig_load(&rig, argv[1])) {
		printf("Bail out! a program does not load\n");
		return 1;
	}
	test_odd(SAINA_ELEM_FLOAT32, "float32");
	test_odd(SAINA_ELEM_BFLOAT16, "bfloat16");
	test_race(SAINA_ELEM_FLOAT32, "float32", "bsp", WORKERS);
	test_race(SAINA_ELEM_FLOAT32, "float32", "fastest:k=5", 5);
	test_race(SAINA_ELEM_BFLOAT16, "bfloat16", "bsp", WORKERS);
	test_race(SAINA_ELEM_BFLOAT16, "bfloat16", "fastest:k=5", 5);
	xdp_rig_close(&rig);
	saina_ctl_close(calls_ctl);
	return tap_done();
}
