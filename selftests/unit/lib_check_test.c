// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a worker lets in.  A handle in the middle of a round is fed messages that
 * are wrong in one way each, then millions that are mutated or random: none may
 * crash it, and none that is refused may change anything but the count of bad ones.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "progress/progress.h"
#include "reduce/round.h"
#include "../lib/rng.h"
#include "../lib/statement.h"

#define SEGMENTS	8
#define PAYLOAD		64
#define MSGLEN		(48 + 4 * PAYLOAD)

static uint64_t rng;

static uint32_t draw(void)
{
	return rng_next(&rng);
}

static float buffer[SEGMENTS * PAYLOAD];

/* A worker 3 of job 7 in round 5, all of it in flight, without a network. */
static struct saina *handle(void)
{
	struct saina *s = calloc(1, sizeof(*s));
	struct saina_req *r = calloc(1, sizeof(*r));
	struct saina_session *j = &s->session;
	struct saina_act act[SAINA_ASK_SEGMENTS];
	uint64_t when;

	s->pid = getpid();
	s->round.ops = &saina_rounds;
	s->io.ucast = s->io.mcast = s->io.wake = -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->cond, NULL);
	j->job = (struct saina_job){
		.id = 7, .session = 99, .worker = 3, .workers = 8, .elem = SAINA_ELEM_INT32,
		.elements = SEGMENTS * PAYLOAD, .segments = SEGMENTS, .payload = PAYLOAD,
		.pool = 8, .ring = 4, .wire = 4 * PAYLOAD, .msglen = MSGLEN, .per_batch = 8, .heartbeat_ms = 100,
		.exponent0 = 20,
	};
	j->address = "192.0.2.1";
	j->ifname = "eth0";
	j->body.nonce = htole64(0x1234567890ull);
	j->again = true;
	j->phase = PHASE_RUNNING;
	assert_int_equal(saina_round_init(&s->round, &j->job, 1, 0, 0), 0);
	saina_flow_begin(&s->round.flow, 5, true, 0);
	r->s = s;
	r->t = (struct saina_tensor){ .buf = buffer, .n = SEGMENTS * PAYLOAD,
				      .type = SAINA_FLOAT32 };
	saina_round_start(&s->round, r, 0);
	assert_int_equal(saina_flow_run(&s->round.flow, 0, act, SAINA_ASK_SEGMENTS, &when), SEGMENTS);
	return s;
}

static void handle_free(struct saina *s)
{
	free(s->round.reqs);
	s->round.ops->exit(&s->round);
	free(s);
}

union message {
	uint8_t b[sizeof(struct saina_hdr) + 4 * SAINA_ELEMS_MAX];
	struct saina_hdr h;
};

static size_t good(union message *m, int type)
{
	memset(m, 0, sizeof(*m));
	m->h.version = SAINA_PROTO_VERSION;
	m->h.type = type;
	m->h.job = htole16(7);
	m->h.session = htole64(99);
	m->h.worker = 3;
	m->h.round = htole32(5);
	m->h.segment = htole32(2);
	switch (type) {
	case SAINA_MSG_RESULT:
		m->h.elem = SAINA_ELEM_INT32;
		m->h.worker = SAINA_WORKER_ANY;
		m->h.session = 0;
		m->h.count = htole16(PAYLOAD);
		m->h.exponent = 20 - SAINA_EXPONENT_BIAS;
		m->h.contributors = 3;
		m->h.mask = htole64(0x0b);
		m->h.k = 3;
		return MSGLEN;
	case SAINA_MSG_WELCOME: {
		struct saina_welcome *w = (void *)(m->b + 48);

		*w = (struct saina_welcome){
			.nonce = htole64(0x1234567890ull), .elements = htole64(SEGMENTS * PAYLOAD),
			.segments = htole32(SEGMENTS), .payload = htole16(PAYLOAD),
			.pool = htole16(8), .ring = htole16(4), .workers = 8,
			.state = SAINA_JOB_RUNNING, .round = htole32(5),
			.group = htole32(SAINA_GROUP_BASE + 7), .heartbeat_ms = htole16(100),
			.dead_ms = htole16(1000), .exponent = 20, .elem = SAINA_ELEM_INT32,
		};
		return 48 + sizeof(*w);
	}
	case SAINA_MSG_REFUSE: {
		struct saina_refuse *r = (void *)(m->b + 48);

		r->reason = htole32(SAINA_REFUSE_NO_JOB);
		strcpy(r->text, "no such job");
		return 48 + sizeof(*r);
	}
	case SAINA_MSG_STATUS: {
		struct saina_status *t = (void *)(m->b + 48);

		t->state = SAINA_JOB_RUNNING;
		t->round = htole32(6);
		return 48 + sizeof(*t);
	}
	case SAINA_MSG_ASK_REPLY: {
		struct saina_ask *a = (void *)(m->b + 48);

		m->h.slot_round = htole32(6);
		a->time = htole64(saina_now() - 1000000);
		a->counted = htole64(0x33);
		a->done = htole64(0x11);
		return 48 + sizeof(*a);
	}
	}
	return 48;
}

