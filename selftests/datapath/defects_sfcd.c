// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina-6f .. 6k, 6m, 6p: the published defects of SFCD; see defects_test.c.  Behind them: k that
 * goes down again, round by round.
 */
#include <bpf/bpf.h>
#include <unistd.h>
#include "lab.h"

/* Rounds of one worker's signs; returns the flips counted in the last one. */
static uint64_t flips_after(struct lab *l, uint32_t round, const int32_t *v, bool twice,
			    bool backwards)
{
	for (uint32_t i = 0; i < l->conf.segments; i++) {
		uint32_t s = backwards ? l->conf.segments - 1 - i : i;

		lab_grad_v(l, 0, round, s, v);
		if (twice) {
			lab_grad_v(l, 0, round, s, v);
			lab_grad_v(l, 1, round, s, v);
		}
	}
	return lab_rt(l).last_flips;
}

/* The sign of zero is that of a positive number. */
static void signs(int32_t *v, uint64_t negative)
{
	for (int i = 0; i < LAB_ELEMS; i++)
		v[i] = negative >> i & 1 ? -1 : i & 1;
}

static void test_6f(void)
{
	struct lab l = lab_job(5, 2, 16, lab_sfcd(1, 999, 5, 32));	/* 32 samples */
	uint64_t word = 0;
	int32_t v[LAB_ELEMS];
	bool ok;
	int fd;

	signs(v, ~0ull);
	ok = flips_after(&l, 0, v, true, false) == 32;
	fd = rig_inner(&rig, "saina_signs", 5);
	for (uint32_t s = 0; s < 16; s++) {
		uint32_t key = s * l.conf.sign_words;
		ok &= !bpf_map_lookup_elem(fd, &key, &word) && word == 3;
	}
	close(fd);
	ok &= flips_after(&l, 1, v, true, false) == 0 && lab_rt(&l).last_observed == 32;
	lab_verdict(&l, ok, "saina-6f duplicates and late packets do not touch the sign bits: 32 negative signs are 32");
}

static void test_6g(void)
{
	struct lab l = lab_job(5, 2, 7, lab_sfcd(1, 500, 1, 1));
	int32_t a[LAB_ELEMS], b[LAB_ELEMS];
	bool ok;

	l.conf.generation += 1u << 20;	/* with a window as large as the gradient */
	l.conf.pool = 8;
	lab_publish(&l);
	signs(a, 0);
	signs(b, 0x5555555555555555);
	flips_after(&l, 0, a, false, false);
	ok = flips_after(&l, 1, b, false, true) == 7 * 32 && lab_rt(&l).k_next == 2;
	ok &= lab_rt(&l).last_round == 1;
	lab_verdict(&l, ok, "saina-6g segments may complete in any order, the last one first");
}

static void test_6h(void)
{
	struct lab l = lab_job(5, 2, 3, lab_sfcd(1, 999, 5, 16));	/* 12 samples */
	int32_t a[LAB_ELEMS], b[LAB_ELEMS];
	bool ok;

	signs(a, 0);
	signs(b, ~0ull);
	flips_after(&l, 0, a, false, false);
	ok = flips_after(&l, 1, b, false, false) == 12 && lab_rt(&l).last_observed == 12;
	lab_verdict(&l, ok, "saina-6h a last word that is not full counts like the others");
}

static void test_6i(void)
{
	struct lab l = lab_job(5, 2, 1, lab_sfcd(1, 999, 5, 1));
	int32_t a[LAB_ELEMS], b[LAB_ELEMS];
	bool ok;

	signs(a, 0);
	signs(b, 1ull << 17 | 1ull << 63);
	flips_after(&l, 0, a, false, false);
	ok = flips_after(&l, 1, b, false, false) == 2 && lab_rt(&l).last_observed == 64;
	lab_verdict(&l, ok, "saina-6i with stride 1 every element is sampled");
}

static void test_6j(void)
{
	struct lab l = lab_job(5, 2, 1, lab_sfcd(1, 500, 1, 1));
	int32_t v[LAB_ELEMS];
	struct saina_job_rt rt;
	bool ok;

	signs(v, ~0ull);
	flips_after(&l, 0, v, false, false);
	rt = lab_rt(&l);
	ok = rt.k_next == 1 && rt.converged == 0 && rt.primed == 1;
	flips_after(&l, 1, v, false, false);
	ok &= lab_rt(&l).k_next == 1;
	lab_verdict(&l, ok, "saina-6j the first round only fills the bitmap");
}

