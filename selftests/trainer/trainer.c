// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A model, its data, and what is done to it round by round.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "rng.h"
#include "train.h"

#define EVAL_BATCH 64

bool train_has_steps(const char *policy)
{
	static const char *const names[] = { "ssp", "asp", "grouped" };
	size_t len = strcspn(policy, ":");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == len && !memcmp(names[i], policy, len))
			return true;
	return false;
}

int trainer_init(struct trainer *t, const struct train_opts *o, char *error, size_t size)
{
	int sizes[MLP_LAYERS_MAX + 1], n = 0, batch, r;

	memset(t, 0, sizeof(*t));
	t->opts = o;
	r = data_load(o->data, o->seed, &t->train, &t->test, error, size);
	if (r)
		return r;
	sizes[n++] = t->train.dim;
	for (int i = 0; i < o->hiddens; i++)
		sizes[n++] = o->hidden[i];
	sizes[n++] = t->train.classes;
	r = mlp_init(&t->mlp, sizes, n);
	if (r) {
		snprintf(error, size, "a layer has fewer than 1 or more than 65536 units");
		goto out;
	}
	batch = o->batch > EVAL_BATCH ? o->batch : EVAL_BATCH;
	t->work = mlp_work_new(&t->mlp, batch);
	t->order = calloc(t->train.n + 1, sizeof(*t->order));
	t->bx = malloc((size_t)o->batch * t->train.dim * sizeof(*t->bx));
	t->by = malloc(o->batch);
	t->p = malloc(t->mlp.params * sizeof(*t->p));
	t->v = calloc(t->mlp.params, sizeof(*t->v));
	t->v2 = calloc(t->mlp.params, sizeof(*t->v2));
	t->g = calloc(t->mlp.params, sizeof(*t->g));
	if (!t->work || !t->order || !t->bx || !t->by || !t->p || !t->v || !t->v2 || !t->g) {
		snprintf(error, size, "no memory for a model of %zu parameters", t->mlp.params);
		r = -ENOMEM;
		goto out;
	}
	mlp_seed(&t->mlp, t->p, o->seed);
	return 0;
out:
	trainer_exit(t);
	return r;
}

void trainer_exit(struct trainer *t)
{
	free(t->g);
	free(t->v2);
	free(t->v);
	free(t->p);
	free(t->by);
	free(t->bx);
	free(t->order);
	mlp_work_free(t->work);
	data_free(&t->test);
	data_free(&t->train);
	memset(t, 0, sizeof(*t));
}

double trainer_gradient(struct trainer *t, uint32_t round, int worker, float *g)
{
	const struct train_opts *o = t->opts;

	data_batch(&t->train, o->seed, round, worker, o->workers, o->batch, t->order, t->bx, t->by);
	return mlp_gradient(&t->mlp, t->p, t->bx, t->by, o->batch, g, t->work);
}

void trainer_apply(struct trainer *t, const float *mean)
{
	const struct train_opts *o = t->opts;

	t->steps++;
	if (o->adam)
		mlp_adam(t->p, t->v, t->v2, mean, t->mlp.params, o->rate, t->steps);
	else
		mlp_step(t->p, t->v, mean, t->mlp.params, o->rate, o->momentum);
}

double trainer_accuracy(const struct trainer *t, const float *p, struct mlp_work *wk)
{
	int right;

	mlp_evaluate(&t->mlp, p, t->test.x, t->test.y, t->test.n, &right, wk);
	return (double)right / t->test.n;
}

uint32_t trainer_crc(const struct trainer *t)
{
	return crc32(0, (const unsigned char *)t->p, t->mlp.params * sizeof(*t->p));
}

/*
 * Each round a bad period ends with a probability of 1/30, and a good one with 1/90.  Both follow
 * from one random number: below 1/90 the period changes whichever it is, from there to 1/30 it is
 * good afterwards.  So what was before the last number of the second kind does not matter.
 */
static bool bad_period(const struct train_opts *o, uint32_t round, int worker)
{
	bool bad = false;

	for (uint32_t r = round; r; r--) {
		double u = rng_unit(rng_at(o->seed, RNG_PERIOD, r, worker));

		if (u < 1 / 90.0)
			bad = !bad;
		else if (u < 1 / 30.0)
			break;
	}
	return bad;
}

double train_delay(const struct train_opts *o, uint32_t round, int worker)
{
	double u = rng_unit(rng_at(o->seed, RNG_DELAY_LEN, round, worker)), p = o->delay_p;

	switch (o->stalls) {
	case STALLS_EXPONENTIAL:
		return -log(1 - u);
	case STALLS_SLOW:
		return worker ? 0 : 3;
	case STALLS_TAIL:
		return 2 / 11.0 * (pow(1 - u, -1 / 1.5) - 1);
	case STALLS_PERIODS:
		p = bad_period(o, round, worker) ? 0.6 : 0.02;
		break;
	default:
		break;
	}
	return rng_unit(rng_at(o->seed, RNG_DELAY, round, worker)) < p ? 0.5 + 1.5 * u : 0;
}
