// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Random traces through the BPF program for saina.ko and through the oracle at once, jobs
 * of int32, float32 and bfloat16, under every policy that has rounds.  One thread: one order
 * of additions has one result, so every answer is compared bit for bit, and all state at the
 * end of each job.
 *
 *	saina.ko <--netlink-- jobs, deaths, policies
 *	    | snapshots, additions
 *	random GRAD, PULL --> BPF_PROG_TEST_RUN --+-- same?
 *	            \-------> oracle -------------+
 *
 *	xdp_trace_test [-t] [-n PACKETS] [-s SEED] PROGRAM HELPERS
 *
 * -t: by the tc program that lies beside PROGRAM, several messages in a frame.  PACKETS are
 * those of each job.  In the test VM, module loaded; as root.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../datapath/harness_events.h"
#include "../datapath/harness_jobs.h"
#include "../datapath/harness_packets.h"
#include "../datapath/harness_state.h"
#include "../lib/rng.h"
#include "../lib/tap.h"
#include "xdp_harness.h"

#define WORKERS	 6
#define SEGMENTS 3
#define ROUNDS	 (1u << SAINA_POLICY_BSP | 1u << SAINA_POLICY_FASTEST | 1u << SAINA_POLICY_SFCD | \
		  1u << SAINA_POLICY_TIMEOUT | 1u << SAINA_POLICY_EXTERNAL | 1u << SAINA_POLICY_CODED)

static struct harness harness;
static struct xdp_harness module;	/* reads snapshots */
static struct rng rng;
static struct saina_job_conf *conf = &module.conf;
static uint64_t results;
static bool tc;
static unsigned int policies_seen;	/* bits by mode; mode 0 before the first round */

/* Publishes the snapshot that the module has now to program and oracle. */
static bool refresh(void)
{
	if (xdp_harness_snapshot(&module))
		return false;
	if (harness_job(&harness, conf, 0)) {
		tap_note("%s", harness.diff);
		return false;
	}
	return true;
}

/*
 * A float32: mostly of like size, so that additions round; now and then anything.  There
 * is one NaN only, that which x86 makes of infinities of both signs: which of two NaNs a
 * sum becomes is not specified (datapath.rst section 9), and qemu chooses another than
 * processors do.
 */
static uint32_t float_bits(void)
{
	static const uint32_t special[] = {
		0, 0x80000000, 1, 0x80000001, 0x007fffff, 0x7f7fffff, 0xff7fffff, 0x7f800000,
		0xff800000, 0xffc00000, 0x3f808000, 0x3f818000, 0x3f80ffff,
	};
	uint32_t v = rng_u64(&rng);

	if (rng_chance(&rng, 20))
		return special[rng_below(&rng, sizeof(special) / 4)];
	if (!rng_chance(&rng, 50))
		return (v & 0x807fffff) | (120 + rng_below(&rng, 12)) << 23;
	return (v & 0x7fffffff) > 0x7f800000 ? 0xffc00000 : v;
}

static void payload_fill(uint8_t *p)
{
	for (unsigned int i = 0; i < conf->payload; i++) {
		uint32_t v = conf->elem == SAINA_ELEM_INT32 ? (uint32_t)rng_u64(&rng) : float_bits();

		if (conf->elem == SAINA_ELEM_BFLOAT16) {
			uint16_t half = v >> 16;

			memcpy(p + 2 * i, &half, 2);
		} else {
			memcpy(p + 4 * i, &v, 4);
		}
	}
}

/* Changes the job by netlink: a death, a return, a relay, the policy, k.  A refusal changes nothing. */
static bool something_happens(void)
{
	static const char *const policy[] = {
		"bsp", "fastest:k=1", "fastest:k=3", "fastest:k=2,late=drop", "sfcd:k0=1,sth=0.5,cth=2",
		"sfcd:k0=2,sth=0.3,cth=1,stride=1", "sfcd:k0=1,sth=0.5,cth=k,stride=32",
		"sfcd:k0=4,sth=0.4,cth=1,stride=8,down", "timeout:60s,kmin=2",
		"fastest:k=4,timeout=60s,kmin=2", "external:k0=3", "coded:s=1", "coded:s=2",
	};
	unsigned int w = rng_below(&rng, WORKERS);

	switch (rng_below(&rng, 6)) {
	case 0:
		if (conf->active & ~(1ull << w))
			request_worker_state(0, w, SAINA_WORKER_STATE_DEAD);
		break;
	case 1:
		if (!(conf->active >> w & 1))
			request_worker_bind(0, w, harness.port[0]);
		break;
	case 2:
		request_worker_relay(0, w, rng_below(&rng, 2));
		break;
	case 3:
		request_job_policy(0, policy[rng_below(&rng, sizeof(policy) / sizeof(policy[0]))]);
		break;
	case 4:
		request_job_k(0, rng_range(&rng, 1, WORKERS));
		break;
	case 5:		/* what has a time-out is due */
		return !harness_advance_time(&harness, 61000000000ull);
	}
	return refresh();
}

