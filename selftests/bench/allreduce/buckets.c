// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The rounds of DistributedDataParallel, from C, for selftests/bench/bench-ddp: starts the buckets one
 * after the other, waits for each, and closes the round.
 *
 *	bench-buckets ELEMENTS...	the environment names the job: saina_opts_env()
 *
 * Prints "ready" when the job runs.  Then each line of the standard input is a number of rounds;
 * the answer is a line with the median microseconds of a round, and the microseconds of processor
 * time a round.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "saina.h"

#define BUCKETS_MAX	64
#define ROUNDS_MAX	100000

static struct saina *saina;
static float *bucket[BUCKETS_MAX];
static size_t elements[BUCKETS_MAX];
static int buckets;

static double now_us(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void check(int ret)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "bench-buckets: %s\n", saina_strerror(saina, ret));
	exit(1);
}

static void no_memory(void)
{
	fprintf(stderr, "bench-buckets: out of memory\n");
	exit(1);
}

static void round_run(void)
{
	struct saina_req *req[BUCKETS_MAX];

	for (int b = 0; b < buckets; b++)
		check(saina_allreduce_start(saina, bucket[b], elements[b], SAINA_FLOAT32,
					    SAINA_MEAN, &req[b]));
	for (int b = 0; b < buckets; b++)
		check(saina_wait(saina, req[b], NULL));
	check(saina_round_done(saina));
}

static void rounds_run(long n)
{
	double *took = calloc(n, sizeof(*took)), cpu = now_us(CLOCK_PROCESS_CPUTIME_ID);

	if (!took)
		no_memory();
	for (long r = 0; r < n; r++) {
		double began = now_us(CLOCK_MONOTONIC);

		round_run();
		took[r] = now_us(CLOCK_MONOTONIC) - began;
	}
	cpu = now_us(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	qsort(took, n, sizeof(*took), by_size);
	printf("%.1f %.1f\n", took[n / 2], cpu / n);
	fflush(stdout);
	free(took);
}

int main(int argc, char **argv)
{
	struct saina_opts opts = { .size = sizeof(opts) };
	char line[32];
	int ret;

	if (argc < 2 || argc > 1 + BUCKETS_MAX)
		goto usage;
	for (; buckets < argc - 1; buckets++) {
		elements[buckets] = strtoul(argv[1 + buckets], NULL, 10);
		if (!elements[buckets])
			goto usage;
		bucket[buckets] = calloc(elements[buckets], sizeof(float));
		if (!bucket[buckets])
			no_memory();
		for (size_t k = 0; k < elements[buckets]; k++)
			bucket[buckets][k] = (float)(k % 101) / 101 - 0.5f;
	}
	ret = saina_opts_env(&opts);
	check(ret ? ret : saina_open(&saina, &opts));
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		long n = strtol(line, NULL, 10);

		if (n < 1 || n > ROUNDS_MAX)
			break;
		rounds_run(n);
	}
	saina_close(saina);
	return 0;
usage:
	fprintf(stderr, "usage: bench-buckets ELEMENTS... (up to %d buckets; started by selftests/bench/bench-ddp)\n",
		BUCKETS_MAX);
	return 2;
}
