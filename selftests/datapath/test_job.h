/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job on the harness, messages to it and checks of answers; all elements of a message are equal. */
#ifndef SAINA_TEST_JOB_H
#define SAINA_TEST_JOB_H

#include <linux/pkt_cls.h>
#include <stdio.h>
#include <stdlib.h>
#include "lib/tap.h"
#include "harness_events.h"
#include "harness_jobs.h"
#include "harness_packets.h"
#include "harness_state.h"

#define JOB_ELEMS	64
#define JOB_EXPONENT	20

extern struct harness harness;
extern bool agrees;		/* so far program and oracle agreed in this test */

struct job {
	struct saina_job_conf conf;
	uint32_t first_round;
};

static inline struct saina_policy policy_bsp(void)
{
	return (struct saina_policy){ .mode = SAINA_POLICY_BSP, .late = SAINA_LATE_RESIDUAL };
}

/* Tests of slots leave workers behind: no lead. */
static inline struct saina_policy policy_fastest(unsigned int k)
{
	return (struct saina_policy){ .mode = SAINA_POLICY_FASTEST, .late = SAINA_LATE_RESIDUAL,
				      .k = k, .lead = SAINA_LEAD_NONE };
}

static inline struct saina_policy policy_sfcd(unsigned int k0, unsigned int s_th, unsigned int c_th,
					      unsigned int stride)
{
	return (struct saina_policy){ .mode = SAINA_POLICY_SFCD, .late = SAINA_LATE_RESIDUAL,
				      .k = k0, .k_min = 1, .s_th = s_th, .c_th = c_th,
				      .stride = stride, .lead = SAINA_LEAD_NONE };
}

static inline struct saina_policy policy_ssp(uint32_t window)
{
	return (struct saina_policy){ .mode = SAINA_POLICY_SSP, .late = SAINA_LATE_RESIDUAL,
				      .window = window };
}

/* Worker w is in group w mod @groups. */
static inline struct saina_policy policy_grouped(unsigned int groups)
{
	struct saina_policy p = { .mode = SAINA_POLICY_GROUPED, .late = SAINA_LATE_RESIDUAL,
				  .groups = groups };

	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		p.group[w] = w % groups;
	return p;
}

static inline void job_publish(struct job *j)
{
	if (harness_job(&harness, &j->conf, j->first_round))
		tap_bail("%s", harness.diff);
}

static inline void job_set_policy(struct job *j, struct saina_policy p)
{
	p.seq = j->conf.policy.seq + 1;
	j->conf.policy = p;
	job_publish(j);
}

static inline void job_set_active(struct job *j, uint64_t active)
{
	j->conf.active = active;
	job_publish(j);
}

/* A running job; @number: 5, or 6 for a second one. */
static inline struct job job_create(unsigned int number, unsigned int workers, unsigned int segments,
				    struct saina_policy p)
{
	static uint32_t generation;
	struct job j = {};

	j.conf.generation = ++generation;
	j.conf.job = number;
	j.conf.state = SAINA_JOB_RUNNING;
	j.conf.elem = SAINA_ELEM_INT32;
	j.conf.payload = JOB_ELEMS;
	j.conf.segments = segments;
	j.conf.pool = 4;
	j.conf.ring = 2;
	j.conf.sign_words = SAINA_SIGN_WORDS(JOB_ELEMS, 1);
	j.conf.group = harness_group(number);
	harness_bind_all(&harness, &j.conf, workers, 1000);
	job_set_policy(&j, p);
	agrees = true;
	return j;
}

static inline unsigned int job_frame_at(const struct job *j, uint8_t *f, int type, unsigned int w,
					uint32_t round, uint32_t segment, int exponent,
					const int32_t *v)
{
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = type, .elem = SAINA_ELEM_INT32,
		.job = j->conf.job, .session = j->conf.worker[w].session, .round = round,
		.segment = segment, .count = JOB_ELEMS, .worker = w, .exponent = exponent,
	};

	return frame_make(f, &harness.g, &j->conf.worker[w], &h, v, 4 * JOB_ELEMS);
}

