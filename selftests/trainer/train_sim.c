// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * --simulate: all workers of a run in one process, on a simulated clock and
 * without a network.  The gradients, the model and the rule by which k changes
 * are the real ones; who is in time follows from the delays alone, whole
 * gradients at a time.  For choosing a network and its rates; what it prints
 * are not measurements.
 */
#include <math.h>
#include <string.h>

#include "train_sim_steps.h"

/* Compares signs of the sums with the round before, as the data path does. */
static void count_flips(struct sim *s, struct sim_seen *seen)
{
	const struct sim_policy *p = &s->pol;
	uint64_t flips = 0, observed = 0;

	for (size_t seg = 0; seg < s->t.mlp.params; seg += SIM_PAYLOAD) {
		size_t end = seg + SIM_PAYLOAD;

		if (end > s->t.mlp.params)
			end = s->t.mlp.params;
		for (size_t i = seg; i < end; i += p->stride, observed++) {
			uint8_t sign = s->sum[i] < 0;

			flips += sign != s->sign[i];
			s->sign[i] = sign;
		}
	}
	seen->flips = s->primed ? flips : 0;
	seen->observed = s->primed ? observed : 0;
	s->primed = true;
	if (s->events)
		fprintf(s->events,
			"{\"event\": \"round\", \"job\": \"%s\", \"round\": %u, \"k\": %d, "
			"\"flips\": %llu, \"observed\": %llu}\n",
			s->t.opts->run, seen->round, s->pol.k, (unsigned long long)seen->flips,
			(unsigned long long)seen->observed);
}

/* When the round is complete: the k-th gradient is there, or the time is over. */
static double decision(const struct sim *s)
{
	const struct sim_policy *p = &s->pol;
	double at[TRAIN_WORKERS_MAX], over = INFINITY;

	for (int i = 0; i < p->workers; i++) {
		int j = i;

		for (; j > 0 && at[j - 1] > s->w[i].done; j--)
			at[j] = at[j - 1];
		at[j] = s->w[i].done;
	}
	if (p->timeout_ms)
		over = fmax(at[0] + p->timeout_ms, at[p->k_min - 1]);
	return fmin(at[p->k - 1], over);
}

static void add(float *to, const float *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] += from[i];
}

/* Adds the worker's gradient, and what is kept of earlier ones, to the sum.  How many they are. */
static int contribute(struct sim *s, uint32_t round, int w)
{
	struct sim_worker *sw = &s->w[w];
	size_t params = s->t.mlp.params;
	int n = sw->kept + 1;

	sw->loss = trainer_gradient(&s->t, round, w, sw->g);
	add(s->sum, sw->g, params);
	if (s->pol.fresh) {
		for (int i = 0; i < sw->kept; i++) {
			trainer_gradient(&s->t, sw->late[i], w, sw->g);
			add(s->sum, sw->g, params);
		}
	} else if (sw->kept) {
		add(s->sum, sw->residual, params);
		memset(sw->residual, 0, params * sizeof(float));
	}
	sw->kept = 0;
	return n;
}

/* A gradient that was finished, but late. */
static void keep(struct sim *s, uint32_t round, int w)
{
	struct sim_worker *sw = &s->w[w];

	if (!s->pol.keep)
		return;
	if (s->pol.fresh) {
		if (sw->kept < SIM_LATE)
			sw->late[sw->kept++] = round;
		return;
	}
	sw->loss = trainer_gradient(&s->t, round, w, sw->g);
	for (size_t i = 0; i < s->t.mlp.params; i++)
		sw->residual[i] = s->pol.keep * (sw->residual[i] + sw->g[i]);
	sw->kept++;
}

/*
 * A worker that is not in the sum: when does it begin the next round?  It has the result at
 * @known.  As train_worker.c: it asks before it computes, TRAIN_SLICES times while it does, and
 * not in a stall.
 */
