// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A job with an uplink, rule by rule: Documentation/datapath.rst section 12.  The programs alone;
 * the traces compare them with the oracle.
 *
 *	away_test [--tc]
 *
 * Workers 0 to 2, and U, the uplink worker, which is number 3.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include "harness_shm.h"
#include "test_job.h"

#define U		3
#define RING		4
#define SEGMENTS	6
#define U_WEIGHT	100	/* its slot_round is below this */

struct harness harness;
bool agrees;

struct slot {
	struct saina_slot_meta meta;
	int32_t sum[JOB_ELEMS];
};

/* Without harness_job(), which compares events with the oracle: that sees no message here. */
static void publish(struct job *j)
{
	if (saina_dp_job_publish(harness.dp, &j->conf, 0))
		tap_bail("%s", saina_dp_error(harness.dp));
	oracle_job_publish(&harness.o, &j->conf, 0);
}

static void set_active(struct job *j, uint64_t active)
{
	j->conf.active = active;
	publish(j);
}

static struct job new_job(unsigned int workers, struct saina_policy p)
{
	static uint32_t generations;
	struct job j = { .conf = {
		.generation = ++generations, .job = 5, .state = SAINA_JOB_RUNNING, .elem = SAINA_ELEM_INT32,
		.payload = JOB_ELEMS, .segments = SEGMENTS, .pool = 4, .ring = RING,
		.sign_words = SAINA_SIGN_WORDS(JOB_ELEMS, 1), .group = harness_group(5), .policy = p,
	} };

	harness_shm_unmap(&harness, 5);
	saina_dp_job_remove(harness.dp, 5);
	j.conf.policy.seq = 1;
	harness_bind_all(&harness, &j.conf, workers, 1000);
	agrees = true;
	return j;
}

static struct job uplink_job(struct saina_policy p)
{
	struct job j = new_job(3, p);

	harness_bind(&harness, &j.conf, U, 1, 2000);
	j.conf.worker[U].max_weight = U_WEIGHT;
	j.conf.uplink = 1ull << U;
	publish(&j);
	return j;
}

static void send_alone(const struct job *j, const struct saina_hdr *h, const void *body, unsigned int len)
{
	const struct saina_binding *b = &j->conf.worker[h->worker];
	uint8_t f[FRAME_MAX];

	len = frame_make(f, &harness.g, b, h, body, len);
	agrees &= harness.tc ? harness_batch_alone(&harness, f, len, 0, b->ifindex) :
			       harness_packet_alone(&harness, f, len, b->ifindex);
}

static struct saina_hdr header(const struct job *j, int type, unsigned int w, uint32_t round, uint32_t segment)
{
	return (struct saina_hdr){
		.version = SAINA_PROTO_VERSION, .type = type, .elem = SAINA_ELEM_INT32,
		.job = j->conf.job, .session = j->conf.worker[w].session, .round = round,
		.segment = segment, .count = JOB_ELEMS, .worker = w, .exponent = JOB_EXPONENT,
	};
}

/* The elements are @value, @value + 1, .. */
static void send_header(const struct job *j, const struct saina_hdr *h, int32_t value)
{
	int32_t v[JOB_ELEMS];

	for (int i = 0; i < JOB_ELEMS; i++)
		v[i] = value + i;
	send_alone(j, h, v, sizeof(v));
}

static void grad(const struct job *j, unsigned int w, uint32_t round, uint32_t segment, int32_t value)
{
	struct saina_hdr h = header(j, SAINA_MSG_GRAD, w, round, segment);

	send_header(j, &h, value);
}

static void pull(const struct job *j, unsigned int w, uint32_t round, uint32_t segment)
{
	struct saina_hdr h = header(j, SAINA_MSG_PULL, w, round, segment);

	send_header(j, &h, 0);
}

/* GRAD of U. */
static void result(const struct job *j, uint32_t round, uint32_t segment, unsigned int flags,
		   uint32_t weight, int32_t value)
{
	struct saina_hdr h = header(j, SAINA_MSG_GRAD, U, round, segment);

	h.flags = flags;
	h.slot_round = weight;
	h.exponent = JOB_EXPONENT - 3;
	send_header(j, &h, value);
}

static const struct saina_ask *ask(const struct job *j, unsigned int w, uint32_t round, uint32_t segment)
{
	struct saina_hdr h = header(j, SAINA_MSG_ASK, w, round, segment);
	static const struct saina_ask none;

	h.count = 0;
	h.exponent = 0;
	send_alone(j, &h, &none, sizeof(none));
	return was_answered() && got_answer()->type == SAINA_MSG_ASK_REPLY ?
		       (const void *)(harness.got + FRAME_PAYLOAD) : &none;
}

/* Segment 0 to 2 of all workers: 10, 20 and 30 + i. */
static void contribute(const struct job *j, uint32_t round, uint32_t segment)
{
	for (unsigned int w = 0; w < 3; w++)
		grad(j, w, round, segment, 10 * (w + 1));
}

