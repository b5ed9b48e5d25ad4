// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whole jobs: several workers of libsaina, each a thread, against the stand-in
 * aggregator.  Every sum is checked by verify.c, every worker's results compared with
 * every other's.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "saina.h"
#include "lib_agg.h"
#include "verify.h"
#include "../lib/statement.h"

#define ROUNDS_MAX 64

struct worker {
	const struct job *job;
	int id;
	pthread_t thread;
	int ret;
	uint32_t rounds;
	uint64_t hash[ROUNDS_MAX];	/* of the result of each round */
	uint64_t late, wrong, unknown, right, resent, pulled, saturated;
	bool residual;
	char text[256];
};

struct job {
	struct agg *agg;
	const struct agg_conf *conf;
	enum saina_type type;
	enum contents contents;
	uint32_t rounds;
	uint64_t elements;
	unsigned int buckets;
	int straggler;			/* this worker naps before each round */
	unsigned int nap_ms;
	unsigned int think_ms;		/* all of them do */
	int leaver;			/* this one leaves after a round; -1 */
	bool wrong;			/* the aggregator adds wrongly, and it must be noticed */
};

static void quiet(void *arg, const char *line)
{
}

static void nap(unsigned int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000l };

	nanosleep(&t, NULL);
}

static uint64_t hash(const void *p, size_t n)
{
	const uint8_t *b = p;
	uint64_t h = 0xcbf29ce484222325ull;

	while (n--)
		h = (h ^ *b++) * 0x100000001b3ull;
	return h;
}

static int one_round(struct worker *w, struct saina *s, struct verify *v, uint32_t r, uint32_t *buf,
		     uint32_t payload)
{
	const struct job *j = w->job;
	enum saina_result_op op = j->type == SAINA_INT32 ? SAINA_SUM : SAINA_MEAN;
	struct saina_call call = { .size = sizeof(call) };
	struct saina_req *req[8];
	uint64_t each = (j->elements + j->buckets - 1) / j->buckets, first, n;
	uint32_t seg = 0;
	int ret;

	for (unsigned int b = 0; b < j->buckets; b++) {
		first = b * each;
		n = j->elements - first < each ? j->elements - first : each;
		verify_fill(v, r, (uint64_t)seg * payload, buf + first, n);
		ret = saina_allreduce_start(s, buf + first, n, j->type, op, &req[b]);
		if (ret)
			return ret;
		seg += (n + payload - 1) / payload;
	}
	for (unsigned int b = 0; b < j->buckets; b++) {
		ret = saina_wait(s, req[b], &call);
		if (ret)
			return ret;
		w->late += call.late_segments;
		w->resent += call.resent;
		w->saturated += call.saturated;
		assert_int_equal(call.round, r);
	}
	ret = saina_round_done(s);
	if (ret)
		return ret;

	seg = 0;
	for (unsigned int b = 0; b < j->buckets; b++) {
		first = b * each;
		n = j->elements - first < each ? j->elements - first : each;
		for (uint64_t i = 0; i < n; i += payload, seg++) {
			struct saina_segment g = { .size = sizeof(g) };

			assert_int_equal(saina_segment(s, seg, &g), 0);
			verify_segment(v, seg, &g, buf + first + i, n - i < payload ? n - i : payload);
		}
	}
	return 0;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	const struct job *j = w->job;
	struct saina_opts o = {
		.size = sizeof(o), .aggregator = agg_address(j->agg), .job = j->conf->job,
		.worker = w->id, .token = j->conf->token, .log = quiet, .timeout_ms = 20000,
	};
	struct saina_job_info info = { .size = sizeof(info) };
	struct saina_stats st = { .size = sizeof(st) };
	uint32_t *buf = malloc(4 * j->elements), *res, last = 0;
	struct verify v = { 0 };
	struct saina *s;

	w->ret = saina_open(&s, &o);
	if (w->ret) {
		snprintf(w->text, sizeof(w->text), "%s", saina_strerror(NULL, w->ret));
		goto out;
	}
	saina_info(s, &info);
	v = (struct verify){ .type = j->type, .contents = j->contents, .seed = j->conf->seed,
			     .workers = info.workers, .me = info.worker,
			     .segments = info.segments, .payload = info.payload };
	verify_init(&v, info.round);
	for (uint32_t r = info.round; r < j->rounds; r++) {
		if (w->id == j->straggler)
			nap(j->nap_ms);
		if (j->think_ms)
			nap(j->think_ms);
		w->ret = one_round(w, s, &v, r, buf, info.payload);
		if (w->ret) {
			snprintf(w->text, sizeof(w->text), "round %u: %s", r,
				 saina_strerror(s, w->ret));
			break;
		}
		w->hash[r] = hash(buf, 4 * j->elements);
		w->rounds++;
		last = r;
		if (w->id == j->leaver && r == 3)
			break;
	}
	/* Conservation: what was not counted is in the residual, all of it. */
	w->residual = true;
	res = malloc(4 * info.payload);
	for (uint32_t g = 0; j->buckets == 1 && !w->ret && g < info.segments; g++) {
		uint64_t first = (uint64_t)g * info.payload, n = j->elements - first;

		if (first >= j->elements)
			break;
		if (n > info.payload)
			n = info.payload;
		if (saina_residual(s, first, n, j->type, res) ||
		    !verify_residual(&v, last, g, res, n))
			w->residual = false;
	}
	free(res);
	w->wrong = v.wrong;
	w->unknown = v.unknown;
	w->right = v.right;
	if (v.wrong)
		snprintf(w->text, sizeof(w->text), "%s", v.what);
	saina_get_stats(s, &st);
	w->pulled = st.pulled;
	verify_free(&v);
	saina_close(s);
out:
	free(buf);
	return NULL;
}

