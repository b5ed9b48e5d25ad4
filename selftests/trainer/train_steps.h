/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Gradient descent under policies with steps (ssp, asp, grouped), where workers read each other's
 * updates in different orders.
 */
#ifndef EXAMPLES_TRAIN_STEPS_H
#define EXAMPLES_TRAIN_STEPS_H

#include "saina.h"
#include "train.h"

/**
 * struct train_steps - the model as its beginning and all that was read
 * @first: parameters at the beginning; NULL: the job has rounds
 * @total: sum of all gradients read. In double this is exact, so that models do not depend on the
 *	order of updates
 */
struct train_steps {
	float *first;
	double *total;
};

/* 0 or -ENOMEM. */
int train_steps_init(struct train_steps *st, const struct trainer *t);
void train_steps_exit(struct train_steps *st);
/*
 * Pushes @t->g, reads into it what all workers have pushed since the last read, and updates @t->p.
 * 0 or a negative errno.
 */
int train_steps_exchange(struct train_steps *st, struct saina *s, struct trainer *t, struct saina_step *step);

#endif /* EXAMPLES_TRAIN_STEPS_H */
