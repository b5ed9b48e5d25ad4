// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Shared memory: which doorbells leave together (userland/lib/reduce/round.h).  One worker, memory of
 * the test's own in the place of what the agent lends, a clock of the test's own.
 */
#include <stdlib.h>
#include <string.h>
#include "reduce/round.h"
#include "../lib/statement.h"

#define PAYLOAD	 32
#define CUT	 8
#define BATCHES	 4	/* in flight at most: the window is fixed */
#define SEGMENTS (8 * CUT)
#define POOL	 (BATCHES * CUT)
#define SESSION	 77
#define RING	 4
#define ENTRY	 (sizeof(struct saina_input_head) + 4 * PAYLOAD)
#define START	 (1000 * MSEC)

static struct {
	struct saina_job job;
	struct saina_shm shm;
	struct saina_round r;
	struct saina_req req;
	uint8_t input[POOL * ENTRY];
	uint8_t output[RING * SEGMENTS * ENTRY];
	int32_t gradient[SEGMENTS * PAYLOAD];
	uint8_t out[65536];
	size_t len;
	uint64_t when;
} s;

static int begin(void **state)
{
	memset(&s, 0, sizeof(s));
	s.job = (struct saina_job){
		.id = 3, .session = SESSION, .worker = 0, .workers = 2, .elem = SAINA_ELEM_INT32,
		.elements = SEGMENTS * PAYLOAD, .segments = SEGMENTS, .payload = PAYLOAD, .pool = POOL,
		.ring = RING, .wire = 4 * PAYLOAD, .msglen = sizeof(struct saina_hdr) + 4 * PAYLOAD,
		.per_batch = CUT, .heartbeat_ms = 500, .dead_ms = 5000, .by_reference = true,
	};
	s.shm = (struct saina_shm){
		.fd = -1, .session = SESSION, .output_id = 1, .wanted_id = 1, .input = s.input,
		.output = s.output, .entry = ENTRY, .segments = SEGMENTS, .ring = RING, .pool = POOL,
	};
	assert_int_equal(saina_round_init(&s.r, &s.job, BATCHES, BATCHES * CUT, 0), 0);
	s.r.shm = &s.shm;
	saina_flow_begin(&s.r.flow, 0, true, START);
	for (size_t i = 0; i < SEGMENTS * PAYLOAD; i++)
		s.gradient[i] = i;
	s.req.t = (struct saina_tensor){ .buf = s.gradient, .n = SEGMENTS * PAYLOAD, .type = SAINA_INT32 };
	s.req.op = SAINA_SUM;
	return 0;
}

static int end(void **state)
{
	saina_round_exit(&s.r);
	return 0;
}

static unsigned int output(uint64_t now)
{
	unsigned int n = saina_round_output(&s.r, now, s.out, &s.len, &s.when);

	saina_round_sent(&s.r, s.out, n, s.len);
	return n;
}

static const struct saina_hdr *message(unsigned int i)
{
	return (const void *)(s.out + i * s.len);
}

static void assert_doorbell(unsigned int i, uint32_t first, uint64_t posted)
{
	const struct saina_hdr *h = message(i);
	const struct saina_doorbell *doorbell = (const void *)(h + 1);

	assert_int_equal(h->type, SAINA_MSG_DOORBELL);
	assert_int_equal(le32toh(h->segment), first);
	assert_int_equal(le64toh(doorbell->posted), posted);
}

static void assert_input(uint32_t segment)
{
	const struct saina_input_head *in = saina_shm_input(&s.shm, segment);

	assert_int_equal(in->session, SESSION);
	assert_int_equal(in->segment, segment);
	assert_memory_equal(in + 1, s.gradient + segment * PAYLOAD, 4 * PAYLOAD);
}

