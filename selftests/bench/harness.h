/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The harness: runs the XDP program, and programs to compare it with, by BPF_PROG_TEST_RUN. */
#ifndef SAINA_BENCH_HARNESS_H
#define SAINA_BENCH_HARNESS_H

#include "dp/dp.h"
#include "bench.h"

struct harness {
	struct saina_dp *dp;
	struct bpf_object *obj;
	int	driver, empty;		/* programs */
	int	state;			/* map */
	struct saina_global global;
	unsigned char frame[BENCH_HEAD + 4 * SAINA_ELEMS_MAX];
};

/* A job that packets are sent to, one worker after the other. */
struct bench_job {
	struct saina_job_conf conf;
	__u32	touched;		/* segments sent in each round, from 0 on */
	__u32	round;
	__s32	finer;			/* exponents of all but the first worker are that much above the slot's */
	__s32	coarsens;		/* each worker's exponent is that much below the previous one's */
	__u64	sent[5];		/* packets by enum bench_branch */
	__u64	coarsened;		/* of these, those for which COARSENED is counted */
};

enum bench_branch {
	BRANCH_STORE,
	BRANCH_ACCUMULATE,
	BRANCH_DUPLICATE,
	BRANCH_COMPLETE,
	BRANCH_LATE,
	BRANCHES
};

/* All functions print a sentence on stderr and exit(1) on failure. */

/* The data path with the driver program. */
void harness_open(struct harness *r);
void harness_close(struct harness *r);
/* Stays on a CPU: a migration would mix two cores' caches. */
void harness_pin_cpu(int cpu);
/* Publishes a job of @pool segments of @payload elements; packets go to the first @touched. */
void harness_job_create(struct harness *r, struct bench_job *j, unsigned int id,
			unsigned int payload, unsigned int workers, unsigned int k,
			unsigned int pool, unsigned int touched);

/* Gives the job a time-out that never expires, from the next round on. */
void harness_job_set_timeout(struct harness *r, struct bench_job *j);

/*
 * These return ns per packet.
 * harness_run_branch: a batch of packets that all take @branch; @target other than
 *	BENCH_SAINA: the same batch into another program
 * harness_run_accumulate: BRANCH_ACCUMULATE for segments @from to @to - 1 of a job with at
 *	least 16 workers
 * harness_run_plain: the same frame @repeat times, without the driver
 */
double harness_run_branch(struct harness *r, struct bench_job *j, enum bench_branch branch,
			  enum bench_target target);
double harness_run_accumulate(struct harness *r, struct bench_job *j, enum bench_target target,
			      unsigned int from, unsigned int to);
double harness_run_plain(struct harness *r, int prog, unsigned int payload, bool foreign,
			 unsigned int repeat);
void harness_round_done(struct bench_job *j);
/* Checks that segment 0 is the sum of one input and of k - 1 inputs shifted by j->finer. */
void harness_check_shifted(struct harness *r, const struct bench_job *j);
/* Checks that segment 0 has the exponent of the last of k inputs, each j->coarsens coarser. */
void harness_check_coarser(struct harness *r, const struct bench_job *j);
/* Checks that every packet took the branch it was meant for. */
void harness_check(struct harness *r, const struct bench_job *j);

/* cores.c: whole rounds on 1, 2, 4 .. all CPUs that may be used, at once. */
struct report;
void cores_run(struct report *out, unsigned int cycles);

#endif /* SAINA_BENCH_HARNESS_H */
