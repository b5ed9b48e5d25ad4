// SPDX-License-Identifier: GPL-2.0-or-later
/* serene-1 .. serene-6: the published defects of Serene; see defects_test.c. */
#include "test_job.h"

static void test_serene_1(void)
{
	struct job j = job_create(5, 2, 1, policy_bsp());
	bool ok;

	send_grad(&j, 0, 0, 0, 1);
	send_grad(&j, 1, 0, 0, 1);
	send_grad(&j, 0, 1, 0, 1);
	send_grad(&j, 1, 0, 0, 1);	/* a duplicate of the finished round */
	ok = got_unicast(&j, 1, SAINA_F_RESEND, 3, 2);
	send_grad(&j, 0, 1, 0, 1);
	ok &= was_dropped() && job_counter(&j, 0, SAINA_C_DUPLICATE) == 1;
	send_grad(&j, 1, 1, 0, 5);
	ok &= got_broadcast(3, 6);
	job_verdict(&j, ok, "serene-1 a duplicate of a finished round does not count in the next one");
}

static void test_serene_2(void)
{
	struct job j = job_create(5, 2, 1, policy_bsp());
	bool ok = true;

	for (int i = 0; i < 5; i++) {
		send_grad(&j, 0, 0, 0, 1);
		ok &= was_dropped();
	}
	send_grad(&j, 1, 0, 0, 2);
	ok &= got_broadcast(3, 3);
	for (int i = 0; i < 5; i++) {
		send_grad(&j, 0, 0, 0, 1);
		ok &= got_unicast(&j, 0, SAINA_F_RESEND, 3, 3) && got_answer()->aux == 1;
	}
	job_verdict(&j, ok, "serene-2 a gradient is counted once however often it is sent, and acknowledged");
}

static void test_serene_3(void)
{
	struct job j = job_create(5, 3, 2, policy_bsp());
	bool ok;

	send_grad(&j, 0, 0, 0, 1);
	job_set_policy(&j, policy_fastest(1));
	send_grad(&j, 0, 0, 0, 1);
	ok = was_dropped();		/* this round began under BSP and ends so */
	send_grad(&j, 0, 0, 1, 1);
	ok &= was_dropped();
	for (uint32_t s = 0; s < 2; s++) {
		send_grad(&j, 1, 0, s, 1);
		send_grad(&j, 2, 0, s, 1);
		ok &= got_broadcast(7, 3) && got_answer()->policy == 1;
	}
	send_grad(&j, 2, 1, 1, 9);	/* the next one does not */
	ok &= got_broadcast(4, 9) && got_answer()->policy == 2 && job_rt(&j).count[SAINA_JC_POLICY_MIX] == 0;
	job_verdict(&j, ok, "serene-3 a new policy rules from the next round, for every slot of it");
}

static void test_serene_4(void)
{
	struct job j = job_create(5, 3, 1, policy_bsp());
	bool ok = true;
	uint32_t r = 0;

	for (int turn = 0; turn < 3; turn++) {
		for (unsigned int w = 0; w < 3; w++)
			send_grad(&j, w, r, 0, 1);
		ok &= got_broadcast(7, 3);
		r++;
		job_set_policy(&j, policy_fastest(1));
		send_grad(&j, 1, r, 0, 5);
		ok &= got_broadcast(2, 5);
		send_grad(&j, 2, r, 0, 5);
		ok &= got_unicast(&j, 2, SAINA_F_LATE, 2, 5);
		r++;
		job_set_policy(&j, policy_bsp());
	}
	ok &= job_rt(&j).count[SAINA_JC_POLICY_SWAPS] == 6;	/* the seventh waits for its round */
	job_verdict(&j, ok, "serene-4 bsp, fastest, bsp ... leaves nothing behind");
}

static void test_serene_5(void)
{
	struct job j = job_create(5, 2, 1, policy_fastest(1));
	bool ok = true;

	for (uint32_t r = 0; r < 5; r++)
		send_grad(&j, 0, r, 0, 10 + r);
	for (uint32_t r = 0; r < 5; r++) {
		send_pull(&j, 1, r, 0);
		ok &= r < 3 ? got_stale(5) :
		      got_unicast(&j, 1, SAINA_F_PULLED | SAINA_F_LATE, 1, 10 + r);
	}
	job_verdict(&j, ok, "serene-5 rounds that share a ring entry are never taken for each other");
}

static void test_serene_6(void)
{
	struct job j = job_create(5, 2, 1, policy_fastest(2));
	bool ok;

	j.conf.generation += 1u << 20;	/* begins again at a later round */
	j.first_round = 0x1fffe;
	job_publish(&j);
	send_grad(&j, 0, 0x1fffd, 0, 1);		/* never was, and never will be */
	ok = got_stale(0x1fffe);
	send_pull(&j, 0, 0x1fffd, 0);
	ok &= got_stale(0x1fffe);
	send_grad(&j, 0, 0x1fffe, 0, 1);
	send_grad(&j, 1, 0xfffe, 0, 50);		/* the same low 16 bits */
	ok &= got_stale(0x1ffff);
	send_grad(&j, 1, 0x2fffe, 0, 50);
	ok &= was_dropped() && job_counter(&j, 1, SAINA_C_FUTURE) == 1;
	send_grad(&j, 1, 0xffffffff, 0, 50);
	send_pull(&j, 1, 0xffffffff, 0);
	ok &= was_dropped() && job_counter(&j, 1, SAINA_C_PULL_EARLY) == 1;
	send_grad(&j, 1, 0x1fffe, 0, 2);
	ok &= got_broadcast(3, 3);
	job_verdict(&j, ok, "serene-6 rounds are 32 bits wide and compared whole");
}

void defects_serene(void)
{
	test_serene_1();
	test_serene_2();
	test_serene_3();
	test_serene_4();
	test_serene_5();
	test_serene_6();
}