/* COMPLETION of these segments from @first on. */
static void complete(uint32_t first, uint64_t done, uint64_t now)
{
	struct {
		struct saina_hdr h;
		struct saina_doorbell doorbell;
	} m = { .h = { .version = SAINA_PROTO_VERSION, .type = SAINA_MSG_COMPLETION },
		.doorbell = { .done = htole64(done) } };

	m.h.segment = htole32(first);
	saina_round_input(&s.r, &m.h, now);
}

/* ASK_REPLY of batch @j, asked just now: nothing has come in. */
static void lose(unsigned int j, uint64_t now)
{
	struct {
		struct saina_hdr h;
		struct saina_ask ask;
	} m = { .h = { .version = SAINA_PROTO_VERSION, .type = SAINA_MSG_ASK_REPLY } };

	m.h.segment = htole32(j * CUT);
	m.ask.time = htole64(now);
	saina_round_input(&s.r, &m.h, now);
}

/* All batches that the window has room for are one batch of doorbells. */
static void test_together(void **state)
{
	saina_round_start(&s.r, &s.req, START);
	assert_int_equal(output(START), BATCHES);
	assert_int_equal(s.len, sizeof(struct saina_hdr) + sizeof(struct saina_doorbell));
	for (unsigned int j = 0; j < BATCHES; j++) {
		assert_doorbell(j, j * CUT, (1 << CUT) - 1);
		for (unsigned int i = 0; i < CUT; i++)
			assert_input(j * CUT + i);
	}
	assert_int_equal(output(START), 0);
	assert_int_equal(s.r.stats.sent, POOL);
}

/* Without the memory the same batches leave as gradients, one after the other. */
static void test_messages(void **state)
{
	s.shm.wanted_id = 2;
	saina_round_start(&s.r, &s.req, START);
	for (unsigned int j = 0; j < BATCHES; j++) {
		assert_int_equal(output(START), CUT);
		assert_int_equal(s.len, s.job.msglen);
		assert_int_equal(message(0)->type, SAINA_MSG_GRAD);
		assert_int_equal(le32toh(message(0)->segment), j * CUT);
	}
	assert_int_equal(output(START), 0);
}

/* The round is over for the others: results are fetched, unless they are in the output array. */
static void test_fetch(void **state)
{
	struct saina_output_head *b = (void *)(s.output + ENTRY);
	const struct saina_hdr *h;

	saina_flow_next(&s.r.flow, 2, START);
	saina_round_start(&s.r, &s.req, START);
	*b = (struct saina_output_head){ .state = SAINA_OUTPUT_VALID, .segment = 1, .mask = 2, .contributors = 1, .k = 1 };
	assert_true(output(START) > 0);
	h = message(0);
	assert_int_equal(h->type, SAINA_MSG_FETCH);
	assert_int_equal(le32toh(h->segment), 0);
	assert_int_equal(le64toh(((const struct saina_doorbell *)(h + 1))->posted), ((1 << CUT) - 1) & ~2);
	assert_int_equal(s.r.stats.results, 1);
	assert_true(s.r.stats.pulled >= CUT - 1);
	/* that of segment 2 is there, those of 3 to 5 are another segment's, another round's, being written */
	for (uint32_t i = 2; i <= 5; i++) {
		b = (void *)(s.output + i * ENTRY);
		*b = (struct saina_output_head){
			.state = i == 5 ? 0 : SAINA_OUTPUT_VALID, .segment = i == 3 ? 9 : i,
			.round = i == 4 ? RING : 0, .mask = 2, .contributors = 1,
		};
	}
	complete(0, 0xff, START);
	assert_int_equal(s.r.stats.results, 2);
	/* that of segment 6 is a tree's, of other jobs' workers */
	b = (void *)(s.output + 6 * ENTRY);
	*b = (struct saina_output_head){ .state = SAINA_OUTPUT_VALID, .segment = 6, .weight = 8 };
	complete(0, 0xff, START);
	assert_int_equal(s.r.stats.results, 2);
	s.job.tree = true;
	s.job.weight = 8;
	complete(0, 0xff, START);
	assert_int_equal(s.r.stats.results, 3);
	assert_int_equal(s.r.grad.state[6].last.weight, 8);
}

