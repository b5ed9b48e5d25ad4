// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Workers that start different sizes (userland/lib/transport/size_check.h), and rounds that do not begin
 * for another reason: libsaina's machines and the oracle as their switch, in steps of a millisecond of a
 * clock of the test's own.
 */
#include <stdlib.h>
#include <string.h>
#include "reduce/size_mismatch.h"
#include "lib_switch.h"
#include "../lib/statement.h"

#define PAYLOAD	 64
#define SEGMENTS 16
#define MSGLEN	 (sizeof(struct saina_hdr) + 4 * PAYLOAD)
#define WORKERS	 4
#define SECOND	 (1000 * MSEC)

/* How often a worker sends a gradient of a round that does not begin because another is behind */
#define HELD_MIN_NS (20 * MSEC)
#define HELD_MAX_NS (100 * MSEC)

struct member {
	struct saina_job job;
	struct saina_round r;
	struct saina_req req;
	int32_t buf[SEGMENTS * PAYLOAD];
	bool still;		/* says nothing and hears nothing */
	char said[256];
	uint64_t said_ns;
	uint64_t gradients;	/* messages of this type that it has sent */
};

static struct {
	struct lib_switch sw;
	struct member m[WORKERS];
	uint64_t now;
	bool away;		/* the agent */
	uint64_t heard;
} s;

static void begin(unsigned int k, unsigned int dead_ms)
{
	memset(&s, 0, sizeof(s));
	s.now = SECOND;
	switch_init(&s.sw, 20, PAYLOAD, SEGMENTS * PAYLOAD, 8, 4);
	switch_policy(&s.sw, k, false);
	for (unsigned int i = 0; i < WORKERS; i++) {
		struct member *m = &s.m[i];

		m->job = (struct saina_job){
			.id = 20, .session = 100 + i, .worker = i, .workers = WORKERS,
			.elem = SAINA_ELEM_INT32, .elements = SEGMENTS * PAYLOAD, .segments = SEGMENTS,
			.payload = PAYLOAD, .pool = 8, .ring = 4, .wire = 4 * PAYLOAD, .msglen = MSGLEN,
			.per_batch = 8, .heartbeat_ms = 500, .dead_ms = dead_ms,
		};
		switch_bind(&s.sw, i, m->job.session);
		assert_int_equal(saina_round_init(&m->r, &m->job, 2, 0, 0), 0);
		saina_flow_begin(&m->r.flow, 0, true, s.now);
	}
	s.sw.conf.state = SAINA_JOB_RUNNING;
	switch_publish(&s.sw);
}

static void end(void)
{
	for (unsigned int i = 0; i < WORKERS; i++)
		saina_round_exit(&s.m[i].r);
	switch_exit(&s.sw);
}

static void start(unsigned int w, size_t n)
{
	struct member *m = &s.m[w];

	memset(&m->req, 0, sizeof(m->req));
	m->req.t = (struct saina_tensor){ .buf = m->buf, .n = n, .type = SAINA_INT32 };
	m->req.op = SAINA_SUM;
	saina_round_start(&m->r, &m->req, s.now);
}

/* As saina_wait() and saina_round_done(); false: it has not ended. */
static bool next(unsigned int w)
{
	struct member *m = &s.m[w];

	if (!m->req.finished)
		return false;
	saina_round_forget(&m->r, &m->req);
	m->r.prev_submitted = m->r.submitted;
	saina_flow_round(&m->r.flow, m->r.flow.round + 1);
	return true;
}

static void deliver(uint64_t to, struct saina_hdr *answer)
{
	for (unsigned int i = 0; i < WORKERS; i++)
		if (to >> i & 1 && !s.m[i].still)
			saina_round_input(&s.m[i].r, answer, s.now);
}

static void turn(unsigned int w)
{
	struct member *m = &s.m[w];
	uint8_t buf[8 * MSGLEN];
	struct saina_hdr *answer;
	unsigned int n;
	uint64_t when, to;
	size_t len;

	if (m->still)
		return;
	if (!s.away)
		s.heard = s.now;
	if (!m->said[0] && saina_size_mismatch(&m->r, s.sw.conf.active, s.heard, s.now, m->said, sizeof(m->said)))
		m->said_ns = s.now;
	/* An answer comes at once, and what it asks for must not be sent in no time. */
	for (int left = 16; left && (n = saina_round_output(&m->r, s.now, buf, &len, &when)); left--)
		for (unsigned int i = 0; i < n; i++) {
			m->gradients += ((struct saina_hdr *)(buf + i * len))->type == SAINA_MSG_GRAD;
			if (switch_message(&s.sw, w, buf + i * len, len, &to, (void **)&answer))
				deliver(to, answer);
		}
}

