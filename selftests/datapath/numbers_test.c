// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Arithmetic: contributors with different exponents (Documentation/datapath.rst, section 3.1), in
 * messages and in shared memory: each rule by itself.  What they are for, that workers get the sums of
 * float64, is switch_lib_numbers_test's.
 *
 *	numbers_test [--tc]
 */
#include <limits.h>
#include <math.h>
#include <string.h>
#include "lib/rng.h"
#include "test_job.h"
#include "harness_shm.h"

#define E		JOB_ELEMS
#define NAN_BLOCK	SAINA_EXPONENT_NAN

struct result {
	int exponent, flags;
	uint64_t mask;
	int32_t v[E];
};

struct harness harness;
bool agrees;
static const char *hook = "xdp";

/* How gradients are sent.  BOTH: every other worker uses shared memory. */
enum way { MESSAGES, REFERENCE, BOTH, WAYS };

static const char *const ways[] = { "in messages", "by shared memory", "both ways" };

static bool uses_shm(const struct job *j, unsigned int w)
{
	return harness_shm_input(&harness, j->conf.job, w, 0) != NULL;
}

static struct job job(unsigned int workers, enum way way)
{
	struct job j = job_create(5, workers, 1, policy_bsp());

	for (unsigned int w = 0; w < workers; w++)
		if ((way == REFERENCE || (way == BOTH && w % 2)) && harness_shm_set(&harness, 5, w, true)) {
			tap_note("%s", saina_dp_error(harness.dp));
			agrees = false;
		}
	return j;
}

static void ring_doorbell(const struct job *j, unsigned int w, uint32_t round, uint32_t segment, int exponent,
		 const int32_t *v)
{
	struct saina_input_head *in = harness_shm_input(&harness, j->conf.job, w, segment);
	struct saina_doorbell doorbell = { .posted = 1 };
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = SAINA_MSG_DOORBELL, .elem = SAINA_ELEM_INT32,
		.job = j->conf.job, .session = j->conf.worker[w].session, .round = round,
		.segment = segment, .worker = w, .exponent = 127,
	};
	uint8_t f[FRAME_MAX];

	in->session = h.session;
	in->round = round;
	in->segment = segment;
	in->exponent = exponent;
	memcpy(in + 1, v, 4 * E);
	send_frame(f, frame_make(f, &harness.g, &j->conf.worker[w], &h, &doorbell, sizeof(doorbell)),
		   j->conf.worker[w].ifindex);
}

static void send_v(const struct job *j, unsigned int w, uint32_t round, uint32_t segment, int exponent,
		  const int32_t *v)
{
	uint8_t f[FRAME_MAX];

	if (uses_shm(j, w))
		ring_doorbell(j, w, round, segment, exponent, v);
	else
		send_frame(f, job_frame_at(j, f, SAINA_MSG_GRAD, w, round, segment, exponent, v),
			   j->conf.worker[w].ifindex);
}

static void send_value(const struct job *j, unsigned int w, uint32_t round, int exponent, int32_t value)
{
	int32_t v[E];

	for (int i = 0; i < E; i++)
		v[i] = value;
	send_v(j, w, round, 0, exponent, v);
}

/* Is the last answer a result?  After a DOORBELL it is in the output array. */
static bool answer(const struct job *j, uint32_t round, uint32_t segment, struct result *r)
{
	const struct saina_hdr *h = got_answer();
	const struct saina_output_head *b;

	if (!was_answered())
		return false;
	if (h->type == SAINA_MSG_RESULT) {
		*r = (struct result){ h->exponent, h->flags, h->mask, {} };
		memcpy(r->v, harness.got + FRAME_PAYLOAD, sizeof(r->v));
		return true;
	}
	if (h->type != SAINA_MSG_COMPLETION)
		return false;
	if (!harness_check_output(&harness, j->conf.job, round, segment)) {
		tap_note("%s", harness.diff);
		agrees = false;
	}
	b = harness_shm_output(&harness, j->conf.job, round, segment);
	*r = (struct result){ b->exponent, b->flags, b->mask, {} };
	memcpy(r->v, b + 1, sizeof(r->v));
	return b->state == SAINA_OUTPUT_VALID && b->round == round;
}

static bool is_result(const struct job *j, uint32_t round, uint64_t mask, int exponent, int32_t value)
{
	struct result r;

	if (!answer(j, round, 0, &r) || r.mask != mask || r.exponent != exponent)
		return false;
	for (int i = 0; i < E; i++)
		if (r.v[i] != value)
			return false;
	return true;
}

