// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The steps of parameter-server mode (userland/lib/transport/steps.h) in a simulator: workers, the
 * oracle as their switch, a network that loses, repeats and delays, a clock of its own.
 *
 *   - every worker comes to the end; each update is counted once, and nothing else is;
 *   - who begins step n has seen all updates of steps before n - W, of every worker;
 *   - Serene's figure: with its pattern of stragglers, N = 8 and W = 10, a step takes .604 of
 *     what it takes with a barrier (simulated time, so that nothing else can move it).
 */
#include <stdlib.h>
#include "transport/steps.h"
#include "lib/rng.h"
#include "lib/tap.h"
#include "lib_switch.h"

#define ELEMS	 64
#define SEGMENTS 5
#define WORKERS	 8
#define EVENTS	 4096
#define MSGLEN	 (sizeof(struct saina_hdr) + 4 * ELEMS)

struct conf {
	uint64_t seed;
	uint32_t window;
	unsigned int steps;
	double loss, dup;
	uint64_t base_ns;	/* of computing a step */
	bool kills;
};

struct event {
	uint64_t when;
	bool down;		/* to worker @w, else from it */
	unsigned int w, len;
	uint64_t session;
	uint8_t msg[MSGLEN];
};

struct member {
	struct saina_steps t;
	uint64_t session, ready_ns, wake_ns, end_ns;
	bool computing, over;
	uint32_t seen[SEGMENTS];	/* first element of the sums it has */
	unsigned int done;
};

static struct {
	struct lib_switch sw;
	struct rng rng;
	const struct conf *c;
	struct member m[WORKERS];
	struct event ev[EVENTS];
	unsigned int events;
	uint64_t now, sent, widest;
	char error[200];
} s;

static uint32_t value(unsigned int w, uint32_t step, uint32_t segment)
{
	return rng_mix(step ^ (uint64_t)w << 32 ^ (uint64_t)segment << 40);
}

static bool chance(double p)
{
	return rng_below(&s.rng, 1u << 30) < p * (1u << 30);
}

static void carry(bool down, unsigned int w, const void *msg, unsigned int len)
{
	for (int copies = 1 + chance(s.c->dup); copies; copies--) {
		struct event *e = &s.ev[s.events];

		if (chance(s.c->loss) || s.events == EVENTS)
			continue;
		s.events++;
		e->when = s.now + 50000 + rng_below(&s.rng, 100000);
		e->down = down;
		e->w = w;
		e->len = len;
		e->session = s.m[w].session;
		memcpy(e->msg, msg, len);
	}
}

static void send_act(unsigned int w, const struct saina_steps_act *a)
{
	uint8_t msg[MSGLEN] = { 0 };
	struct saina_hdr *h = (void *)msg;
	uint32_t *v = (void *)(h + 1);

	*h = (struct saina_hdr){ .version = SAINA_PROTO_VERSION, .type = a->type,
				 .elem = SAINA_ELEM_INT32, .worker = w, .round = a->round,
				 .segment = a->segment, .session = s.m[w].session,
				 .flags = a->again ? SAINA_F_RETRANSMIT : 0 };
	if (a->type != SAINA_MSG_CLOCK)
		h->count = ELEMS;
	for (unsigned int i = 0; a->type == SAINA_MSG_INC && i < ELEMS; i++)
		v[i] = value(w, a->round, a->segment);
	s.sent++;
	carry(false, w, msg, a->type == SAINA_MSG_CLOCK ? sizeof(*h) : MSGLEN);
}

/* It may do the step it is in and has the sums for it. */
static void begins(unsigned int w)
{
	struct member *m = &s.m[w];
	uint64_t must = m->t.step > s.c->window ? (uint64_t)WORKERS * (m->t.step - s.c->window) : 0;

	for (uint32_t i = 0; !s.c->kills && i < SEGMENTS && m->t.step; i++)
		if (m->t.seg[i].version < must && !s.error[0])
			snprintf(s.error, sizeof(s.error), "worker %u begins step %u with version %llu of "
				 "segment %u: it must see %llu updates", w, m->t.step,
				 (unsigned long long)m->t.seg[i].version, i, (unsigned long long)must);
	if (m->t.step >= s.c->steps) {
		m->over = true;
		m->end_ns = s.now;
		return;
	}
	m->computing = true;
	m->ready_ns = s.now + s.c->base_ns;
	if (rng_below(&s.rng, 100) < 15)
		m->ready_ns += s.c->base_ns / 2 + s.c->base_ns * 3 / 2 * rng_below(&s.rng, 1000) / 1000;
}