static inline unsigned int job_frame(const struct job *j, uint8_t *f, int type, unsigned int w,
				     uint32_t round, uint32_t segment, const int32_t *v)
{
	return job_frame_at(j, f, type, w, round, segment, JOB_EXPONENT, v);
}

static inline void send_frame(const uint8_t *f, unsigned int len, unsigned int ifindex)
{
	if (!harness_packet(&harness, f, len, ifindex)) {
		tap_note("%s", harness.diff);
		agrees = false;
	}
}

static inline void send_grad_v(const struct job *j, unsigned int w, uint32_t round,
			       uint32_t segment, const int32_t *v)
{
	uint8_t f[FRAME_MAX];

	send_frame(f, job_frame(j, f, SAINA_MSG_GRAD, w, round, segment, v),
		   j->conf.worker[w].ifindex);
}

static inline void send_grad(const struct job *j, unsigned int w, uint32_t round, uint32_t segment,
			     int32_t value)
{
	int32_t v[JOB_ELEMS];

	for (int i = 0; i < JOB_ELEMS; i++)
		v[i] = value;
	send_grad_v(j, w, round, segment, v);
}

static inline void send_grad_at(const struct job *j, unsigned int w, uint32_t round,
				uint32_t segment, int exponent, int32_t value)
{
	uint8_t f[FRAME_MAX];
	int32_t v[JOB_ELEMS];

	for (int i = 0; i < JOB_ELEMS; i++)
		v[i] = value;
	send_frame(f, job_frame_at(j, f, SAINA_MSG_GRAD, w, round, segment, exponent, v),
		   j->conf.worker[w].ifindex);
}

static inline void send_pull(const struct job *j, unsigned int w, uint32_t round, uint32_t segment)
{
	uint8_t f[FRAME_MAX];

	send_frame(f, job_frame(j, f, SAINA_MSG_PULL, w, round, segment, NULL), 1);
}

/* The answer of the program (not of the oracle) to the last packet. */
static inline const struct saina_hdr *got_answer(void)
{
	return (const struct saina_hdr *)(harness.got + FRAME_HDR);
}

static inline int32_t got_elem(unsigned int i)
{
	int32_t v;

	memcpy(&v, harness.got + FRAME_PAYLOAD + 4 * i, 4);
	return v;
}

static inline bool was_dropped(void)
{
	return harness.verdict == (harness.tc ? TC_ACT_SHOT : XDP_DROP);
}

static inline bool was_answered(void)
{
	return harness.verdict == (harness.tc ? TC_ACT_REDIRECT : XDP_REDIRECT);
}

static inline bool got_result(uint64_t mask, int32_t sum)
{
	const struct saina_hdr *h = got_answer();

	if (!was_answered() || harness.len != FRAME_PAYLOAD + 4 * JOB_ELEMS ||
	    h->type != SAINA_MSG_RESULT || h->mask != mask ||
	    h->contributors != __builtin_popcountll(mask))
		return false;
	for (int i = 0; i < JOB_ELEMS; i++)
		if (got_elem(i) != sum)
			return false;
	return frame_sum(harness.got + FRAME_IP, 20, 0) == 0xffff &&
	       frame_udp_sum(harness.got) == 0xffff;
}

/* Is the answer a result to all, @sum of the workers in @mask? */
static inline bool got_broadcast(uint64_t mask, int32_t sum)
{
	return got_result(mask, sum) && got_answer()->worker == 0xff && harness.got[0] == 0x01;
}

/* The same to worker @w alone. */
static inline bool got_unicast(const struct job *j, unsigned int w, unsigned int flags,
			       uint64_t mask, int32_t sum)
{
	return got_result(mask, sum) && got_answer()->worker == w &&
	       got_answer()->session == j->conf.worker[w].session &&
	       got_answer()->flags == flags && !memcmp(harness.got, j->conf.worker[w].mac, 6);
}

