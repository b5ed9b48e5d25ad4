// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Cost of a packet in each branch of the XDP program, compared with programs that do less,
 * all interleaved in one run.
 *
 * Method.  BPF_PROG_TEST_RUN repeats a program on one frame, but a second gradient of the
 * same worker is a duplicate.  So a driver program writes the headers of the next message
 * (next segment, then next worker) into the frame and tail-calls the program under test.
 * All packets of a batch take the same branch; the counters of the data path must confirm
 * that at the end, else nothing is reported.  The kernel measures the times.  The driver's
 * time, measured before an empty program, is subtracted.  Some batches cannot be long (a
 * slot is stored to and completed once a round): they are sent in a short and a long part,
 * and the difference counts, so that the cold start cancels out.  Each cycle runs
 * everything once, in turn; figures are medians over the cycles.
 *
 * A round of a job (64 workers, k = 63):
 *   store      worker 0, all segments
 *   accumulate workers 1..61
 *   duplicate  worker 0 again, 16 times
 *   complete   worker 62: result written in place, copied to the ring, checksums, round
 *              state updated, redirect looked up (payload > 352: copied to the agent)
 *   late       worker 63, 16 times: result read from the ring, headers, checksums
 * Two more rounds have other exponents than that of worker 0:
 *   mixed, finer     workers 1..61, each the same finer one: the input is shifted
 *   mixed, complete  worker 62, the same
 *   mixed, coarser   workers 1..61, each a coarser one than the worker before: the sum is shifted
 * Foreign traffic keeps no state: the same frame is repeated without the driver, and so is
 * the empty program that it is compared with.
 */
#include <argp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include "harness.h"
#include "report.h"

#define SIZES	6
#define SLOTS	256		/* sent to in turn, of up to 352 elements */
#define SLOTS_BIG 64		/* of more */
#define PLAIN	20000		/* repeats of a frame without driver */
#define SAME	.10		/* tolerance of "the same cost" on a machine without noise */
#define FEW	16		/* segments of a job whose segments are measured one by one */

static const char method[] =
	"ns per packet, medians; a driver program writes the headers (BPF_PROG_TEST_RUN), its own time is subtracted";

static const unsigned int elems[SIZES] = { 64, 128, 256, 352, 1024, 2048 };

/* Everything measured for one payload size. */
struct size {
	struct bench_job job;
	struct sample branch[BRANCHES];
	struct sample driver;		/* into the empty program */
	struct sample parse, add, empty, foreign;
	struct sample finer, coarser, mixed_complete;
};

/* Jobs of 256 elements that differ in one thing. */
enum variant { THREE_WORKERS, TWO_WORKERS, BIG_POOL, ALL_SLOTS, UNTIMED, TIMEOUT, VARIANTS };

struct variant_samples {
	struct bench_job job;
	struct sample branch[BRANCHES];
};

/* A job of FEW segments.  Arrival times are taken of segment 0 only; the difference to
 * segment 1 is their cost. */
struct arrival {
	struct bench_job job;
	struct sample first, second;
};

static void measure(struct harness *r, struct bench_job *j, struct sample *branch,
		    enum bench_branch b)
{
	sample_add(&branch[b], harness_run_branch(r, j, b, BENCH_SAINA));
}

static void cycle_mixed(struct harness *r, struct size *s)
{
	struct bench_job *j = &s->job;

	j->finer = SAINA_COARSE_BITS;
	harness_run_branch(r, j, BRANCH_STORE, BENCH_SAINA);
	sample_add(&s->finer, harness_run_branch(r, j, BRANCH_ACCUMULATE, BENCH_SAINA));
	sample_add(&s->mixed_complete, harness_run_branch(r, j, BRANCH_COMPLETE, BENCH_SAINA));
	harness_check_shifted(r, j);
	harness_round_done(j);
	j->finer = 0;
	j->coarsens = 1;
	harness_run_branch(r, j, BRANCH_STORE, BENCH_SAINA);
	sample_add(&s->coarser, harness_run_branch(r, j, BRANCH_ACCUMULATE, BENCH_SAINA));
	harness_run_branch(r, j, BRANCH_COMPLETE, BENCH_SAINA);
	harness_check_coarser(r, j);
	harness_round_done(j);
	j->coarsens = 0;
}

static void cycle_size(struct harness *r, struct size *s, unsigned int i)
{
	unsigned int n = elems[i];

	sample_add(&s->empty, harness_run_plain(r, r->empty, n, true, PLAIN));
	sample_add(&s->foreign, harness_run_plain(r, saina_dp_prog_fd(r->dp), n, true, PLAIN));
	sample_add(&s->driver, harness_run_branch(r, &s->job, BRANCH_ACCUMULATE, BENCH_EMPTY));
	sample_add(&s->parse, harness_run_branch(r, &s->job, BRANCH_ACCUMULATE, BENCH_PARSE));
	measure(r, &s->job, s->branch, BRANCH_STORE);
	sample_add(&s->add, harness_run_branch(r, &s->job, BRANCH_ACCUMULATE, BENCH_ADD_64 + i));
	for (int b = BRANCH_ACCUMULATE; b < BRANCHES; b++)
		measure(r, &s->job, s->branch, b);
	harness_round_done(&s->job);
	cycle_mixed(r, s);
}

