// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table that nccl-tests print: of each size the time of an all-reduce, its bandwidth, and that
 * times 2 (n - 1) / n, what each of n workers would have to send at least without an aggregator.
 * On a terminal, also how far the run is.
 */
#include <inttypes.h>
#include <unistd.h>
#include "allreduce.h"

#define PROGRESS_US 1000000

void table_add(struct run *r, const struct saina_call *c, uint64_t wrong)
{
	r->row.rounds++;
	r->row.time_us += c->time_us;
	r->row.wrong += wrong;
}

static void print_head(const struct run *r)
{
	printf("# job %d, %d workers, this is %d\n", r->info.job, r->info.workers, r->info.worker);
	printf("# %12s %12s %8s %10s %8s %8s %8s\n", "size", "count", "type", "time", "algbw", "busbw", "#wrong");
	printf("# %12s %12s %8s %10s %8s %8s %8s\n", "(B)", "(elements)", "", "(us)", "(GB/s)", "(GB/s)", "(segm.)");
}

static void clear_progress(struct run *r)
{
	if (r->progress_us)
		fprintf(stderr, "\r\033[K");
	r->progress_us = 0;
}

void table_row(struct run *r)
{
	const char *type = r->a->type == SAINA_INT32 ? "int32" : "float";
	double us, gbs, n = r->info.workers;
	char wrong[24] = "N/A";

	clear_progress(r);
	if (!r->row.rounds)
		return;
	us = (double)r->row.time_us / r->row.rounds;
	gbs = us > 0 ? 4.0 * r->n / us / 1000 : 0;
	if (r->a->verify)
		snprintf(wrong, sizeof(wrong), "%" PRIu64, r->row.wrong);
	if (!r->table_begun && !r->a->json)
		print_head(r);
	r->table_begun = true;
	if (!r->a->json)
		printf("  %12" PRIu64 " %12" PRIu64 " %8s %10.1f %8.3f %8.3f %8s\n", 4 * r->n, r->n, type, us, gbs,
		       gbs * 2 * (n - 1) / n, wrong);
	else if (r->a->sweep.end)
		printf("{\"size\": %" PRIu64 ", \"count\": %" PRIu64 ", \"type\": \"%s\", \"rounds\": %u, \"time_us\": %.1f, \"algbw_gbs\": %.6f, \"busbw_gbs\": %.6f, \"wrong\": %s}\n",
		       4 * r->n, r->n, type, r->row.rounds, us, gbs, gbs * 2 * (n - 1) / n,
		       r->a->verify ? wrong : "null");
	fflush(stdout);
	r->row = (struct row){ 0 };
}

void table_progress(struct run *r, uint32_t round)
{
	uint64_t now = monotonic_us();

	if (r->a->json || !isatty(STDERR_FILENO) || now < r->progress_us + PROGRESS_US)
		return;
	r->progress_us = now;
	fprintf(stderr, "\r\033[Kround %u", round);
	if (r->a->rounds)
		fprintf(stderr, " of %u", r->a->rounds);
	if (r->row.rounds)
		fprintf(stderr, ", %" PRIu64 " bytes, %.1f ms each", 4 * r->n, r->row.time_us / 1000.0 / r->row.rounds);
}
