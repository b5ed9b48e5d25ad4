// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * serene-1 .. serene-6 in table mode, which is what Serene does: each with the trace that
 * breaks the published code; see defects_test.c.  Behind them, defects of our own.
 */
#include <bpf/bpf.h>
#include <time.h>
#include <unistd.h>
#include "lab.h"

static struct lab table(unsigned int workers, unsigned int segments, uint32_t window)
{
	struct lab l = lab_job(5, workers, segments, lab_ssp(window));

	l.conf.generation += 1u << 21;
	lab_publish(&l);
	return l;
}

static void window(struct lab *l, uint32_t w)
{
	lab_policy(l, lab_ssp(w));
}

static void test_1(void)
{
	struct lab l = table(3, 1, 1);
	bool ok;

	for (unsigned int w = 0; w < 3; w++)
		lab_step(&l, w, 0);
	lab_step(&l, 0, 1);
	lab_step(&l, 1, 1);
	ok = lab_go(1, 7, 1);
	lab_say(&l, SAINA_MSG_CLOCK, 2, 0, 0, 0);	/* a duplicate: it has not finished step 1 */
	ok &= lab_go(2, 7, 1);
	lab_step(&l, 0, 2);
	ok &= lab_go(0, 6, 1);			/* two ahead of worker 2: it waits */
	lab_say(&l, SAINA_MSG_INC, 0, 3, 0, 1);
	ok &= lab_nak(SAINA_NAK_WAIT);
	lab_step(&l, 2, 1);
	ok &= lab_go(0xff, 7, 2);
	lab_verdict(&l, ok, "serene-1 table: a duplicate of a finished step's clock is no vote in the next one");
}

static void test_2(void)
{
	struct lab l = table(2, 2, 3);
	bool ok = true;

	lab_say(&l, SAINA_MSG_INC, 0, 0, 0, 5);
	ok &= lab_sum(0, 5);
	for (int i = 0; i < 3; i++) {
		lab_say(&l, SAINA_MSG_INC, 0, 0, 0, 5);
		ok &= lab_sum(SAINA_F_RESEND, 5) && lab_answer()->aux == 1;
	}
	lab_say(&l, SAINA_MSG_CLOCK, 0, 0, 0, 0);	/* overtakes the other INC */
	lab_say(&l, SAINA_MSG_INC, 0, 0, 1, 5);
	ok &= lab_nak(SAINA_NAK_ORDER);		/* its worker hears that it is lost */
	lab_say(&l, SAINA_MSG_INC, 0, 2, 0, 5);
	ok &= lab_nak(SAINA_NAK_ORDER);
	lab_say(&l, SAINA_MSG_READ, 1, 0, 0, 0);
	ok &= lab_sum(SAINA_F_PULLED, 5) && lab_answer()->mask == 1;
	lab_say(&l, SAINA_MSG_READ, 1, 0, 1, 0);
	ok &= lab_sum(SAINA_F_PULLED, 0) && lab_answer()->mask == 0;
	lab_verdict(&l, ok, "serene-2 table: an update is counted once and acknowledged, or refused with an answer");
}

static void test_3(void)
{
	struct lab l = table(3, 1, 1);
	bool ok;

	lab_step(&l, 0, 0);
	lab_step(&l, 0, 1);
	ok = lab_go(0, 6, 0);
	window(&l, 5);
	lab_say(&l, SAINA_MSG_CLOCK, 0, 1, 0, 0);	/* low has not moved */
	ok &= lab_go(0xff, 7, 0) || lab_go(0, 7, 0);
	window(&l, 1);
	lab_step(&l, 0, 2);				/* it was let go, and stays so */
	ok &= lab_go(0, 6, 0);
	window(&l, 5);
	lab_say(&l, SAINA_MSG_CLOCK, 1, 0, 0, 0);	/* anybody's clock wakes it */
	ok &= lab_go(0xff, 7, 0);
	lab_verdict(&l, ok, "serene-3 table: who waits goes on when the window grows, before the slowest moves");
}

