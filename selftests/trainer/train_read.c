// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A run's folder, read back.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train_read.h"
#include "train.h"

static int __attribute__((format(printf, 1, 2))) fail(const char *fmt, ...)
{
	va_list ap;

	fputs("saina-train: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return 1;
}

static FILE *open_in(const char *dir, const char *name, char *path, size_t size)
{
	snprintf(path, size, "%s/%s", dir, name);
	return fopen(path, "r");
}

static uint64_t u64(const json_t *j, const char *key)
{
	return json_integer_value(json_object_get(j, key));
}

static int info_read(struct train_run *run, const char *dir)
{
	char path[4200];
	json_error_t e;

	snprintf(path, sizeof(path), "%s/run.json", dir);
	run->info = json_load_file(path, 0, &e);
	if (!run->info)
		return fail("cannot read %s: %s", path, e.text);
	run->name = json_string_value(json_object_get(run->info, "run"));
	run->policy = json_string_value(json_object_get(run->info, "policy"));
	run->steps = run->policy && train_has_steps(run->policy);
	run->workers = u64(run->info, "workers");
	run->rounds = u64(run->info, "rounds");
	run->segments = u64(run->info, "segments");
	run->params = u64(run->info, "parameters");
	if (!run->name || !run->policy || run->workers < 1 || run->workers > TRAIN_WORKERS_MAX ||
	    !run->rounds || !run->segments)
		return fail("%s does not describe a run", path);
	run->round = calloc(run->rounds, sizeof(*run->round));
	if (!run->round)
		return fail("no memory for %u rounds", run->rounds);
	for (uint32_t r = 0; r < run->rounds; r++) {
		run->round[r].accuracy = -1;
		run->round[r].s = -1;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/*
 * Adds worker-@worker.csv to the rounds of @run.
 * @begun: in and out, the earliest begin of round 0, us; negative: none yet
 * @reduce, @reduces: in and out, the times of all-reduces that were in time, us, and how many
 */
static int worker_csv(struct train_run *run, const char *dir, int worker, double *begun,
		      double *reduce, size_t *reduces)
{
	double b, d, loss, us;
	unsigned int k, next, min, max, behind;
	uint64_t late, resent;
	char name[40], path[4200], line[300];
	uint32_t r, rows = 0;
	FILE *f;

	snprintf(name, sizeof(name), "worker-%d.csv", worker);
	f = open_in(dir, name, path, sizeof(path));
	if (!f)
		return fail("cannot read %s: %s", path, strerror(errno));
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	while (fgets(line, sizeof(line), f)) {
		struct train_round *tr;

		if (sscanf(line, "%u,%lf,%lf,%lf,%u,%u,%u,%u,%" SCNu64 ",%u,%" SCNu64 ",%lf", &r,
			   &b, &d, &loss, &k, &next, &min, &max, &late, &behind, &resent,
			   &us) != 12 ||
		    r != rows || r >= run->rounds) {
			fclose(f);
			return fail("%s: line %u does not describe a round", path, rows + 2);
		}
		tr = &run->round[rows++];
		if (!r && (*begun < 0 || b < *begun))
			*begun = b;
		/* in steps each has a time of its own; worker 0's model is tested */
		if (run->steps ? !worker : tr->s < 0 || d < tr->s)
			tr->s = d;
		if (loss >= 0) {
			tr->loss += loss;
			tr->losses++;
		}
		if (!late)
			reduce[(*reduces)++] = us;
		tr->k = k;
		tr->count_min = min;
		tr->count_max = max;
		tr->late_segments += late;
		run->resent += resent;
	}
	fclose(f);
	if (rows != run->rounds)
		return fail("%s ends after %u of %u rounds", path, rows, run->rounds);
	return 0;
}

static int rounds_read(struct train_run *run, const char *dir)
{
	double *reduce = malloc(sizeof(*reduce) * run->rounds * run->workers);
	double begun = -1;
	uint64_t late = 0;
	size_t n = 0;
	int r = 0;

	if (!reduce)
		return fail("no memory for %u rounds", run->rounds);
	for (int w = 0; w < run->workers && !r; w++)
		r = worker_csv(run, dir, w, &begun, reduce, &n);
	for (uint32_t i = 0; i < run->rounds; i++) {
		struct train_round *tr = &run->round[i];

		tr->s = (tr->s - begun) / 1e6;
		if (tr->losses)
			tr->loss /= tr->losses;
		late += tr->late_segments;
	}
	run->seconds = run->round[run->rounds - 1].s;
	run->late = (double)late / run->rounds / run->segments / run->workers;
	if (n) {
		qsort(reduce, n, sizeof(*reduce), compare);
		run->reduce_ms = reduce[n / 2] / 1e3;
	}
	free(reduce);
	return r;
}

static int accuracy_read(struct train_run *run, const char *dir, double target)
{
	char path[4200], line[100];
	uint32_t r;
	double a;
	FILE *f = open_in(dir, "accuracy.csv", path, sizeof(path));

	if (!f)
		return fail("cannot read %s: %s", path, strerror(errno));
	run->target_s = run->target_round = -1;
	run->final = -1;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%u,%lf", &r, &a) != 2)
			continue; /* the head */
		if (r >= run->rounds) {
			fclose(f);
			return fail("%s: there is no round %u", path, r);
		}
		run->round[r].accuracy = run->final = a;
		if (run->target_round < 0 && a >= target) {
			run->target_round = r;
			run->target_s = run->round[r].s;
		}
	}
	fclose(f);
	if (run->final < 0)
		return fail("%s contains no accuracy", path);
	return 0;
}

/* The file may be missing or incomplete: then the picture lacks SFCD's flips. */
static void events_read(struct train_run *run, const char *dir)
{
	char path[4200], line[2000];
	FILE *f = open_in(dir, "events.json", path, sizeof(path));

	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		json_t *j = json_loads(line, 0, NULL);
		const char *event = json_string_value(json_object_get(j, "event"));
		const char *job = json_string_value(json_object_get(j, "job"));
		uint64_t r = u64(j, "round");

		if (event && !strcmp(event, "round") && job && !strcmp(job, run->name) &&
		    r < run->rounds) {
			run->round[r].flips = u64(j, "flips");
			run->round[r].observed = u64(j, "observed");
		}
		json_decref(j);
	}
	fclose(f);
}

static void *model_read(const struct train_run *run, const char *dir, int worker)
{
	size_t bytes = run->params * sizeof(float);
	char name[40], path[4200];
	void *p = malloc(bytes + 1);
	FILE *f;

	snprintf(name, sizeof(name), "worker-%d.params", worker);
	f = open_in(dir, name, path, sizeof(path));
	/* one byte more is asked for, so that too long a file shows */
	if (p && (!f || fread(p, 1, bytes + 1, f) != bytes)) {
		free(p);
		p = NULL;
	}
	if (f)
		fclose(f);
	return p;
}

static int models_compare(struct train_run *run, const char *dir)
{
	void *first = model_read(run, dir, 0), *p;

	run->identical = 1;
	if (!first)
		return fail("%s/worker-0.params is missing or has the wrong length", dir);
	for (int w = 1; w < run->workers; w++) {
		p = model_read(run, dir, w);
		if (!p || memcmp(first, p, run->params * sizeof(float))) {
			run->identical = 0;
			fail("the model of worker %d is missing or differs from that of worker 0 (%s)", w, dir);
		}
		free(p);
	}
	free(first);
	return 0;
}

static int figures_read(struct train_run *run, const char *dir)
{
	const char *crc;
	char path[4200];
	json_error_t e;
	json_t *j;

	for (int w = 0; w < run->workers; w++) {
		snprintf(path, sizeof(path), "%s/worker-%d.json", dir, w);
		j = json_load_file(path, 0, &e);
		if (!j)
			return fail("cannot read %s: %s", path, e.text);
		run->pulled += u64(j, "pulled");
		run->saturated += u64(j, "saturated");
		run->computed += u64(j, "computed");
		run->abandoned += u64(j, "abandoned");
		run->delayed += u64(j, "delayed");
		crc = json_string_value(json_object_get(j, "crc32"));
		if (!w && crc)
			snprintf(run->crc32, sizeof(run->crc32), "%s", crc);
		json_decref(j);
	}
	return models_compare(run, dir);
}

int train_run_read(struct train_run *run, const char *dir, double target)
{
	int r;

	memset(run, 0, sizeof(*run));
	run->identical = -1;
	r = info_read(run, dir);
	if (!r)
		r = rounds_read(run, dir);
	if (!r)
		r = accuracy_read(run, dir, target);
	if (r)
		return r;
	events_read(run, dir);
	/* a simulation has one model */
	if (json_is_true(json_object_get(run->info, "simulated")))
		return 0;
	return figures_read(run, dir);
}

void train_run_free(struct train_run *run)
{
	free(run->round);
	json_decref(run->info);
}
