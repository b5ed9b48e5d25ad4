/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Driving the XDP program and its rivals by BPF_PROG_TEST_RUN. */
#ifndef SAINA_BENCH_HARNESS_H
#define SAINA_BENCH_HARNESS_H

#include "dp/dp.h"
#include "bench/bench.h"

struct harness {
	bool	kernel;			/* jobs live in saina.ko: lookup.c */
	struct saina_dp *dp;
	struct bpf_object *obj;
	int	driver, empty;		/* programs */
	int	state;			/* map */
	struct saina_global global;
	unsigned char frame[BENCH_HEAD + 4 * SAINA_ELEMS_MAX];
};

/* A job to measure on: one worker's message after the other. */
struct bench_job {
	struct saina_job_conf conf;
	__u32	touched;		/* segments sent in each round, from 0 */
	__u32	round;
	__s32	finer;			/* than the slot's: exponents of all but the first worker */
	__s32	coarsens;		/* each worker's exponent is that much below the one before */
	__u64	sent[5];		/* packets by enum bench_branch */
	__u64	coarsened;		/* of these, those that make the slot's exponent coarser */
};

enum bench_branch {
	BRANCH_STORE,
	BRANCH_ACCUMULATE,
	BRANCH_DUPLICATE,
	BRANCH_COMPLETE,
	BRANCH_LATE,
	BRANCHES
};

/* One sender plays all workers, on the port that BPF_PROG_TEST_RUN comes in by,
 * each with a UDP port of its own. */
#define SENDER_IFINDEX	1
#define SENDER_IP		0x0abe0002
#define SENDER_SESSION	7
#define SENDER_MAC		"\x02\x5a\x00\x00\x00\x02"

void __attribute__((noreturn, format(printf, 1, 2))) harness_die(const char *fmt, ...);

/* All print a sentence on stderr and exit(1) if they cannot. */
void harness_open(struct harness *r, bool kernel);
void harness_close(struct harness *r);
/* On this CPU: migrations would mix two cores' caches. */
void harness_pin_cpu(void);
void harness_job_create(struct harness *r, struct bench_job *j, unsigned int id, unsigned int payload,
	     unsigned int workers, unsigned int k, unsigned int pool, unsigned int touched);

/* From the next round on it has a time-out, which will not come. */
void harness_job_set_timeout(struct harness *r, struct bench_job *j);

/*
 * All return ns per packet.
 * harness_run_branch: one batch of packets that all take @branch, or, with a @target
 *	other than BENCH_SAINA, the same batch into another program.
 * harness_run_accumulate: BRANCH_ACCUMULATE for segments @from to @to - 1 alone, of a job with 16 workers
 *	or more.
 * harness_run_plain: one and the same frame @repeat times, without the driver.
 */
double harness_run_branch(struct harness *r, struct bench_job *j, enum bench_branch branch,
		  enum bench_target target);
double harness_run_accumulate(struct harness *r, struct bench_job *j, enum bench_target target,
		      unsigned int from, unsigned int to);
double harness_run_plain(struct harness *r, int prog, unsigned int payload, bool foreign,
		 unsigned int repeat);
/* The job in saina.ko, and the snapshot it publishes. */
void kernel_job_create(struct saina_job_conf *c, unsigned int id, unsigned int payload,
		unsigned int workers, unsigned int k, unsigned int pool);
void kernel_job_delete(unsigned int id);

void harness_round_done(struct bench_job *j);
/* Is segment 0 of this round a sum of one input and of k - 1 that were shifted by j->finer? */
void harness_check_shifted(struct harness *r, const struct bench_job *j);
/* Did every packet take the branch it was meant to take? */
void harness_check(struct harness *r, const struct bench_job *j);

/* Userspace: @elems added to one of @slots slots, ns for each. */
double add_ns(unsigned int elems, unsigned int slots, unsigned int repeat);
bool add_has_avx2(void);

#endif /* SAINA_BENCH_HARNESS_H */