/* Section 3.1, in 64 bits. */
static int32_t shifted(int64_t x, unsigned int d)
{
	if (!d)
		return x;
	if (d > 31)
		d = 31;
	if (d == 1 && x == INT_MAX)
		return -0x40000000;	/* the addition wraps */
	return (x + (1ll << (d - 1))) >> d;
}

/* Boundary values. */
static void edges(int32_t *v, struct rng *r)
{
	for (int i = 0; i < E; i++) {
		unsigned int bit = i / 2 % 32;

		v[i] = (1u << bit) - (i < 32 ? i % 2 : 0) + (i >= 32 && i % 2 ? rng_below(r, 3) - 1 : 0);
		if (rng_chance(r, 500))
			v[i] = -(uint32_t)v[i];
	}
	v[rng_below(r, E)] = INT_MAX;
	v[rng_below(r, E)] = INT_MIN;
}

static void test_pairs(enum way way)
{
	static const int apart[] = { 0, 1, 2, 3, 4, 15, 16, 30, 31, 32, 33, 63, 64, 200, 253 };
	struct job j = job(2, way);
	uint32_t round = 0;
	bool ok = true;
	struct rng r;

	rng_seed(&r, 24 + way);
	for (unsigned int i = 0; i < 2 * sizeof(apart) / sizeof(apart[0]); i++) {
		int d = apart[i / 2], fine = SAINA_EXPONENT_MAX - (d < 100 ? rng_below(&r, 100) : 0);
		for (unsigned int n = 0; n < 4 && agrees; n++, round++) {
			unsigned int finer = i % 2;	/* that worker is finer */
			struct result got;
			int32_t v[2][E];

			edges(v[0], &r);
			edges(v[1], &r);
			send_v(&j, n % 2, round, 0, n % 2 == finer ? fine : fine - d, v[n % 2]);
			ok &= was_dropped();
			send_pull(&j, n / 2, round, 0);
			ok &= was_dropped();
			send_v(&j, 1 - n % 2, round, 0, 1 - n % 2 == finer ? fine : fine - d, v[1 - n % 2]);
			if (!answer(&j, round, 0, &got) || got.exponent != fine - d || got.mask != 3) {
				ok = false;
				continue;
			}
			for (int k = 0; k < E; k++) {
				int32_t want = (uint32_t)shifted(v[finer][k], d) + (uint32_t)v[1 - finer][k];

				if (got.v[k] != want)
					tap_note("%d apart, finer one %s: %d and %d give %d, not %d", d,
						 n % 2 == finer ? "first" : "last", v[finer][k], v[1 - finer][k],
						 got.v[k], want);
				ok &= got.v[k] == want;
			}
		}
	}
	job_verdict(&j, ok, "exponents: the finer of two gradients is rounded, whichever is first");
}

/* Three workers, in that order. */
static bool adds_up(struct job *j, uint32_t round, const int *e, const int32_t *v, int exponent,
		    int32_t sum)
{
	bool ok = true;

	for (unsigned int w = 0; w < 3; w++) {
		send_value(j, w, round, e[w], v[w]);
		ok &= w == 2 || was_dropped();
	}
	ok &= is_result(j, round, 7, exponent, sum);
	/* once more: from the ring, in a message */
	send_pull(j, 1, round, 0);
	ok &= is_result(j, round, 7, exponent, sum) && got_answer()->type == SAINA_MSG_RESULT;
	send_value(j, 1, round, 20, 12345);
	return ok && is_result(j, round, 7, exponent, sum);
}

#define ADDS_UP(r, e0, v0, e1, v1, e2, v2, e, v) \
	adds_up(&j, r, (int[]){ e0, e1, e2 }, (int32_t[]){ v0, v1, v2 }, e, v)

static bool counted(const struct job *j, int counter, uint64_t a, uint64_t b, uint64_t c)
{
	return job_counter(j, 0, counter) == a && job_counter(j, 1, counter) == b &&
	       job_counter(j, 2, counter) == c;
}

