// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a worker's rounds (userland/lib/reduce/round.h) say about exponents, message by message: one worker,
 * and a clock and answers of the test's own.
 */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "reduce/round.h"
#include "reduce/size_mismatch.h"
#include "../lib/statement.h"

#define PAYLOAD	 32
#define SEGMENTS 2
#define N	 (PAYLOAD + 7)	/* elements: the last segment is padded */
#define MSGLEN	 (sizeof(struct saina_hdr) + 4 * PAYLOAD)
#define ENTRY	 (sizeof(struct saina_input_head) + 4 * PAYLOAD)
#define ME	 1
#define START	 (1000 * MSEC)
#define E(e)	 ((e) - SAINA_EXPONENT_BIAS)	/* as on the wire */

struct message {
	struct saina_hdr h;
	int32_t v[PAYLOAD];
};

static struct {
	struct saina_job job;
	struct saina_round r;
	struct saina_req req;
	struct saina_shm shm;
	float buf[N];
	struct message out[SAINA_ASK_SEGMENTS];
	unsigned int n;
	uint64_t now;
	uint8_t input[SEGMENTS * ENTRY];
	_Alignas(64) uint8_t output[2 * SEGMENTS * ENTRY];
} s;

#define MINE   (1 << ME)
#define OTHERS (0xff & ~MINE)

static int begin(void **state)
{
	memset(&s, 0, sizeof(s));
	s.now = START;
	s.job = (struct saina_job){
		.id = 3, .session = 77, .worker = ME, .workers = 8, .elem = SAINA_ELEM_INT32, .exponent0 = E(20),
		.elements = N, .segments = SEGMENTS, .payload = PAYLOAD, .pool = 2, .ring = 4,
		.wire = 4 * PAYLOAD, .msglen = MSGLEN, .per_batch = 2, .heartbeat_ms = 500, .dead_ms = 5000,
	};
	assert_int_equal(saina_round_init(&s.r, &s.job, 1, 0, 0), 0);
	saina_flow_begin(&s.r.flow, 0, true, s.now);
	return 0;
}

static int end(void **state)
{
	saina_round_exit(&s.r);
	return 0;
}

/* What leaves now. */
static void output(void)
{
	uint64_t when;
	size_t len;

	s.n = saina_round_output(&s.r, s.now, (uint8_t *)s.out, &len, &when);
	assert_true(!s.n || len == MSGLEN || s.n == 1);
}

static void start_type(enum saina_type type)
{
	memset(&s.req, 0, sizeof(s.req));
	s.req.t = (struct saina_tensor){ .buf = s.buf, .n = N, .type = type };
	s.req.op = SAINA_SUM;
	saina_round_start(&s.r, &s.req, s.now);
	output();
}

/* All elements are @value. */
static void start(float value)
{
	for (int i = 0; i < N; i++)
		s.buf[i] = value;
	start_type(SAINA_FLOAT32);
	assert_int_equal(s.n, 2);
}

static void next(void)
{
	assert_true(s.req.finished);
	saina_round_forget(&s.r, &s.req);
	saina_flow_round(&s.r.flow, s.r.flow.round + 1);
}

/* The result of @segment of the present round: all sums are @sum. */
static struct message result_of(uint32_t round, uint32_t segment, int exponent, int32_t sum, uint64_t mask)
{
	struct message m = { .h = {
		.version = SAINA_PROTO_VERSION, .type = SAINA_MSG_RESULT, .elem = SAINA_ELEM_INT32, .job = 3,
		.round = round, .segment = segment, .count = PAYLOAD, .worker = SAINA_WORKER_ANY,
		.exponent = exponent, .contributors = __builtin_popcountll(mask), .mask = mask,
	} };

	for (int i = 0; i < PAYLOAD; i++)
		m.v[i] = sum;
	return m;
}

static void result(uint32_t segment, int exponent, int32_t sum, uint64_t mask)
{
	struct message m = result_of(s.r.flow.round, segment, exponent, sum, mask);

	saina_round_input(&s.r, &m.h, s.now);
}

static void results(int exponent, int32_t sum, uint64_t mask)
{
	for (uint32_t i = 0; i < SEGMENTS; i++)
		result(i, exponent, sum, mask);
	next();
}

/* The gradients of both segments were lost. */
static void lose(void)
{
	struct {
		struct saina_hdr h;
		struct saina_ask ask;
	} m = { .h = { .version = SAINA_PROTO_VERSION, .type = SAINA_MSG_ASK_REPLY, .round = s.r.flow.round } };

	m.ask.time = s.now = s.now + MSEC;
	saina_round_input(&s.r, &m.h, s.now);
}

