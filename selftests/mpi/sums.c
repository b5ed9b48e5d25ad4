// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An MPI program that checks every sum, and knows nothing of libsaina-mpi.so.
 *
 *	mpirun ... sums [rounds N] [bytes N] [float] [threads]
 *
 * Prints "rank R: N sums are right" at each rank; exits with 1 if one is wrong.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, right, wrong;

static uint32_t value(int r, int call, int i)
{
	uint32_t z = (uint32_t)(r + 1) * 2654435761u ^ (uint32_t)call * 40503u ^ (uint32_t)i * 2246822519u;

	z ^= z >> 15;
	z *= 2246822519u;
	return z ^ z >> 13;
}

static void judge(bool ok, const char *what, int call)
{
	right += ok;
	if (ok || wrong++)
		return;
	fprintf(stderr, "rank %d: %s, call %d: the sum is wrong\n", rank, what, call);
}

static void sum_ints(MPI_Comm comm, int n, int call, bool in_place, MPI_Datatype type, const char *what)
{
	uint32_t *a = calloc(n, 4), *b = calloc(n, 4);
	bool ok = true;

	for (int i = 0; i < n; i++)
		(in_place ? b : a)[i] = value(rank, call, i);
	MPI_Allreduce(in_place ? MPI_IN_PLACE : (void *)a, b, n, type, MPI_SUM, comm);
	for (int i = 0; i < n; i++) {
		uint32_t sum = 0;

		for (int r = 0; r < ranks; r++)
			sum += value(r, call, i);
		ok = ok && b[i] == sum && (in_place || a[i] == value(rank, call, i));
	}
	judge(ok, what, call);
	free(a);
	free(b);
}

/* Multiples of 1/1024, which nothing has to round. */
static void sum_floats(int n, int call, bool in_place)
{
	float *a = calloc(n, 4), *b = calloc(n, 4);
	bool ok = true;

	for (int i = 0; i < n; i++)
		(in_place ? b : a)[i] = (int)(value(rank, call, i) % 2001) / 1024.0f - 1;
	MPI_Allreduce(in_place ? MPI_IN_PLACE : (void *)a, b, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++) {
		float sum = 0;

		for (int r = 0; r < ranks; r++)
			sum += (int)(value(r, call, i) % 2001) / 1024.0f - 1;
		ok = ok && b[i] == sum;
	}
	judge(ok, "float", call);
	free(a);
	free(b);
}

/* What is not the aggregator's: another operation, another type, a part of the ranks. */
static void others(int n, int call)
{
	int32_t *a = malloc(4 * n), *b = malloc(4 * n);
	double *x = malloc(8 * n), *y = malloc(8 * n);
	MPI_Comm half;
	bool ok = true;
	int m;

	for (int i = 0; i < n; i++) {
		a[i] = rank + i;
		x[i] = rank + 0.5 * i;
	}
	MPI_Allreduce(a, b, n, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	MPI_Allreduce(x, y, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		ok = ok && b[i] == ranks - 1 + i &&
		     y[i] == ranks * (ranks - 1) / 2 + 0.5 * i * ranks;
	judge(ok, "maximum and double", call);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Comm_size(half, &m);
	for (int i = 0; i < n; i++)
		a[i] = i;
	MPI_Allreduce(a, b, n, MPI_INT, MPI_SUM, half);
	ok = true;
	for (int i = 0; i < n; i++)
		ok = ok && b[i] == m * i;
	judge(ok, "half of the ranks", call);
	MPI_Comm_free(&half);
	free(a);
	free(b);
	free(x);
	free(y);
}

/*
 * A long message is on its way while its sender is in an all-reduce, and its receiver comes
 * to the all-reduce after it: without progress nobody would get any further.
 */
static void overlap(int n, int call)
{
	char *buf = calloc(1, 1 << 20);
	MPI_Request req;

	if (!rank)
		MPI_Isend(buf, 1 << 20, MPI_CHAR, ranks - 1, call, MPI_COMM_WORLD, &req);
	if (rank == ranks - 1)
		MPI_Recv(buf, 1 << 20, MPI_CHAR, 0, call, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	sum_ints(MPI_COMM_WORLD, n, call, false, MPI_INT, "beside a message");
	if (!rank)
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	free(buf);
}

/* How long @rounds take one way and the other: only as a ratio. */
static void measure(int n, int rounds)
{
	double took[2] = { 0, 0 }, began;
	int32_t *a = calloc(n, 4), *b = calloc(n, 4);

	for (int i = 0; i < 2 * rounds; i++) {
		PMPI_Barrier(MPI_COMM_WORLD);
		began = MPI_Wtime();
		(i & 1 ? PMPI_Allreduce : MPI_Allreduce)(a, b, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		if (i > 7)
			took[i & 1] += MPI_Wtime() - began;
	}
	if (!rank)
		printf("%8d bytes: aggregator %.0f us, MPI %.0f us, ratio %.2f\n", 4 * n,
		       took[0] / (rounds - 4) * 1e6, took[1] / (rounds - 4) * 1e6, took[1] / took[0]);
	free(a);
	free(b);
}

int main(int argc, char **argv)
{
	int rounds = 3, bytes = 1 << 18, provided;
	bool floats = false, threads = false, time = false;
	MPI_Comm dup, turned;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "rounds") && i + 1 < argc)
			rounds = atoi(argv[++i]);
		else if (!strcmp(argv[i], "bytes") && i + 1 < argc)
			bytes = atoi(argv[++i]);
		else if (!strcmp(argv[i], "float"))
			floats = true;
		else if (!strcmp(argv[i], "threads"))
			threads = true;
		else if (!strcmp(argv[i], "time"))
			time = true;
	}
	if (threads)
		MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	else
		MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (time) {
		for (int n = 1 << 10; n <= 1 << 20; n *= 4)
			measure(n, n < 1 << 16 ? 60 : 20);
		MPI_Finalize();
		return 0;
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
	for (int call = 0; call < rounds; call++) {
		int n = bytes / 4 - call;

		sum_ints(MPI_COMM_WORLD, n, call, false, MPI_INT, "int");
		sum_ints(MPI_COMM_WORLD, n, call, true, MPI_UINT32_T, "in place");
		sum_ints(dup, n, call, true, MPI_INT32_T, "duplicated communicator");
		sum_ints(turned, n, call, false, MPI_UNSIGNED, "communicator of other order");
		sum_ints(MPI_COMM_WORLD, 3, call, false, MPI_INT, "short");
		if (floats) {
			sum_floats(n, call, false);
			sum_floats(n, call, true);
		}
		others(n / 4, call);
		overlap(n, call);
	}
	if (!wrong)
		printf("rank %d: %d sums are right\n", rank, right);
	fflush(stdout);
	MPI_Comm_free(&dup);
	MPI_Comm_free(&turned);
	MPI_Finalize();
	return wrong != 0;
}
