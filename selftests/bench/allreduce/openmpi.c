// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Open MPI as a contender of `make bench': the algorithm that it chooses, and its ring.
 *
 *	mpirun ... bench-openmpi SOCKET
 *
 * Requires coll_tuned_use_dynamic_rules: a communicator uses the algorithm that the control
 * variable had when it was created.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include "../../../tools/bench/serve.h"

static const struct {
	const char *name;
	int number;	/* of coll_tuned_allreduce_algorithm; 0: choose by size and ranks */
} algorithms[] = { { "default", 0 }, { "ring", 4 } };
#define ALGORITHMS (sizeof(algorithms) / sizeof(*algorithms))

static MPI_Comm comms[ALGORITHMS], comm;

static int algorithm_set(int number)
{
	MPI_T_cvar_handle handle;
	int i, count;

	if (MPI_T_cvar_get_index("coll_tuned_allreduce_algorithm", &i) != MPI_SUCCESS ||
	    MPI_T_cvar_handle_alloc(i, NULL, &handle, &count) != MPI_SUCCESS)
		return -1;
	i = MPI_T_cvar_write(handle, &number);
	MPI_T_cvar_handle_free(&handle);
	return i == MPI_SUCCESS ? 0 : -1;
}

static const char *prepare(const char *algorithm, float *buf, size_t n)
{
	for (size_t i = 0; i < ALGORITHMS; i++) {
		if (strcmp(algorithm, algorithms[i].name))
			continue;
		comm = comms[i];
		return NULL;
	}
	return "Open MPI: no such algorithm";
}

static const char *reduce(float *buf, size_t n, enum op op)
{
	return MPI_Allreduce(MPI_IN_PLACE, buf, n, MPI_FLOAT, MPI_SUM, comm) == MPI_SUCCESS ?
	       NULL : "MPI_Allreduce failed";
}

static void rest(void)
{
}

int main(int argc, char **argv)
{
	static const struct contender c = { prepare, reduce, rest, "", NULL };
	int rank, ranks, provided, ret;

	if (argc != 2) {
		fprintf(stderr, "usage: bench-openmpi SOCKET (started by selftests/bench)\n");
		return 2;
	}
	MPI_Init(&argc, &argv);
	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (size_t i = 0; i < ALGORITHMS; i++) {
		if (algorithm_set(algorithms[i].number)) {
			fprintf(stderr, "bench-openmpi: coll_tuned_allreduce_algorithm cannot be set\n");
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	}
	ret = serve(&c, argv[1], rank, ranks);
	MPI_T_finalize();
	MPI_Finalize();
	return ret;
}