static void run_job(const struct job *job, struct worker *w)
{
	unsigned int n = job->conf->workers;

	memset(w, 0, n * sizeof(*w));
	for (unsigned int i = 0; i < n; i++) {
		w[i].job = job;
		w[i].id = i;
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	for (unsigned int i = 0; i < n; i++)
		pthread_join(w[i].thread, NULL);
	for (unsigned int i = 0; i < n; i++) {
		if (job->wrong) {
			assert_int_equal(w[i].wrong, 1);
			assert_non_null(strstr(w[i].text, "round 2 segment 1 element 7"));
			continue;
		}
		if (w[i].ret || w[i].wrong)
			print_error("worker %u: %d: %s\n", i, w[i].ret, w[i].text);
		assert_int_equal(w[i].ret, 0);
		assert_int_equal(w[i].wrong, 0);
		assert_true(w[i].residual);
		assert_int_equal(w[i].unknown, 0);
		if ((int)i != job->leaver)
			assert_int_equal(w[i].rounds, job->rounds);
		for (uint32_t r = 0; r < w[i].rounds; r++)
			assert_int_equal(w[i].hash[r], w[0].hash[r]);
	}
}

static void simple(struct agg_conf c, struct job j, struct worker *w)
{
	j.conf = &c;
	if (!j.buckets)
		j.buckets = 1;
	if (!j.elements)
		j.elements = c.elements;
	j.agg = agg_start(&c);
	run_job(&j, w);
	agg_stop(j.agg);
}

#define NONE .straggler = -1, .leaver = -1

static void test_int32(void **state)
{
	struct worker w[4];

	simple((struct agg_conf){ .job = 1, .workers = 4, .payload = 256, .pool = 16, .ring = 4, .k = 4,
		.elements = 10000, .exponent = 20, .fast = true, .seed = 1 },
	       (struct job){ .type = SAINA_INT32, .rounds = 20, NONE }, w);
}

static void test_float32(void **state)
{
	struct worker w[3];

	simple((struct agg_conf){ .job = 2, .workers = 3, .payload = 352, .pool = 16, .ring = 4, .k = 3,
		.elements = 9999, .exponent = 18, .fast = true, .seed = 2, .token = "abc" },
	       (struct job){ .type = SAINA_FLOAT32, .rounds = 20, NONE }, w);
}

static void test_buckets(void **state)
{
	struct worker w[2];

	simple((struct agg_conf){ .job = 3, .workers = 2, .payload = 64, .pool = 8, .ring = 2, .k = 2,
		.elements = 4096, .exponent = 18, .seed = 3, .fast = true },
	       (struct job){ .type = SAINA_INT32, .rounds = 10, .buckets = 3, .elements = 3500,
			     NONE }, w);
}

static void test_loss_bsp(void **state)
{
	struct worker w[4];

	simple((struct agg_conf){ .job = 4, .workers = 4, .payload = 256, .pool = 16, .ring = 4, .k = 4,
		.elements = 10000, .exponent = 20, .fast = true, .seed = 4, .loss = 0.2,
		.reorder = 0.1 },
	       (struct job){ .type = SAINA_INT32, .rounds = 8, NONE }, w);
	assert_true(w[0].resent > 0);
}

static void test_loss_fastest(void **state)
{
	struct worker w[4];

	simple((struct agg_conf){ .job = 5, .workers = 4, .payload = 128, .pool = 32, .ring = 64, .k = 2,
		.elements = 6000, .exponent = 18, .fast = true, .seed = 5, .loss = 0.1,
		.reorder = 0.2 },
	       (struct job){ .type = SAINA_FLOAT32, .rounds = 20, .think_ms = 4, NONE }, w);
	assert_true(w[0].late + w[1].late + w[2].late + w[3].late > 0);
}

/* Others are rounds ahead; it must get all results, and lose no gradient. */
static void test_straggler(void **state)
{
	struct worker w[3];

	simple((struct agg_conf){ .job = 6, .workers = 3, .payload = 256, .pool = 16, .ring = 64, .k = 2,
		.elements = 5000, .exponent = 20, .fast = true, .seed = 6 },
	       (struct job){ .type = SAINA_INT32, .rounds = 30, .straggler = 2, .nap_ms = 20,
			     .leaver = -1 }, w);
	assert_true(w[2].late > 0);
}

static void test_drop_late(void **state)
{
	struct worker w[3];

	simple((struct agg_conf){ .job = 7, .workers = 3, .payload = 256, .pool = 16, .ring = 64, .k = 1,
		.elements = 3000, .exponent = 20, .fast = true, .seed = 7, .drop_late = true },
	       (struct job){ .type = SAINA_INT32, .rounds = 20, NONE }, w);
}

/* The others go on without it, though it was waited for. */
static void test_leave(void **state)
{
	struct worker w[3];

	simple((struct agg_conf){ .job = 8, .workers = 3, .payload = 256, .pool = 16, .ring = 4, .k = 3,
		.elements = 5000, .exponent = 20, .fast = true, .seed = 8 },
	       (struct job){ .type = SAINA_INT32, .rounds = 10, .straggler = -1, .leaver = 1 }, w);
	assert_int_equal(w[1].rounds, 4);
}

/*
 * Spikes, zeros, NaN, magnitudes that jump: as near to float64 as the first or any other round can be.
 * The sums of small whole numbers are exact.
 */
static void test_numbers(void **state)
{
	struct worker w[3];

	for (enum contents c = CONTENTS_SPIKE; c <= CONTENTS_WHOLE; c++) {
		simple((struct agg_conf){ .job = 9, .workers = 3, .payload = 256, .pool = 16, .ring = 64, .k = 2,
			.elements = 5000, .exponent = 40, .fast = true, .seed = 9, .loss = 0.05 },
		       (struct job){ .type = SAINA_FLOAT32, .contents = c, .rounds = 25, .think_ms = 4, NONE }, w);
		assert_true(w[0].late + w[1].late + w[2].late > 0);
		if (c != CONTENTS_NAN)
			assert_int_equal(w[0].saturated + w[1].saturated + w[2].saturated, 0);
	}
}

/* Would all of this notice one wrong sum?  (float32: what a float can show.) */
static void test_wrong_sum(void **state)
{
	struct worker w[2];

	for (int type = SAINA_INT32; type <= SAINA_FLOAT32; type++)
		simple((struct agg_conf){ .job = 11, .workers = 2, .payload = 64, .pool = 8, .ring = 4,
			.k = 2, .elements = 1000, .exponent = 20, .fast = true,
			.corrupt = type == SAINA_INT32 ? 1 : 4096 },
		       (struct job){ .type = type, .rounds = 5, .wrong = true, NONE }, w);
}

static void test_sizes(void **state)
{
	static const unsigned int payload[] = { 64, 128, 256, 352, 1024, 2048 };
	struct worker w[2];

	for (unsigned int i = 0; i < 6; i++)
		simple((struct agg_conf){ .job = 10, .workers = 2, .payload = payload[i], .pool = 4,
			.ring = 2, .k = 2, .elements = 10001, .exponent = 20, .fast = true,
			.seed = i },
		       (struct job){ .type = SAINA_INT32, .rounds = 4, NONE }, w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("jobs: int32 sums are exact", test_int32),
		statement("jobs: float32 sums are as near as their exponent allows", test_float32),
		statement("jobs: several calls for one round are summed", test_buckets),
		statement("jobs: one wrong sum is noticed by the checks of this test", test_wrong_sum),
		statement("jobs: every payload size is summed", test_sizes),
		statement("jobs: with losses, bsp: sums are exact", test_loss_bsp),
		statement("jobs: with losses, fastest-k: sums are exact", test_loss_fastest),
		statement("jobs: a straggler gets all results and loses no gradient", test_straggler),
		statement("jobs: late=drop: late gradients are dropped", test_drop_late),
		statement("jobs: the others go on when a worker leaves", test_leave),
		statement("jobs: spikes, zeros, NaN and magnitudes that jump are within 1e-6 of float64", test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
