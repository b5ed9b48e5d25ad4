// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * serene-1 .. serene-6 in parameter-server (PS) mode, the mode of Serene: each with the trace that
 * breaks the published code; see defects_test.c.  Then defects that SAINA itself had.
 */
#include <bpf/bpf.h>
#include <time.h>
#include <unistd.h>
#include "test_job.h"

static struct job ps_job(unsigned int workers, unsigned int segments, uint32_t window)
{
	struct job j = job_create(5, workers, segments, policy_ssp(window));

	j.conf.generation += 1u << 21;
	job_publish(&j);
	return j;
}

static void window(struct job *j, uint32_t w)
{
	job_set_policy(j, policy_ssp(w));
}

static void test_1(void)
{
	struct job j = ps_job(3, 1, 1);
	bool ok;

	for (unsigned int w = 0; w < 3; w++)
		send_step(&j, w, 0);
	send_step(&j, 0, 1);
	send_step(&j, 1, 1);
	ok = got_go(1, 7, 1);
	send_message(&j, SAINA_MSG_CLOCK, 2, 0, 0, 0);	/* a duplicate: it has not finished step 1 */
	ok &= got_go(2, 7, 1);
	send_step(&j, 0, 2);
	ok &= got_go(0, 6, 1);			/* two ahead of worker 2: it waits */
	send_message(&j, SAINA_MSG_INC, 0, 3, 0, 1);
	ok &= got_nak(SAINA_NAK_WAIT);
	send_step(&j, 2, 1);
	ok &= got_go(0xff, 7, 2);
	job_verdict(&j, ok, "serene-1 ps: a duplicate CLOCK of a finished step does not finish the next one");
}

static void test_2(void)
{
	struct job j = ps_job(2, 2, 3);
	bool ok = true;

	send_message(&j, SAINA_MSG_INC, 0, 0, 0, 5);
	ok &= got_sum(0, 5);
	for (int i = 0; i < 3; i++) {
		send_message(&j, SAINA_MSG_INC, 0, 0, 0, 5);
		ok &= got_sum(SAINA_F_RESEND, 5) && got_answer()->aux == 1;
	}
	send_message(&j, SAINA_MSG_CLOCK, 0, 0, 0, 0);	/* overtakes the other INC */
	send_message(&j, SAINA_MSG_INC, 0, 0, 1, 5);
	ok &= got_nak(SAINA_NAK_ORDER);		/* its worker hears that it is lost */
	send_message(&j, SAINA_MSG_INC, 0, 2, 0, 5);
	ok &= got_nak(SAINA_NAK_ORDER);
	send_message(&j, SAINA_MSG_READ, 1, 0, 0, 0);
	ok &= got_sum(SAINA_F_PULLED, 5) && got_answer()->mask == 1;
	send_message(&j, SAINA_MSG_READ, 1, 0, 1, 0);
	ok &= got_sum(SAINA_F_PULLED, 0) && got_answer()->mask == 0;
	job_verdict(&j, ok, "serene-2 ps: an update is counted once and acknowledged, or refused with an answer");
}

static void test_3(void)
{
	struct job j = ps_job(3, 1, 1);
	bool ok;

	send_step(&j, 0, 0);
	send_step(&j, 0, 1);
	ok = got_go(0, 6, 0);
	window(&j, 5);
	send_message(&j, SAINA_MSG_CLOCK, 0, 1, 0, 0);	/* low has not moved */
	ok &= got_go(0xff, 7, 0) || got_go(0, 7, 0);
	window(&j, 1);
	send_step(&j, 0, 2);				/* it was let go, and stays so */
	ok &= got_go(0, 6, 0);
	window(&j, 5);
	send_message(&j, SAINA_MSG_CLOCK, 1, 0, 0, 0);	/* anybody's clock wakes it */
	ok &= got_go(0xff, 7, 0);
	job_verdict(&j, ok, "serene-3 ps: a waiting worker goes on when the window grows, before the slowest moves");
}

static void test_4(void)
{
	struct job j = ps_job(3, 1, 1);
	bool ok = true;
	uint32_t base = 0;

	for (int turn = 0; turn < 3; turn++) {
		window(&j, SAINA_WINDOW_NONE);
		for (uint32_t c = 0; c < 9; c++)
			send_step(&j, 0, base + c);
		ok &= got_go(0, 7, base);
		window(&j, 1);
		send_step(&j, 0, base + 9);		/* let go before: the last one */
		ok &= got_go(0, 6, base);
		for (uint32_t c = 0; c < 9; c++) {
			send_step(&j, 1, base + c);
			send_step(&j, 2, base + c);
		}
		ok &= got_go(0xff, 7, base + 9);	/* one behind, as the window says */
		send_step(&j, 1, base + 9);
		send_step(&j, 2, base + 9);
		ok &= got_go(2, 7, base + 10);
		base += 10;
	}
	job_verdict(&j, ok, "serene-4 ps: ssp, asp, ssp ... leaves nothing behind");
}

