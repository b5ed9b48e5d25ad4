// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Batches at the tc hook, made by hand: which messages the frame that leaves must have, and what
 * becomes of bad batches.  All of them go through the oracle as well.
 */
#include <arpa/inet.h>
#include "test_job.h"
#include "harness_shm.h"

struct harness harness;
bool agrees;

#define MESSAGE	(sizeof(struct saina_hdr) + 4 * JOB_ELEMS)

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
static void more(const struct job *j, int type, unsigned int w, uint32_t round, uint32_t segment,
		 int32_t value, unsigned int len)
{
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = type, .elem = SAINA_ELEM_INT32,
		.job = j->conf.job, .session = j->conf.worker[w].session, .round = round,
		.segment = segment, .worker = w, .exponent = JOB_EXPONENT,
		.count = type == SAINA_MSG_GRAD || type == SAINA_MSG_PULL || type == SAINA_MSG_READ ?
				 JOB_ELEMS : 0,
	};
	uint8_t one[FRAME_MAX];
	int32_t v[JOB_ELEMS];

	for (unsigned int i = 0; i < JOB_ELEMS; i++)
		v[i] = value;
	frame_make(one, &harness.g, &j->conf.worker[w], &h, v, sizeof(v));
	if (!t.len) {
		memcpy(t.f, one, FRAME_HDR);
		t.len = FRAME_HDR;
		t.ifindex = j->conf.worker[w].ifindex;
	}
	memcpy(t.f + t.len, one + FRAME_HDR, len);
	t.len += len;
}

static void grad(const struct job *j, unsigned int w, uint32_t round, uint32_t segment, int32_t v)
{
	more(j, SAINA_MSG_GRAD, w, round, segment, v, MESSAGE);
}

