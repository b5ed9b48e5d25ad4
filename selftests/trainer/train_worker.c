// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A worker: compute a gradient, be delayed or not, all-reduce, apply.
 *
 * The time a gradient takes is emulated: it is really computed, and the rest
 * of base_ms slept, in slices between which the worker asks whether the round
 * has been decided without it; if so it gives the unfinished gradient up and
 * follows.  A delay, in contrast, stalls the worker for its whole length.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <jansson.h>

#include "monotonic.h"
#include "saina.h"
#include "train.h"
#include "train_watch.h"
#include "stop/stop.h"

/**
 * struct steps - gradient descent under policies with steps, where workers read each other's updates in different
 * orders: the model is its beginning minus the rate times all gradients read
 * @first: parameters at the beginning; NULL: the job has rounds
 * @total: sum of all gradients read.  In double this is exact, so that models do not depend on the order of updates
 */
struct steps {
	float *first;
	double *total;
};

struct worker {
	const struct train_opts *o;
	struct trainer t;
	struct steps steps;
	struct saina *s;
	struct saina_job_info info;
	struct train_watch *watch;
	FILE *csv;
	uint64_t late, segments; /* so far */
	uint64_t computed, abandoned, delayed;
};

static void sleep_until(uint64_t us)
{
	struct timespec ts = {us / 1000000, us % 1000000 * 1000};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR &&
	       !stop_asked())
		;
}

static int fail(const struct worker *w, const char *what, int r)
{
	fprintf(stderr, "saina-train: worker %d: %s: %s\n", w->o->worker, what,
		saina_strerror(w->s, r));
	return r;
}

/* In steps nothing is decided without this worker; with --finish it does not ask. */
static int decided(const struct worker *w)
{
	return w->o->finish || w->steps.first ? 0 : saina_decided(w->s);
}

/*
 * Computes this worker's gradient of the round into t.g.  Returns 1, 0 if the round was decided
 * before it was finished, or a negative errno.
 */
static int compute(struct worker *w, uint32_t round, double *loss)
{
	const struct train_opts *o = w->o;
	uint64_t begun = monotonic_us(), base = o->base_ms * 1000;
	double delay;
	int r = decided(w);

	if (r)
		return r < 0 ? r : 0;
	*loss = trainer_gradient(&w->t, round, o->worker, w->t.g);
	for (int i = o->finish ? TRAIN_SLICES : 1; i <= TRAIN_SLICES; i++) {
		sleep_until(begun + base * i / TRAIN_SLICES);
		r = decided(w);
		if (r) {
			w->abandoned += r > 0;
			return r < 0 ? r : 0;
		}
	}
	w->computed++;
	delay = train_delay(o, round, o->worker);
	if (delay > 0) {
		w->delayed++;
		sleep_until(begun + base + (uint64_t)(base * delay));
	}
	return 1;
}

/* Ended by a signal. */
static int ended(const struct worker *w, uint32_t round)
{
	fprintf(stderr, "saina-train: worker %d: ended by a signal in round %u\n", w->o->worker, round);
	return -EINTR;
}

/* Sums t.g and applies the mean. */
static int one_reduction(struct worker *w, uint32_t round, struct saina_call *call)
{
	struct saina_req *req;
	int r = saina_allreduce_start(w->s, w->t.g, w->t.mlp.params, SAINA_FLOAT32, SAINA_MEAN, &req);

	if (!r)
		r = stop_wait(w->s, req, call, STOP_MS);
	if (!r)
		r = saina_round_done(w->s);
	if (r)
		return r == -EINTR ? ended(w, round) : fail(w, "all-reduce failed", r);
	if (call->round != round) {
		fprintf(stderr, "saina-train: worker %d: the all-reduce returned round %u instead of round %u\n", w->o->worker,
			call->round, round);
		return -EPROTO;
	}
	trainer_apply(&w->t, w->t.g);
	return 0;
}

static int steps_init(struct steps *st, const struct trainer *t)
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

static void steps_exit(struct steps *st)
{
	free(st->first);
	free(st->total);
}

/*
 * Pushes @t->g, reads into it what all workers have pushed since the last read, and updates @t->p.
 * 0 or a negative errno.
 */
