// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The pace of a run: the "computation" of a round, and why it ends.
 */
#include <errno.h>
#include <time.h>
#include "allreduce.h"

static double uniform(struct run *r)
{
	uint64_t z = (r->rng += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return ((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

uint64_t run_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ull + t.tv_nsec / 1000;
}

void run_pause(uint64_t us)
{
	struct timespec t = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };

	nanosleep(&t, NULL);
}

/* The "computation" of a round. */
void run_think(struct run *r)
{
	uint64_t us = r->a->delay_us, end, left;

	if (r->a->straggle > 0 && uniform(r) < r->a->straggle)
		us += r->a->delay_us * (0.5 + 1.5 * uniform(r));
	end = run_now_us() + us;
	while (!stop_asked() && (left = end - run_now_us()) <= us && left) {
		if (r->a->cancel && saina_decided(r->s) == 1)
			return;
		if (r->a->cancel && left > 1000)
			left = 1000;
		run_pause(left);
	}
}

const char *run_sentence(struct run *r, int err)
{
	return err == -EINTR ? "ended by a signal, before the others have finished it" :
			       saina_strerror(r->s, err);
}
