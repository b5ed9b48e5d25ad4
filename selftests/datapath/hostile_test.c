// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Table mode and who means no good: messages in the name of others, and a worker's own that
 * make no sense.  Each has to be counted for its reason, be answered as protocol.rst says or
 * not at all, and leave clock, table and rounds as they were, to the last byte of the maps.
 *
 *	hostile_test [--tc]
 */
#include <bpf/bpf.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include "lab.h"

#define WORKERS		4
#define SEGMENTS	2
#define EVERYTHING	(sizeof(struct saina_clock) + sizeof(struct saina_job_rt) + 65536)

struct rig rig;
bool lab_same;
static const char *hook = "xdp";

/* All that the data path knows of a job's steps. */
struct state {
	uint8_t byte[EVERYTHING];
	size_t n;
};

static void take(struct state *s, int fd, uint32_t key, size_t size)
{
	if (s->n + size > sizeof(s->byte) || bpf_map_lookup_elem(fd, &key, s->byte + s->n))
		lab_same = false;
	s->n += size;
}

static void take_inner(struct state *s, const struct lab *l, const char *map, uint32_t n, size_t size)
{
	int fd = rig_inner(&rig, map, l->conf.job);

	for (uint32_t i = 0; i < n; i++)
		take(s, fd, i, size);
	close(fd);
}

static void state(const struct lab *l, struct state *s)
{
	static const struct { const char *map; size_t size; } one[] = {
		{ "saina_clock", sizeof(struct saina_clock) }, { "saina_rt", sizeof(struct saina_job_rt) },
	};
	size_t slot = sizeof(struct saina_slot_meta) + 4 * LAB_ELEMS;

	memset(s, 0, sizeof(*s));
	for (int i = 0; i < 2; i++) {
		int fd = rig_map(&rig, one[i].map);

		take(s, fd, l->conf.job, one[i].size);
		close(fd);
	}
	take_inner(s, l, "saina_ring_64", l->conf.segments * l->conf.ring, slot);
	take_inner(s, l, "saina_hot_64", l->conf.pool, slot);
	take_inner(s, l, "saina_counted", l->conf.segments, sizeof(struct saina_counted));
}

/* Workers behind different ports, each of which has finished a step and pushed in the next. */
static struct lab job(struct saina_policy p)
{
	static uint32_t generations;
	struct lab l = lab_job(5, WORKERS, SEGMENTS, p);

	l.conf.generation += ++generations << 21;
	for (unsigned int w = 0; w < WORKERS; w++)
		rig_bind(&rig, &l.conf, w, w % RIG_PORTS, 1000 + w);
	lab_publish(&l);
	for (uint32_t c = 0; (p.window || p.groups) && c < 2; c++) {
		for (unsigned int w = 0; w < WORKERS; w++) {
			for (uint32_t s = 0; s < SEGMENTS; s++)
				lab_say(&l, SAINA_MSG_INC, w, c, s, 1 + w);
			if (!c)
				lab_say(&l, SAINA_MSG_CLOCK, w, c, 0, 0);
		}
	}
	for (unsigned int w = 0; (p.window || p.groups) && w < WORKERS; w++)
		lab_say(&l, SAINA_MSG_CLOCK, w, SAINA_ROUND_ASK, 0, 0);
	return l;
}

static const char *name_of(int type)
{
	return type == SAINA_MSG_INC ? "INC" : type == SAINA_MSG_READ ? "READ" : "CLOCK";
}

struct forgery {
	const struct lab *l;
	uint8_t f[FRAME_MAX];
	struct saina_hdr h;
	unsigned int w, port;
	int32_t v[LAB_ELEMS];
};

