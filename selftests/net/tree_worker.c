// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A worker of a tree, which knows its rank among all workers of it, not only its number in its job.
 *
 * int32: the first element of each eight is a tag, 1 << rank, so the sum says of whom it is, each
 * gradient counted twice would show, and the other seven must be the sum of these workers'.  With more
 * workers than a tag has bits all must be in each sum.  float32: means, whose largest element is
 * 1.0 for all workers unless --mixed, so that all have one block scale; compared with those of
 * another run by the checksum, and with float64 means.
 *
 *	tree_worker AGGREGATOR JOB WORKER RANK RANKS ELEMENTS ROUNDS int32|float32|mixed LOG [EVERY]
 *
 * Of each EVERY (1) groups the sums of one are checked, but the tags of all: where time is measured, as
 * the check costs more than the sum.
 *
 * Prints one line of JSON; LOG gets "ROUND TIME_US NOW_MS" for each round.
 */
#include <err.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <saina.h>
#include "monotonic.h"

#define GROUP	 8  /* elements with one tag */
#define TAG_BITS 30 /* workers that one tag can tell apart */
#define TAGS	 2  /* of a group: its first elements */
#define PAYLOAD	 352

static int rank, ranks;
static size_t elements;
static bool tagged;
static size_t every_group = 1;

/* Of each rank in this round: element i is the upper bits of first + i * step. */
static struct { uint32_t first, step; } series[65536];
static volatile sig_atomic_t stop;

static uint32_t hash(uint32_t a, uint32_t b, uint32_t c)
{
	uint64_t x = a * 0x9e3779b97f4a7c15ull ^ b * 0xbf58476d1ce4e5b9ull ^ c * 0x94d049bb133111ebull;

	x ^= x >> 31;
	x *= 0xd6e8feb86659fd93ull;
	return x >> 32;
}

static void begin_round(uint32_t round)
{
	for (int who = 0; who < ranks; who++) {
		series[who].first = hash(who, round, 0);
		series[who].step = hash(who, round, 1) | 1;
	}
}

static int int_of(int who, size_t i)
{
	if (tagged && i % GROUP < TAGS)
		return who / TAG_BITS == (int)(i % GROUP) ? 1 << who % TAG_BITS : 0;
	return (int)((series[who].first + (uint32_t)i * series[who].step) >> 8) - (1 << 23);
}

static float float_of(int who, uint32_t round, size_t i, bool mixed)
{
	float x = (int)(hash(who, round, i) >> 8) / 16777216.f - .5f;

	if (mixed)
		return ldexpf(x, hash(who, round, i / PAYLOAD + 1000000) % 7);
	return i % PAYLOAD ? x : 1;
}

/* Groups whose sum is that of all workers, of some, and of no set of workers. */
struct verdict {
	unsigned long all, some, wrong;
};

static void verify_ints(const int *sum, struct verdict *v)
{
	uint64_t every = tagged ? (1ull << ranks) - 1 : 0, mask = every;

	for (size_t i = 0; i < elements; i += GROUP) {
		size_t end = i + GROUP < elements ? i + GROUP : elements;
		bool right = true;

		if (tagged)
			mask = (uint32_t)sum[i] | (uint64_t)(uint32_t)(end > i + 1 ? sum[i + 1] : 0) << TAG_BITS;
		for (size_t e = i + (tagged ? TAGS : 0); e < end && right && i / GROUP % every_group == 0; e++) {
			uint32_t expected = 0;

			for (int w = 0; w < ranks; w++)
				if (!tagged || mask >> w & 1)
					expected += int_of(w, e);
			right = expected == (uint32_t)sum[e];
		}
		if (!right || mask & ~every)
			v->wrong++;
		else if (mask == every)
			v->all++;
		else
			v->some++;
	}
}