/* Everything that a message could change, but for the count of bad ones. */
struct snapshot {
	struct saina s;
	struct saina_batch batch;
	struct saina_segment_state state[SEGMENTS];
	struct saina_req req;
	float buffer[SEGMENTS * PAYLOAD];
	uint32_t residual[SEGMENTS * PAYLOAD];
};

static void snapshot_take(struct snapshot *n, const struct saina *s)
{
	memset(n, 0, sizeof(*n));
	memcpy(&n->s, s, sizeof(*s));
	n->s.bad_messages = 0;
	n->batch = s->round.flow.batch[0];
	memcpy(n->state, s->round.grad.state, sizeof(n->state));
	memcpy(&n->req, s->round.reqs, sizeof(n->req));
	memcpy(n->buffer, buffer, sizeof(buffer));
	memcpy(n->residual, s->round.grad.residual, sizeof(n->residual));
}

static void refused(struct saina *s, enum saina_source from, const void *m, size_t len)
{
	static struct snapshot before, after;
	uint64_t bad = s->bad_messages;

	snapshot_take(&before, s);
	saina_input(s, from, m, len, saina_now());
	snapshot_take(&after, s);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(s->bad_messages, bad + 1);
}

#define REFUSED(type, change) do {			\
	union message m;				\
	size_t len = good(&m, SAINA_MSG_##type);	\
	enum saina_source from = SAINA_FROM_CTRL;		\
	struct saina_welcome *w = (void *)(m.b + 48);	\
	struct saina_refuse *r = (void *)(m.b + 48);	\
	(void)w, (void)r;				\
	assert_true(saina_session_check(&s->session, from, &m, len));	\
	change;						\
	refused(s, from, &m, len);			\
} while (0)

