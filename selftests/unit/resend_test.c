// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * When gradients are sent again, and when the aggregator is asked about them: the transport's state
 * (transport/flow.h) with answers and times made up here.  Two batches of four segments.
 */
#include <endian.h>
#include "transport/flow.h"
#include "../lib/statement.h"

#define PER_BATCH	4
#define SEGMENTS	8
#define BEHIND		(1ull << 3)	/* a mask of workers */

static struct saina_flow f;
static uint64_t now;

struct acts {
	unsigned int grads, asks, pulls;
	uint64_t segments;	/* of the GRADs */
	struct saina_act first;
	uint64_t when;
};

/* All that is to be done now. */
static struct acts run(void)
{
	struct saina_act act[SAINA_ASK_SEGMENTS];
	struct acts sum = { 0 };
	size_t n;

	while ((n = saina_flow_run(&f, now, act, SAINA_ASK_SEGMENTS, &sum.when)) > 0) {
		if (!(sum.grads + sum.asks + sum.pulls))
			sum.first = act[0];
		for (size_t i = 0; i < n; i++) {
			sum.grads += act[i].type == SAINA_ACT_GRAD;
			sum.asks += act[i].type == SAINA_ACT_ASK;
			sum.pulls += act[i].type == SAINA_ACT_PULL;
			if (act[i].type == SAINA_ACT_GRAD)
				sum.segments |= 1ull << act[i].segment;
		}
	}
	return sum;
}

/* The answer to an ASK of @asked about the batch of @segment. */
static void reply(uint32_t segment, uint64_t asked, uint64_t counted, uint64_t behind)
{
	struct saina_ask r = { .time = htole64(asked), .counted = htole64(counted) };

	saina_flow_ask_reply(&f, f.round, segment, &r, behind, f.round, now);
}

/* A round of which all gradients have left. */
static int sent(void **state)
{
	static const struct saina_job job = {
		.segments = SEGMENTS, .pool = SEGMENTS, .ring = 4, .per_batch = PER_BATCH,
	};
	struct acts a;

	now = 1000 * MSEC;
	assert_int_equal(saina_flow_init(&f, &job, 8, SEGMENTS, 0), 0);
	saina_flow_begin(&f, 0, true, now);
	saina_cwnd_sample(&f.cwnd, MSEC / 10, now);
	saina_flow_add(&f, SEGMENTS);
	a = run();
	assert_int_equal(a.grads, SEGMENTS);
	assert_int_equal(a.asks + a.pulls, 0);
	return 0;
}

static int done(void **state)
{
	saina_flow_exit(&f);
	return 0;
}

static void test_lost(void **state)
{
	uint64_t asked = now + 1;

	now += MSEC / 10;
	reply(0, asked, 0x5, 0);
	assert_int_equal(run().segments, 0xa);
	assert_int_equal(f.lost, 2);
	assert_int_equal(f.loss_samples, 4);
}

/* What is not counted may be late for a sum that is with the parent, or lost from another one. */
static void test_away(void **state)
{
	uint64_t asked = now + 1;

	now += MSEC / 10;
	saina_flow_away(&f, 0, now);
	reply(0, asked, 0x5, 0);
	assert_int_equal(run().segments, 0xa);
	assert_true(!f.lost && !f.loss_samples && f.away_ns == now);
	/* The next answer does not say so. */
	asked = now + 1;
	now += MSEC / 10;
	reply(0, asked, 0x5, 0);
	assert_int_equal(run().segments, 0xa);
	assert_int_equal(f.lost, 2);
}

static void test_same_moment(void **state)
{
	uint64_t asked = now;

	now += MSEC / 10;
	reply(0, asked, 0, 0);
	assert_int_equal(run().grads, 0);
	assert_int_equal(f.lost, 0);
	reply(0, asked + 1, 0, 0);
	assert_int_equal(run().segments, 0xf);
}

static void test_held(void **state)
{
	uint64_t asked = now + 1;

	now += MSEC / 10;
	for (int i = 0; i < 3; i++) {
		reply(0, asked, 0, BEHIND);
		assert_int_equal(run().segments, 0x1);
		reply(PER_BATCH, asked, 0, BEHIND);
		assert_int_equal(run().grads, 0);
		asked = now + 1;
		now += MSEC / 10;
	}
	assert_int_equal(f.loss_samples, 0);
	assert_int_equal(f.held, BEHIND);
}