static void handle_event(unsigned int w, const struct event *e)
{
	const struct saina_hdr *h = (const void *)e->msg;
	struct member *m = &s.m[w];
	uint32_t sum;

	if (e->session != m->session)
		return;
	if (h->type == SAINA_MSG_SUM && saina_steps_sum(&m->t, h, s.now) & SAINA_STEPS_TAKE) {
		memcpy(&sum, h + 1, 4);
		m->seen[h->segment] = sum;
	} else if (h->type == SAINA_MSG_NAK) {
		saina_steps_nak(&m->t, h);
	} else if (h->type == SAINA_MSG_GO) {
		saina_steps_go(&m->t, h, w);
	}
}

static void joins(unsigned int w)
{
	struct member *m = &s.m[w];

	saina_steps_exit(&m->t);
	if (saina_steps_init(&m->t, SEGMENTS, 3))
		abort();
	m->session = rng_u64(&s.rng) | 1;
	m->computing = m->over = false;
	m->ready_ns = 0;
	switch_bind(&s.sw, w, m->session);
}

/* What a worker does now; when it wants to be asked again. */
static uint64_t turn(unsigned int w)
{
	struct member *m = &s.m[w];
	struct saina_steps_act act[4];
	uint64_t when = NEVER;
	size_t n;

	if (m->over)
		return NEVER;
	if (m->t.phase == SAINA_STEPS_IDLE && !m->computing)
		begins(w);
	if (m->over)
		return NEVER;
	if (m->computing && m->ready_ns > s.now)
		return m->ready_ns;
	if (m->computing) {
		m->computing = false;
		saina_steps_next(&m->t);
		saina_steps_add(&m->t, SEGMENTS);
		saina_steps_close(&m->t);
	}
	while ((n = saina_steps_run(&m->t, s.now, act, 4, &when)))
		for (size_t i = 0; i < n; i++)
			send_act(w, &act[i]);
	return when;
}

static void deliver(const struct event *e)
{
	uint64_t to;
	void *answer;
	unsigned int len;

	if (e->down) {
		handle_event(e->w, e);
		return;
	}
	len = switch_message(&s.sw, e->w, e->msg, e->len, &to, &answer);
	for (unsigned int w = 0; len && w < WORKERS; w++)
		if (to >> w & 1)
			carry(true, w, answer, len);
}

static void lead(void)
{
	const struct saina_clock *k = &s.sw.oracle->job[0].clock;

	for (unsigned int w = 0; w < WORKERS; w++)
		if (k->members >> w & 1 && k->done[w] - k->low > s.widest)
			s.widest = k->done[w] - k->low;
}

static bool all_over(void)
{
	for (unsigned int w = 0; w < WORKERS; w++)
		if (!s.m[w].over)
			return false;
	return true;
}

/* Until all are at the end; false if that does not come. */
static bool run(const struct conf *c)
{
	memset(&s, 0, sizeof(s));
	s.c = c;
	s.now = 1;	/* 0 is never */
	rng_seed(&s.rng, c->seed);
	switch_init(&s.sw, 0, ELEMS, SEGMENTS * ELEMS, 4, 2);
	s.sw.conf.state = SAINA_JOB_RUNNING;
	s.sw.conf.policy = (struct saina_policy){ .seq = 1, .mode = SAINA_POLICY_SSP,
						  .late = SAINA_LATE_RESIDUAL,
						  .window = c->window };
	for (unsigned int w = 0; w < WORKERS; w++)
		joins(w);
	for (uint64_t turns = 0; !all_over(); turns++) {
		uint64_t next = NEVER;
		unsigned int first = 0;

		if (turns > 8000ull * c->steps || s.error[0])
			return false;
		if (c->kills && turns % 5000 == 4999 && s.m[turns / 5000 % WORKERS].t.step + 2 < c->steps)
			joins(turns / 5000 % WORKERS);
		for (unsigned int w = 0; w < WORKERS; w++) {
			uint64_t when = turn(w);

			/* who is at the end leaves, or the others would wait */
			if (s.m[w].over && s.sw.conf.active >> w & 1 && !all_over())
				switch_alive(&s.sw, w, false);
			next = when < next ? when : next;
		}
		for (unsigned int i = 1; i < s.events; i++)
			if (s.ev[i].when < s.ev[first].when)
				first = i;
		if (s.events && s.ev[first].when <= next) {
			struct event e = s.ev[first];

			s.ev[first] = s.ev[--s.events];
			s.now = e.when > s.now ? e.when : s.now;
			deliver(&e);
			lead();
		} else if (next != NEVER) {
			s.now = next > s.now ? next : s.now;
		} else if (!all_over()) {
			return false;
		}
	}
	return !s.error[0];
}

