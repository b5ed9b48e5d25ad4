// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Jobs of floats in the XDP program that asks saina.ko (saina_xdp_kmod.bpf.o): frames by
 * BPF_PROG_TEST_RUN from several threads at once into the same slots, and frames that do
 * not fit the job.  A frame longer than a page comes in pieces: float32 from 1024
 * elements on, bfloat16 with 2048.
 *
 *	xdp_float_test PROGRAM HELPERS	in the test VM, module loaded, no jobs; as root
 */
#include <pthread.h>
#include <string.h>
#include "../lib/cpus.h"
#include "../lib/tap.h"
#include "xdp_harness.h"

#define SEGMENTS 4
#define WORKERS	 12
#define THREADS	 4	/* at most */

static struct xdp_harness harness;
static int payload;		/* of the job there is */
static int wrong, answered;	/* frames sent by the program, in its time, by all threads */
static int relayed;		/* results given to the agent to send on to all */
static int relayed_one;		/* ... and to the one who asked again */

static unsigned int elem_bytes(void)
{
	return harness.conf.elem == SAINA_ELEM_BFLOAT16 ? 2 : 4;
}

/* Job 0 with all its workers, and its maps. */
static int job_new(int type, int elements, const char *policy)
{
	payload = elements;
	wrong = answered = relayed = relayed_one = 0;
	if (xdp_harness_check(request_job_new_as("a", WORKERS, SEGMENTS * elements, elements, type,
						 policy)) ||
	    xdp_harness_bind(WORKERS) || xdp_harness_snapshot(&harness))
		return -1;
	return saina_dp_job_publish(harness.dp, &harness.conf, 0);
}