static float residual(unsigned int i)
{
	return s.r.grad.state[i / PAYLOAD].residual ? ((float *)s.r.grad.residual)[i] : 0;
}

static void test_last(void **state)
{
	/* 8 workers: 1.0 is 2^27 units of the finest exponent at which it fits. */
	start(1);
	assert_int_equal(s.out[0].h.exponent, E(27));
	assert_int_equal(s.out[0].v[0], 1 << 27);
	results(E(25), 1 << 25, 0xff);
	start(1);
	assert_int_equal(s.out[0].h.exponent, E(25));
	results(E(22), 1 << 22, 0xff);
	start(1);
	assert_int_equal(s.out[0].h.exponent, E(27));	/* 5 bits are too many */
	results(E(30), 1 << 27, OTHERS);
	start(1);
	assert_int_equal(s.out[0].h.exponent, E(26));	/* 1 and the 1 of the residual */
	results(E(26), 1 << 27, 0xff);
	start(0);
	assert_int_equal(s.out[0].h.exponent, SAINA_EXPONENT_MAX);
	results(E(-90), 1, 0xff);
	start(-0.0f);
	assert_int_equal(s.out[0].h.exponent, SAINA_EXPONENT_MAX);
	assert_int_equal(s.out[0].v[3], 0);
	results(SAINA_EXPONENT_MAX, 0, 0xff);
	start(FLT_MAX);
	assert_true(s.out[0].h.exponent >= SAINA_EXPONENT_MIN);
	assert_int_equal(s.out[0].v[0], (1 << 28) - 16);
	results(s.out[0].h.exponent, 0, 0xff);
}

/* Sent again it is the same, whatever has come meanwhile. */
static void test_again(void **state)
{
	struct message first[2], m;

	start(1);
	results(E(27), 1 << 27, 0xff);
	/* into a round, of the one before it knows nothing: it comes to know it after it has sent */
	saina_flow_set(&s.r.flow, 5, s.now);
	saina_flow_next(&s.r.flow, 6, s.now);
	start(0.4f);
	assert_int_equal(s.out[0].h.exponent, E(27));
	memcpy(first, s.out, sizeof(first));
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		m = result_of(4, i, E(25), 5, OTHERS);
		saina_round_input(&s.r, &m.h, s.now);
	}
	assert_int_equal(s.r.grad.state[0].scale, E(25));
	lose();
	output();
	assert_int_equal(s.n, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(s.out[i].h.type, SAINA_MSG_GRAD);
		assert_int_equal(s.out[i].h.flags, SAINA_F_RETRANSMIT);
		assert_int_equal(s.out[i].h.exponent, first[i].h.exponent);
		assert_memory_equal(s.out[i].v, first[i].v, sizeof(first[i].v));
	}
	results(E(27), 1, 0xff);
}

static void test_nan_sent(void **state)
{
	static const float special[] = { NAN, -NAN, INFINITY, -INFINITY };

	for (int i = 0; i < N; i++) {
		for (int j = 0; j < N; j++)
			s.buf[j] = j == i ? special[i % 4] : 1;
		start_type(SAINA_FLOAT32);
		for (int g = 0; g < SEGMENTS; g++) {
			bool bad = i / PAYLOAD == g;

			assert_int_equal(s.out[g].h.exponent, bad ? SAINA_EXPONENT_NAN : E(27));
			for (int j = 0; j < PAYLOAD; j++)
				assert_int_equal(s.out[g].v[j], bad || g * PAYLOAD + j >= N ? 0 : 1 << 27);
			result(g, s.out[g].h.exponent, 0, 0xff);
		}
		for (int j = 0; j < N; j++)
			assert_true(j / PAYLOAD == i / PAYLOAD ? isnan(s.buf[j]) : s.buf[j] == 0);
		assert_int_equal(s.req.call.nonfinite_segments, 1);
		next();
	}
	assert_int_equal(s.r.stats.nonfinite_segments, N);
	assert_int_equal(s.r.stats.saturated, 0);
}

/* The result is NaN: the gradient is dropped, the residual stays; who is late keeps his. */
static void test_nan_received(void **state)
{
	start(1);
	results(E(27), 0, OTHERS);
	start(2);
	assert_true(residual(0) == 1);
	results(SAINA_EXPONENT_NAN, 0, 0xff);
	assert_true(isnan(s.buf[0]) && isnan(s.buf[N - 1]));
	assert_true(residual(0) == 1 && residual(N - 1) == 1);
	start(4);
	results(SAINA_EXPONENT_NAN, 0, OTHERS);
	assert_true(residual(0) == 5 && residual(N - 1) == 5);
	/* In this round only, and the exponent is that of the last sum. */
	assert_int_equal(s.r.grad.state[0].scale, E(27));
	start(3);
	assert_int_equal(s.out[0].v[0], 8 << 24);
	results(E(24), 8 << 24, 0xff);
	assert_true(s.buf[0] == 8 && residual(0) == 0);
	assert_int_equal(s.r.stats.nonfinite_segments, 4);
}

