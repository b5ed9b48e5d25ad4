/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that run at once, each on a CPU of its own. */
#ifndef SAINA_TEST_CPUS_H
#define SAINA_TEST_CPUS_H

#include <pthread.h>
#include <sched.h>
#include "tap.h"

/* The first @most CPUs that this process may use; their number. */
static inline int cpus_find(int *cpu, int most)
{
	cpu_set_t allowed;
	int n = 0;

	CPU_ZERO(&allowed);
	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int c = 0; c < CPU_SETSIZE && n < most; c++)
		if (CPU_ISSET(c, &allowed))
			cpu[n++] = c;
	return n;
}

/* The same for a test of what runs at once. */
static inline int cpus_find_two(int *cpu, int most)
{
	int n = cpus_find(cpu, most);

	if (n < 2)
		tap_skip_all("one CPU: no two programs run at once");
	return n;
}

/* Binds the calling thread to a CPU. */
static inline void cpus_pin(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (pthread_setaffinity_np(pthread_self(), sizeof(one), &one))
		tap_note("a thread could not be pinned to CPU %d", cpu);
}

#endif /* SAINA_TEST_CPUS_H */
