// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The "computation" of a round: a sleep, as long as the options or a file say.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "allreduce.h"

#define THINK_US_MAX 1000000000ul

bool think_open(struct run *r)
{
	const char *path = r->a->think_from;
	FILE *f = path ? fopen(path, "r") : NULL;
	size_t room = 0;
	unsigned long us;
	int got = EOF;

	if (path && !f)
		fprintf(stderr, "saina-allreduce: --think-from %s: %s\n", path, strerror(errno));
	while (f && (got = fscanf(f, "%lu", &us)) == 1 && us <= THINK_US_MAX) {
		if (r->thinks == room) {
			uint32_t *more = realloc(r->think_us, 4 * (room += 1024));

			if (!more) {
				fprintf(stderr, "saina-allreduce: out of memory\n");
				fclose(f);
				return false;
			}
			r->think_us = more;
		}
		r->think_us[r->thinks++] = us;
	}
	if (f && (got != EOF || !r->thinks)) {
		fprintf(stderr, "saina-allreduce: --think-from %s: entry %zu must be a number from 0 to %lu microseconds\n",
			path, r->thinks + 1, THINK_US_MAX);
		fclose(f);
		return false;
	}
	return !f ? !path : !fclose(f);
}

static double uniform(struct run *r)
{
	uint64_t z = (r->rng += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return ((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static uint64_t next_us(struct run *r)
{
	uint64_t us = r->a->delay_us;

	if (r->thinks)
		return r->think_us[r->thought++ % r->thinks];
	if (r->a->straggle > 0 && uniform(r) < r->a->straggle)
		us += r->a->delay_us * (0.5 + 1.5 * uniform(r));
	return us;
}

void run_think(struct run *r)
{
	uint64_t begin = monotonic_us(), us = next_us(r), end = begin + us, left;

	while (!stop_asked() && (left = end - monotonic_us()) <= us && left) {
		if (r->a->cancel && saina_decided(r->s) == 1)
			break;
		if (r->a->cancel && left > 1000)
			left = 1000;
		run_pause(left);
	}
	r->thinking_us += monotonic_us() - begin;
}
