/* SPDX-License-Identifier: GPL-2.0-or-later */
/* saina-allreduce: what its parts share. */
#ifndef ALLREDUCE_H
#define ALLREDUCE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "monotonic.h"
#include "saina.h"
#include "stop/stop.h"
#include "verify.h"

enum {
	EXIT_WRONG = 1, EXIT_USAGE, EXIT_JOIN, EXIT_FAILED, EXIT_STALE, EXIT_UNVERIFIED,
};

/**
 * struct sweep - all-reduces of growing sizes
 * @begin, @end: bytes of the first and of the largest tensor; @end 0: no sweep
 * @factor: from one size to the next
 * @warmup, @iters: rounds of each size, those before counting and those that count
 */
struct sweep {
	uint64_t begin, end;
	double factor;
	uint32_t warmup, iters;
};

struct args {
	struct saina_opts o;
	struct sweep sweep;
	uint64_t elements;
	uint32_t rounds;
	enum saina_type type;
	enum contents contents;
	uint32_t seed;
	unsigned int delay_us, stop_ms;
	double straggle;
	bool cancel, bsp, restarts, skip, json, verify, steps;
	unsigned int buckets;
	uint64_t unverified;
	const char *log, *think_from;
};

struct run {
	struct args *a;
	struct saina *s;
	struct saina_job_info info;
	struct verify v;
	uint32_t *buf;
	uint64_t n;		/* elements, without the gaps between buckets */
	FILE *log;
	uint64_t rng;
	/* think.c: of --think-from, the number of them, how many were used; time spent */
	uint32_t *think_us;
	size_t thinks, thought;
	uint64_t thinking_us;
	/* sums over the run */
	uint32_t first, rounds;
	uint64_t late, skipped, degraded, resent, saturated, behind, time_us, stale;
	uint32_t crc;
	bool short_mask;	/* a segment without all workers */
	bool residual_checked, residual_wrong;
	/* table.c: of the present size */
	struct row {
		uint32_t rounds;
		uint64_t time_us, wrong;
	} row;
	bool table_begun;
	uint64_t swept;		/* elements of the present size of a sweep, 0: none yet */
	uint64_t progress_us;	/* when progress was shown last */
};

/* Parses environment and command line, or ends the program with EXIT_USAGE. */
void args_parse(struct args *a, int argc, char **argv);

/* think.c: reads --think-from, false with a message if it cannot; the "computation" of a round */
bool think_open(struct run *r);
void run_think(struct run *r);

/* run.c: a pause; the sentence of a failure of the run */
void run_pause(uint64_t us);
const char *run_sentence(struct run *r, int err);

/*
 * rounds.c: do the buckets fit the job?  The run of all-reduces; 0 (also after a wrong sum, which
 * r->v counts) or a negative errno
 */
bool rounds_fit(const struct run *r);
int rounds_run(struct run *r);

/* steps.c: the run of --steps; exit status */
int steps_run(struct run *r);

/* run.c: as stop_wait(); says every ten seconds for whom it waits */
int run_wait(struct run *r, struct saina_req *req, uint32_t round, struct saina_call *call);

/* sweep.c: does the largest size fit the job?  Sets the number of rounds; the size of @round */
bool sweep_fits(struct run *r);
void sweep_round(struct run *r, uint32_t round);

/*
 * table.c: a row for each size, as nccl-tests print them.  table_add(): a round of the present
 * size; table_row(): prints its row, if it has rounds; table_progress(): on a terminal
 */
void table_add(struct run *r, const struct saina_call *c, uint64_t wrong);
void table_row(struct run *r);
void table_progress(struct run *r, uint32_t round);

/* report.c: adds a round to the sums of the run, and a line to the log; prints the summary */
void report_round(struct run *r, const struct saina_call *c, uint32_t policy);
void report_summary(struct run *r, int status);

#endif /* ALLREDUCE_H */
