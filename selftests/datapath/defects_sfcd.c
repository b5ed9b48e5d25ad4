// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina-6f .. 6k, 6m, 6p: the published defects of SFCD; see defects_test.c.  Behind them: k that
 * goes down again, round by round.
 */
#include <bpf/bpf.h>
#include <unistd.h>
#include "test_job.h"

/* Rounds of one worker's signs; returns the flips counted in the last one. */
static uint64_t flips_after(struct job *j, uint32_t round, const int32_t *v, bool twice,
			    bool backwards)
{
	for (uint32_t i = 0; i < j->conf.segments; i++) {
		uint32_t s = backwards ? j->conf.segments - 1 - i : i;

		send_grad_v(j, 0, round, s, v);
		if (twice) {
			send_grad_v(j, 0, round, s, v);
			send_grad_v(j, 1, round, s, v);
		}
	}
	return job_rt(j).last_flips;
}

/* The sign of zero is that of a positive number. */
static void signs(int32_t *v, uint64_t negative)
{
	for (int i = 0; i < JOB_ELEMS; i++)
		v[i] = negative >> i & 1 ? -1 : i & 1;
}

static void test_6f(void)
{
	struct job j = job_create(5, 2, 16, policy_sfcd(1, 999, 5, 32));	/* 32 samples */
	uint64_t word = 0;
	int32_t v[JOB_ELEMS];
	bool ok;
	int fd;

	signs(v, ~0ull);
	ok = flips_after(&j, 0, v, true, false) == 32;
	fd = harness_inner(&harness, "saina_signs", 5);
	for (uint32_t s = 0; s < 16; s++) {
		uint32_t key = s * j.conf.sign_words;
		ok &= !bpf_map_lookup_elem(fd, &key, &word) && word == 3;
	}
	close(fd);
	ok &= flips_after(&j, 1, v, true, false) == 0 && job_rt(&j).last_observed == 32;
	job_verdict(&j, ok, "saina-6f duplicates and late packets do not touch the sign bits: 32 negative signs are 32");
}

static void test_6g(void)
{
	struct job j = job_create(5, 2, 7, policy_sfcd(1, 500, 1, 1));
	int32_t a[JOB_ELEMS], b[JOB_ELEMS];
	bool ok;

	j.conf.generation += 1u << 20;	/* with a window as large as the gradient */
	j.conf.pool = 8;
	job_publish(&j);
	signs(a, 0);
	signs(b, 0x5555555555555555);
	flips_after(&j, 0, a, false, false);
	ok = flips_after(&j, 1, b, false, true) == 7 * 32 && job_rt(&j).k_next == 2;
	ok &= job_rt(&j).last_round == 1;
	job_verdict(&j, ok, "saina-6g segments may complete in any order, the last one first");
}

static void test_6h(void)
{
	struct job j = job_create(5, 2, 3, policy_sfcd(1, 999, 5, 16));	/* 12 samples */
	int32_t a[JOB_ELEMS], b[JOB_ELEMS];
	bool ok;

	signs(a, 0);
	signs(b, ~0ull);
	flips_after(&j, 0, a, false, false);
	ok = flips_after(&j, 1, b, false, false) == 12 && job_rt(&j).last_observed == 12;
	job_verdict(&j, ok, "saina-6h the signs of a last word that is not full count like the others");
}

static void test_6i(void)
{
	struct job j = job_create(5, 2, 1, policy_sfcd(1, 999, 5, 1));
	int32_t a[JOB_ELEMS], b[JOB_ELEMS];
	bool ok;

	signs(a, 0);
	signs(b, 1ull << 17 | 1ull << 63);
	flips_after(&j, 0, a, false, false);
	ok = flips_after(&j, 1, b, false, false) == 2 && job_rt(&j).last_observed == 64;
	job_verdict(&j, ok, "saina-6i with stride 1 every element is sampled");
}

static void test_6j(void)
{
	struct job j = job_create(5, 2, 1, policy_sfcd(1, 500, 1, 1));
	int32_t v[JOB_ELEMS];
	struct saina_job_rt rt;
	bool ok;

	signs(v, ~0ull);
	flips_after(&j, 0, v, false, false);
	rt = job_rt(&j);
	ok = rt.k_next == 1 && rt.converged == 0 && rt.primed == 1;
	flips_after(&j, 1, v, false, false);
	ok &= job_rt(&j).k_next == 1;
	job_verdict(&j, ok, "saina-6j the first round only fills the bitmap");
}

