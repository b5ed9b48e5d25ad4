// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The session with the agent (userland/lib/session/session.h) against a clock of the test's own: what
 * is sent when, how long it waits for whom, and what it says in the end.
 */
#include <errno.h>
#include <string.h>
#include "session/check.h"
#include "session/session.h"
#include "session/timeout.h"
#include "../lib/statement.h"

#define SEC 1000			/* times are in ms */

static struct saina_session j;
static uint64_t now_ms;
static unsigned int sent[256];		/* by message type */
static unsigned int fast, twice;	/* READY with FAST; probes in twos */
static uint64_t last_nonce;
static uint32_t ready_segment;
static struct {
	struct saina_hdr h;
	struct saina_join_node b;
} join;					/* the last one */

static void setup(void)
{
	memset(&j, 0, sizeof(j));
	memset(sent, 0, sizeof(sent));
	fast = twice = 0;
	now_ms = 1000000;
	j.job.id = 7;
	j.job.worker = j.wanted = SAINA_WORKER_ANY;
	j.join_ms = 5 * SEC;
	j.start_ms = 0;
	j.silence_ms = 60 * SEC;
	j.address = "192.0.2.1";
	j.ifname = "eth0";
	j.port = SAINA_PORT_CTRL;
	j.mtu = 1500;
	j.gro = 1;
	j.spare_nonce = 11;
	saina_session_start(&j, now_ms * MSEC);
}

static void count_sent(void)
{
	struct saina_session_msg m;

	while (saina_session_output(&j, &m)) {
		const struct saina_hdr *h = (void *)m.buf;

		sent[h->type]++;
		fast += h->type == SAINA_MSG_READY && (h->flags & SAINA_F_FAST);
		if (h->type == SAINA_MSG_READY)
			ready_segment = le32toh(h->segment);
		twice += h->type == SAINA_MSG_PROBE && m.twice;
		if (h->type == SAINA_MSG_JOIN)
			last_nonce = ((const struct saina_join *)(h + 1))->nonce;
		if (h->type == SAINA_MSG_JOIN)
			memcpy(&join, h, sizeof(join));
	}
}

/* @ms pass, or it fails. */
static void pass(uint64_t ms)
{
	uint64_t end = now_ms + ms, when;

	do {
		if (!j.spare_nonce)
			j.spare_nonce = 100 + now_ms;
		when = saina_session_run(&j, now_ms * MSEC) / MSEC;
		count_sent();
		now_ms = when <= now_ms ? now_ms + 1 : when < end ? when : end;
	} while (now_ms < end);
	saina_session_run(&j, now_ms * MSEC);
	count_sent();
}

static uint8_t version = SAINA_PROTO_VERSION;	/* of what is heard */

/* A message comes: of @h what its kind does not tell, and a body. */
static enum saina_session_event receive(struct saina_hdr h, const void *body, size_t len)
{
	bool refusal = h.type == SAINA_MSG_REFUSE, data = h.type == SAINA_MSG_PROBE_REPLY;
	struct {
		struct saina_hdr h;
		uint8_t body[256];
	} m = { .h = h };

	m.h.version = version;
	m.h.job = 7;
	m.h.worker = refusal ? SAINA_WORKER_ANY : 2;
	m.h.session = refusal ? 0 : 99;
	memcpy(m.body, body, len);
	assert_true(saina_session_check(&j, data ? SAINA_FROM_DATA : SAINA_FROM_CTRL, &m, sizeof(m.h) + len));
	if (!data)
		j.heard_ns = now_ms * MSEC;
	return saina_session_input(&j, &m.h, now_ms * MSEC);
}

static enum saina_session_event input(int type, const void *body, size_t len)
{
	return receive((struct saina_hdr){ .type = type }, body, len);
}

static enum saina_session_event welcome(int state, uint32_t round)
{
	struct saina_welcome w = {
		.nonce = j.body.nonce, .elements = 640, .segments = 10, .payload = 64, .pool = 4,
		.ring = 4, .workers = 3, .state = state, .round = round,
		.group = SAINA_GROUP_BASE + 7, .heartbeat_ms = 200, .dead_ms = 2000,
		.exponent = 20, .elem = SAINA_ELEM_INT32, .formed = 1,
	};