static void test_6k(void)
{
	struct lab l = lab_job(5, 4, 1, lab_sfcd(1, 900, 3, 1));
	int32_t v[LAB_ELEMS];
	bool ok = true;
	uint32_t r;

	for (r = 0; r < 8; r++) {	/* half of the signs flip: not enough */
		signs(v, r & 1 ? 0xffffffff : 0);
		flips_after(&l, r, v, false, false);
	}
	ok &= lab_rt(&l).k_next == 1;
	lab_policy(&l, lab_sfcd(1, 500, 2, 1));
	signs(v, 0);
	flips_after(&l, r++, v, false, false);
	ok &= lab_rt(&l).k_next == 1 && lab_rt(&l).converged == 1;
	signs(v, 0xffffffff);
	flips_after(&l, r++, v, false, false);
	ok &= lab_rt(&l).k_next == 2;
	lab_verdict(&l, ok, "saina-6k thresholds change at run time, without forgetting the signs");
}

static void test_6m(void)
{
	struct lab l = lab_job(5, 2, 3, lab_sfcd(1, 500, 1, 1));
	int32_t v[LAB_ELEMS];
	bool ok;

	signs(v, 0);
	flips_after(&l, 0, v, false, false);
	signs(v, ~0ull);
	lab_grad_v(&l, 0, 1, 0, v);
	lab_grad_v(&l, 0, 1, 1, v);
	ok = lab_rt(&l).k_next == 1;	/* the third is lost, and comes later */
	lab_grad_v(&l, 0, 1, 1, v);
	lab_grad_v(&l, 1, 1, 0, v);
	ok &= lab_rt(&l).k_next == 1;
	lab_grad_v(&l, 0, 1, 2, v);
	ok &= lab_rt(&l).k_next == 2 && lab_rt(&l).last_flips == 3 * 64;
	lab_verdict(&l, ok, "saina-6m the round is decided when all segments are done, not when a last packet says so");
}

static void test_6p_sfcd(void)
{
	struct lab l = lab_job(5, 2, 2, lab_sfcd(1, 1, 2, 1));
	int32_t v[LAB_ELEMS];
	struct saina_job_rt rt;

	signs(v, 0);
	flips_after(&l, 0, v, false, false);
	signs(v, ~0ull);
	flips_after(&l, 1, v, false, false);
	for (int i = 0; i < 20; i++)	/* the last segment again and again */
		lab_grad_v(&l, i & 1, 1, 1, v);
	rt = lab_rt(&l);
	lab_verdict(&l, rt.converged == 1 && rt.k_next == 1,
		    "saina-6p no worker drives k by repeating its last packet");
}

/* A round of which all workers say the same, @flip: the other signs than in the one before.
 * As many speak as k says; those that are left come too late, and say the opposite.
 */
static void round_of(struct lab *l, uint32_t round, bool flip)
{
	static int32_t v[LAB_ELEMS], opposite[LAB_ELEMS];
	static uint64_t negative;

	negative = round ? flip ? ~negative : negative : 0;
	signs(v, negative);
	signs(opposite, ~negative);
	for (uint32_t s = 0; s < l->conf.segments; s++) {
		unsigned int k = lab_rt(l).next_round > round ? lab_rt(l).k : 0;

		for (unsigned int w = 0; w < 4; w++) {
			lab_grad_v(l, w, round, s, k && w >= k ? opposite : v);
			if (!k)
				k = lab_rt(l).k;
		}
		for (unsigned int w = 0; w < 4; w++)	/* and once more */
			lab_grad_v(l, w, round, s, opposite);
	}
}

/* k of the round after each of @rounds: 'f' flips, 's' does not. */
static bool k_follows(struct lab *l, const char *rounds, const char *k)
{
	for (uint32_t r = 0; rounds[r]; r++) {
		struct saina_job_rt rt;

		round_of(l, r, rounds[r] == 'f');
		rt = lab_rt(l);
		if (rt.k_next == (uint32_t)(k[r] - '0') && rt.last_round == r &&
		    rt.last_observed == l->conf.segments * LAB_ELEMS &&
		    rt.last_flips == (r && rounds[r] == 'f' ? rt.last_observed : 0))
			continue;
		tap_note("after round %u of %s: k %u, want %c; %llu flips of %llu", r, rounds, rt.k_next,
			 k[r], (unsigned long long)rt.last_flips, (unsigned long long)rt.last_observed);
		return false;
	}
	return true;
}

static struct saina_policy down(unsigned int k0, unsigned int k_min, unsigned int c_th)
{
	struct saina_policy p = lab_sfcd(k0, 500, c_th, 1);