static void cycle_variant(struct harness *r, struct variant_samples *v, bool accumulates)
{
	measure(r, &v->job, v->branch, BRANCH_STORE);
	if (accumulates)
		measure(r, &v->job, v->branch, BRANCH_ACCUMULATE);
	measure(r, &v->job, v->branch, BRANCH_COMPLETE);
	harness_round_done(&v->job);
}

static void cycle_arrival(struct harness *r, struct arrival *a)
{
	harness_run_branch(r, &a->job, BRANCH_STORE, BENCH_SAINA);
	sample_add(&a->first, harness_run_accumulate(r, &a->job, BENCH_SAINA, 0, 1));
	sample_add(&a->second, harness_run_accumulate(r, &a->job, BENCH_SAINA, 1, 2));
	harness_run_accumulate(r, &a->job, BENCH_SAINA, 2, FEW);
	harness_run_branch(r, &a->job, BRANCH_COMPLETE, BENCH_SAINA);
	harness_round_done(&a->job);
}

static double net(const struct sample *batch, const struct size *s)
{
	return sample_net(batch, &s->driver, &s->empty);
}

/* By how much two equal figures may differ in this run. */
static double noise(const struct sample *a, const struct sample *b, double ns)
{
	double x = sample_spread(a) / ns, y = sample_spread(b) / ns;

	x = x > y ? x : y;
	return x > SAME ? x : SAME;
}

static void report_size(struct report *out, const struct size *s, unsigned int n)
{
	static const char *const name[BRANCHES] = { "store", "accumulate", "duplicate", "complete",
						    "late" };
	double empty = sample_median(&s->empty);
	double add = net(&s->add, s);

	report_row(out, n, "empty program", empty, add);
	report_row(out, n, "foreign", sample_median(&s->foreign), add);
	report_row(out, n, "program: parse, drop", net(&s->parse, s), add);
	report_row(out, n, "program: parse, lock, add", add, add);
	for (int b = 0; b < BRANCHES; b++)
		report_row(out, n, name[b], net(&s->branch[b], s), add);
	report_row(out, n, "mixed, finer", net(&s->finer, s), add);
	report_row(out, n, "mixed, coarser", net(&s->coarser, s), add);
	report_row(out, n, "mixed, complete", net(&s->mixed_complete, s), add);
}

/* Cost of mixed exponents relative to equal ones. */
static void verdict_mixed(struct report *out, const struct size *s, unsigned int n)
{
	double acc = net(&s->branch[BRANCH_ACCUMULATE], s);
	double done = net(&s->branch[BRANCH_COMPLETE], s);
	const struct {
		const char *what;
		double ratio;
	} row[] = {
		{ "mixed, finer / accumulate", net(&s->finer, s) / acc },
		{ "mixed, coarser / accumulate", net(&s->coarser, s) / acc },
		{ "mixed, complete / complete", net(&s->mixed_complete, s) / done },
	};
	char what[64];

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		snprintf(what, sizeof(what), "%s, %u elements", row[i].what, n);
		report_verdict(out, what, row[i].ratio, 1.6);
	}
}

static void report_all(struct report *out, const struct size *size,
		       const struct variant_samples *v, const struct arrival *arrival)
{
	static const struct {
		const char *what;
		enum variant variant;
		enum bench_branch branch;
	} row[] = {
		{ "accumulate, 3 workers", THREE_WORKERS, BRANCH_ACCUMULATE },
		{ "accumulate, pool 4096", BIG_POOL, BRANCH_ACCUMULATE },
		{ "same, 4.4 MB of slots in use", ALL_SLOTS, BRANCH_ACCUMULATE },
		{ "complete, 2 workers", TWO_WORKERS, BRANCH_COMPLETE },
		{ "accumulate, no time-out", UNTIMED, BRANCH_ACCUMULATE },
		{ "accumulate, time-out", TIMEOUT, BRANCH_ACCUMULATE },
	};
	double first = net(&arrival->first, &size[2]), second = net(&arrival->second, &size[2]);
	const struct size *s = &size[2];
	double empty = sample_median(&s->empty);
	double add = net(&s->add, s);
	double acc = net(&s->branch[BRANCH_ACCUMULATE], s);
	double done = net(&s->branch[BRANCH_COMPLETE], s);
	double var[VARIANTS][BRANCHES];

	report_method(out, method, "x parse-lock-add");
	for (unsigned int i = 0; i < SIZES; i++)
		report_size(out, &size[i], elems[i]);
	for (int i = 0; i < VARIANTS; i++)
		for (int b = 0; b < BRANCHES; b++)
			var[i][b] = net(&v[i].branch[b], s);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		report_row(out, 256, row[i].what, var[row[i].variant][row[i].branch], add);
	report_row(out, 256, "accumulate, segment 0 alone", first, add);
	report_row(out, 256, "accumulate, segment 1 alone", second, add);
	report_verdict(out, "accumulate / (parse, lock, add), 256 elements", acc / add, 1.6);
	verdict_mixed(out, &size[2], elems[2]);
	verdict_mixed(out, &size[3], elems[3]);
	report_verdict(out, "foreign / empty program", sample_median(&s->foreign) / empty, 2);
	report_verdict(out, "accumulate with a time-out / without",
		       var[TIMEOUT][BRANCH_ACCUMULATE] / var[UNTIMED][BRANCH_ACCUMULATE], 1.05);
	report_verdict(out, "accumulate with arrival times / without, 256 segments",
		       1 + (first - second) / SLOTS / acc, 1.05);
	report_verdict(out, "the same, 16 segments", 1 + (first - second) / FEW / second, 1.05);
	/* with two workers the second packet completes: there is no accumulate */
	report_equal(out, "accumulate with 3 and 64 workers",
		     var[THREE_WORKERS][BRANCH_ACCUMULATE], acc,
		     noise(&v[THREE_WORKERS].branch[BRANCH_ACCUMULATE],
			   &s->branch[BRANCH_ACCUMULATE], acc));
	report_equal(out, "complete with 2 and 64 workers", var[TWO_WORKERS][BRANCH_COMPLETE], done,
		     noise(&v[TWO_WORKERS].branch[BRANCH_COMPLETE], &s->branch[BRANCH_COMPLETE],
			   done));
	report_equal(out, "accumulate with pool 256 and 4096, 256 slots in use", acc,
		     var[BIG_POOL][BRANCH_ACCUMULATE],
		     noise(&s->branch[BRANCH_ACCUMULATE],
			   &v[BIG_POOL].branch[BRANCH_ACCUMULATE], acc));
}

