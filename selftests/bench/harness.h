/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The harness: runs the XDP program, and programs to compare it with, by BPF_PROG_TEST_RUN. */
#ifndef SAINA_BENCH_HARNESS_H
#define SAINA_BENCH_HARNESS_H

#include "dp/dp.h"
#include "bench.h"

struct harness {
	bool	kernel;			/* jobs are in saina.ko: kernel_job.c */
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
	__u64	coarsened;		/* of these, packets that make the slot's exponent coarser */
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

/* The data path, and @g, which it has from then on. */
void harness_dp_open(struct saina_dp **dp, struct saina_global *g, bool kernel);
/* A BPF object that lies beside the program; a program or map of it; a program to tail-call. */
struct bpf_object *harness_object_load(const char *name);
int harness_object_fd(const struct bpf_object *o, const char *name);
void harness_target_set(const struct bpf_object *o, const char *map, __u32 target, int prog);
/* The data path with the driver program; @kernel: with jobs in saina.ko. */
void harness_open(struct harness *r, bool kernel);
void harness_close(struct harness *r);
/* Stays on a CPU: a migration would mix two cores' caches. */
void harness_pin_cpu(int cpu);
/* Empties the rings of events and of messages to relay, which are not measured. */
void harness_events_drop(struct saina_dp *dp);
/* Counters of all workers of a job. */
struct saina_counters harness_counters_sum(struct saina_dp *dp, unsigned int job);
/* Publishes a job of @pool segments of @payload elements; packets go to the first @touched. */
void harness_job_create(struct harness *r, struct bench_job *j, unsigned int id,
			unsigned int payload, unsigned int workers, unsigned int k,
			unsigned int pool, unsigned int touched);

/* The snapshot that a control plane would publish. */
void harness_conf_fill(struct saina_job_conf *c, unsigned int id, unsigned int payload,
		       unsigned int workers, unsigned int k, unsigned int pool);
/* The first BENCH_HEAD bytes of a GRAD; segment, worker, UDP port and exponent are missing. */
void harness_head_write(const struct saina_global *g, unsigned char *head, unsigned int job,
			unsigned int payload, __u32 round, bool foreign);

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
/* Checks that every packet took the branch it was meant for. */
void harness_check(struct harness *r, const struct bench_job *j);

#endif /* SAINA_BENCH_HARNESS_H */
