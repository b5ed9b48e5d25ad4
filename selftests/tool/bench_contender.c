// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A contender of `make bench' for bench_test.py. It needs no network, because it can compute the
 * input of the other ranks.
 *
 * 	bench-contender SOCKET RANK RANKS HOW
 *
 * HOW: right; wrong (the last rank returns a wrong last sum); stuck (an all-reduce does not
 * return); absent (does not start). Payload and header have the sizes of libsaina's.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../tools/bench/serve.h"

static const char *how;
static int rank, ranks;

static const char *prepare(const char *algorithm, float *buf, size_t n)
{
	return NULL;
}

static const char *reduce(float *buf, size_t n, enum op op)
{
	if (!strcmp(how, "stuck"))
		pause();
	for (size_t i = 0; i < n; i++)
		buf[i] = ranks * ((int)(i * 5 % 17) - 8) + ranks * (ranks - 1) / 2 * ((int)(i % 5) - 2);
	if (!strcmp(how, "wrong") && rank == ranks - 1)
		buf[n - 1]++;
	return NULL;
}

static void rest(void)
{
}

static void counts(uint64_t count[2])
{
	count[0] = 100;
	count[1] = 1;
}

int main(int argc, char **argv)
{
	const struct contender c = { prepare, reduce, rest, "payload=1408 header=48", counts };

	if (argc != 5)
		return 2;
	rank = atoi(argv[2]);
	ranks = atoi(argv[3]);
	how = argv[4];
	if (!strcmp(how, "absent"))
		return 5;
	return serve(&c, argv[1], rank, ranks);
}
