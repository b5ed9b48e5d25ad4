// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Groups (Basu et al.): workers of a group step together, groups independently.  Each statement of
 * Documentation/datapath.rst 11.9, on the real program and the oracle at once.  (Random traces of
 * the same: ps_test --policy grouped.)
 */
#include <unistd.h>
#include "test_job.h"
#include "lib/rng.h"

#define WORKERS		4
#define SEGMENTS	3
#define STEPS		24

struct harness harness;
bool agrees;

static struct job job(unsigned int number, unsigned int workers, struct saina_policy p)
{
	static uint32_t generations;
	struct job j = job_create(number, workers, SEGMENTS, p);

	j.conf.generation += ++generations << 22;
	job_publish(&j);
	return j;
}

/* The update of worker @w in a step: random numbers, whose sums wrap. */
static const int32_t *update(unsigned int w, uint32_t step, uint32_t segment)
{
	static int32_t v[JOB_ELEMS];
	struct rng r;

	rng_seed(&r, 1 + w + 100 * segment + 10000ull * step);
	for (int i = 0; i < JOB_ELEMS; i++)
		v[i] = rng_u64(&r);
	return v;
}

static void inc(const struct job *j, unsigned int w, uint32_t step, uint32_t segment)
{
	send_message_v(j, SAINA_MSG_INC, w, step, segment, update(w, step, segment));
}

static void push(const struct job *j, unsigned int w, uint32_t step)
{
	for (uint32_t s = 0; s < SEGMENTS; s++)
		inc(j, w, step, s);
	send_message_v(j, SAINA_MSG_CLOCK, w, step, 0, NULL);
}

static void read_sums(int32_t *v)
{
	memcpy(v, harness.got + FRAME_PAYLOAD, 4 * JOB_ELEMS);
}

/* The sums that worker @w reads for @step; false: it may not have them. */
static bool read_step(const struct job *j, unsigned int w, uint32_t step, uint32_t segment, int32_t *v)
{
	send_message_v(j, SAINA_MSG_READ, w, step, segment, NULL);
	read_sums(v);
	return harness.verdict == XDP_REDIRECT && got_answer()->type == SAINA_MSG_SUM &&
	       got_answer()->worker == w && !memcmp(harness.got, j->conf.worker[w].mac, 6) &&
	       got_answer()->flags == (SAINA_F_PULLED | SAINA_F_FRESH);
}

/* One group: each step adds what a round would, in any order of its workers. */
static void one_group(void)
{
	static int32_t want[STEPS][SEGMENTS][JOB_ELEMS], seen[WORKERS][SEGMENTS][JOB_ELEMS];
	struct job j = job(5, WORKERS, policy_bsp());
	int32_t now[JOB_ELEMS];
	bool ok = true;
	struct rng r;

	for (uint32_t c = 0; c < STEPS; c++) {
		for (uint32_t s = 0; s < SEGMENTS; s++) {
			for (unsigned int w = 0; w < WORKERS; w++)
				send_grad_v(&j, w, c, s, update(w, c, s));
			ok &= got_answer()->type == SAINA_MSG_RESULT;
			read_sums(want[c][s]);
		}
	}
	rng_seed(&r, 7);
	j = job(5, WORKERS, policy_grouped(1));
	for (uint32_t c = 0; c <= STEPS; c++) {
		unsigned int first = rng_below(&r, WORKERS);

		for (unsigned int i = 0; i < WORKERS; i++) {
			unsigned int w = (first + i) % WORKERS;

			for (uint32_t s = 0; c && s < SEGMENTS; s++) {
				ok &= read_step(&j, w, c, s, now);
				for (int e = 0; e < JOB_ELEMS; e++)
					ok &= (uint32_t)now[e] - (uint32_t)seen[w][s][e] ==
					      (uint32_t)want[c - 1][s][e];
				memcpy(seen[w][s], now, sizeof(now));
			}
			/* it pushes before others have read; some messages come twice */
			if (c < STEPS) {
				push(&j, w, c);
				inc(&j, w, c, rng_below(&r, SEGMENTS));
			}
		}
	}
	job_verdict(&j, ok, "groups: one group of all workers has the sums of rounds, bit for bit");
}

/* As many groups as workers: every answer to an update has the sums of asp. */
static void alone(void)
{
	struct job a = job(5, WORKERS, policy_ssp(SAINA_WINDOW_NONE));
	struct job g = job(6, WORKERS, policy_grouped(WORKERS));
	uint32_t step[WORKERS] = { 0 };
	int32_t want[JOB_ELEMS];
	struct saina_hdr h;
	bool ok = true;
	struct rng r;

	rng_seed(&r, 3);
	for (int n = 0; n < 400; n++) {
		unsigned int w = rng_below(&r, WORKERS), s = rng_below(&r, SEGMENTS);
		int type = rng_chance(&r, 300) ? SAINA_MSG_READ :
			   rng_chance(&r, 300) ? SAINA_MSG_CLOCK : SAINA_MSG_INC;

		send_message_v(&a, type, w, step[w], s, update(w, step[w], s));
		h = *got_answer();
		read_sums(want);
		send_message_v(&g, type, w, step[w], s, update(w, step[w], s));
		ok &= h.type == got_answer()->type;
		ok &= type != SAINA_MSG_CLOCK || h.segment == got_answer()->segment;
		if (type == SAINA_MSG_CLOCK)
			step[w]++;
		else
			ok &= h.flags == got_answer()->flags && h.mask == got_answer()->mask &&
			      h.aux == got_answer()->aux &&
			      !memcmp(want, harness.got + FRAME_PAYLOAD, sizeof(want));
	}
	job_verdict(&g, ok, "groups: groups of one worker have the sums of asp, bit for bit");
}

