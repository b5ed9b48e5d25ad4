// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Progress of a run, and the test of its model, in a thread of its own.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <jansson.h>

#include "monotonic.h"
#include "train_watch.h"

#define TEST_BATCH 64
#define COPIES_MAX 32

/* A model to be tested. */
struct copy {
	struct copy *next;
	uint32_t round;
	float p[];
};

struct newest {
	uint32_t rounds; /* done */
	double loss, late;
	unsigned int k;
};

struct train_watch {
	const struct trainer *t;
	pthread_t thread;
	pthread_mutex_t lock; /* held briefly: the thread has low priority, and the worker must not wait for it */
	pthread_cond_t wake;  /* the thread */
	pthread_cond_t taken; /* whoever waits for room in the queue */
	bool stop;
	struct copy *first, **last; /* the queue */
	int copies;
	struct newest newest;
	/* of the thread alone */
	struct mlp_work *work;
	double accuracy;
	FILE *csv;
	bool tty;
	uint64_t begun; /* ns */
};

/* Seconds since the start. */
static double elapsed(const struct train_watch *w)
{
	return (monotonic_ns() - w->begun) / 1e9;
}

static void progress(const struct train_watch *w, const struct newest *n, bool last)
{
	double s = elapsed(w);
	char acc[32] = "      -";

	if (!n->rounds)
		return;
	if (w->accuracy >= 0)
		snprintf(acc, sizeof(acc), "%6.2f%%", w->accuracy * 100);
	printf("%s%-8s %5.1f s  round %4u/%u  loss %6.4f  test accuracy %s  k %2u  late %4.1f%%  "
	       "%6.1f MB/s%s%s",
	       w->tty ? "\r" : "", w->t->opts->run, s, n->rounds, w->t->opts->rounds, n->loss, acc,
	       n->k, n->late * 100, n->rounds * w->t->mlp.params * sizeof(float) / s / 1e6,
	       w->tty ? "\033[K" : "\n", w->tty && last ? "\n" : "");
	fflush(stdout);
}

/* Called with the lock held, returns with it held. */
static void test_first(struct train_watch *w)
{
	struct copy *c = w->first;

	w->first = c->next;
	if (!w->first)
		w->last = &w->first;
	pthread_mutex_unlock(&w->lock);
	w->accuracy = trainer_accuracy(w->t, c->p, w->work);
	if (w->csv)
		fprintf(w->csv, "%u,%.6f\n", c->round, w->accuracy);
	free(c);
	pthread_mutex_lock(&w->lock);
	w->copies--;
	pthread_cond_signal(&w->taken);
}

static void *watch(void *arg)
{
	struct train_watch *w = arg;
	int period = w->t->opts->progress_ms;
	double next = period / 1e3, now;
	struct newest n;

	/* On Linux this is of the calling thread only.  A failure does no harm. */
	setpriority(PRIO_PROCESS, 0, 15);
	pthread_mutex_lock(&w->lock);
	while (!w->stop || w->first) {
		struct timespec until;
		uint64_t at;

		if (w->first)
			test_first(w);
		now = elapsed(w);
		if (period && now >= next) {
			n = w->newest;
			pthread_mutex_unlock(&w->lock);
			progress(w, &n, false);
			pthread_mutex_lock(&w->lock);
			next = now + period / 1e3;
		}
		if (w->stop || w->first)
			continue;
		if (!period) {
			pthread_cond_wait(&w->wake, &w->lock);
			continue;
		}
		at = w->begun + (uint64_t)(next * 1e9);
		until = (struct timespec){at / 1000000000, at % 1000000000};
		pthread_cond_timedwait(&w->wake, &w->lock, &until);
	}
	n = w->newest;
	pthread_mutex_unlock(&w->lock);
	if (period)
		progress(w, &n, true);
	return NULL;
}

static void watch_free(struct train_watch *w)
{
	mlp_work_free(w->work);
	free(w);
}

struct train_watch *train_watch_start(const struct trainer *t)
{
	struct train_watch *w = calloc(1, sizeof(*w));
	pthread_condattr_t mono;