static struct slot hot(const struct job *j, uint32_t segment)
{
	int fd = harness_inner(&harness, "saina_hot_64", j->conf.job);
	uint32_t i = segment & (j->conf.pool - 1);
	struct slot s = {};

	agrees &= fd >= 0 && !bpf_map_lookup_elem(fd, &i, &s);
	close(fd);
	return s;
}

static bool is_away(const struct job *j, uint32_t round, uint32_t segment, uint64_t seen)
{
	struct slot s = hot(j, segment);

	return s.meta.state == SAINA_SLOT_AWAY && s.meta.round == round &&
	       s.meta.segment == segment && s.meta.seen == seen &&
	       s.meta.count == __builtin_popcountll(seen);
}

/* Neither answered nor counted as dropped: of all counters of @w only @counter (-1: none) went up. */
static bool is_counted_alone(const struct job *j, unsigned int w, int counter,
			     const struct saina_counters *before)
{
	struct saina_counters now;

	agrees &= !harness_counters(&harness, j->conf.job, w, &now);
	for (int i = 0; i < SAINA_C_N; i++)
		if (now.c[i] - before->c[i] != (i == counter))
			return false;
	return true;
}

#define COUNTS(J, W, COUNTER, SEND) ({						\
	struct saina_counters before_;						\
	agrees &= !harness_counters(&harness, (J)->conf.job, (W), &before_);	\
	SEND;									\
	is_counted_alone((J), (W), (COUNTER), &before_);			\
})

static uint32_t last(const struct job *j, uint32_t segment, unsigned int w)
{
	int fd = harness_inner(&harness, "saina_counted", j->conf.job);
	struct saina_counted c = {};

	agrees &= fd >= 0 && !bpf_map_lookup_elem(fd, &segment, &c);
	close(fd);
	return c.last[w];
}

static struct saina_away record[16];
static unsigned int records;

static int take_record(void *, void *data, size_t size)
{
	if (size == sizeof(*record) && records < 16)
		record[records++] = *(const struct saina_away *)data;
	return 0;
}

static bool read_records(const struct job *j)
{
	struct ring_buffer *ring;
	int fd[2];

	records = 0;
	if (saina_dp_uplink_grant(harness.dp, j->conf.job, fd))
		return false;
	ring = ring_buffer__new(fd[1], take_record, NULL, NULL);
	close(fd[0]);
	close(fd[1]);
	if (!ring)
		return false;
	ring_buffer__consume(ring);
	ring_buffer__free(ring);
	return true;
}

/* A result of @weight more workers than @mask's, @value + i; sent to all, or with @flags. */
static bool got_sums(uint64_t mask, uint32_t weight, int32_t value)
{
	const struct saina_hdr *h = got_answer();

	if (!was_answered() || h->type != SAINA_MSG_RESULT || h->mask != mask ||
	    h->contributors != __builtin_popcountll(mask) || h->slot_round != weight)
		return false;
	for (int i = 0; i < JOB_ELEMS; i++)
		if (got_elem(i) != value + i)
			return false;
	return true;
}

static void point(bool ok, const char *name)
{
	tap_ok(ok && agrees, "%s: %s", harness.tc ? "tc" : "xdp", name);
	agrees = true;
}

static void test_complete(void)
{
	struct job j = uplink_job(policy_bsp());
	struct saina_hdr h = header(&j, SAINA_MSG_GRAD, 2, 0, 2);
	struct slot *map, after;
	bool ok, summed = true;
	int fd[2];

	grad(&j, 0, 0, 1, 10);
	grad(&j, 1, 0, 1, 20);
	ok = hot(&j, 1).meta.state == SAINA_SLOT_OPEN;
	ok &= COUNTS(&j, 2, SAINA_C_ADDED, grad(&j, 2, 0, 1, 30)) && was_dropped();
	point(ok && is_away(&j, 0, 1, 7), "a slot that is complete becomes AWAY, without an answer");
	point(read_records(&j) && records == 1 && !record[0].round && record[0].segment == 1,
	      "a slot that becomes AWAY is in the ring of the relay, once");
	ok = !saina_dp_uplink_grant(harness.dp, j.conf.job, fd);
	map = ok ? mmap(NULL, j.conf.pool * sizeof(*map), PROT_READ, MAP_SHARED, fd[0], 0) : MAP_FAILED;
	ok = map != MAP_FAILED && map[1].meta.state == SAINA_SLOT_AWAY;
	for (int i = 0; ok && i < JOB_ELEMS; i++)
		summed &= map[1].sum[i] == 60 + 3 * i;
	point(ok && summed && map[1].meta.exponent == JOB_EXPONENT && !map[1].meta.weight,
	      "the relay has the sums, the exponent and the weight of an AWAY slot in its memory");
	grad(&j, 0, 0, 2, 8);
	grad(&j, 1, 0, 2, 8);
	h.exponent -= 2;
	send_header(&j, &h, 5);
	after = hot(&j, 2);
	point(is_away(&j, 0, 2, 7) && after.meta.exponent == JOB_EXPONENT - 2 && after.sum[0] == 9 && read_records(&j) &&
		      records == 1,
	      "likewise by a gradient of another exponent, which its sums and exponent have");
	ok = COUNTS(&j, 0, SAINA_C_STORED, grad(&j, 0, 0, 0, 1)) && job_rt(&j).open_slots == 3;
	point(ok && COUNTS(&j, 0, SAINA_C_ROUND_BUSY, grad(&j, 0, 1, 0, 1)),
	      "an AWAY slot counts as open: no round opens");
	point(COUNTS(&j, 0, SAINA_C_SLOT_BUSY, grad(&j, 0, 0, 5, 1)),
	      "an AWAY slot is not given to another segment");
}