static void test_refused(void **state)
{
	struct saina *s = handle();

	REFUSED(RESULT, len = 0);
	REFUSED(RESULT, len = 47);
	REFUSED(RESULT, len = 48);
	REFUSED(RESULT, len--);
	REFUSED(RESULT, len++);
	REFUSED(RESULT, m.h.version = 0);
	REFUSED(RESULT, m.h.version++);
	REFUSED(RESULT, m.h.type = SAINA_MSG_GRAD);
	REFUSED(RESULT, m.h.type = SAINA_MSG_PULL);
	REFUSED(RESULT, m.h.type = SAINA_MSG_JOIN);
	REFUSED(RESULT, m.h.type = 255);
	REFUSED(RESULT, m.h.elem = SAINA_ELEM_FLOAT32);
	REFUSED(RESULT, m.h.job = htole16(8));
	REFUSED(RESULT, m.h.session = htole64(99));	/* to all, but with a session */
	REFUSED(RESULT, m.h.worker = 3);		/* to us, but without */
	REFUSED(RESULT, (m.h.worker = 2, m.h.session = htole64(99)));
	REFUSED(RESULT, (m.h.worker = 3, m.h.session = htole64(98)));
	REFUSED(RESULT, m.h.segment = htole32(SEGMENTS));
	REFUSED(RESULT, m.h.segment = htole32(UINT32_MAX));
	REFUSED(RESULT, m.h.round = htole32(UINT32_MAX));
	REFUSED(RESULT, m.h.count = htole16(PAYLOAD - 1));
	REFUSED(RESULT, (m.h.count = htole16(128), len = 48 + 4 * 128));
	REFUSED(RESULT, m.h.contributors = 0);
	REFUSED(RESULT, m.h.contributors = 4);
	REFUSED(RESULT, (m.h.contributors = 0, m.h.mask = 0));
	REFUSED(RESULT, m.h.mask = htole64(0x0f));
	REFUSED(RESULT, m.h.flags = SAINA_F_TYPES);
	/* Says that we were late and shows our bit, and the other way round. */
	REFUSED(RESULT, (m.h.worker = 3, m.h.session = htole64(99), m.h.flags = SAINA_F_LATE));
	REFUSED(RESULT, (m.h.worker = 3, m.h.session = htole64(99), m.h.flags = SAINA_F_RESEND,
			 m.h.mask = htole64(0x07)));
	REFUSED(RESULT, from = SAINA_FROM_OTHERS);

	REFUSED(STALE, len++);
	REFUSED(STALE, m.h.worker = SAINA_WORKER_ANY);
	REFUSED(STALE, m.h.session = 0);
	REFUSED(STALE, m.h.segment = htole32(SEGMENTS));
	REFUSED(STALE, len = MSGLEN - 4);
	REFUSED(ASK_REPLY, len = 48);
	REFUSED(ASK_REPLY, len++);
	REFUSED(ASK_REPLY, len = MSGLEN);
	REFUSED(ASK_REPLY, m.h.worker = SAINA_WORKER_ANY);
	REFUSED(ASK_REPLY, m.h.session = 0);
	REFUSED(ASK_REPLY, m.h.segment = htole32(SEGMENTS));
	REFUSED(ASK_REPLY, m.h.round = htole32(UINT32_MAX));
	REFUSED(ASK_REPLY, m.h.count = htole16(PAYLOAD));
	REFUSED(ASK_REPLY, m.h.type = SAINA_MSG_ASK);
	REFUSED(ASK_REPLY, from = SAINA_FROM_OTHERS);
	REFUSED(NOP, m.h.version++);
	REFUSED(NOP, from = SAINA_FROM_OTHERS);
	REFUSED(NOP, len = 47);
	REFUSED(PROBE_REPLY, m.h.session = 0);
	REFUSED(PROBE_REPLY, len = 52);

	REFUSED(STATUS, len--);
	REFUSED(STATUS, m.h.session = htole64(1));
	REFUSED(STATUS, m.h.worker = 2);
	REFUSED(STATUS, memset(m.b + len - SAINA_STATUS_TEXT_LEN, 'x', SAINA_STATUS_TEXT_LEN));
	REFUSED(STATUS, from = SAINA_FROM_DATA);		/* control comes from the agent */
	REFUSED(REFUSE, from = SAINA_FROM_DATA);
	REFUSED(REFUSE, memset(r->text, 'x', sizeof(r->text)));
	REFUSED(REFUSE, r->nonce = 1);
	REFUSED(REFUSE, len--);
	/* of another version only what says so */
	REFUSED(REFUSE, (m.h.version++, r->reason = htole32(SAINA_REFUSE_TOKEN)));
	REFUSED(REFUSE, (m.h.version++, r->reason = htole32(SAINA_REFUSE_VERSION), len--));
	REFUSED(REFUSE, (m.h.version++, r->reason = htole32(SAINA_REFUSE_VERSION), from = SAINA_FROM_DATA));
	REFUSED(REFUSE, (m.h.version++, r->reason = htole32(SAINA_REFUSE_VERSION), m.h.job = htole16(8)));
	REFUSED(WELCOME, from = SAINA_FROM_DATA);
	REFUSED(WELCOME, w->nonce = 0);
	REFUSED(WELCOME, w->round = htole32(SAINA_ROUND_MAX + 1));
	REFUSED(WELCOME, w->segments = htole32(SEGMENTS + 1));
	REFUSED(WELCOME, w->elements = 0);
	REFUSED(WELCOME, w->payload = htole16(65));
	REFUSED(WELCOME, w->pool = htole16(7));
	REFUSED(WELCOME, w->pool = 0);
	REFUSED(WELCOME, w->ring = htole16(1));
	REFUSED(WELCOME, w->ring = htole16(3));
	REFUSED(WELCOME, w->workers = 0);
	REFUSED(WELCOME, w->workers = 65);
	REFUSED(WELCOME, w->group = htole32(SAINA_GROUP_BASE + 8));
	REFUSED(WELCOME, w->heartbeat_ms = 0);
	REFUSED(WELCOME, w->exponent = SAINA_EXPONENT_NAN);
	REFUSED(WELCOME, w->exponent = SAINA_EXPONENT_INT);
	REFUSED(WELCOME, m.h.worker = 64);
	REFUSED(WELCOME, len--);
	handle_free(s);
}

