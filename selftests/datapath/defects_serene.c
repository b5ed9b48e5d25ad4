// SPDX-License-Identifier: GPL-2.0-or-later
/* serene-1 .. serene-6: the published defects of Serene; see defects_test.c. */
#include "lab.h"

static void test_serene_1(void)
{
	struct lab l = lab_job(5, 2, 1, lab_bsp());
	bool ok;

	lab_grad(&l, 0, 0, 0, 1);
	lab_grad(&l, 1, 0, 0, 1);
	lab_grad(&l, 0, 1, 0, 1);
	lab_grad(&l, 1, 0, 0, 1);	/* a duplicate of the finished round */
	ok = lab_unicast(&l, 1, SAINA_F_RESEND, 3, 2);
	lab_grad(&l, 0, 1, 0, 1);
	ok &= lab_consumed() && lab_counter(&l, 0, SAINA_C_DUPLICATE) == 1;
	lab_grad(&l, 1, 1, 0, 5);
	ok &= lab_broadcast(3, 6);
	lab_verdict(&l, ok, "serene-1 a duplicate of a finished round is no vote in the next one");
}

static void test_serene_2(void)
{
	struct lab l = lab_job(5, 2, 1, lab_bsp());
	bool ok = true;

	for (int i = 0; i < 5; i++) {
		lab_grad(&l, 0, 0, 0, 1);
		ok &= lab_consumed();
	}
	lab_grad(&l, 1, 0, 0, 2);
	ok &= lab_broadcast(3, 3);
	for (int i = 0; i < 5; i++) {
		lab_grad(&l, 0, 0, 0, 1);
		ok &= lab_unicast(&l, 0, SAINA_F_RESEND, 3, 3) && lab_answer()->aux == 1;
	}
	lab_verdict(&l, ok, "serene-2 a gradient is counted once however often it is sent, and acknowledged");
}

static void test_serene_3(void)
{
	struct lab l = lab_job(5, 3, 2, lab_bsp());
	bool ok;

	lab_grad(&l, 0, 0, 0, 1);
	lab_policy(&l, lab_fastest(1));
	lab_grad(&l, 0, 0, 0, 1);
	ok = lab_consumed();		/* this round began under BSP and ends so */
	lab_grad(&l, 0, 0, 1, 1);
	ok &= lab_consumed();
	for (uint32_t s = 0; s < 2; s++) {
		lab_grad(&l, 1, 0, s, 1);
		lab_grad(&l, 2, 0, s, 1);
		ok &= lab_broadcast(7, 3) && lab_answer()->policy == 1;
	}
	lab_grad(&l, 2, 1, 1, 9);	/* the next one does not */
	ok &= lab_broadcast(4, 9) && lab_answer()->policy == 2 && lab_rt(&l).policy_mix == 0;
	lab_verdict(&l, ok, "serene-3 a new policy rules from the next round, for every slot of it");
}

static void test_serene_4(void)
{
	struct lab l = lab_job(5, 3, 1, lab_bsp());
	bool ok = true;
	uint32_t r = 0;

	for (int turn = 0; turn < 3; turn++) {
		for (unsigned int w = 0; w < 3; w++)
			lab_grad(&l, w, r, 0, 1);
		ok &= lab_broadcast(7, 3);
		r++;
		lab_policy(&l, lab_fastest(1));
		lab_grad(&l, 1, r, 0, 5);
		ok &= lab_broadcast(2, 5);
		lab_grad(&l, 2, r, 0, 5);
		ok &= lab_unicast(&l, 2, SAINA_F_LATE, 2, 5);
		r++;
		lab_policy(&l, lab_bsp());
	}
	ok &= lab_rt(&l).policy_swaps == 6;	/* the seventh waits for its round */
	lab_verdict(&l, ok, "serene-4 bsp, fastest, bsp ... leaves nothing behind");
}

static void test_serene_5(void)
{
	struct lab l = lab_job(5, 2, 1, lab_fastest(1));
	bool ok = true;

	for (uint32_t r = 0; r < 5; r++)
		lab_grad(&l, 0, r, 0, 10 + r);
	for (uint32_t r = 0; r < 5; r++) {
		lab_pull(&l, 1, r, 0);
		ok &= r < 3 ? lab_stale(5) :
		      lab_unicast(&l, 1, SAINA_F_PULLED | SAINA_F_LATE, 1, 10 + r);
	}
	lab_verdict(&l, ok, "serene-5 rounds that share a ring entry are never taken for each other");
}

static void test_serene_6(void)
{
	struct lab l = lab_job(5, 2, 1, lab_fastest(2));
	bool ok;

	l.conf.generation += 1u << 20;	/* begun afresh at a later round */
	l.first_round = 0x1fffe;
	lab_publish(&l);
	lab_grad(&l, 0, 0x1fffd, 0, 1);		/* never was, and never will be */
	ok = lab_stale(0x1fffe);
	lab_pull(&l, 0, 0x1fffd, 0);
	ok &= lab_stale(0x1fffe);
	lab_grad(&l, 0, 0x1fffe, 0, 1);
	lab_grad(&l, 1, 0xfffe, 0, 50);		/* the same low 16 bits */
	ok &= lab_stale(0x1ffff);
	lab_grad(&l, 1, 0x2fffe, 0, 50);
	ok &= lab_consumed() && lab_counter(&l, 1, SAINA_C_FUTURE) == 1;
	lab_grad(&l, 1, 0xffffffff, 0, 50);
	lab_pull(&l, 1, 0xffffffff, 0);
	ok &= lab_consumed() && lab_counter(&l, 1, SAINA_C_PULL_EARLY) == 1;
	lab_grad(&l, 1, 0x1fffe, 0, 2);
	ok &= lab_broadcast(3, 3);
	lab_verdict(&l, ok, "serene-6 rounds are 32 bits wide and compared whole");
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