static void test_others(void)
{
	struct job j = uplink_job(policy_fastest(2));
	struct slot before, after;
	const struct saina_ask *a;
	bool ok;

	grad(&j, 0, 0, 1, 10);
	grad(&j, 1, 0, 1, 20);
	grad(&j, 2, 0, 2, 20);
	before = hot(&j, 1);
	point(COUNTS(&j, 0, SAINA_C_DUPLICATE, grad(&j, 0, 0, 1, 10)) && was_dropped(),
	      "AWAY: the gradient of a contributor is a duplicate");
	point(COUNTS(&j, 2, SAINA_C_AWAY, grad(&j, 2, 0, 1, 30)) && was_dropped(),
	      "AWAY: the gradient of another worker is dropped, and counted as away");
	point(COUNTS(&j, 0, SAINA_C_PULL_EARLY, pull(&j, 0, 0, 1)) && was_dropped(),
	      "AWAY: a PULL is early");
	a = ask(&j, 0, 0, 0);
	ok = got_answer()->flags == SAINA_F_AWAY && a->counted == 2 && !a->done && !a->due;
	a = ask(&j, 2, 0, 0);
	point(ok && got_answer()->flags == SAINA_F_AWAY && a->counted == 4 && !a->done && !a->due,
	      "AWAY: an ASK hears counted or not, neither done nor due, and the flag AWAY");
	a = ask(&j, 2, 0, 2);
	point(was_answered() && !got_answer()->flags && a->counted == 1,
	      "an ASK about other segments has no flag");
	after = hot(&j, 1);
	point(!memcmp(&before, &after, sizeof(after)) && is_away(&j, 0, 1, 3) && last(&j, 1, 2) == 0,
	      "AWAY: nothing of this changes sums, exponent, weight or who is counted");
}

static void test_result(void)
{
	struct job j = uplink_job(policy_bsp());
	int32_t sums[JOB_ELEMS];
	struct saina_slot_meta m;
	bool ok;

	contribute(&j, 0, 1);
	ok = COUNTS(&j, U, SAINA_C_COMPLETED, result(&j, 0, 1, 0, 9, 4000));
	point(ok && got_sums(7, 9, 4000) && got_answer()->worker == 0xff && !got_answer()->flags &&
		      got_answer()->exponent == JOB_EXPONENT - 3,
	      "a gradient of U is the result: its sums, exponent and weight; mask and contributors are of this switch");
	ok = !saina_dp_result(harness.dp, j.conf.job, 1, 0, &m, sums);
	point(ok && m.seen == 7 && m.count == 3 && m.weight == 9 && sums[0] == 4000 &&
		      hot(&j, 1).meta.state == SAINA_SLOT_DONE && !job_rt(&j).open_slots &&
		      job_rt(&j).segs_done == 1,
	      "it is in the ring, and the slot is DONE");
	ok = COUNTS(&j, 0, SAINA_C_RESENT, grad(&j, 0, 0, 1, 10)) && got_sums(7, 9, 4000);
	ok &= COUNTS(&j, 1, SAINA_C_PULLED, pull(&j, 1, 0, 1)) && got_sums(7, 9, 4000);
	point(ok && got_answer()->aux == 1, "answers to one worker have the weight, too");
	point(COUNTS(&j, U, SAINA_C_LATE, result(&j, 0, 1, 0, 9, 5000)) && got_sums(7, 9, 4000) &&
		      got_answer()->worker == U,
	      "another gradient of U changes nothing, and is answered");
	contribute(&j, 0, 2);
	result(&j, 0, 2, SAINA_F_DEGRADED | SAINA_F_DROP_LATE | SAINA_F_RETRANSMIT, 0, 1);
	point(got_sums(7, 0, 1) && got_answer()->flags == (SAINA_F_DEGRADED | SAINA_F_DROP_LATE),
	      "DEGRADED and DROP_LATE of U's gradient are the result's");
	for (unsigned int w = 0; w < 3; w++)
		if (job_counter(&j, w, SAINA_C_COARSENED))
			ok = false;
	point(ok && !job_counter(&j, U, SAINA_C_COARSENED), "its exponent makes no other coarser");
}

