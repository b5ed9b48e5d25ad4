// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libtrain.so: the trainer and the controllers for train_sim.py, which loads it by ctypes.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/saina/dbw.h"
#include "../../tools/saina/deadline.h"
#include "rng.h"
#include "train.h"

/* train_sim.py declares these structures, too: where their members begin, and their sizes. */
#define AT(type, member) offsetof(struct type, member)
const size_t train_lib_layout[] = {
	AT(arrivals, workers), AT(arrivals, round_us), AT(arrivals, rounds), AT(arrivals, late), sizeof(struct arrivals),
	AT(dbw, k), AT(dbw, noise), AT(dbw, arrivals), sizeof(struct dbw),
	AT(dbw_trials, since), AT(dbw_trials, next), sizeof(struct dbw_trials),
	AT(deadline_setting, timeout_us), AT(deadline_setting, k_min), sizeof(struct deadline_setting),
	AT(deadline, workers), AT(deadline, noise), AT(deadline, set), AT(deadline, rounds), AT(deadline, rest_us), AT(deadline, elapsed_us),
	AT(deadline, came), AT(deadline, missed), AT(deadline, trial), AT(deadline, before), AT(deadline, trial_us), sizeof(struct deadline),
	AT(deadline_choice, set), AT(deadline_choice, round_us), AT(deadline_choice, count), AT(deadline_choice, rate), sizeof(struct deadline_choice),
};

struct train_lib {
	struct train_opts o;
	struct trainer t;
};

/* Parameters as in struct train_opts.  NULL, and a sentence in @error, on failure. */
struct train_lib *train_lib_open(const char *data, uint64_t seed, const int *hidden, int hiddens, int workers, int batch, double rate,
				 double momentum, bool adam, double delay_p, int stalls, char *error, size_t size)
{
	struct train_lib *l = calloc(1, sizeof(*l));

	if (!l || hiddens > MLP_LAYERS_MAX - 1) {
		snprintf(error, size, "%s", l ? "too many hidden layers" : "no memory");
		free(l);
		return NULL;
	}
	l->o = (struct train_opts){ .data = data, .seed = seed, .hiddens = hiddens, .workers = workers, .batch = batch, .rate = rate,
				    .momentum = momentum, .adam = adam, .delay_p = delay_p, .stalls = stalls };
	memcpy(l->o.hidden, hidden, hiddens * sizeof(*hidden));
	if (!trainer_init(&l->t, &l->o, error, size))
		return l;
	free(l);
	return NULL;
}

void train_lib_close(struct train_lib *l)
{
	trainer_exit(&l->t);
	free(l);
}

size_t train_lib_params(const struct train_lib *l)
{
	return l->t.mlp.params;
}

int train_lib_examples(const struct train_lib *l, bool test)
{
	return test ? l->t.test.n : l->t.train.n;
}

/* Out: the initial model. */
void train_lib_model(const struct train_lib *l, float *p)
{
	memcpy(p, l->t.p, l->t.mlp.params * sizeof(*p));
}

/* As trainer_gradient() and trainer_apply(), for a model of the caller's. */
double train_lib_gradient(struct train_lib *l, float *p, uint32_t round, int worker, float *g)
{
	struct trainer t = l->t;

	t.p = p;
	return trainer_gradient(&t, round, worker, g);
}

void train_lib_apply(struct train_lib *l, float *p, float *v, float *v2, uint32_t steps, const float *mean)
{
	struct trainer t = l->t;

	t.p = p;
	t.v = v;
	t.v2 = v2;
	t.steps = steps;
	trainer_apply(&t, mean);
}

double train_lib_accuracy(const struct train_lib *l, const float *p)
{
	return trainer_accuracy(&l->t, p, l->t.work);
}

double train_lib_delay(const struct train_lib *l, uint32_t round, int worker)
{
	return train_delay(&l->o, round, worker);
}

/* Uniform in [0, 1). */
double train_lib_random(uint64_t seed, enum rng_stream stream, uint32_t round, int worker)
{
	return rng_unit(rng_at(seed, stream, round, worker));
}
