// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How many messages a worker has in flight, against a clock and a link of the test's
 * own: messages pass the link one after the other, each takes @svc on it, and come
 * back @delay later.  What is held to: the description on top of userland/lib/flow/window.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "job.h"
#include "flow/window.h"
#include "../lib/statement.h"

#define POOL	4096
#define SEC	(1000 * MSEC)
#define USEC	1000ull
/* of the description */
#define QUEUE	(3 * MSEC)
#define LEAST	16
#define PROBE	4

static uint64_t clock_ns;

/* A worker: its window, and how many messages it has in flight. */
struct worker {
	struct saina_window w;
	uint32_t inflight;
};

/* A worker whose job has just become known, in a round that began at time 0. */
static void begin(struct worker *s, uint32_t pool, uint32_t window)
{
	memset(s, 0, sizeof(*s));
	clock_ns = 0;
	saina_window_init(&s->w, pool, window, 1 * MSEC);
	s->w.rto.max = s->w.rto_max = 200 * MSEC;
}

/* One result, @took after its message was sent for the first and only time. */
static void result_after(struct worker *s, uint64_t took)
{
	saina_window_answer(&s->w, clock_ns - took, 1, s->inflight, clock_ns);
}

/* --- a link ---------------------------------------------------------------------- */

struct link {
	uint64_t svc, delay;
	uint64_t free_ns;		/* when it has sent what it has */
	uint64_t sent[POOL], back[POOL];	/* of messages in flight, a ring: first in, first out */
	unsigned int head;
};

/* What was seen in a stretch of time. */
struct seen {
	uint64_t results, queue_sum, queue_max;
	uint32_t least, most;		/* window */
};

static void fill(struct worker *s, struct link *l)
{
	while (s->inflight < s->w.size) {
		unsigned int i = (l->head + s->inflight++) % POOL;

		l->free_ns = (l->free_ns > clock_ns ? l->free_ns : clock_ns) + l->svc;
		l->sent[i] = clock_ns;
		l->back[i] = l->free_ns + l->delay;
	}
}

/* Until @until; all times as the worker could see them, but without its arithmetic. */
static struct seen run(struct worker *s, struct link *l, uint64_t until)
{
	struct seen seen = { .least = UINT32_MAX };

	for (fill(s, l); l->back[l->head] < until; fill(s, l)) {
		uint64_t queue;

		clock_ns = l->back[l->head];
		queue = clock_ns - l->sent[l->head] - l->svc - l->delay;
		result_after(s, clock_ns - l->sent[l->head]);
		s->inflight--;
		l->head = (l->head + 1) % POOL;
		seen.results++;
		seen.queue_sum += queue;
		if (queue > seen.queue_max)
			seen.queue_max = queue;
		if (s->w.size < seen.least)
			seen.least = s->w.size;
		if (s->w.size > seen.most)
			seen.most = s->w.size;
	}
	return seen;
}

/* --- where it begins ----------------------------------------------------------------- */

static void test_begin(void **state)
{
	struct worker s;

	begin(&s, 256, 0);
	assert_int_equal(s.w.size, LEAST);
	assert_int_equal(s.w.max, 256);
	begin(&s, 8, 0);
	assert_int_equal(s.w.size, 8);	/* there are no more slots */
	begin(&s, 256, 64);
	assert_int_equal(s.w.size, 64);
	begin(&s, 256, 3);
	assert_int_equal(s.w.size, 3);
	begin(&s, 256, 1000);
	assert_int_equal(s.w.size, 256);
}

static void test_asked_for(void **state)
{
	struct link l = { .svc = 1 * MSEC, .delay = 1 * MSEC };
	struct worker s;
	struct seen seen;

	/* 64 ms of queue, but the caller said so */
	begin(&s, 256, 64);
	seen = run(&s, &l, 5 * SEC);
	assert_int_equal(seen.least, 64);
	assert_int_equal(seen.most, 64);
}

/* --- widening ------------------------------------------------------------------------ */

static void test_widens(void **state)
{
	struct link l = { .svc = 0, .delay = 100 * USEC };
	struct worker s;

	begin(&s, 1024, 0);
	run(&s, &l, 100 * USEC);
	assert_int_equal(s.w.size, LEAST);
	/* one more with each result: doubled each time there and back */
	run(&s, &l, 101 * USEC);
	assert_int_equal(s.w.size, 2 * LEAST);
	run(&s, &l, 201 * USEC);
	assert_int_equal(s.w.size, 4 * LEAST);
	run(&s, &l, 10 * MSEC);
	assert_int_equal(s.w.size, 1024);
}

static void test_not_used_up(void **state)
{
	struct worker s;

	begin(&s, 1024, 0);
	for (int i = 0; i < 1000; i++) {
		clock_ns += 100 * USEC;
		s.inflight = 3;	/* more than that the trainer does not give */
		result_after(&s, 100 * USEC);
	}
	assert_int_equal(s.w.size, LEAST);
}