static void from_port(struct forgery *b)
{
	b->port = rig.port[(b->w + 1) % RIG_PORTS];
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

/* Worker 2's own place, and worker 1's name. */
static void of_another(struct forgery *b)
{
	struct saina_hdr h = b->h;

	h.worker = 1;
	h.session = b->l->conf.worker[1].session;
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

/* A good message of worker 2's, of the step it is in. */
static unsigned int good(struct forgery *b, int type)
{
	bool clock = type == SAINA_MSG_CLOCK;

	for (int i = 0; i < LAB_ELEMS; i++)
		b->v[i] = 1000000;
	b->w = 2;
	b->port = b->l->conf.worker[2].ifindex;
	b->h = (struct saina_hdr){
		.version = SAINA_PROTO_VERSION, .type = type, .elem = SAINA_ELEM_INT32,
		.job = b->l->conf.job, .session = b->l->conf.worker[2].session, .round = 1,
		.count = clock ? 0 : LAB_ELEMS, .worker = 2, .exponent = LAB_EXPONENT,
	};
	return frame_make(b->f, &rig.g, &b->l->conf.worker[2], &b->h, clock ? NULL : b->v,
			  clock ? 0 : 4 * LAB_ELEMS);
}

static void test_forgeries(struct lab *l, const char *policy)
{
	static const int type[] = { SAINA_MSG_INC, SAINA_MSG_READ, SAINA_MSG_CLOCK };
	static struct state before, after;
	struct forgery b = { .l = l };

	for (unsigned int i = 0; i < sizeof(forgeries) / sizeof(forgeries[0]); i++) {
		bool ok = true;

		for (int t = 0; t < 3; t++) {
			unsigned int len = good(&b, type[t]);
			uint64_t count;

			forgeries[i].spoil(&b);
			frame_ip_checksum(b.f);
			count = lab_counter(l, forgeries[i].whose, forgeries[i].counter);
			state(l, &before);
			lab_send(b.f, len, b.port);
			state(l, &after);
			if (lab_consumed() && !memcmp(&before, &after, sizeof(before)) &&
			    lab_counter(l, forgeries[i].whose, forgeries[i].counter) == count + 1)
				continue;
			ok = false;
			tap_note("%s: %s, %llu of %s were %llu", name_of(type[t]),
				 lab_consumed() ? "dropped" : "not dropped",
				 (unsigned long long)lab_counter(l, forgeries[i].whose, forgeries[i].counter),
				 saina_counter_info[forgeries[i].counter].name, (unsigned long long)count);
		}
		tap_ok(ok && lab_same, "%s, %s: INC, READ and CLOCK with %s are dropped, counted and harmless",
		       hook, policy, forgeries[i].name);
	}
	/* and all that was right about them was right */
	lab_send(b.f, good(&b, SAINA_MSG_CLOCK), b.port);
	lab_verdict(l, lab_answered() && lab_answer()->type == SAINA_MSG_GO && lab_answer()->aux == 2,
		    "hostile: the message that the forgeries were made of is taken");
}

/* What a worker may say of itself, and must not. */
static bool says(struct lab *l, int type, unsigned int w, uint32_t step, int counter)
{
	static struct state before, after;
	uint64_t count = lab_counter(l, w, counter);

	state(l, &before);
	lab_say(l, type, w, step, 0, 1000000);
	state(l, &after);
	if (!memcmp(&before, &after, sizeof(before)) && lab_counter(l, w, counter) == count + 1)
		return true;
	tap_note("type %d step %u: %s, counted %llu times as %s", type, step,
		 memcmp(&before, &after, sizeof(before)) ? "something changed" : "nothing changed",
		 (unsigned long long)(lab_counter(l, w, counter) - count), saina_counter_info[counter].name);
	return false;
}

static void test_clock(void)
{
	static const uint32_t wrong[] = { 2, 3, 1000, 0x10001, SAINA_ROUND_MAX };
	struct lab l = job(lab_ssp(3));
	bool ok;

	for (uint32_t c = 1; c < 4; c++)
		lab_say(&l, SAINA_MSG_CLOCK, 2, c, 0, 0);	/* in step 4, and going */
	ok = lab_go(2, 15, 1) && lab_answer()->aux == 4;
	for (uint32_t c = 0; c < 3; c++) {
		ok &= says(&l, SAINA_MSG_CLOCK, 2, c, SAINA_C_CLOCK_ORDER);
		ok &= lab_go(2, 15, 1) && lab_answer()->aux == 4 && lab_answer()->round == c;
	}
	tap_ok(ok && lab_same, "%s: a CLOCK that goes backwards is counted, answered with where its worker is, and harmless",
	       hook);
	ok = true;
	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ok &= says(&l, SAINA_MSG_CLOCK, 0, wrong[i], SAINA_C_CLOCK_ORDER);
		ok &= lab_go(0, 15, 1) && lab_answer()->aux == 1 && lab_answer()->round == wrong[i];
	}
	lab_verdict(&l, ok, "hostile: a CLOCK far ahead is counted, answered with where its worker is, and harmless");
}

static void test_inc(void)
{
	static const uint32_t ahead[] = { 2, 3, 1000, 0x10001, SAINA_ROUND_MAX, SAINA_ROUND_ASK };
	struct lab l = job(lab_ssp(1));
	uint8_t f[FRAME_MAX];
	unsigned int len;
	bool ok = true;

	for (unsigned int i = 0; i < sizeof(ahead) / sizeof(ahead[0]); i++) {
		ok &= says(&l, SAINA_MSG_INC, 1, ahead[i], SAINA_C_INC_ORDER) && lab_nak(SAINA_NAK_ORDER);
		ok &= lab_answer()->aux == 1 && lab_answer()->worker == 1 &&
		      (rig.tc || rig.len == FRAME_PAYLOAD);	/* in a train it is as long as the message was */
	}
	tap_ok(ok && lab_same, "%s: an INC of a step that its worker is not in is refused with an answer, and harmless",
	       hook);
	ok = says(&l, SAINA_MSG_INC, 1, 1, SAINA_C_RESENT) && lab_sum(SAINA_F_RESEND, 20);
	ok &= says(&l, SAINA_MSG_INC, 1, 0, SAINA_C_RESENT) && lab_sum(SAINA_F_RESEND, 20);
	tap_ok(ok && lab_same, "%s: an INC said again with other numbers is answered, and harmless", hook);
	/* worker 3 finishes step 1 and has not pushed segment 1 of step 2 */
	lab_say(&l, SAINA_MSG_CLOCK, 3, 1, 0, 0);
	lab_say(&l, SAINA_MSG_CLOCK, 3, 2, 0, 0);
	ok = lab_go(3, 7, 1) && lab_answer()->aux == 3;
	ok &= says(&l, SAINA_MSG_INC, 3, 2, SAINA_C_INC_ORDER) && lab_nak(SAINA_NAK_ORDER);
	ok &= says(&l, SAINA_MSG_INC, 3, 3, SAINA_C_INC_WAIT) && lab_nak(SAINA_NAK_WAIT);
	tap_ok(ok && lab_same, "%s: an INC of a step that is over, or may not begin yet, is refused with an answer, and harmless",
	       hook);
	len = lab_frame(&l, f, SAINA_MSG_INC, 3, 3, 0, NULL);
	lab_say(&l, SAINA_MSG_CLOCK, 0, 1, 0, 0);
	lab_say(&l, SAINA_MSG_CLOCK, 1, 1, 0, 0);
	lab_say(&l, SAINA_MSG_CLOCK, 2, 1, 0, 0);
	f[FRAME_HDR + offsetof(struct saina_hdr, exponent)]++;
	lab_send(f, len, l.conf.worker[3].ifindex);
	ok = lab_nak(SAINA_NAK_EXPONENT) && lab_answer()->exponent == LAB_EXPONENT &&
	     lab_counter(&l, 3, SAINA_C_EXPONENT) == 1;
	lab_say(&l, SAINA_MSG_READ, 0, 2, 0, 0);
	ok &= lab_sum(SAINA_F_PULLED, 20) && lab_answer()->mask == 2 * WORKERS;
	lab_verdict(&l, ok, "hostile: an INC of another scale is refused with an answer, and harmless");
}

static void test_read(void)
{
	static const uint32_t any[] = { 0, 1, 2, 1000, SAINA_ROUND_MAX, 0xffffffff };
	struct lab l = job(lab_ssp(1));
	bool ok = true;

	for (unsigned int i = 0; i < sizeof(any) / sizeof(any[0]); i++) {
		ok &= says(&l, SAINA_MSG_READ, 0, any[i], SAINA_C_READ) && lab_sum(SAINA_F_PULLED, 20);
		ok &= !(lab_answer()->flags & SAINA_F_FRESH) == (any[i] > 2);
	}
	lab_verdict(&l, ok, "hostile: a READ of any step is answered with the table, FRESH only if it is, and harmless");
}

static void test_modes(void)
{
	struct lab l = job(lab_ssp(1));
	static const int step[] = { SAINA_MSG_INC, SAINA_MSG_READ, SAINA_MSG_CLOCK };
	bool ok = true;

	for (uint32_t r = 0; r < 5; r++) {
		ok &= says(&l, SAINA_MSG_GRAD, 0, r, SAINA_C_MODE) && lab_nak(SAINA_NAK_MODE);
		ok &= says(&l, SAINA_MSG_PULL, 0, r, SAINA_C_MODE) && lab_nak(SAINA_NAK_MODE);
	}
	tap_ok(ok && lab_same, "%s: messages of rounds are answered with the mode where there are steps, and harmless",
	       hook);
	l = job(lab_bsp());
	lab_grad(&l, 0, 0, 0, 1);
	ok = true;
	for (int i = 0; i < 3; i++)
		ok &= says(&l, step[i], 1, 0, SAINA_C_MODE) && lab_nak(SAINA_NAK_MODE);
	lab_verdict(&l, ok, "hostile: messages of steps are answered with the mode where there are rounds, and harmless");
}

static void test_groups(void)
{
	struct lab l = job(lab_grouped(2));	/* 0 and 2, 1 and 3 */
	static struct state before, after;
	struct forgery b = { .l = &l };
	unsigned int len;
	bool ok = true;

	test_forgeries(&l, "grouped:g=2");
	/* worker 2 has finished step 1 now: nobody of the other group has */
	state(&l, &before);
	for (int type = SAINA_MSG_INC; type <= SAINA_MSG_CLOCK; type++) {
		len = good(&b, type);
		of_another(&b);
		lab_send(b.f, len, l.conf.worker[2].ifindex);
		ok &= lab_consumed();
	}
	state(&l, &after);
	ok &= !memcmp(&before, &after, sizeof(before)) && lab_counter(&l, 1, SAINA_C_BAD_PORT) == 6;
	tap_ok(ok && lab_same, "%s: a worker pushes nothing for the other group, nor moves its clock", hook);
	lab_say(&l, SAINA_MSG_CLOCK, 0, 1, 0, 0);
	ok = lab_go(0xff, 5, 2);
	ok &= says(&l, SAINA_MSG_INC, 1, 2, SAINA_C_INC_ORDER) && lab_nak(SAINA_NAK_ORDER);
	ok &= lab_answer()->aux == 1 && lab_answer()->slot_round == 1;
	lab_verdict(&l, ok, "hostile: a worker does not push in the step that the other group is in");
}

/* A forgery between two good messages of a frame. */
static void test_train(void)
{
	struct lab l = job(lab_ssp(3));
	struct forgery b = { .l = &l };
	unsigned int len = good(&b, SAINA_MSG_INC), size = len - FRAME_HDR;
	uint8_t f[FRAME_MAX];
	bool ok;

	lab_say(&l, SAINA_MSG_CLOCK, 2, 1, 0, 0);
	memcpy(f, b.f, len);
	for (int i = 0; i < 3; i++) {
		struct saina_hdr h = b.h;

		h.round = 2;
		h.segment = i / 2;
		h.worker = i == 1 ? 1 : 2;
		h.session = l.conf.worker[h.worker].session;
		memcpy(f + FRAME_HDR + i * size, &h, sizeof(h));
		memcpy(f + FRAME_HDR + i * size + sizeof(h), b.v, sizeof(b.v));
	}
	len = FRAME_HDR + 3 * size;
	frame_resize(f, len);
	ok = rig_train(&rig, f, len, size, l.conf.worker[2].ifindex);
	if (!ok)
		tap_note("%s", rig.diff);
	ok &= lab_answered() && rig.answers == 2;
	ok &= lab_counter(&l, 2, SAINA_C_INCED) == 6 && lab_counter(&l, 1, SAINA_C_INCED) == 4 &&
	      lab_counter(&l, 1, SAINA_C_BAD_PORT) == 1;
	lab_verdict(&l, ok, "hostile: a forgery between good messages of a frame is dropped alone");
}

static void test_dead(void)
{
	struct lab l = job(lab_ssp(1));
	bool ok = true;

	lab_active(&l, 13);
	for (int type = SAINA_MSG_INC; type <= SAINA_MSG_CLOCK; type++) {
		ok &= says(&l, type, 1, 1, SAINA_C_INACTIVE) && lab_consumed();
	}
	lab_verdict(&l, ok, "hostile: a worker that was declared dead says nothing any more");
}

int main(int argc, char **argv)
{
	struct lab l;

	rig_open(&rig);
	if (argc > 1 && !strcmp(argv[1], "--tc")) {
		rig_use_tc(&rig);
		hook = "tc";
	}
	l = job(lab_ssp(3));
	test_forgeries(&l, "ssp:3");
	l = job(lab_ssp(SAINA_WINDOW_NONE));
	test_forgeries(&l, "asp");
	test_groups();
	test_clock();
	test_inc();
	test_read();
	test_modes();
	test_dead();
	if (rig.tc)
		test_train();
	rig_close(&rig);
	return tap_done();
}
