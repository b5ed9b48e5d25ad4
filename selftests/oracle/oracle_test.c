// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Is the oracle itself right?  Cases small enough to be worked out by hand,
 * and proof that the ledger notices what it is there to notice.
 */
#include <arpa/inet.h>
#include <limits.h>
#include "lib/frame.h"
#include "lib/tap.h"
#include "harness.h"
#include "ledger.h"

static void test_fastest(void)
{
	struct saina_policy p = { .seq = 1, .mode = SAINA_POLICY_FASTEST, .late = 1, .k = 2 };
	struct saina_job_conf c;

	job_make(&c, 3, 1, &p);
	tap_ok(grad(&c, 0, 0, 0, 5) == ORACLE_DROP && out.reason < 0, "slot: the first gradient is stored and not answered");
	tap_ok(grad(&c, 0, 0, 0, 9) == ORACLE_DROP && out.reason == SAINA_C_DUPLICATE,
	       "slot: a duplicate is dropped");
	tap_ok(answered(grad(&c, 1, 0, 0, 6), 0, 3, 11) && out.multicast && out.to == 7 &&
	       answer()->k == 2 && answer()->worker == 0xff, "slot: the k-th gradient makes the result");
	tap_ok(answered(grad(&c, 2, 0, 0, 100), SAINA_F_LATE, 3, 11) && answer()->aux == 0 &&
	       out.to == 4, "slot: a late gradient gets the result and is not added");
	tap_ok(answered(grad(&c, 0, 0, 0, 5), SAINA_F_RESEND, 3, 11) && answer()->aux == 1,
	       "slot: a contributor that sends again gets the result again");
	tap_ok(answered(send_msg(&c, SAINA_MSG_PULL, 2, 0, 0, 0), SAINA_F_PULLED | SAINA_F_LATE, 3, 11),
	       "slot: PULL gets the result");
	tap_ok(grad(&c, 0, 2, 0, 1) == ORACLE_DROP && out.reason == SAINA_C_FUTURE,
	       "rounds: a gradient two rounds ahead is refused");
	grad(&c, 2, 1, 0, -4);
	tap_ok(grad(&c, 2, 2, 0, 1) == ORACLE_DROP && out.reason == SAINA_C_ROUND_BUSY,
	       "rounds: the next round does not open while a slot is open");
	tap_ok(answered(grad(&c, 1, 1, 0, 3), 0, 6, -1), "slot: its next use begins with a store");
	grad(&c, 0, 2, 0, 1);
	tap_ok(answered(grad(&c, 1, 0, 0, 1), SAINA_F_RESEND, 3, 11),
	       "ring: a round is kept until its entry is used again");
	grad(&c, 2, 2, 0, 1);
	tap_ok(grad(&c, 1, 0, 0, 1) == ORACLE_REDIRECT && answer()->type == SAINA_MSG_STALE &&
	       answer()->slot_round == 3 && answer()->aux == 2 && out.len == FRAME_PAYLOAD,
	       "ring: a round whose entry was used again is stale");
	tap_ok(answered(grad(&c, 0, 1, 0, 1), SAINA_F_LATE, 6, -1), "ring: the round before is there");
}

static void test_death(void)
{
	struct saina_policy p = { .seq = 1, .mode = SAINA_POLICY_BSP, .late = 1 };
	struct saina_job_conf c;

	job_make(&c, 3, 1, &p);
	grad(&c, 0, 0, 0, 1);
	grad(&c, 1, 0, 0, 2);
	c.active = 3;
	oracle_job_publish(&o, &c, 0);
	tap_ok(grad(&c, 2, 0, 0, 4) == ORACLE_DROP && out.reason == SAINA_C_INACTIVE,
	       "members: a dead worker's gradient is dropped");
	tap_ok(answered(grad(&c, 0, 0, 0, 1), SAINA_F_DEGRADED, 3, 3) && answer()->k == 3,
	       "members: after a death a duplicate completes the slot");
	tap_ok(answered(grad(&c, 0, 1, 0, 1) == ORACLE_DROP ? grad(&c, 1, 1, 0, 1) : -1, 0, 3, 2) &&
	       answer()->k == 2, "members: the next round waits for the live workers");
	tap_ok(oracle_popcount(o.job[3].rt.members) == 2 && o.job[3].rt.k == 2, "members: members and k follow a death");
}

