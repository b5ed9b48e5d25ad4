// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The published defects of SAINA (and those of Serene that a slot machine can
 * have), one named test each, showing what happens here instead.  Numbers are
 * those of the list below, which follows the order of the published code; those
 * of SFCD and of Serene have files of their own.
 *
 *  saina-3.1 .. 3.5   traced consequences of fastest-k without a DONE state   here
 *  saina-6a           late packets pollute, re-arm, broadcast again           3.1 .. 3.5
 *  saina-6b           slots matched by index only                             here
 *  saina-6c           the k in the header is not the one that was used        here
 *  saina-6d           silent overflow, no scale                               here (wrap, exponent);
 *                     saturation and its remainder are the library's          unit tests
 *  saina-6e           no bounds check of the slot                             here
 *  saina-6f           sign bits and counters not idempotent                   here
 *  saina-6g           needs packets in order, the last one last               here
 *  saina-6h           tail word never counted                                 here
 *  saina-6i           one element of 32 sampled                               here
 *  saina-6j           first round compared with zeros                         here
 *  saina-6k           thresholds compiled in                                  here
 *  saina-6l           k above the live workers: stall                         here
 *  saina-6m           a lost last packet skips the round                      here
 *  saina-6n           no failure detection, no membership                     here (active set);
 *                     who is dead is the agent's to say                       netns tests
 *  saina-6o           no multi-job                                            here
 *  saina-6p           no authentication, workers drive k                      here
 *  saina-6q           stale checksums, foreign traffic rewritten              here; real ports:
 *                                                                             netns tests
 *  saina-6r           16 workers (32-bit bitmap)                              here (64);
 *                     one switch, one rack: true here, too                    not applicable
 *  saina-6s           no tests, no figures                                    this; bench-datapath
 *  serene-1           a duplicate sets a bit of the next round                here
 *  serene-2           INC without acknowledgement or dedupe                   here
 *  serene-3           a change wakes nobody                                   here
 *  serene-4           switching policies leaves dirty state                   here
 *  serene-5           a window larger than the ring aliases                   here
 *  serene-6           16-bit clocks wrap                                      here
 */
#include <arpa/inet.h>
#include "test_job.h"

struct harness harness;
bool agrees;

static void test_3_1(void)
{
	struct job j = job_create(5, 6, 1, policy_fastest(3));
	bool ok = true;

	for (unsigned int w = 0; w < 3; w++)
		send_grad(&j, w, 0, 0, 1);
	ok &= got_broadcast(7, 3);
	for (unsigned int w = 3; w < 6; w++) {
		send_grad(&j, w, 0, 0, 1);
		ok &= got_unicast(&j, w, SAINA_F_LATE, 7, 3);
	}
	job_verdict(&j, ok, "saina-3.1 no second broadcast after 2k arrivals");
}

static void test_3_2(void)
{
	struct job j = job_create(5, 4, 1, policy_fastest(1));
	bool ok;

	send_grad(&j, 2, 0, 0, 1);
	ok = got_broadcast(4, 1);
	for (unsigned int w = 0; w < 4; w++) {
		if (w == 2)
			continue;
		send_grad(&j, w, 0, 0, 1);
		ok &= got_unicast(&j, w, SAINA_F_LATE, 4, 1);
	}
	job_verdict(&j, ok, "saina-3.2 k=1: one broadcast, of the first worker's gradient alone");
}

static void test_3_3(void)
{
	struct job j = job_create(5, 3, 1, policy_fastest(2));
	bool ok;

	send_grad(&j, 0, 0, 0, 10);
	send_grad(&j, 1, 0, 0, 20);
	send_grad(&j, 2, 0, 0, 400);
	ok = got_unicast(&j, 2, SAINA_F_LATE, 3, 30);
	send_grad(&j, 0, 0, 0, 10);
	ok &= got_unicast(&j, 0, SAINA_F_RESEND, 3, 30);
	send_grad(&j, 1, 0, 0, 20);
	ok &= got_unicast(&j, 1, SAINA_F_RESEND, 3, 30);
	job_verdict(&j, ok, "saina-3.3 a worker that lost its broadcast gets the same sum again, also after late packets");
}