	return input(SAINA_MSG_WELCOME, &w, sizeof(w));
}

static enum saina_session_event status_of(uint64_t active, int state, enum saina_path path)
{
	struct saina_status s = { .active = active, .state = state, .path = path };

	return input(SAINA_MSG_STATUS, &s, sizeof(s));
}

static enum saina_session_event status(int state, enum saina_path path)
{
	return status_of(1ull << j.job.worker, state, path);
}

static void refuse(int reason, const char *text)
{
	struct saina_refuse r = { .nonce = j.body.nonce, .reason = reason };

	strcpy(r.text, text);
	input(SAINA_MSG_REFUSE, &r, sizeof(r));
}

/* The answer to probe @i. */
static enum saina_session_event reply(unsigned int i)
{
	return receive((struct saina_hdr){ .type = SAINA_MSG_PROBE_REPLY, .round = i }, "", 0);
}

/* STATUS of the running job, with more in its header. */
static void status_with(struct saina_hdr h)
{
	struct saina_status s = { .active = 1ull << j.job.worker, .state = SAINA_JOB_RUNNING };

	h.type = SAINA_MSG_STATUS;
	receive(h, &s, sizeof(s));
}

/* STATUS with the number of a test, and the answer to its probe. */
static void status_test(uint32_t number)
{
	status_with((struct saina_hdr){ .segment = htole32(number) });
}

static void reply_test(uint32_t number)
{
	assert_int_equal(receive((struct saina_hdr){ .type = SAINA_MSG_PROBE_REPLY,
						  .round = htole32(SAINA_SESSION_PROBES),
						  .segment = htole32(number) }, "", 0),
			 SAINA_SESSION_NONE);
}

/* STATUS of a job whose data have so many parts; @k as on the wire. */
static void status_parts(uint8_t k, uint8_t part)
{
	status_with((struct saina_hdr){ .k = k, .contributors = part });
}

static void failed(int err, const char *why)
{
	assert_int_equal(j.phase, PHASE_FAILED);
	assert_int_equal(j.err, err);
	if (!strstr(j.error, why))
		fail_msg("\"%s\" does not say \"%s\"", j.error, why);
}

/* Up to the first probe. */
static void admitted(int gro)
{
	setup();
	j.gro = gro;
	pass(1);
	assert_int_equal(welcome(SAINA_JOB_FORMING, 0), SAINA_SESSION_ADMITTED);
}

/* Up to RUNNING. */
static void run(void)
{
	admitted(1);
	pass(1);
	reply(0);
	pass(1);
	/* of before our READY, sent as the job began: the agent does not know yet how results get to us */
	assert_int_equal(status(SAINA_JOB_RUNNING, SAINA_PATH_UNKNOWN), SAINA_SESSION_NONE);
	assert_int_equal(j.phase, PHASE_READYING);
	assert_int_equal(status(SAINA_JOB_RUNNING, SAINA_PATH_FAST), SAINA_SESSION_STATUS);
	assert_int_equal(j.phase, PHASE_CONFIRMING);
	pass(1);
	assert_int_equal(welcome(SAINA_JOB_RUNNING, 4), SAINA_SESSION_BEGINS);
	assert_int_equal(j.phase, PHASE_RUNNING);
	assert_int_equal(j.job.first_round, 4);
}

static void test_no_answer(void **state)
{
	setup();
	pass(4900);
	assert_int_equal(j.phase, PHASE_JOINING);
	assert_in_range(sent[SAINA_MSG_JOIN], 10, 20);
	pass(200);
	failed(-ETIMEDOUT, "is sainad running there with job 7");
}

