// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>
#include "world.h"

static int32_t values[WORLD_VALUES + SAINA_ELEMS_MAX];

void world_init(struct world *w, struct rig *rig, uint64_t seed)
{
	struct rng r;

	if (!values[0]) {
		rng_seed(&r, 1);
		for (unsigned int i = 0; i < WORLD_VALUES + SAINA_ELEMS_MAX; i++)
			/* large, small, and stretches of zero, whose sign matters */
			values[i] = i / 512 % 16 == 5 ? 0 : rng_u64(&r) >> rng_below(&r, 32);
		values[0] |= 1;
	}
	memset(w, 0, sizeof(*w));
	w->rig = rig;
	rng_seed(&w->rng, seed);
	w->loss_up = rng_below(&w->rng, 3) * 80;
	w->loss_down = rng_below(&w->rng, 3) * 80;
	w->dup = rng_below(&w->rng, 100);
	w->hold = rng_below(&w->rng, 60);
}

struct sim_job *world_job(struct world *w, unsigned int number)
{
	for (unsigned int i = 0; i < WORLD_JOBS; i++)
		if (w->job[i].present && w->job[i].conf.job == number)
			return &w->job[i];
	return NULL;
}

const int32_t *world_value(void *job, unsigned int worker, uint32_t round, uint32_t segment,
			   int lie)
{
	struct sim_job *j = job;
	uint64_t x = j->value_seed ^ (uint64_t)segment << 40 ^ (uint64_t)worker << 32;

	if (lie && j->liar != (int)worker)
		return NULL;
	x ^= j->steady ? round >> 3 : round;
	if (lie)
		x = ~x;
	return values + (rng_mix(x) & (WORLD_VALUES - 1));
}

const int32_t *world_unread_values(void)
{
	return values;
}

int8_t world_exponent(uint32_t round, uint32_t segment)
{
	return (int)((round * 7 + segment / 64) % 200) - 100;
}