/* 0 and 2 are one group, 1 and 3 the other. */
static void wait(void)
{
	struct job j = job(5, 4, policy_grouped(2));
	bool ok = true;

	for (uint32_t c = 0; c < 5; c++) {
		push(&j, 0, c);
		ok &= got_go(0, 4, c);		/* it waits for worker 2 */
		inc(&j, 0, c + 1, 0);
		ok &= got_nak(SAINA_NAK_WAIT);
		push(&j, 2, c);
		ok &= got_go(0xff, 5, c + 1);	/* and nobody waits for 1 and 3 */
	}
	push(&j, 1, 0);
	ok &= got_go(1, 8, 0);
	push(&j, 3, 0);
	ok &= got_go(0xff, 10, 1);
	job_verdict(&j, ok, "groups: a worker waits for its group and for nobody else; a GO is for one group");
}

static void same_sums(void)
{
	struct job j = job(5, 4, policy_grouped(2));
	int32_t a[JOB_ELEMS], b[JOB_ELEMS];
	bool ok = true;

	push(&j, 0, 0);
	push(&j, 2, 0);
	ok &= read_step(&j, 0, 1, 0, a) && got_answer()->mask == 2;
	inc(&j, 1, 0, 0);			/* the other group goes on */
	inc(&j, 0, 1, 0);			/* and so does worker 0 */
	ok &= !(got_answer()->flags & SAINA_F_FRESH) && got_answer()->mask == 4;
	ok &= read_step(&j, 2, 1, 0, b) && got_answer()->mask == 2 && !memcmp(a, b, sizeof(a));
	send_message_v(&j, SAINA_MSG_READ, 3, 0, 0, NULL);
	ok &= got_answer()->mask == 4;		/* of the sums themselves: its group's view of step 0 */
	push(&j, 0, 1);
	push(&j, 2, 1);
	ok &= read_step(&j, 2, 2, 0, a) && got_answer()->mask == 5;
	ok &= read_step(&j, 0, 2, 0, b) && !memcmp(a, b, sizeof(a));
	job_verdict(&j, ok, "groups: the workers of a group get the same sums for a step, whatever others push meanwhile");
}

static void not_yet(void)
{
	struct job j = job(5, 4, policy_grouped(2));
	bool ok = true;

	push(&j, 0, 0);
	send_message_v(&j, SAINA_MSG_READ, 0, 1, 0, NULL);
	ok &= got_answer()->flags == SAINA_F_PULLED && got_answer()->mask == 1;
	push(&j, 2, 0);
	send_message_v(&j, SAINA_MSG_READ, 0, 1, 0, NULL);
	ok &= got_answer()->flags == (SAINA_F_PULLED | SAINA_F_FRESH) && got_answer()->mask == 2;
	job_verdict(&j, ok, "groups: sums read before all of a group have finished are not for the next step");
}

static void twice(void)
{
	struct job j = job(5, 4, policy_grouped(2));
	bool ok = true;

	for (int n = 0; n < 5; n++)
		inc(&j, 0, 0, 0);
	ok &= got_answer()->flags == SAINA_F_RESEND && got_answer()->mask == 1;
	push(&j, 2, 0);
	push(&j, 0, 0);
	inc(&j, 2, 0, 0);
	ok &= (got_answer()->flags & SAINA_F_RESEND) && got_answer()->mask == 2;
	job_verdict(&j, ok, "groups: a repeated update is counted once, before and after the end of its step");
}

static void dead(void)
{
	struct job j = job(5, 4, policy_grouped(2));
	int32_t a[JOB_ELEMS];
	bool ok = true;

	push(&j, 0, 0);
	inc(&j, 2, 0, 0);			/* half a step */
	job_set_active(&j, 0xb);
	send_message_v(&j, SAINA_MSG_CLOCK, 1, SAINA_ROUND_ASK, 0, NULL);
	ok &= got_go(1, 10, 0);			/* of the other group: that is no GO for worker 0 */
	send_message_v(&j, SAINA_MSG_CLOCK, 0, 0, 0, NULL);
	ok &= got_go(0, 1, 1);
	inc(&j, 0, 1, 0);
	ok &= got_answer()->flags == SAINA_F_FRESH && got_answer()->mask == 3;	/* alone */
	send_message_v(&j, SAINA_MSG_CLOCK, 0, 1, 0, NULL);
	ok &= got_go(0, 1, 2);
	j.conf.worker[2].session = 77;		/* it rejoins */
	job_set_active(&j, 0xf);
	send_message_v(&j, SAINA_MSG_CLOCK, 2, SAINA_ROUND_ASK, 0, NULL);
	ok &= got_go(2, 5, 2) && got_answer()->aux == 2;
	push(&j, 0, 2);
	ok &= got_go(0, 4, 2);
	push(&j, 2, 2);
	ok &= got_go(0xff, 5, 3) && read_step(&j, 2, 3, 1, a);
	job_verdict(&j, ok, "groups: a dead worker does not block its group; a worker that rejoins goes on where its group is");
}