static void test_3_4(void)
{
	struct job j = job_create(5, 3, 1, policy_fastest(2));
	bool ok;

	send_grad(&j, 0, 0, 0, 1);
	send_grad(&j, 1, 0, 0, 1);
	send_grad(&j, 2, 0, 0, 100);	/* late: leaves no trace */
	send_grad(&j, 0, 1, 0, 1);
	ok = was_dropped();
	send_grad(&j, 1, 1, 0, 2);
	ok &= got_broadcast(3, 3);
	send_grad(&j, 1, 2, 0, 4);
	ok &= was_dropped();
	send_grad(&j, 2, 2, 0, 2);
	ok &= got_broadcast(6, 6);
	job_verdict(&j, ok, "saina-3.4 a reused slot begins with a store: nothing of a straggler is left in it");
}

static void test_3_5(void)
{
	struct job j = job_create(5, 3, 1, policy_fastest(2));
	bool ok;

	for (uint32_t r = 0; r < 2; r++) {
		send_grad(&j, 0, r, 0, 1);
		send_grad(&j, 1, r, 0, 1);
	}
	send_grad(&j, 0, 2, 0, 3);	/* the slot is open for round 2 */
	send_grad(&j, 2, 0, 0, 100);	/* from two rounds ago: in the ring still */
	ok = got_unicast(&j, 2, SAINA_F_LATE, 3, 2);
	send_grad(&j, 1, 2, 0, 4);
	ok &= got_broadcast(3, 7);
	send_grad(&j, 2, 0, 0, 100);	/* and now it is not */
	ok &= got_stale(3) && got_answer()->aux == 0;
	job_verdict(&j, ok, "saina-3.5 a packet of round r is no contribution to round r+2");
}

static void test_6b(void)
{
	struct job j = job_create(5, 2, 8, policy_bsp());	/* pool 4: segments 1 and 5 share */
	bool ok;

	send_grad(&j, 0, 0, 1, 1);
	send_grad(&j, 1, 0, 5, 100);
	ok = was_dropped() && job_counter(&j, 1, SAINA_C_SLOT_BUSY) == 1;
	send_grad(&j, 1, 0, 6, 100);		/* free, but 2 must be done before */
	ok &= was_dropped() && job_counter(&j, 1, SAINA_C_SLOT_BUSY) == 2;
	send_grad(&j, 1, 0, 1, 2);
	ok &= got_broadcast(3, 3) && got_answer()->segment == 1 && got_answer()->round == 0;
	send_grad(&j, 1, 0, 5, 100);
	send_grad(&j, 0, 0, 5, 200);
	ok &= got_broadcast(3, 300) && got_answer()->segment == 5;
	job_verdict(&j, ok, "saina-6b a slot is matched by job, segment and round, not by index");
}

static void test_6c(void)
{
	struct job j = job_create(5, 4, 2, policy_sfcd(1, 1, 1, 1));
	bool ok = true;

	for (uint32_t r = 0; r < 2; r++) {
		for (uint32_t s = 0; s < 2; s++) {
			send_grad(&j, 0, r, s, r ? -1 : 1);
			ok &= got_broadcast(1, r ? -1 : 1) && got_answer()->k == 1;
		}
	}
	/* that last packet raised k, and says so beside the k it was made with */
	ok &= got_answer()->next_k == 2 && got_answer()->contributors == 1;
	send_grad(&j, 0, 2, 0, 1);
	ok &= was_dropped();
	send_grad(&j, 1, 2, 0, 1);
	ok &= got_broadcast(3, 2) && got_answer()->k == 2;
	job_verdict(&j, ok, "saina-6c the result carries the k latched for it and the true count, also when it raises k");
}

