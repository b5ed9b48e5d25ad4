// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Groups (Basu et al.): workers of a group step together, groups on their own.  What
 * Documentation/datapath.rst 11.9 says, one statement after the other, on the real program
 * and the oracle at once.  (Random traces of the same: table_test --policy grouped.)
 */
#include <unistd.h>
#include "lab.h"
#include "lib/rng.h"

#define WORKERS		4
#define SEGMENTS	3
#define STEPS		24

struct rig rig;
bool lab_same;

static struct lab job(unsigned int number, unsigned int workers, struct saina_policy p)
{
	static uint32_t generations;
	struct lab l = lab_job(number, workers, SEGMENTS, p);

	l.conf.generation += ++generations << 22;
	lab_publish(&l);
	return l;
}

/* What worker @w has to say of a segment in a step: any numbers, sums of which wrap. */
static const int32_t *update(unsigned int w, uint32_t step, uint32_t segment)
{
	static int32_t v[LAB_ELEMS];
	struct rng r;

	rng_seed(&r, 1 + w + 100 * segment + 10000ull * step);
	for (int i = 0; i < LAB_ELEMS; i++)
		v[i] = rng_u64(&r);
	return v;
}

static void inc(const struct lab *l, unsigned int w, uint32_t step, uint32_t segment)
{
	lab_say_v(l, SAINA_MSG_INC, w, step, segment, update(w, step, segment));
}

static void push(const struct lab *l, unsigned int w, uint32_t step)
{
	for (uint32_t s = 0; s < SEGMENTS; s++)
		inc(l, w, step, s);
	lab_say_v(l, SAINA_MSG_CLOCK, w, step, 0, NULL);
}

static void take(int32_t *v)
{
	memcpy(v, rig.got + FRAME_PAYLOAD, 4 * LAB_ELEMS);
}

/* The sums that worker @w reads for @step; false: it may not have them. */
static bool look(const struct lab *l, unsigned int w, uint32_t step, uint32_t segment, int32_t *v)
{
	lab_say_v(l, SAINA_MSG_READ, w, step, segment, NULL);
	take(v);
	return rig.verdict == XDP_REDIRECT && lab_answer()->type == SAINA_MSG_SUM &&
	       lab_answer()->worker == w && !memcmp(rig.got, l->conf.worker[w].mac, 6) &&
	       lab_answer()->flags == (SAINA_F_PULLED | SAINA_F_FRESH);
}

/* One group: in whatever order its workers come, each step adds what a round would. */
static void one_group(void)
{
	static int32_t want[STEPS][SEGMENTS][LAB_ELEMS], seen[WORKERS][SEGMENTS][LAB_ELEMS];
	struct lab l = job(5, WORKERS, lab_bsp());
	int32_t now[LAB_ELEMS];
	bool ok = true;
	struct rng r;

	for (uint32_t c = 0; c < STEPS; c++) {
		for (uint32_t s = 0; s < SEGMENTS; s++) {
			for (unsigned int w = 0; w < WORKERS; w++)
				lab_grad_v(&l, w, c, s, update(w, c, s));
			ok &= lab_answer()->type == SAINA_MSG_RESULT;
			take(want[c][s]);
		}
	}
	rng_seed(&r, 7);
	l = job(5, WORKERS, lab_grouped(1));
	for (uint32_t c = 0; c <= STEPS; c++) {
		unsigned int first = rng_below(&r, WORKERS);

		for (unsigned int i = 0; i < WORKERS; i++) {
			unsigned int w = (first + i) % WORKERS;

			for (uint32_t s = 0; c && s < SEGMENTS; s++) {
				ok &= look(&l, w, c, s, now);
				for (int e = 0; e < LAB_ELEMS; e++)
					ok &= (uint32_t)now[e] - (uint32_t)seen[w][s][e] ==
					      (uint32_t)want[c - 1][s][e];
				memcpy(seen[w][s], now, sizeof(now));
			}
			/* it pushes while others have not read yet; some messages come twice */
			if (c < STEPS) {
				push(&l, w, c);
				inc(&l, w, c, rng_below(&r, SEGMENTS));
			}
		}
	}
	lab_verdict(&l, ok, "groups: one group of all gives what rounds give, bit for bit");
}

/* As many groups as workers: every answer to an update has the sums that asp gives. */
static void alone(void)
{
	struct lab a = job(5, WORKERS, lab_ssp(SAINA_WINDOW_NONE));
	struct lab g = job(6, WORKERS, lab_grouped(WORKERS));
	uint32_t step[WORKERS] = { 0 };
	int32_t want[LAB_ELEMS];
	struct saina_hdr h;
	bool ok = true;
	struct rng r;

	rng_seed(&r, 3);
	for (int n = 0; n < 400; n++) {
		unsigned int w = rng_below(&r, WORKERS), s = rng_below(&r, SEGMENTS);
		int type = rng_chance(&r, 300) ? SAINA_MSG_READ :
			   rng_chance(&r, 300) ? SAINA_MSG_CLOCK : SAINA_MSG_INC;

		lab_say_v(&a, type, w, step[w], s, update(w, step[w], s));
		h = *lab_answer();
		take(want);
		lab_say_v(&g, type, w, step[w], s, update(w, step[w], s));
		ok &= h.type == lab_answer()->type;
		ok &= type != SAINA_MSG_CLOCK || h.segment == lab_answer()->segment;
		if (type == SAINA_MSG_CLOCK)
			step[w]++;
		else
			ok &= h.flags == lab_answer()->flags && h.mask == lab_answer()->mask &&
			      h.aux == lab_answer()->aux &&
			      !memcmp(want, rig.got + FRAME_PAYLOAD, sizeof(want));
	}
	lab_verdict(&g, ok, "groups: a group of each worker gives what asp gives, bit for bit");
}