	p.k_min = k_min;
	p.flags = SAINA_POLICY_F_DOWN;
	return p;
}

static struct lab four(struct saina_policy p)
{
	static uint32_t generations;
	struct lab l = lab_job(5, 4, 2, p);

	l.conf.generation += ++generations << 24;
	lab_publish(&l);
	return l;
}

static void test_down(void)
{
	struct lab l = four(down(1, 1, 2));
	struct saina_policy p = down(4, 2, 2);

	lab_verdict(&l, k_follows(&l, "sffffssssssff", "1122332211112"),
		    "sfcd down: k rises while signs flip, falls once they have agreed for cth rounds, and not below 1");
	l = four(lab_sfcd(1, 500, 2, 1));
	lab_verdict(&l, k_follows(&l, "sffffssssssff", "1122333333334"),
		    "sfcd without down: signs that agree again do not lower k");
	l = four(p);
	lab_verdict(&l, k_follows(&l, "sssssssssff", "44332222223"),
		    "sfcd down: k does not fall below kmin");
	l = four(down(3, 1, 3));
	lab_verdict(&l, k_follows(&l, "sssfssfsfss", "33333222222"),
		    "sfcd down: a round that flips is taken off those that agreed");
	p = down(2, 1, 0);
	l = four(p);
	lab_verdict(&l, k_follows(&l, "sssssffff", "221112233"),
		    "sfcd down: with cth=k as many rounds as k is have to agree");
}

/* A new learning rate while rounds go on: who has contributed to an open slot is counted by the k it has. */
static void test_down_latched(void)
{
	struct lab l = four(down(4, 1, 1));
	int32_t v[LAB_ELEMS];
	bool ok = true;

	signs(v, 0);
	for (uint32_t r = 0; r < 2; r++)
		for (uint32_t s = 0; s < 2; s++)
			for (unsigned int w = 0; w < 4; w++)
				lab_grad_v(&l, w, r, s, v);
	/* round 1 has decided: its last result says so, and was made with 4 */
	ok &= lab_rt(&l).k_next == 3 && lab_answer()->k == 4 && lab_answer()->next_k == 3 &&
	      lab_answer()->contributors == 4;
	for (unsigned int w = 0; w < 3; w++)
		lab_grad_v(&l, w, 2, 0, v);
	ok &= lab_answered() && lab_answer()->k == 3 && lab_answer()->contributors == 3;
	lab_grad_v(&l, 3, 2, 0, v);
	ok &= lab_answer()->flags == SAINA_F_LATE && lab_answer()->mask == 7;
	lab_verdict(&l, ok, "sfcd down: a lower k is that of the next round, and the result that lowers it says so");
}

struct told {
	unsigned int n;
	uint64_t from[8], to[8];
};

static void note_k(void *arg, const struct saina_event *ev)
{
	struct told *t = arg;

	if (ev->type != SAINA_EV_K || t->n == 8)
		return;
	t->from[t->n] = ev->a;
	t->to[t->n++] = ev->b;
}

/* The events are taken here, so the oracle's are not compared. */
static void test_down_events(void)
{
	struct lab l = four(down(4, 1, 1));
	struct told t = {};
	struct saina_dp_cb cb = { .event = note_k, .arg = &t };
	bool ok = rig_drain(&rig);

	for (uint32_t r = 0; r < 4; r++)
		round_of(&l, r, false);		/* 4, 3, 2, 1 */
	round_of(&l, 4, true);
	round_of(&l, 5, true);			/* 2, 3 */
	lab_active(&l, 3);
	round_of(&l, 6, false);			/* a death: 2; and it decides nothing */
	saina_dp_event_dispatch(rig.dp, &cb);
	rig.o.events = 0;
	ok &= t.n == 6;
	for (unsigned int i = 0; i < t.n; i++) {
		static const uint64_t from[] = { 4, 3, 2, 1, 2, 3 }, to[] = { 3, 2, 1, 2, 3, 2 };

		ok &= t.n == 6 && t.from[i] == from[i] && t.to[i] == to[i];
		if (!ok)
			tap_note("event %u: k from %llu to %llu", i, (unsigned long long)t.from[i],
				 (unsigned long long)t.to[i]);
	}
	lab_verdict(&l, ok, "sfcd down: one event tells of each change of k, and they follow from each other");
}

void defects_sfcd(void)
{
	test_6f();
	test_6g();
	test_6h();
	test_6i();
	test_6j();
	test_6k();
	test_6m();
	test_6p_sfcd();
	test_down();
	test_down_latched();
	test_down_events();
}
