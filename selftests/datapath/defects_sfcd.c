// SPDX-License-Identifier: GPL-2.0-or-later
/* saina-6f .. 6k, 6m, 6p: the published defects of SFCD; see defects_test.c. */
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
}