static void test_sfcd(void)
{
	struct saina_policy p = { .seq = 1, .mode = SAINA_POLICY_SFCD, .late = 1, .k = 1,
				  .k_min = 1, .s_th = 500, .c_th = 2, .stride = 1,
				  .lead = SAINA_LEAD_NONE };
	struct saina_job_conf c;
	unsigned int k[8];

	job_make(&c, 4, 2, &p);
	for (uint32_t r = 0; r < 8; r++) {
		grad(&c, 0, r, 0, r & 1 ? 1 : -1);	/* all its signs flip each round */
		k[r] = o.job[3].rt.k;
		for (unsigned int w = 1; w < k[r]; w++)
			grad(&c, w, r, 0, 0);
		for (unsigned int w = 0; w < k[r]; w++)
			grad(&c, w, r, 1, 1);		/* these never flip */
	}
	/* round 0 primes; 64 of 128 flip from then on: k rises every 2 rounds */
	tap_ok(k[0] == 1 && k[1] == 1 && k[2] == 1 && k[3] == 2 && k[4] == 2 && k[5] == 3 &&
	       k[6] == 3 && k[7] == 4, "SFCD: k rises every c_th rounds at s_th");
	tap_ok(o.job[3].rt.last_flips == 64 && o.job[3].rt.last_observed == 128, "SFCD: flips are counted");
}

static void test_shift(void)
{
	static const struct { int32_t x; unsigned int d; int32_t want; } t[] = {
		{ 12345, 0, 12345 }, { INT_MIN, 0, INT_MIN },
		/* halves go upwards */
		{ 2, 1, 1 }, { 3, 1, 2 }, { 1, 1, 1 }, { 0, 1, 0 }, { -1, 1, 0 }, { -2, 1, -1 }, { -3, 1, -1 },
		{ 9, 2, 2 }, { 10, 2, 3 }, { 11, 2, 3 }, { -9, 2, -2 }, { -10, 2, -2 }, { -11, 2, -3 },
		/* the addition wraps: only at d = 1, and of one value */
		{ INT_MAX, 1, -0x40000000 }, { INT_MAX - 1, 1, 0x3fffffff }, { INT_MIN, 1, -0x40000000 },
		{ INT_MAX, 2, 0x20000000 }, { INT_MIN, 2, -0x20000000 },
		{ INT_MAX, 30, 2 }, { 0x5fffffff, 30, 1 }, { 0x20000000, 30, 1 }, { 0x1fffffff, 30, 0 },
		{ INT_MIN, 30, -2 }, { -0x20000000, 30, 0 }, { -0x20000001, 30, -1 },
		{ INT_MAX, 31, 1 }, { 0x40000000, 31, 1 }, { 0x3fffffff, 31, 0 }, { 1, 31, 0 },
		{ -1, 31, 0 }, { -0x40000000, 31, 0 }, { -0x40000001, 31, -1 }, { INT_MIN, 31, -1 },
		/* and as far away as can be */
		{ INT_MAX, 32, 1 }, { INT_MAX, 214, 1 }, { 0x3fffffff, 214, 0 }, { INT_MIN, 214, -1 },
		{ -0x40000000, 214, 0 },
	};
	bool ok = true;

	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		if (oracle_shift(t[i].x, t[i].d) != t[i].want) {
			tap_note("shift(%d, %u) is %d, not %d", t[i].x, t[i].d,
				 oracle_shift(t[i].x, t[i].d), t[i].want);
			ok = false;
		}
	tap_ok(ok, "exponents: shift() rounds to the nearest, halves upwards");
}

/* The three workers of a job send @v at @e in that order: is the result @sum at @exponent? */
static bool adds_up(struct saina_job_conf *c, uint32_t round, const int *e, const int32_t *v,
		    int exponent, int32_t sum)
{
	for (unsigned int w = 0; w < 2; w++)
		if (send_msg_at(c, SAINA_MSG_GRAD, w, round, 0, e[w], v[w]) != ORACLE_DROP || out.reason >= 0)
			return false;
	return answered(send_msg_at(c, SAINA_MSG_GRAD, 2, round, 0, e[2], v[2]), 0, 7, sum) &&
	       answer()->exponent == exponent;
}

#define ADDS_UP(r, e0, v0, e1, v1, e2, v2, e, v) \
	adds_up(&c, r, (int[]){ e0, e1, e2 }, (int32_t[]){ v0, v1, v2 }, e, v)

