// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whole rounds on several cores at once: each core has a process with a job and programs of its own,
 * and all begin together.  A message is the mean of the branches in the proportion of a round of
 * WORKERS workers.  The method is bench-datapath's.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "die.h"
#include "harness.h"
#include "report.h"

#define WORKERS	8
#define ELEMS	352
#define SLOTS	256
#define CPUS	1024

static struct shared {
	pthread_barrier_t begin;
	double ns[CPUS];
} *shared;

static double round_ns(struct harness *h, struct bench_job *j)
{
	double ns = harness_run_branch(h, j, BRANCH_STORE, BENCH_SAINA);

	ns += (WORKERS - 2) * harness_run_branch(h, j, BRANCH_ACCUMULATE, BENCH_SAINA);
	ns += harness_run_branch(h, j, BRANCH_COMPLETE, BENCH_SAINA);
	harness_round_done(j);
	return ns / WORKERS;
}

static void core_run(unsigned int i, int cpu, unsigned int cycles)
{
	static struct sample message, driver;
	static struct harness h;
	static struct bench_job j;

	harness_open(&h);
	harness_job_create(&h, &j, 0, ELEMS, WORKERS, WORKERS, SLOTS, SLOTS);
	harness_pin_cpu(cpu);
	round_ns(&h, &j);	/* touches the memory */
	pthread_barrier_wait(&shared->begin);
	for (unsigned int n = 0; n < cycles; n++) {
		sample_add(&driver, harness_run_branch(&h, &j, BRANCH_ACCUMULATE, BENCH_EMPTY));
		sample_add(&message, round_ns(&h, &j));
	}
	harness_check(&h, &j);
	shared->ns[i] = sample_median(&message) - sample_median(&driver);
	harness_close(&h);
}

/* ns of a message on each of these @n CPUs, the mean. */
static double run(const int *cpu, unsigned int n, unsigned int cycles)
{
	pid_t pid[CPUS];
	double ns = 0;
	int status;

	for (unsigned int i = 0; i < n; i++) {
		pid[i] = fork();
		if (pid[i] < 0)
			bench_die("cannot start a process");
		if (!pid[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);	/* where one fails, none is left at the barrier */
			core_run(i, cpu[i], cycles);
			_exit(0);
		}
	}
	for (unsigned int i = 0; i < n; i++) {
		wait(&status);
		if (status)
			bench_die("a process failed: there are no figures");
	}
	for (unsigned int i = 0; i < n; i++)
		ns += shared->ns[i];
	return ns / n;
}

void cores_run(struct report *out, unsigned int cycles)
{
	unsigned int cpus = 0, n = 1;
	pthread_barrierattr_t attr;
	int cpu[CPUS];
	double one = 0, ns;
	char name[32];
	cpu_set_t set;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || sched_getaffinity(0, sizeof(set), &set))
		bench_die("cannot begin: %m");
	for (int i = 0; i < CPUS; i++)
		if (CPU_ISSET(i, &set))
			cpu[cpus++] = i;
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	report_method(out, "ns per message of whole rounds, 8 workers, on so many cores at once; the driver's time is subtracted", "x one core");
	fflush(stdout);
	while (n <= cpus) {
		pthread_barrier_init(&shared->begin, &attr, n);
		ns = run(cpu, n, cycles);
		one = one ?: ns;
		snprintf(name, sizeof(name), "cores: %u", n);
		report_row(out, ELEMS, name, ns, one);
		fflush(stdout);
		pthread_barrier_destroy(&shared->begin);
		n = n < cpus && 2 * n > cpus ? cpus : 2 * n;
	}
}