/* What is known of why nobody answers is said. */
static void test_why_no_answer(void **state)
{
	static const struct {
		int ctrl_unsent;
		enum saina_unreached unreached;
		const char *says;
	} why[] = {
		{ EPERM, SAINA_UNREACHED_NOT, "Operation not permitted: a firewall here" },
		{ ENETUNREACH, SAINA_UNREACHED_NOT, "Network is unreachable: give this host a route" },
		{ 0, SAINA_UNREACHED_CLOSED, "UDP port 48865 is closed: is sainad running there with job 7" },
		{ 0, SAINA_UNREACHED_FILTERED, "a firewall at 192.0.2.1 rejects UDP port 48865" },
		{ 0, SAINA_UNREACHED_NOBODY, "no host answers at 192.0.2.1" },
		{ 0, SAINA_UNREACHED_NOT, "does a firewall there drop it" },
	};

	for (size_t i = 0; i < sizeof(why) / sizeof(why[0]); i++) {
		setup();
		j.unreached = why[i].unreached;
		saina_session_send_errors(&j, 0, why[i].ctrl_unsent, now_ms * MSEC);
		pass(5100);
		failed(-ETIMEDOUT, why[i].says);
	}
}

/* "taken" and "not seen to come by a port": reasons to ask again, with the same nonce. */
static void test_ask_again(void **state)
{
	static const struct { int reason, err; } again[] = {
		{ SAINA_REFUSE_TAKEN, -EBUSY }, { SAINA_REFUSE_PORT, -ENETUNREACH },
	};

	for (int i = 0; i < 2; i++) {
		uint64_t nonce;

		setup();
		nonce = j.body.nonce;
		for (int k = 0; k < 4; k++) {
			unsigned int n = sent[SAINA_MSG_JOIN];

			pass(1 * SEC);
			assert_true(sent[SAINA_MSG_JOIN] > n);
			assert_int_equal(last_nonce, nonce);
			refuse(again[i].reason, "not now");
			assert_int_equal(j.phase, PHASE_JOINING);
		}
		assert_string_equal(j.notes.text, "not now; trying again");
		assert_int_equal(j.notes.used, strlen(j.notes.text) + 1);	/* said once */
		if (i) {
			assert_int_equal(welcome(SAINA_JOB_FORMING, 0), SAINA_SESSION_ADMITTED);
			continue;
		}
		pass(2 * SEC);
		failed(again[i].err, "not now");
	}
}

/* The answer to a JOIN with TREE. */
static enum saina_session_event welcome_tree(unsigned int elem, uint32_t weight, uint32_t rank)
{
	struct saina_welcome_tree t = {
		.welcome = {
			.nonce = j.body.nonce, .elements = elem == SAINA_ELEM_INT16 ? 1280 : 640,
			.segments = 10, .payload = 64, .pool = 4, .ring = 4, .workers = 3,
			.state = SAINA_JOB_FORMING, .group = SAINA_GROUP_BASE + 7, .heartbeat_ms = 200,
			.dead_ms = 2000, .exponent = 20, .elem = elem, .formed = 1,
		},
		.weight = weight, .rank0 = rank, .depth = 1, .quorum = 17,
	};

	return receive((struct saina_hdr){ .type = SAINA_MSG_WELCOME, .flags = SAINA_F_TREE }, &t, sizeof(t));
}

/* An agent of an earlier version does not know TREE, so the first JOIN has it not. */
static void test_tree(void **state)
{
	setup();
	pass(1);
	assert_int_equal(join.h.flags, 0);
	assert_int_equal(saina_job_weight(&(struct saina_job){ .workers = 3, .weight = 9 }), 3);
	refuse(SAINA_REFUSE_TREE, "update libsaina");
	pass(1);
	assert_int_equal(join.h.flags, SAINA_F_TREE);
	assert_int_equal(join.b.named.join.nonce, j.body.nonce);
	/* The answer to a repetition of the first JOIN. */
	refuse(SAINA_REFUSE_TREE, "update libsaina");
	assert_int_equal(j.phase, PHASE_JOINING);
	assert_int_equal(welcome_tree(SAINA_ELEM_INT32, 32, 9), SAINA_SESSION_ADMITTED);
	assert_true(j.job.tree && j.job.rank == 9 && j.job.depth == 1 && j.job.quorum == 17);
	assert_int_equal(saina_job_weight(&j.job), 32);
}