/* A round of NaN has no signs, so it neither converges nor stops to. */
static void test_nan(void)
{
	struct job j = job_create(5, 2, 2, policy_sfcd(1, 500, 1, 1));
	int32_t v[JOB_ELEMS];
	bool ok;

	signs(v, 0);
	flips_after(&j, 0, v, false, false);
	for (uint32_t s = 0; s < j.conf.segments; s++)
		send_grad_at(&j, 0, 1, s, SAINA_EXPONENT_NAN, 0);
	ok = job_rt(&j).next_round == 2 && !job_rt(&j).last_round && job_rt(&j).k_next == 1 && !job_rt(&j).converged;
	signs(v, 0xffffffff);
	flips_after(&j, 2, v, false, false);
	ok &= job_rt(&j).k_next == 2;
	job_verdict(&j, ok, "sfcd: a round in which every segment has a NaN decides nothing");
}

static void test_6k(void)
{
	struct job j = job_create(5, 4, 1, policy_sfcd(1, 900, 3, 1));
	int32_t v[JOB_ELEMS];
	bool ok = true;
	uint32_t r;

	for (r = 0; r < 8; r++) {	/* half of the signs flip: not enough */
		signs(v, r & 1 ? 0xffffffff : 0);
		flips_after(&j, r, v, false, false);
	}
	ok &= job_rt(&j).k_next == 1;
	job_set_policy(&j, policy_sfcd(1, 500, 2, 1));
	signs(v, 0);
	flips_after(&j, r++, v, false, false);
	ok &= job_rt(&j).k_next == 1 && job_rt(&j).converged == 1;
	signs(v, 0xffffffff);
	flips_after(&j, r++, v, false, false);
	ok &= job_rt(&j).k_next == 2;
	job_verdict(&j, ok, "saina-6k thresholds change at run time, without forgetting the signs");
}

static void test_6m(void)
{
	struct job j = job_create(5, 2, 3, policy_sfcd(1, 500, 1, 1));
	int32_t v[JOB_ELEMS];
	bool ok;

	signs(v, 0);
	flips_after(&j, 0, v, false, false);
	signs(v, ~0ull);
	send_grad_v(&j, 0, 1, 0, v);
	send_grad_v(&j, 0, 1, 1, v);
	ok = job_rt(&j).k_next == 1;	/* the third is lost, and comes later */
	send_grad_v(&j, 0, 1, 1, v);
	send_grad_v(&j, 1, 1, 0, v);
	ok &= job_rt(&j).k_next == 1;
	send_grad_v(&j, 0, 1, 2, v);
	ok &= job_rt(&j).k_next == 2 && job_rt(&j).last_flips == 3 * 64;
	job_verdict(&j, ok, "saina-6m the round is decided when all segments are done, not when a last packet says so");
}

static void test_6p_sfcd(void)
{
	struct job j = job_create(5, 2, 2, policy_sfcd(1, 1, 2, 1));
	int32_t v[JOB_ELEMS];
	struct saina_job_rt rt;

	signs(v, 0);
	flips_after(&j, 0, v, false, false);
	signs(v, ~0ull);
	flips_after(&j, 1, v, false, false);
	for (int i = 0; i < 20; i++)	/* the last segment again and again */
		send_grad_v(&j, i & 1, 1, 1, v);
	rt = job_rt(&j);
	job_verdict(&j, rt.converged == 1 && rt.k_next == 1,
		    "saina-6p no worker drives k by repeating its last packet");
}

/* A round of which all workers say the same, @flip: the other signs than in the one before.
 * As many speak as k says; those that are left come too late, and say the opposite.
 */
static void round_of(struct job *j, uint32_t round, bool flip)
{
	static int32_t v[JOB_ELEMS], opposite[JOB_ELEMS];
	static uint64_t negative;

	negative = round ? flip ? ~negative : negative : 0;
	signs(v, negative);
	signs(opposite, ~negative);
	for (uint32_t s = 0; s < j->conf.segments; s++) {
		unsigned int k = job_rt(j).next_round > round ? job_rt(j).k : 0;

		for (unsigned int w = 0; w < 4; w++) {
			send_grad_v(j, w, round, s, k && w >= k ? opposite : v);
			if (!k)
				k = job_rt(j).k;
		}
		for (unsigned int w = 0; w < 4; w++)	/* and once more */
			send_grad_v(j, w, round, s, opposite);
	}
}