/* The largest error of a mean, in units of the coarsest scale that a segment may have had. */
static double verify_floats(const float *mean, uint32_t round, bool mixed)
{
	double worst = 0;

	for (size_t first = 0; first < elements; first += PAYLOAD) {
		size_t end = first + PAYLOAD < elements ? first + PAYLOAD : elements;
		double largest = 0, unit;

		for (size_t i = first; i < end; i++)
			for (int w = 0; w < ranks; w++)
				largest = fmax(largest, fabs(float_of(w, round, i, mixed)));
		unit = exp2(ceil(log2(largest * ranks / 2147483647.) + 1));
		for (size_t i = first; i < end; i++) {
			double sum = 0;

			for (int w = 0; w < ranks; w++)
				sum += float_of(w, round, i, mixed);
			/* the float32 of the result itself is rounded, too */
			worst = fmax(worst, fabs(mean[i] - sum / ranks) / (unit + fabs(sum / ranks) * 0x1p-23));
		}
	}
	return worst;
}

static void on_signal(int sig)
{
	stop = 1;
}

static FILE *log_file;

static struct saina *open_job(char **argv)
{
	struct saina_opts opts = {.size = sizeof(opts), .aggregator = argv[1], .job_name = argv[2],
				  .worker = atoi(argv[3]), .join_timeout_ms = -1, .start_timeout_ms = -1,
				  .timeout_ms = 120000};
	struct saina *s;
	int ret = saina_open(&s, &opts);

	if (ret)
		errx(1, "rank %d: %s", rank, saina_strerror(NULL, ret));
	return s;
}

int main(int argc, char **argv)
{
	struct saina_job_info info = {.size = sizeof(info)};
	struct saina_call call = {.size = sizeof(call)};
	struct verdict v = {0};
	unsigned long crc = 0;
	bool ints, mixed;
	uint32_t round;
	double error = 0;
	void *buf;
	struct saina *s;
	int ret = 0, n, done = 0;

	if (argc != 10 && argc != 11)
		errx(2, "see the top of %s", __FILE__);
	if (argc == 11)
		every_group = atoi(argv[10]);
	rank = atoi(argv[4]);
	ranks = atoi(argv[5]);
	elements = atol(argv[6]);
	n = atoi(argv[7]);
	ints = !strcmp(argv[8], "int32");
	mixed = !strcmp(argv[8], "mixed");
	tagged = ranks <= TAGS * TAG_BITS;
	signal(SIGTERM, on_signal);
	log_file = fopen(argv[9], "w");
	buf = malloc(4 * elements);
	if (!log_file || !buf)
		err(1, "%s", argv[9]);
	s = open_job(argv);
	saina_info(s, &info);
	for (round = info.round; done < n && !stop; round++, done++) {
		uint64_t start;

		begin_round(round);
		for (size_t i = 0; i < elements; i++)
			if (ints)
				((int *)buf)[i] = int_of(rank, i);
			else
				((float *)buf)[i] = float_of(rank, round, i, mixed);
		start = monotonic_ns();
		ret = saina_allreduce(s, buf, elements, ints ? SAINA_INT32 : SAINA_FLOAT32,
				      ints ? SAINA_SUM_ONCE : SAINA_MEAN, &call);
		if (ret) {
			warnx("rank %d, round %u: %s", rank, round, saina_strerror(s, ret));
			break;
		}
		fprintf(log_file, "%u %lu %lu\n", round, (unsigned long)(monotonic_ns() - start) / 1000,
			(unsigned long)monotonic_ms());
		fflush(log_file);
		if (call.round != round)
			begin_round(call.round);
		round = call.round;
		if (ints)
			verify_ints(buf, &v);
		else
			error = fmax(error, verify_floats(buf, round, mixed));
		if (every_group == 1)
			crc = crc32(crc, buf, 4 * elements);
	}
	printf("{\"rank\":%d,\"rounds\":%d,\"all\":%lu,\"some\":%lu,\"wrong\":%lu,\"error\":%.3f,\"crc\":\"%08lx\"}\n",
	       rank, done, v.all, v.some, v.wrong, error, crc);
	saina_close(s);
	return ret || v.wrong;
}
