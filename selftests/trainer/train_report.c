// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of several runs, as text and as JSON, and the data of the picture.
 * The first run is what the others are compared with.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "train_read.h"

#define MEAN_ROUNDS 15

static double goodput(const struct train_run *run)
{
	return run->rounds * run->params * sizeof(float) / run->seconds;
}

/* How many times sooner than @first the target was reached; 0: unknown. */
static double speedup(const struct train_run *run, const struct train_run *first)
{
	if (run->target_s <= 0 || first->target_s <= 0)
		return 0;
	return first->target_s / run->target_s;
}

static void table(const struct train_run *run, int n, double target)
{
	printf("%-10s %12s %7s %7s %8s %7s %9s %7s %10s %8s %8s\n", "", "", "of", "", "final", "",
	       "per", "late", "goodput", "packets", "");
	printf("%-10s %9s %2.0f%% %7s %7s %8s %7s %9s %7s %10s %8s %8s\n", "run", "time to",
	       target * 100, "round", "faster", "accuracy", "rounds", "round", "share",
	       "per worker", "resent", "k");
	for (int i = 0; i < n; i++, run++) {
		const struct train_round *tr = run->round;
		char when[20] = "never", round[20] = "-", ratio[20] = "-", k[24];

		if (run->target_round >= 0) {
			snprintf(when, sizeof(when), "%.1f s", run->target_s);
			snprintf(round, sizeof(round), "%d", run->target_round + 1);
		}
		if (speedup(run, run - i) > 0)
			snprintf(ratio, sizeof(ratio), "%.2fx", speedup(run, run - i));
		if (run->steps)
			snprintf(k, sizeof(k), "-");
		else if (tr[0].k == tr[run->rounds - 1].k)
			snprintf(k, sizeof(k), "%u", tr[0].k);
		else
			snprintf(k, sizeof(k), "%u..%u", tr[0].k, tr[run->rounds - 1].k);
		printf("%-10s %12s %8s %7s %7.2f%% %7u %6.0f ms %6.1f%% %5.1f MB/s %8llu %8s\n",
		       run->name, when, round, ratio, run->final * 100, run->rounds,
		       run->seconds * 1e3 / run->rounds, run->late * 100, goodput(run) / 1e6,
		       (unsigned long long)run->resent, k);
	}
}

static json_t *run_json(const struct train_run *run, const struct train_run *first)
{
	json_t *j = json_deep_copy(run->info), *curve = json_array(), *sfcd = json_array();

	json_object_update_new(
		j, json_pack("{s:f, s:f, s:f, s:I, s:f, s:I, s:f}", "seconds", run->seconds,
			     "final_accuracy", run->final, "late_share", run->late,
			     "packets_resent", (json_int_t)run->resent, "goodput_bytes_per_s",
			     goodput(run), "k_last", (json_int_t)run->round[run->rounds - 1].k,
			     "reduce_ms_median", run->reduce_ms));
	if (run->target_round >= 0)
		json_object_update_new(j, json_pack("{s:f, s:i}", "target_s", run->target_s,
						    "target_round", run->target_round + 1));
	else
		json_object_update_new(j, json_pack("{s:n, s:n}", "target_s", "target_round"));
	json_object_set_new(j, "speedup",
			    speedup(run, first) > 0 ? json_real(speedup(run, first)) : json_null());
	if (run->identical >= 0)
		json_object_update_new(
			j,
			json_pack("{s:b, s:s, s:I, s:I, s:I, s:I, s:I}", "models_identical",
				  run->identical, "crc32", run->crc32, "packets_pulled",
				  (json_int_t)run->pulled, "saturated", (json_int_t)run->saturated,
				  "gradients_computed", (json_int_t)run->computed,
				  "gradients_abandoned", (json_int_t)run->abandoned,
				  "gradients_delayed", (json_int_t)run->delayed));
	for (uint32_t r = 0; r < run->rounds; r++) {
		const struct train_round *tr = &run->round[r];

		if (tr->accuracy >= 0)
			json_array_append_new(curve, json_pack("{s:i, s:f, s:f, s:f}", "round",
							       (int)r + 1, "s", tr->s, "loss",
							       tr->loss, "accuracy", tr->accuracy));
		if (tr->observed)
			json_array_append_new(sfcd,
					      json_pack("{s:i, s:f, s:i, s:f}", "round", (int)r + 1,
							"s", tr->s, "k", (int)tr->k, "flip_share",
							(double)tr->flips / tr->observed));
	}
	json_object_set_new(j, "curve", curve);
	json_object_set_new(j, "sfcd", sfcd);
	return j;
}