static void test_nan(void)
{
	struct job j = uplink_job(policy_bsp());
	struct saina_hdr h = header(&j, SAINA_MSG_GRAD, U, 0, 1);
	bool ok;

	/* integers and floats */
	for (unsigned int w = 0; w < 3; w++) {
		struct saina_hdr g = header(&j, SAINA_MSG_GRAD, w, 0, 1);

		g.exponent = w == 1 ? SAINA_EXPONENT_INT : JOB_EXPONENT;
		send_header(&j, &g, 5);
	}
	ok = is_away(&j, 0, 1, 7) && hot(&j, 1).meta.exponent == SAINA_EXPONENT_NAN;
	h.exponent = SAINA_EXPONENT_NAN;
	h.slot_round = 2;
	send_header(&j, &h, 5);
	ok &= was_answered() && got_answer()->exponent == SAINA_EXPONENT_NAN &&
	      !got_answer()->flags && got_answer()->slot_round == 2;
	for (int i = 0; i < JOB_ELEMS; i++)
		ok &= !got_elem(i);
	point(ok, "a result that is NaN has zeros, and no flag TYPES");
	grad(&j, 0, 0, 2, 1);
	h = header(&j, SAINA_MSG_GRAD, 1, 0, 2);
	h.exponent = SAINA_EXPONENT_NAN;
	send_header(&j, &h, 1);
	grad(&j, 2, 0, 2, 1);
	result(&j, 0, 2, SAINA_F_LATE, 4, 77);
	point(got_sums(0, 4, 77), "a result without this node's NaN has its sums");
}

static void test_flags(void)
{
	static const uint8_t known[] = { SAINA_F_LATE, SAINA_F_DEGRADED, SAINA_F_DROP_LATE };
	struct job j = uplink_job(policy_bsp());
	struct saina_hdr h = header(&j, SAINA_MSG_GRAD, 0, 0, 1);
	uint64_t before;
	bool ok = true;

	for (int i = 0; i < 3; i++) {
		h.flags = known[i];
		ok &= COUNTS(&j, 0, SAINA_C_FLAGS, send_header(&j, &h, 1));
	}
	point(ok && hot(&j, 1).meta.state == SAINA_SLOT_EMPTY,
	      "LATE, DEGRADED and DROP_LATE of another worker are errors");
	h.flags = SAINA_F_TYPES;
	h.exponent = SAINA_EXPONENT_NAN;
	ok = COUNTS(&j, 0, SAINA_C_FLAGS, send_header(&j, &h, 1));
	point(ok && hot(&j, 1).meta.state == SAINA_SLOT_EMPTY, "TYPES of a worker that is no node is an error");
	ok = COUNTS(&j, U, SAINA_C_FLAGS, result(&j, 0, 1, SAINA_F_TYPES, 1, 1));
	ok &= COUNTS(&j, U, SAINA_C_FLAGS, result(&j, 0, 1, SAINA_F_RESEND, 1, 1));
	point(ok && hot(&j, 1).meta.state == SAINA_SLOT_EMPTY, "other flags of U are errors");
	h = header(&j, SAINA_MSG_PULL, U, 0, 1);
	h.flags = SAINA_F_LATE;
	before = job_counter(&j, -1, SAINA_C_FLAGS);
	ok = COUNTS(&j, U, -1, send_header(&j, &h, 1));
	point(ok && job_counter(&j, -1, SAINA_C_FLAGS) == before + 1, "flags of a result in a PULL of U are errors");
}

static void grad_of(const struct job *j, unsigned int w, uint32_t round, uint32_t segment, int exponent, unsigned int flags)
{
	struct saina_hdr h = header(j, SAINA_MSG_GRAD, w, round, segment);

	h.exponent = exponent;
	h.flags = flags;
	h.slot_round = w == U ? 9 : 0;
	send_header(j, &h, 77);
}

/* Is the answer no sum, and names those in @ints of those in @mask? */
static bool names(uint64_t mask, uint64_t ints)
{
	uint64_t named;

	memcpy(&named, got_answer() + 1, sizeof(named));
	return got_answer()->flags & SAINA_F_TYPES && got_answer()->exponent == SAINA_EXPONENT_NAN &&
	       got_answer()->mask == mask && named == ints;
}

/* The three workers' gradients of a segment, and the parent's answer. */
static bool types(const struct job *j, uint32_t segment, const int exponent[3], unsigned int flags, uint64_t mask, uint64_t ints)
{
	for (unsigned int w = 0; w < 3; w++)
		grad_of(j, w, 0, segment, exponent[w], 0);
	grad_of(j, U, 0, segment, SAINA_EXPONENT_NAN, SAINA_F_TYPES | flags);
	return names(mask, ints);
}