/* In a tree a result has a weight, and a WELCOME may be longer. */
static void test_weight(void **state)
{
	struct saina *s = handle();
	struct {
		union message m;
		struct saina_welcome_tree *t;
	} w = { .t = (void *)(w.m.b + 48) };
	struct saina_job_info info = { .size = sizeof(info) };
	struct saina_segment segment = { .size = sizeof(segment) };
	union message m;
	size_t len;

	REFUSED(RESULT, m.h.slot_round = htole32(1));
	len = good(&w.m, SAINA_MSG_WELCOME) + 16;
	w.m.h.flags = SAINA_F_TREE;
	w.t->weight = htole32(32);
	assert_false(saina_session_check(&s->session, SAINA_FROM_CTRL, &w.m, len));
	s->session.tree = true;
	assert_true(saina_session_check(&s->session, SAINA_FROM_CTRL, &w.m, len));
	refused(s, SAINA_FROM_CTRL, &w.m, len - 16);
	for (int i = 0; i < 5; i++) {
		struct saina_welcome_tree good = *w.t;

		w.t->weight = htole32(i == 0 ? 0 : i == 1 ? 65536 : 32);
		w.t->rank0 = htole32(i == 2 ? 33 : 31);
		w.t->depth = i == 3 ? 8 : 7;
		w.t->quorum = htole32(i == 4 ? 33 : 32);
		refused(s, SAINA_FROM_CTRL, &w.m, len);
		*w.t = good;
	}
	s->session.job.tree = true;
	s->session.job.weight = 32;
	REFUSED(RESULT, m.h.slot_round = htole32(30));
	REFUSED(RESULT, m.h.slot_round = htole32(UINT32_MAX));
	REFUSED(RESULT, (m.h.contributors = 0, m.h.mask = 0));
	/* The mean is that of all workers; of a job that the parent has not counted none is in it. */
	for (int i = 0; i < 2; i++) {
		len = good(&m, SAINA_MSG_RESULT);
		m.h.segment = htole32(i);
		m.h.contributors = i ? 0 : 3;
		m.h.mask = htole64(i ? 0 : 0x0b);
		m.h.slot_round = htole32(i ? 8 : 29);
		for (int k = 0; k < PAYLOAD; k++)
			((int32_t *)(m.b + 48))[k] = 8 << 20;
		saina_input(s, SAINA_FROM_DATA, &m, len, saina_now());
		assert_int_equal(s->bad_messages, 10);
		assert_true(buffer[i * PAYLOAD] == (i ? 1 : .25f));
	}
	assert_true(s->round.reqs->call.count_min == 8 && s->round.reqs->call.count_max == 32);
	assert_int_equal(s->round.reqs->call.late_segments, 1);
	s->session.job.rank = 9;
	assert_int_equal(saina_info(s, &info), 0);
	assert_true(info.ranks == 32 && info.rank == 9 && info.workers == 8 && info.worker == 3);
	assert_int_equal(saina_segment(s, 1, &segment), 0);
	assert_true(segment.weight == 8 && segment.contributors == 0);
	handle_free(s);
}

