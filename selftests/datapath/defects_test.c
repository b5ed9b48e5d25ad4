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
#include "lab.h"

struct rig rig;
bool lab_same;

static void test_3_1(void)
{
	struct lab l = lab_job(5, 6, 1, lab_fastest(3));
	bool ok = true;

	for (unsigned int w = 0; w < 3; w++)
		lab_grad(&l, w, 0, 0, 1);
	ok &= lab_broadcast(7, 3);
	for (unsigned int w = 3; w < 6; w++) {
		lab_grad(&l, w, 0, 0, 1);
		ok &= lab_unicast(&l, w, SAINA_F_LATE, 7, 3);
	}
	lab_verdict(&l, ok, "saina-3.1 no second broadcast after 2k arrivals");
}

static void test_3_2(void)
{
	struct lab l = lab_job(5, 4, 1, lab_fastest(1));
	bool ok;

	lab_grad(&l, 2, 0, 0, 1);
	ok = lab_broadcast(4, 1);
	for (unsigned int w = 0; w < 4; w++) {
		if (w == 2)
			continue;
		lab_grad(&l, w, 0, 0, 1);
		ok &= lab_unicast(&l, w, SAINA_F_LATE, 4, 1);
	}
	lab_verdict(&l, ok, "saina-3.2 k=1: one broadcast, of the first worker's gradient alone");
}

static void test_3_3(void)
{
	struct lab l = lab_job(5, 3, 1, lab_fastest(2));
	bool ok;

	lab_grad(&l, 0, 0, 0, 10);
	lab_grad(&l, 1, 0, 0, 20);
	lab_grad(&l, 2, 0, 0, 400);
	ok = lab_unicast(&l, 2, SAINA_F_LATE, 3, 30);
	lab_grad(&l, 0, 0, 0, 10);
	ok &= lab_unicast(&l, 0, SAINA_F_RESEND, 3, 30);
	lab_grad(&l, 1, 0, 0, 20);
	ok &= lab_unicast(&l, 1, SAINA_F_RESEND, 3, 30);
	lab_verdict(&l, ok, "saina-3.3 whoever lost its broadcast gets the same sum again, also after late packets");
}

static void test_3_4(void)
{
	struct lab l = lab_job(5, 3, 1, lab_fastest(2));
	bool ok;

	lab_grad(&l, 0, 0, 0, 1);
	lab_grad(&l, 1, 0, 0, 1);
	lab_grad(&l, 2, 0, 0, 100);	/* late: leaves no trace */
	lab_grad(&l, 0, 1, 0, 1);
	ok = lab_consumed();
	lab_grad(&l, 1, 1, 0, 2);
	ok &= lab_broadcast(3, 3);
	lab_grad(&l, 1, 2, 0, 4);
	ok &= lab_consumed();
	lab_grad(&l, 2, 2, 0, 2);
	ok &= lab_broadcast(6, 6);
	lab_verdict(&l, ok, "saina-3.4 a slot used again begins with a store: nothing of a straggler is left in it");
}

static void test_3_5(void)
{
	struct lab l = lab_job(5, 3, 1, lab_fastest(2));
	bool ok;

	for (uint32_t r = 0; r < 2; r++) {
		lab_grad(&l, 0, r, 0, 1);
		lab_grad(&l, 1, r, 0, 1);
	}
	lab_grad(&l, 0, 2, 0, 3);	/* the slot is open for round 2 */
	lab_grad(&l, 2, 0, 0, 100);	/* from two rounds ago: in the ring still */
	ok = lab_unicast(&l, 2, SAINA_F_LATE, 3, 2);
	lab_grad(&l, 1, 2, 0, 4);
	ok &= lab_broadcast(3, 7);
	lab_grad(&l, 2, 0, 0, 100);	/* and now it is not */
	ok &= lab_stale(3) && lab_answer()->aux == 0;
	lab_verdict(&l, ok, "saina-3.5 a packet of round r is no contribution to round r+2");
}

static void test_6b(void)
{
	struct lab l = lab_job(5, 2, 8, lab_bsp());	/* pool 4: segments 1 and 5 share */
	bool ok;

	lab_grad(&l, 0, 0, 1, 1);
	lab_grad(&l, 1, 0, 5, 100);
	ok = lab_consumed() && lab_counter(&l, 1, SAINA_C_SLOT_BUSY) == 1;
	lab_grad(&l, 1, 0, 6, 100);		/* free, but 2 must be done before */
	ok &= lab_consumed() && lab_counter(&l, 1, SAINA_C_SLOT_BUSY) == 2;
	lab_grad(&l, 1, 0, 1, 2);
	ok &= lab_broadcast(3, 3) && lab_answer()->segment == 1 && lab_answer()->round == 0;
	lab_grad(&l, 1, 0, 5, 100);
	lab_grad(&l, 0, 0, 5, 200);
	ok &= lab_broadcast(3, 300) && lab_answer()->segment == 5;
	lab_verdict(&l, ok, "saina-6b a slot is matched by job, segment and round, not by index");
}

