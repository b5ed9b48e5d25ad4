// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Frames of several messages at the tc hook, made by hand: what must be in the frame that
 * leaves, and what bad ones lead to.  All of them go through the oracle as well.
 */
#include <arpa/inet.h>
#include "lab.h"

struct rig rig;
bool lab_same;

#define MESSAGE	(sizeof(struct saina_hdr) + 4 * LAB_ELEMS)

/* A frame being made. */
static struct {
	uint8_t f[FRAME_MAX];
	unsigned int len, size, ifindex;
} t;

static void begin(unsigned int size)
{
	t.len = 0;
	t.size = size;
}

/* One more message, @len bytes of it. */
static void more(const struct lab *l, int type, unsigned int w, uint32_t round, uint32_t segment,
		 int32_t value, unsigned int len)
{
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = type, .elem = SAINA_ELEM_INT32,
		.job = l->conf.job, .session = l->conf.worker[w].session, .round = round,
		.segment = segment, .worker = w, .exponent = LAB_EXPONENT,
		.count = type == SAINA_MSG_GRAD || type == SAINA_MSG_PULL ? LAB_ELEMS : 0,
	};
	uint8_t one[FRAME_MAX];
	int32_t v[LAB_ELEMS];

	for (unsigned int i = 0; i < LAB_ELEMS; i++)
		v[i] = value;
	frame_make(one, &rig.g, &l->conf.worker[w], &h, v, sizeof(v));
	if (!t.len) {
		memcpy(t.f, one, FRAME_HDR);
		t.len = FRAME_HDR;
		t.ifindex = l->conf.worker[w].ifindex;
	}
	memcpy(t.f + t.len, one + FRAME_HDR, len);
	t.len += len;
}

static void grad(const struct lab *l, unsigned int w, uint32_t round, uint32_t segment, int32_t v)
{
	more(l, SAINA_MSG_GRAD, w, round, segment, v, MESSAGE);
}

static void run_as(unsigned int checksum)
{
	frame_be16(t.f + FRAME_IP + 2, t.len - FRAME_IP);
	frame_be16(t.f + FRAME_UDP + 4, t.len - FRAME_UDP);
	frame_ip_checksum(t.f);
	frame_be16(t.f + FRAME_UDP + 6, checksum);
	if (!rig_train(&rig, t.f, t.len, t.size, t.ifindex)) {
		tap_note("%s", rig.diff);
		lab_same = false;
	}
}

static unsigned int pseudo(const uint8_t *f)
{
	return frame_sum(f + FRAME_IP + 12, 8, 17 + frame_get16(f + FRAME_UDP + 4));
}

static void run(void)
{
	frame_be16(t.f + FRAME_UDP + 4, t.len - FRAME_UDP);
	run_as(pseudo(t.f));
}

static const struct saina_hdr *got(unsigned int i)
{
	return (const void *)(rig.got + FRAME_HDR + i * t.size);
}

static int32_t value(unsigned int i)
{
	int32_t v;

	memcpy(&v, got(i) + 1, sizeof(v));
	return v;
}

static bool redirected(void)
{
	return rig.want.verdict == ORACLE_REDIRECT;
}

static bool is(unsigned int i, int type, uint32_t segment, int32_t v)
{
	return got(i)->type == type && got(i)->segment == segment && value(i) == v;
}

static bool all_zero(const uint8_t *p, unsigned int n)
{
	while (n && !*p)
		p++, n--;
	return !n;
}

static bool is_nop(unsigned int i, unsigned int len)
{
	return got(i)->type == SAINA_MSG_NOP && got(i)->version == SAINA_PROTO_VERSION &&
	       all_zero((const uint8_t *)got(i) + 2, len - 2);
}

static void test_whole(void)
{
	struct lab l = lab_job(5, 2, 4, lab_bsp());
	bool ok;

	begin(MESSAGE);
	for (uint32_t s = 0; s < 4; s++)
		grad(&l, 0, 0, s, 10 + s);
	run();
	lab_verdict(&l, !redirected(), "tc: a frame that completes nothing ends here");
	begin(MESSAGE);
	for (uint32_t s = 0; s < 4; s++)
		grad(&l, 1, 0, s, 20);
	run();
	ok = redirected() && rig.want.multicast && rig.len == t.len;
	for (uint32_t s = 0; s < 4; s++)
		ok &= is(s, SAINA_MSG_RESULT, s, 30 + s) && got(s)->contributors == 2;
	lab_verdict(&l, ok, "tc: a frame that completes four segments leaves with their sums, to all");
}