static uint64_t counted(unsigned int w, int counter)
{
	return o.job[3].wcount[w].c[counter];
}

static void test_exponents(void)
{
	struct saina_policy p = { .seq = 1, .mode = SAINA_POLICY_BSP, .late = 1 };
	struct saina_job_conf c;
	bool ok;

	job_make(&c, 3, 1, &p);
	tap_ok(ADDS_UP(0, 7, 100, 7, -3, 7, 4, 7, 101) && !counted(1, SAINA_C_COARSENED),
	       "exponents: equal ones give the exact sum");
	tap_ok(ADDS_UP(1, 7, 100, 9, 10, 8, -3, 7, 102) && ADDS_UP(2, 9, 10, 7, 100, 6, 0, 6, 52),
	       "exponents: finer gradients are rounded, one by one, and the sum to a coarser gradient's");
	tap_ok(ADDS_UP(3, 9, -10, 6, 100, 9, -4, 6, 100 - 1 + 0) && !counted(0, SAINA_C_COARSENED) &&
	       !counted(1, SAINA_C_COARSENED) && !counted(2, SAINA_C_COARSENED),
	       "exponents: negative sums and gradients, too, halves upwards");
	tap_ok(ADDS_UP(4, SAINA_EXPONENT_MAX, INT_MAX, SAINA_EXPONENT_MIN, 5, SAINA_EXPONENT_MAX, INT_MIN,
		       SAINA_EXPONENT_MIN, 5),
	       "exponents: as far apart as can be");
	tap_ok(ADDS_UP(5, 7, INT_MAX, 7, 1, 6, 0, 6, -0x40000000) &&
	       ADDS_UP(6, 6, INT_MAX, 7, 1, 6, 0, 6, INT_MIN), "exponents: sums wrap, before a shift and after");
	send_msg_at(&c, SAINA_MSG_GRAD, 0, 7, 0, 7, 1);
	ok = send_msg_at(&c, SAINA_MSG_GRAD, 0, 7, 0, 3, 1) == ORACLE_DROP && out.reason == SAINA_C_DUPLICATE;
	send_msg_at(&c, SAINA_MSG_GRAD, 1, 7, 0, 7, 2);
	ok &= answered(send_msg_at(&c, SAINA_MSG_GRAD, 2, 7, 0, 7, 3), 0, 7, 6);
	ok &= answered(send_msg_at(&c, SAINA_MSG_GRAD, 2, 7, 0, 0, 3), SAINA_F_RESEND, 7, 6);
	tap_ok(ok && answer()->exponent == 7 && !counted(1, SAINA_C_COARSENED),
	       "exponents: a duplicate's changes nothing, nor one that comes after the result");
}

/* A GRAD of zeros of worker 0, of the job's element type. */
static int send_elem(const struct saina_job_conf *c, int e)
{
	struct saina_hdr h = { .version = SAINA_PROTO_VERSION, .type = SAINA_MSG_GRAD, .elem = c->elem, .job = c->job,
			       .session = c->worker[0].session, .count = E, .exponent = e };
	int32_t zeros[E] = {};
	uint8_t f[FRAME_MAX];

	oracle_packet(&o, f, frame_make(f, &g, &c->worker[0], &h, zeros, sizeof(zeros)), 1, &out);
	return out.verdict;
}

