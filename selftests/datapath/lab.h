/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job on the rig and messages to it, one by one; all elements of a message are equal. */
#ifndef SAINA_TEST_LAB_H
#define SAINA_TEST_LAB_H

#include <linux/pkt_cls.h>
#include <stdio.h>
#include <stdlib.h>
#include "lib/tap.h"
#include "rig_events.h"
#include "rig_jobs.h"
#include "rig_packets.h"
#include "rig_state.h"

#define LAB_ELEMS	64
#define LAB_EXPONENT	20

extern struct rig rig;
extern bool lab_same;		/* program and oracle agreed so far in this test */

struct lab {
	struct saina_job_conf conf;
	uint32_t first_round;
};

static inline struct saina_policy lab_bsp(void)
{
	return (struct saina_policy){ .mode = SAINA_POLICY_BSP, .late = SAINA_LATE_RESIDUAL };
}

static inline struct saina_policy lab_fastest(unsigned int k)
{
	return (struct saina_policy){ .mode = SAINA_POLICY_FASTEST, .late = SAINA_LATE_RESIDUAL,
				      .k = k };
}

static inline struct saina_policy lab_sfcd(unsigned int k0, unsigned int s_th, unsigned int c_th,
					   unsigned int stride)
{
	return (struct saina_policy){ .mode = SAINA_POLICY_SFCD, .late = SAINA_LATE_RESIDUAL,
				      .k = k0, .k_min = 1, .s_th = s_th, .c_th = c_th,
				      .stride = stride };
}

static inline struct saina_policy lab_ssp(uint32_t window)
{
	return (struct saina_policy){ .mode = SAINA_POLICY_SSP, .late = SAINA_LATE_RESIDUAL,
				      .window = window };
}

/* Worker w is in group w mod @groups. */
static inline struct saina_policy lab_grouped(unsigned int groups)
{
	struct saina_policy p = { .mode = SAINA_POLICY_GROUPED, .late = SAINA_LATE_RESIDUAL,
				  .groups = groups };

	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		p.group[w] = w % groups;
	return p;
}

static inline void lab_publish(struct lab *l)
{
	if (rig_job(&rig, &l->conf, l->first_round)) {
		printf("Bail out! %s\n", rig.diff);
		exit(1);
	}
}

static inline void lab_policy(struct lab *l, struct saina_policy p)
{
	p.seq = l->conf.policy.seq + 1;
	l->conf.policy = p;
	lab_publish(l);
}

static inline void lab_active(struct lab *l, uint64_t active)
{
	l->conf.active = active;
	lab_publish(l);
}

/* A running job of @workers, number 5 (or 6, the other one). */
static inline struct lab lab_job(unsigned int number, unsigned int workers, unsigned int segments,
				 struct saina_policy p)
{
	static uint32_t generation;
	struct lab l = {};

	l.conf.generation = ++generation;
	l.conf.job = number;
	l.conf.state = SAINA_JOB_RUNNING;
	l.conf.elem = SAINA_ELEM_INT32;
	l.conf.payload = LAB_ELEMS;
	l.conf.segments = segments;
	l.conf.pool = 4;
	l.conf.ring = 2;
	l.conf.sign_words = SAINA_SIGN_WORDS(LAB_ELEMS, 1);
	l.conf.group = rig_group(number);
	for (unsigned int w = 0; w < workers; w++) {
		rig_bind(&rig, &l.conf, w, 0, 1000 + w);
		l.conf.active |= 1ull << w;
	}
	lab_policy(&l, p);
	lab_same = true;
	return l;
}

static inline unsigned int lab_frame_at(const struct lab *l, uint8_t *f, int type, unsigned int w,
					uint32_t round, uint32_t segment, int exponent,
					const int32_t *v)
{
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = type, .elem = SAINA_ELEM_INT32,
		.job = l->conf.job, .session = l->conf.worker[w].session, .round = round,
		.segment = segment, .count = LAB_ELEMS, .worker = w, .exponent = exponent,
	};

	return frame_make(f, &rig.g, &l->conf.worker[w], &h, v, 4 * LAB_ELEMS);
}