static void test_6d(void)
{
	struct job j = job_create(5, 2, 1, policy_bsp());
	bool ok;

	send_grad(&j, 0, 0, 0, 0x7fffffff);
	send_grad(&j, 1, 0, 0, 2);
	ok = got_broadcast(3, -0x7fffffff) && got_answer()->exponent == JOB_EXPONENT;
	send_grad(&j, 0, 1, 0, 5);
	send_grad_at(&j, 1, 1, 0, JOB_EXPONENT - 1, 6);
	ok &= got_broadcast(3, 9) && got_answer()->exponent == JOB_EXPONENT - 1;
	job_verdict(&j, ok, "saina-6d sums wrap exactly, carry their scale, and are made at one scale");
}

static void test_6e(void)
{
	struct job j = job_create(5, 2, 3, policy_fastest(1));
	bool ok = true;

	static const uint32_t beyond[] = { 3, 4, 0x3fff, 0x10000, 0x80000000, 0xffffffff };

	for (unsigned int i = 0; i < 6; i++) {
		send_grad(&j, 0, 0, beyond[i], 1);
		ok &= was_dropped();
	}
	ok &= job_counter(&j, 0, SAINA_C_SEGMENT) == 6 && !job_rt(&j).next_round;
	job_verdict(&j, ok, "saina-6e a segment beyond the gradient is refused");
}

static void test_6l(void)
{
	struct job j = job_create(5, 4, 1, policy_fastest(4));
	bool ok;

	for (unsigned int w = 0; w < 3; w++)
		send_grad(&j, w, 0, 0, 1);
	ok = was_dropped();
	job_set_active(&j, 7);		/* the fourth dies */
	send_grad(&j, 1, 0, 0, 1);	/* anybody's retransmission */
	ok &= got_broadcast(7, 3) && got_answer()->flags == SAINA_F_DEGRADED;
	for (unsigned int w = 0; w < 3; w++)
		send_grad(&j, w, 1, 0, 1);
	ok &= got_broadcast(7, 3) && got_answer()->k == 3 && !got_answer()->flags;
	job_set_active(&j, 15);		/* and comes back */
	for (unsigned int w = 0; w < 4; w++)
		send_grad(&j, w, 2, 0, 1);
	ok &= got_broadcast(15, 4) && got_answer()->k == 4;
	job_verdict(&j, ok, "saina-6l k never exceeds the live workers; a death completes slots that waited for the worker");
}

static void test_6n(void)
{
	struct job j = job_create(5, 3, 1, policy_bsp());
	bool ok;

	send_grad(&j, 0, 0, 0, 1);
	job_set_active(&j, 1);
	send_pull(&j, 0, 0, 0);		/* it need not send its gradient again */
	ok = got_broadcast(1, 1);
	send_grad(&j, 2, 0, 0, 1);
	ok &= was_dropped() && job_counter(&j, 2, SAINA_C_INACTIVE) == 1;
	j.conf.worker[2].session = 77;	/* admitted again, as a new incarnation */
	job_set_active(&j, 5);
	send_grad(&j, 2, 1, 0, 2);
	send_grad(&j, 0, 1, 0, 1);
	ok &= got_broadcast(5, 3);
	job_verdict(&j, ok, "saina-6n workers leave and join while rounds go on");
}

static void test_6o(void)
{
	struct job a = job_create(5, 2, 2, policy_bsp());
	struct job b = job_create(6, 3, 1, policy_fastest(1));
	bool ok;

	send_grad(&a, 0, 0, 0, 1);
	send_grad(&b, 0, 0, 0, 100);
	ok = got_broadcast(1, 100) && got_answer()->job == 6;
	send_grad(&b, 1, 0, 0, 100);
	ok &= got_unicast(&b, 1, SAINA_F_LATE, 1, 100);
	send_grad(&a, 1, 0, 0, 2);
	ok &= got_broadcast(3, 3) && got_answer()->job == 5;
	ok &= job_rt(&a).k == 2 && job_rt(&b).k == 1;
	job_verdict(&a, ok, "saina-6o each job has its own slots, policy and k");
	saina_dp_job_remove(harness.dp, 6);
	oracle_job_remove(&harness.o, 6);
}

