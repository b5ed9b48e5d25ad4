// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Hostile traffic in PS mode: messages in the name of other workers, and a worker's own messages
 * that make no sense.  Each must be counted for its reason, be answered as protocol.rst says or not
 * at all, and leave clock, sums and rounds as they were, to the last byte of the maps.
 *
 *	hostile_test [--tc]
 */
#include <bpf/bpf.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include "test_job.h"

#define WORKERS		4
#define SEGMENTS	2
#define EVERYTHING	(sizeof(struct saina_clock) + sizeof(struct saina_job_rt) + 65536)

struct harness harness;
bool agrees;
static const char *hook = "xdp";

/* The whole state of a job's steps in the data path. */
struct state {
	uint8_t byte[EVERYTHING];
	size_t n;
};

static void read_map(struct state *s, int fd, uint32_t key, size_t size)
{
	if (s->n + size > sizeof(s->byte) || bpf_map_lookup_elem(fd, &key, s->byte + s->n))
		agrees = false;
	s->n += size;
}

static void read_inner(struct state *s, const struct job *j, const char *map, uint32_t n, size_t size)
{
	int fd = harness_inner(&harness, map, j->conf.job);

	for (uint32_t i = 0; i < n; i++)
		read_map(s, fd, i, size);
	close(fd);
}

static void state(const struct job *j, struct state *s)
{
	static const struct { const char *map; size_t size; } one[] = {
		{ "saina_clock", sizeof(struct saina_clock) }, { "saina_rt", sizeof(struct saina_job_rt) },
	};
	size_t slot = sizeof(struct saina_slot_meta) + 4 * JOB_ELEMS;

	memset(s, 0, sizeof(*s));
	for (int i = 0; i < 2; i++) {
		int fd = harness_map(&harness, one[i].map);

		read_map(s, fd, j->conf.job, one[i].size);
		close(fd);
	}
	read_inner(s, j, "saina_ring_64", j->conf.segments * j->conf.ring, slot);
	read_inner(s, j, "saina_hot_64", j->conf.pool, slot);
	read_inner(s, j, "saina_counted", j->conf.segments, sizeof(struct saina_counted));
}

/* Workers behind different ports, each of which has finished a step and pushed in the next. */
static struct job job(struct saina_policy p)
{
	static uint32_t generations;
	struct job j = job_create(5, WORKERS, SEGMENTS, p);

	j.conf.generation += ++generations << 21;
	for (unsigned int w = 0; w < WORKERS; w++)
		harness_bind(&harness, &j.conf, w, w % HARNESS_PORTS, 1000 + w);
	job_publish(&j);
	for (uint32_t c = 0; (p.window || p.groups) && c < 2; c++) {
		for (unsigned int w = 0; w < WORKERS; w++) {
			for (uint32_t s = 0; s < SEGMENTS; s++)
				send_message(&j, SAINA_MSG_INC, w, c, s, 1 + w);
			if (!c)
				send_message(&j, SAINA_MSG_CLOCK, w, c, 0, 0);
		}
	}
	for (unsigned int w = 0; (p.window || p.groups) && w < WORKERS; w++)
		send_message(&j, SAINA_MSG_CLOCK, w, SAINA_ROUND_ASK, 0, 0);
	return j;
}

static const char *name_of(int type)
{
	return type == SAINA_MSG_INC ? "INC" : type == SAINA_MSG_READ ? "READ" : "CLOCK";
}

struct forgery {
	const struct job *j;
	uint8_t f[FRAME_MAX];
	struct saina_hdr h;
	unsigned int w, port;
	int32_t v[JOB_ELEMS];
};

static void from_port(struct forgery *b)
{
	b->port = harness.port[(b->w + 1) % HARNESS_PORTS];
}

static void from_mac(struct forgery *b)
{
	b->f[11] ^= 1;
}

static void from_ip(struct forgery *b)
{
	b->f[FRAME_IP + 15] ^= 1;
}

static void from_udp(struct forgery *b)
{
	b->f[FRAME_UDP + 1] ^= 1;
}

static void of_session(struct forgery *b)
{
	b->f[FRAME_HDR + offsetof(struct saina_hdr, session) + 7] ^= 0x80;
}