static void test_5(void)
{
	struct job j = ps_job(2, 1, 1000);	/* results of two rounds are kept */
	bool ok = true;

	for (uint32_t c = 0; c < 1001; c++)
		send_step(&j, 0, c);
	ok &= got_go(0, 2, 0);
	send_step(&j, 1, 0);
	ok &= got_go(0xff, 3, 1);
	send_message(&j, SAINA_MSG_READ, 1, 1, 0, 0);
	ok &= got_sum(SAINA_F_PULLED, 1002) && got_answer()->mask == 1002;
	job_verdict(&j, ok, "serene-5 ps: a window of any size mistakes no step for another");
}

static void test_6(void)
{
	struct job j = ps_job(2, 1, 2);
	bool ok;

	j.conf.generation += 1u << 20;	/* begins again at a later step */
	j.first_round = 0x1fffe;
	job_publish(&j);
	send_step(&j, 0, 0x1fffe);
	ok = got_go(0, 3, 0x1fffe) && got_answer()->aux == 0x1ffff;
	send_message(&j, SAINA_MSG_INC, 1, 0xfffe, 0, 9);	/* the same low 16 bits */
	ok &= got_nak(SAINA_NAK_ORDER);
	send_message(&j, SAINA_MSG_CLOCK, 1, 0xfffe, 0, 0);
	ok &= got_go(1, 3, 0x1fffe) && got_answer()->aux == 0x1fffe;
	send_message(&j, SAINA_MSG_CLOCK, 1, 0x2fffe, 0, 0);
	ok &= got_go(1, 3, 0x1fffe) && got_answer()->round == 0x2fffe;
	ok &= job_counter(&j, 1, SAINA_C_CLOCK_ORDER) == 2;
	send_step(&j, 1, 0x1fffe);
	ok &= got_go(1, 3, 0x1ffff);
	job_verdict(&j, ok, "serene-6 ps: steps are 32 bits wide and compared whole; answers name them");
}

/* A worker is ahead of others and dies; then rounds, then steps again. */
static void test_dead_ahead(void)
{
	struct job j = ps_job(3, 1, SAINA_WINDOW_NONE);
	bool ok = true;

	for (uint32_t c = 0; c < 10; c++)
		send_step(&j, 0, c);
	job_set_active(&j, 6);
	job_set_policy(&j, policy_bsp());
	send_step(&j, 1, 0);
	send_step(&j, 2, 0);
	ok &= got_answer()->k == SAINA_NAK_MODE && job_rt(&j).mode == SAINA_RT_FENCE;
	send_grad(&j, 1, job_rt(&j).base, 0, 1);
	send_grad(&j, 2, job_rt(&j).base, 0, 1);
	ok &= got_broadcast(6, 2);
	window(&j, 1);
	send_grad(&j, 1, job_rt(&j).next_round, 0, 1);
	ok &= got_nak(SAINA_NAK_MODE);
	j.conf.worker[0].session++;
	job_set_active(&j, 7);
	send_message(&j, SAINA_MSG_CLOCK, 0, SAINA_ROUND_ASK, 0, 0);
	ok &= got_go(0, 7, job_rt(&j).base) && got_answer()->aux == job_rt(&j).base;
	job_verdict(&j, ok, "ps: a worker that died ahead of others begins the next steps where they do");
}

/* Worker 0 is as far ahead as it may be when the job is to go back to rounds. */
static void test_fence_window(void)
{
	struct job j = ps_job(2, 1, 1);	/* two results are kept: the fence is not 2, but 3 */
	bool ok;

	send_step(&j, 0, 0);
	send_step(&j, 0, 1);
	ok = got_go(0, 2, 0) && got_answer()->aux == 2;
	job_set_policy(&j, policy_bsp());
	send_message(&j, SAINA_MSG_CLOCK, 0, 1, 0, 0);
	ok &= got_go(0, 2, 0) && got_answer()->aux == 2;
	window(&j, 1);			/* taken back: it skips nothing */
	send_message(&j, SAINA_MSG_CLOCK, 0, 1, 0, 0);
	ok &= got_go(0, 2, 0) && got_answer()->aux == 2;
	job_set_policy(&j, policy_bsp());
	send_step(&j, 1, 0);
	ok &= got_go(0xff, 0, 3) && got_answer()->k == SAINA_NAK_MODE;
	job_verdict(&j, ok, "ps: before rounds begin no worker is more than W + 1 ahead");
}