static inline unsigned int lab_frame(const struct lab *l, uint8_t *f, int type, unsigned int w,
				     uint32_t round, uint32_t segment, const int32_t *v)
{
	return lab_frame_at(l, f, type, w, round, segment, LAB_EXPONENT, v);
}

static inline void lab_send(const uint8_t *f, unsigned int len, unsigned int ifindex)
{
	if (!rig_packet(&rig, f, len, ifindex)) {
		tap_note("%s", rig.diff);
		lab_same = false;
	}
}

static inline void lab_grad_v(const struct lab *l, unsigned int w, uint32_t round,
			      uint32_t segment, const int32_t *v)
{
	uint8_t f[FRAME_MAX];

	lab_send(f, lab_frame(l, f, SAINA_MSG_GRAD, w, round, segment, v),
		 l->conf.worker[w].ifindex);
}

static inline void lab_grad(const struct lab *l, unsigned int w, uint32_t round, uint32_t segment,
			    int32_t value)
{
	int32_t v[LAB_ELEMS];

	for (int i = 0; i < LAB_ELEMS; i++)
		v[i] = value;
	lab_grad_v(l, w, round, segment, v);
}

static inline void lab_grad_at(const struct lab *l, unsigned int w, uint32_t round,
			       uint32_t segment, int exponent, int32_t value)
{
	uint8_t f[FRAME_MAX];
	int32_t v[LAB_ELEMS];

	for (int i = 0; i < LAB_ELEMS; i++)
		v[i] = value;
	lab_send(f, lab_frame_at(l, f, SAINA_MSG_GRAD, w, round, segment, exponent, v),
		 l->conf.worker[w].ifindex);
}

static inline void lab_pull(const struct lab *l, unsigned int w, uint32_t round, uint32_t segment)
{
	uint8_t f[FRAME_MAX];

	lab_send(f, lab_frame(l, f, SAINA_MSG_PULL, w, round, segment, NULL), 1);
}

/* The answer of the program (not of the oracle) to the last packet. */
static inline const struct saina_hdr *lab_answer(void)
{
	return (const struct saina_hdr *)(rig.got + FRAME_HDR);
}

static inline int32_t lab_elem(unsigned int i)
{
	int32_t v;

	memcpy(&v, rig.got + FRAME_PAYLOAD + 4 * i, 4);
	return v;
}

static inline bool lab_consumed(void)
{
	return rig.verdict == (rig.tc ? TC_ACT_SHOT : XDP_DROP);
}

static inline bool lab_answered(void)
{
	return rig.verdict == (rig.tc ? TC_ACT_REDIRECT : XDP_REDIRECT);
}

static inline bool lab_sums(uint64_t mask, int32_t sum)
{
	const struct saina_hdr *h = lab_answer();

	if (!lab_answered() || rig.len != FRAME_PAYLOAD + 4 * LAB_ELEMS ||
	    h->type != SAINA_MSG_RESULT || h->mask != mask ||
	    h->contributors != __builtin_popcountll(mask))
		return false;
	for (int i = 0; i < LAB_ELEMS; i++)
		if (lab_elem(i) != sum)
			return false;
	return frame_sum(rig.got + FRAME_IP, 20, 0) == 0xffff &&
	       frame_udp_sum(rig.got) == 0xffff;
}

/* To all: the result is @sum of the workers in @mask. */
static inline bool lab_broadcast(uint64_t mask, int32_t sum)
{
	return lab_sums(mask, sum) && lab_answer()->worker == 0xff && rig.got[0] == 0x01;
}

/* To worker @w alone. */
static inline bool lab_unicast(const struct lab *l, unsigned int w, unsigned int flags,
			       uint64_t mask, int32_t sum)
{
	return lab_sums(mask, sum) && lab_answer()->worker == w &&
	       lab_answer()->session == l->conf.worker[w].session &&
	       lab_answer()->flags == flags && !memcmp(rig.got, l->conf.worker[w].mac, 6);
}