/* Mostly one that fits: of int32 in half of the messages 0, of floats always. */
static int exponent(void)
{
	static const int8_t some[] = { 1, 2, -1, -3, 31, -32, -40, SAINA_EXPONENT_MAX, SAINA_EXPONENT_MIN, SAINA_EXPONENT_NAN };

	if (rng_chance(&rng, 10))
		return (int)rng_below(&rng, 256) - 128;
	if (conf->elem != SAINA_ELEM_INT32 || rng_chance(&rng, 500))
		return 0;
	return some[rng_below(&rng, rng_chance(&rng, 100) ? sizeof(some) : 4)];
}

/* Writes a random message of a worker, to follow FRAME_HDR; returns its length. */
static unsigned int message(unsigned int worker, uint8_t *frame)
{
	static uint8_t payload[4 * SAINA_ELEMS_MAX];
	uint32_t next = harness.o.job[0].rt.next_round, dice = rng_below(&rng, 100);
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = SAINA_MSG_GRAD, .elem = conf->elem,
		.segment = rng_below(&rng, SEGMENTS), .count = conf->payload,
		.worker = worker,
		.round = dice < 60 ? next - 1 : dice < 90 ? next : next - rng_below(&rng, 6),
	};

	if (rng_chance(&rng, 100))
		h.type = SAINA_MSG_PULL;
	h.exponent = exponent();
	if (rng_chance(&rng, 10))
		h.elem = 1 + rng_below(&rng, 3);
	if (rng_chance(&rng, 10))
		h.count = 2 * h.count;
	h.session = conf->worker[h.worker].session;
	payload_fill(payload);
	return frame_make(frame, &harness.g, &conf->worker[h.worker], &h, payload,
			  (conf->elem == SAINA_ELEM_BFLOAT16 ? 2 : 4) * conf->payload);
}

static bool packet(void)
{
	static uint8_t frame[FRAME_MAX], one[FRAME_MAX];
	unsigned int worker = rng_below(&rng, WORKERS), len = message(worker, frame);
	unsigned int size = len - FRAME_HDR;
	bool same;

	while (tc && len + size < HARNESS_SKB_MAX && rng_chance(&rng, 600)) {
		message(worker, one);
		memcpy(frame + len, one + FRAME_HDR, size);
		len += size;
		frame_resize(frame, len);
	}
	harness.linear = rng_chance(&rng, 50) ? rng_range(&rng, FRAME_PAYLOAD, 1600) : 0;
	same = len > FRAME_HDR + size ? harness_batch(&harness, frame, len, size, harness.port[0]) :
					harness_packet(&harness, frame, len, harness.port[0]);
	if (!same) {
		tap_note("packet %llu of worker %u, %u bytes: %s", (unsigned long long)harness.packets,
			 worker, len, harness.diff);
		return false;
	}
	results += harness.want.multicast;
	policies_seen |= 1u << harness.o.job[0].rt.policy.mode;
	return true;
}

static void trace(int elem, const char *name, unsigned int payload, unsigned long packets)
{
	bool ok;

	results = 0;
	ok = !xdp_harness_check(request_job_new_as("trace", WORKERS, SEGMENTS * payload, payload, elem,
					   "fastest:k=3"));
	for (int w = 0; ok && w < WORKERS; w++)
		ok = !xdp_harness_check(request_worker_bind(0, w, harness.port[0]));
	ok = ok && refresh();
	for (unsigned long n = 0; ok && n < packets; n++)
		ok = n % 200 == 199 ? something_happens() : packet();
	if (ok && (!harness_drain(&harness) || !harness_check_global(&harness) ||
		   !harness_check_job(&harness, 0, true))) {
		tap_note("%s", harness.diff);
		ok = false;
	}
	tap_ok(ok && results > packets / 50,
	       "oracle: %s, %s, %u elements a message: the same answers and state, %lu packets, %llu results",
	       tc ? "tc" : "xdp", name, payload, packets, (unsigned long long)results);
	harness_job_remove(&harness, 0);
	xdp_harness_check(request_job_del(0));
}

int main(int argc, char **argv)
{
	static const struct {
		int elem;
		const char *name;
	} type[] = { { SAINA_ELEM_INT32, "int32" }, { SAINA_ELEM_FLOAT32, "float32" },
		     { SAINA_ELEM_BFLOAT16, "bfloat16" } };
	static const unsigned int payload[] = { 64, 352, 2048 };
	unsigned long packets = 2000, seed = 1;
	int c;

	while ((c = getopt(argc, argv, "tn:s:")) != -1) {
		if (c == 't')
			tc = true;
		else if (c == 'n')
			packets = strtoul(optarg, NULL, 0);
		else if (c == 's')
			seed = strtoul(optarg, NULL, 0);
		else
			return 2;
	}
	if (argc - optind != 2)
		return 2;
	setenv("SAINA_BPF_OBJECT", argv[optind], 1);
	harness_open(&harness);		/* and a network namespace: requests_open() in that one */
	if (tc)
		harness_use_tc(&harness);
	requests_open();
	if (xdp_harness_helpers(&module, argv[optind + 1]))
		tap_bail("%s does not load", argv[optind + 1]);
	rng_seed(&rng, seed);
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < (tc ? 2 : 3); j++)	/* the largest is none that TEST_RUN takes */
			trace(type[i].elem, type[i].name, payload[j], packets);
	if (packets >= 10000)
		tap_ok(!(ROUNDS & ~policies_seen), "oracle: %s: rounds were made under every policy that has rounds",
		       tc ? "tc" : "xdp");
	harness_close(&harness);
	return tap_done();
}