static void test_range(void)
{
	struct saina_policy p = { .seq = 1, .mode = SAINA_POLICY_BSP, .late = 1 };
	struct saina_job_conf c;
	bool ok = true;

	job_make(&c, 2, 1, &p);
	ok &= send_msg_at(&c, SAINA_MSG_INC, 0, 0, 0, SAINA_EXPONENT_NAN, 1) == ORACLE_DROP &&
	      out.reason == SAINA_C_EXPONENT && counted(0, SAINA_C_EXPONENT) == 1;
	ok &= !o.job[3].rt.next_round && o.job[3].hot[0].meta.state == SAINA_SLOT_EMPTY;
	tap_ok(ok, "exponents: an INC of NaN is refused and opens nothing");
	ok = send_msg_at(&c, SAINA_MSG_INC, 0, 0, 0, SAINA_EXPONENT_MIN, 1) == ORACLE_REDIRECT &&
	     answer()->type == SAINA_MSG_NAK && answer()->k == SAINA_NAK_MODE;
	ok &= send_msg_at(&c, SAINA_MSG_PULL, 0, 0, 0, 127, 1) == ORACLE_DROP && out.reason == SAINA_C_PULL_EARLY;
	tap_ok(ok, "exponents: nobody looks at those of other messages");

	ok = true;
	for (int e = -128; e < 128; e++) {
		o.job[3].hot[0].meta.state = SAINA_SLOT_EMPTY;
		o.job[3].rt.next_round = o.job[3].rt.open_slots = 0;
		ok &= send_elem(&c, e) == ORACLE_DROP && out.reason == -1 && o.job[3].hot[0].meta.exponent == e;
	}
	tap_ok(ok, "exponents: a gradient of a job of int32 may have any");
	c.elem = SAINA_ELEM_FLOAT32;
	c.generation++;
	oracle_job_publish(&o, &c, 0);
	ok = true;
	for (int e = -128; e < 128; e++) {
		o.job[3].hot[0].meta.state = SAINA_SLOT_EMPTY;
		o.job[3].rt.next_round = o.job[3].rt.open_slots = 0;
		ok &= send_elem(&c, e) == ORACLE_DROP && out.reason == (e ? SAINA_C_EXPONENT : -1);
	}
	tap_ok(ok, "exponents: a job of floats has none but 0");
}

static void test_nan(void)
{
	struct saina_policy p = { .seq = 1, .mode = SAINA_POLICY_BSP, .late = 1 };
	const int nan = SAINA_EXPONENT_NAN;
	struct saina_job_conf c;

	job_make(&c, 3, 1, &p);
	tap_ok(ADDS_UP(0, nan, 5, 7, 100, 3, 100, nan, 0) && counted(0, SAINA_C_NONFINITE) == 1 &&
	       !counted(1, SAINA_C_NONFINITE) && !counted(2, SAINA_C_COARSENED),
	       "NaN: a slot that begins with one ends as one, of zeros");
	tap_ok(ADDS_UP(1, 7, 1, nan, 0, 3, 1, nan, 0) && ADDS_UP(2, 7, 1, 1, 1, nan, 77, nan, 0) &&
	       counted(1, SAINA_C_NONFINITE) == 1 && counted(2, SAINA_C_NONFINITE) == 1 &&
	       counted(1, SAINA_C_COARSENED) == 1 && !counted(2, SAINA_C_COARSENED),
	       "NaN: so does one that a NaN is added to");
	tap_ok(answered(send_msg(&c, SAINA_MSG_PULL, 0, 2, 0, 0), SAINA_F_PULLED | SAINA_F_RESEND, 7, 0) &&
	       answer()->exponent == nan && answered(send_msg(&c, SAINA_MSG_GRAD, 1, 1, 0, 9), SAINA_F_RESEND, 7, 0) &&
	       answer()->exponent == nan, "NaN: PULL and RESEND answer the same");
	tap_ok(ADDS_UP(3, 7, 1, 7, 2, 7, 3, 7, 6), "NaN: the next round has none");
}

/* Integers and floats of three workers, in each order: the result says who sent which. */
static void test_types(void)
{
	struct saina_policy p = { .seq = 1, .mode = SAINA_POLICY_BSP, .late = 1 };
	const int integers = SAINA_EXPONENT_INT, nan = SAINA_EXPONENT_NAN, some[] = { integers, 7, -3, nan };
	struct saina_job_conf c;
	bool ok;

	job_make(&c, 3, 1, &p);
	tap_ok(ADDS_UP(0, integers, INT_MAX, integers, 1, integers, -5, integers, INT_MIN - 5u) &&
	       !(answer()->flags & SAINA_F_TYPES), "types: integers have an exact sum");
	ok = true;
	for (uint32_t i = 0; i < 64; i++) {
		int e[3] = { some[i & 3], some[i >> 2 & 3], some[i >> 4 & 3] }, floats = 0;
		uint64_t mask = 0;

		for (int w = 0; w < 3; w++) {
			mask |= (uint64_t)(e[w] == integers) << w;
			floats += e[w] != integers;
			send_msg_at(&c, SAINA_MSG_GRAD, w, i + 1, 0, e[w], 9);
		}
		if (!mask || !floats) {
			ok &= !(answer()->flags & SAINA_F_TYPES);
			continue;
		}
		ok &= out.verdict == ORACLE_REDIRECT && answer()->flags & SAINA_F_TYPES && answer()->exponent == nan &&
		      o.job[3].ring[(i + 1) % c.ring].sum[0] == (int32_t)mask && !o.job[3].ring[(i + 1) % c.ring].sum[1] &&
		      !o.job[3].ring[(i + 1) % c.ring].sum[2];
	}
	tap_ok(ok, "types: a sum of integers and floats is none, and says who sent integers, in any order");
	c.elem = SAINA_ELEM_INT16;
	c.generation += 1000;
	oracle_job_publish(&o, &c, 0);
	tap_ok(send_elem(&c, integers) == ORACLE_DROP && out.reason == SAINA_C_EXPONENT && send_elem(&c, 0) == ORACLE_DROP &&
	       out.reason < 0,
	       "types: there are no integers in a job of int16");
}

