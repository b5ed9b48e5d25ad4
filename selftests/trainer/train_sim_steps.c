// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Steps: each worker pushes its gradient into the sums of the server, and reads them when it may
 * go on.  Each has a model of its own, which lacks what others have pushed since.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train_sim_steps.h"

/* Swaps the trainer's model with the worker's; the second call swaps them back. */
static void swap_model(struct trainer *t, struct sim_worker *w)
{
	float *p = t->p, *v = t->v, *v2 = t->v2;
	uint32_t steps = t->steps;

	t->p = w->p;
	t->v = w->v;
	t->v2 = w->v2;
	t->steps = w->steps;
	w->p = p;
	w->v = v;
	w->v2 = v2;
	w->steps = steps;
}

/* Worker @i reads the sums, applies what is new as a mean of all workers, and computes. */
static void step_begin(struct sim *s, int i)
{
	struct sim_worker *w = &s->w[i];
	const struct train_opts *o = s->t.opts;
	double now = w->free;

	swap_model(&s->t, w);
	if (w->pushed) {
		uint32_t step = w->pushed - 1;

		for (size_t n = 0; n < s->t.mlp.params; n++) {
			w->g[n] = (s->sum[n] - w->seen[n]) / o->workers;
			w->seen[n] = s->sum[n];
		}
		trainer_apply(&s->t, w->g);
		if (w->csv)
			fprintf(w->csv, "%u,%.0f,%.0f,%.6f,%d,%d,%d,%d,0,0,0,%.0f\n", step,
				w->begin * 1e3, now * 1e3, w->loss, o->workers, o->workers,
				o->workers, o->workers, (now - w->done) * 1e3);
		if (!i)
			sim_test(s, step, now, s->t.p, w->pushed == o->rounds);
	}
	w->ends = w->pushed == o->rounds;
	w->waits = w->ends;
	if (!w->ends) {
		w->begin = now;
		w->loss = trainer_gradient(&s->t, w->pushed, i, w->g);
		w->done = now + sim_compute(s, w->pushed, i) +
			  o->base_ms * train_delay(o, w->pushed, i);
		s->offered++;
	}
	swap_model(&s->t, w);
}

/* Worker @i has pushed at @now, in ms: lets the workers go on that need not wait any longer. */
static void release(struct sim *s, int i, double now)
{
	int n = s->t.opts->workers, g = s->pol.groups, in_group = 0, waiting = 0;
	uint32_t low = UINT32_MAX;

	for (int w = 0; w < n; w++) {
		low = s->w[w].pushed < low ? s->w[w].pushed : low;
		if (g && w % g == i % g) {
			in_group++;
			waiting += s->w[w].waits;
		}
	}
	for (int w = 0; w < n; w++) {
		struct sim_worker *sw = &s->w[w];

		if (!sw->waits || sw->ends)
			continue;
		if (g ? w % g != i % g || waiting < in_group : sw->pushed - low > s->pol.window)
			continue;
		sw->waits = false;
		/* a group's sums are read after the group is done: another exchange */
		sw->free = now + sim_latency(s, sw->pushed - 1, g ? i % g : w) * (g ? 2 : 1);
		sw->done = -1;
	}
}

/* The worker with the next event: its gradient is done, or it begins (done < 0). */
static int next_event(const struct sim *s, double *at)
{
	int found = -1;

	for (int w = 0; w < s->t.opts->workers; w++) {
		const struct sim_worker *sw = &s->w[w];
		double t = sw->done < 0 ? sw->free : sw->done;

		if (!sw->waits && (found < 0 || t < *at)) {
			found = w;
			*at = t;
		}
	}
	return found;
}

int sim_steps(struct sim *s)
{
	const struct train_opts *o = s->t.opts;
	size_t params = s->t.mlp.params;
	double at = 0;
	int i;

	for (int w = 0; w < o->workers; w++) {
		struct sim_worker *sw = &s->w[w];

		sw->p = malloc(params * sizeof(float));
		sw->v = calloc(params, sizeof(float));
		sw->v2 = calloc(params, sizeof(float));
		sw->seen = calloc(params, sizeof(float));
		if (!sw->p || !sw->v || !sw->v2 || !sw->seen)
			return -ENOMEM;
		memcpy(sw->p, s->t.p, params * sizeof(float));
		sw->done = -1;
	}
	while ((i = next_event(s, &at)) >= 0 && !(o->seconds && at > o->seconds * 1000)) {
		struct sim_worker *w = &s->w[i];

		if (w->done < 0) {
			step_begin(s, i);
			continue;
		}
		for (size_t n = 0; n < params; n++)
			s->sum[n] += w->g[n];
		w->pushed++;
		w->waits = true;
		release(s, i, at);
	}
	return 0;
}