static void test_nan_late(void **state)
{
	start(1);
	results(E(27), 0, OTHERS);
	for (int i = 0; i < N; i++)
		s.buf[i] = i == 3 ? NAN : 2;
	start_type(SAINA_FLOAT32);
	for (uint32_t i = 0; i < SEGMENTS; i++)
		result(i, E(27), 0, OTHERS);
	/* Of segment 0 nothing is kept that comes with the NaN. */
	assert_int_equal(s.req.call.saturated, PAYLOAD);
	next();
	assert_int_equal(s.r.stats.saturated, PAYLOAD);
	assert_true(residual(0) == 1 && residual(3) == 1 && residual(PAYLOAD) == 3);
}

/* Gradient and residual are finite, their sum is not. */
static void test_overflow(void **state)
{
	start(3e38f);
	results(E(-100), 0, OTHERS);
	start(2e38f);
	assert_true(fabs(ldexp(s.out[0].v[0], -s.out[0].h.exponent - SAINA_EXPONENT_BIAS) / 2e38 - 1) < 1e-6);
	results(s.out[0].h.exponent, 1, 0xff);
	assert_true(residual(0) == 3e38f);
	/* With room again it goes along. */
	start(-1e38f);
	assert_true(fabs(ldexp(s.out[0].v[0], -s.out[0].h.exponent - SAINA_EXPONENT_BIAS) / 2e38 - 1) < 1e-6);
	results(s.out[0].h.exponent, 1, 0xff);
	assert_true(residual(0) == 0);
	/* Late twice: what is beyond the largest float is counted. */
	start(3e38f);
	results(E(-100), 0, OTHERS);
	start(2e38f);
	results(E(-100), 0, OTHERS);
	assert_true(residual(0) == FLT_MAX);
	assert_int_equal(s.r.stats.saturated, N);
}

/* The result of @segment: workers in @integers have sent integers, the others in @mask floats. */
static void no_result(uint32_t segment, uint64_t integers, uint64_t mask)
{
	struct message m = result_of(s.r.flow.round, segment, SAINA_EXPONENT_NAN, 0, mask);

	m.h.flags = SAINA_F_TYPES;
	memcpy(m.v, &integers, sizeof(integers));
	saina_round_input(&s.r, &m.h, s.now);
}

/* The call fails, and names who has sent what. */
static void failed(uint64_t integers, uint64_t floats, const char *says)
{
	char text[400];

	assert_int_equal(s.req.err, -EPROTO);
	assert_int_equal(s.req.integers, integers);
	assert_int_equal(s.req.floats, floats);
	assert_int_equal(s.req.call.nonfinite_segments, 0);
	saina_type_mismatch(&s.r, &s.req, text, sizeof(text));
	if (!strstr(text, says))
		fail_msg("\"%s\" does not say \"%s\"", text, says);
	next();
}

static void start_integers(void)
{
	for (int i = 0; i < N; i++)
		((int32_t *)s.buf)[i] = i;
	start_type(SAINA_INT32);
	assert_int_equal(s.out[0].h.exponent, SAINA_EXPONENT_INT);
}

/* Of the other type, or of both: nothing is written, and no residual changes. */
static void test_types(void **state)
{
	int32_t *v = (int32_t *)s.buf;

	start_integers();
	result(0, SAINA_EXPONENT_INT, 7, 0xff);
	result(1, E(-3), 7, OTHERS);
	assert_int_equal(v[0], 7);
	assert_int_equal(v[PAYLOAD], PAYLOAD);
	failed(MINE, OTHERS, "worker 1 started int32, workers 0,2-7 float32 (this is worker 1)");
	start_integers();
	no_result(0, MINE | 1, 0xff);
	result(1, SAINA_EXPONENT_INT, 7, 0xff);
	assert_int_equal(v[1], 1);
	assert_int_equal(v[PAYLOAD], 7);
	failed(MINE | 1, 0xff & ~(MINE | 1), "workers 0-1 started int32, workers 2-7 float32");
	/* late, of a round of floats: nothing is kept of the integers */
	start_integers();
	result(0, E(5), 0, OTHERS);
	result(1, SAINA_EXPONENT_MAX, 0, OTHERS);
	failed(MINE, OTHERS, "worker 1 started int32");
	assert_false(s.r.grad.state[0].residual);
	start(1);
	results(E(27), 0, OTHERS);
	start(2);
	no_result(0, 0xf0, 0xff);
	result(1, SAINA_EXPONENT_INT, 5, OTHERS);
	assert_true(s.buf[0] == 2 && s.buf[PAYLOAD] == 2 && residual(0) == 1 && residual(PAYLOAD) == 1);
	failed(0xf0 | OTHERS, 0x0f, "workers 0-3 float32");
	/* the last scale is that of the last sum of floats */
	assert_int_equal(s.r.grad.state[1].scale, E(27));
	start(3);
	results(E(24), 4 << 24, 0xff);
	assert_true(s.buf[0] == 4 && residual(0) == 0);
}