/* --- a slow link ----------------------------------------------------------------------- */

static void test_queue(void **state)
{
	static const struct { uint64_t svc, delay; } links[] = {
		{ 10 * USEC, 1 * MSEC }, { 100 * USEC, 200 * USEC }, { 2 * USEC, 100 * USEC },
		{ 20 * USEC, 10 * MSEC },
	};

	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++) {
		struct link l = { .svc = links[i].svc, .delay = links[i].delay };
		struct worker s;
		struct seen seen;

		begin(&s, POOL, 0);
		run(&s, &l, 3 * SEC);
		seen = run(&s, &l, 8 * SEC);
		print_message("link %zu: queue %.2f ms (at most %.2f), window %u .. %u, busy %.1f %%\n",
			      i, seen.queue_sum / 1e6 / seen.results, seen.queue_max / 1e6,
			      seen.least, seen.most, 100. * seen.results * l.svc / (5 * SEC));
		assert_true(seen.queue_sum / seen.results > QUEUE / 2);
		/* it widens in proportion, until it hears of the queue: later from afar */
		assert_true(seen.queue_sum / seen.results < 2 * QUEUE + l.delay / 4);
		/* and the link is hardly ever without work, moments of measuring included */
		assert_true(seen.results * l.svc > 5 * SEC / 100 * 95);
	}
}

/* So slow that the least there may be costs more than the queue may. */
static void test_least(void **state)
{
	struct link l = { .svc = 1 * MSEC, .delay = 1 * MSEC };
	struct worker s;
	struct seen seen;

	begin(&s, POOL, 0);
	run(&s, &l, 2 * SEC);
	seen = run(&s, &l, 10 * SEC);
	assert_in_range(seen.least, PROBE, LEAST);
	assert_in_range(seen.most, LEAST, 2 * LEAST);
}

/* The link becomes faster by ten: the window follows. */
static void test_faster(void **state)
{
	struct link l = { .svc = 100 * USEC, .delay = 500 * USEC };
	struct worker s;
	struct seen seen;

	begin(&s, POOL, 0);
	run(&s, &l, 3 * SEC);
	l.svc /= 10;
	run(&s, &l, 6 * SEC);
	seen = run(&s, &l, 9 * SEC);
	assert_true(seen.results * l.svc > 3 * SEC / 100 * 95);
	assert_true(seen.queue_sum / seen.results > QUEUE / 2);
}

/* --- what is no queue ---------------------------------------------------------------- */

/* Most wait for somebody else: the shortest time counts. */
static void test_shortest(void **state)
{
	struct worker s;

	begin(&s, 1024, 0);
	for (int i = 0; i < 20000; i++) {
		clock_ns += 10 * USEC;
		s.inflight = s.w.size;
		result_after(&s, i % 10 ? 50 * MSEC : 1 * MSEC);
	}
	assert_int_equal(s.w.size, 1024);
}

/* Others' links have become longer, which looks like a queue until it is measured. */
static void test_distance(void **state)
{
	struct link l = { .svc = 1 * USEC, .delay = 500 * USEC };
	struct worker s;
	struct seen seen;

	begin(&s, 512, 0);
	run(&s, &l, 2 * SEC);
	assert_int_equal(s.w.size, 512);
	l.delay = 20 * MSEC;
	seen = run(&s, &l, 4 * SEC);
	assert_int_equal(seen.least, PROBE);
	run(&s, &l, 20 * SEC);
	assert_int_equal(s.w.size, 512);
	assert_true(s.w.base >= 20 * MSEC && s.w.base < 20 * MSEC + QUEUE);
}

/* What was sent before the round's first result waited for the slowest worker. */
static void test_round(void **state)
{
	struct worker s;

	begin(&s, 1024, 0);
	for (int round = 0; round < 50; round++) {
		uint64_t t = clock_ns;
		uint32_t before = round ? s.w.size : 0;

		/* a second late, all that was in flight; then it is quick */
		clock_ns += round ? SEC : 0;
		s.w.t0 = clock_ns;
		for (uint32_t i = 0; i < before + 200; i++) {
			uint64_t first = i < before ? t : clock_ns;

			clock_ns += 20 * USEC;
			s.inflight = s.w.size;
			saina_window_answer(&s.w, first, 1, s.inflight, clock_ns);
		}
	}
	assert_int_equal(s.w.size, 1024);
	assert_int_equal(s.w.base, 20 * USEC);
	assert_true(s.w.rto.srtt < SEC / 2);	/* nor does all of it count for the time-out */
}