static void run(uint64_t ns)
{
	for (uint64_t until = s.now + ns; s.now < until; s.now += MSEC)
		for (unsigned int i = 0; i < WORKERS; i++)
			turn(i);
}

static void assert_silence(void)
{
	for (unsigned int i = 0; i < WORKERS; i++)
		assert_string_equal(s.m[i].said, "");
}

/* A round of the same size, then worker 3 starts @less elements, and the others @more. */
static void differ(size_t more, size_t less)
{
	for (unsigned int i = 0; i < WORKERS; i++)
		start(i, more);
	run(100 * MSEC);
	for (unsigned int i = 0; i < WORKERS; i++) {
		assert_true(next(i));
		start(i, i == 3 ? less : more);
	}
	run(100 * MSEC);
	if (next(3))
		start(3, less);
}

static void test_sizes(void **state)
{
	begin(WORKERS, 3000);
	differ(1000, 500);
	run(9 * SECOND);
	assert_silence();
	run(2 * SECOND);
	for (unsigned int i = 0; i < 3; i++) {
		assert_non_null(strstr(s.m[i].said, "round 1: worker "));
		assert_non_null(strstr(s.m[i].said, "started 1000 elements, another (`saina slot show 20' "
						    "names it) at most 512: "));
		assert_non_null(strstr(s.m[i].said, SAINA_SAME_SIZES));
	}
	assert_non_null(strstr(s.m[3].said, "round 2 cannot begin: others still wait for more than "
					    "this worker's 500 elements of round 1 "));
	assert_non_null(strstr(s.m[3].said, SAINA_SAME_SIZES));
	end();
}

/* Of two, the other one is named. */
static void test_named(void **state)
{
	begin(WORKERS, 3000);
	switch_alive(&s.sw, 1, false);
	switch_alive(&s.sw, 2, false);
	s.m[1].still = s.m[2].still = true;
	start(0, 700);
	start(3, 64);
	run(11 * SECOND);
	assert_non_null(strstr(s.m[0].said, "worker 0 started 700 elements, worker 3 at most 64: "));
	end();
}

/* A job whose workers may be silent for longer. */
static void test_patience(void **state)
{
	begin(WORKERS, 30000);
	differ(1000, 500);
	run(59 * SECOND);
	assert_silence();
	run(3 * SECOND);
	assert_non_null(strstr(s.m[0].said, "has come for 60 s"));
	end();
}

/* A sum that is with the parent, as answers say, waits for as long as that takes. */
static void test_with_parent(void **state)
{
	begin(WORKERS, 3000);
	differ(1000, 500);
	for (int i = 0; i < 200; i++) {
		run(100 * MSEC);
		for (unsigned int w = 0; w < WORKERS; w++)
			saina_flow_away(&s.m[w].r.flow, 0, s.now);
	}
	run(9 * SECOND);
	assert_silence();
	run(2 * SECOND);
	assert_non_null(strstr(s.m[0].said, SAINA_SAME_SIZES));
	end();
}

/* The others wait, however long, for one that has not begun, in the first round and in a later one. */
static void test_straggler(void **state)
{
	begin(WORKERS, 3000);
	for (unsigned int i = 0; i < 3; i++)
		start(i, 1000);
	run(100 * SECOND);
	assert_silence();
	start(3, 1000);
	run(100 * MSEC);
	for (unsigned int i = 0; i < WORKERS; i++) {
		assert_true(next(i));
		start(i, 300);
	}
	run(100 * MSEC);
	for (unsigned int i = 0; i < WORKERS; i++)
		assert_true(next(i));
	for (unsigned int i = 0; i < 3; i++)
		start(i, 300);
	run(100 * SECOND);
	assert_silence();
	end();
}

/* The host of all of them stands still: an hour passes for nobody. */
static void test_stands_still(void **state)
{
	begin(WORKERS, 3000);
	differ(1000, 500);
	run(5 * SECOND);
	s.now += 3600 * SECOND;
	run(9 * SECOND);
	assert_silence();
	end();
}