static void test_partly(void)
{
	struct lab l = lab_job(5, 2, 4, lab_bsp());

	begin(MESSAGE);
	grad(&l, 0, 0, 1, 1);
	grad(&l, 0, 0, 3, 3);
	run();
	begin(MESSAGE);
	for (uint32_t s = 0; s < 4; s++)
		grad(&l, 1, 0, s, 100);
	run();
	lab_verdict(&l, redirected() && is(1, SAINA_MSG_RESULT, 1, 101) &&
			is(3, SAINA_MSG_RESULT, 3, 103) && is_nop(0, MESSAGE) && is_nop(2, MESSAGE),
		    "tc: what completes nothing leaves as NOP, without a byte of the gradient");
}

static void test_wrong_among_right(void)
{
	struct lab l = lab_job(5, 2, 4, lab_bsp()), m = lab_job(6, 2, 4, lab_bsp());
	bool ok;

	begin(MESSAGE);
	grad(&l, 0, 0, 0, 1);
	grad(&m, 0, 0, 1, 1);		/* of another job, not from that worker's place */
	grad(&l, 1, 0, 2, 1);		/* of another worker */
	grad(&l, 0, 0, 9, 1);		/* of a segment beyond the gradient */
	grad(&l, 0, 0, 3, 1);
	more(&l, SAINA_MSG_GRAD, 0, 0, 1, 1, 40);	/* less than a header */
	run();
	ok = !redirected() && lab_counter(&l, 0, SAINA_C_STORED) == 2 &&
	     lab_counter(&l, 0, SAINA_C_SEGMENT) == 1 && lab_counter(&l, 1, SAINA_C_BAD_MAC) == 1 &&
	     lab_counter(&m, 0, SAINA_C_BAD_MAC) == 1;
	lab_verdict(&l, ok, "tc: each message of a frame is checked on its own, the good ones count");
}

static void test_size(void)
{
	struct lab l = lab_job(5, 2, 4, lab_bsp());

	begin(MESSAGE - 4);
	for (uint32_t s = 0; s < 4; s++)
		grad(&l, 0, 0, s, 1);
	run();
	lab_verdict(&l, !redirected() && !lab_counter(&l, 0, SAINA_C_STORED) &&
			lab_counter(&l, 0, SAINA_C_LENGTH) == 1,
		    "tc: with a gso_size that is not the messages' none of them counts");
}

static void test_no_size(void)
{
	struct lab l = lab_job(5, 2, 4, lab_bsp());

	begin(0);
	for (uint32_t s = 0; s < 4; s++)
		grad(&l, 0, 0, s, 1);
	run();
	lab_verdict(&l, !redirected() && !lab_counter(&l, 0, SAINA_C_STORED) &&
			lab_counter(&l, 0, SAINA_C_LENGTH) == 1,
		    "tc: several messages without gso_size are one of a wrong length");
}

static void test_too_many(void)
{
	struct lab l = lab_job(5, 2, 4, lab_bsp());
	uint64_t before = rig.o.gcount.c[SAINA_C_LENGTH];

	begin(sizeof(struct saina_hdr));
	for (unsigned int i = 0; i < 70; i++)
		more(&l, SAINA_MSG_PROBE, 0, 0, 0, 0, sizeof(struct saina_hdr));
	run();
	lab_verdict(&l, !redirected() && !lab_counter(&l, 0, SAINA_C_PROBED) &&
			rig.o.gcount.c[SAINA_C_LENGTH] == before + 1 && rig_check_global(&rig),
		    "tc: a frame of 70 messages is dropped");
	begin(sizeof(struct saina_hdr));
	for (unsigned int i = 0; i < 64; i++)
		more(&l, SAINA_MSG_PROBE, 0, 0, 0, 0, sizeof(struct saina_hdr));
	run();
	lab_verdict(&l, redirected() && lab_counter(&l, 0, SAINA_C_PROBED) == 64 &&
			got(63)->type == SAINA_MSG_PROBE_REPLY,
		    "tc: a frame of 64 messages has 64 answers");
}

static void test_two_jobs(void)
{
	struct lab l = lab_job(5, 1, 4, lab_bsp()), m = lab_job(6, 1, 4, lab_bsp());

	/* one socket in two jobs */
	memcpy(m.conf.worker[0].mac, l.conf.worker[0].mac, 6);
	m.conf.worker[0].ip = l.conf.worker[0].ip;
	m.conf.worker[0].udp_port = l.conf.worker[0].udp_port;
	lab_publish(&m);
	begin(MESSAGE);
	grad(&l, 0, 0, 0, 5);
	grad(&m, 0, 0, 0, 6);
	run();
	lab_verdict(&l, redirected() && is(0, SAINA_MSG_RESULT, 0, 5) && is_nop(1, MESSAGE) &&
			lab_counter(&m, 0, SAINA_C_UNSENT) == 1 &&
			lab_counter(&m, 0, SAINA_C_COMPLETED) == 1,
		    "tc: a frame has results of one job, the other job's is not sent");
	begin(MESSAGE);
	more(&m, SAINA_MSG_PULL, 0, 0, 0, 0, MESSAGE);
	run();
	lab_verdict(&m, redirected() && is(0, SAINA_MSG_RESULT, 0, 6),
		    "tc: a result that was not sent is had by PULL");
}

