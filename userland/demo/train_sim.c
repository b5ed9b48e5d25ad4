// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * --simulate: all workers of a run in one process, on a simulated clock and
 * without a network.  The gradients, the model and the rule by which k changes
 * are the real ones; who is in time follows from the delays alone, whole
 * gradients at a time.  For choosing a network and its rates; what it prints
 * are not measurements.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rng.h"
#include "train.h"
#include "train_watch.h"

#define STRIDE_DEFAULT 32
#define PAYLOAD	       256

/*
 * keep: of a late gradient, and of what was kept before, the share that is kept for the next
 * contribution: 1 is late=residual, 0 late=drop.  Between them is nothing that the data path has.
 */
struct sim_policy {
	bool sfcd, cth_k;
	double keep;
	int k, k_max, c_th, stride;
	double s_th;
};

struct sim_worker {
	double free;	    /* ms: when it can begin a round */
	double begin, done; /* of the present round */
	double loss;
	float *g;
	float *residual;
	FILE *csv;
};

struct sim {
	struct trainer t;
	struct sim_policy pol;
	struct sim_worker w[TRAIN_WORKERS_MAX];
	float *sum;
	uint8_t *sign;
	bool primed;
	int k, converged;
	uint64_t late, offered;
	FILE *acc, *events;
};

