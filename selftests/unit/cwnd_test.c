// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How many batches may be in flight, on a link made up here: with @size batches in flight an echo
 * takes the base, and a batch's time for each batch.
 */
#include "wire/job.h"
#include "transport/cwnd.h"
#include "../lib/statement.h"

static uint64_t now = 5 * MSEC;
static struct saina_cwnd w;

/* @n round trips with a window that is used up. */
static void trips(int n, uint64_t base, uint64_t batch)
{
	while (n--) {
		uint64_t sent = now;

		now += base + w.size * batch;
		w.limited = true;
		saina_cwnd_echo(&w, sent, now);
	}
}

static void test_grows(void **state)
{
	saina_cwnd_init(&w, 8, 0, 0);
	assert_int_equal(w.size, 2);
	saina_cwnd_sample(&w, 100000, now);
	trips(20, 100000, 1000);
	assert_int_equal(w.size, 8);
}

/* A batch of 64 KiB takes 0.5 ms at 1 Gb/s, and 5 ms at 100 Mb/s. */
static void test_queue(void **state)
{
	saina_cwnd_init(&w, 8, 0, 0);
	saina_cwnd_sample(&w, 100000, now);
	trips(100, 100000, MSEC / 2);
	assert_in_range(w.size, 4, 8);
	saina_cwnd_init(&w, 8, 0, 0);
	saina_cwnd_sample(&w, 100000, now);
	trips(100, 100000, 5 * MSEC);
	assert_int_equal(w.size, 1);
}

/* The host becomes slow, then quick again: in seconds, and without a hand. */
static void test_overload(void **state)
{
	saina_cwnd_init(&w, 8, 0, 0);
	trips(20, 100000, 1000);
	assert_int_equal(w.size, 8);
	trips(10, 20 * MSEC, 1000);
	assert_int_equal(w.size, 1);
	trips(20, 100000, 1000);
	assert_int_equal(w.size, 8);
	/* A path that stays long is taken for what it is. */
	trips(1000, 20 * MSEC, 1000);
	assert_int_equal(w.size, 8);
}

/* Who waits for others needs no more, and loses nothing. */
static void test_waiting(void **state)
{
	saina_cwnd_init(&w, 8, 0, 0);
	for (int i = 0; i < 50; i++, now += MSEC)
		saina_cwnd_echo(&w, now - 100000, now);
	assert_int_equal(w.size, 2);
}

static void test_overflow(void **state)
{
	saina_cwnd_init(&w, 8, 0, 0);
	trips(20, 100000, 1000);
	saina_cwnd_overflow(&w, now);
	assert_int_equal(w.size, 4);
	/* The same queue, the same round trip. */
	saina_cwnd_overflow(&w, now + 1000);
	assert_int_equal(w.size, 4);
	saina_cwnd_overflow(&w, now + MSEC);
	assert_int_equal(w.size, 2);
	/* What was asked before that says nothing of it. */
	w.limited = true;
	saina_cwnd_echo(&w, now + MSEC - 1000, now + 2 * MSEC);
	assert_int_equal(w.size, 2);
	for (int i = 3; i < 20; i++)
		saina_cwnd_overflow(&w, now + i * MSEC);
	assert_int_equal(w.size, 1);
}

static void test_fixed(void **state)
{
	saina_cwnd_init(&w, 8, 3, 0);
	trips(20, 100000, 1000);
	trips(20, 100 * MSEC, 1000);
	saina_cwnd_overflow(&w, now);
	assert_int_equal(w.size, 3);
}

static void test_patience(void **state)
{
	saina_cwnd_init(&w, 8, 0, 0);
	assert_int_equal(saina_cwnd_rto(&w), MSEC);
	for (int i = 0; i < 100; i++)
		saina_cwnd_sample(&w, 8 * MSEC, now);
	assert_in_range(saina_cwnd_rto(&w), 15 * MSEC, 17 * MSEC);
	for (int i = 0; i < 100; i++)
		saina_cwnd_sample(&w, 0, now);
	assert_int_equal(saina_cwnd_rto(&w), MSEC);
	saina_cwnd_init(&w, 8, 0, 30 * MSEC);
	assert_int_equal(saina_cwnd_rto(&w), 30 * MSEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("window: it grows to its bound while there is no queue", test_grows),
		statement("window: it stays where the queue is short", test_queue),
		statement("window: it shrinks on an overloaded host and grows again after", test_overload),
		statement("window: a worker that waits for others keeps its window", test_waiting),
		statement("window: it is halved once a round trip when a queue overflows", test_overflow),
		statement("window: it stays as the caller has fixed it", test_fixed),
		statement("window: silence is asked about after two round trips", test_patience),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
