// SPDX-License-Identifier: GPL-2.0-or-later
/* The state of a simulation: its files and memory, its simulated times, the test of its model. */
#include <stdlib.h>
#include <string.h>

#include "rng.h"
#include "train_sim_state.h"
#include "train_watch.h"

double sim_latency(const struct sim *s, uint32_t round, int w)
{
	const struct train_opts *o = s->t.opts;

	return o->net_ms * (0.5 + rng_unit(rng_at(o->seed, RNG_LATENCY, round, w)));
}

double sim_compute(const struct sim *s, uint32_t round, int w)
{
	const struct train_opts *o = s->t.opts;

	return o->base_ms * (1 + o->jitter * rng_unit(rng_at(o->seed, RNG_JITTER, round, w)));
}

int sim_open(struct sim *s, const struct train_opts *o)
{
	size_t bytes;
	char text[300];

	if (sim_policy_parse(o->policy, o->workers, &s->pol)) {
		fprintf(stderr,
			"saina-train: policy '%s' is unknown or has a value out of range (%d workers): use bsp, "
			"fastest:k=6[,late=drop], timeout:10ms,kmin=4, "
			"sfcd:k0=1,sth=0.5,cth=5[,kmax=,stride=,late=], "
			"external:k0=4[,noise=8], ssp:10, asp or grouped:g=4\n",
			o->policy, o->workers);
		return 2;
	}
	if (trainer_init(&s->t, o, text, sizeof(text))) {
		fprintf(stderr, "saina-train: %s\n", text);
		return 1;
	}
	bytes = s->t.mlp.params * sizeof(float);
	s->sum = calloc(1, bytes);
	s->sign = calloc(s->t.mlp.params, 1);
	if (!s->sum || !s->sign)
		goto memory;
	for (int w = 0; w < o->workers; w++) {
		s->w[w].g = malloc(bytes);
		s->w[w].residual = calloc(1, bytes);
		s->w[w].late = calloc(SIM_LATE, sizeof(*s->w[w].late));
		if (!s->w[w].g || !s->w[w].residual || !s->w[w].late)
			goto memory;
		snprintf(text, sizeof(text), "worker-%d.csv", w);
		if (o->out) {
			s->w[w].csv = train_create(o->out, text, TRAIN_CSV_HEAD);
			if (!s->w[w].csv)
				return 1;
		}
	}
	if (!o->out)
		return 0;
	s->acc = train_create(o->out, "accuracy.csv", "round,accuracy");
	s->events = train_create(o->out, "events.json", NULL);
	if (!s->acc || !s->events)
		return 1;
	if (train_record(&s->t, (s->t.mlp.params + SIM_PAYLOAD - 1) / SIM_PAYLOAD, SIM_PAYLOAD,
			 true))
		return 1;
	return 0;
memory:
	fprintf(stderr, "saina-train: no memory for %d models of %zu parameters\n", o->workers,
		s->t.mlp.params);
	return 1;
}

void sim_close(struct sim *s)
{
	for (int w = 0; w < TRAIN_WORKERS_MAX; w++) {
		struct sim_worker *sw = &s->w[w];

		free(sw->g);
		free(sw->residual);
		free(sw->late);
		free(sw->p);
		free(sw->v);
		free(sw->v2);
		free(sw->seen);
		if (sw->csv)
			fclose(sw->csv);
	}
	if (s->acc)
		fclose(s->acc);
	if (s->events)
		fclose(s->events);
	free(s->sum);
	free(s->sign);
	trainer_exit(&s->t);
}

void sim_test(struct sim *s, uint32_t round, double now, const float *p, bool last)
{
	const struct train_opts *o = s->t.opts;
	double a;

	if ((round + 1) % o->eval && !last)
		return;
	a = trainer_accuracy(&s->t, p, s->t.work);
	if (s->acc)
		fprintf(s->acc, "%u,%.6f\n", round, a);
	if (now - s->shown < o->progress_ms && !last)
		return;
	s->shown = now;
	printf("%-8s simulated %7.3f s  round %4u  loss %7.4f  accuracy %6.2f %%  k %d  "
	       "late %4.1f %%\n",
	       o->run, now / 1e3, round + 1, s->w[0].loss, a * 100, s->pol.k,
	       100.0 * s->late / s->offered);
}
