// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The MPI functions that this library replaces.  MPI's own have the names PMPI_*. */
#include <stdlib.h>
#include <string.h>
#include "shim.h"

static struct shim shim;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The aggregator's type for @t, 0 if MPI must reduce it: other sums, and the user allows none. */
static enum saina_type type_of(MPI_Datatype t)
{
	/* Wrapping sums of two's complement are the same with and without a sign. */
	if (t == MPI_INT || t == MPI_INT32_T || t == MPI_UNSIGNED || t == MPI_UINT32_T)
		return shim.info.type == SAINA_INT32 && !shim.conf.lossy ? SAINA_INT32 : 0;
	/* A segment's residual has one type, so a job that reduces floats reduces no integers. */
	if (t == MPI_FLOAT)
		return shim.info.type == SAINA_FLOAT32 || shim.conf.lossy ? SAINA_FLOAT32 : 0;
	return 0;
}

/* Does @comm have all ranks, and do they all make its calls in the same order? */
static bool has_all_ranks(MPI_Comm comm)
{
	int how;

	if (comm == MPI_COMM_WORLD)
		return true;
	if (comm == MPI_COMM_NULL || shim.world_only)
		return false;
	return PMPI_Comm_compare(comm, MPI_COMM_WORLD, &how) == MPI_SUCCESS && how != MPI_UNEQUAL;
}

/* The type to reduce with, 0: leave the call to MPI.  All ranks get the same answer. */
static enum saina_type reducible_type(int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	if (!shim.active || op != MPI_SUM || count <= 0 || 4ll * count < shim.conf.min ||
	    !has_all_ranks(comm))
		return 0;
	return type_of(type);
}

/* Copies the input of an MPI_IN_PLACE call, which the sum overwrites.  NULL: out of memory. */
static const void *save(const void *buf, size_t size)
{
	if (shim.saved_size < size) {
		free(shim.saved);
		shim.saved = malloc(size);
		shim.saved_size = shim.saved ? size : 0;
	}
	return shim.saved ? memcpy(shim.saved, buf, size) : NULL;
}

/* Returns 0; 1 if a sum lacks some ranks, which all ranks see; or a negative errno. */
static int reduce(uint32_t *buf, size_t n, enum saina_type type)
{
	/* As few rounds as the job's size allows, all of one size: none is a short rest. */
	size_t rounds = (n + shim.info.elements - 1) / shim.info.elements, each = (n + rounds - 1) / rounds;

	for (size_t at = 0, m; at < n; at += m) {
		struct saina_call call = { .size = sizeof(call) };
		int ret;

		m = n - at < each ? n - at : each;
		ret = shim_helper_reduce(&shim, buf + at, m, type, &call);
		if (ret)
			return ret;
		if (call.count_min < (unsigned int)shim.ranks && !shim.conf.partial)
			return 1;
	}
	return 0;
}

static int fail(MPI_Comm comm, const char *why)
{
	shim.failed = true;
	shim_say("rank %d: all-reduce %llu through the aggregator failed: %s", shim.rank,
		 (unsigned long long)shim.taken, why);
	PMPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
	return MPI_ERR_OTHER;
}

static int allreduce(const void *from, void *to, int count, enum saina_type type, MPI_Datatype mpi,
		     MPI_Comm comm)
{
	size_t size = 4 * (size_t)count;
	const void *input = from;
	int ret;

	if (shim.failed)
		return fail(comm, "an earlier all-reduce failed at this rank");
	if (from != MPI_IN_PLACE) {
		memcpy(to, from, size);
	} else if (!shim.conf.partial) {
		input = save(to, size);
		if (!input)
			return fail(comm, "out of memory");
	}
	ret = reduce(to, count, type);
	if (ret < 0)
		return fail(comm, saina_strerror(shim.s, ret));
	if (!ret) {
		shim.taken++;
		shim.taken_bytes += size;
		return MPI_SUCCESS;
	}
	if (!shim.rank)
		shim_say("a sum lacks some of the ranks, as the policy of job %d allows: all all-reduces from now on go through MPI (set SAINA_MPI_PARTIAL=1 if such sums are wanted, or the policy to bsp)",
			 shim.info.job);
	shim.active = false;
	shim.passed++;
	return PMPI_Allreduce(input, to, count, mpi, MPI_SUM, comm);
}

#pragma GCC visibility push(default)

int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
		  MPI_Comm comm)
{
	enum saina_type type = reducible_type(count, datatype, op, comm);
	int ret;

	if (!type || !sendbuf || !recvbuf) {
		shim.passed++;
		return PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
	}
	/* Not held around PMPI_Allreduce(): threads of other ranks may take another order there. */
	pthread_mutex_lock(&lock);
	ret = allreduce(sendbuf, recvbuf, count, type, datatype, comm);
	pthread_mutex_unlock(&lock);
	return ret;
}

int MPI_Init(int *argc, char ***argv)
{
	int ret = PMPI_Init(argc, argv);

	if (ret == MPI_SUCCESS)
		shim_join(&shim, MPI_THREAD_SINGLE);
	return ret;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int ret = PMPI_Init_thread(argc, argv, required, provided);

	if (ret == MPI_SUCCESS)
		shim_join(&shim, *provided);
	return ret;
}

int MPI_Finalize(void)
{
	shim_leave(&shim);
	return PMPI_Finalize();
}