/* The sums are those of all updates, each once. */
static bool table_is_whole(void)
{
	const struct oracle_job *j = &s.sw.oracle->job[0];

	for (uint32_t i = 0; i < SEGMENTS; i++) {
		const struct oracle_slot *t = &j->ring[i * 2];
		uint32_t sum = 0;

		for (unsigned int w = 0; w < WORKERS; w++)
			for (uint32_t c = 0; c < s.c->steps; c++)
				sum += value(w, c, i);
		if (t->meta.sum_tag != (uint64_t)WORKERS * s.c->steps || (uint32_t)t->sum[0] != sum)
			return false;
	}
	return true;
}

static void finish(void)
{
	for (unsigned int w = 0; w < WORKERS; w++)
		saina_steps_exit(&s.m[w].t);
	switch_exit(&s.sw);
}

static void test_lossy(unsigned int runs)
{
	bool ok = true, whole = true, led = true, calm = true;

	for (unsigned int i = 0; i < runs && ok && whole; i++) {
		struct conf c = { .seed = i, .window = 1 + i % 5, .steps = 30, .loss = i % 4 * .04,
				  .dup = i % 3 * .05, .base_ns = 300000 };

		ok = run(&c);
		whole = table_is_whole();
		led &= s.widest <= c.window + 1;
		calm &= !switch_malformed(&s.sw) && !switch_count(&s.sw, SAINA_C_INC_ORDER);
		if (!ok || !whole)
			tap_note("seed %u: %s", i, s.error[0] ? s.error : "does not come to the end, or not whole");
		finish();
	}
	tap_ok(ok, "steps: every worker comes to the end and sees what its window promises, in %u runs", runs);
	tap_ok(whole, "steps: each update is counted once");
	tap_ok(led, "steps: nobody leads by more than W + 1");
	tap_ok(calm, "steps: nothing is malformed or out of order but clocks that ask");
}

static void test_kills(unsigned int runs)
{
	bool ok = true;

	for (unsigned int i = 0; i < runs && ok; i++) {
		struct conf c = { .seed = 1000 + i, .window = 2, .steps = 60, .loss = .03, .dup = .03,
				  .base_ns = 300000, .kills = true };

		ok = run(&c);
		finish();
	}
	tap_ok(ok, "steps: workers that die and come back anew hold up nobody, in %u runs", runs);
}

/* A barrier after each step, no network. */
static double with_barrier(uint64_t seed, unsigned int steps)
{
	double time = 0;

	rng_seed(&s.rng, seed);
	for (unsigned int i = 0; i < steps; i++) {
		double most = 0;

		for (unsigned int w = 0; w < WORKERS; w++) {
			double t = 1;

			if (rng_below(&s.rng, 100) < 15)
				t += .5 + 1.5 * rng_below(&s.rng, 1000) / 1000;
			most = t > most ? t : most;
		}
		time += most;
	}
	return time / steps;
}

static void test_serene(void)
{
	struct conf c = { .seed = 7, .window = 10, .steps = 1000, .base_ns = 100 * MSEC };
	double ratio = 0, sum = 0;
	bool ok = run(&c);

	for (unsigned int w = 0; w < WORKERS; w++)
		sum += s.m[w].end_ns;
	if (ok)
		ratio = sum / WORKERS / c.steps / c.base_ns;
	finish();
	ratio /= with_barrier(7, 20000);
	tap_ok(ratio > .554 && ratio < .654,
	       "steps: N=8, W=10: a step takes %.3f of what it takes with a barrier (published .605)", ratio);
}

int main(void)
{
	test_lossy(60);
	test_kills(20);
	test_serene();
	return tap_done();
}