/* All results of round 0 have come, and round 1 has been sent. */
static void next_round(void)
{
	for (uint32_t i = 0; i < SEGMENTS; i++)
		assert_int_equal(saina_flow_result(&f, 0, i, now), SAINA_RESULT_TAKE);
	saina_flow_round(&f, 1);
	saina_flow_add(&f, SEGMENTS);
	assert_int_equal(run().grads, SEGMENTS);
}

static void test_closed(void **state)
{
	uint64_t asked;

	next_round();
	asked = now + 1;
	now += MSEC / 10;
	reply(0, asked, 0, 0);
	assert_int_equal(f.closed, 1);
	assert_int_equal(f.closed_ns, now);
	reply(0, asked, 0, BEHIND);
	assert_int_equal(f.closed, 0);
}

/* ASKs in a second, each answered after 100 us; the round waits for @behind. */
static unsigned int asks_of_a_second(uint64_t behind)
{
	uint64_t end = now + 1000 * MSEC;
	unsigned int asks = 0;
	struct acts a;

	while (now < end) {
		a = run();
		asks += a.asks;
		if (a.asks) {
			uint64_t asked = now;

			now += MSEC / 10;
			for (uint32_t i = 0; i < SEGMENTS; i += PER_BATCH)
				reply(i, asked, behind ? 0 : 0xf, behind);
		} else {
			assert_true(a.when > now);
			now = a.when;
		}
	}
	return asks;
}

static void make_lossy(void)
{
	uint64_t asked = now + 1;

	now += MSEC / 10;
	for (uint32_t i = 0; i < SEGMENTS; i += PER_BATCH)
		reply(i, asked, 0, 0);
	assert_int_equal(run().grads, SEGMENTS);
	assert_int_equal(f.lost, SEGMENTS);
}

static void test_lossy(void **state)
{
	make_lossy();
	assert_true(asks_of_a_second(0) > 300);
}

static void test_lossy_held(void **state)
{
	make_lossy();
	reply(0, now, 0, BEHIND);
	/* but often enough to open the round soon */
	assert_in_range(asks_of_a_second(BEHIND), 40, 300);
}

static void test_begun(void **state)
{
	uint64_t asked = now + 1;

	now += MSEC / 10;
	reply(0, asked, 0, BEHIND);
	run();
	now += MSEC / 10;
	reply(0, now - 1, 0xf, 0);
	assert_int_equal(run().asks, 2);
	assert_int_equal(f.held, 0);
}

static void test_report(void **state)
{
	struct acts a;

	for (uint32_t i = 0; i < SEGMENTS; i++)
		assert_int_equal(saina_flow_result(&f, 0, i, now), SAINA_RESULT_TAKE);
	assert_int_equal(saina_flow_result(&f, 1, 0, now), SAINA_RESULT_KEEP);
	saina_flow_round(&f, 1);
	saina_flow_add(&f, SEGMENTS);
	a = run();
	assert_int_equal(a.first.type, SAINA_ACT_ASK);
	assert_int_equal(a.first.round, 1);
	assert_int_equal(a.first.segment, 0);
	assert_int_equal(a.segments, 0xfe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement_with("resend: gradients that an answer does not name are sent again, and are losses",
			       test_lost, sent, done),
		statement_with("resend: what is not counted beside a sum that is with the parent is sent again, and not lost",
			       test_away, sent, done),
		statement_with("resend: an answer to an ASK of the same moment says nothing of a gradient",
			       test_same_moment, sent, done),
		statement_with("resend: while a round waits for a worker one gradient is sent again, and is no loss",
			       test_held, sent, done),
		statement_with("resend: a round that waits for a worker is not one that cannot begin",
			       test_closed, sent, done),
		statement_with("resend: a lossy path is asked often", test_lossy, sent, done),
		statement_with("resend: a lossy path is not asked often while a round waits for a worker",
			       test_lossy_held, sent, done),
		statement_with("resend: when the round has begun all batches ask at once", test_begun, sent, done),
		statement_with("resend: a worker whose results come before its gradients says where it is",
			       test_report, sent, done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
