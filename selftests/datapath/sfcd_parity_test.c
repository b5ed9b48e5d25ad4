// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * SFCD with PARITY decides as SAINA's published rule does, in the case in which
 * that rule is well defined: each packet of the model is broadcast once a
 * round, in order.
 *
 * struct published below implements the published rule literally: words of 32
 * signs, added, not or-ed; a counter per word; two vectors, one for even and one
 * for odd rounds; one leaky counter.  Sample j of our segment s
 * is element 0 of SAINA's packet number s * (payload / 32) + j.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include "lib/rng.h"
#include "lib/tap.h"
#include "harness_events.h"
#include "harness_jobs.h"
#include "harness_packets.h"

#define WORKERS	16
#define WORDS	128

struct published {
	uint32_t vec[2][WORDS];
	uint32_t idx[WORDS];
	uint32_t sum, count, threshold, c_th;
	unsigned int k;
	uint32_t last_sum;	/* at the last decision, to compare */
};

static void published_packet(struct published *p, uint32_t round, uint32_t tsi, int32_t d00,
			     bool last)
{
	uint32_t word = tsi >> 5, bit = tsi % 32, x;
	uint32_t *cur = p->vec[round & 1], *prev = p->vec[!(round & 1)];

	if (d00 < 0)
		cur[word] += 1u << bit;
	if (p->idx[word] == 31) {
		x = cur[word] ^ prev[word];
		prev[word] = 0;
		p->idx[word] = 0;
		p->sum += __builtin_popcount(x);
	} else {
		p->idx[word]++;
	}
	if (!last)
		return;
	prev[word] = 0;
	p->idx[word] = 0;
	p->last_sum = p->sum;
	p->sum = 0;
	if (p->last_sum >= p->threshold)
		p->count++;
	else if (p->count)
		p->count--;
	if (p->count >= p->c_th) {
		if (p->k != WORKERS)
			p->k++;
		p->count = 0;
	}
}

static struct harness harness;

struct training {
	struct saina_job_conf conf;
	struct published published;
	struct rng rng;
	int8_t *sign;		/* of each sample */
	uint32_t samples;
	uint32_t round;
	uint32_t reached16;	/* rounds done when k became 16, 0 not yet */
	uint32_t reached2;
	bool same;
};

static bool training_begin(struct training *t, unsigned int payload, unsigned int segments,
			   uint64_t seed)
{
	static uint32_t generation;
	struct saina_job_conf *c = &t->conf;

	memset(t, 0, sizeof(*t));
	rng_seed(&t->rng, seed);
	c->generation = ++generation;
	c->job = 9;
	c->state = SAINA_JOB_RUNNING;
	c->elem = SAINA_ELEM_INT32;
	c->payload = payload;
	c->segments = segments;
	for (c->pool = 1; c->pool < segments; c->pool *= 2)
		;
	c->ring = 2;
	c->sign_words = SAINA_SIGN_WORDS(payload, 1);
	c->group = harness_group(c->job);
	harness_bind_all(&harness, c, WORKERS, 7);
	c->policy = (struct saina_policy){
		.seq = 1, .mode = SAINA_POLICY_SFCD, .late = SAINA_LATE_RESIDUAL, .k = 1,
		.k_min = 1, .s_th = 500, .c_th = 5, .stride = 32, .flags = SAINA_POLICY_F_PARITY,
		.lead = SAINA_LEAD_NONE,
	};
	t->samples = segments * (payload / 32);
	t->sign = malloc(t->samples);
	if (!t->sign)
		abort();
	memset(t->sign, 1, t->samples);	/* the first round compares with zeros */
	t->published.k = 1;
	t->published.c_th = 5;
	t->published.threshold = 500 * t->samples / 1000;
	t->same = true;
	return !harness_job(&harness, c, 0);
}

static bool send_gradient(struct training *t, unsigned int w, uint32_t segment)
{
	uint8_t frame[FRAME_MAX];
	int32_t v[SAINA_ELEMS_MAX];
	unsigned int per = t->conf.payload / 32;
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = SAINA_MSG_GRAD,
		.elem = SAINA_ELEM_INT32, .job = t->conf.job, .session = 7 + w,
		.round = t->round, .segment = segment, .count = t->conf.payload, .worker = w,
	};

	/* elements that are not sampled have the opposite sign: sampling one would show */
	for (unsigned int i = 0; i < t->conf.payload; i++) {
		int8_t sign = t->sign[segment * per + i / 32];

		v[i] = i % 32 ? -sign : w ? 0 : sign;
	}
	return harness_packet(&harness, frame, frame_make(frame, &harness.g, &t->conf.worker[w], &h, v,
							  4 * t->conf.payload), 1);
}