/* Every exponent of a result and of a WELCOME. */
static void test_exponents(void **state)
{
	struct saina *s = handle();
	union message result, welcome;
	size_t len = good(&result, SAINA_MSG_RESULT), wlen = good(&welcome, SAINA_MSG_WELCOME);

	for (int e = -128; e < 128; e++) {
		bool in = e != SAINA_EXPONENT_NAN && e != SAINA_EXPONENT_INT;

		result.h.exponent = e;
		((struct saina_welcome *)(welcome.b + 48))->exponent = e;
		s->session.job.elem = result.h.elem = SAINA_ELEM_INT32;
		assert_int_equal(saina_session_check(&s->session, SAINA_FROM_CTRL, &result, len), true);
		assert_int_equal(saina_session_check(&s->session, SAINA_FROM_CTRL, &welcome, wlen), in);
		/* Floats have none. */
		s->session.job.elem = result.h.elem = SAINA_ELEM_FLOAT32;
		assert_int_equal(saina_session_check(&s->session, SAINA_FROM_CTRL, &result, len), e == 0);
	}
	/* Of int16 messages count pairs, and a segment has twice as many elements. */
	welcome.h.worker = 3;
	((struct saina_welcome *)(welcome.b + 48))->exponent = 0;
	((struct saina_welcome *)(welcome.b + 48))->elem = SAINA_ELEM_INT16;
	assert_false(saina_session_check(&s->session, SAINA_FROM_CTRL, &welcome, wlen));
	((struct saina_welcome *)(welcome.b + 48))->elements = htole64(2 * SEGMENTS * PAYLOAD - 1);
	assert_true(saina_session_check(&s->session, SAINA_FROM_CTRL, &welcome, wlen));
	s->session.job.elem = result.h.elem = SAINA_ELEM_INT16;
	result.h.exponent = SAINA_EXPONENT_MIN;
	assert_false(saina_session_check(&s->session, SAINA_FROM_CTRL, &result, len));
	s->session.job.payload = 2 * PAYLOAD;
	assert_true(saina_session_check(&s->session, SAINA_FROM_CTRL, &result, len));
	result.h.exponent = SAINA_EXPONENT_INT;
	assert_false(saina_session_check(&s->session, SAINA_FROM_CTRL, &result, len));
	s->session.job.payload = PAYLOAD;
	handle_free(s);
}