/* Measures everything @cycles times. */
static void branches_run(struct report *out, unsigned int cycles)
{
	static struct variant_samples variant[VARIANTS];
	static struct size size[SIZES];
	static struct arrival arrival;
	static struct harness harness;

	harness_open(&harness);
	for (unsigned int i = 0; i < SIZES; i++)
		harness_job_create(&harness, &size[i].job, i, elems[i], 64, 63,
				   i < 4 ? SLOTS : SLOTS_BIG, i < 4 ? SLOTS : SLOTS_BIG);
	harness_job_create(&harness, &variant[THREE_WORKERS].job, 10, 256, 3, 3, SLOTS, SLOTS);
	harness_job_create(&harness, &variant[TWO_WORKERS].job, 11, 256, 2, 2, SLOTS, SLOTS);
	harness_job_create(&harness, &variant[BIG_POOL].job, 12, 256, 64, 63, 4096, SLOTS);
	harness_job_create(&harness, &variant[ALL_SLOTS].job, 13, 256, 8, 8, 4096, 4096);
	harness_job_create(&harness, &variant[UNTIMED].job, 16, 256, 64, 63, SLOTS, SLOTS);
	harness_job_create(&harness, &variant[TIMEOUT].job, 14, 256, 64, 63, SLOTS, SLOTS);
	harness_job_set_timeout(&harness, &variant[TIMEOUT].job);
	harness_job_create(&harness, &arrival.job, 15, 256, 64, 63, FEW, FEW);
	harness_pin_cpu(sched_getcpu());
	for (unsigned int n = 0; n < cycles; n++) {
		report_progress(n, cycles);
		for (unsigned int i = 0; i < SIZES; i++)
			cycle_size(&harness, &size[i], i);
		for (int i = 0; i < VARIANTS; i++)
			cycle_variant(&harness, &variant[i], i != TWO_WORKERS);
		cycle_arrival(&harness, &arrival);
	}
	for (unsigned int i = 0; i < SIZES; i++)
		harness_check(&harness, &size[i].job);
	for (int i = 0; i < VARIANTS; i++)
		harness_check(&harness, &variant[i].job);
	harness_check(&harness, &arrival.job);
	report_all(out, size, variant, &arrival);
	harness_close(&harness);
}

struct args {
	bool json, cores;
	const char *out;
	unsigned int cycles;
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct args *args = state->input;
	char *end;

	switch (key) {
	case 'j':
		args->json = true;
		return 0;
	case 'c':
		args->cores = true;
		return 0;
	case 'o':
		args->out = arg;
		return 0;
	case 'n':
		args->cycles = strtoul(arg, &end, 10);
		if (*end || !args->cycles || args->cycles > 10000)
			argp_error(state, "--cycles must be a number from 1 to 10000, not '%s'", arg);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'", arg);
	}
	return ARGP_ERR_UNKNOWN;
}

int main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "json", 'j', NULL, 0, "print JSON", 0 },
		{ "cores", 'c', NULL, 0, "whole rounds on 1 to all cores at once, instead of branches", 0 },
		{ "output", 'o', "FILE", 0, "also write the JSON to FILE", 0 },
		{ "cycles", 'n', "N", 0, "measure everything N times (21)", 0 },
		{}
	};
	const struct argp argp = { options, parse_opt, NULL, "ns per packet of each branch of the XDP program.", NULL, NULL, NULL };
	struct args args = { .cycles = 21 };
	struct report out;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	report_open(&out, args.json);
	(args.cores ? cores_run : branches_run)(&out, args.cycles);
	return report_close(&out, args.out);
}