/* The fence waits for all workers, whatever its policy: they must read the sums first. */
static void test_fence_timeout(void)
{
	struct saina_policy p = { .mode = SAINA_POLICY_TIMEOUT, .late = SAINA_LATE_RESIDUAL,
				  .timeout_us = 1000, .k_min = 1 };
	struct timespec longer = { .tv_nsec = 30000000 };	/* and a tick of the coarse clock */
	struct job j = ps_job(2, 1, 1);
	uint32_t fence;
	bool ok;

	send_step(&j, 0, 0);
	job_set_policy(&j, p);
	send_step(&j, 1, 0);
	send_step(&j, 0, 1);
	fence = job_rt(&j).base;
	ok = job_rt(&j).mode == SAINA_RT_FENCE;
	send_grad(&j, 0, fence, 0, 5);
	nanosleep(&longer, NULL);
	send_grad(&j, 0, fence, 0, 5);
	ok &= was_dropped() && job_counter(&j, 0, SAINA_C_DUPLICATE) == 1;
	send_pull(&j, 0, fence, 0);
	ok &= was_dropped();
	send_grad(&j, 1, fence, 0, 5);
	ok &= got_broadcast(3, 10) && !got_answer()->flags;
	job_verdict(&j, ok, "ps: the first round after PS mode has no time-out");
}

/* All are at the fence, worker 1 has not read the sums; then a policy with steps comes again. */
static void test_fence_cancelled(void)
{
	struct job j = ps_job(2, 1, 1);
	uint32_t fence;
	bool ok;

	send_step(&j, 0, 0);
	job_set_policy(&j, policy_bsp());
	send_step(&j, 1, 0);
	send_step(&j, 0, 1);
	fence = job_rt(&j).base;
	ok = job_rt(&j).mode == SAINA_RT_FENCE;
	window(&j, 1);
	send_grad(&j, 0, fence, 0, 5);
	ok &= was_dropped();
	send_message(&j, SAINA_MSG_READ, 1, fence, 0, 0);
	ok &= got_sum(SAINA_F_PULLED, 3) && got_answer()->mask == 3;
	send_grad(&j, 1, fence, 0, 5);
	ok &= got_broadcast(3, 10);
	send_grad(&j, 0, fence + 1, 0, 5);
	ok &= got_nak(SAINA_NAK_MODE) && got_answer()->slot_round == fence + 1;
	job_verdict(&j, ok, "ps: steps begin again only after a round that all workers began: they have read the sums");
}

/*
 * Steps begin where a round has a segment that nobody sent, for who was ahead has died: its hot
 * slot is still that of the previous round, whose ring entry now has the sums of steps.
 */
static void test_taken_entry(void)
{
	struct job j = job_create(5, 2, 2, policy_fastest(1));
	uint32_t next = 3;
	bool ok;

	j.conf.generation += 1u << 22;
	j.first_round = 1;
	job_publish(&j);
	send_grad(&j, 0, 1, 0, 7);
	send_grad(&j, 0, 1, 1, 7);
	ok = got_broadcast(1, 7);
	send_grad(&j, 0, 2, 0, 7);
	ok &= got_broadcast(1, 7);		/* of segment 1 nothing comes any more */
	window(&j, SAINA_WINDOW_NONE);
	send_grad(&j, 0, next, 0, 7);
	ok &= got_nak(SAINA_NAK_MODE) && job_rt(&j).base == next;
	send_grad(&j, 1, 1, 1, 9);		/* before and after PS mode has begun there */
	ok &= got_unicast(&j, 1, SAINA_F_LATE, 1, 7);
	send_message(&j, SAINA_MSG_INC, 0, next, 1, 100);
	ok &= got_sum(0, 100);
	send_grad(&j, 1, 1, 1, 9);
	ok &= got_stale(next);
	send_pull(&j, 0, 1, 1);
	ok &= got_stale(next);
	send_grad(&j, 0, 1, 1, 7);
	ok &= got_stale(next);
	job_verdict(&j, ok, "ps: a round whose ring entry has the sums of steps is gone, also if no later round came");
}

/*
 * A CPU that looks at rt while another writes: it finds mode TABLE, and the base of the rounds.
 * The oracle does one thing at a time, so the program is alone here.
 */
static void test_torn_fence(void)
{
	struct job j = ps_job(2, 1, 1);
	struct saina_job_rt rt, torn;
	uint8_t f[FRAME_MAX];
	int map = harness_map(&harness, "saina_rt");
	__u32 job = j.conf.job;
	unsigned int len;
	bool ok;

	send_step(&j, 0, 0);
	job_set_policy(&j, policy_bsp());
	send_step(&j, 1, 0);
	send_step(&j, 0, 1);
	rt = torn = job_rt(&j);
	ok = agrees && rt.mode == SAINA_RT_FENCE;
	len = job_frame(&j, f, SAINA_MSG_READ, 1, rt.base, 0, NULL);
	torn.mode = SAINA_RT_PS;
	ok &= !bpf_map_update_elem(map, &job, &torn, BPF_ANY);
	ok &= harness_packet_alone(&harness, f, len, j.conf.worker[1].ifindex) && was_dropped();
	ok &= !bpf_map_update_elem(map, &job, &rt, BPF_ANY);
	ok &= harness_packet_alone(&harness, f, len, j.conf.worker[1].ifindex);
	ok &= got_sum(SAINA_F_PULLED, 3);
	close(map);
	tap_ok(ok, "ps: a READ that comes while PS mode ends does not take the sums away from others");
}

void defects_ps(void)
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