static void test_orders(enum way way)
{
	struct job j = job(3, way);
	bool ok;

	ok = ADDS_UP(0, 7, 100, 7, -3, 7, 4, 7, 101) && ADDS_UP(1, 7, 100, 9, 10, 8, -3, 7, 102);
	job_verdict(&j, ok, "exponents: after a first, coarsest gradient the others are rounded one by one");
	ok = ADDS_UP(2, 9, 10, 7, 100, 6, 0, 6, 52) && ADDS_UP(3, 9, -10, 6, 100, 9, -4, 6, 99);
	ok &= counted(&j, SAINA_C_COARSENED, 0, 0, 0);
	ok &= ADDS_UP(4, SAINA_EXPONENT_MAX, INT_MAX, SAINA_EXPONENT_MIN, 5, SAINA_EXPONENT_MAX, INT_MIN,
		      SAINA_EXPONENT_MIN, 5);
	ok &= ADDS_UP(5, 7, INT_MAX, 7, 1, 6, 0, 6, -0x40000000);
	ok &= counted(&j, SAINA_C_COARSENED, 0, 0, 0) && ADDS_UP(6, 9, 640, 3, 10, 9, 64, 3, 21);
	ok &= counted(&j, SAINA_C_COARSENED, 0, 1, 0);
	job_verdict(&j, ok, "exponents: the sum is rounded when a coarser gradient comes; from 64 times the scale on that is counted");
	for (int w = 0; w < 3; w++)
		ok &= !job_counter(&j, w, SAINA_C_DEGRADED) && !job_counter(&j, w, SAINA_C_EXPONENT);
	ok &= job_rt(&j).next_round == 7;
	send_value(&j, 0, 7, 7, 1);
	send_value(&j, 0, 7, 3, 1);
	ok &= was_dropped() && job_counter(&j, 0, SAINA_C_DUPLICATE) == 1;
	send_value(&j, 1, 7, 7, 2);
	send_value(&j, 2, 7, 7, 3);
	ok &= is_result(&j, 7, 7, 7, 6) && counted(&j, SAINA_C_COARSENED, 0, 1, 0);
	job_verdict(&j, ok, "exponents: mixed exponents degrade no round, and the exponent of a duplicate is ignored");
}

static void test_nan(enum way way)
{
	struct job j = job(3, way);
	bool ok;

	ok = ADDS_UP(0, NAN_BLOCK, 5, 7, 100, 3, 100, NAN_BLOCK, 0) &&
	     counted(&j, SAINA_C_NONFINITE, 1, 0, 0);
	ok &= ADDS_UP(1, 7, 1, NAN_BLOCK, 0, 3, 1, NAN_BLOCK, 0) && counted(&j, SAINA_C_NONFINITE, 1, 1, 0);
	ok &= ADDS_UP(2, 7, 1, 1, 1, NAN_BLOCK, 77, NAN_BLOCK, 0) && counted(&j, SAINA_C_NONFINITE, 1, 1, 1);
	ok &= ADDS_UP(3, NAN_BLOCK, 1, NAN_BLOCK, 1, NAN_BLOCK, 1, NAN_BLOCK, 0);
	ok &= counted(&j, SAINA_C_NONFINITE, 2, 2, 2) && counted(&j, SAINA_C_COARSENED, 0, 1, 0);
	job_verdict(&j, ok, "NaN: one from any worker makes the result NaN, of zeros");
	ok = ADDS_UP(4, 7, 1, 7, 2, 7, 3, 7, 6) && ADDS_UP(5, 7, 1, 8, 2, 7, 3, 7, 5);
	job_verdict(&j, ok, "NaN: the next round has none");

	job_set_policy(&j, policy_fastest(2));
	send_value(&j, 0, 6, NAN_BLOCK, 1);
	send_value(&j, 1, 6, 7, 1);
	ok = is_result(&j, 6, 3, NAN_BLOCK, 0);
	send_value(&j, 2, 6, 7, 1);
	ok &= is_result(&j, 6, 3, NAN_BLOCK, 0);
	send_value(&j, 1, 7, 7, 1);
	send_value(&j, 2, 7, 7, 1);
	send_value(&j, 0, 7, NAN_BLOCK, 1);
	ok &= is_result(&j, 7, 6, 7, 2) && counted(&j, SAINA_C_NONFINITE, 3, 2, 2);
	job_verdict(&j, ok, "NaN: a late one changes nothing, and a late worker gets the result NaN");
}