static void test_4(void)
{
	struct lab l = table(3, 1, 1);
	bool ok = true;
	uint32_t base = 0;

	for (int turn = 0; turn < 3; turn++) {
		window(&l, SAINA_WINDOW_NONE);
		for (uint32_t c = 0; c < 9; c++)
			lab_step(&l, 0, base + c);
		ok &= lab_go(0, 7, base);
		window(&l, 1);
		lab_step(&l, 0, base + 9);		/* let go before: the last one */
		ok &= lab_go(0, 6, base);
		for (uint32_t c = 0; c < 9; c++) {
			lab_step(&l, 1, base + c);
			lab_step(&l, 2, base + c);
		}
		ok &= lab_go(0xff, 7, base + 9);	/* one behind, as the window says */
		lab_step(&l, 1, base + 9);
		lab_step(&l, 2, base + 9);
		ok &= lab_go(2, 7, base + 10);
		base += 10;
	}
	lab_verdict(&l, ok, "serene-4 table: ssp, asp, ssp ... leaves nothing behind");
}

static void test_5(void)
{
	struct lab l = table(2, 1, 1000);	/* results of two rounds are kept */
	bool ok = true;

	for (uint32_t c = 0; c < 1001; c++)
		lab_step(&l, 0, c);
	ok &= lab_go(0, 2, 0);
	lab_step(&l, 1, 0);
	ok &= lab_go(0xff, 3, 1);
	lab_say(&l, SAINA_MSG_READ, 1, 1, 0, 0);
	ok &= lab_sum(SAINA_F_PULLED, 1002) && lab_answer()->mask == 1002;
	lab_verdict(&l, ok, "serene-5 table: a window as large as one likes takes no step for another");
}

static void test_6(void)
{
	struct lab l = table(2, 1, 2);
	bool ok;

	l.conf.generation += 1u << 20;	/* begun afresh at a later step */
	l.first_round = 0x1fffe;
	lab_publish(&l);
	lab_step(&l, 0, 0x1fffe);
	ok = lab_go(0, 3, 0x1fffe) && lab_answer()->aux == 0x1ffff;
	lab_say(&l, SAINA_MSG_INC, 1, 0xfffe, 0, 9);	/* the same low 16 bits */
	ok &= lab_nak(SAINA_NAK_ORDER);
	lab_say(&l, SAINA_MSG_CLOCK, 1, 0xfffe, 0, 0);
	ok &= lab_go(1, 3, 0x1fffe) && lab_answer()->aux == 0x1fffe;
	lab_say(&l, SAINA_MSG_CLOCK, 1, 0x2fffe, 0, 0);
	ok &= lab_go(1, 3, 0x1fffe) && lab_answer()->round == 0x2fffe;
	ok &= lab_counter(&l, 1, SAINA_C_CLOCK_ORDER) == 2;
	lab_step(&l, 1, 0x1fffe);
	ok &= lab_go(1, 3, 0x1ffff);
	lab_verdict(&l, ok, "serene-6 table: steps are 32 bits wide and compared whole; answers name them");
}

/* A worker is ahead of others and dies; rounds come, and another table. */
static void test_dead_ahead(void)
{
	struct lab l = table(3, 1, SAINA_WINDOW_NONE);
	bool ok = true;

	for (uint32_t c = 0; c < 10; c++)
		lab_step(&l, 0, c);
	lab_active(&l, 6);
	lab_policy(&l, lab_bsp());
	lab_step(&l, 1, 0);
	lab_step(&l, 2, 0);
	ok &= lab_answer()->k == SAINA_NAK_MODE && lab_rt(&l).mode == SAINA_RT_FENCE;
	lab_grad(&l, 1, lab_rt(&l).base, 0, 1);
	lab_grad(&l, 2, lab_rt(&l).base, 0, 1);
	ok &= lab_broadcast(6, 2);
	window(&l, 1);
	lab_grad(&l, 1, lab_rt(&l).next_round, 0, 1);
	ok &= lab_nak(SAINA_NAK_MODE);
	l.conf.worker[0].session++;
	lab_active(&l, 7);
	lab_say(&l, SAINA_MSG_CLOCK, 0, SAINA_ROUND_ASK, 0, 0);
	ok &= lab_go(0, 7, lab_rt(&l).base) && lab_answer()->aux == lab_rt(&l).base;
	lab_verdict(&l, ok, "table: a worker that died ahead of others begins the next table where they do");
}