/* Who brings the coarsest scale is counted, whether it comes first, in between or last; not for zeros. */
static void test_coarsened(void)
{
	struct saina_policy p = { .seq = 1, .mode = SAINA_POLICY_BSP, .late = 1 };
	const int zeros = SAINA_EXPONENT_MAX;
	struct saina_job_conf c;

	job_make(&c, 3, 1, &p);
	tap_ok(ADDS_UP(0, -90, 0, 9, 5, 9, 5, -90, 0) && counted(0, SAINA_C_COARSENED) == 1 &&
	       ADDS_UP(1, 9, 5, -90, 0, 9, 5, -90, 0) && counted(1, SAINA_C_COARSENED) == 1 &&
	       ADDS_UP(2, 9, 5, 9, 5, -90, 0, -90, 0) && counted(2, SAINA_C_COARSENED) == 1,
	       "coarsened: counted once, for the first, the second or the last worker");
	tap_ok(ADDS_UP(3, zeros, 0, 9, 5, 9, 5, 9, 10) && ADDS_UP(4, 9, 5, zeros, 0, 9, 5, 9, 10) &&
	       counted(0, SAINA_C_COARSENED) + counted(1, SAINA_C_COARSENED) + counted(2, SAINA_C_COARSENED) == 3,
	       "coarsened: nobody is, where the others have zeros");
	tap_ok(ADDS_UP(5, zeros, 0, -90, 0, 9, 5, -90, 0) && counted(1, SAINA_C_COARSENED) == 2,
	       "coarsened: a worker that comes after zeros, as soon as a third is rounded");
	tap_ok(ADDS_UP(6, 9, 5, 4, 5, -1, 0, -1, 0) && ADDS_UP(7, 4, 0, 9, 5, 5, 5, 4, 3) &&
	       counted(0, SAINA_C_COARSENED) + counted(1, SAINA_C_COARSENED) + counted(2, SAINA_C_COARSENED) == 4 &&
	       ADDS_UP(8, 9, 640, 3, 10, 9, 64, 3, 21) && counted(1, SAINA_C_COARSENED) == 3 &&
	       ADDS_UP(9, 3, 10, 8, 64, 9, 640, 3, 22) && counted(0, SAINA_C_COARSENED) == 2,
	       "coarsened: from 64 times the scale of another gradient, or of the sum so far, on");
}

/* Worker 0 writes a segment at exponent @e into its input array and sends a DOORBELL. */
static int ring_doorbell(const struct saina_job_conf *c, uint8_t *input, uint32_t round, int e, int32_t v)
{
	struct saina_input_head *in = (void *)input;
	int32_t *elem = (void *)(in + 1);
	struct saina_doorbell doorbell = { .posted = 1 };
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = SAINA_MSG_DOORBELL, .elem = c->elem,
		.job = c->job, .session = c->worker[0].session, .round = round, .exponent = 99,
	};
	uint8_t f[FRAME_MAX];

	in->session = h.session;
	in->round = round;
	in->exponent = e;
	for (int i = 0; i < E; i++)
		elem[i] = v;
	oracle_packet(&o, f, frame_make(f, &g, &c->worker[0], &h, &doorbell, sizeof(doorbell)), 1, &out);
	return out.verdict;
}