/* The good ones do what they should, once. */
static void test_accepted(void **state)
{
	struct saina *s = handle();
	struct saina_flow *f = &s->round.flow;
	union message m;
	size_t len = good(&m, SAINA_MSG_RESULT);

	for (int i = 0; i < PAYLOAD; i++)
		((int32_t *)(m.b + 48))[i] = 3 << 20;
	saina_input(s, SAINA_FROM_DATA, &m, len, saina_now());
	assert_int_equal(s->bad_messages, 0);
	assert_int_equal(s->round.stats.results, 1);
	assert_true(f->batch[0].over == 0x04 && f->batch[0].out == 0xfb);
	assert_int_equal(f->inflight, 1);
	assert_true(buffer[2 * PAYLOAD] == 1.0f && buffer[3 * PAYLOAD - 1] == 1.0f);
	((int32_t *)(m.b + 48))[0] = 0;
	saina_input(s, SAINA_FROM_DATA, &m, len, saina_now());
	assert_int_equal(s->round.stats.duplicate_results, 1);
	assert_true(buffer[2 * PAYLOAD] == 1.0f);

	/* One of a later round is kept, one beyond the ring is news only. */
	m.h.round = htole32(6);
	saina_input(s, SAINA_FROM_DATA, &m, len, saina_now());
	assert_int_equal(saina_reorder_count(&f->reorder, 6), 1);
	assert_int_equal(f->known_next, 7);
	m.h.round = htole32(5 + 4);
	saina_input(s, SAINA_FROM_DATA, &m, len, saina_now());
	assert_int_equal(saina_reorder_count(&f->reorder, 9), 0);
	assert_int_equal(f->known_next, 10);
	assert_int_equal(saina_decided(s), 1);
	/* So what is missing of this round was lost, unless it comes very soon. */
	assert_int_equal(f->batch[0].pull, 0xfb);
	assert_true(f->batch[0].pull_ns <= saina_now() + 5 * MSEC);
	handle_free(s);
}

/* Only jobs of int32 have steps, whatever an answer says. */
static void test_steps(void **state)
{
	static const int elem[] = { SAINA_ELEM_FLOAT32, SAINA_ELEM_BFLOAT16, SAINA_ELEM_INT16, SAINA_ELEM_INT32 };

	for (int i = 0; i < 4; i++) {
		struct saina *s = handle();
		union message m;

		good(&m, SAINA_MSG_RESULT);
		m.h = (struct saina_hdr){
			.version = SAINA_PROTO_VERSION, .type = SAINA_MSG_NAK, .k = SAINA_NAK_MODE, .elem = elem[i],
			.job = htole16(7), .session = htole64(99), .worker = 3, .round = htole32(5),
			.segment = htole32(2), .slot_round = htole32(5),
		};
		s->session.job.elem = elem[i];
		saina_input(s, SAINA_FROM_DATA, &m, sizeof(m.h), saina_now());
		assert_int_equal(s->bad_messages, 0);
		assert_int_equal(s->round.ops != &saina_rounds, elem[i] == SAINA_ELEM_INT32);
		handle_free(s);
	}
}