static void job_del(void)
{
	xdp_harness_check(request_job_del(0));
	saina_dp_job_remove(harness.dp, 0);
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

/* Are @sums, as the wire has them, those of the workers in @mask, exactly? */
static bool right(const void *sums, __u64 mask, __u32 round, __u32 segment)
{
	bool half = harness.conf.elem == SAINA_ELEM_BFLOAT16;

	for (int i = 0; i < payload; i++) {
		__u32 want, got = 0;
		int sum = 0;

		for (int w = 0; w < WORKERS; w++)
			if (mask >> w & 1)
				sum += value(w, round, segment, i);
		want = bits_of(sum);
		if (half)
			want >>= 16;	/* up to 180: 8 bits, nothing to round */
		memcpy(&got, sums + (half ? 2 : 4) * i, half ? 2 : 4);
		if (got != want) {
			tap_note("round %u segment %u element %d: %#x, not %#x", round, segment, i, got,
				 want);
			return false;
		}
	}
	return true;
}

/* What the program sends for a message of (round, segment). */
static void check_sent(const struct xdp_sent *sent, __u32 round, __u32 segment)
{
	unsigned int len = FRAME_PAYLOAD +
			   elem_bytes() * payload;
	struct saina_hdr h;

	if (sent->action == XDP_DROP)
		return;
	__atomic_fetch_add(&answered, 1, __ATOMIC_RELAXED);
	memcpy(&h, sent->frame + FRAME_HDR, sizeof(h));
	if (sent->action == XDP_REDIRECT && sent->len == len && h.type == SAINA_MSG_RESULT &&
	    h.round == round && h.segment == segment && h.count == payload &&
	    frame_udp_sum(sent->frame) == 0xffff &&
	    right(sent->frame + FRAME_PAYLOAD, h.mask, round, segment))
		return;
	tap_note("round %u segment %u: sent (action %d): %u bytes, type %u, count %u, checksum %#x",
		 round, segment, sent->action, sent->len, h.type, h.count,
		 frame_udp_sum(sent->frame));
	__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

/* A message of @type with an element type and an exponent of its own. */
static void send_at(int type, int elem, int exponent, int w, __u32 round, __u32 segment)
{
	struct saina_hdr hdr = {
		.type = type, .elem = elem, .round = round, .segment = segment,
		.count = payload, .worker = w, .exponent = exponent,
	};
	bool half = elem == SAINA_ELEM_BFLOAT16;
	uint8_t v[4 * SAINA_ELEMS_MAX];
	struct xdp_sent sent;

	for (int i = 0; i < payload; i++) {
		__u32 u = bits_of(value(w, round, segment, i));
		__u16 h = u >> 16;

		if (half)
			memcpy(v + 2 * i, &h, 2);
		else
			memcpy(v + 4 * i, &u, 4);
	}
	xdp_harness_send(&harness, hdr, v, (half ? 2 : 4) * payload, &sent);
	check_sent(&sent, round, segment);
}

static void send_as(int type, int elem, int w, __u32 round, __u32 segment)
{
	send_at(type, elem, 0, w, round, segment);
}

static __u64 counted(int w, int counter)
{
	return xdp_harness_counted(&harness, 0, w, counter);
}

static __u64 counted_all(int counter)
{
	__u64 n = 0;

	for (int w = 0; w < WORKERS; w++)
		n += counted(w, counter);
	return n;
}

/*
 * Of the program's scratch memory there is one for each CPU, for nothing that runs it in
 * earnest can be interrupted by another run of it.  In kernels before 6.11 that does not
 * hold for BPF_PROG_TEST_RUN, if they are preemptible: one thread to a CPU, hence.
 */
static int cpus[THREADS], threads;

static pthread_barrier_t barrier;
static __u32 the_round;
static bool ended;

/* Workers id, id + threads, ..; each sends every segment twice, some duplicates. */
static void *sender(void *arg)
{
	int id = (int)(long)arg;

	cpus_pin(cpus[id]);
	for (;;) {
		pthread_barrier_wait(&barrier);
		if (ended)
			return NULL;
		for (__u32 s = 0; s < SEGMENTS; s++)
			for (int w = id; w < WORKERS; w += threads)
				for (int again = 0; again < 2; again++)
					send_as(SAINA_MSG_GRAD, harness.conf.elem, w, the_round, s);
		pthread_barrier_wait(&barrier);
	}
}

/* Is the result of (round, segment) the sum over its mask of @k workers, exactly? */
static bool exact(__u32 round, __u32 segment, int k)
{
	__s32 sums[SAINA_ELEMS_MAX];
	struct saina_slot_meta m;

	if (saina_dp_result(harness.dp, 0, segment, round, &m, sums)) {
		tap_note("round %u segment %u: no result", round, segment);
		return false;
	}
	if (__builtin_popcountll(m.seen) != k || m.count != k || m.applied != k) {
		tap_note("round %u segment %u: mask %#llx count %u applied %u", round, segment,
			 (unsigned long long)m.seen, m.count, m.applied);
		return false;
	}
	return right(sums, m.seen, round, segment);
}

static bool long_frames(void)
{
	return payload > SAINA_ELEMS_LINEAR_MAX;
}

/* An answer is sent on by the agent if it does not lie in one piece. */
static bool in_pieces(void)
{
	return FRAME_PAYLOAD + elem_bytes() * payload > FRAME_LINEAR;
}

/* What the agent is given to send on: to all of those it is asked for, or to one. */
static void relay(void *arg, const struct saina_relay_msg *m)
{
	unsigned int len = sizeof(m->hdr) + elem_bytes() * payload;
	bool all = m->hdr.worker == SAINA_WORKER_ANY;
	__u64 to = all ? *(const __u64 *)arg : 1ull << m->hdr.worker;

	if (all)
		relayed++;
	else
		relayed_one++;
	if (m->len == len && m->workers == to && m->hdr.type == SAINA_MSG_RESULT &&
	    m->hdr.count == payload &&
	    right(m->payload, m->hdr.mask, m->hdr.round, m->hdr.segment))
		return;
	tap_note("round %u segment %u: to the agent: %u bytes for %#llx, type %u, count %u",
		 m->hdr.round, m->hdr.segment, m->len, (unsigned long long)m->workers,
		 m->hdr.type, m->hdr.count);
	wrong++;
}

static void relay_take(__u64 to)
{
	saina_dp_event_dispatch(harness.dp, &(struct saina_dp_cb){ .relay = relay, .arg = &to });
}

struct race {
	int		type;
	const char	*name;
	int		elements, rounds;
	const char	*policy;
	int		k;
};

/* Rounds in which all threads send into the same slots at the same time. */
static void test_race(const struct race *r)
{
	int bad = 0, n = r->rounds * SEGMENTS;
	pthread_t t[THREADS];
	char name[64];
	__u64 answers;

	snprintf(name, sizeof(name), "%d %s, %s", r->elements, r->name, r->policy);
	if (job_new(r->type, r->elements, r->policy)) {
		tap_ok(false, "%s: a job", name);
		return;
	}
	ended = false;
	pthread_barrier_init(&barrier, NULL, threads + 1);
	for (long i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, sender, (void *)i);
	for (the_round = 0; the_round < (__u32)r->rounds; the_round++) {
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		for (__u32 s = 0; s < SEGMENTS; s++)
			bad += !exact(the_round, s, r->k);
		relay_take(harness.conf.active);
	}
	ended = true;
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	pthread_barrier_destroy(&barrier);
	tap_ok(!bad, "%s: %d threads, %d rounds: every sum is that of its mask (%d are not)", name,
	       threads, r->rounds, bad);
	tap_ok(counted_all(SAINA_C_STORED) + counted_all(SAINA_C_ADDED) == (__u64)n * r->k,
	       "%s: the counters have as many gradients as the results", name);
	tap_ok(counted_all(SAINA_C_INTERNAL) == 0 && counted_all(SAINA_C_COMPLETED) == (__u64)n,
	       "%s: each result was made once", name);
	answers = counted_all(SAINA_C_RESENT) + counted_all(SAINA_C_LATE);
	tap_ok(!wrong && (__u64)answered == (in_pieces() ? 0 : answers) + (long_frames() ? 0 : n) &&
	       relayed == (long_frames() ? n : 0) &&
	       (__u64)relayed_one == (in_pieces() ? answers : 0) &&
	       counted_all(SAINA_C_NO_MEMORY) == 0,
	       "%s: each result was sent on %s, and %llu to those who asked again, all of them right", name,
	       long_frames() ? "by the agent" : "to all", (unsigned long long)answers);
	job_del();
}

/* A worker whose port takes no redirected frames: the agent has its results. */
static void test_relay(int type, const char *name)
{
	if (job_new(type, 256, "bsp") || xdp_harness_check(request_worker_relay(0, 3, 1)) ||
	    xdp_harness_snapshot(&harness) || saina_dp_job_publish(harness.dp, &harness.conf, 0)) {
		tap_ok(false, "%s: a job with a slow port", name);
		return;
	}
	for (int w = 0; w < WORKERS; w++)
		send_as(SAINA_MSG_GRAD, type, w, 0, 0);
	relay_take(1 << 3);
	tap_ok(exact(0, 0, WORKERS) && answered == 1 && relayed == 1 && !relayed_one && !wrong,
	       "%s: a result is sent to all, and to the agent for a worker behind a slow port", name);
	job_del();
}

/* What the module's tag must see to: a slot's next use begins with a store. */
static void test_odd(int type, const char *name)
{
	int other = type == SAINA_ELEM_FLOAT32 ? SAINA_ELEM_INT32 : SAINA_ELEM_FLOAT32;
	int reason = type == SAINA_ELEM_FLOAT32 ? SAINA_C_ELEM_TYPE : SAINA_C_LENGTH;

	if (job_new(type, 256, "fastest:k=1")) {
		tap_ok(false, "%s: a job", name);
		return;
	}
	send_as(SAINA_MSG_GRAD, other, 0, 0, 0);
	tap_ok(counted(0, reason) == 1, "%s: elements of another type are dropped and counted", name);
	send_at(SAINA_MSG_GRAD, type, 1, 0, 0, 0);
	send_at(SAINA_MSG_GRAD, type, SAINA_EXPONENT_NAN, 0, 0, 0);
	tap_ok(counted(0, SAINA_C_EXPONENT) == 2 && !counted(0, SAINA_C_STORED),
	       "%s: a block scale, or NaN as one, is dropped and counted", name);
	send_as(SAINA_MSG_PULL, type, 1, 0, 0);
	tap_ok(counted(1, SAINA_C_PULL_EARLY) == 1, "%s: a pull before there is a result is counted as early", name);
	send_as(SAINA_MSG_GRAD, type, 0, 0, 0);
	tap_ok(exact(0, 0, 1), "%s: k = 1: the first gradient is the result", name);
	send_as(SAINA_MSG_GRAD, type, 1, 0, 0);
	send_as(SAINA_MSG_GRAD, type, 0, 0, 0);
	send_as(SAINA_MSG_PULL, type, 2, 0, 0);
	tap_ok(counted(1, SAINA_C_LATE) == 1 && counted(0, SAINA_C_RESENT) == 1 &&
	       counted(2, SAINA_C_PULLED) == 1 && exact(0, 0, 1),
	       "%s: a late gradient, a repeated one and a pull get the same result", name);
	job_del();
}

static const struct race races[] = {
	{ SAINA_ELEM_FLOAT32, "float32", 256, 60, "bsp", WORKERS },
	{ SAINA_ELEM_FLOAT32, "float32", 256, 60, "fastest:k=5", 5 },
	{ SAINA_ELEM_FLOAT32, "float32", 1024, 8, "bsp", WORKERS },
	{ SAINA_ELEM_FLOAT32, "float32", 2048, 8, "bsp", WORKERS },
	{ SAINA_ELEM_FLOAT32, "float32", 2048, 8, "fastest:k=5", 5 },
	{ SAINA_ELEM_BFLOAT16, "bfloat16", 256, 60, "bsp", WORKERS },
	{ SAINA_ELEM_BFLOAT16, "bfloat16", 256, 60, "fastest:k=5", 5 },
	{ SAINA_ELEM_BFLOAT16, "bfloat16", 1024, 8, "bsp", WORKERS },
	{ SAINA_ELEM_BFLOAT16, "bfloat16", 2048, 8, "bsp", WORKERS },
	{ SAINA_ELEM_BFLOAT16, "bfloat16", 2048, 8, "fastest:k=5", 5 },
};

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: xdp_float_test PROGRAM HELPERS\n");
		return 2;
	}
	requests_open();
	threads = cpus_find(cpus, THREADS);
	if (xdp_harness_helpers(&harness, argv[2]) || xdp_harness_load(&harness, argv[1]))
		tap_bail("a program does not load");
	test_odd(SAINA_ELEM_FLOAT32, "float32");
	test_odd(SAINA_ELEM_BFLOAT16, "bfloat16");
	test_relay(SAINA_ELEM_FLOAT32, "float32");
	test_relay(SAINA_ELEM_BFLOAT16, "bfloat16");
	for (size_t i = 0; i < sizeof(races) / sizeof(*races); i++)
		test_race(&races[i]);
	xdp_harness_close(&harness);
	saina_ctl_close(requests_ctl);
	return tap_done();
}