static void test_types(void)
{
	const int ints[] = { SAINA_EXPONENT_INT, SAINA_EXPONENT_INT, SAINA_EXPONENT_INT }, floats[] = { 3, 3, 4 };
	const int both[] = { 3, SAINA_EXPONENT_INT, SAINA_EXPONENT_NAN }, nans[] = { -128, -128, -128 };
	struct job j = uplink_job(policy_bsp());
	bool ok;

	ok = types(&j, 0, ints, 0, 7, 7) && types(&j, 1, floats, 0, 7, 0) && types(&j, 2, both, 0, 7, 2);
	point(ok && types(&j, 3, nans, 0, 7, 0), "TYPES of the parent: the workers with integers are named");
	j = uplink_job(policy_bsp());
	ok = types(&j, 0, ints, SAINA_F_LATE, 0, 0) && types(&j, 1, both, SAINA_F_LATE, 0, 0);
	point(ok, "TYPES and LATE: nobody is");
	j = uplink_job(policy_bsp());
	for (unsigned int w = 0; w < 3; w++)
		grad_of(&j, w, 0, 0, both[w], 0);
	point(hot(&j, 0).meta.flags & SAINA_F_TYPES, "the relay sees TYPES of a slot that is AWAY");
	grad_of(&j, U, 0, 0, SAINA_EXPONENT_NAN, 0);
	point(got_answer()->exponent == SAINA_EXPONENT_NAN && !(got_answer()->flags & SAINA_F_TYPES),
	      "without TYPES of the parent there are none");
	j = new_job(3, policy_bsp());
	j.conf.worker[1].max_weight = 4;
	publish(&j);
	for (unsigned int segment = 0; segment < 3; segment++)	/* the slots hold sums */
		for (unsigned int w = 0; w < 3; w++)
			grad(&j, w, 0, segment, 77);
	ok = true;
	for (unsigned int segment = 0; segment < 3; segment++)
		for (unsigned int i = 0; i < 3; i++) {
			unsigned int w = (i + segment) % 3;

			grad_of(&j, w, 1, segment, w == 1 ? SAINA_EXPONENT_NAN : 5, w == 1 ? SAINA_F_TYPES : 0);
			ok &= i < 2 || names(7, 0);
		}
	grad_of(&j, 0, 1, 3, SAINA_EXPONENT_INT, 0);
	grad_of(&j, 1, 1, 3, SAINA_EXPONENT_NAN, SAINA_F_TYPES);
	grad_of(&j, 2, 1, 3, SAINA_EXPONENT_INT, 0);
	ok &= names(7, 5);
	point(ok, "TYPES of a node: the result has it, and names others with integers");
}

static void test_late(void)
{
	struct job j = uplink_job(policy_bsp());
	const struct saina_ask *a;
	bool ok;

	contribute(&j, 0, 1);
	contribute(&j, 0, 2);
	ok = last(&j, 1, 0) == 1 && last(&j, 1, 2) == 1;
	result(&j, 0, 1, SAINA_F_LATE, 8, 500);
	ok &= got_sums(0, 8, 500) && got_answer()->flags == SAINA_F_DEGRADED;
	for (unsigned int w = 0; w < 3; w++)
		ok &= !last(&j, 1, w) && last(&j, 2, w) == 1;
	point(ok, "LATE: nobody is counted in the result, and it says so");
	a = ask(&j, 0, 0, 0);
	point(a->done == 2 && a->counted == 4, "LATE: an ASK hears done, and not counted");
	ok = COUNTS(&j, 0, SAINA_C_LATE, grad(&j, 0, 0, 1, 10)) && got_sums(0, 8, 500);
	point(ok && got_answer()->flags == (SAINA_F_DEGRADED | SAINA_F_LATE) && !got_answer()->aux,
	      "LATE: a contributor's gradient is late");
}

static void test_not_away(void)
{
	struct job j = uplink_job(policy_bsp());
	int32_t sums[JOB_ELEMS];
	struct saina_slot_meta m;
	bool ok;

	grad(&j, 0, 0, 1, 10);
	grad(&j, 1, 0, 1, 20);
	result(&j, 0, 1, 0, 8, 500);
	ok = got_sums(0, 8, 500) && !last(&j, 1, 0) && !last(&j, 1, 1);
	point(ok, "the result of a slot that has not gone up counts none of its contributors");
	grad(&j, 0, 0, 3, 10);
	result(&j, 0, 3, 0, 0, 550);
	point(got_sums(0, 0, 550) && !last(&j, 3, 0), "nor is a result added to the first of them");
	result(&j, 0, 2, 0, 8, 600);
	ok = got_sums(0, 8, 600) && !job_counter(&j, U, SAINA_C_STORED);
	point(ok && !last(&j, 2, U) && got_answer()->flags == SAINA_F_DEGRADED, "a result opens its slot");
	ok = COUNTS(&j, U, SAINA_C_SLOT_BUSY, result(&j, 0, 4, 0, 8, 600));
	point(ok, "a result opens no slot that is busy");
	j = uplink_job(policy_bsp());
	result(&j, 0, 3, 0, 8, 700);
	ok = got_sums(0, 8, 700) && job_rt(&j).next_round == 1 && job_rt(&j).members == 7 &&
	     !job_rt(&j).open_slots && job_rt(&j).segs_done == 1;
	point(ok, "a result opens its round, which waits for the workers alone");
	ok = COUNTS(&j, U, SAINA_C_FUTURE, result(&j, 2, 0, 0, 8, 700));
	point(ok, "a result opens no round but the next one");
	set_active(&j, 0);
	result(&j, 0, 2, 0, 8, 800);
	result(&j, 1, 2, 0, 8, 900);
	ok = !saina_dp_result(harness.dp, j.conf.job, 2, 1, &m, sums) && !m.count && sums[0] == 900;
	point(ok && job_rt(&j).next_round == 2 && !job_rt(&j).open_slots,
	      "results come in where no worker is alive");
}