static int steps_exchange(struct steps *st, struct saina *s, struct trainer *t, struct saina_step *step)
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

/* The same in steps.  Sets what steps have of @call: they have no late gradients and no k. */
static int one_step(struct worker *w, uint32_t round, struct saina_call *call)
{
	struct saina_step step;
	int r = steps_exchange(&w->steps, w->s, &w->t, &step);

	if (r)
		return r == -EINTR ? ended(w, round) : fail(w, "step failed", r);
	call->rounds_behind = step.staleness;
	call->segments = w->info.segments;
	call->time_us = step.wait_us;
	return 0;
}

static int one_round(struct worker *w, uint32_t round)
{
	const struct train_opts *o = w->o;
	struct saina_call call = {.size = sizeof(call)};
	uint64_t begun = monotonic_us(), decided;
	double loss = -1;
	int r;

	r = compute(w, round, &loss);
	if (r < 0)
		return fail(w, "cannot ask whether the round is decided", r);
	if (!r)
		memset(w->t.g, 0, w->t.mlp.params * sizeof(*w->t.g));
	r = w->steps.first ? one_step(w, round, &call) : one_reduction(w, round, &call);
	if (r)
		return r;
	decided = monotonic_us();
	w->late += call.late_segments;
	w->segments += call.segments;
	if (w->csv)
		fprintf(w->csv,
			"%u,%" PRIu64 ",%" PRIu64 ",%.6f,%u,%u,%u,%u,%u,%u,%" PRIu64 ",%" PRIu64
			"\n",
			round, begun, decided, loss, call.k, call.next_k, call.count_min,
			call.count_max, call.late_segments, call.rounds_behind, call.resent,
			call.time_us);
	if (w->watch)
		train_watch_round(w->watch, round, loss, call.k, (double)w->late / w->segments,
				  (round + 1) % o->eval == 0 || round + 1 == o->rounds);
	return 0;
}

/*
 * All rounds have been decided by now, so a worker that lags can follow
 * without us from the results the aggregator keeps; but only the last few are
 * kept, so wait until all have finished (where the workers share a folder).
 */
static int linger(const struct worker *w)
{
	uint64_t end = monotonic_us() + w->o->linger_s * 1000000ull;
	char path[4200];
	FILE *f;

	if (!w->o->out)
		return 0;
	snprintf(path, sizeof(path), "%s/done.%d", w->o->out, w->o->worker);
	f = fopen(path, "w");
	if (!f || fclose(f)) {
		fprintf(stderr, "saina-train: cannot write %s: %s\n", path, strerror(errno));
		return -errno;
	}
	for (int i = 0; i < w->o->workers; i++) {
		snprintf(path, sizeof(path), "%s/done.%d", w->o->out, i);
		while (access(path, F_OK) && !stop_asked()) {
			if (monotonic_us() > end) {
				fprintf(stderr,
					"saina-train: worker %d: worker %d did not reach the end "
					"in %d s; see its messages\n",
					w->o->worker, i, w->o->linger_s);
				return -ETIMEDOUT;
			}
			sleep_until(monotonic_us() + 20000);
		}
	}
	return 0;
}

/* When all workers have made their steps, reads the remaining updates: all models are the same. */
static int last_step(struct worker *w)
{
	struct saina_call call;
	int r;

	if (!w->steps.first)
		return 0;
	r = linger(w);
	memset(w->t.g, 0, w->t.mlp.params * sizeof(*w->t.g));
	return r ?: one_step(w, w->o->rounds, &call);
}