/* Without the agent nobody is found dead, so nothing is said until it is back. */
static void test_agent(void **state)
{
	begin(WORKERS, 3000);
	differ(1000, 500);
	s.away = true;
	run(60 * SECOND);
	assert_silence();
	s.away = false;
	run(9 * SECOND);
	assert_silence();
	run(2 * SECOND);
	assert_string_not_equal(s.m[0].said, "");
	assert_string_not_equal(s.m[3].said, "");
	end();
}

/* Of three that are enough one dies in the middle, and the fourth has not begun. */
static void test_died(void **state)
{
	begin(3, 3000);
	start(0, 1000);
	start(1, 1000);
	start(2, 500);
	run(100 * MSEC);
	s.m[2].still = true;
	switch_alive(&s.sw, 2, false);
	run(60 * SECOND);
	assert_silence();
	start(3, 1000);
	run(100 * MSEC);
	assert_true(next(0) && next(1) && next(3));
	end();
}

/* Who is faster than the answer k = 3 needs: those that are counted go on. */
static void test_fastest(void **state)
{
	begin(3, 3000);
	for (unsigned int round = 0; round < 20; round++) {
		for (unsigned int i = 0; i < 3; i++)
			start(i, 1000);
		run(SECOND);
		for (unsigned int i = 0; i < 3; i++)
			assert_true(next(i));
	}
	assert_silence();
	end();
}

/* The others have gone on before a worker starts what they have not. */
static void test_gap(void **state)
{
	begin(WORKERS, 3000);
	for (unsigned int i = 0; i < WORKERS; i++)
		start(i, 300);
	run(100 * MSEC);
	for (unsigned int i = 1; i < WORKERS; i++) {
		assert_true(next(i));
		start(i, 300);
	}
	run(100 * MSEC);
	saina_round_forget(&s.m[0].r, &s.m[0].req);
	start(0, 300);
	run(100 * MSEC);
	assert_true(s.m[0].req.finished && s.m[0].req.err);
	assert_true(s.m[0].r.flow.gap);
	assert_int_equal(s.m[0].r.submitted, 600);
	end();
}

/* Workers 0 .. 2 have finished rounds 0 .. 2, and have started 3, which waits for worker 3 in round 0. */
static void hold(void)
{
	begin(3, 3000);
	switch_lead(&s.sw, 2);
	for (unsigned int round = 0; round < 4; round++) {
		for (unsigned int i = 0; i < 3; i++)
			start(i, 1000);
		run(100 * MSEC);
		for (unsigned int i = 0; i < 3; i++)
			assert_int_equal(next(i), round < 3);
	}
	assert_int_equal(switch_next_round(&s.sw), 3);
}

/* Gradients are refused until worker 3 is in round 1: they were not lost, and the sizes do not differ. */
static void test_held(void **state)
{
	uint64_t sent[3];

	hold();
	for (unsigned int i = 0; i < 3; i++)
		sent[i] = s.m[i].gradients;
	run(30 * SECOND);
	assert_silence();
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(s.m[i].r.flow.lost, 0);
		assert_int_equal(s.m[i].r.flow.held, 1 << 3);
		assert_in_range(s.m[i].gradients - sent[i], 30 * SECOND / HELD_MAX_NS, 30 * SECOND / HELD_MIN_NS);
	}
	assert_int_equal(switch_next_round(&s.sw), 3);
	for (unsigned int i = 0; i < 2; i++) {
		start(3, 1000);
		run(MSEC);
		assert_int_equal(next(3), true);
	}
	run(2 * HELD_MIN_NS);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(s.m[i].req.err, 0);
		assert_true(next(i));
	}
	assert_int_equal(switch_next_round(&s.sw), 4);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("sizes: a worker that starts less and those that start more get a sentence with both", test_sizes),
		statement("sizes: of two workers the other is named", test_named),
		statement("sizes: a sum that is with the parent is waited for", test_with_parent),
		statement("sizes: it takes twice the time after which a worker is dead", test_patience),
		statement("sizes: waiting for a straggler, however long, is no difference", test_straggler),
		statement("sizes: after a host that stood still nothing is concluded from old answers", test_stands_still),
		statement("sizes: while the agent is away nothing is concluded", test_agent),
		statement("sizes: a worker that died in the middle is none of them", test_died),
		statement("sizes: rounds of the fastest k that end without a straggler are none", test_fastest),
		statement("sizes: results are gone because the others' round never had them", test_gap),
		statement("lead: a round that waits for a worker that is behind ends with no error, is no loss, is "
			  "tried no more often than each 20 ms, and goes on at once", test_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