/* The agent has forgotten this worker, and the tree is another one meanwhile. */
static void test_tree_changed(void **state)
{
	static const uint32_t is[][2] = { { 32, 9 }, { 33, 9 }, { 32, 8 } };

	for (int i = 0; i < 3; i++) {
		setup();
		j.tree = true;
		pass(1);
		welcome_tree(SAINA_ELEM_INT32, 32, 9);
		pass(1);
		reply(0);
		pass(1);
		refuse(SAINA_REFUSE_SESSION, "who are you");
		pass(1);
		assert_int_equal(welcome_tree(SAINA_ELEM_INT32, is[i][0], is[i][1]), SAINA_SESSION_NONE);
		if (i)
			failed(-ECONNRESET, "was replaced by another one");
		else
			assert_int_equal(j.phase, PHASE_PROBING);
	}
}

static void test_tree_sentences(void **state)
{
	setup();
	j.tree = true;
	pass(1);
	refuse(SAINA_REFUSE_MALFORMED, "unknown flags");
	failed(-EPROTO, "the agent at 192.0.2.1 knows no trees of jobs (it is of an earlier version): update it");
	for (uint32_t weight = 64; weight < 66; weight++) {
		setup();
		j.tree = true;
		pass(1);
		welcome_tree(SAINA_ELEM_INT16, weight, 0);
		if (weight > 64)
			failed(-EOPNOTSUPP, "a sum of the 65 workers of its tree does not fit");
		else
			assert_int_equal(j.phase, PHASE_PROBING);
	}
	setup();
	j.tree = true;
	pass(1);
	refuse(SAINA_REFUSE_MISMATCH, "the parent has 20 segments");
	failed(-EINVAL, "the parent has 20 segments");
}

/* A job whose parent is not there is waited for as one that is forming: as long as start_ms says. */
static void test_no_root(void **state)
{
	for (int limited = 0; limited < 2; limited++) {
		setup();
		j.start_ms = limited ? 3 * SEC : 0;
		for (int i = 0; i < (limited ? 3 : 30); i++) {
			pass(1 * SEC);
			refuse(SAINA_REFUSE_NO_ROOT, "the parent has not admitted this job");
			assert_int_equal(j.phase, PHASE_JOINING);
		}
		pass(4 * SEC);
		refuse(SAINA_REFUSE_NO_ROOT, "the parent has not admitted this job");
		pass(4 * SEC);
		if (limited)
			failed(-ENETUNREACH, "the parent has not admitted this job");
		else
			assert_int_equal(j.phase, PHASE_JOINING);
	}
}

static void test_node(void **state)
{
	setup();
	j.tree = j.is_node = true;
	j.node = (struct saina_join_node){ .incarnation = 77, .max_weight = 8, .segments = 10, .ring = 4 };
	strcpy(j.named, "train");
	pass(1);
	assert_int_equal(join.h.flags, SAINA_F_TREE | SAINA_F_NODE | SAINA_F_NAMED);
	assert_string_equal(join.b.named.job, "train");
	assert_int_equal(join.b.named.join.nonce, j.body.nonce);
	assert_true(join.b.incarnation == 77 && join.b.max_weight == 8 && join.b.segments == 10 && join.b.ring == 4);
}

/* Another refusal is the end. */
static void test_refused(void **state)
{
	setup();
	pass(1);
	refuse(SAINA_REFUSE_TOKEN, "the token is wrong");
	failed(-EACCES, "token");
}

/* An agent of another version answers in ours, one of before that in its own. */
static void test_other_version(void **state)
{
	static const struct saina_refuse r = { .reason = SAINA_REFUSE_VERSION, .text = "update" };

	for (int i = 0; i < 10; i++) {
		bool running = i & 1;

		if (running) {
			run();
		} else {
			setup();
			pass(1);
			assert_int_not_equal(j.body.nonce, 0);
		}
		version = i / 2;
		input(SAINA_MSG_REFUSE, &r, sizeof(r));
		version = SAINA_PROTO_VERSION;
		failed(running ? -ECONNRESET : -EPROTONOSUPPORT, "update");
	}
}