static void run_as(unsigned int checksum)
{
	frame_be16(t.f + FRAME_IP + 2, t.len - FRAME_IP);
	frame_be16(t.f + FRAME_UDP + 4, t.len - FRAME_UDP);
	frame_ip_checksum(t.f);
	frame_be16(t.f + FRAME_UDP + 6, checksum);
	if (!harness_batch(&harness, t.f, t.len, t.size, t.ifindex)) {
		tap_note("%s", harness.diff);
		agrees = false;
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
	return (const void *)(harness.got + FRAME_HDR + i * t.size);
}

static int32_t value(unsigned int i)
{
	int32_t v;

	memcpy(&v, got(i) + 1, sizeof(v));
	return v;
}

static bool redirected(void)
{
	return harness.want.verdict == ORACLE_REDIRECT;
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
	struct job j = job_create(5, 2, 4, policy_bsp());
	bool ok;

	begin(MESSAGE);
	for (uint32_t s = 0; s < 4; s++)
		grad(&j, 0, 0, s, 10 + s);
	run();
	job_verdict(&j, !redirected(), "tc: a frame that completes nothing ends here");
	begin(MESSAGE);
	for (uint32_t s = 0; s < 4; s++)
		grad(&j, 1, 0, s, 20);
	run();
	ok = redirected() && harness.want.multicast && harness.len == t.len;
	for (uint32_t s = 0; s < 4; s++)
		ok &= is(s, SAINA_MSG_RESULT, s, 30 + s) && got(s)->contributors == 2;
	job_verdict(&j, ok, "tc: a frame that completes four segments leaves with their sums, to all");
}

static void test_partly(void)
{
	struct job j = job_create(5, 2, 4, policy_bsp());

	begin(MESSAGE);
	grad(&j, 0, 0, 1, 1);
	grad(&j, 0, 0, 3, 3);
	run();
	begin(MESSAGE);
	for (uint32_t s = 0; s < 4; s++)
		grad(&j, 1, 0, s, 100);
	run();
	job_verdict(&j, redirected() && is(1, SAINA_MSG_RESULT, 1, 101) &&
			is(3, SAINA_MSG_RESULT, 3, 103) && is_nop(0, MESSAGE) && is_nop(2, MESSAGE),
		    "tc: a message that completes nothing leaves as NOP, without a byte of the gradient");
}

static void test_wrong_among_right(void)
{
	struct job j = job_create(5, 2, 4, policy_bsp()), m = job_create(6, 2, 4, policy_bsp());
	bool ok;

	begin(MESSAGE);
	grad(&j, 0, 0, 0, 1);
	grad(&m, 0, 0, 1, 1);		/* of another job, not from that worker's place */
	grad(&j, 1, 0, 2, 1);		/* of another worker */
	grad(&j, 0, 0, 9, 1);		/* of a segment beyond the gradient */
	grad(&j, 0, 0, 3, 1);
	more(&j, SAINA_MSG_GRAD, 0, 0, 1, 1, 40);	/* less than a header */
	run();
	ok = !redirected() && job_counter(&j, 0, SAINA_C_STORED) == 2 &&
	     job_counter(&j, 0, SAINA_C_SEGMENT) == 1 && job_counter(&j, 1, SAINA_C_BAD_MAC) == 1 &&
	     job_counter(&m, 0, SAINA_C_BAD_MAC) == 1;
	job_verdict(&j, ok, "tc: each message of a frame is checked on its own, the good ones count");
}

static void test_size(void)
{
	struct job j = job_create(5, 2, 4, policy_bsp());

	begin(MESSAGE - 4);
	for (uint32_t s = 0; s < 4; s++)
		grad(&j, 0, 0, s, 1);
	run();
	job_verdict(&j, !redirected() && !job_counter(&j, 0, SAINA_C_STORED) &&
			job_counter(&j, 0, SAINA_C_LENGTH) == 1,
		    "tc: a frame whose gso_size is not the length of its messages is dropped whole");
}

static void test_no_size(void)
{
	struct job j = job_create(5, 2, 4, policy_bsp());

	begin(0);
	for (uint32_t s = 0; s < 4; s++)
		grad(&j, 0, 0, s, 1);
	run();
	job_verdict(&j, !redirected() && !job_counter(&j, 0, SAINA_C_STORED) &&
			job_counter(&j, 0, SAINA_C_LENGTH) == 1,
		    "tc: several messages without gso_size are one of a wrong length");
}

static void test_too_many(void)
{
	struct job j = job_create(5, 2, 4, policy_bsp());
	uint64_t before = harness.o.gcount.c[SAINA_C_LENGTH];

	begin(sizeof(struct saina_hdr));
	for (unsigned int i = 0; i < 70; i++)
		more(&j, SAINA_MSG_PROBE, 0, 0, 0, 0, sizeof(struct saina_hdr));
	run();
	job_verdict(&j, !redirected() && !job_counter(&j, 0, SAINA_C_PROBED) &&
			harness.o.gcount.c[SAINA_C_LENGTH] == before + 1 && harness_check_global(&harness),
		    "tc: a frame of 70 messages is dropped");
	begin(sizeof(struct saina_hdr));
	for (unsigned int i = 0; i < 64; i++)
		more(&j, SAINA_MSG_PROBE, 0, 0, 0, 0, sizeof(struct saina_hdr));
	run();
	job_verdict(&j, redirected() && job_counter(&j, 0, SAINA_C_PROBED) == 64 &&
			got(63)->type == SAINA_MSG_PROBE_REPLY,
		    "tc: a frame of 64 messages has 64 answers");
}

static void test_two_jobs(void)
{
	struct job j = job_create(5, 1, 4, policy_bsp()), m = job_create(6, 1, 4, policy_bsp());

	/* one socket in two jobs */
	memcpy(m.conf.worker[0].mac, j.conf.worker[0].mac, 6);
	m.conf.worker[0].ip = j.conf.worker[0].ip;
	m.conf.worker[0].udp_port = j.conf.worker[0].udp_port;
	job_publish(&m);
	begin(MESSAGE);
	grad(&j, 0, 0, 0, 5);
	grad(&m, 0, 0, 0, 6);
	run();
	job_verdict(&j, redirected() && is(0, SAINA_MSG_RESULT, 0, 5) && is_nop(1, MESSAGE) &&
			job_counter(&m, 0, SAINA_C_UNSENT) == 1 &&
			job_counter(&m, 0, SAINA_C_COMPLETED) == 1,
		    "tc: a frame has results of one job, the other job's is not sent");
	begin(MESSAGE);
	more(&m, SAINA_MSG_PULL, 0, 0, 0, 0, MESSAGE);
	run();
	job_verdict(&m, redirected() && is(0, SAINA_MSG_RESULT, 0, 6),
		    "tc: a result that was not sent is fetched by PULL");
}

static void test_displaced(void)
{
	struct job j = job_create(5, 2, 4, policy_fastest(1));

	begin(MESSAGE);
	grad(&j, 0, 0, 0, 5);
	run();
	begin(MESSAGE);
	grad(&j, 1, 0, 0, 7);		/* late: an answer to it alone */
	grad(&j, 1, 0, 1, 8);		/* a result for all */
	run();
	job_verdict(&j, redirected() && harness.want.multicast && is_nop(0, MESSAGE) &&
			is(1, SAINA_MSG_RESULT, 1, 8) && job_counter(&j, 1, SAINA_C_UNSENT) == 1,
		    "tc: a result for all displaces an answer to one");
}

static void test_stale(void)
{
	struct job j = job_create(5, 1, 4, policy_bsp());
	bool ok;

	for (uint32_t r = 0; r < 4; r++) {
		begin(MESSAGE);
		for (uint32_t s = 0; s < 4; s++)
			grad(&j, 0, r, s, 1);
		run();
	}
	begin(MESSAGE);
	grad(&j, 0, 0, 0, 7);
	grad(&j, 0, 0, 1, 7);
	run();
	ok = redirected() && !harness.want.multicast && harness.len == t.len;
	for (unsigned int i = 0; i < 2; i++)
		ok &= got(i)->type == SAINA_MSG_STALE && got(i)->slot_round == 4 &&
		      all_zero((const void *)(got(i) + 1), 4 * JOB_ELEMS);
	job_verdict(&j, ok, "tc: a STALE is followed by zeros, and says which round comes next");
}

static void test_checksums(void)
{
	struct job j = job_create(5, 1, 4, policy_bsp());
	bool ok;

	begin(MESSAGE);
	grad(&j, 0, 0, 0, 5);
	grad(&j, 0, 0, 1, 5);
	run();
	ok = redirected() && frame_get16(harness.got + FRAME_UDP + 6) == pseudo(harness.got);
	begin(MESSAGE);
	more(&j, SAINA_MSG_PULL, 0, 0, 0, 0, MESSAGE);
	more(&j, SAINA_MSG_PULL, 0, 0, 1, 0, MESSAGE);
	run_as(0x1234);
	ok &= redirected() && frame_get16(harness.got + FRAME_UDP + 6) == pseudo(harness.got);
	job_verdict(&j, ok, "tc: the UDP checksums of a GSO batch are prepared for its segmentation");
	begin(0);
	grad(&j, 0, 0, 2, 5);
	run_as(0x1234);
	ok = redirected() && !frame_get16(harness.got + FRAME_UDP + 6);
	begin(0);
	grad(&j, 0, 0, 3, 5);
	/* finished, and by chance the sum of the pseudo header */
	run();
	ok &= redirected() && !frame_get16(harness.got + FRAME_UDP + 6);
	job_verdict(&j, ok, "tc: a frame whose UDP checksum is finished leaves without one");
}

/* The lengths say that the frame ends @bytes bytes before it does. */
static void run_short(unsigned int bytes)
{
	frame_be16(t.f + FRAME_IP + 2, t.len - bytes - FRAME_IP);
	frame_be16(t.f + FRAME_UDP + 4, t.len - bytes - FRAME_UDP);
	frame_ip_checksum(t.f);
	if (!harness_batch(&harness, t.f, t.len, t.size, t.ifindex)) {
		tap_note("%s", harness.diff);
		agrees = false;
	}
}

static void test_behind(void)
{
	struct job j = job_create(5, 1, 4, policy_bsp());
	uint64_t before = harness.o.gcount.c[SAINA_C_FRAGMENT];
	bool ok;

	for (unsigned int n = 1; n < 4; n++) {
		begin(MESSAGE);
		grad(&j, 0, 0, 0, 5);
		for (unsigned int i = 0; i < n; i++)
			more(&j, SAINA_MSG_RESULT, 0, 0, 1 + i, 666, MESSAGE);
		run_short(n * MESSAGE);
		if (redirected())
			break;
	}
	ok = !redirected() && !job_counter(&j, 0, SAINA_C_STORED) &&
	     harness.o.gcount.c[SAINA_C_FRAGMENT] == before + 3 && harness_check_global(&harness);
	job_verdict(&j, ok, "tc: a GSO batch that goes on where its datagram ends is dropped");
	begin(0);
	grad(&j, 0, 0, 0, 5);
	more(&j, SAINA_MSG_RESULT, 0, 0, 1, 666, MESSAGE);
	t.size = 0;
	run_short(MESSAGE);
	ok = redirected() && harness.len == FRAME_HDR + MESSAGE;
	t.size = MESSAGE;
	job_verdict(&j, ok && is(0, SAINA_MSG_RESULT, 0, 5),
		    "tc: bytes behind the datagram of a frame are not sent to other workers");
}

/*
 * A message of worker 0, and a forged result behind its datagram: in a GSO batch it is dropped, else
 * only the answer is sent, to worker @to (0xff: all).
 */
static bool ends_with_answer(const struct job *j, int type, unsigned int body, int answer,
			     unsigned int to)
{
	unsigned int len = sizeof(struct saina_hdr) + body;
	uint64_t before = harness.o.gcount.c[SAINA_C_FRAGMENT];
	bool ok;

	begin(len);
	more(j, type, 0, 0, 0, 0, len);
	if (type == SAINA_MSG_DOORBELL || type == SAINA_MSG_FETCH)
		t.f[FRAME_PAYLOAD] = 1;		/* posted: segment 0 */
	more(j, SAINA_MSG_RESULT, 0, 0, 1, 666, MESSAGE);
	run_short(MESSAGE);
	ok = !redirected() && harness.o.gcount.c[SAINA_C_FRAGMENT] == before + 1;
	t.size = 0;
	run_short(MESSAGE);
	return ok && redirected() && harness.len == FRAME_HDR + len && got(0)->type == answer &&
	       got(0)->worker == to;
}

static void test_behind_others(void)
{
	struct job j = job_create(5, 1, 4, policy_bsp());
	struct saina_input_head *in;
	bool ok;

	if (harness_shm_set(&harness, 5, 0, true))
		tap_bail("%s", saina_dp_error(harness.dp));
	in = harness_shm_input(&harness, 5, 0, 0);
	in->session = j.conf.worker[0].session;
	in->round = in->segment = 0;
	in->exponent = JOB_EXPONENT;
	ok = ends_with_answer(&j, SAINA_MSG_DOORBELL, sizeof(struct saina_doorbell),
			      SAINA_MSG_COMPLETION, 0xff);
	ok &= ends_with_answer(&j, SAINA_MSG_FETCH, sizeof(struct saina_doorbell),
			       SAINA_MSG_COMPLETION, 0);
	job_verdict(&j, ok, "tc: bytes behind a DOORBELL or a FETCH are not sent to other workers");
	ok = ends_with_answer(&j, SAINA_MSG_PULL, 4 * JOB_ELEMS, SAINA_MSG_RESULT, 0);
	job_verdict(&j, ok, "tc: bytes behind a PULL are not sent to other workers");
	j = job_create(6, 1, 4, policy_ssp(2));
	ok = ends_with_answer(&j, SAINA_MSG_READ, 4 * JOB_ELEMS, SAINA_MSG_SUM, 0);
	ok &= ends_with_answer(&j, SAINA_MSG_CLOCK, 0, SAINA_MSG_GO, 0);
	job_verdict(&j, ok, "tc: bytes behind a READ or a CLOCK are not sent to other workers");
}

static void test_control(void)
{
	struct job j = job_create(5, 2, 4, policy_bsp());
	uint64_t before = harness.o.gcount.c[SAINA_C_FRAGMENT];
	unsigned int size = sizeof(struct saina_hdr);

	/* the second one in the name of another worker */
	begin(size);
	more(&j, SAINA_MSG_HEARTBEAT, 0, 0, 0, 0, size);
	more(&j, SAINA_MSG_LEAVE, 1, 0, 0, 0, size);
	frame_be16(t.f + FRAME_UDP + 2, SAINA_PORT_CTRL);
	run();
	job_verdict(&j, harness.want.verdict == ORACLE_DROP && harness_check_global(&harness) &&
			harness.o.gcount.c[SAINA_C_FRAGMENT] == before + 1,
		    "tc: a GSO batch of control messages is dropped, for only its first one would be checked");
}

static void test_no_fanout_ifb(void)
{
	struct job j = job_create(7, 1, 4, policy_bsp());
	uint64_t before = harness.o.gcount.c[SAINA_C_INTERNAL];

	harness_set_fanout_ifb(&harness, 7, 0);
	begin(MESSAGE);
	grad(&j, 0, 0, 0, 5);
	frame_be16(t.f + FRAME_UDP + 4, t.len - FRAME_UDP);
	run_as(pseudo(t.f));
	/* the oracle does not model the fan-out ifb */
	harness.o.gcount.c[SAINA_C_INTERNAL]++;
	agrees = strstr(harness.diff, "want it redirected") && harness_check_global(&harness);
	harness_set_fanout_ifb(&harness, 7, harness.port[0]);
	begin(MESSAGE);
	more(&j, SAINA_MSG_PULL, 0, 0, 0, 0, MESSAGE);
	run();
	job_verdict(&j, redirected() && is(0, SAINA_MSG_RESULT, 0, 5) &&
			harness.o.gcount.c[SAINA_C_INTERNAL] == before + 1,
		    "tc: a result without an ifb to send it to is counted as internal, and fetched by PULL");
}

/* Without the oracle: it has no clock. */
static void test_ask_flood(void)
{
	struct job j = job_create(5, 1, 4, policy_bsp());
	unsigned int size = sizeof(struct saina_hdr) + sizeof(struct saina_ask), longest = 0;
	struct saina_counters c = {};
	uint64_t sent = 0;

	begin(size);
	for (unsigned int i = 0; i < 40; i++)
		more(&j, SAINA_MSG_ASK, 0, 0, 0, 0, size);
	frame_be16(t.f + FRAME_IP + 2, t.len - FRAME_IP);
	frame_be16(t.f + FRAME_UDP + 4, t.len - FRAME_UDP);
	frame_ip_checksum(t.f);
	frame_be16(t.f + FRAME_UDP + 6, pseudo(t.f));
	for (unsigned int n = 0; n < 2000 && !c.c[SAINA_C_ASK_LIMIT]; n++) {
		harness_batch_alone(&harness, t.f, t.len, t.size, t.ifindex);
		if (harness.len > longest)
			longest = harness.len;
		sent += 40;
		harness_counters(&harness, 5, 0, &c);
	}
	harness.o.job[5].wcount[0].c[SAINA_C_ASKED] = c.c[SAINA_C_ASKED];
	harness.o.job[5].wcount[0].c[SAINA_C_ASK_LIMIT] = c.c[SAINA_C_ASK_LIMIT];
	job_verdict(&j, c.c[SAINA_C_ASK_LIMIT] && c.c[SAINA_C_ASKED] >= 64 &&
			c.c[SAINA_C_ASKED] + c.c[SAINA_C_ASK_LIMIT] == sent && longest <= t.len,
		    "tc: a flood of ASK messages is answered within a budget, the rest is counted");
}

int main(void)
{
	harness_open(&harness);
	harness_use_tc(&harness);
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
	test_behind_others();
	test_control();
	test_no_fanout_ifb();
	test_ask_flood();
	harness_close(&harness);
	return tap_done();
}
