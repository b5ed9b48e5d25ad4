/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libsaina-mpi.so: MPI_Allreduce through the aggregator, for unchanged programs.
 *
 * All ranks of MPI_COMM_WORLD are the workers of one job, each with its rank as number.
 * Whether an all-reduce goes through the aggregator depends on nothing that differs between
 * ranks: the arguments of the call, and what the ranks have agreed on in MPI_Init.
 */
#ifndef SAINA_SHIM_H
#define SAINA_SHIM_H

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "saina.h"

/**
 * struct shim_conf - settings from the environment of rank 0, which all ranks use
 * @on: join the job
 * @min: fewest bytes of an all-reduce that goes through the aggregator
 * @lossy: float32 may be scaled to integers, or rounded to bfloat16
 * @partial: sums may lack workers, as the job's policy says
 * @verbose: MPI_Finalize prints how many all-reduces went through the aggregator
 */
struct shim_conf {
	int64_t on, min, lossy, partial, verbose;
};

/**
 * struct shim - this process
 * @active: all ranks have joined; else everything goes through MPI
 * @failed: an all-reduce has failed at this rank, perhaps not at others: all later ones fail
 * @world_only: only MPI_COMM_WORLD is served, because threads may use other communicators in an
 *	order that differs between ranks
 * @progress: a communicator without messages, probed so that MPI makes progress
 * @saved: a copy of the input that MPI_IN_PLACE overwrites
 * @taken, @taken_bytes: all-reduces through the aggregator
 * @passed: all-reduces through MPI
 */
struct shim {
	struct shim_conf conf;
	_Atomic bool active;
	bool failed, world_only;
	int rank, ranks;
	MPI_Comm progress;
	struct saina *s;
	struct saina_job_info info;
	void *saved;
	size_t saved_size;
	uint64_t taken, taken_bytes;
	_Atomic uint64_t passed;
};

/* "libsaina-mpi: ..." on stderr. */
void shim_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * join.c: collective over MPI_COMM_WORLD.  shim_join() sets @m->active if all ranks have joined, and
 * prints why if not.  @thread_level: what MPI has granted.
 */
void shim_join(struct shim *m, int thread_level);
void shim_leave(struct shim *m);

/*
 * helper.c: the thread that waits for the aggregator while MPI makes progress.  Starting it returns 0
 * or a negative errno.
 */
int shim_helper_start(void);
void shim_helper_stop(void);
/* As saina_allreduce() with SAINA_SUM; meanwhile probes @m->progress, so that MPI makes progress. */
int shim_helper_reduce(struct shim *m, void *buf, size_t n, enum saina_type type,
		       struct saina_call *call);

#endif /* SAINA_SHIM_H */