static double lose(struct sim *s, uint32_t round, int w, double known)
{
	const struct train_opts *o = s->t.opts;
	struct sim_worker *sw = &s->w[w];
	double slice = (sw->finish - sw->begin) / TRAIN_SLICES;

	s->late++;
	if (o->finish || known > sw->finish) {
		keep(s, round, w);
		return fmax(sw->done, known);
	}
	sw->done = INFINITY; /* no gradient comes */
	if (known <= sw->begin)
		return sw->begin;
	return sw->begin + slice * ceil((known - sw->begin) / slice);
}

static void record(struct sim_worker *sw, uint32_t round, int k, int next_k, int count, bool in,
		   double known, size_t params)
{
	double sent = fmin(sw->done, known);

	fprintf(sw->csv, "%u,%.0f,%.0f,%.6f,%d,%d,%d,%d,%d,0,0,%.0f\n", round, sw->begin * 1e3,
		known * 1e3, sw->loss, k, next_k, count, count,
		in ? 0 : (int)((params + SIM_PAYLOAD - 1) / SIM_PAYLOAD), (known - sent) * 1e3);
}

/* Returns when the first worker had the result, ms. */
static double sim_round(struct sim *s, uint32_t round)
{
	const struct train_opts *o = s->t.opts;
	double arrival[TRAIN_WORKERS_MAX], known[TRAIN_WORKERS_MAX], first = INFINITY;
	struct sim_seen seen = {.round = round, .arrival_ms = arrival};
	size_t params = s->t.mlp.params;
	bool in[TRAIN_WORKERS_MAX];
	int k = s->pol.k, count = 0, gradients = 0;

	for (int w = 0; w < o->workers; w++) {
		struct sim_worker *sw = &s->w[w];

		sw->begin = sw->free;
		sw->finish = sw->begin + sim_compute(s, round, w);
		sw->done = sw->finish + o->base_ms * train_delay(o, round, w);
		sw->loss = -1;
	}
	seen.decided_ms = decision(s);
	memset(s->sum, 0, params * sizeof(*s->sum));
	for (int w = 0; w < o->workers; w++) {
		struct sim_worker *sw = &s->w[w];

		s->offered++;
		known[w] = seen.decided_ms + sim_latency(s, round, w);
		in[w] = sw->done <= seen.decided_ms;
		if (in[w]) {
			count++;
			gradients += contribute(s, round, w);
			sw->free = known[w];
			first = fmin(first, known[w]);
		} else {
			sw->free = lose(s, round, w, known[w]);
		}
		known[w] = sw->free;
		arrival[w] = sw->done;
	}
	count_flips(s, &seen);
	if (s->pol.next)
		s->pol.next(&s->pol, &seen);
	for (int w = 0; w < o->workers; w++)
		if (s->w[w].csv)
			record(&s->w[w], round, k, s->pol.k, count, in[w], known[w], params);
	for (size_t i = 0; i < params; i++)
		s->sum[i] /= s->pol.mean_all ? gradients : count;
	trainer_apply(&s->t, s->sum);
	return first;
}

static void sim_rounds(struct sim *s)
{
	const struct train_opts *o = s->t.opts;
	double now;

	for (uint32_t round = 0; round < o->rounds; round++) {
		bool last;

		now = sim_round(s, round);
		last = round + 1 == o->rounds || (o->seconds && now > o->seconds * 1000);
		sim_test(s, round, now, s->t.p, last);
		if (last)
			break;
	}
}

int train_simulate(const struct train_opts *o)
{
	static struct sim s;
	int r;

	r = sim_open(&s, o);
	if (!r) {
		printf("simulated: %zu parameters, %d examples for training, %d for testing, %s\n",
		       s.t.mlp.params, s.t.train.n, s.t.test.n, o->policy);
		if (!s.pol.steps)
			sim_rounds(&s);
		else if (sim_steps(&s)) {
			fprintf(stderr, "saina-train: no memory for %d models\n", o->workers);
			r = 1;
		}
	}
	sim_close(&s);
	return r;
}