static void test_6p(void)
{
	struct job j = job_create(5, 3, 1, policy_fastest(2));
	static const struct { unsigned int at; int counter; } lie[] = {
		{ 11, SAINA_C_BAD_MAC }, { FRAME_IP + 15, SAINA_C_BAD_IP },
		{ FRAME_UDP + 1, SAINA_C_BAD_UDP },
		{ FRAME_HDR + offsetof(struct saina_hdr, session), SAINA_C_SESSION },
	};
	uint8_t f[FRAME_MAX];
	uint64_t forged = job_counter(&j, -1, SAINA_C_FORGED);
	unsigned int len;
	bool ok = true;

	send_grad(&j, 0, 0, 0, 1);
	for (unsigned int i = 0; i < 4; i++) {
		len = job_frame(&j, f, SAINA_MSG_GRAD, 1, 0, 0, NULL);
		f[lie[i].at] ^= 1;
		send_frame(f, len, harness.port[0]);
		ok &= was_dropped() && job_counter(&j, 1, lie[i].counter) == 1;
	}
	len = job_frame(&j, f, SAINA_MSG_GRAD, 1, 0, 0, NULL);
	send_frame(f, len, harness.port[1]);
	ok &= was_dropped() && job_counter(&j, 1, SAINA_C_BAD_PORT) == 1;
	len = job_frame(&j, f, SAINA_MSG_RESULT, 1, 0, 0, NULL);
	send_frame(f, len, harness.port[0]);
	ok &= was_dropped() && job_counter(&j, -1, SAINA_C_FORGED) == forged + 1;
	send_grad(&j, 2, 0, 0, 4);
	ok &= got_broadcast(5, 5);
	job_verdict(&j, ok, "saina-6p a sender that is not the worker in its header is refused and changes no sum");
}

static void test_6q(void)
{
	struct job j = job_create(5, 2, 1, policy_fastest(1));
	uint8_t f[FRAME_MAX], arp[60] = { 255, 255, 255, 255, 255, 255, 2, 0x77, 0, 0, 5, 0, 8, 6 };
	unsigned int len;
	bool ok;

	send_grad(&j, 0, 0, 0, 1);
	ok = got_broadcast(1, 1);	/* checksums and group address are checked in there */
	ok &= !memcmp(harness.got + FRAME_IP + 16, &j.conf.group, 4);
	ok &= frame_get16(harness.got + FRAME_UDP + 2) == SAINA_PORT_RESULT;
	send_frame(arp, sizeof(arp), 1);
	ok &= harness.verdict == XDP_PASS && harness.len == sizeof(arp) && !memcmp(harness.got, arp, sizeof(arp));
	len = job_frame(&j, f, SAINA_MSG_GRAD, 0, 0, 0, NULL);
	frame_be16(f + FRAME_UDP + 2, 53);
	send_frame(f, len, 1);
	ok &= harness.verdict == XDP_PASS && harness.len == len && !memcmp(harness.got, f, len);
	job_verdict(&j, ok, "saina-6q results have valid checksums and a group; other traffic is not touched");
}

static void test_6r(void)
{
	struct job j = job_create(5, 64, 1, policy_bsp());
	bool ok = true;

	for (unsigned int w = 0; w < 63; w++) {
		send_grad(&j, w, 0, 0, 1 + w);
		ok &= was_dropped();
	}
	send_grad(&j, 63, 0, 0, 64);
	ok &= got_broadcast(~0ull, 64 * 65 / 2);
	job_verdict(&j, ok, "saina-6r a job has up to 64 workers");
}

/* A JOIN in the name of worker 0 of @j, received on port @port. */
static void join_from(const struct job *j, unsigned int port, uint64_t nonce)
{
	struct saina_hdr h = { .version = SAINA_PROTO_VERSION, .type = SAINA_MSG_JOIN,
			       .job = j->conf.job, .worker = SAINA_WORKER_ANY };
	struct saina_join join = { .nonce = nonce };
	uint8_t f[FRAME_MAX];
	unsigned int len = frame_make(f, &harness.g, &j->conf.worker[0], &h, &join, sizeof(join));

	frame_be16(f + FRAME_UDP + 2, SAINA_PORT_CTRL);
	send_frame(f, len, harness.port[port]);
}

