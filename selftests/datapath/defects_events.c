// SPDX-License-Identifier: GPL-2.0-or-later
/* Events and messages to relay: how many there are, and when a reader of their rings gets them. */
#include <linux/bpf.h>
#include <poll.h>
#include "monotonic.h"
#include "test_job.h"

static void ignore_event(void *arg, const struct saina_event *ev)
{
}

static void count_stale(void *arg, const struct saina_event *ev)
{
	*(unsigned int *)arg += ev->type == SAINA_EV_STALE;
}

/* STALE events of the program since the last call. */
static unsigned int stale_events(void)
{
	unsigned int n = 0;
	struct saina_dp_cb cb = { .event = count_stale, .arg = &n };

	saina_dp_event_dispatch(harness.dp, &cb);
	return n;
}

/* A worker that asks for every old round, upwards, causes one event. */
static void test_stale_events(void)
{
	struct job j = job_create(5, 2, 1, policy_fastest(1));
	unsigned int n;
	bool ok;

	for (uint32_t r = 0; r < 50; r++)
		send_grad(&j, 0, r, 0, 1);
	harness_drain(&harness);
	for (uint32_t r = 0; r < 48; r++)
		send_pull(&j, 1, r, 0);
	ok = job_counter(&j, 1, SAINA_C_STALE) == 48;
	n = stale_events();
	harness.o.events = 0;
	tap_ok(ok && n == 1, "a worker that asks for 48 stale rounds is one event");
	tap_note("%u events", n);
	send_grad(&j, 0, 50, 0, 1);
	harness_drain(&harness);
	for (uint32_t r = 0; r < 48; r++)
		send_pull(&j, 1, r % 2 ? 47 - r : r, 0);
	n = stale_events();
	harness.o.events = 0;
	job_verdict(&j, n == 1, "a worker that is still stale one round later is one more event");
}

static void add_one(void *arg, const struct saina_event *ev)
{
	++*(unsigned int *)arg;
}

#define REST_MS	 200
#define HANGS_MS 60000

/* Does the descriptor become readable within @ms? */
static bool has_events(int ms)
{
	struct pollfd p = { .fd = saina_dp_event_fd(harness.dp), .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static unsigned int take_events(unsigned int rest_ms)
{
	unsigned int n = 0;
	struct saina_dp_cb cb = { .rest_ms = rest_ms, .event = add_one, .arg = &n };

	saina_dp_event_dispatch(harness.dp, &cb);
	return n;
}

/* A reader may say how long events that follow others wait. */
static void test_events_rest(void)
{
	struct job j = job_create(5, 2, 1, policy_fastest(1));
	unsigned int first, waiting, at_last, none;
	bool early, late, silent, slow;
	uint64_t begin;
	uint32_t r = 0;

	send_grad(&j, 0, r++, 0, 1);
	take_events(0);
	do {
		begin = monotonic_ms();
		send_grad(&j, 0, r++, 0, 1);
		first = take_events(REST_MS);
		send_grad(&j, 0, r++, 0, 1);
		early = has_events(0);
		waiting = take_events(REST_MS);
		/* on a machine that stood still until here they have rested already */
		slow = monotonic_ms() - begin >= REST_MS;
		late = has_events(HANGS_MS);
		at_last = take_events(REST_MS);
		has_events(HANGS_MS);
		none = take_events(REST_MS);
	} while (slow && r < 100);
	tap_ok(first == 1 && !early && !waiting && late && at_last == 1,
	       "events that follow others wait as long as the reader says");
	silent = !has_events(0);
	send_grad(&j, 0, r, 0, 1);
	tap_ok(!none && silent && has_events(HANGS_MS) && take_events(0) == 1,
	       "after a rest without events the next one is reported at once");
	harness.o.events = 0;
	saina_dp_job_remove(harness.dp, 5);
	oracle_job_remove(&harness.o, 5);
}

static void count_relay(void *arg, const struct saina_relay_msg *m)
{
	uint64_t *n = arg;

	if (m->len == sizeof(m->hdr) + 4 * JOB_ELEMS)
		++*n;
}

/* Ring buffers that nobody drains: losses are counted, and the job goes on. */
static void test_full_rings(void)
{
	struct job j = job_create(5, 2, 1, policy_fastest(1));
	uint64_t relayed = 0, before = job_counter(&j, -1, SAINA_C_NO_MEMORY);
	struct saina_dp_cb cb = { .event = ignore_event, .relay = count_relay, .arg = &relayed };
	unsigned int len, sent = 0;
	uint8_t f[FRAME_MAX];
	bool ok = true;
	uint32_t r;

	j.conf.relay = 2;
	j.conf.worker[1].flags |= SAINA_BIND_RELAY;
	job_publish(&j);
	send_grad(&j, 0, 0, 0, 3);
	harness_drain(&harness);
	len = job_frame(&j, f, SAINA_MSG_PULL, 1, 0, 0, NULL);
	for (; ok && sent < 1000000 && !job_counter(&j, 1, SAINA_C_NO_MEMORY); sent++)
		ok = harness_packet_alone(&harness, f, len, 1) && harness.verdict == XDP_DROP;
	cb.max = 10;
	saina_dp_event_dispatch(harness.dp, &cb);
	tap_ok(relayed == 10, "a dispatch takes at most as many messages as asked for");
	cb.max = 0;
	saina_dp_event_dispatch(harness.dp, &cb);
	ok &= relayed == sent - 1 && job_counter(&j, 1, SAINA_C_PULLED) == sent;
	/* there is room again; now the ring of events: one ROUND each */
	ok &= harness_packet_alone(&harness, f, len, 1) && job_counter(&j, 1, SAINA_C_NO_MEMORY) == 1;
	for (r = 1; ok && r < 100000 && job_counter(&j, -1, SAINA_C_NO_MEMORY) == before; r++) {
		len = job_frame(&j, f, SAINA_MSG_GRAD, 0, r, 0, NULL);
		ok = harness_packet_alone(&harness, f, len, 1) && harness.verdict == XDP_REDIRECT;
	}
	ok &= job_counter(&j, -1, SAINA_C_NO_MEMORY) > before;
	len = job_frame(&j, f, SAINA_MSG_GRAD, 0, r, 0, NULL);
	ok &= harness_packet_alone(&harness, f, len, 1) && got_broadcast(1, 0);
	saina_dp_event_dispatch(harness.dp, &cb);
	tap_ok(ok, "a full ring buffer is counted and stops no round");
	saina_dp_job_remove(harness.dp, 5);
	oracle_job_remove(&harness.o, 5);
}

void defects_events(void)
{
	test_stale_events();
	test_events_rest();
	test_full_rings();
}