static inline bool got_stale(uint32_t next_round)
{
	return was_answered() && got_answer()->type == SAINA_MSG_STALE &&
	       got_answer()->slot_round == next_round && harness.len == FRAME_PAYLOAD;
}

static inline uint64_t job_counter(const struct job *j, int worker, int counter)
{
	struct saina_counters c;

	if (worker < 0 ? saina_dp_counters(harness.dp, -1, -1, &c) :
	    harness_counters(&harness, j->conf.job, worker, &c))
		return ~0ull;
	return c.c[counter];
}

static inline struct saina_job_rt job_rt(const struct job *j)
{
	struct saina_job_rt rt = {};

	if (saina_dp_job_rt(harness.dp, j->conf.job, &rt))
		agrees = false;
	return rt;
}

/* PS mode: @v has JOB_ELEMS elements; NULL: they are ignored. */
static inline void send_message_v(const struct job *j, int type, unsigned int w, uint32_t step,
				  uint32_t segment, const int32_t *v)
{
	static const int32_t none[JOB_ELEMS];
	uint8_t f[FRAME_MAX];
	unsigned int len;

	len = job_frame(j, f, type, w, step, segment, v ? v : none);
	if (type == SAINA_MSG_CLOCK) {
		struct saina_hdr h;

		memcpy(&h, f + FRAME_HDR, sizeof(h));
		h.count = 0;
		len = frame_make(f, &harness.g, &j->conf.worker[w], &h, NULL, 0);
	}
	send_frame(f, len, j->conf.worker[w].ifindex);
}

static inline void send_message(const struct job *j, int type, unsigned int w, uint32_t step,
				uint32_t segment, int32_t v)
{
	int32_t value[JOB_ELEMS];

	for (int i = 0; i < JOB_ELEMS; i++)
		value[i] = v;
	send_message_v(j, type, w, step, segment, value);
}

/* Is the answer a SUM with @v in every element?  @how: RESEND, PULLED or 0. */
static inline bool got_sum(unsigned int how, int32_t v)
{
	const struct saina_hdr *h = got_answer();

	return was_answered() && h->type == SAINA_MSG_SUM &&
	       (h->flags & ~SAINA_F_FRESH) == how && got_elem(0) == v && got_elem(JOB_ELEMS - 1) == v;
}

/* A GO to worker @to (0xff: all), for the workers in @may, of a clock at @low? */
static inline bool got_go(unsigned int to, uint64_t may, uint32_t low)
{
	const struct saina_hdr *h = got_answer();

	return was_answered() && h->type == SAINA_MSG_GO && h->worker == to &&
	       h->mask == may && h->slot_round == low;
}

static inline bool got_nak(unsigned int why)
{
	const struct saina_hdr *h = got_answer();

	return was_answered() && h->type == SAINA_MSG_NAK && h->k == why;
}

static inline void send_step(const struct job *j, unsigned int w, uint32_t c)
{
	send_message(j, SAINA_MSG_INC, w, c, 0, 1);
	send_message(j, SAINA_MSG_CLOCK, w, c, 0, 0);
}

/* Ends a test: @ok, program and oracle agreed throughout, and their states are the same. */
static inline void job_verdict(struct job *j, bool ok, const char *name)
{
	if (!harness_drain(&harness) || !harness_check_job(&harness, j->conf.job, true)) {
		tap_note("%s", harness.diff);
		agrees = false;
	}
	tap_ok(ok && agrees, "%s", name);
}

/* defects_test: the parts in files of their own. */
void defects_sfcd(void);
void defects_serene(void);
void defects_ps(void);
void defects_arrivals(void);
void defects_events(void);

#endif /* SAINA_TEST_JOB_H */