/* Where nothing may go in a message, nothing leaves before there is shared memory. */
static void test_only(void **state)
{
	s.job.by_reference = SAINA_REFERENCE_ONLY;
	s.shm.wanted_id = 0;
	saina_round_start(&s.r, &s.req, START);
	assert_int_equal(output(START), 0);
	assert_true(s.when > START && s.when < START + 1000 * MSEC);
	s.shm.wanted_id = 1;
	assert_int_equal(output(START), BATCHES);
	assert_doorbell(0, 0, (1 << CUT) - 1);
}

/* A question is not as long as a doorbell: it is what leaves next, and is not forgotten. */
static void test_question(void **state)
{
	const uint64_t now = START + MSEC;
	unsigned int asked = 0, decided = 0;

	saina_round_start(&s.r, &s.req, START);
	assert_int_equal(output(START), BATCHES);
	lose(0, now);
	assert_int_equal(output(now), 1);
	assert_doorbell(0, 0, (1 << CUT) - 1);
	assert_int_equal(message(0)->flags, SAINA_F_RETRANSMIT);
	/* Much was lost, so the flow machine asks at once; what it decided on leaves. */
	for (unsigned int n; (n = output(now)); asked += n) {
		assert_int_equal(message(0)->type, SAINA_MSG_ASK);
		assert_int_equal(s.len, sizeof(struct saina_hdr) + sizeof(struct saina_ask));
	}
	for (unsigned int j = 0; j < BATCHES; j++)
		decided += s.r.flow.batch[j].unanswered;
	assert_true(decided > 0);
	assert_int_equal(asked, decided);
}

/* A batch has an end, and the rest is the next one. */
static void test_limit(void **state)
{
	saina_round_exit(&s.r);
	s.job.per_batch = 1;
	assert_int_equal(saina_round_init(&s.r, &s.job, POOL, POOL, 0), 0);
	s.r.shm = &s.shm;
	saina_flow_begin(&s.r.flow, 0, true, START);
	saina_round_start(&s.r, &s.req, START);
	for (uint32_t i = 0; i < POOL; i += SAINA_DOORBELLS_MAX) {
		assert_int_equal(output(START), SAINA_DOORBELLS_MAX);
		for (unsigned int j = 0; j < SAINA_DOORBELLS_MAX; j++)
			assert_doorbell(j, i + j, 1);
	}
	assert_int_equal(output(START), 0);
}

/* The pool need not be whole batches: what it has room for leaves at once. */
static void test_small(void **state)
{
	saina_round_exit(&s.r);
	s.job.segments = s.job.pool = CUT + 1;
	s.job.elements = s.req.t.n = (CUT + 1) * PAYLOAD;
	assert_int_equal(saina_round_init(&s.r, &s.job, BATCHES, 0, 0), 0);
	s.r.shm = &s.shm;
	saina_flow_begin(&s.r.flow, 0, true, START);
	saina_round_start(&s.r, &s.req, START);
	assert_int_equal(output(START), 2);
	assert_doorbell(0, 0, (1 << CUT) - 1);
	assert_doorbell(1, CUT, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement_with("shared memory: doorbells of all batches that the window has room for leave together",
			       test_together, begin, end),
		statement_with("without shared memory: each batch leaves as a batch of gradients",
			       test_messages, begin, end),
		statement_with("shared memory: a question leaves after the doorbells that it would be mixed with",
			       test_question, begin, end),
		statement_with("shared memory: more doorbells than fit a batch leave in several",
			       test_limit, begin, end),
		statement_with("shared memory: a gradient of one batch and a part of one leaves at once",
			       test_small, begin, end),
		statement_with("shared memory: results that are not there are fetched, those of others are not taken",
			       test_fetch, begin, end),
		statement_with("shared memory only: nothing leaves before there is shared memory",
			       test_only, begin, end),
	};

	return cmocka_run_group_tests_name("shared memory", tests, NULL, NULL);
}