/* Writes the model and the statistics of the run. */
static int record(struct worker *w, double seconds)
{
	const struct train_opts *o = w->o;
	struct saina_stats st = {.size = sizeof(st)};
	size_t n = w->t.mlp.params;
	char path[4200], crc[16];
	json_t *j;
	FILE *f;
	int r;

	if (!o->out)
		return 0;
	snprintf(path, sizeof(path), "%s/worker-%d.params", o->out, o->worker);
	f = fopen(path, "wb");
	r = f ? fwrite(w->t.p, sizeof(*w->t.p), n, f) != n : 1;
	if (!f || fclose(f) || r)
		goto bad;
	r = saina_get_stats(w->s, &st);
	if (r)
		return fail(w, "cannot read the statistics", r);
	snprintf(crc, sizeof(crc), "%08x", trainer_crc(&w->t));
	j = json_pack("{s:i, s:i, s:s, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
		      "s:I, s:b}",
		      "worker", o->worker, "rounds", (int)o->rounds, "crc32", crc, "seconds",
		      seconds, "computed", (json_int_t)w->computed, "abandoned",
		      (json_int_t)w->abandoned, "delayed", (json_int_t)w->delayed, "segments",
		      (json_int_t)st.segments, "late_segments", (json_int_t)st.late_segments,
		      "sent", (json_int_t)st.sent, "resent", (json_int_t)st.resent, "pulled",
		      (json_int_t)st.pulled, "results", (json_int_t)st.results, "saturated",
		      (json_int_t)st.saturated, "rejoins", (json_int_t)st.rejoins, "rtt_us",
		      (json_int_t)st.rtt_us, "relayed", w->info.relayed);
	snprintf(path, sizeof(path), "%s/worker-%d.json", o->out, o->worker);
	r = j ? json_dump_file(j, path, JSON_INDENT(2)) : -1;
	json_decref(j);
	if (!r)
		return 0;
bad:
	fprintf(stderr, "saina-train: cannot write %s: %s\n", path, strerror(errno));
	return -EIO;
}

static int join(struct worker *w)
{
	const struct train_opts *o = w->o;
	struct saina_opts so = {
		.size = sizeof(so),
		.aggregator = o->aggregator,
		.job = o->job,
		.worker = o->worker,
		.workers = o->workers,
		.token = o->token,
		.token_file = o->token_file,
		.elements = w->t.mlp.params,
		.start_timeout_ms = 60000,
		.join_timeout_ms = 20000,
	};
	char text[256];
	int r;

	r = stop_open(&w->s, &so, text, sizeof(text));
	if (r) {
		fprintf(stderr, "saina-train: worker %d: cannot join: %s\n", o->worker, text);
		return r;
	}
	w->info.size = sizeof(w->info);
	r = saina_info(w->s, &w->info);
	if (r)
		return fail(w, "cannot ask about the job", r);
	if (w->info.round) {
		fprintf(stderr,
			"saina-train: worker %d: the job is already at round %u, but this worker "
			"has only the initial model; delete the job and add it again\n",
			o->worker, w->info.round);
		return -ESTALE;
	}
	return 0;
}

int train_worker(const struct train_opts *o)
{
	struct worker w = {.o = o};
	char text[300];
	uint64_t begun;
	int r;

	stop_catch();
	r = trainer_init(&w.t, o, text, sizeof(text));
	if (r) {
		fprintf(stderr, "saina-train: %s\n", text);
		return 1;
	}
	if (o->out) {
		snprintf(text, sizeof(text), "worker-%d.csv", o->worker);
		w.csv = train_create(o->out, text, TRAIN_CSV_HEAD);
		r = w.csv ? 0 : -EIO;
	}
	if (!r && train_has_steps(o->policy))
		r = steps_init(&w.steps, &w.t);
	if (!r)
		r = join(&w);
	if (!r && !o->worker) {
		r = o->out ? train_record(&w.t, w.info.segments, w.info.payload, false) : 0;
		if (!r)
			w.watch = train_watch_start(&w.t);
	}
	begun = monotonic_us();
	for (uint32_t round = 0; !r && round < o->rounds; round++)
		r = stop_asked() ? ended(&w, round) : one_round(&w, round);
	if (!r)
		r = last_step(&w);
	if (!r)
		r = record(&w, (monotonic_us() - begun) / 1e6);
	if (w.watch && train_watch_stop(w.watch) && !r)
		r = -EIO;
	if (w.csv && fclose(w.csv) && !r) {
		fprintf(stderr, "saina-train: cannot write to %s: %s\n", o->out, strerror(errno));
		r = -EIO;
	}
	if (!r)
		r = linger(&w);
	if (w.s)
		saina_close(w.s);
	steps_exit(&w.steps);
	trainer_exit(&w.t);
	return r ? 1 : 0;
}