/* k of the round after each of @rounds: 'f' flips, 's' does not. */
static bool k_follows(struct job *j, const char *rounds, const char *k)
{
	for (uint32_t r = 0; rounds[r]; r++) {
		struct saina_job_rt rt;

		round_of(j, r, rounds[r] == 'f');
		rt = job_rt(j);
		if (rt.k_next == (uint32_t)(k[r] - '0') && rt.last_round == r &&
		    rt.last_observed == j->conf.segments * JOB_ELEMS &&
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
	struct saina_policy p = policy_sfcd(k0, 500, c_th, 1);

	p.k_min = k_min;
	p.flags = SAINA_POLICY_F_DOWN;
	return p;
}

static struct job four(struct saina_policy p)
{
	static uint32_t generations;
	struct job j = job_create(5, 4, 2, p);

	j.conf.generation += ++generations << 24;
	job_publish(&j);
	return j;
}

static void test_down(void)
{
	struct job j = four(down(1, 1, 2));
	struct saina_policy p = down(4, 2, 2);

	job_verdict(&j, k_follows(&j, "sffffssssssff", "1122332211112"),
		    "sfcd down: k rises while signs flip, falls once they have agreed for cth rounds, and not below 1");
	j = four(policy_sfcd(1, 500, 2, 1));
	job_verdict(&j, k_follows(&j, "sffffssssssff", "1122333333334"),
		    "sfcd without down: signs that agree again do not lower k");
	j = four(p);
	job_verdict(&j, k_follows(&j, "sssssssssff", "44332222223"),
		    "sfcd down: k does not fall below kmin");
	j = four(down(3, 1, 3));
	job_verdict(&j, k_follows(&j, "sssfssfsfss", "33333222222"),
		    "sfcd down: a round that flips is taken off those that agreed");
	p = down(2, 1, 0);
	j = four(p);
	job_verdict(&j, k_follows(&j, "sssssffff", "221112233"),
		    "sfcd down: with cth=k as many rounds as k is have to agree");
	j = four(down(2, 0, 1));
	job_verdict(&j, k_follows(&j, "ssssf", "21112"), "sfcd down: without kmin k does not fall below 1");
}

/* Round 0 of a job of 32 segments with 2 samples each, of which @negative are; k after it. */
static uint32_t k_after_parity(unsigned int negative)
{
	struct saina_policy p = policy_sfcd(1, 999, 1, 32);
	int32_t v[JOB_ELEMS];
	struct job j;

	p.flags = SAINA_POLICY_F_PARITY;
	j = job_create(5, 2, 32, p);
	for (uint32_t s = 0; s < 32; s++, negative -= negative > 1 ? 2 : negative) {
		signs(v, negative > 1 ? 1ull << 32 | 1 : negative);
		send_grad_v(&j, 0, 0, s, v);
	}
	return job_rt(&j).last_observed == 64 ? job_rt(&j).k_next : 0;
}

/* .999 of 64 samples is 63.936. */
static void test_threshold(void)
{
	struct job j = job_create(5, 2, 1, policy_sfcd(1, 999, 1, 1));
	int32_t v[JOB_ELEMS];
	bool ok;

	signs(v, 0);
	flips_after(&j, 0, v, false, false);
	signs(v, ~0ull >> 1);
	ok = flips_after(&j, 1, v, false, false) == 63 && job_rt(&j).k_next == 1;
	signs(v, 1ull << 63);
	ok &= flips_after(&j, 2, v, false, false) == 64 && job_rt(&j).k_next == 2;
	job_verdict(&j, ok, "sfcd: a share that is no whole number of signs is reached by the next one above it");
	ok = k_after_parity(62) == 1 && k_after_parity(63) == 2;
	job_verdict(&j, ok, "sfcd parity: a share that is no whole number of signs is cut off, as SAINA's is");
}

/* kmax is above the number of live workers. */
static void test_kmax(void)
{
	struct saina_policy p = policy_sfcd(3, 500, 1, 1);
	struct job j;

	p.k_max = 4;
	j = four(p);
	job_set_active(&j, 7);
	job_verdict(&j, k_follows(&j, "sff", "333"), "sfcd: k does not rise above the live workers, whatever kmax is");
}

/* Signs of another stride are those of other elements. */
static void test_anew(void)
{
	struct job j = job_create(5, 2, 1, policy_sfcd(1, 500, 3, 1));
	struct saina_policy p = policy_sfcd(1, 500, 3, 2);
	int32_t v[JOB_ELEMS];
	bool ok = true;

	for (uint32_t r = 0; r < 6; r++) {
		signs(v, r & 1 ? ~0ull : 0);
		if (r == 2)
			job_set_policy(&j, p);
		if (r == 4) {
			p.flags = SAINA_POLICY_F_DOWN;
			job_set_policy(&j, p);
		}
		flips_after(&j, r, v, false, false);
		/* each second round is the first one of its policy, which decides nothing */
		ok &= job_rt(&j).primed && job_rt(&j).converged == (r & 1);
	}
	job_verdict(&j, ok, "sfcd: with another stride, or with and without down, it begins anew");
}

/* With a smaller cth k falls at once, while rounds that flipped are still counted. */
static void test_down_smaller_cth(void)
{
	struct job j = four(down(2, 1, 5));
	bool ok = k_follows(&j, "sffffss", "2222222");

	job_set_policy(&j, down(2, 1, 3));
	for (uint32_t r = 7; r < 11; r++) {
		round_of(&j, r, r > 7);
		ok &= job_rt(&j).k_next == (r < 10 ? 1 : 2);
	}
	job_verdict(&j, ok, "sfcd down: once k has fallen, cth more rounds must flip to raise it");
}

/* A new learning rate while rounds go on: who has contributed to an open slot is counted by the k it has. */
static void test_down_latched(void)
{
	struct job j = four(down(4, 1, 1));
	int32_t v[JOB_ELEMS];
	bool ok = true;

	signs(v, 0);
	for (uint32_t r = 0; r < 2; r++)
		for (uint32_t s = 0; s < 2; s++)
			for (unsigned int w = 0; w < 4; w++)
				send_grad_v(&j, w, r, s, v);
	/* round 1 has decided: its last result says so, and was made with 4 */
	ok &= job_rt(&j).k_next == 3 && got_answer()->k == 4 && got_answer()->next_k == 3 &&
	      got_answer()->contributors == 4;
	for (unsigned int w = 0; w < 3; w++)
		send_grad_v(&j, w, 2, 0, v);
	ok &= was_answered() && got_answer()->k == 3 && got_answer()->contributors == 3;
	send_grad_v(&j, 3, 2, 0, v);
	ok &= got_answer()->flags == SAINA_F_LATE && got_answer()->mask == 7;
	job_verdict(&j, ok, "sfcd down: a lower k is that of the next round, and the result that lowers it says so");
}

struct k_changes {
	unsigned int n;
	uint64_t from[8], to[8];
};

static void note_k(void *arg, const struct saina_event *ev)
{
	struct k_changes *t = arg;

	if (ev->type != SAINA_EV_K || t->n == 8)
		return;
	t->from[t->n] = ev->a;
	t->to[t->n++] = ev->b;
}

/* The events are taken here, so the oracle's are not compared. */
static void test_down_events(void)
{
	struct job j = four(down(4, 1, 1));
	struct k_changes t = {};
	struct saina_dp_cb cb = { .event = note_k, .arg = &t };
	bool ok = harness_drain(&harness);

	for (uint32_t r = 0; r < 4; r++)
		round_of(&j, r, false);		/* 4, 3, 2, 1 */
	round_of(&j, 4, true);
	round_of(&j, 5, true);			/* 2, 3 */
	job_set_active(&j, 3);
	round_of(&j, 6, false);			/* a death: 2; and it decides nothing */
	saina_dp_event_dispatch(harness.dp, &cb);
	harness.o.events = 0;
	ok &= t.n == 6;
	for (unsigned int i = 0; i < t.n; i++) {
		static const uint64_t from[] = { 4, 3, 2, 1, 2, 3 }, to[] = { 3, 2, 1, 2, 3, 2 };

		ok &= t.n == 6 && t.from[i] == from[i] && t.to[i] == to[i];
		if (!ok)
			tap_note("event %u: k from %llu to %llu", i, (unsigned long long)t.from[i],
				 (unsigned long long)t.to[i]);
	}
	job_verdict(&j, ok, "sfcd down: each change of k is one event, from the k of the event before");
}

void defects_sfcd(void)
{
	test_6f();
	test_6g();
	test_6h();
	test_6i();
	test_6j();
	test_nan();
	test_6k();
	test_6m();
	test_6p_sfcd();
	test_threshold();
	test_anew();
	test_kmax();
	test_down();
	test_down_smaller_cth();
	test_down_latched();
	test_down_events();
}