static void test_6c(void)
{
	struct lab l = lab_job(5, 4, 2, lab_sfcd(1, 1, 1, 1));
	bool ok = true;

	for (uint32_t r = 0; r < 2; r++) {
		for (uint32_t s = 0; s < 2; s++) {
			lab_grad(&l, 0, r, s, r ? -1 : 1);
			ok &= lab_broadcast(1, r ? -1 : 1) && lab_answer()->k == 1;
		}
	}
	/* that last packet raised k, and says so beside the k it was made with */
	ok &= lab_answer()->next_k == 2 && lab_answer()->contributors == 1;
	lab_grad(&l, 0, 2, 0, 1);
	ok &= lab_consumed();
	lab_grad(&l, 1, 2, 0, 1);
	ok &= lab_broadcast(3, 2) && lab_answer()->k == 2;
	lab_verdict(&l, ok, "saina-6c the result carries the k latched for it and the true count, also when it raises k");
}

static void test_6d(void)
{
	struct lab l = lab_job(5, 2, 1, lab_bsp());
	bool ok;

	lab_grad(&l, 0, 0, 0, 0x7fffffff);
	lab_grad(&l, 1, 0, 0, 2);
	ok = lab_broadcast(3, -0x7fffffff) && lab_answer()->exponent == LAB_EXPONENT;
	lab_grad(&l, 0, 1, 0, 5);
	lab_grad_at(&l, 1, 1, 0, LAB_EXPONENT - 1, 6);
	ok &= lab_broadcast(3, 9) && lab_answer()->exponent == LAB_EXPONENT - 1;
	lab_verdict(&l, ok, "saina-6d sums wrap exactly, carry their scale, and are made at one scale");
}

static void test_6e(void)
{
	struct lab l = lab_job(5, 2, 3, lab_fastest(1));
	bool ok = true;

	static const uint32_t beyond[] = { 3, 4, 0x3fff, 0x10000, 0x80000000, 0xffffffff };

	for (unsigned int i = 0; i < 6; i++) {
		lab_grad(&l, 0, 0, beyond[i], 1);
		ok &= lab_consumed();
	}
	ok &= lab_counter(&l, 0, SAINA_C_SEGMENT) == 6 && !lab_rt(&l).next_round;
	lab_verdict(&l, ok, "saina-6e a segment beyond the gradient is refused");
}

static void test_6l(void)
{
	struct lab l = lab_job(5, 4, 1, lab_fastest(4));
	bool ok;

	for (unsigned int w = 0; w < 3; w++)
		lab_grad(&l, w, 0, 0, 1);
	ok = lab_consumed();
	lab_active(&l, 7);		/* the fourth dies */
	lab_grad(&l, 1, 0, 0, 1);	/* anybody's retransmission */
	ok &= lab_broadcast(7, 3) && lab_answer()->flags == SAINA_F_DEGRADED;
	for (unsigned int w = 0; w < 3; w++)
		lab_grad(&l, w, 1, 0, 1);
	ok &= lab_broadcast(7, 3) && lab_answer()->k == 3 && !lab_answer()->flags;
	lab_active(&l, 15);		/* and comes back */
	for (unsigned int w = 0; w < 4; w++)
		lab_grad(&l, w, 2, 0, 1);
	ok &= lab_broadcast(15, 4) && lab_answer()->k == 4;
	lab_verdict(&l, ok, "saina-6l k never exceeds the live workers; a death completes what waits");
}

static void test_6n(void)
{
	struct lab l = lab_job(5, 3, 1, lab_bsp());
	bool ok;

	lab_grad(&l, 0, 0, 0, 1);
	lab_active(&l, 1);
	lab_pull(&l, 0, 0, 0);		/* it need not send its gradient again */
	ok = lab_broadcast(1, 1);
	lab_grad(&l, 2, 0, 0, 1);
	ok &= lab_consumed() && lab_counter(&l, 2, SAINA_C_INACTIVE) == 1;
	l.conf.worker[2].session = 77;	/* admitted again, as a new incarnation */
	lab_active(&l, 5);
	lab_grad(&l, 2, 1, 0, 2);
	lab_grad(&l, 0, 1, 0, 1);
	ok &= lab_broadcast(5, 3);
	lab_verdict(&l, ok, "saina-6n workers leave and join while rounds go on");
}