/* A group that is empty for a while. */
static void deserted(void)
{
	struct job j = job(5, 4, policy_grouped(2));
	bool ok = true;

	push(&j, 1, 0);				/* worker 3 stays behind, and dies first */
	job_set_active(&j, 7);
	for (uint32_t c = 1; c < 50; c++)
		push(&j, 1, c);
	job_set_active(&j, 5);
	send_message_v(&j, SAINA_MSG_CLOCK, 0, SAINA_ROUND_ASK, 0, NULL);
	job_set_active(&j, 13);
	send_message_v(&j, SAINA_MSG_CLOCK, 3, SAINA_ROUND_ASK, 0, NULL);
	ok &= got_answer()->aux == 50;
	job_set_active(&j, 15);
	send_message_v(&j, SAINA_MSG_CLOCK, 1, SAINA_ROUND_ASK, 0, NULL);
	ok &= got_go(1, 10, 50) && got_answer()->aux == 50;
	job_verdict(&j, ok, "groups: a group that was empty is neither behind others nor waited for");
}

static bool mode_is(const struct job *j, unsigned int mode, uint32_t base)
{
	struct saina_job_rt rt = job_rt(j);

	return rt.mode == mode && rt.base == base && !rt.count[SAINA_JC_POLICY_MIX];
}

static void regroup(void)
{
	struct job j = job(5, 4, policy_grouped(2));
	struct saina_policy p = policy_grouped(2);
	bool ok = true;

	j.conf.ring = 4;
	j.conf.generation++;
	job_publish(&j);
	for (uint32_t c = 0; c < 6; c++) {
		push(&j, 0, c);
		push(&j, 2, c);
	}
	push(&j, 1, 0);
	memcpy(p.group, (uint8_t[]){ 0, 0, 1, 1 }, 4);
	job_set_policy(&j, p);
	push(&j, 3, 0);				/* it may finish; then nobody begins another */
	ok &= mode_is(&j, SAINA_RT_PS, 0);
	inc(&j, 0, 6, 0);
	ok &= got_answer()->type == SAINA_MSG_SUM;	/* it had its GO: this step is the last one */
	push(&j, 0, 6);
	push(&j, 2, 6);
	ok &= got_answer()->k == SAINA_NAK_MODE && got_answer()->type == SAINA_MSG_GO;
	ok &= mode_is(&j, SAINA_RT_FENCE, 7);
	inc(&j, 0, 7, 0);
	ok &= got_nak(SAINA_NAK_MODE);		/* not before all have read the sums: a round first */
	for (uint32_t s = 0; s < SEGMENTS; s++)
		for (unsigned int w = 0; w < 4; w++)
			send_grad(&j, w, 7, s, 1);
	ok &= got_broadcast(0xf, 4) && mode_is(&j, SAINA_RT_FENCE, 7);
	send_grad(&j, 0, 8, 0, 1);
	ok &= got_nak(SAINA_NAK_MODE) && mode_is(&j, SAINA_RT_PS, 8);
	push(&j, 0, 8);
	ok &= got_go(0, 2, 8);			/* it waits for worker 1 now */
	push(&j, 1, 8);
	ok &= got_go(0xff, 3, 9);
	ok &= job_rt(&j).count[SAINA_JC_POLICY_SWAPS] == 2;
	job_verdict(&j, ok, "groups: a worker changes its group after a round of all workers, and no slot has two policies");
}

static void same_groups(void)
{
	struct job j = job(5, 4, policy_grouped(2));
	bool ok = true;

	push(&j, 0, 0);
	job_set_policy(&j, policy_grouped(2));
	push(&j, 2, 0);
	ok &= got_go(0xff, 5, 1) && mode_is(&j, SAINA_RT_PS, 0) && job_rt(&j).count[SAINA_JC_POLICY_SWAPS] == 2;
	job_set_policy(&j, policy_ssp(3));
	push(&j, 0, 1);
	ok &= mode_is(&j, SAINA_RT_PS, 0) && job_rt(&j).count[SAINA_JC_POLICY_SWAPS] == 2;
	job_verdict(&j, ok, "groups: the same groups in a new policy need no fence, other policies with steps do");
}

int main(void)
{
	if (geteuid())
		tap_skip_all("only root may load BPF programs");
	harness_open(&harness);
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
	harness_close(&harness);
	return tap_done();
}