/* Worker 0 is as far ahead as it may be when the job is to go back to rounds. */
static void test_fence_window(void)
{
	struct lab l = table(2, 1, 1);	/* two results are kept: the fence is not 2, but 3 */
	bool ok;

	lab_step(&l, 0, 0);
	lab_step(&l, 0, 1);
	ok = lab_go(0, 2, 0) && lab_answer()->aux == 2;
	lab_policy(&l, lab_bsp());
	lab_say(&l, SAINA_MSG_CLOCK, 0, 1, 0, 0);
	ok &= lab_go(0, 2, 0) && lab_answer()->aux == 2;
	window(&l, 1);			/* taken back: it skips nothing */
	lab_say(&l, SAINA_MSG_CLOCK, 0, 1, 0, 0);
	ok &= lab_go(0, 2, 0) && lab_answer()->aux == 2;
	lab_policy(&l, lab_bsp());
	lab_step(&l, 1, 0);
	ok &= lab_go(0xff, 0, 3) && lab_answer()->k == SAINA_NAK_MODE;
	lab_verdict(&l, ok, "table: while rounds are about to begin nobody is more than W + 1 ahead");
}

/* The fence waits for all, whatever the policy that comes with it: they have to read the table. */
static void test_fence_timeout(void)
{
	struct saina_policy p = { .mode = SAINA_POLICY_TIMEOUT, .late = SAINA_LATE_RESIDUAL,
				  .timeout_us = 1000, .k_min = 1 };
	struct timespec longer = { .tv_nsec = 30000000 };	/* and a tick of the coarse clock */
	struct lab l = table(2, 1, 1);
	uint32_t fence;
	bool ok;

	lab_step(&l, 0, 0);
	lab_policy(&l, p);
	lab_step(&l, 1, 0);
	lab_step(&l, 0, 1);
	fence = lab_rt(&l).base;
	ok = lab_rt(&l).mode == SAINA_RT_FENCE;
	lab_grad(&l, 0, fence, 0, 5);
	nanosleep(&longer, NULL);
	lab_grad(&l, 0, fence, 0, 5);
	ok &= lab_consumed() && lab_counter(&l, 0, SAINA_C_DUPLICATE) == 1;
	lab_pull(&l, 0, fence, 0);
	ok &= lab_consumed();
	lab_grad(&l, 1, fence, 0, 5);
	ok &= lab_broadcast(3, 10) && !lab_answer()->flags;
	lab_verdict(&l, ok, "table: the first round after a table has no time-out");
}

/* All are at the fence, and worker 1 has not read the table; then steps are asked for again. */
static void test_fence_cancelled(void)
{
	struct lab l = table(2, 1, 1);
	uint32_t fence;
	bool ok;

	lab_step(&l, 0, 0);
	lab_policy(&l, lab_bsp());
	lab_step(&l, 1, 0);
	lab_step(&l, 0, 1);
	fence = lab_rt(&l).base;
	ok = lab_rt(&l).mode == SAINA_RT_FENCE;
	window(&l, 1);
	lab_grad(&l, 0, fence, 0, 5);
	ok &= lab_consumed();
	lab_say(&l, SAINA_MSG_READ, 1, fence, 0, 0);
	ok &= lab_sum(SAINA_F_PULLED, 3) && lab_answer()->mask == 3;
	lab_grad(&l, 1, fence, 0, 5);
	ok &= lab_broadcast(3, 10);
	lab_grad(&l, 0, fence + 1, 0, 5);
	ok &= lab_nak(SAINA_NAK_MODE) && lab_answer()->slot_round == fence + 1;
	lab_verdict(&l, ok, "table: another table begins after a round that all began, for then they have read this one");
}