static void test_6o(void)
{
	struct lab a = lab_job(5, 2, 2, lab_bsp());
	struct lab b = lab_job(6, 3, 1, lab_fastest(1));
	bool ok;

	lab_grad(&a, 0, 0, 0, 1);
	lab_grad(&b, 0, 0, 0, 100);
	ok = lab_broadcast(1, 100) && lab_answer()->job == 6;
	lab_grad(&b, 1, 0, 0, 100);
	ok &= lab_unicast(&b, 1, SAINA_F_LATE, 1, 100);
	lab_grad(&a, 1, 0, 0, 2);
	ok &= lab_broadcast(3, 3) && lab_answer()->job == 5;
	ok &= lab_rt(&a).k == 2 && lab_rt(&b).k == 1;
	lab_verdict(&a, ok, "saina-6o jobs have slots, policy and k of their own");
	saina_dp_job_remove(rig.dp, 6);
	oracle_job_remove(&rig.o, 6);
}

static void test_6p(void)
{
	struct lab l = lab_job(5, 3, 1, lab_fastest(2));
	static const struct { unsigned int at; int counter; } lie[] = {
		{ 11, SAINA_C_BAD_MAC }, { FRAME_IP + 15, SAINA_C_BAD_IP },
		{ FRAME_UDP + 1, SAINA_C_BAD_UDP },
		{ FRAME_HDR + offsetof(struct saina_hdr, session), SAINA_C_SESSION },
	};
	uint8_t f[FRAME_MAX];
	uint64_t forged = lab_counter(&l, -1, SAINA_C_FORGED);
	unsigned int len;
	bool ok = true;

	lab_grad(&l, 0, 0, 0, 1);
	for (unsigned int i = 0; i < 4; i++) {
		len = lab_frame(&l, f, SAINA_MSG_GRAD, 1, 0, 0, NULL);
		f[lie[i].at] ^= 1;
		lab_send(f, len, rig.port[0]);
		ok &= lab_consumed() && lab_counter(&l, 1, lie[i].counter) == 1;
	}
	len = lab_frame(&l, f, SAINA_MSG_GRAD, 1, 0, 0, NULL);
	lab_send(f, len, rig.port[1]);
	ok &= lab_consumed() && lab_counter(&l, 1, SAINA_C_BAD_PORT) == 1;
	len = lab_frame(&l, f, SAINA_MSG_RESULT, 1, 0, 0, NULL);
	lab_send(f, len, rig.port[0]);
	ok &= lab_consumed() && lab_counter(&l, -1, SAINA_C_FORGED) == forged + 1;
	lab_grad(&l, 2, 0, 0, 4);
	ok &= lab_broadcast(5, 5);
	lab_verdict(&l, ok, "saina-6p who is not who it says is refused and changes no sum");
}

static void test_6q(void)
{
	struct lab l = lab_job(5, 2, 1, lab_fastest(1));
	uint8_t f[FRAME_MAX], arp[60] = { 255, 255, 255, 255, 255, 255, 2, 0x77, 0, 0, 5, 0, 8, 6 };
	unsigned int len;
	bool ok;

	lab_grad(&l, 0, 0, 0, 1);
	ok = lab_broadcast(1, 1);	/* checksums and group address are checked in there */
	ok &= !memcmp(rig.got + FRAME_IP + 16, &l.conf.group, 4);
	ok &= frame_get16(rig.got + FRAME_UDP + 2) == SAINA_PORT_RESULT;
	lab_send(arp, sizeof(arp), 1);
	ok &= rig.verdict == XDP_PASS && rig.len == sizeof(arp) && !memcmp(rig.got, arp, sizeof(arp));
	len = lab_frame(&l, f, SAINA_MSG_GRAD, 0, 0, 0, NULL);
	frame_be16(f + FRAME_UDP + 2, 53);
	lab_send(f, len, 1);
	ok &= rig.verdict == XDP_PASS && rig.len == len && !memcmp(rig.got, f, len);
	lab_verdict(&l, ok, "saina-6q results have valid checksums and a group; other traffic is not touched");
}