/* Sent again, it counts from the first time. */
static void test_again(void **state)
{
	struct worker s;

	begin(&s, 1024, 0);
	clock_ns = SEC;
	for (int i = 0; i < 1000; i++) {
		saina_window_answer(&s.w, clock_ns - 40 * MSEC, 2, s.inflight, clock_ns);
		clock_ns += 1 * MSEC;
	}
	assert_int_equal(s.w.quick, 40 * MSEC);
}

/* --- what did not fit a socket's queue ------------------------------------------------- */

static void test_overflow(void **state)
{
	struct worker s;

	begin(&s, 1024, 0);
	s.w.size = 400;
	clock_ns = SEC;
	saina_window_overflow(&s.w, clock_ns);
	assert_int_equal(s.w.size, 200);
	saina_window_overflow(&s.w, clock_ns);
	assert_int_equal(s.w.size, 200);	/* of the same burst, still */
	clock_ns += s.w.rto.rto;
	saina_window_overflow(&s.w, clock_ns);
	assert_int_equal(s.w.size, 100);
	for (int i = 0; i < 10; i++) {
		clock_ns += SEC;
		saina_window_overflow(&s.w, clock_ns);
	}
	assert_int_equal(s.w.size, LEAST);
}

/* From then on it widens slowly. */
static void test_overflow_slow(void **state)
{
	struct worker s;

	begin(&s, 1024, 0);
	s.w.size = 400;
	clock_ns = SEC;
	saina_window_overflow(&s.w, clock_ns);
	for (int i = 0; i < 80; i++) {
		clock_ns += 10 * USEC;
		s.inflight = s.w.size;
		result_after(&s, 100 * USEC);
	}
	assert_in_range(s.w.size, 200 + 80 / 8 - 1, 200 + 80 / 8);
}

/* While the base is measured it is the window to go back to that is halved. */
static void test_overflow_probing(void **state)
{
	struct worker s;

	begin(&s, 1024, 0);
	s.w.probing = true;
	s.w.size = PROBE;
	s.w.before = 300;
	clock_ns = SEC;
	saina_window_overflow(&s.w, clock_ns);
	assert_int_equal(s.w.size, PROBE);
	assert_int_equal(s.w.before, 150);
}

/* --- loss and the time-out -------------------------------------------------------------- */

static void test_lossy(void **state)
{
	struct worker s;

	begin(&s, 1024, 0);
	assert_false(saina_window_lossy(&s.w));
	s.w.got = 1000;
	s.w.lost = 10;
	assert_false(saina_window_lossy(&s.w));
	s.w.lost = 11;
	assert_true(saina_window_lossy(&s.w));
}

/* Where results are lost, one sent more than once says nothing of the time it takes. */
static void test_karn(void **state)
{
	struct worker s;

	begin(&s, 1024, 0);
	s.w.got = 100;
	s.w.lost = 50;
	clock_ns = 2 * SEC + MSEC;
	saina_window_answer(&s.w, SEC, 2, s.inflight, clock_ns);
	assert_int_equal(s.w.rto.srtt, 0);
	result_after(&s, 2 * MSEC);
	assert_int_equal(s.w.rto.srtt, 2 * MSEC);
}

/* The time-out's bound gives way to a long queue, and comes back. */
static void test_bound(void **state)
{
	struct link l = { .svc = 10 * MSEC, .delay = 1 * MSEC };
	struct worker s;

	begin(&s, LEAST, LEAST);
	run(&s, &l, 5 * SEC);
	assert_true(s.w.rto.max > 4 * 150 * MSEC);
	l.svc = 10 * USEC;
	run(&s, &l, 10 * SEC);
	assert_int_equal(s.w.rto.max, 200 * MSEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("window: the window starts at the least size, or at the size that was asked for", test_begin),
		statement("window: a size that was asked for is kept", test_asked_for),
		statement("window: the window widens while there is no queue", test_widens),
		statement("window: the window does not widen while it is not used up", test_not_used_up),
		statement("window: a slow link is kept busy with a short queue", test_queue),
		statement("window: the window never gets smaller than the least size", test_least),
		statement("window: the window follows a link that becomes faster", test_faster),
		statement("window: results that wait for other workers do not shrink the window", test_shortest),
		statement("window: a longer delay is not taken for a queue once it is measured", test_distance),
		statement("window: the wait for the slowest worker of a round does not count", test_round),
		statement("window: a message sent again counts from the first time", test_again),
		statement("window: an overflow of the socket queue halves the window", test_overflow),
		statement("window: after an overflow the window widens slowly", test_overflow_slow),
		statement("window: an overflow while the base is measured halves the window to return to", test_overflow_probing),
		statement("window: a link with more than 1 % lost counts as lossy", test_lossy),
		statement("window: a message sent more than once gives no round-trip time where results are lost", test_karn),
		statement("window: the bound of the time-out gives way to a long queue and comes back", test_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