static inline bool lab_stale(uint32_t next_round)
{
	return lab_answered() && lab_answer()->type == SAINA_MSG_STALE &&
	       lab_answer()->slot_round == next_round && rig.len == FRAME_PAYLOAD;
}

static inline uint64_t lab_counter(const struct lab *l, int worker, int counter)
{
	struct saina_counters c;

	if (worker < 0 ? saina_dp_counters(rig.dp, -1, -1, &c) :
	    rig_counters(&rig, l->conf.job, worker, &c))
		return ~0ull;
	return c.c[counter];
}

static inline struct saina_job_rt lab_rt(const struct lab *l)
{
	struct saina_job_rt rt = {};

	if (saina_dp_job_rt(rig.dp, l->conf.job, &rt))
		lab_same = false;
	return rt;
}

/* Table mode: @v has LAB_ELEMS elements; NULL: nobody reads them. */
static inline void lab_say_v(const struct lab *l, int type, unsigned int w, uint32_t step,
			     uint32_t segment, const int32_t *v)
{
	static const int32_t none[LAB_ELEMS];
	uint8_t f[FRAME_MAX];
	unsigned int len;

	len = lab_frame(l, f, type, w, step, segment, v ? v : none);
	if (type == SAINA_MSG_CLOCK) {
		struct saina_hdr h;

		memcpy(&h, f + FRAME_HDR, sizeof(h));
		h.count = 0;
		len = frame_make(f, &rig.g, &l->conf.worker[w], &h, NULL, 0);
	}
	lab_send(f, len, l->conf.worker[w].ifindex);
}

static inline void lab_say(const struct lab *l, int type, unsigned int w, uint32_t step,
			   uint32_t segment, int32_t v)
{
	int32_t value[LAB_ELEMS];

	for (int i = 0; i < LAB_ELEMS; i++)
		value[i] = v;
	lab_say_v(l, type, w, step, segment, value);
}

/* The last answer: a SUM of @v in every element; @how: RESEND, PULLED or 0. */
static inline bool lab_sum(unsigned int how, int32_t v)
{
	const struct saina_hdr *h = lab_answer();

	return lab_answered() && h->type == SAINA_MSG_SUM &&
	       (h->flags & ~SAINA_F_FRESH) == how && lab_elem(0) == v && lab_elem(LAB_ELEMS - 1) == v;
}

/* .. a GO to worker @to (0xff: all) that lets @may go and says that all have finished @low. */
static inline bool lab_go(unsigned int to, uint64_t may, uint32_t low)
{
	const struct saina_hdr *h = lab_answer();

	return lab_answered() && h->type == SAINA_MSG_GO && h->worker == to &&
	       h->mask == may && h->slot_round == low;
}

static inline bool lab_nak(unsigned int why)
{
	const struct saina_hdr *h = lab_answer();

	return lab_answered() && h->type == SAINA_MSG_NAK && h->k == why;
}

static inline void lab_step(const struct lab *l, unsigned int w, uint32_t c)
{
	lab_say(l, SAINA_MSG_INC, w, c, 0, 1);
	lab_say(l, SAINA_MSG_CLOCK, w, c, 0, 0);
}

/* Ends a test: @ok, program and oracle agreed throughout, and their states are the same. */
static inline void lab_verdict(struct lab *l, bool ok, const char *name)
{
	if (!rig_drain(&rig) || !rig_check_job(&rig, l->conf.job, true)) {
		tap_note("%s", rig.diff);
		lab_same = false;
	}
	tap_ok(ok && lab_same, "%s", name);
}

/* The tests of the defects of SFCD and of Serene. */
void defects_sfcd(void);
void defects_serene(void);
void defects_table(void);
/* When gradients come. */
void defects_arrivals(void);

#endif /* SAINA_TEST_LAB_H */