/*
 * Steps begin where a round has a segment that nobody sent, for who was ahead has died: its hot
 * slot is that of the round before still, whose place in the ring the table has taken.
 */
static void test_taken_entry(void)
{
	struct lab l = lab_job(5, 2, 2, lab_fastest(1));
	uint32_t next = 3;
	bool ok;

	l.conf.generation += 1u << 22;
	l.first_round = 1;
	lab_publish(&l);
	lab_grad(&l, 0, 1, 0, 7);
	lab_grad(&l, 0, 1, 1, 7);
	ok = lab_broadcast(1, 7);
	lab_grad(&l, 0, 2, 0, 7);
	ok &= lab_broadcast(1, 7);		/* of segment 1 nothing comes any more */
	window(&l, SAINA_WINDOW_NONE);
	lab_grad(&l, 0, next, 0, 7);
	ok &= lab_nak(SAINA_NAK_MODE) && lab_rt(&l).base == next;
	lab_grad(&l, 1, 1, 1, 9);		/* before and after the table has begun there */
	ok &= lab_unicast(&l, 1, SAINA_F_LATE, 1, 7);
	lab_say(&l, SAINA_MSG_INC, 0, next, 1, 100);
	ok &= lab_sum(0, 100);
	lab_grad(&l, 1, 1, 1, 9);
	ok &= lab_stale(next);
	lab_pull(&l, 0, 1, 1);
	ok &= lab_stale(next);
	lab_grad(&l, 0, 1, 1, 7);
	ok &= lab_stale(next);
	lab_verdict(&l, ok, "table: a round whose place in the ring the table took is gone, also where nothing came after it");
}

/*
 * A CPU that looks at rt while another writes: it finds mode TABLE, and the base of the rounds.
 * The oracle does one thing at a time, so the program is alone here.
 */
static void test_torn_fence(void)
{
	struct lab l = table(2, 1, 1);
	struct saina_job_rt rt, torn;
	uint8_t f[FRAME_MAX];
	int map = rig_map(&rig, "saina_rt");
	__u32 job = l.conf.job;
	unsigned int len;
	bool ok;

	lab_step(&l, 0, 0);
	lab_policy(&l, lab_bsp());
	lab_step(&l, 1, 0);
	lab_step(&l, 0, 1);
	rt = torn = lab_rt(&l);
	ok = lab_same && rt.mode == SAINA_RT_FENCE;
	len = lab_frame(&l, f, SAINA_MSG_READ, 1, rt.base, 0, NULL);
	torn.mode = SAINA_RT_PS;
	ok &= !bpf_map_update_elem(map, &job, &torn, BPF_ANY);
	ok &= rig_packet_alone(&rig, f, len, l.conf.worker[1].ifindex) && lab_consumed();
	ok &= !bpf_map_update_elem(map, &job, &rt, BPF_ANY);
	ok &= rig_packet_alone(&rig, f, len, l.conf.worker[1].ifindex);
	ok &= lab_sum(SAINA_F_PULLED, 3);
	close(map);
	tap_ok(ok, "table: a READ that comes while the table ends does not take it away from others");
}

void defects_table(void)
{
	test_1();
	test_2();
	test_3();
	test_4();
	test_5();
	test_6();
	test_dead_ahead();
	test_fence_window();
	test_fence_timeout();
	test_fence_cancelled();
	test_taken_entry();
	test_torn_fence();
}