/* A busy host is given three seconds to answer a probe, one without GRO only one. */
static void test_probe_timeout(void **state)
{
	for (int gro = 0; gro < 2; gro++) {
		uint64_t limit = gro ? 3 * SEC : 1 * SEC;

		admitted(gro);
		pass(limit - 10);
		assert_int_equal(j.phase, PHASE_PROBING);
		assert_int_equal(sent[SAINA_MSG_PROBE], SAINA_SESSION_PROBES);
		assert_int_equal(reply(3), SAINA_SESSION_PROBED);
		assert_int_equal(j.notes.used, 0);
		pass(1);
		assert_int_equal(fast, 1);
		assert_int_equal(sent[SAINA_MSG_READY], 1);
		assert_int_equal(j.rtt_ns, (limit - 10 - 3 * 40) * MSEC);

		/* one that comes when READY has said that there is none: READY again */
		admitted(gro);
		pass(limit + 10);
		assert_int_equal(reply(5), SAINA_SESSION_NONE);
		pass(1);
		assert_int_equal(fast, 1);
		assert_non_null(strstr(j.notes.text + strlen(j.notes.text) + 1, "after all"));

		admitted(gro);
		pass(limit + 10);
		assert_int_equal(j.phase, PHASE_READYING);
		assert_non_null(strstr(j.notes.text, "gro on"));
		assert_int_equal(fast, 0);
		/* a STATUS of before our READY does not count: it does not relay */
		assert_int_equal(status(SAINA_JOB_RUNNING, SAINA_PATH_UNKNOWN), SAINA_SESSION_NONE);
		assert_int_equal(status(SAINA_JOB_RUNNING, SAINA_PATH_FAST), SAINA_SESSION_NONE);
		assert_int_equal(j.phase, PHASE_READYING);
		status(SAINA_JOB_FORMING, SAINA_PATH_RELAYED);
		assert_int_equal(j.phase, PHASE_FORMING);
		/* STATUS asks for a test, which is answered: said to the agent with the next heartbeat */
		memset(sent, 0, sizeof(sent));
		status_test(1);
		pass(250);
		assert_true(sent[SAINA_MSG_PROBE] >= 1);
		assert_int_equal(fast, 0);
		reply_test(1);
		pass(250);
		assert_true(fast >= 1);
		assert_int_equal(ready_segment, 1);
	}
}

/* Probes go in twos, until that is known not to get through. */
static void test_batches(void **state)
{
	admitted(1);
	j.batched = true;	/* the kernel took them */
	pass(900);
	assert_int_equal(twice, 10);
	assert_true(sent[SAINA_MSG_PROBE] > 12);
	assert_int_equal(reply(11), SAINA_SESSION_PROBED);
	assert_false(j.batches);
	assert_non_null(strstr(j.notes.text, "message by message"));
}

static void test_start_timeout(void **state)
{
	setup();
	j.start_ms = 10 * SEC;
	pass(1);
	welcome(SAINA_JOB_FORMING, 0);
	pass(1);
	reply(0);
	pass(1);
	for (int i = 0; i < 19; i++) {
		status(SAINA_JOB_FORMING, SAINA_PATH_FAST);
		pass(500);
		assert_int_equal(j.phase, PHASE_FORMING);
	}
	assert_non_null(strstr(j.notes.text, "1 of 3 are here"));
	assert_int_equal(sent[SAINA_MSG_LEAVE], 0);
	pass(600);
	failed(-ETIMEDOUT, "1 of 3 are here; ranks 0, 1 are missing");
	assert_int_equal(sent[SAINA_MSG_LEAVE], 1);
}

static void test_heartbeats(void **state)
{
	run();
	sent[SAINA_MSG_HEARTBEAT] = 0;
	for (int i = 0; i < 50; i++) {
		pass(200);
		status(SAINA_JOB_RUNNING, SAINA_PATH_FAST);
	}
	assert_in_range(sent[SAINA_MSG_HEARTBEAT], 49, 51);
	/* silence */
	pass(59 * SEC);
	assert_int_equal(j.phase, PHASE_RUNNING);
	pass(2 * SEC);
	failed(-ETIMEDOUT, "nothing heard from 192.0.2.1");
}