static void test_6r(void)
{
	struct lab l = lab_job(5, 64, 1, lab_bsp());
	bool ok = true;

	for (unsigned int w = 0; w < 63; w++) {
		lab_grad(&l, w, 0, 0, 1 + w);
		ok &= lab_consumed();
	}
	lab_grad(&l, 63, 0, 0, 64);
	ok &= lab_broadcast(~0ull, 64 * 65 / 2);
	lab_verdict(&l, ok, "saina-6r a job has up to 64 workers");
}

/* A JOIN in the name of worker 0 of @l, come in by port @port. */
static void join_from(const struct lab *l, unsigned int port, uint64_t nonce)
{
	struct saina_hdr h = { .version = SAINA_PROTO_VERSION, .type = SAINA_MSG_JOIN,
			       .job = l->conf.job, .worker = SAINA_WORKER_ANY };
	struct saina_join join = { .nonce = nonce };
	uint8_t f[FRAME_MAX];
	unsigned int len = frame_make(f, &rig.g, &l->conf.worker[0], &h, &join, sizeof(join));

	frame_be16(f + FRAME_UDP + 2, SAINA_PORT_CTRL);
	lab_send(f, len, rig.port[port]);
}

/* Is the sender of that JOIN known to be at @port?  -1: nobody sent it. */
static bool is_at(const struct lab *l, uint64_t nonce, int port)
{
	const struct saina_binding *b = &l->conf.worker[0];
	struct saina_place p;

	if (saina_dp_join_src_pop(rig.dp, b->ip, b->udp_port, nonce, &p))
		return port < 0;
	return port >= 0 && p.ifindex == rig.port[port];
}

static void test_join_place(void)
{
	struct lab l = lab_job(5, 2, 1, lab_bsp());
	bool ok;

	join_from(&l, 1, 0x1234567890abcdef);
	for (uint64_t guess = 0; guess < 100; guess++)
		join_from(&l, 2, guess);
	join_from(&l, 2, 0x1234567890abcdef);	/* it was overheard and is said again */
	ok = is_at(&l, 0x1234567890abcdef, 1);
	lab_verdict(&l, ok, "the place of a worker that joins is that of the first JOIN with its nonce");

	ok = is_at(&l, 0x1234567890abcdef, -1);
	join_from(&l, 2, 0x1234567890abcdef);
	ok &= is_at(&l, 0x1234567890abcdef, 2);
	lab_verdict(&l, ok, "a place that was taken out is learned again from the next JOIN");
	rig.o.learned_n = 0;
}

static void test_last_round(void)
{
	struct lab l = lab_job(5, 2, 1, lab_bsp());
	bool ok;

	l.conf.generation += 1u << 20;
	l.first_round = SAINA_ROUND_MAX;
	lab_publish(&l);
	lab_grad(&l, 0, SAINA_ROUND_MAX, 0, 1);
	lab_grad(&l, 1, SAINA_ROUND_MAX, 0, 2);
	ok = lab_broadcast(3, 3);
	lab_grad(&l, 0, SAINA_ROUND_MAX + 1, 0, 1);
	lab_grad(&l, 1, 0, 0, 1);
	ok &= lab_stale(SAINA_ROUND_MAX + 1) && lab_counter(&l, 0, SAINA_C_FUTURE) == 1 &&
	      lab_rt(&l).next_round == SAINA_ROUND_MAX + 1;
	lab_verdict(&l, ok, "round numbers do not wrap: no round opens after SAINA_ROUND_MAX");
}

/* Not a published defect, but the promise all of this is for. */
static void test_conservation(void)
{
	struct lab l = lab_job(5, 4, 1, lab_fastest(2));
	int64_t said = 0, counted = 0, residual[4] = {};
	bool ok = true;

	for (uint32_t r = 0; r < 40; r++) {
		for (unsigned int i = 0; i < 4; i++) {
			unsigned int w = (i + r * 3) % 4;
			int32_t mine = (r * 7919 + w * 104729) % 1000 - 500;

			said += mine;
			lab_grad(&l, w, r, 0, mine + residual[w]);
			residual[w] += mine;
			if (rig.verdict != XDP_REDIRECT)
				continue;
			if (lab_answer()->worker == 0xff) {
				counted += lab_elem(0);
				for (unsigned int j = 0; j < 4; j++)
					if (lab_answer()->mask >> j & 1)
						residual[j] = 0;
			} else {
				ok &= lab_answer()->flags == SAINA_F_LATE;
			}
		}
	}
	for (unsigned int w = 0; w < 4; w++)
		counted += residual[w];
	lab_verdict(&l, ok && said == counted, "what was said is in a result or in a residual, all of it");
}

static void ignore_event(void *arg, const struct saina_event *ev)
{
}