static void of_nobody(struct forgery *b)
{
	b->f[FRAME_HDR + offsetof(struct saina_hdr, worker)] = WORKERS + 1;
}

static void of_no_number(struct forgery *b)
{
	b->f[FRAME_HDR + offsetof(struct saina_hdr, worker)] = 0xff;
}

/* Sent from worker 2's address, in the name of worker 1. */
static void of_another(struct forgery *b)
{
	struct saina_hdr h = b->h;

	h.worker = 1;
	h.session = b->j->conf.worker[1].session;
	memcpy(b->f + FRAME_HDR, &h, sizeof(h));
}

static void of_no_job(struct forgery *b)
{
	b->f[FRAME_HDR + offsetof(struct saina_hdr, job)] = 77;
}

static void of_floats(struct forgery *b)
{
	b->f[FRAME_HDR + offsetof(struct saina_hdr, elem)] = SAINA_ELEM_FLOAT32;
}

static void of_no_segment(struct forgery *b)
{
	b->f[FRAME_HDR + offsetof(struct saina_hdr, segment)] = SEGMENTS;
}

static void with_flags(struct forgery *b)
{
	b->f[FRAME_HDR + offsetof(struct saina_hdr, k)] = 1;
}

static void with_count(struct forgery *b)
{
	b->f[FRAME_HDR + offsetof(struct saina_hdr, count)] ^= 1;
}

static const struct {
	const char *name;
	void (*spoil)(struct forgery *b);
	int counter, whose;	/* whose: 1 that of worker 1, 2 of worker 2, -1 of no worker */
} forgeries[] = {
	{ "another's port", from_port, SAINA_C_BAD_PORT, 2 },
	{ "another MAC address", from_mac, SAINA_C_BAD_MAC, 2 },
	{ "an address that is not bound", from_ip, SAINA_C_BAD_IP, 2 },
	{ "a UDP port that is not bound", from_udp, SAINA_C_BAD_UDP, 2 },
	{ "a session that no token has given", of_session, SAINA_C_SESSION, 2 },
	{ "a worker that the job does not have", of_nobody, SAINA_C_NO_WORKER, -1 },
	{ "a worker number beyond all", of_no_number, SAINA_C_NO_WORKER, -1 },
	{ "another worker's name and session", of_another, SAINA_C_BAD_PORT, 1 },
	{ "a job that there is not", of_no_job, SAINA_C_NO_JOB, -1 },
	{ "another element type", of_floats, SAINA_C_ELEM_TYPE, 2 },
	{ "a segment beyond the update", of_no_segment, SAINA_C_SEGMENT, 2 },
	{ "reserved fields set", with_flags, SAINA_C_FLAGS, -1 },
	{ "another count than its length", with_count, SAINA_C_LENGTH, 2 },
};

/* A valid message of worker 2, of its present step. */
static unsigned int good(struct forgery *b, int type)
{
	bool clock = type == SAINA_MSG_CLOCK;

	for (int i = 0; i < JOB_ELEMS; i++)
		b->v[i] = 1000000;
	b->w = 2;
	b->port = b->j->conf.worker[2].ifindex;
	b->h = (struct saina_hdr){
		.version = SAINA_PROTO_VERSION, .type = type, .elem = SAINA_ELEM_INT32,
		.job = b->j->conf.job, .session = b->j->conf.worker[2].session, .round = 1,
		.count = clock ? 0 : JOB_ELEMS, .worker = 2, .exponent = JOB_EXPONENT,
	};
	return frame_make(b->f, &harness.g, &b->j->conf.worker[2], &b->h, clock ? NULL : b->v,
			  clock ? 0 : 4 * JOB_ELEMS);
}