/* One round in which each sign flips with probability @p1000 / 1000. */
static void training_round(struct training *t, unsigned int p1000)
{
	unsigned int per = t->conf.payload / 32, k = t->published.k;
	struct saina_job_rt rt;

	for (uint32_t i = 0; t->round && i < t->samples; i++)
		if (rng_chance(&t->rng, p1000))
			t->sign[i] = -t->sign[i];
	for (uint32_t s = 0; s < t->conf.segments && t->same; s++) {
		for (unsigned int w = 0; w < k && t->same; w++)
			t->same = send_gradient(t, w, s);
		for (uint32_t j = 0; j < per; j++)
			published_packet(&t->published, t->round, s * per + j, t->sign[s * per + j],
					 s * per + j == t->samples - 1);
	}
	t->round++;
	if (!t->same) {
		tap_note("round %u: %s", t->round - 1, harness.diff);
		return;
	}
	if (saina_dp_job_rt(harness.dp, t->conf.job, &rt) || rt.k != k ||
	    rt.k_next != t->published.k || rt.last_flips != t->published.last_sum ||
	    rt.converged != t->published.count || rt.next_round != t->round) {
		tap_note("round %u: k %u then %u, %llu flips, %u converged; published: %u then %u, %u, %u",
			 t->round - 1, rt.k, rt.k_next, rt.last_flips, rt.converged, k,
			 t->published.k, t->published.last_sum, t->published.count);
		t->same = false;
	}
	if (!t->reached2 && t->published.k >= 2)
		t->reached2 = t->round - 1;
	if (!t->reached16 && t->published.k == 16)
		t->reached16 = t->round - 1;
}

static void train(struct training *t, unsigned int payload, unsigned int segments,
		  unsigned int p1000, unsigned int rounds, uint64_t seed)
{
	if (!training_begin(t, payload, segments, seed)) {
		tap_note("%s", harness.diff);
		t->same = false;
	}
	for (unsigned int r = 0; r <= rounds && t->same && !t->reached16; r++)
		training_round(t, p1000);
	free(t->sign);
	harness_drain(&harness);
}

int main(void)
{
	static const unsigned int shape[][2] = { { 64, 111 }, { 128, 80 }, { 256, 29 }, { 352, 31 },
						 { 1024, 9 }, { 2048, 5 } };
	static const unsigned int flips[] = { 300, 480, 500, 520, 600 };
	struct training t;

	harness_open(&harness);
	for (unsigned int i = 0; i < 6; i++) {
		for (unsigned int f = 0; f < 5; f++) {
			train(&t, shape[i][0], shape[i][1], flips[f], 40, 10 * i + f);
			tap_ok(t.same, "sfcd with parity: payload %u, %u samples, .%u of the signs flip: each k is the published rule's",
			       shape[i][0], t.samples, flips[f]);
		}
	}

	/*
	 * The figures: 3575 samples, 23 of them in the tail word that never
	 * counts (SqueezeNet of the publication: 3579 and 27).
	 */
	train(&t, 352, 325, 300, 100, 1);
	tap_ok(t.same && !t.reached2, "sfcd with parity: .30 of 3575 signs flip: k is not raised in 100 rounds");
	train(&t, 352, 325, 480, 200, 2);
	tap_ok(t.same && !t.reached2, "sfcd with parity: .48 of 3575 signs flip: k is not raised in 200 rounds");
	train(&t, 352, 325, 520, 100, 4);
	tap_ok(t.same && t.reached16 >= 75 && t.reached16 <= 95,
	       "sfcd with parity: .52 of 3575 signs flip: k is 16 after 75 to 95 rounds (%u)", t.reached16);
	train(&t, 352, 325, 600, 100, 5);
	tap_ok(t.same && t.reached16 == 75, "sfcd with parity: .60 of 3575 signs flip: k is 16 after 75 rounds (%u)",
	       t.reached16);

	/* pure noise, where all 3584 samples count */
	train(&t, 2048, 56, 480, 200, 6);
	tap_ok(t.same && !t.reached2, "sfcd with parity: .48 of 3584 signs flip: k is not raised in 200 rounds");
	train(&t, 2048, 56, 500, 800, 7);
	tap_ok(t.same && t.reached2 >= 5 && t.reached2 <= 100 && t.reached16 >= 200,
	       "sfcd with parity: .50 of 3584 signs flip: k is 2 within 100 rounds (%u), 16 after 200 or more (%u)",
	       t.reached2, t.reached16);
	train(&t, 2048, 56, 520, 100, 8);
	tap_ok(t.same && t.reached16 >= 75 && t.reached16 <= 85,
	       "sfcd with parity: .52 of 3584 signs flip: k is 16 after 75 to 85 rounds (%u)", t.reached16);
	harness_close(&harness);
	return tap_done();
}