/* Is the source of that JOIN recorded as @port?  -1: as none. */
static bool is_at(const struct job *j, uint64_t nonce, int port)
{
	const struct saina_binding *b = &j->conf.worker[0];
	struct saina_place p;

	if (saina_dp_join_src_pop(harness.dp, b->ip, b->udp_port, nonce, &p))
		return port < 0;
	return port >= 0 && p.ifindex == harness.port[port];
}

static void test_join_place(void)
{
	struct job j = job_create(5, 2, 1, policy_bsp());
	bool ok;

	join_from(&j, 1, 0x1234567890abcdef);
	for (uint64_t guess = 0; guess < 100; guess++)
		join_from(&j, 2, guess);
	join_from(&j, 2, 0x1234567890abcdef);	/* replayed from another port */
	ok = is_at(&j, 0x1234567890abcdef, 1);
	job_verdict(&j, ok, "the source of a JOIN is that of the first JOIN with its nonce");

	ok = is_at(&j, 0x1234567890abcdef, -1);
	join_from(&j, 2, 0x1234567890abcdef);
	ok &= is_at(&j, 0x1234567890abcdef, 2);
	job_verdict(&j, ok, "a source that was taken is recorded again from the next JOIN");
	harness.o.join_srcs = 0;
}

static void test_last_round(void)
{
	struct job j = job_create(5, 2, 1, policy_bsp());
	bool ok;

	j.conf.generation += 1u << 20;
	j.first_round = SAINA_ROUND_MAX;
	job_publish(&j);
	send_grad(&j, 0, SAINA_ROUND_MAX, 0, 1);
	send_grad(&j, 1, SAINA_ROUND_MAX, 0, 2);
	ok = got_broadcast(3, 3);
	send_grad(&j, 0, SAINA_ROUND_MAX + 1, 0, 1);
	send_grad(&j, 1, 0, 0, 1);
	ok &= got_stale(SAINA_ROUND_MAX + 1) && job_counter(&j, 0, SAINA_C_FUTURE) == 1 &&
	      job_rt(&j).next_round == SAINA_ROUND_MAX + 1;
	job_verdict(&j, ok, "round numbers do not wrap: no round opens after SAINA_ROUND_MAX");
}

/* Not a published defect: no gradient is lost, whatever happens. */
static void test_conservation(void)
{
	struct job j = job_create(5, 4, 1, policy_fastest(2));
	int64_t said = 0, counted = 0, residual[4] = {};
	bool ok = true;

	for (uint32_t r = 0; r < 40; r++) {
		for (unsigned int i = 0; i < 4; i++) {
			unsigned int w = (i + r * 3) % 4;
			int32_t mine = (r * 7919 + w * 104729) % 1000 - 500;

			said += mine;
			send_grad(&j, w, r, 0, mine + residual[w]);
			residual[w] += mine;
			if (harness.verdict != XDP_REDIRECT)
				continue;
			if (got_answer()->worker == 0xff) {
				counted += got_elem(0);
				for (unsigned int n = 0; n < 4; n++)
					if (got_answer()->mask >> n & 1)
						residual[n] = 0;
			} else {
				ok &= got_answer()->flags == SAINA_F_LATE;
			}
		}
	}
	for (unsigned int w = 0; w < 4; w++)
		counted += residual[w];
	job_verdict(&j, ok && said == counted, "every gradient is in a result or in a residual, all of it");
}

int main(void)
{
	harness_open(&harness);
	test_3_1();
	test_3_2();
	test_3_3();
	test_3_4();
	test_3_5();
	test_6b();
	test_6c();
	test_6d();
	test_6e();
	defects_sfcd();
	test_6l();
	test_6n();
	test_6o();
	test_6p();
	test_6q();
	test_6r();
	defects_serene();
	defects_ps();
	defects_arrivals();
	test_join_place();
	test_last_round();
	test_conservation();
	defects_events();
	harness_close(&harness);
	return tap_done();
}
