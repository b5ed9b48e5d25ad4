// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>
#include "sim.h"

#define SCALES	7	/* values are shifted by n for up to 2^n workers, so that no sum wraps */

static int32_t values[SCALES][SIM_VALUES + SAINA_ELEMS_MAX];
static int32_t pairs[SCALES][SIM_VALUES + SAINA_ELEMS_MAX];

/* Two int16 of all magnitudes in a word, and stretches in which one or both are zero. */
static void draw_pair(struct rng *r, unsigned int i)
{
	int16_t first = rng_u64(r), second = rng_u64(r);

	first >>= i / 512 % 8 == 5 ? 15 : rng_below(r, 16);
	second >>= i / 512 % 16 == 5 ? 15 : rng_below(r, 16);
	for (unsigned int n = 0; n < SCALES; n++)
		pairs[n][i] = SAINA_PAIR(first >> n, second >> n);
}

void sim_init(struct sim *w, struct harness *harness, uint64_t seed)
{
	struct rng r;

	if (!values[0][0]) {
		rng_seed(&r, 1);
		for (unsigned int i = 0; i < SIM_VALUES + SAINA_ELEMS_MAX; i++) {
			/* large, small, and stretches of zero, whose sign matters */
			values[0][i] = i / 512 % 16 == 5 ? 0 : rng_u64(&r) >> rng_below(&r, 32);
			for (unsigned int n = 1; n < SCALES; n++)
				values[n][i] = values[0][i] >> n;
			draw_pair(&r, i);
		}
		values[0][0] |= 1;
	}
	memset(w, 0, sizeof(*w));
	w->harness = harness;
	rng_seed(&w->rng, seed);
	w->loss_up = rng_below(&w->rng, 3) * 80;
	w->loss_down = rng_below(&w->rng, 3) * 80;
	w->dup = rng_below(&w->rng, 100);
	w->delay = rng_below(&w->rng, 60);
}

struct sim_job *sim_job_find(struct sim *w, unsigned int number)
{
	for (unsigned int i = 0; i < SIM_JOBS; i++)
		if (w->job[i].present && w->job[i].conf.job == number)
			return &w->job[i];
	return NULL;
}

static int in_range(int exponent)
{
	return exponent < SAINA_EXPONENT_MIN ? SAINA_EXPONENT_MIN :
	       exponent > SAINA_EXPONENT_MAX ? SAINA_EXPONENT_MAX : exponent;
}

/* An exponent for a slot with several of them, around @base; @h: random. */
static int mixed_exponent(int base, uint64_t h)
{
	static const int far[] = { 31, 32, 33, 200 };
	unsigned int dice = h % 1000;
	int sign = h >> 32 & 1 ? 1 : -1;

	if (dice < 450)
		return base;
	if (dice < 900)
		return in_range(base + sign * (int)(1 + (h >> 33) % 4));
	if (dice < 980)
		return in_range(base + sign * far[(h >> 33) % 4]);
	return sign < 0 ? SAINA_EXPONENT_MIN : SAINA_EXPONENT_MAX;
}

uint32_t sim_max_weight(const struct sim_job *j, unsigned int worker)
{
	uint64_t h = rng_mix(j->value_seed + 77 * worker);

	if ((int)worker == j->uplink)
		return 2 + h % 1000;
	return j->nodes && h % 3 ? 1 + (h >> 8) % 70 : h >> 8 & 1;
}

struct ledger_gradient sim_gradient(void *job, unsigned int worker, uint32_t round, uint32_t segment,
				    int lie)
{
	struct sim_job *j = job;
	uint64_t age = j->steady ? round >> 3 : round, slot, x, h;
	struct ledger_gradient said = { .exponent = SAINA_EXPONENT_MIN + (int)((round * 7 + segment / 64) % 254) };
	unsigned int scale = 0, dice;

	if (lie && j->liar != (int)worker)
		return (struct ledger_gradient){};
	slot = j->value_seed ^ (uint64_t)segment << 40 ^ age;
	x = slot ^ (uint64_t)worker << 32;
	if (lie)
		x = ~x;
	dice = rng_mix(slot + 1) % 1000;
	h = rng_mix(x + 2);
	if (dice >= 500) {
		said.exponent = mixed_exponent(said.exponent, h);
		/* keep most of the sums from wrapping: the ledger cannot judge wrapped ones */
		while (dice < 900 && 1u << scale < j->workers)
			scale++;
	}
	/* in some slots all send integers, in a few one of them sends floats */
	if (dice >= 400 && dice < 500 && j->conf.elem == SAINA_ELEM_INT32 && (dice < 490 || (h >> 40) % 4))
		said.exponent = SAINA_EXPONENT_INT;
	/* in some slots a few workers send NaN, in a few rounds all do */
	if ((dice >= 960 && (h >> 48) % 4 == 0) || rng_mix(j->value_seed ^ round) % 100 == 0)
		said.exponent = SAINA_EXPONENT_NAN;
	/* by reference a worker has none: see sim_job_create() */
	if (sim_max_weight(j, worker) > 1)
		said.weight = rng_mix(x + 3) % sim_max_weight(j, worker);
	said.pairs = j->conf.elem == SAINA_ELEM_INT16;
	said.v = (said.pairs ? pairs[scale] : values[scale]) + (rng_mix(x) & (SIM_VALUES - 1));
	return said;
}

const int32_t *sim_unread_values(void)
{
	return values[0];
}

bool sim_spoil_exponent(const struct sim_job *j, int8_t *e)
{
	if (j->conf.elem != SAINA_ELEM_INT16)
		return false;
	*e = SAINA_EXPONENT_INT;
	return true;
}