/* ASK_REPLY, with segment 2 over: 0 and 4 are done, 1 and 5 are in, 3, 6 and 7 were lost. */
static void test_ask_reply(void **state)
{
	static uint8_t buf[SEGMENTS * MSGLEN];
	const struct saina_hdr *h = (void *)buf;
	struct saina *s = handle();
	struct saina_batch *t = s->round.flow.batch;
	union message m, nop;
	size_t len;
	uint64_t when, now;

	len = good(&m, SAINA_MSG_RESULT);
	saina_input(s, SAINA_FROM_DATA, &m, len, saina_now());
	len = good(&nop, SAINA_MSG_NOP);
	saina_input(s, SAINA_FROM_DATA, &nop, MSGLEN, saina_now());
	assert_int_equal(s->bad_messages, 0);

	len = good(&m, SAINA_MSG_ASK_REPLY);
	m.h.segment = 0;
	now = saina_now();
	saina_input(s, SAINA_FROM_DATA, &m, len, now);
	assert_int_equal(s->bad_messages, 0);
	assert_int_equal(t->resend, 0xc8);
	assert_int_equal(t->pull, 0x11);
	assert_int_equal(saina_round_output(&s->round, now, buf, &len, &when), 3);
	assert_int_equal(len, MSGLEN);
	assert_true(h->type == SAINA_MSG_GRAD && h->flags == SAINA_F_RETRANSMIT && le32toh(h->segment) == 3);
	/* The same once more is about a time before these. */
	saina_input(s, SAINA_FROM_DATA, &m, sizeof(m.h) + sizeof(struct saina_ask), now + 1);
	assert_int_equal(t->resend, 0);
	/* A result has come since the last question: time for one. */
	assert_int_equal(saina_round_output(&s->round, now, buf, &len, &when), 1);
	assert_int_equal(h->type, SAINA_MSG_ASK);
	assert_int_equal(len, sizeof(*h) + sizeof(struct saina_ask));
	/* What is done is pulled if it is not here soon, and only once. */
	assert_int_equal(saina_round_output(&s->round, now, buf, &len, &when), 0);
	assert_int_equal(when, t->pull_ns);
	now = t->pull_ns;
	assert_int_equal(saina_round_output(&s->round, now, buf, &len, &when), 2);
	assert_int_equal(h->type, SAINA_MSG_PULL);
	/* Much was lost: it is asked at once, twice, for questions are lost as well. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(saina_round_output(&s->round, now, buf, &len, &when), 1);
		assert_int_equal(h->type, SAINA_MSG_ASK);
	}
	assert_int_equal(saina_round_output(&s->round, now, buf, &len, &when), 0);
	handle_free(s);
}

/* A sentence stays what it was until the caller's next call, whatever comes in. */
static void test_sentence(void **state)
{
	struct saina *s = handle();
	const char *text;
	union message m;
	char was[256];
	size_t len;

	assert_int_equal(saina_set_round(s, 9), -EBUSY);
	text = saina_strerror(s, -EBUSY);
	assert_non_null(strstr(text, "round 5 is open"));
	snprintf(was, sizeof(was), "%s", text);
	len = good(&m, SAINA_MSG_STATUS);
	((struct saina_status *)(m.b + 48))->state = SAINA_JOB_STOPPED;
	saina_input(s, SAINA_FROM_CTRL, &m, len, saina_now());
	assert_string_equal(text, was);
	assert_int_equal(saina_decided(s), -ECONNRESET);
	assert_non_null(strstr(saina_strerror(s, -ECONNRESET), "stopped"));
	handle_free(s);
}

static void test_printable(void **state)
{
	struct saina *s = handle();
	union message m;
	size_t len;

	len = good(&m, SAINA_MSG_STATUS);
	strcpy(((struct saina_status *)(m.b + 48))->text, "\33[2Ja \x9b~");
	saina_input(s, SAINA_FROM_CTRL, &m, len, saina_now());
	assert_string_equal(s->session.reason, "?[2Ja ?~");
	len = good(&m, SAINA_MSG_REFUSE);
	strcpy(((struct saina_refuse *)(m.b + 48))->text, "\33[2Ja \x9b~");
	saina_input(s, SAINA_FROM_CTRL, &m, len, saina_now());
	assert_string_equal(s->session.error, "?[2Ja ?~");
	handle_free(s);
}

/*
 * A bucket is over and waited for when the data path is restarted and the rest of the
 * round is lost.
 */
static void test_restart(void **state)
{
	struct saina *s = handle();
	struct saina_req *a = s->round.reqs, *b = calloc(1, sizeof(*b));
	struct saina_flow *f = &s->round.flow;
	static uint8_t buf[SEGMENTS * MSGLEN];
	union message m;
	uint64_t when;
	size_t len;

	saina_flow_round(f, 5);
	s->round.reqs = NULL;
	memset(a, 0, sizeof(*a));
	a->s = b->s = s;
	a->t = (struct saina_tensor){ .buf = buffer, .n = 4 * PAYLOAD, .type = SAINA_FLOAT32 };
	b->t = a->t;
	b->t.buf = buffer + 4 * PAYLOAD;
	saina_round_start(&s->round, a, 0);
	saina_round_start(&s->round, b, 0);
	assert_int_equal(saina_round_output(&s->round, 0, buf, &len, &when), SEGMENTS);
	for (int i = 0; i < 4; i++) {
		len = good(&m, SAINA_MSG_RESULT);
		m.h.segment = htole32(i);
		saina_input(s, SAINA_FROM_DATA, &m, len, saina_now());
	}
	assert_int_equal(saina_wait(s, a, NULL), 0);	/* frees it */
	assert_true(saina_flow_again(f, 6, true, 0));
	assert_int_equal(saina_round_output(&s->round, 0, buf, &len, &when), 0);
	assert_true(b->finished);
	assert_int_equal(b->err, -ESTALE);
	handle_free(s);
}

/* Invariants that no sequence of messages may break. */
static void sane(const struct saina *s)
{
	const struct saina_flow *f = &s->round.flow;
	const struct saina_batch *t = f->batch;

	assert_false((t->out & t->catch_up) | (t->out & t->over) | (t->catch_up & t->over));
	assert_true((t->out | t->catch_up | t->over | t->sent) <= 0xff);
	assert_int_equal(f->inflight, (t->out | t->catch_up) != 0);
	assert_true(s->round.reqs->done <= SEGMENTS);
	assert_true(f->cwnd.size >= 1 && f->cwnd.size <= f->cwnd.max);
}

static void test_fuzz(void **state)
{
	static const int types[] = { SAINA_MSG_RESULT, SAINA_MSG_STALE, SAINA_MSG_WELCOME,
				     SAINA_MSG_REFUSE, SAINA_MSG_STATUS, SAINA_MSG_PROBE_REPLY,
				     SAINA_MSG_ASK_REPLY, SAINA_MSG_ASK_REPLY, SAINA_MSG_NOP };
	struct saina *s = handle();
	uint64_t bad = 0, fine = 0;

	rng = 21;
	print_message("seed 21\n");
	for (int t = 0; t < 1000000; t++) {
		union message m;
		size_t len = good(&m, types[draw() % 9]);
		enum saina_source from = draw() % 8 ? SAINA_FROM_CTRL : SAINA_FROM_DATA;
		unsigned int n = draw() % 4;
		uint64_t before = s->bad_messages;

		if (draw() % 16 == 0) {
			for (size_t i = 0; i < 256; i += 4)
				*(uint32_t *)(m.b + i) = draw();
			m.b[0] = SAINA_PROTO_VERSION;
			len = draw() % 400;
		}
		for (; n; n--) {
			unsigned int at = draw() % 16 ? draw() % 96 : draw() % MSGLEN;

			if (draw() & 1)
				m.b[at] ^= 1 << draw() % 8;
			else
				m.b[at] = draw();
		}
		if (draw() % 32 == 0)
			len = draw() % 400;
		if (!saina_session_check(&s->session, from, &m, len)) {
			if (t % 64 == 0) {
				refused(s, from, &m, len);
			} else {
				saina_input(s, from, &m, len, saina_now());
				assert_int_equal(s->bad_messages, before + 1);
			}
			bad++;
		} else {
			saina_input(s, from, &m, len, saina_now());
			fine++;
		}
		sane(s);
		/* Some are refusals and the like that rightly end it. */
		if (s->session.phase != PHASE_RUNNING || s->round.reqs->finished || t % 1000 == 0) {
			handle_free(s);
			s = handle();
		}
	}
	handle_free(s);
	assert_true(bad > 100000 && fine > 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("messages: each malformed message is dropped", test_refused),
		statement("check: a job of other elements than int32 does not turn to steps", test_steps),
		statement("check: a result of a tree has a weight, which divides the mean", test_weight),
		statement("check: results of int32 have any exponent, those of int16 not that of integers, jobs of floats none", test_exponents),
		statement("messages: each well-formed message does what it should, once", test_accepted),
		statement("messages: ASK_REPLY makes a worker send what was lost, and nothing else", test_ask_reply),
		statement("messages: a sentence stays until the next call of the library", test_sentence),
		statement("messages: what is not printable ASCII in the agent's sentences is replaced", test_printable),
		statement("messages: a data path that restarts ends the calls that wait with -ESTALE", test_restart),
		statement("messages: damaged messages leave the state consistent", test_fuzz),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