/* The port has another hook than when we joined: a probe a heartbeat, until one was answered. */
static void test_retest(void **state)
{
	run();
	status_test(5);
	memset(sent, 0, sizeof(sent));
	for (int i = 0; i < 5; i++) {
		pass(200);
		status_test(5);
	}
	assert_in_range(sent[SAINA_MSG_PROBE], 4, 6);
	reply_test(4);
	pass(400);
	assert_int_equal(sent[SAINA_MSG_READY], 0);
	reply_test(5);
	fast = 0;
	pass(200);
	assert_in_range(sent[SAINA_MSG_READY], 1, 2);
	assert_int_equal(fast, sent[SAINA_MSG_READY]);
	assert_int_equal(ready_segment, 5);
	/* heard */
	status_test(0);
	memset(sent, 0, sizeof(sent));
	pass(1000);
	assert_int_equal(sent[SAINA_MSG_READY] + sent[SAINA_MSG_PROBE], 0);
	assert_in_range(sent[SAINA_MSG_HEARTBEAT], 4, 6);
}

/* The agent forgot us: with a new nonce and the round we are at, then on as before. */
static void test_again(void **state)
{
	uint64_t nonce;

	run();
	nonce = j.body.nonce;
	j.round = 17;
	j.spare_nonce = 12;
	refuse(SAINA_REFUSE_SESSION, "not admitted: join again");
	assert_int_equal(j.phase, PHASE_REJOINING);
	assert_true(saina_session_listening(&j));
	pass(1);
	assert_true(last_nonce == j.body.nonce && last_nonce != nonce);
	assert_int_equal(le32toh(j.body.round), 17);
	assert_int_equal(welcome(SAINA_JOB_FORMING, 17), SAINA_SESSION_NONE);
	pass(1);
	status(SAINA_JOB_RUNNING, SAINA_PATH_FAST);
	pass(1);
	assert_int_equal(welcome(SAINA_JOB_RUNNING, 17), SAINA_SESSION_RESUMES);
	assert_true(j.job.formed);
	assert_int_equal(j.rejoins, 1);
}

/* Where a job begins is what it says when it runs, not before. */
static void test_old_welcome(void **state)
{
	setup();
	pass(1);
	welcome(SAINA_JOB_FORMING, 9);
	pass(1);
	reply(0);
	pass(1);
	status(SAINA_JOB_RUNNING, SAINA_PATH_FAST);
	assert_int_equal(welcome(SAINA_JOB_FORMING, 9), SAINA_SESSION_NONE);
	assert_int_equal(welcome(SAINA_JOB_RUNNING, 3), SAINA_SESSION_BEGINS);
	assert_int_equal(j.job.first_round, 3);
}

/* The policy becomes coded, another one, and an older agent takes over. */
static void test_parts(void **state)
{
	run();
	assert_int_equal(j.job.parts, 0);
	status_parts(1 + 3, 2);
	assert_int_equal(j.job.parts, 3);
	assert_int_equal(j.job.part, 2);
	status_parts(0, 0);
	assert_int_equal(j.job.parts, 3);
	assert_int_equal(j.job.part, 2);
	status_parts(1, 1);
	assert_int_equal(j.job.parts, 0);
	assert_int_equal(j.job.part, 0);
}

/* A round waits for two workers, one of which has died. */
static void test_missing(void **state)
{
	struct {
		struct saina_hdr h;
		struct saina_status s;
	} m = { .h = { .version = SAINA_PROTO_VERSION, .type = SAINA_MSG_STATUS, .job = 7, .worker = 2,
		       .session = 99, .mask = htole64(0b1010) },
		.s = { .active = htole64(0b0110), .round = htole32(13), .state = SAINA_JOB_RUNNING, .text = "port p1 blocks" } };

	run();
	saina_session_input(&j, &m.h, now_ms * MSEC);
	assert_int_equal(j.missing, 0b0010);
	assert_int_equal(j.missing_round, 12);
	assert_string_equal(j.reason, "port p1 blocks");
	status(SAINA_JOB_RUNNING, SAINA_PATH_FAST);
	assert_int_equal(j.missing, 0);
	assert_string_equal(j.reason, "");
}

/* LEAVE until a STATUS no longer counts us among the live. */
static void test_leave(void **state)
{
	run();
	saina_session_leave(&j, now_ms * MSEC);
	pass(1000);
	assert_in_range(sent[SAINA_MSG_LEAVE], 2, 6);
	assert_false(j.gone);
	/* of before the LEAVE: the answer to a heartbeat, or unasked */
	status(SAINA_JOB_RUNNING, SAINA_PATH_FAST);
	assert_false(j.gone);
	status_of(0, SAINA_JOB_FORMING, SAINA_PATH_FAST);
	assert_true(j.gone);
}