static void test_forgeries(struct job *j, const char *policy)
{
	static const int type[] = { SAINA_MSG_INC, SAINA_MSG_READ, SAINA_MSG_CLOCK };
	static struct state before, after;
	struct forgery b = { .j = j };

	for (unsigned int i = 0; i < sizeof(forgeries) / sizeof(forgeries[0]); i++) {
		bool ok = true;

		for (int t = 0; t < 3; t++) {
			unsigned int len = good(&b, type[t]);
			uint64_t count;

			forgeries[i].spoil(&b);
			frame_ip_checksum(b.f);
			count = job_counter(j, forgeries[i].whose, forgeries[i].counter);
			state(j, &before);
			send_frame(b.f, len, b.port);
			state(j, &after);
			if (was_dropped() && !memcmp(&before, &after, sizeof(before)) &&
			    job_counter(j, forgeries[i].whose, forgeries[i].counter) == count + 1)
				continue;
			ok = false;
			tap_note("%s: %s, %llu of %s were %llu", name_of(type[t]),
				 was_dropped() ? "dropped" : "not dropped",
				 (unsigned long long)job_counter(j, forgeries[i].whose, forgeries[i].counter),
				 saina_counter_info[forgeries[i].counter].name, (unsigned long long)count);
		}
		tap_ok(ok && agrees, "%s, %s: INC, READ and CLOCK with %s are dropped, counted and change no state",
		       hook, policy, forgeries[i].name);
	}
	/* the same message without the fault is accepted */
	send_frame(b.f, good(&b, SAINA_MSG_CLOCK), b.port);
	job_verdict(j, was_answered() && got_answer()->type == SAINA_MSG_GO && got_answer()->aux == 2,
		    "hostile: the message from which the forgeries were made is accepted");
}

/* Messages in a worker's own name that it must not send. */
static bool is_counted(struct job *j, int type, unsigned int w, uint32_t step, int counter)
{
	static struct state before, after;
	uint64_t count = job_counter(j, w, counter);

	state(j, &before);
	send_message(j, type, w, step, 0, 1000000);
	state(j, &after);
	if (!memcmp(&before, &after, sizeof(before)) && job_counter(j, w, counter) == count + 1)
		return true;
	tap_note("type %d step %u: %s, counted %llu times as %s", type, step,
		 memcmp(&before, &after, sizeof(before)) ? "something changed" : "nothing changed",
		 (unsigned long long)(job_counter(j, w, counter) - count), saina_counter_info[counter].name);
	return false;
}

static void test_clock(void)
{
	static const uint32_t wrong[] = { 2, 3, 1000, 0x10001, SAINA_ROUND_MAX };
	struct job j = job(policy_ssp(3));
	bool ok;

	for (uint32_t c = 1; c < 4; c++)
		send_message(&j, SAINA_MSG_CLOCK, 2, c, 0, 0);	/* in step 4, and going */
	ok = got_go(2, 15, 1) && got_answer()->aux == 4;
	for (uint32_t c = 0; c < 3; c++) {
		ok &= is_counted(&j, SAINA_MSG_CLOCK, 2, c, SAINA_C_CLOCK_ORDER);
		ok &= got_go(2, 15, 1) && got_answer()->aux == 4 && got_answer()->round == c;
	}
	tap_ok(ok && agrees, "%s: a CLOCK that goes backwards is counted, answered with the worker's step, and changes no state",
	       hook);
	ok = true;
	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ok &= is_counted(&j, SAINA_MSG_CLOCK, 0, wrong[i], SAINA_C_CLOCK_ORDER);
		ok &= got_go(0, 15, 1) && got_answer()->aux == 1 && got_answer()->round == wrong[i];
	}
	job_verdict(&j, ok, "hostile: a CLOCK far ahead is counted, answered with the worker's step, and changes no state");
}