/* 0 and 2 are one group, 1 and 3 the other. */
static void wait(void)
{
	struct lab l = job(5, 4, lab_grouped(2));
	bool ok = true;

	for (uint32_t c = 0; c < 5; c++) {
		push(&l, 0, c);
		ok &= lab_go(0, 4, c);		/* it waits for worker 2 */
		inc(&l, 0, c + 1, 0);
		ok &= lab_nak(SAINA_NAK_WAIT);
		push(&l, 2, c);
		ok &= lab_go(0xff, 5, c + 1);	/* and nobody waits for 1 and 3 */
	}
	push(&l, 1, 0);
	ok &= lab_go(1, 8, 0);
	push(&l, 3, 0);
	ok &= lab_go(0xff, 10, 1);
	lab_verdict(&l, ok, "groups: a worker waits for those of its group and for nobody else; a GO lets those of one group go");
}

static void same_sums(void)
{
	struct lab l = job(5, 4, lab_grouped(2));
	int32_t a[LAB_ELEMS], b[LAB_ELEMS];
	bool ok = true;

	push(&l, 0, 0);
	push(&l, 2, 0);
	ok &= look(&l, 0, 1, 0, a) && lab_answer()->mask == 2;
	inc(&l, 1, 0, 0);			/* the other group goes on */
	inc(&l, 0, 1, 0);			/* and so does worker 0 */
	ok &= !(lab_answer()->flags & SAINA_F_FRESH) && lab_answer()->mask == 4;
	ok &= look(&l, 2, 1, 0, b) && lab_answer()->mask == 2 && !memcmp(a, b, sizeof(a));
	lab_say_v(&l, SAINA_MSG_READ, 3, 0, 0, NULL);
	ok &= lab_answer()->mask == 4;		/* of the table itself: its group's view of step 0 */
	push(&l, 0, 1);
	push(&l, 2, 1);
	ok &= look(&l, 2, 2, 0, a) && lab_answer()->mask == 5;
	ok &= look(&l, 0, 2, 0, b) && !memcmp(a, b, sizeof(a));
	lab_verdict(&l, ok, "groups: those of a group are given the same sums for a step, whatever others push meanwhile");
}

static void not_yet(void)
{
	struct lab l = job(5, 4, lab_grouped(2));
	bool ok = true;

	push(&l, 0, 0);
	lab_say_v(&l, SAINA_MSG_READ, 0, 1, 0, NULL);
	ok &= lab_answer()->flags == SAINA_F_PULLED && lab_answer()->mask == 1;
	push(&l, 2, 0);
	lab_say_v(&l, SAINA_MSG_READ, 0, 1, 0, NULL);
	ok &= lab_answer()->flags == (SAINA_F_PULLED | SAINA_F_FRESH) && lab_answer()->mask == 2;
	lab_verdict(&l, ok, "groups: what is read before all of a group have finished is not for the next step");
}

static void twice(void)
{
	struct lab l = job(5, 4, lab_grouped(2));
	bool ok = true;

	for (int n = 0; n < 5; n++)
		inc(&l, 0, 0, 0);
	ok &= lab_answer()->flags == SAINA_F_RESEND && lab_answer()->mask == 1;
	push(&l, 2, 0);
	push(&l, 0, 0);
	inc(&l, 2, 0, 0);
	ok &= (lab_answer()->flags & SAINA_F_RESEND) && lab_answer()->mask == 2;
	lab_verdict(&l, ok, "groups: an update that comes again is counted once, before and after its step is over");
}

static void dead(void)
{
	struct lab l = job(5, 4, lab_grouped(2));
	int32_t a[LAB_ELEMS];
	bool ok = true;

	push(&l, 0, 0);
	inc(&l, 2, 0, 0);			/* half a step */
	lab_active(&l, 0xb);
	lab_say_v(&l, SAINA_MSG_CLOCK, 1, SAINA_ROUND_ASK, 0, NULL);
	ok &= lab_go(1, 10, 0);			/* of the other group: that is no GO for worker 0 */
	lab_say_v(&l, SAINA_MSG_CLOCK, 0, 0, 0, NULL);
	ok &= lab_go(0, 1, 1);
	inc(&l, 0, 1, 0);
	ok &= lab_answer()->flags == SAINA_F_FRESH && lab_answer()->mask == 3;	/* alone */
	lab_say_v(&l, SAINA_MSG_CLOCK, 0, 1, 0, NULL);
	ok &= lab_go(0, 1, 2);
	l.conf.worker[2].session = 77;		/* it comes back */
	lab_active(&l, 0xf);
	lab_say_v(&l, SAINA_MSG_CLOCK, 2, SAINA_ROUND_ASK, 0, NULL);
	ok &= lab_go(2, 5, 2) && lab_answer()->aux == 2;
	push(&l, 0, 2);
	ok &= lab_go(0, 4, 2);
	push(&l, 2, 2);
	ok &= lab_go(0xff, 5, 3) && look(&l, 2, 3, 1, a);
	lab_verdict(&l, ok, "groups: a dead worker does not block its group; one that comes back goes on where the group is");
}