static void test_doorbell(void)
{
	struct saina_policy p = { .seq = 1, .mode = SAINA_POLICY_BSP, .late = 1 };
	static uint64_t input[(sizeof(struct saina_input_head) + 4 * E) * 4 / 8];
	struct saina_job_conf c;
	const struct oracle_slot *b;
	bool ok;

	job_make(&c, 2, 1, &p);
	oracle_input_set(&o, c.job, 0, (uint8_t *)input);
	send_msg_at(&c, SAINA_MSG_GRAD, 1, 0, 0, 9, 10);
	ok = ring_doorbell(&c, (uint8_t *)input, 0, 3, 100) == ORACLE_REDIRECT && answer()->type == SAINA_MSG_COMPLETION;
	b = &o.job[3].ring[0];
	tap_ok(ok && b->meta.state == SAINA_SLOT_DONE && b->meta.exponent == 3 && b->sum[0] == 100 && b->sum[E - 1] == 100 &&
	       counted(0, SAINA_C_COARSENED) == 1, "by reference: the exponent is the entry's");
	send_msg_at(&c, SAINA_MSG_GRAD, 1, 1, 0, 9, 10);
	ring_doorbell(&c, (uint8_t *)input, 1, SAINA_EXPONENT_NAN, 100);
	b = &o.job[3].ring[1];
	tap_ok(b->meta.state == SAINA_SLOT_DONE && b->meta.round == 1 && b->meta.exponent == SAINA_EXPONENT_NAN && !b->sum[0] && !b->sum[E - 1] &&
	       counted(0, SAINA_C_NONFINITE) == 1, "by reference: NaN");

	c.elem = SAINA_ELEM_INT16;
	c.generation += 1000;
	oracle_job_publish(&o, &c, 0);
	oracle_input_set(&o, c.job, 0, (uint8_t *)input);
	ok = ring_doorbell(&c, (uint8_t *)input, 0, SAINA_EXPONENT_INT, 1) == ORACLE_DROP && out.reason == SAINA_C_EXPONENT;
	tap_ok(ok && !o.job[3].rt.next_round, "by reference: the exponent of integers opens nothing in a job of int16");
}

static void test_sfcd_nan(void)
{
	struct saina_policy p = { .seq = 1, .mode = SAINA_POLICY_SFCD, .late = 1, .k = 1,
				  .k_min = 1, .s_th = 500, .c_th = 5, .stride = 1,
				  .lead = SAINA_LEAD_NONE };
	const struct saina_job_rt *rt = &o.job[3].rt;
	struct saina_job_conf c;
	struct saina_job_rt was;
	bool ok;

	job_make(&c, 2, 2, &p);
	for (uint32_t s = 0; s < 2; s++)
		send_msg_at(&c, SAINA_MSG_GRAD, 0, 0, s, SAINA_EXPONENT_NAN, 0);
	tap_ok(!rt->primed && !rt->last_observed, "SFCD: a round of NaN does not prime");
	for (uint32_t r = 1; r < 3; r++)
		for (uint32_t s = 0; s < 2; s++)
			grad(&c, 0, r, s, r & 1 ? -1 : 1);
	ok = rt->primed && rt->converged == 1 && rt->last_flips == 128;
	was = *rt;
	for (uint32_t s = 0; s < 2; s++)
		send_msg_at(&c, SAINA_MSG_GRAD, 0, 3, s, SAINA_EXPONENT_NAN, 0);
	ok &= rt->converged == was.converged && rt->last_round == 2 && rt->last_flips == was.last_flips &&
	      rt->last_observed == was.last_observed && rt->k_next == was.k_next && !rt->observed;
	tap_ok(ok, "SFCD: a round of NaN decides nothing");
	/* segment 0 keeps its signs, positive, and segment 1 flips its own */
	send_msg_at(&c, SAINA_MSG_GRAD, 0, 4, 0, SAINA_EXPONENT_NAN, -1);
	grad(&c, 0, 4, 1, -1);
	ok = rt->last_round == 4 && rt->last_flips == 64 && rt->last_observed == 64 && rt->converged == 2;
	grad(&c, 0, 5, 0, 1);
	grad(&c, 0, 5, 1, -1);
	tap_ok(ok && rt->last_flips == 0 && rt->last_observed == 128 && rt->converged == 1,
	       "SFCD: a segment of NaN is left out, its signs stay");
}

/* Worker 4 is at exponent 1, worker 5 sends NaN, all others are at 3. */
static struct ledger_gradient gradient_of(void *arg, unsigned int w, uint32_t r, uint32_t s, int variant)
{
	static int32_t v[SAINA_WORKERS_MAX][E];