/* Workers that reduce integers where others reduce floats, in each order. */
static void test_types(enum way way)
{
	const int integers = SAINA_EXPONENT_INT, some[] = { integers, 7, -3, NAN_BLOCK };
	struct job j = job(3, way);
	bool ok;

	ok = ADDS_UP(0, integers, INT_MAX, integers, 1, integers, -5, integers, INT_MIN - 5u);
	job_verdict(&j, ok, "types: integers have an exact sum");
	ok = true;
	for (uint32_t i = 0; i < 64; i++) {
		int e[3] = { some[i & 3], some[i >> 2 & 3], some[i >> 4 & 3] };
		unsigned int mask = 0;
		struct result got;

		for (unsigned int w = 0; w < 3; w++) {
			mask |= (e[w] == integers) << w;
			send_value(&j, w, i + 1, e[w], 9);
		}
		ok &= answer(&j, i + 1, 0, &got);
		if (!mask || mask == 7)
			continue;
		ok &= got.exponent == NAN_BLOCK && got.v[0] == (int32_t)mask && !got.v[1] && !got.v[E - 1] &&
		      got.flags & SAINA_F_TYPES;
		send_pull(&j, 2, i + 1, 0);
		ok &= answer(&j, i + 1, 0, &got) && got.v[0] == (int32_t)mask && got.flags & SAINA_F_TYPES;
	}
	job_verdict(&j, ok, "types: a sum of integers and floats is none, and says who sent integers, in any order");
}

/* Each exponent, and the coarsest and the finest with it. */
static void test_range(enum way way)
{
	struct job j = job(3, way);
	bool ok = true;

	for (int e = SAINA_EXPONENT_MIN; e <= SAINA_EXPONENT_MAX; e++)
		ok &= ADDS_UP(e - SAINA_EXPONENT_MIN, SAINA_EXPONENT_MAX, 0, e, 0, SAINA_EXPONENT_MIN, 5,
			      SAINA_EXPONENT_MIN, 5);
	job_verdict(&j, ok && counted(&j, SAINA_C_EXPONENT, 0, 0, 0),
		    "exponents: gradients of all exponents are added, from the coarsest to the finest");
}

/*
 * One worker of four is 2^10 coarser than the others, in each of 200 rounds, and is the @place-th
 * to come.  Some elements of the others are always below its unit.
 */
static void test_persistent(enum way way, unsigned int place)
{
	struct job j = job(4, way);
	double total[E] = {}, exact[E] = {}, worst = 0;
	/* the sum so far is rounded once, then each later gradient */
	double bound = (place > 0) + (3 - place);
	struct rng r;
	bool ok = true;

	rng_seed(&r, place);
	for (uint32_t round = 0; ok && agrees && round < 200; round++) {
		struct result got;

		for (unsigned int n = 0; n < 4; n++) {
			int32_t v[E];

			for (int i = 0; i < E; i++) {
				v[i] = i < 8 ? 300 : i < 16 ? -300 : i < 24 ? 512 : i < 32 ? -1 :
				       (int32_t)rng_u64(&r) >> 2 >> rng_below(&r, 30);
				exact[i] += n == place ? v[i] : v[i] / 1024.;
			}
			send_v(&j, (n + 4 - place) % 4, round, 0, n == place ? 10 : 20, v);
		}
		ok = answer(&j, round, 0, &got) && got.exponent == 10 && got.mask == 15;
		for (int i = 0; ok && i < E; i++) {
			total[i] += got.v[i];
			if (fabs(total[i] - exact[i]) > worst)
				worst = fabs(total[i] - exact[i]);
			ok &= fabs(total[i] - exact[i]) <= bound / 2 * (round + 1);
		}
	}
	ok &= job_counter(&j, 0, SAINA_C_COARSENED) == 200;
	job_verdict(&j, ok, place ? place == 3 ? "200 rounds with a coarse worker that is last: half a unit for each rounding" :
				    "200 rounds with a coarse worker in between: half a unit for each rounding" :
				    "200 rounds with a coarse worker that is first: half a unit for each rounding");
	tap_note("%s, %s, coarse one at place %u: off by %.1f units at most", hook, ways[way], place, worst);
}

int main(int argc, char **argv)
{
	harness_open(&harness);
	if (argc > 1 && !strcmp(argv[1], "--tc")) {
		harness_use_tc(&harness);
		hook = "tc";
	}
	for (enum way way = 0; way < WAYS; way++) {
		tap_note("%s, %s:", hook, ways[way]);
		test_pairs(way);
		test_orders(way);
		test_nan(way);
		test_types(way);
		test_range(way);
		test_persistent(way, 0);
		test_persistent(way, 3);
		test_persistent(way, 1);
	}
	harness_close(&harness);
	return tap_done();
}