static void test_inc(void)
{
	static const uint32_t ahead[] = { 2, 3, 1000, 0x10001, SAINA_ROUND_MAX, SAINA_ROUND_ASK };
	struct job j = job(policy_ssp(1));
	uint8_t f[FRAME_MAX];
	unsigned int len;
	bool ok = true;

	for (unsigned int i = 0; i < sizeof(ahead) / sizeof(ahead[0]); i++) {
		ok &= is_counted(&j, SAINA_MSG_INC, 1, ahead[i], SAINA_C_INC_ORDER) && got_nak(SAINA_NAK_ORDER);
		ok &= got_answer()->aux == 1 && got_answer()->worker == 1 &&
		      (harness.tc || harness.len == FRAME_PAYLOAD);	/* in a batch it is as long as the message was */
	}
	tap_ok(ok && agrees, "%s: an INC of a step that its worker is not in gets a NAK and changes no state",
	       hook);
	ok = is_counted(&j, SAINA_MSG_INC, 1, 1, SAINA_C_RESENT) && got_sum(SAINA_F_RESEND, 20);
	ok &= is_counted(&j, SAINA_MSG_INC, 1, 0, SAINA_C_RESENT) && got_sum(SAINA_F_RESEND, 20);
	tap_ok(ok && agrees, "%s: a repeated INC with other elements is answered and changes no state", hook);
	/* worker 3 finishes step 1 and has not pushed segment 1 of step 2 */
	send_message(&j, SAINA_MSG_CLOCK, 3, 1, 0, 0);
	send_message(&j, SAINA_MSG_CLOCK, 3, 2, 0, 0);
	ok = got_go(3, 7, 1) && got_answer()->aux == 3;
	ok &= is_counted(&j, SAINA_MSG_INC, 3, 2, SAINA_C_INC_ORDER) && got_nak(SAINA_NAK_ORDER);
	ok &= is_counted(&j, SAINA_MSG_INC, 3, 3, SAINA_C_INC_WAIT) && got_nak(SAINA_NAK_WAIT);
	tap_ok(ok && agrees, "%s: an INC of a step that is over, or may not begin yet, gets a NAK and changes no state",
	       hook);
	len = job_frame(&j, f, SAINA_MSG_INC, 3, 3, 0, NULL);
	send_message(&j, SAINA_MSG_CLOCK, 0, 1, 0, 0);
	send_message(&j, SAINA_MSG_CLOCK, 1, 1, 0, 0);
	send_message(&j, SAINA_MSG_CLOCK, 2, 1, 0, 0);
	f[FRAME_HDR + offsetof(struct saina_hdr, exponent)]++;
	send_frame(f, len, j.conf.worker[3].ifindex);
	ok = got_nak(SAINA_NAK_EXPONENT) && got_answer()->exponent == JOB_EXPONENT &&
	     job_counter(&j, 3, SAINA_C_EXPONENT) == 1;
	send_message(&j, SAINA_MSG_READ, 0, 2, 0, 0);
	ok &= got_sum(SAINA_F_PULLED, 20) && got_answer()->mask == 2 * WORKERS;
	job_verdict(&j, ok, "hostile: an INC with another exponent gets a NAK and changes no state");
}

static void test_read(void)
{
	static const uint32_t any[] = { 0, 1, 2, 1000, SAINA_ROUND_MAX, 0xffffffff };
	struct job j = job(policy_ssp(1));
	bool ok = true;

	for (unsigned int i = 0; i < sizeof(any) / sizeof(any[0]); i++) {
		ok &= is_counted(&j, SAINA_MSG_READ, 0, any[i], SAINA_C_READ) && got_sum(SAINA_F_PULLED, 20);
		ok &= !(got_answer()->flags & SAINA_F_FRESH) == (any[i] > 2);
	}
	job_verdict(&j, ok, "hostile: a READ of any step is answered with the sums, FRESH only if they are, and changes no state");
}

static void test_modes(void)
{
	struct job j = job(policy_ssp(1));
	static const int step[] = { SAINA_MSG_INC, SAINA_MSG_READ, SAINA_MSG_CLOCK };
	bool ok = true;

	for (uint32_t r = 0; r < 5; r++) {
		ok &= is_counted(&j, SAINA_MSG_GRAD, 0, r, SAINA_C_MODE) && got_nak(SAINA_NAK_MODE);
		ok &= is_counted(&j, SAINA_MSG_PULL, 0, r, SAINA_C_MODE) && got_nak(SAINA_NAK_MODE);
	}
	tap_ok(ok && agrees, "%s: messages of rounds are answered with the mode in PS mode, and change no state",
	       hook);
	j = job(policy_bsp());
	send_grad(&j, 0, 0, 0, 1);
	ok = true;
	for (int i = 0; i < 3; i++)
		ok &= is_counted(&j, step[i], 1, 0, SAINA_C_MODE) && got_nak(SAINA_NAK_MODE);
	job_verdict(&j, ok, "hostile: messages of steps are answered with the mode where there are rounds, and change no state");
}

