// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Cost of a job's snapshot by kfunc from saina.ko, compared with a map lookup: the
 * accumulate branch of both variants of the XDP program, in alternating batches of one run.
 * Requires saina.ko; the method is bench-datapath's.
 */
#include <sched.h>
#include <stdio.h>
#include "harness.h"
#include "kernel_job.h"
#include "lookup.h"
#include "report.h"

#define SIZES	4
#define SLOTS	256
#define WORKERS	64

static const char method[] =
	"ns per packet of the accumulate branch, medians; a driver program writes the headers, its own time is subtracted";

static const unsigned int elems[SIZES] = { 64, 128, 256, 352 };

enum variant { BY_MAP, BY_KFUNC, VARIANTS };

static const char *const name[VARIANTS] = { "snapshot from a map", "snapshot by kfunc" };

struct size {
	struct bench_job job[VARIANTS];
	struct sample accumulate[VARIANTS], driver, empty;
};

static void cycle(struct harness *harness, struct size *s, unsigned int n, unsigned int size)
{
	sample_add(&s->empty,
		   harness_run_plain(&harness[0], harness[0].empty, elems[size], true, 20000));
	sample_add(&s->driver,
		   harness_run_branch(&harness[0], &s->job[0], BRANCH_ACCUMULATE, BENCH_EMPTY));
	for (int i = 0; i < VARIANTS; i++) {
		int v = (i + n) % VARIANTS;	/* neither is always first */

		harness_run_branch(&harness[v], &s->job[v], BRANCH_STORE, BENCH_SAINA);
		sample_add(&s->accumulate[v], harness_run_branch(&harness[v], &s->job[v],
								 BRANCH_ACCUMULATE, BENCH_SAINA));
		harness_run_branch(&harness[v], &s->job[v], BRANCH_COMPLETE, BENCH_SAINA);
		harness_round_done(&s->job[v]);
	}
}

static double net(const struct size *s, enum variant v)
{
	return sample_net(&s->accumulate[v], &s->driver, &s->empty);
}

int lookup_run(const struct bench_args *args)
{
	static struct size size[SIZES];
	static struct harness harness[VARIANTS];
	struct report out;

	for (int v = 0; v < VARIANTS; v++) {
		harness_open(&harness[v], v == BY_KFUNC);
		for (unsigned int i = 0; i < SIZES; i++)
			harness_job_create(&harness[v], &size[i].job[v], i, elems[i], WORKERS,
					   WORKERS - 1, SLOTS, SLOTS);
	}
	harness_pin_cpu(sched_getcpu());
	for (unsigned int n = 0; n < args->cycles; n++) {
		report_progress(n, args->cycles);
		for (unsigned int i = 0; i < SIZES; i++)
			cycle(harness, &size[i], n, i);
	}
	for (int v = 0; v < VARIANTS; v++)
		for (unsigned int i = 0; i < SIZES; i++)
			harness_check(&harness[v], &size[i].job[v]);

	report_open(&out, args->json);
	report_method(&out, method, "x by map");
	for (unsigned int i = 0; i < SIZES; i++)
		for (int v = 0; v < VARIANTS; v++)
			report_row(&out, elems[i], name[v], net(&size[i], v),
				   net(&size[i], BY_MAP));
	report_verdict(&out, "accumulate by kfunc / by map, 256 elements",
		       net(&size[2], BY_KFUNC) / net(&size[2], BY_MAP), 1.1);
	for (unsigned int i = 0; i < SIZES; i++)
		kernel_job_delete(i);
	for (int v = 0; v < VARIANTS; v++)
		harness_close(&harness[v]);
	return report_close(&out, args->out);
}