static void count_stale(void *arg, const struct saina_event *ev)
{
	*(unsigned int *)arg += ev->type == SAINA_EV_STALE;
}

/* How many STALE there were since the last time, by the program alone. */
static unsigned int stale_events(void)
{
	unsigned int n = 0;
	struct saina_dp_cb cb = { .event = count_stale, .arg = &n };

	saina_dp_event_dispatch(rig.dp, &cb);
	return n;
}

/* A worker that asks for every round there has been, upwards, says one event. */
static void test_stale_events(void)
{
	struct lab l = lab_job(5, 2, 1, lab_fastest(1));
	unsigned int n;
	bool ok;

	for (uint32_t r = 0; r < 50; r++)
		lab_grad(&l, 0, r, 0, 1);
	rig_drain(&rig);
	for (uint32_t r = 0; r < 48; r++)
		lab_pull(&l, 1, r, 0);
	ok = lab_counter(&l, 1, SAINA_C_STALE) == 48;
	n = stale_events();
	rig.o.events = 0;
	tap_ok(ok && n == 1, "48 stale rounds that a worker asks for are one event");
	tap_note("%u events", n);
	lab_grad(&l, 0, 50, 0, 1);
	rig_drain(&rig);
	for (uint32_t r = 0; r < 48; r++)
		lab_pull(&l, 1, r % 2 ? 47 - r : r, 0);
	n = stale_events();
	rig.o.events = 0;
	lab_verdict(&l, n == 1, "a worker that is still stale after another round is one more event");
}

static void count_relay(void *arg, const struct saina_relay_msg *m)
{
	uint64_t *n = arg;

	if (m->len == sizeof(m->hdr) + 4 * LAB_ELEMS)
		++*n;
}

/* Nobody empties the ring buffers: counted, and the job goes on. */
static void test_full_rings(void)
{
	struct lab l = lab_job(5, 2, 1, lab_fastest(1));
	uint64_t relayed = 0, before = lab_counter(&l, -1, SAINA_C_NO_MEMORY);
	struct saina_dp_cb cb = { .event = ignore_event, .relay = count_relay, .arg = &relayed };
	unsigned int len, sent = 0;
	uint8_t f[FRAME_MAX];
	bool ok = true;
	uint32_t r;

	l.conf.relay = 2;
	l.conf.worker[1].flags |= SAINA_BIND_RELAY;
	lab_publish(&l);
	lab_grad(&l, 0, 0, 0, 3);
	rig_drain(&rig);
	len = lab_frame(&l, f, SAINA_MSG_PULL, 1, 0, 0, NULL);
	for (; ok && sent < 1000000 && !lab_counter(&l, 1, SAINA_C_NO_MEMORY); sent++)
		ok = rig_packet_alone(&rig, f, len, 1) && rig.verdict == XDP_DROP;
	cb.max = 10;
	saina_dp_event_dispatch(rig.dp, &cb);
	tap_ok(relayed == 10, "a dispatch takes at most as many messages as asked for");
	cb.max = 0;
	saina_dp_event_dispatch(rig.dp, &cb);
	ok &= relayed == sent - 1 && lab_counter(&l, 1, SAINA_C_PULLED) == sent;
	/* there is room again; then the events' ring: one ROUND each */
	ok &= rig_packet_alone(&rig, f, len, 1) && lab_counter(&l, 1, SAINA_C_NO_MEMORY) == 1;
	for (r = 1; ok && r < 100000 && lab_counter(&l, -1, SAINA_C_NO_MEMORY) == before; r++) {
		len = lab_frame(&l, f, SAINA_MSG_GRAD, 0, r, 0, NULL);
		ok = rig_packet_alone(&rig, f, len, 1) && rig.verdict == XDP_REDIRECT;
	}
	ok &= lab_counter(&l, -1, SAINA_C_NO_MEMORY) > before;
	len = lab_frame(&l, f, SAINA_MSG_GRAD, 0, r, 0, NULL);
	ok &= rig_packet_alone(&rig, f, len, 1) && lab_broadcast(1, 0);
	saina_dp_event_dispatch(rig.dp, &cb);
	tap_ok(ok, "full ring buffers are counted and stop no round");
	saina_dp_job_remove(rig.dp, 5);
	oracle_job_remove(&rig.o, 5);
}

int main(void)
{
	rig_open(&rig);
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
	defects_table();
	defects_arrivals();
	test_join_place();
	test_last_round();
	test_conservation();
	test_stale_events();
	test_full_rings();
	rig_close(&rig);
	return tap_done();
}