/* @ms pass, in which the kernel refuses every batch and the agent answers heartbeats. */
static void pass_refused(int err, uint64_t ms)
{
	for (uint64_t end = now_ms + ms; now_ms < end && j.phase != PHASE_FAILED;) {
		saina_session_send_errors(&j, err, 0, now_ms * MSEC);
		pass(end - now_ms < 100 ? end - now_ms : 100);
		j.heard_ns = now_ms * MSEC;
	}
}

/* Errors of the kernel end a session, but not before it had nothing else for long. */
static void test_refused_sends(void **state)
{
	/* 2000 ms is when the agent declares a worker dead, 60 s the time-out of calls */
	run();
	j.mtu = 100;
	pass_refused(EMSGSIZE, 1900);
	assert_int_equal(j.phase, PHASE_RUNNING);
	pass_refused(EMSGSIZE, 200);
	failed(-EMSGSIZE, "interface eth0 has MTU 100, job 7 sends packets of 332 bytes: raise the MTU");
	assert_int_equal(sent[SAINA_MSG_LEAVE], 1);

	static const int errors[] = { EPERM, ENETUNREACH, ENETDOWN };

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		run();
		pass_refused(errors[i], 59 * SEC);
		assert_int_equal(j.phase, PHASE_RUNNING);
		/* something went: it begins anew */
		pass_refused(0, 100);
		pass_refused(errors[i], 59 * SEC);
		assert_int_equal(j.phase, PHASE_RUNNING);
		pass_refused(errors[i], 2 * SEC);
		failed(-errors[i], "nothing could be sent to 192.0.2.1 by eth0 for 60000 ms");
		assert_int_equal(sent[SAINA_MSG_LEAVE], 1);
	}

	run();
	j.silence_ms = -1;
	pass_refused(EPERM, 200 * SEC);
	assert_int_equal(j.phase, PHASE_RUNNING);
}

/* Multicast that this host itself keeps out is not blamed on the interface. */
static void test_multicast_dropped(void **state)
{
	admitted(1);
	j.loop = SAINA_LOOP_SENT;
	pass(4 * SEC);
	assert_int_equal(j.phase, PHASE_READYING);
	assert_non_null(strstr(j.notes.text, "a firewall here drops what comes to eth0 for UDP port 48866"));
	assert_null(strstr(j.notes.text, "gro on"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("session: a join without an answer times out with a sentence", test_no_answer),
		statement("session: a join without an answer says what the kernel or the other host has said", test_why_no_answer),
		statement("session: a worker whose kernel refuses to send fails with the reason", test_refused_sends),
		statement("session: a worker whose firewall drops multicast gets a warning", test_multicast_dropped),
		statement("session: a join that is refused as taken, or as seen at no port, is tried again", test_ask_again),
		statement("session: a join says TREE once the agent asks for it, and WELCOME has the tree", test_tree),
		statement("session: a worker whose tree has changed does not go on", test_tree_changed),
		statement("session: an old agent, int16 in a large tree, and a node that does not fit get a sentence",
			  test_tree_sentences),
		statement("session: a job whose parent is not there is waited for", test_no_root),
		statement("session: a node says what it is", test_node),
		statement("session: a wrong token ends the join at once", test_refused),
		statement("session: an agent of any other version ends the join with its sentence", test_other_version),
		statement("session: a worker waits 3 s for a probe reply, 1 s without GRO", test_probe_timeout),
		statement("session: probes are sent in pairs until pairs are known not to get through", test_batches),
		statement("session: the wait for other workers ends with the start time-out", test_start_timeout),
		statement("session: heartbeats are sent at their interval, and 60 s of silence end the session", test_heartbeats),
		statement("session: results are tested anew when STATUS asks for it", test_retest),
		statement("session: STATUS says which live workers an open round waits for", test_missing),
		statement("session: STATUS says which part of the data is computed, and an agent that does not say changes nothing", test_parts),
		statement("session: a worker that the agent has forgotten joins again with its round", test_again),
		statement("session: the first round is that of the WELCOME of the running job", test_old_welcome),
		statement("session: LEAVE is repeated until a STATUS no longer counts the worker as alive", test_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