static void test_lead(void)
{
	struct job j = uplink_job(policy_bsp());
	bool ok = true;

	for (uint32_t r = 0; r < 3; r++) {
		result(&j, r, 0, 0, 8, 100 * r);
		ok &= got_sums(0, 8, 100 * r);
	}
	ok &= COUNTS(&j, U, SAINA_C_LEAD, result(&j, 3, 0, 0, 8, 1));
	point(ok && job_rt(&j).behind == 7 && job_rt(&j).next_round == 3,
	      "bsp: results lead the workers by no more than the ring keeps safely");
	for (unsigned int w = 0; w < 3; w++)
		ask(&j, w, 2, 0);
	result(&j, 3, 0, 0, 8, 1);
	point(got_sums(0, 8, 1), "bsp: results go on when the workers have followed");
}

static void test_death(void)
{
	struct saina_policy p = { .mode = SAINA_POLICY_TIMEOUT, .late = SAINA_LATE_RESIDUAL,
				  .k_min = 2, .timeout_us = 1, .lead = SAINA_LEAD_NONE };
	struct job j = uplink_job(policy_bsp());
	bool ok;

	grad(&j, 0, 0, 1, 10);
	grad(&j, 1, 0, 1, 20);
	ok = COUNTS(&j, 0, SAINA_C_PULL_EARLY, pull(&j, 0, 0, 1));
	set_active(&j, 3);
	ok &= COUNTS(&j, 0, -1, pull(&j, 0, 0, 1)) && was_dropped() && is_away(&j, 0, 1, 3);
	point(ok && read_records(&j) && records == 1, "a slot that a death completes becomes AWAY by a PULL");
	grad(&j, 0, 0, 2, 10);
	set_active(&j, 1);
	ok = COUNTS(&j, 0, -1, grad(&j, 0, 0, 2, 10)) && is_away(&j, 0, 2, 1);
	point(ok && read_records(&j) && records == 1 && record[0].segment == 2,
	      "or by the duplicate of a gradient");
	result(&j, 0, 1, 0, 5, 1);
	point(got_sums(3, 5, 1) && got_answer()->flags == SAINA_F_DEGRADED, "its result is DEGRADED");
	j = uplink_job(p);
	grad(&j, 0, 0, 1, 10);
	ok = hot(&j, 1).meta.state == SAINA_SLOT_OPEN;
	grad(&j, 1, 0, 1, 20);
	pull(&j, 1, 0, 1);
	point(ok && is_away(&j, 0, 1, 3), "a slot whose time is over becomes AWAY");
}

static void test_weight(void)
{
	struct job j = new_job(4, policy_bsp());
	struct saina_hdr h;
	bool ok;

	/* a root: worker 1 is a node of up to 7 workers */
	j.conf.worker[1].max_weight = 7;
	j.conf.worker[2].max_weight = 1;
	publish(&j);
	h = header(&j, SAINA_MSG_GRAD, 1, 0, 1);
	h.slot_round = 7;
	ok = COUNTS(&j, 1, SAINA_C_WEIGHT, send_header(&j, &h, 1));
	h = header(&j, SAINA_MSG_GRAD, 2, 0, 1);
	h.slot_round = 1;
	ok &= COUNTS(&j, 2, SAINA_C_WEIGHT, send_header(&j, &h, 1));
	h.worker = 0;
	h.session = j.conf.worker[0].session;
	ok &= COUNTS(&j, 0, SAINA_C_WEIGHT, send_header(&j, &h, 1));
	point(ok && hot(&j, 1).meta.state == SAINA_SLOT_EMPTY,
	      "a gradient of more workers than the sender may stand for is dropped");
	for (uint32_t s = 1; s < 4; s++) {
		/* the node opens the slot, is added fast, or with another exponent */
		h = header(&j, SAINA_MSG_GRAD, 1, 0, s);
		h.slot_round = 6;
		if (s == 3)
			h.exponent--;
		if (s > 1)
			grad(&j, 0, 0, s, 0);
		send_header(&j, &h, 0);
		if (s == 1)
			grad(&j, 0, 0, s, 0);
		grad(&j, 2, 0, s, 0);
		ok &= hot(&j, s).meta.weight == 6;
		grad(&j, 3, 0, s, 0);
		ok &= was_answered() && got_answer()->slot_round == 6 && got_answer()->contributors == 4;
	}
	point(ok, "the weights of gradients add up in the slot and in the result");
	set_active(&j, 13);
	ok = COUNTS(&j, 1, SAINA_C_PULLED, pull(&j, 1, 0, 1)) && got_answer()->slot_round == 6;
	ok &= COUNTS(&j, 1, SAINA_C_ASKED, ask(&j, 1, 0, 1));
	h = header(&j, SAINA_MSG_GRAD, 1, 1, 1);
	ok &= COUNTS(&j, 1, SAINA_C_INACTIVE, send_header(&j, &h, 0));
	set_active(&j, 11);
	ok &= COUNTS(&j, 2, SAINA_C_INACTIVE, pull(&j, 2, 0, 1));
	point(ok, "PULL and ASK of a node that is not active pass, but no others");
}