/* The result of @segment on the output. */
static void put_output(uint32_t segment, int exponent, int32_t sum, uint64_t mask)
{
	uint32_t round = s.r.flow.round;
	struct saina_output_head *b = (void *)(s.output + ((round & 1) * SEGMENTS + segment) * ENTRY);
	int32_t *v = (void *)(b + 1);

	b->exponent = exponent;
	b->segment = segment;
	b->mask = mask;
	b->contributors = __builtin_popcountll(mask);
	for (int i = 0; i < PAYLOAD; i++)
		v[i] = sum;
	b->round = round;
	b->state = SAINA_OUTPUT_VALID;
}

static void completion(void)
{
	struct {
		struct saina_hdr h;
		struct saina_doorbell doorbell;
	} m = { .h = { .version = SAINA_PROTO_VERSION, .type = SAINA_MSG_COMPLETION, .round = s.r.flow.round },
		.doorbell = { .done = 3 } };

	saina_round_input(&s.r, &m.h, s.now);
}

static void test_reference(void **state)
{
	const struct saina_input_head *in = (void *)s.input;
	struct saina_output_head *head;

	s.shm = (struct saina_shm){ .fd = -1, .session = 77, .output_id = 1, .wanted_id = 1, .input = s.input,
				      .output = s.output, .entry = ENTRY, .segments = SEGMENTS, .ring = 2, .pool = 2 };
	s.r.shm = &s.shm;
	for (int i = 0; i < N; i++)
		s.buf[i] = i == PAYLOAD ? NAN : 1;
	start_type(SAINA_FLOAT32);
	assert_int_equal(s.n, 1);
	assert_int_equal(in->exponent, E(27));
	in = (void *)(s.input + ENTRY);
	assert_int_equal(in->exponent, SAINA_EXPONENT_NAN);
	assert_int_equal(*(int32_t *)(in + 1), 0);
	/* Coarser than what this worker sent; NaN. */
	put_output(0, E(20), 3 << 20, 0xff);
	put_output(1, SAINA_EXPONENT_NAN, 0, 0xff);
	completion();
	assert_true(s.buf[0] == 3 && isnan(s.buf[PAYLOAD]) && isnan(s.buf[N - 1]));
	assert_int_equal(s.req.call.nonfinite_segments, 1);
	next();
	/* Of both types. */
	for (int i = 0; i < N; i++)
		s.buf[i] = 1;
	start_type(SAINA_FLOAT32);
	put_output(0, SAINA_EXPONENT_NAN, 0, 0xff);
	put_output(1, E(27), 1 << 27, 0xff);
	head = (void *)(s.output + (s.r.flow.round & 1) * SEGMENTS * ENTRY);
	head->flags = SAINA_F_TYPES;
	*(int32_t *)(head + 1) = MINE << 1;
	completion();
	head->flags = 0;
	assert_true(s.buf[0] == 1);
	failed(MINE << 1, 0xff & ~(MINE << 1), "worker 2 started int32, workers 0-1,3-7 float32");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement_with("exponents: a segment's is the finest at which it fits, or the last result's within 4 bits",
			       test_last, begin, end),
		statement_with("exponents: a gradient that is sent again is the same to the bit, whatever was learned since",
			       test_again, begin, end),
		statement_with("exponents: a NaN or an infinity in any element makes its segment NaN, and no other",
			       test_nan_sent, begin, end),
		statement_with("exponents: of a NaN result nothing is used, and residuals stay", test_nan_received, begin, end),
		statement_with("exponents: a late gradient that is not finite is dropped and counted", test_nan_late, begin, end),
		statement_with("exponents: where gradient and residual overflow the residual waits", test_overflow, begin, end),
		statement_with("exponents: a result of the other type, or of both, is an error that names who has sent which", test_types, begin, end),
		statement_with("exponents: shared memory: coarser results, NaN, and results of both types",
			       test_reference, begin, end),
	};

	return cmocka_run_group_tests_name("exponents", tests, NULL, NULL);
}