	if (!w)
		goto memory;
	w->t = t;
	w->accuracy = w->newest.loss = -1;
	w->last = &w->first;
	w->tty = isatty(STDOUT_FILENO);
	w->work = mlp_work_new(&t->mlp, TEST_BATCH);
	if (!w->work)
		goto memory;
	if (t->opts->out) {
		w->csv = train_create(t->opts->out, "accuracy.csv", "round,accuracy");
		if (!w->csv)
			goto out;
	}
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&mono);
	pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &mono);
	pthread_cond_init(&w->taken, &mono);
	pthread_condattr_destroy(&mono);
	w->begun = monotonic_ns();
	if (pthread_create(&w->thread, NULL, watch, w)) {
		fprintf(stderr, "saina-train: cannot start a thread\n");
		goto out;
	}
	return w;
memory:
	fprintf(stderr, "saina-train: no memory to test the model\n");
out:
	if (w) {
		if (w->csv)
			fclose(w->csv);
		watch_free(w);
	}
	return NULL;
}

static struct copy *copy_new(const struct trainer *t, uint32_t round)
{
	struct copy *c = malloc(sizeof(*c) + t->mlp.params * sizeof(*c->p));

	if (!c)
		return NULL;
	c->next = NULL;
	c->round = round;
	memcpy(c->p, t->p, t->mlp.params * sizeof(*c->p));
	return c;
}

void train_watch_round(struct train_watch *w, uint32_t round, double loss, unsigned int k,
		       double late, bool test)
{
	struct copy *c = test ? copy_new(w->t, round) : NULL;

	if (test && !c)
		fprintf(stderr, "saina-train: no memory to test the model of round %u\n", round);
	pthread_mutex_lock(&w->lock);
	w->newest.rounds = round + 1;
	if (loss >= 0)
		w->newest.loss = loss;
	w->newest.k = k;
	w->newest.late = late;
	if (c) {
		/* Wait if the tests do not keep up, so that memory is bounded. */
		while (w->copies == COPIES_MAX)
			pthread_cond_wait(&w->taken, &w->lock);
		w->copies++;
		*w->last = c;
		w->last = &c->next;
		pthread_cond_signal(&w->wake);
	}
	pthread_mutex_unlock(&w->lock);
}

int train_watch_stop(struct train_watch *w)
{
	int r = 0;

	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	if (w->csv && fclose(w->csv)) {
		fprintf(stderr, "saina-train: cannot write %s/accuracy.csv: %s\n", w->t->opts->out,
			strerror(errno));
		r = -EIO;
	}
	watch_free(w);
	return r;
}

FILE *train_create(const char *dir, const char *name, const char *head)
{
	char path[4200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	if (!f)
		fprintf(stderr, "saina-train: cannot write %s: %s\n", path, strerror(errno));
	else if (head)
		fprintf(f, "%s\n", head);
	return f;
}

int train_record(const struct trainer *t, uint32_t segments, uint32_t payload, bool simulated)
{
	const struct train_opts *o = t->opts;
	char path[4200];
	json_t *j;
	int r;

	j = json_pack(
		"{s:s, s:s, s:i, s:i, s:I, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:I, s:i, s:i, s:b}",
		"run", o->run, "policy", o->policy, "workers", o->workers, "rounds", (int)o->rounds,
		"parameters", (json_int_t)t->mlp.params, "segments", (int)segments, "payload",
		(int)payload, "batch", o->batch, "rate", o->rate, "momentum", o->momentum,
		"base_ms", o->base_ms, "delay_p", o->delay_p, "seed", (json_int_t)o->seed, "train",
		t->train.n, "test", t->test.n, "simulated", simulated);
	snprintf(path, sizeof(path), "%s/run.json", o->out);
	r = j ? json_dump_file(j, path, JSON_INDENT(2)) : -1;
	json_decref(j);
	if (!r)
		return 0;
	fprintf(stderr, "saina-train: cannot write %s: %s\n", path, strerror(errno));
	return -EIO;
}