static void test_sender(void)
{
	struct job j = uplink_job(policy_bsp());
	struct saina_hdr h = header(&j, SAINA_MSG_GRAD, U, 0, 1);
	bool ok;

	contribute(&j, 0, 1);
	h.session++;
	ok = COUNTS(&j, U, SAINA_C_SESSION, send_header(&j, &h, 9));
	h = header(&j, SAINA_MSG_GRAD, U, 0, 1);
	j.conf.worker[U].ifindex = j.conf.worker[0].ifindex;
	ok &= COUNTS(&j, U, SAINA_C_BAD_PORT, send_header(&j, &h, 9));
	j.conf.worker[U].ifindex = harness.port[1];
	ok &= COUNTS(&j, U, SAINA_C_WEIGHT, result(&j, 0, 1, 0, U_WEIGHT, 9));
	point(ok && is_away(&j, 0, 1, 7), "only U's place and session make a result, of at most its weight");
	pull(&j, U, 0, 1);
	point(is_away(&j, 0, 1, 7), "a PULL of U is no result");
	j.conf.uplink = 0;
	publish(&j);
	ok = COUNTS(&j, U, SAINA_C_INACTIVE, result(&j, 0, 1, 0, 9, 9));
	point(ok, "without an uplink nobody is U");
}

static void doorbell(const struct job *j, unsigned int w, uint64_t segments)
{
	struct saina_hdr h = header(j, SAINA_MSG_DOORBELL, w, 0, 0);
	const struct saina_doorbell body = { .posted = segments };

	h.count = 0;
	h.exponent = 0;
	send_alone(j, &h, &body, sizeof(body));
}

static void post(const struct job *j, unsigned int w, uint32_t segment, unsigned int flags, uint32_t weight,
		 int32_t value)
{
	struct saina_input_head *in = harness_shm_input(&harness, j->conf.job, w, segment);
	int32_t *v = (void *)(in + 1);

	for (int i = 0; i < JOB_ELEMS; i++)
		v[i] = value + i;
	in->round = 0;
	in->segment = segment;
	in->exponent = JOB_EXPONENT;
	in->flags = flags;
	in->weight = weight;
	in->session = j->conf.worker[w].session;
}

static void test_doorbell(void)
{
	struct job j = uplink_job(policy_bsp());
	const struct saina_output_head *out;
	bool ok = true;

	for (unsigned int w = 0; w <= U; w++)
		ok &= !harness_shm_set(&harness, j.conf.job, w, true);
	for (unsigned int w = 0; ok && w < 3; w++) {
		for (uint32_t s = 0; s < 3; s++)
			post(&j, w, s, SAINA_F_LATE, 5, 10);
		doorbell(&j, w, 7);
		ok &= was_dropped();
	}
	for (uint32_t s = 0; s < 3; s++)
		ok &= is_away(&j, 0, s, 7) && !hot(&j, s).meta.weight;
	point(ok && read_records(&j) && records == 3 && record[2].segment == 2,
	      "by reference: slots become AWAY, and flags and weight of workers are not looked at");
	post(&j, U, 0, 0, 9, 1000);
	post(&j, U, 1, SAINA_F_LATE, 11, 2000);
	post(&j, U, 2, 0, U_WEIGHT, 3000);
	doorbell(&j, U, 7);
	ok = was_answered() && got_answer()->type == SAINA_MSG_COMPLETION && got_answer()->worker == 0xff &&
	     ((const struct saina_doorbell *)(harness.got + FRAME_PAYLOAD))->done == 3;
	point(ok && is_away(&j, 0, 2, 7) && job_counter(&j, U, SAINA_C_WEIGHT) == 1,
	      "by reference: results are there for all, but none that is too heavy");
	out = harness_shm_output(&harness, j.conf.job, 0, 0);
	ok = out->state == SAINA_OUTPUT_VALID && out->mask == 7 && out->contributors == 3 &&
	     out->weight == 9 && ((const int32_t *)(out + 1))[0] == 1000;
	out = harness_shm_output(&harness, j.conf.job, 0, 1);
	point(ok && out->mask == 0 && out->weight == 11 && ((const int32_t *)(out + 1))[1] == 2001 &&
		      out->flags == SAINA_F_DEGRADED && !last(&j, 1, 0),
	      "by reference: results have U's sums, weight and LATE");
	post(&j, 0, 3, 0, 0, 10);
	doorbell(&j, 0, 8);
	post(&j, U, 3, 0, 0, 4000);
	doorbell(&j, U, 8);
	out = harness_shm_output(&harness, j.conf.job, 0, 3);
	point(out->state == SAINA_OUTPUT_VALID && !out->mask && ((const int32_t *)(out + 1))[0] == 4000,
	      "by reference: a result is not added to the first contributor's");
}