/* Share of flips over the last few rounds, up to round @r. */
static double flips_mean(const struct train_run *run, uint32_t r)
{
	uint64_t flips = 0, observed = 0;

	for (uint32_t i = r < MEAN_ROUNDS ? 0 : r - MEAN_ROUNDS + 1; i <= r; i++) {
		flips += run->round[i].flips;
		observed += run->round[i].observed;
	}
	return (double)flips / observed;
}

/* NAME.accuracy.dat: seconds, per cent.  NAME.sfcd.dat: seconds, k, share, mean share. */
static int picture(const struct train_run *run, const char *out)
{
	char path[4200];
	FILE *f;
	int bad;

	snprintf(path, sizeof(path), "%s/%s.accuracy.dat", out, run->name);
	f = fopen(path, "w");
	for (uint32_t r = 0; f && r < run->rounds; r++)
		if (run->round[r].accuracy >= 0)
			fprintf(f, "%.3f %.3f\n", run->round[r].s, run->round[r].accuracy * 100);
	bad = f ? fclose(f) : 1;
	if (!bad) {
		snprintf(path, sizeof(path), "%s/%s.sfcd.dat", out, run->name);
		f = fopen(path, "w");
		for (uint32_t r = 0; f && r < run->rounds; r++)
			if (run->round[r].observed)
				fprintf(f, "%.3f %u %.4f %.4f\n", run->round[r].s, run->round[r].k,
					(double)run->round[r].flips / run->round[r].observed,
					flips_mean(run, r));
		bad = f ? fclose(f) : 1;
	}
	if (bad)
		fprintf(stderr, "saina-train: cannot write %s: %s\n", path, strerror(errno));
	return bad ? 1 : 0;
}

static void identity(const struct train_run *run)
{
	if (run->identical == 1)
		printf("%s: the models of all %d workers are bit-identical (%zu bytes compared, "
		       "crc32 %s)\n",
		       run->name, run->workers, run->params * sizeof(float), run->crc32);
	else if (!run->identical)
		printf("%s: THE MODELS OF THE WORKERS DIFFER\n", run->name);
}

int train_report(const char *out, char **dirs, int n, double target)
{
	struct train_run *run = calloc(n, sizeof(*run));
	json_t *j = NULL, *runs;
	struct utsname host;
	char path[4200];
	int r = run ? 0 : 1;

	if (!run)
		fprintf(stderr, "saina-train: no memory for %d runs\n", n);
	for (int i = 0; !r && i < n; i++)
		r = train_run_read(&run[i], dirs[i], target);
	if (r)
		goto out;
	if (json_is_true(json_object_get(run->info, "simulated")))
		puts("simulated: the following figures are not measurements");
	table(run, n, target);
	runs = json_array();
	for (int i = 0; i < n; i++) {
		identity(&run[i]);
		json_array_append_new(runs, run_json(&run[i], run));
		r |= picture(&run[i], out);
		r |= !run[i].identical;
	}
	uname(&host);
	j = json_pack("{s:f, s:s, s:i, s:o}", "target_accuracy", target, "kernel", host.release,
		      "cpus", (int)sysconf(_SC_NPROCESSORS_ONLN), "runs", runs);
	snprintf(path, sizeof(path), "%s/result.json", out);
	if (json_dump_file(j, path, JSON_INDENT(2) | JSON_REAL_PRECISION(8))) {
		fprintf(stderr, "saina-train: cannot write %s: %s\n", path, strerror(errno));
		r = 1;
	}
out:
	json_decref(j);
	for (int i = 0; run && i < n; i++)
		train_run_free(&run[i]);
	free(run);
	return r;
}