static void test_displaced(void)
{
	struct lab l = lab_job(5, 2, 4, lab_fastest(1));

	begin(MESSAGE);
	grad(&l, 0, 0, 0, 5);
	run();
	begin(MESSAGE);
	grad(&l, 1, 0, 0, 7);		/* late: an answer to it alone */
	grad(&l, 1, 0, 1, 8);		/* a result for all */
	run();
	lab_verdict(&l, redirected() && rig.want.multicast && is_nop(0, MESSAGE) &&
			is(1, SAINA_MSG_RESULT, 1, 8) && lab_counter(&l, 1, SAINA_C_UNSENT) == 1,
		    "tc: a result for all displaces an answer to one");
}

static void test_stale(void)
{
	struct lab l = lab_job(5, 1, 4, lab_bsp());
	bool ok;

	for (uint32_t r = 0; r < 4; r++) {
		begin(MESSAGE);
		for (uint32_t s = 0; s < 4; s++)
			grad(&l, 0, r, s, 1);
		run();
	}
	begin(MESSAGE);
	grad(&l, 0, 0, 0, 7);
	grad(&l, 0, 0, 1, 7);
	run();
	ok = redirected() && !rig.want.multicast && rig.len == t.len;
	for (unsigned int i = 0; i < 2; i++)
		ok &= got(i)->type == SAINA_MSG_STALE && got(i)->slot_round == 4 &&
		      all_zero((const void *)(got(i) + 1), 4 * LAB_ELEMS);
	lab_verdict(&l, ok, "tc: a STALE is followed by zeros, and says which round comes next");
}

static void test_checksums(void)
{
	struct lab l = lab_job(5, 1, 4, lab_bsp());
	bool ok;

	begin(MESSAGE);
	grad(&l, 0, 0, 0, 5);
	grad(&l, 0, 0, 1, 5);
	run();
	ok = redirected() && frame_get16(rig.got + FRAME_UDP + 6) == pseudo(rig.got);
	begin(MESSAGE);
	more(&l, SAINA_MSG_PULL, 0, 0, 0, 0, MESSAGE);
	more(&l, SAINA_MSG_PULL, 0, 0, 1, 0, MESSAGE);
	run_as(0x1234);
	ok &= redirected() && frame_get16(rig.got + FRAME_UDP + 6) == pseudo(rig.got);
	lab_verdict(&l, ok, "tc: the UDP checksums of a super-packet are prepared for whoever cuts it up");
	begin(0);
	grad(&l, 0, 0, 2, 5);
	run_as(0x1234);
	ok = redirected() && !frame_get16(rig.got + FRAME_UDP + 6);
	begin(0);
	grad(&l, 0, 0, 3, 5);
	/* finished, and by chance the sum of the pseudo header */
	run();
	ok &= redirected() && !frame_get16(rig.got + FRAME_UDP + 6);
	lab_verdict(&l, ok, "tc: a frame whose UDP checksum is finished leaves without one");
}

/* The lengths say that the frame ends @bytes bytes before it does. */
static void run_short(unsigned int bytes)
{
	frame_be16(t.f + FRAME_IP + 2, t.len - bytes - FRAME_IP);
	frame_be16(t.f + FRAME_UDP + 4, t.len - bytes - FRAME_UDP);
	frame_ip_checksum(t.f);
	if (!rig_train(&rig, t.f, t.len, t.size, t.ifindex)) {
		tap_note("%s", rig.diff);
		lab_same = false;
	}
}

static void test_behind(void)
{
	struct lab l = lab_job(5, 1, 4, lab_bsp());
	uint64_t before = rig.o.gcount.c[SAINA_C_FRAGMENT];
	bool ok;

	for (unsigned int n = 1; n < 4; n++) {
		begin(MESSAGE);
		grad(&l, 0, 0, 0, 5);
		for (unsigned int i = 0; i < n; i++)
			more(&l, SAINA_MSG_RESULT, 0, 0, 1 + i, 666, MESSAGE);
		run_short(n * MESSAGE);
		if (redirected())
			break;
	}
	ok = !redirected() && !lab_counter(&l, 0, SAINA_C_STORED) &&
	     rig.o.gcount.c[SAINA_C_FRAGMENT] == before + 3 && rig_check_global(&rig);
	lab_verdict(&l, ok, "tc: a super-packet that goes on where its datagram ends is dropped");
	begin(0);
	grad(&l, 0, 0, 0, 5);
	more(&l, SAINA_MSG_RESULT, 0, 0, 1, 666, MESSAGE);
	t.size = 0;
	run_short(MESSAGE);
	ok = redirected() && rig.len == FRAME_HDR + MESSAGE;
	t.size = MESSAGE;
	lab_verdict(&l, ok && is(0, SAINA_MSG_RESULT, 0, 5),
		    "tc: what lies behind the datagram of a frame is not sent to others");
}

