/* SPDX-License-Identifier: GPL-2.0-or-later */
/* saina-allreduce: what its parts share. */
#ifndef ALLREDUCE_H
#define ALLREDUCE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "saina.h"
#include "stop/stop.h"
#include "verify.h"

enum {
	EXIT_WRONG = 1, EXIT_USAGE, EXIT_JOIN, EXIT_FAILED, EXIT_STALE, EXIT_UNVERIFIED,
};

struct args {
	struct saina_opts o;
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
	const char *log;
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
	/* sums over the run */
	uint32_t first, rounds;
	uint64_t late, skipped, degraded, resent, saturated, behind, time_us, stale;
	uint32_t crc;
	bool short_mask;	/* a segment without all workers */
	bool residual_wrong;
};

/* Ends the program with EXIT_USAGE if they make no sense. */
void args_parse(struct args *a, int argc, char **argv);

/* run.c: microseconds; the "computation" of a round; a pause; the sentence of a failure of it */
uint64_t run_now_us(void);
void run_think(struct run *r);
void run_pause(uint64_t us);
const char *run_sentence(struct run *r, int err);

/* rounds.c: do the buckets fit the job?  The run of all-reduces; 0 or a negative errno */
bool rounds_fit(const struct run *r);
int rounds_run(struct run *r);

/* steps.c: the run of --steps; exit status */
int steps_run(struct run *r);

/* Adds a round to the account of the run, and a line to the log. */
void report_round(struct run *r, const struct saina_call *c, uint32_t policy);
void report_summary(struct run *r, int status);

#endif /* ALLREDUCE_H */