/* A reader of the relay's memory beside the program. */
#define RACE_ROUNDS	20000
#define RACE_ELEMS	SAINA_ELEMS_LINEAR_MAX

static const struct {
	struct saina_slot_meta meta;
	int32_t sum[RACE_ELEMS];
} *race_slot;
static unsigned int race_seen, race_torn;
static bool race_over;

/* All sums of round r are 3 * (r + 1). */
static void *race_reader(void *)
{
	const uint8_t *state = &race_slot->meta.state;
	const volatile int32_t *sum = race_slot->sum;

	while (!__atomic_load_n(&race_over, __ATOMIC_ACQUIRE)) {
		uint32_t round;
		bool right;

		if (__atomic_load_n(state, __ATOMIC_ACQUIRE) != SAINA_SLOT_AWAY)
			continue;
		round = __atomic_load_n(&race_slot->meta.round, __ATOMIC_ACQUIRE);
		right = sum[RACE_ELEMS - 1] == (int32_t)(3 * (round + 1)) &&
			sum[0] == (int32_t)(3 * (round + 1)) &&
			*(const volatile int8_t *)&race_slot->meta.exponent == JOB_EXPONENT;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(state, __ATOMIC_ACQUIRE) != SAINA_SLOT_AWAY ||
		    __atomic_load_n(&race_slot->meta.round, __ATOMIC_ACQUIRE) != round)
			continue;
		race_seen++;
		race_torn += !right;
	}
	return NULL;
}

static bool race_round(const struct job *j, uint32_t round)
{
	static uint8_t out[FRAME_MAX];
	int32_t v[RACE_ELEMS];
	int verdict = XDP_DROP;

	for (unsigned int w = 0; w <= U; w++) {
		struct saina_hdr h = header(j, SAINA_MSG_GRAD, w, round, 0);

		for (int i = 0; i < RACE_ELEMS; i++)
			v[i] = w == U ? -1 : (int32_t)round + 1;
		h.count = RACE_ELEMS;
		h.exponent = w == U ? JOB_EXPONENT - 1 : JOB_EXPONENT;
		verdict = harness_exchange(&harness, &j->conf, h, v, sizeof(v), out);
	}
	return verdict == XDP_REDIRECT;
}

static void test_state_last(void)
{
	struct job j = uplink_job(policy_bsp());
	pthread_t reader;
	bool ok = true;
	int fd[2];

	j.conf.generation += 1 << 20;
	j.conf.payload = RACE_ELEMS;
	j.conf.segments = 1;
	j.conf.pool = 1;
	j.conf.sign_words = SAINA_SIGN_WORDS(RACE_ELEMS, 1);
	harness_bind(&harness, &j.conf, U, 0, 2000);
	publish(&j);
	if (saina_dp_uplink_grant(harness.dp, j.conf.job, fd))
		tap_bail("%s", saina_dp_error(harness.dp));
	race_slot = mmap(NULL, sizeof(*race_slot), PROT_READ, MAP_SHARED, fd[0], 0);
	if (race_slot == MAP_FAILED || pthread_create(&reader, NULL, race_reader, NULL))
		tap_bail("no reader");
	for (uint32_t r = 0; ok && r < RACE_ROUNDS; r++)
		ok = race_round(&j, r);
	__atomic_store_n(&race_over, true, __ATOMIC_RELEASE);
	pthread_join(reader, NULL);
	tap_note("%u readings of AWAY slots", race_seen);
	point(ok && race_seen && !race_torn,
	      "what the relay reads of an AWAY slot beside the program is the whole sum and its exponent");
}

int main(int argc, char **argv)
{
	harness_open(&harness);
	if (argc > 1 && !strcmp(argv[1], "--tc"))
		harness_use_tc(&harness);
	test_complete();
	test_others();
	test_result();
	test_nan();
	test_flags();
	test_types();
	test_late();
	test_not_away();
	test_lead();
	test_death();
	test_weight();
	test_sender();
	test_doorbell();
	if (!harness.tc)
		test_state_last();
	harness_close(&harness);
	return tap_done();
}