	if (variant)
		return (struct ledger_gradient){};
	for (int i = 0; i < E; i++)
		v[w][i] = 10 * w + r;
	return (struct ledger_gradient){ .v = v[w], .exponent = w == 4 ? 1 : w == 5 ? SAINA_EXPONENT_NAN : 3 };
}

static void test_ledger(void)
{
	struct saina_hdr h = { .version = 1, .type = SAINA_MSG_RESULT, .count = E, .worker = 0xff,
			       .contributors = 2, .mask = 3, .round = 1, .exponent = 3 };
	struct saina_hdr one = h;
	struct ledger l;
	int32_t sum[E];
	bool ok;

	for (int i = 0; i < E; i++)
		sum[i] = 12;
	ledger_init(&l, E, 2, 0, gradient_of, NULL);
	sum[17]++;
	tap_ok(!ledger_answer(&l, &h, (uint8_t *)sum), "ledger: a wrong sum is found");
	sum[17]--;
	h.mask = 5;
	tap_ok(!ledger_answer(&l, &h, (uint8_t *)sum), "ledger: a wrong mask is found");
	h.mask = 3;
	tap_ok(ledger_answer(&l, &h, (uint8_t *)sum), "ledger: a right result is accepted");
	tap_ok(!ledger_answer(&l, &h, (uint8_t *)sum), "ledger: a second result is found");
	one.worker = 1;
	one.flags = SAINA_F_LATE;
	one.aux = 2;
	tap_ok(!ledger_answer(&l, &one, (uint8_t *)sum), "ledger: a wrong late flag is found");
	one.flags = SAINA_F_RESEND;
	tap_ok(ledger_answer(&l, &one, (uint8_t *)sum), "ledger: a right RESEND is accepted");
	one.aux = 1;
	tap_ok(!ledger_answer(&l, &one, (uint8_t *)sum), "ledger: a wrong aux is found");
	one.aux = 2;
	sum[0] = 1;
	tap_ok(!ledger_answer(&l, &one, (uint8_t *)sum), "ledger: a RESEND with another sum is found");

	/* 1, 11 and 21 at exponent 3 are 8.25 at 1: with 41 of worker 4 that is 49.25 */
	h = (struct saina_hdr){ .type = SAINA_MSG_RESULT, .count = E, .worker = 0xff, .exponent = 1,
				.contributors = 4, .mask = 0x17, .round = 1, .segment = 1 };
	for (int i = 0; i < E; i++)
		sum[i] = 49;
	sum[5] = 52;
	ok = !ledger_answer(&l, &h, (uint8_t *)sum);
	sum[5] = 47;
	ok &= !ledger_answer(&l, &h, (uint8_t *)sum);
	sum[5] = 51;
	h.exponent = 3;
	ok &= !ledger_answer(&l, &h, (uint8_t *)sum);
	tap_ok(ok, "ledger: a mixed sum that is far off, or has another exponent, is found");
	h.exponent = 1;
	tap_ok(ledger_answer(&l, &h, (uint8_t *)sum) && l.mixed == 1,
	       "ledger: a mixed sum within half a unit for each contributor is accepted");
	h = (struct saina_hdr){ .type = SAINA_MSG_RESULT, .count = E, .worker = 0xff, .exponent = 3,
				.contributors = 2, .mask = 0x22, .round = 2, .segment = 1 };
	memset(sum, 0, sizeof(sum));
	ok = !ledger_answer(&l, &h, (uint8_t *)sum);
	h.exponent = SAINA_EXPONENT_NAN;
	sum[9] = 1;
	ok &= !ledger_answer(&l, &h, (uint8_t *)sum);
	sum[9] = 0;
	tap_ok(ok && ledger_answer(&l, &h, (uint8_t *)sum) && l.nans == 1,
	       "ledger: with a NaN in it a result must be NaN, and zeros");
	ledger_exit(&l);
}

int main(void)
{
	g.ip = htonl(0x0a000001);
	oracle_init(&o, &g);
	test_fastest();
	test_death();
	oracle_test_lead();
	test_sfcd();
	test_shift();
	test_exponents();
	test_range();
	test_nan();
	test_types();
	test_coarsened();
	test_doorbell();
	test_sfcd_nan();
	test_ledger();
	oracle_test_uplink();
	oracle_exit(&o);
	return tap_done();
}