/* A group of which nobody is left for a while. */
static void deserted(void)
{
	struct lab l = job(5, 4, lab_grouped(2));
	bool ok = true;

	push(&l, 1, 0);				/* worker 3 stays behind, and dies first */
	lab_active(&l, 7);
	for (uint32_t c = 1; c < 50; c++)
		push(&l, 1, c);
	lab_active(&l, 5);
	lab_say_v(&l, SAINA_MSG_CLOCK, 0, SAINA_ROUND_ASK, 0, NULL);
	lab_active(&l, 13);
	lab_say_v(&l, SAINA_MSG_CLOCK, 3, SAINA_ROUND_ASK, 0, NULL);
	ok &= lab_answer()->aux == 50;
	lab_active(&l, 15);
	lab_say_v(&l, SAINA_MSG_CLOCK, 1, SAINA_ROUND_ASK, 0, NULL);
	ok &= lab_go(1, 10, 50) && lab_answer()->aux == 50;
	lab_verdict(&l, ok, "groups: nobody is ahead of a group that was empty, or has to wait for it to catch up");
}

static bool mode_is(const struct lab *l, unsigned int mode, uint32_t base)
{
	struct saina_job_rt rt = lab_rt(l);

	return rt.mode == mode && rt.base == base && !rt.policy_mix;
}

static void regroup(void)
{
	struct lab l = job(5, 4, lab_grouped(2));
	struct saina_policy p = lab_grouped(2);
	bool ok = true;

	l.conf.ring = 4;
	l.conf.generation++;
	lab_publish(&l);
	for (uint32_t c = 0; c < 6; c++) {
		push(&l, 0, c);
		push(&l, 2, c);
	}
	push(&l, 1, 0);
	memcpy(p.group, (uint8_t[]){ 0, 0, 1, 1 }, 4);
	lab_policy(&l, p);
	push(&l, 3, 0);				/* it may finish; then nobody begins another */
	ok &= mode_is(&l, SAINA_RT_PS, 0);
	inc(&l, 0, 6, 0);
	ok &= lab_answer()->type == SAINA_MSG_SUM;	/* let go before: its step is the last one */
	push(&l, 0, 6);
	push(&l, 2, 6);
	ok &= lab_answer()->k == SAINA_NAK_MODE && lab_answer()->type == SAINA_MSG_GO;
	ok &= mode_is(&l, SAINA_RT_FENCE, 7);
	inc(&l, 0, 7, 0);
	ok &= lab_nak(SAINA_NAK_MODE);		/* not before all have read the table: a round first */
	for (uint32_t s = 0; s < SEGMENTS; s++)
		for (unsigned int w = 0; w < 4; w++)
			lab_grad(&l, w, 7, s, 1);
	ok &= lab_broadcast(0xf, 4) && mode_is(&l, SAINA_RT_FENCE, 7);
	lab_grad(&l, 0, 8, 0, 1);
	ok &= lab_nak(SAINA_NAK_MODE) && mode_is(&l, SAINA_RT_PS, 8);
	push(&l, 0, 8);
	ok &= lab_go(0, 2, 8);			/* it waits for worker 1 now */
	push(&l, 1, 8);
	ok &= lab_go(0xff, 3, 9);
	ok &= lab_rt(&l).policy_swaps == 2;
	lab_verdict(&l, ok, "groups: a worker changes its group after a round of all, and no slot has two policies");
}

static void same_groups(void)
{
	struct lab l = job(5, 4, lab_grouped(2));
	bool ok = true;

	push(&l, 0, 0);
	lab_policy(&l, lab_grouped(2));
	push(&l, 2, 0);
	ok &= lab_go(0xff, 5, 1) && mode_is(&l, SAINA_RT_PS, 0) && lab_rt(&l).policy_swaps == 2;
	lab_policy(&l, lab_ssp(3));
	push(&l, 0, 1);
	ok &= mode_is(&l, SAINA_RT_PS, 0) && lab_rt(&l).policy_swaps == 2;
	lab_verdict(&l, ok, "groups: the same groups under another number need no fence, other policies of steps do");
}

int main(void)
{
	if (geteuid())
		tap_skip_all("only root may load BPF programs");
	rig_open(&rig);
	one_group();
	alone();
	wait();
	same_sums();
	not_yet();
	twice();
	dead();
	deserted();
	regroup();
	same_groups();
	rig_close(&rig);
	return tap_done();
}
