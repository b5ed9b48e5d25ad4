// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Time until a k that a client sets by the configuration interface is in force.  For a job
 * with policy external whose workers run rounds: sets k, then polls the job until it has
 * that k, CALLS times.
 *
 *	bench-control CONTROL JOB CALLS
 *
 * Every round that opens after the answer has the new k; the rest is the remainder of the
 * previous round and the time of polling.  Prints one line of JSON: microseconds from each
 * request to its answer, and to the first poll that shows the new k; the number of rounds
 * that opened with the old k after the answer, which must be 0.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "monotonic.h"
#include "ctl/obj.h"

#define CALLS_MAX	100000
#define TIMEOUT_US	5000000
#define PAUSE_US	2000		/* between calls */
#define WARM_UP_ROUNDS		100		/* before the first call */

static struct saina_ctl *ctl;

static void __attribute__((noreturn)) die(const char *why)
{
	fprintf(stderr, "bench-control: %s\n", why);
	exit(1);
}

static double now_us(void)
{
	return monotonic_ns() / 1e3;
}

static int decode(const struct nlmsghdr *nlh, void *job)
{
	return saina_ctl_decode(nlh, &saina_job_class, job);
}

static struct saina_job_attrs call(int cmd, struct saina_job_attrs req)
{
	struct nlmsghdr *nlh = saina_ctl_msg(ctl, cmd, 0);
	struct saina_job_attrs got = {};

	SAINA_SET(&req, SAINA_A_JOB_ID);
	saina_ctl_encode(nlh, &saina_job_class, &req);
	if (saina_ctl_call(ctl, nlh, cmd == SAINA_CMD_JOB_GET ? decode : NULL, &got))
		die(saina_ctl_error(ctl));
	return got;
}

/* The agent is busy while workers join. */
static void wait_for_rounds(struct saina_job_attrs id)
{
	uint32_t first = call(SAINA_CMD_JOB_GET, id).round;
	double begin = now_us();

	while (call(SAINA_CMD_JOB_GET, id).round < first + WARM_UP_ROUNDS) {
		if (now_us() - begin > 10 * TIMEOUT_US)
			die("the job did not complete 100 rounds in 50 s: have all workers joined?");
		nanosleep(&(struct timespec){ .tv_nsec = PAUSE_US * 1000 }, NULL);
	}
}

static void list(const char *name, const double *v, unsigned int n)
{
	printf("\"%s\": [", name);
	for (unsigned int i = 0; i < n; i++)
		printf("%s%.1f", i ? ", " : "", v[i]);
	printf("], ");
}

int main(int argc, char **argv)
{
	struct saina_job_attrs id = {}, set, job, first;
	unsigned int calls, late = 0;
	double *ack, *force, begin;
	const char *error;

	if (argc != 4)
		die("usage: bench-control CONTROL JOB CALLS");
	id.id = strtoul(argv[2], NULL, 10);
	calls = strtoul(argv[3], NULL, 10);
	if (!calls || calls > CALLS_MAX)
		die("CALLS must be a number from 1 to 100000");
	if (saina_ctl_open(&ctl, argv[1], &error))
		die(error);
	ack = calloc(calls, sizeof(*ack));
	force = calloc(calls, sizeof(*force));
	if (!ack || !force)
		die("out of memory");
	wait_for_rounds(id);
	for (unsigned int i = 0; i < calls; i++) {
		set = id;
		set.k_set = 1 + i % 2;
		SAINA_SET(&set, SAINA_A_JOB_K_SET);
		begin = now_us();
		call(SAINA_CMD_JOB_SET, set);
		ack[i] = now_us() - begin;
		first = job = call(SAINA_CMD_JOB_GET, id);
		while (job.k != set.k_set) {
			late += job.round > first.round;
			if (now_us() - begin > TIMEOUT_US)
				die("no round opened with the new k in 5 s: does the job have policy external, and have all workers joined?");
			job = call(SAINA_CMD_JOB_GET, id);
		}
		force[i] = now_us() - begin;
		nanosleep(&(struct timespec){ .tv_nsec = PAUSE_US * 1000 }, NULL);
	}
	putchar('{');
	list("answer_us", ack, calls);
	list("in_force_us", force, calls);
	printf("\"rounds_with_the_old_k\": %u}\n", late);
	free(ack);
	free(force);
	saina_ctl_close(ctl);
	return 0;
}