static void test_groups(void)
{
	struct job j = job(policy_grouped(2));	/* 0 and 2, 1 and 3 */
	static struct state before, after;
	struct forgery b = { .j = &j };
	unsigned int len;
	bool ok = true;

	test_forgeries(&j, "grouped:g=2");
	/* worker 2 has finished step 1 now: nobody of the other group has */
	state(&j, &before);
	for (int type = SAINA_MSG_INC; type <= SAINA_MSG_CLOCK; type++) {
		len = good(&b, type);
		of_another(&b);
		send_frame(b.f, len, j.conf.worker[2].ifindex);
		ok &= was_dropped();
	}
	state(&j, &after);
	ok &= !memcmp(&before, &after, sizeof(before)) && job_counter(&j, 1, SAINA_C_BAD_PORT) == 6;
	tap_ok(ok && agrees, "%s: a worker pushes nothing for the other group, nor moves its clock", hook);
	send_message(&j, SAINA_MSG_CLOCK, 0, 1, 0, 0);
	ok = got_go(0xff, 5, 2);
	ok &= is_counted(&j, SAINA_MSG_INC, 1, 2, SAINA_C_INC_ORDER) && got_nak(SAINA_NAK_ORDER);
	ok &= got_answer()->aux == 1 && got_answer()->slot_round == 1;
	job_verdict(&j, ok, "hostile: a worker does not push in the step that the other group is in");
}

/* A forgery between two good messages of a frame. */
static void test_batch(void)
{
	struct job j = job(policy_ssp(3));
	struct forgery b = { .j = &j };
	unsigned int len = good(&b, SAINA_MSG_INC), size = len - FRAME_HDR;
	uint8_t f[FRAME_MAX];
	bool ok;

	send_message(&j, SAINA_MSG_CLOCK, 2, 1, 0, 0);
	memcpy(f, b.f, len);
	for (int i = 0; i < 3; i++) {
		struct saina_hdr h = b.h;

		h.round = 2;
		h.segment = i / 2;
		h.worker = i == 1 ? 1 : 2;
		h.session = j.conf.worker[h.worker].session;
		memcpy(f + FRAME_HDR + i * size, &h, sizeof(h));
		memcpy(f + FRAME_HDR + i * size + sizeof(h), b.v, sizeof(b.v));
	}
	len = FRAME_HDR + 3 * size;
	frame_resize(f, len);
	ok = harness_batch(&harness, f, len, size, j.conf.worker[2].ifindex);
	if (!ok)
		tap_note("%s", harness.diff);
	ok &= was_answered() && harness.answers == 2;
	ok &= job_counter(&j, 2, SAINA_C_INCED) == 6 && job_counter(&j, 1, SAINA_C_INCED) == 4 &&
	      job_counter(&j, 1, SAINA_C_BAD_PORT) == 1;
	job_verdict(&j, ok, "hostile: a forgery between good messages of a frame is dropped alone");
}

static void test_dead(void)
{
	struct job j = job(policy_ssp(1));
	bool ok = true;

	job_set_active(&j, 13);
	for (int type = SAINA_MSG_INC; type <= SAINA_MSG_CLOCK; type++) {
		ok &= is_counted(&j, type, 1, 1, SAINA_C_INACTIVE) && was_dropped();
	}
	job_verdict(&j, ok, "hostile: messages of a worker that was declared dead are dropped");
}

int main(int argc, char **argv)
{
	struct job j;

	harness_open(&harness);
	if (argc > 1 && !strcmp(argv[1], "--tc")) {
		harness_use_tc(&harness);
		hook = "tc";
	}
	j = job(policy_ssp(3));
	test_forgeries(&j, "ssp:3");
	j = job(policy_ssp(SAINA_WINDOW_NONE));
	test_forgeries(&j, "asp");
	test_groups();
	test_clock();
	test_inc();
	test_read();
	test_modes();
	test_dead();
	if (harness.tc)
		test_batch();
	harness_close(&harness);
	return tap_done();
}