static int policy_parse(const char *text, int workers, struct sim_policy *p)
{
	char copy[128], *at, *word, *save;

	*p = (struct sim_policy){
		.keep = 1,
		.k = workers,
		.k_max = workers,
		.c_th = 5,
		.s_th = 0.5,
		.stride = STRIDE_DEFAULT,
	};
	if (!strcmp(text, "bsp"))
		return 0;
	snprintf(copy, sizeof(copy), "%s", text);
	at = strchr(copy, ':');
	if (!at)
		return -EINVAL;
	*at++ = 0;
	if (!strcmp(copy, "sfcd")) {
		p->sfcd = true;
		p->k = 1;
	} else if (strcmp(copy, "fastest")) {
		return -EINVAL;
	}
	for (word = strtok_r(at, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		char *value = strchr(word, '=');

		if (!value)
			return -EINVAL;
		*value++ = 0;
		if (!strcmp(word, "k") || !strcmp(word, "k0"))
			p->k = atoi(value);
		else if (!strcmp(word, "kmax"))
			p->k_max = atoi(value);
		else if (!strcmp(word, "sth"))
			p->s_th = atof(value);
		else if (!strcmp(word, "cth") && !strcmp(value, "k"))
			p->cth_k = true;
		else if (!strcmp(word, "cth"))
			p->c_th = atoi(value);
		else if (!strcmp(word, "stride"))
			p->stride = atoi(value);
		else if (!strcmp(word, "late"))
			p->keep = strcmp(value, "drop") != 0;
		else if (!strcmp(word, "keep"))
			p->keep = atof(value);
		else
			return -EINVAL;
	}
	return p->k < 1 || p->k > workers || p->c_th < 1 || p->stride < 1 ? -EINVAL : 0;
}

/* The rule of the data path: compare signs of the sums with the round before. */
static void sfcd(struct sim *s, uint32_t round)
{
	const struct sim_policy *p = &s->pol;
	uint64_t flips = 0, observed = 0;

	for (size_t seg = 0; seg < s->t.mlp.params; seg += PAYLOAD) {
		size_t end = seg + PAYLOAD < s->t.mlp.params ? seg + PAYLOAD : s->t.mlp.params;

		for (size_t i = seg; i < end; i += p->stride, observed++) {
			uint8_t sign = s->sum[i] < 0;

			flips += sign != s->sign[i];
			s->sign[i] = sign;
		}
	}
	if (s->events)
		fprintf(s->events,
			"{\"event\": \"round\", \"job\": \"%s\", \"round\": %u, \"k\": %d, "
			"\"flips\": %llu, \"observed\": %llu}\n",
			s->t.opts->run, round, s->k, s->primed ? (unsigned long long)flips : 0,
			s->primed ? (unsigned long long)observed : 0);
	if (s->primed && p->sfcd) {
		int reached = flips >= p->s_th * observed;

		s->converged = reached ? s->converged + 1 : s->converged ? s->converged - 1 : 0;
		if (s->converged >= (p->cth_k ? s->k : p->c_th)) {
			s->converged = 0;
			if (s->k < p->k_max)
				s->k++;
		}
	}
	s->primed = true;
}

/* When the k-th gradient is there. */
static double decision(const struct sim *s, int workers, int k)
{
	double at[TRAIN_WORKERS_MAX];

	for (int i = 0; i < workers; i++) {
		int j = i;

		for (; j > 0 && at[j - 1] > s->w[i].done; j--)
			at[j] = at[j - 1];
		at[j] = s->w[i].done;
	}
	return at[k - 1];
}

static double sim_round(struct sim *s, uint32_t round, double decided)
{
	const struct train_opts *o = s->t.opts;
	size_t params = s->t.mlp.params;
	int k = s->k, count = 0;
	double last, now;

	for (int w = 0; w < o->workers; w++) {
		struct sim_worker *sw = &s->w[w];

		/* up to a twentieth of base apart: real machines never tie */
		sw->begin = sw->free > decided ? sw->free : decided;
		sw->done =
			sw->begin + o->base_ms * (1 + train_delay(o->seed, o->delay_p, round, w) +
						  rng_unit(rng_at(o->seed, 99, round, w)) / 20);
		sw->loss = trainer_gradient(&s->t, round, w, sw->g);
	}
	last = decision(s, o->workers, k);
	now = last + o->net_ms;
	memset(s->sum, 0, params * sizeof(*s->sum));
	for (int w = 0; w < o->workers; w++) {
		struct sim_worker *sw = &s->w[w];
		bool in = sw->done <= last;

		s->offered++;
		if (in) {
			count++;
			for (size_t i = 0; i < params; i++) {
				s->sum[i] += sw->g[i] + sw->residual[i];
				sw->residual[i] = 0;
			}
			sw->free = now;
		} else if (sw->begin + o->base_ms > now) {
			/* learns that it lost while it computes, and stops */
			sw->free = sw->free > now ? sw->free : now;
			s->late++;
		} else {
			for (size_t i = 0; i < params; i++)
				sw->residual[i] = s->pol.keep * (sw->residual[i] + sw->g[i]);
			sw->free = sw->done > now ? sw->done : now;
			s->late++;
		}
		if (sw->csv)
			fprintf(sw->csv, "%u,%.0f,%.0f,%.6f,%d,%d,%d,%d,%d,0,0,%.0f\n", round,
				sw->begin * 1e3, now * 1e3, sw->loss, k, k, k, k,
				in ? 0 : (int)((params + PAYLOAD - 1) / PAYLOAD),
				(now - sw->done) * 1e3);
	}
	sfcd(s, round);
	for (size_t i = 0; i < params; i++)
		s->sum[i] /= count;
	trainer_apply(&s->t, s->sum);
	return now;
}

static int sim_open(struct sim *s, const struct train_opts *o)
{
	size_t bytes;
	char text[300];

	if (policy_parse(o->policy, o->workers, &s->pol)) {
		fprintf(stderr,
			"saina-train: policy '%s': write bsp, fastest:k=6[,late=drop] or "
			"sfcd:k0=1,sth=0.5,cth=5[,kmax=,stride=,late=drop,keep=0.5]\n",
			o->policy);
		return 2;
	}
	if (trainer_init(&s->t, o, text, sizeof(text))) {
		fprintf(stderr, "saina-train: %s\n", text);
		return 1;
	}
	bytes = s->t.mlp.params * sizeof(float);
	s->k = s->pol.k;
	s->sum = malloc(bytes);
	s->sign = calloc(s->t.mlp.params, 1);
	if (!s->sum || !s->sign)
		goto memory;
	for (int w = 0; w < o->workers; w++) {
		s->w[w].g = malloc(bytes);
		s->w[w].residual = calloc(1, bytes);
		if (!s->w[w].g || !s->w[w].residual)
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
	return train_record(&s->t, (s->t.mlp.params + PAYLOAD - 1) / PAYLOAD, PAYLOAD, true) ? 1
											     : 0;
memory:
	fprintf(stderr, "saina-train: no memory for %d models of %zu parameters\n", o->workers,
		s->t.mlp.params);
	return 1;
}

static void sim_close(struct sim *s)
{
	for (int w = 0; w < TRAIN_WORKERS_MAX; w++) {
		free(s->w[w].g);
		free(s->w[w].residual);
		if (s->w[w].csv)
			fclose(s->w[w].csv);
	}
	if (s->acc)
		fclose(s->acc);
	if (s->events)
		fclose(s->events);
	free(s->sum);
	free(s->sign);
	trainer_exit(&s->t);
}

int train_simulate(const struct train_opts *o)
{
	static struct sim s;
	double now = 0, shown = 0, a;
	int r;

	r = sim_open(&s, o);
	if (r)
		goto out;
	printf("simulated: %zu parameters, %d for training, %d for testing, %s\n", s.t.mlp.params,
	       s.t.train.n, s.t.test.n, o->policy);
	for (uint32_t round = 0; round < o->rounds; round++) {
		int k = s.k;

		now = sim_round(&s, round, now);
		if ((round + 1) % o->eval && round + 1 < o->rounds)
			continue;
		a = trainer_accuracy(&s.t, s.t.p, s.t.work);
		if (s.acc)
			fprintf(s.acc, "%u,%.6f\n", round, a);
		if (now - shown < o->progress_ms && round + 1 < o->rounds)
			continue;
		shown = now;
		printf("%-8s simulated %6.1f s  round %4u  loss %7.4f  accuracy %6.2f %%  k %d  "
		       "late %4.1f %%\n",
		       o->run, now / 1e3, round + 1, s.w[0].loss, a * 100, k,
		       100.0 * s.late / s.offered);
	}
out:
	sim_close(&s);
	return r;
}