static void test_control(void)
{
	struct lab l = lab_job(5, 2, 4, lab_bsp());
	uint64_t before = rig.o.gcount.c[SAINA_C_FRAGMENT];
	unsigned int size = sizeof(struct saina_hdr);

	/* the second one in the name of another worker */
	begin(size);
	more(&l, SAINA_MSG_HEARTBEAT, 0, 0, 0, 0, size);
	more(&l, SAINA_MSG_LEAVE, 1, 0, 0, 0, size);
	frame_be16(t.f + FRAME_UDP + 2, SAINA_PORT_CTRL);
	run();
	lab_verdict(&l, rig.want.verdict == ORACLE_DROP && rig_check_global(&rig) &&
			rig.o.gcount.c[SAINA_C_FRAGMENT] == before + 1,
		    "tc: a super-packet of control messages is dropped, for only its first one would be checked");
}

static void test_no_outlet(void)
{
	struct lab l = lab_job(7, 1, 4, lab_bsp());
	uint64_t before = rig.o.gcount.c[SAINA_C_INTERNAL];

	rig_set_outlet(&rig, 7, 0);
	begin(MESSAGE);
	grad(&l, 0, 0, 0, 5);
	frame_be16(t.f + FRAME_UDP + 4, t.len - FRAME_UDP);
	run_as(pseudo(t.f));
	/* the oracle knows no outlets */
	rig.o.gcount.c[SAINA_C_INTERNAL]++;
	lab_same = strstr(rig.diff, "want it redirected") && rig_check_global(&rig);
	rig_set_outlet(&rig, 7, rig.port[0]);
	begin(MESSAGE);
	more(&l, SAINA_MSG_PULL, 0, 0, 0, 0, MESSAGE);
	run();
	lab_verdict(&l, redirected() && is(0, SAINA_MSG_RESULT, 0, 5) &&
			rig.o.gcount.c[SAINA_C_INTERNAL] == before + 1,
		    "tc: without an outlet the result is counted as internal, and had by PULL");
}

/* Through the program alone: the oracle has no clock. */
static void test_ask_flood(void)
{
	struct lab l = lab_job(5, 1, 4, lab_bsp());
	unsigned int size = sizeof(struct saina_hdr) + sizeof(struct saina_ask), longest = 0;
	struct saina_counters c = {};
	uint64_t sent = 0;

	begin(size);
	for (unsigned int i = 0; i < 40; i++)
		more(&l, SAINA_MSG_ASK, 0, 0, 0, 0, size);
	frame_be16(t.f + FRAME_IP + 2, t.len - FRAME_IP);
	frame_be16(t.f + FRAME_UDP + 4, t.len - FRAME_UDP);
	frame_ip_checksum(t.f);
	frame_be16(t.f + FRAME_UDP + 6, pseudo(t.f));
	for (unsigned int n = 0; n < 2000 && !c.c[SAINA_C_ASK_LIMIT]; n++) {
		rig_train_alone(&rig, t.f, t.len, t.size, t.ifindex);
		if (rig.len > longest)
			longest = rig.len;
		sent += 40;
		rig_counters(&rig, 5, 0, &c);
	}
	rig.o.job[5].wcount[0].c[SAINA_C_ASKED] = c.c[SAINA_C_ASKED];
	rig.o.job[5].wcount[0].c[SAINA_C_ASK_LIMIT] = c.c[SAINA_C_ASK_LIMIT];
	lab_verdict(&l, c.c[SAINA_C_ASK_LIMIT] && c.c[SAINA_C_ASKED] >= 64 &&
			c.c[SAINA_C_ASKED] + c.c[SAINA_C_ASK_LIMIT] == sent && longest <= t.len,
		    "tc: a flood of questions is answered within a budget, the rest is counted");
}

int main(void)
{
	rig_open(&rig);
	rig_use_tc(&rig);
	test_whole();
	test_partly();
	test_wrong_among_right();
	test_size();
	test_no_size();
	test_too_many();
	test_two_jobs();
	test_displaced();
	test_stale();
	test_checksums();
	test_behind();
	test_control();
	test_no_outlet();
	test_ask_flood();
	rig_close(&rig);
	return tap_done();
}
