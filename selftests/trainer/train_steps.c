// SPDX-License-Identifier: GPL-2.0-or-later
/* The model under policies with steps: its beginning minus the rate times all gradients read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stop/stop.h"
#include "train_steps.h"

int train_steps_init(struct train_steps *st, const struct trainer *t)
{
	st->first = malloc(t->mlp.params * sizeof(*st->first));
	st->total = calloc(t->mlp.params, sizeof(*st->total));
	if (!st->first || !st->total) {
		fprintf(stderr, "saina-train: no memory for the sums of %zu parameters\n",
			t->mlp.params);
		return -ENOMEM;
	}
	memcpy(st->first, t->p, t->mlp.params * sizeof(*st->first));
	return 0;
}

void train_steps_exit(struct train_steps *st)
{
	free(st->first);
	free(st->total);
}

int train_steps_exchange(struct train_steps *st, struct saina *s, struct trainer *t, struct saina_step *step)
{
	double scale = t->opts->rate / t->opts->workers;
	int r = saina_push(s, t->g, t->mlp.params, SAINA_FLOAT32);

	step->size = sizeof(*step);
	r = r ?: stop_read(s, step, STOP_MS);
	if (r)
		return r;
	for (size_t i = 0; i < t->mlp.params; i++) {
		st->total[i] += t->g[i];
		t->p[i] = st->first[i] - scale * st->total[i];
	}
	return 0;
}
