// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina.ko with as many jobs and workers as there can be: is a dump of all of them
 * complete, is memory what Documentation/netlink.rst says it is, and given back?  In
 * the test VM, with the module loaded and no jobs; as root.
 *
 *	netlink_full [-n CALLS]	with -n: also how long each kind of call takes, so many
 *				of each; times are printed and never judged
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "monotonic.h"
#include "requests.h"
#include "../lib/tap.h"

#define JOBS	 64
#define WORKERS	 64
#define LO	 1	/* an interface that is always there */
#define CALLS_MAX 100000

/* What netlink.rst declares: of a job (table entry, snapshot, live part), in the
 * slab caches that hold these. */
static const struct {
	const char *cache;
	int size;
} slabs[] = { { "kmalloc-cg-4k", 4096 }, { "kmalloc-cg-2k", 2048 }, { "kmalloc-cg-32", 32 } };
#define SLABS (sizeof(slabs) / sizeof(slabs[0]))

/* Times */

static int by_time(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void measure(const char *what, int calls, int (*call)(int i))
{
	static uint64_t t[CALLS_MAX];
	int i, bad = 0;

	for (i = 0; i < calls; i++) {
		uint64_t begin = monotonic_ns();

		if (call(i) && !bad++)
			tap_note("%s: %s", what, saina_ctl_error(requests_ctl));
		t[i] = monotonic_ns() - begin;
	}
	tap_ok(!bad, "%s: %d calls are accepted", what, calls);
	qsort(t, calls, sizeof(t[0]), by_time);
	tap_note("%-28s median %6.0f us, p99 %6.0f us", what, t[calls / 2] / 1e3,
		 t[calls * 99 / 100] / 1e3);
}

static int job_set(int i)
{
	char policy[32];

	snprintf(policy, sizeof(policy), "fastest:k=%d", 1 + i % WORKERS);
	return request_job_policy(i % JOBS, policy);
}

static int job_state(int i)
{
	/* stopped, then running again */
	return request_job_state(i / 2 % JOBS, i & 1 ? SAINA_JOB_RUNNING : SAINA_JOB_STOPPED);
}

static int worker_state(int i)
{
	return request_worker_state(i % JOBS, i / JOBS % WORKERS,
				 i / JOBS / WORKERS & 1 ? SAINA_WORKER_STATE_ALIVE : SAINA_WORKER_STATE_SLOW);
}

static int worker_relay(int i)
{
	return request_worker_relay(i % JOBS, i / JOBS % WORKERS, !(i / JOBS / WORKERS & 1));
}

static int worker_again(int i)
{
	int job = i / 2 % JOBS, w = i / 2 / JOBS % WORKERS;

	return i & 1 ? request_worker_bind(job, w, LO) : request_worker_del(job, w);
}

static int job_again(int i)
{
	char name[32];

	snprintf(name, sizeof(name), "again%d", i / 2);
	/* the lowest free number: the one after the others */
	return i & 1 ? request_job_del(JOBS) : request_job_new(name, WORKERS, 1000);
}

static int job_get(int i)
{
	return request_get(SAINA_CMD_JOB_GET, i % JOBS, 0, NULL, NULL);
}

static int worker_get(int i)
{
	return request_get(SAINA_CMD_WORKER_GET, i % JOBS, i / JOBS % WORKERS, NULL, NULL);
}

static int limits_get(int i)
{
	struct saina_limits_attrs l;

	return request_limits(&l);
}

static int all_workers(int i)
{
	return request_dump(SAINA_CMD_WORKER_GET, NULL, NULL);
}

/* Dumps: each object as often as it was seen */

struct seen {
	unsigned int job[SAINA_JOBS_MAX], worker[SAINA_JOBS_MAX][SAINA_WORKERS_MAX], other;
};

static int seen_job(const struct nlmsghdr *nlh, void *arg)
{
	struct saina_job_attrs o;
	struct seen *s = arg;

	if (saina_ctl_decode(nlh, &saina_job_class, &o) || o.id >= SAINA_JOBS_MAX)
		return -EBADMSG;
	s->job[o.id] += o.workers == WORKERS && o.active == ~0ull;
	return 0;
}

static int seen_worker(const struct nlmsghdr *nlh, void *arg)
{
	struct saina_worker_attrs o;
	struct seen *s = arg;

	if (saina_ctl_decode(nlh, &saina_worker_class, &o) || o.job_id >= SAINA_JOBS_MAX ||
	    o.id >= SAINA_WORKERS_MAX)
		return -EBADMSG;
	s->worker[o.job_id][o.id] += o.session == 1u + o.id && o.mac[4] == o.job_id;
	return 0;
}

/* Of @n: each one, once. */
static bool once(const unsigned int *seen, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (seen[i] != 1)
			return false;
	return true;
}

static void dumps_complete(int jobs)
{
	static struct seen s;
	int j, ret;
	bool all;

	memset(&s, 0, sizeof(s));
	ret = request_dump(SAINA_CMD_JOB_GET, seen_job, &s);
	tap_ok(!ret && once(s.job, jobs), "a dump of %d jobs has each job once, with all attributes", jobs);
	ret = request_dump(SAINA_CMD_WORKER_GET, seen_worker, &s);
	for (all = true, j = 0; j < jobs; j++)
		all &= once(s.worker[j], WORKERS);
	tap_ok(!ret && all, "a dump of %d workers has each worker once, with its binding",
	       jobs * WORKERS);
}

static void fill(int from, int to)
{
	char name[32];
	int j, w, bad = 0;

	for (j = from; j < to; j++) {
		snprintf(name, sizeof(name), "job%d", j);
		bad += request_job_new(name, WORKERS, 1000) != 0;
		for (w = 0; w < WORKERS; w++)
			bad += request_worker_bind(j, w, LO) != 0;
	}
	tap_ok(!bad, "%d jobs with %d workers each can be made", to, WORKERS);
	if (bad)
		tap_note("%s", saina_ctl_error(requests_ctl));
}

/* Memory */

struct memory {
	long objects[SLABS];
};

static struct memory memory(void)
{
	struct memory m = { 0 };
	char line[512], name[64];
	long n;
	size_t i;
	FILE *f;

	f = fopen("/proc/slabinfo", "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s %ld", name, &n) == 2)
			for (i = 0; i < SLABS; i++)
				if (!strcmp(name, slabs[i].cache))
					m.objects[i] = n;
	if (f)
		fclose(f);
	return m;
}

/* What there is once it has not changed for 6 s: kfree_rcu() may wait for 5 of them
 * before it frees anything. */
static struct memory memory_quiet(void)
{
	struct memory m = memory(), again;
	int i, quiet = 0;

	for (i = 0; i < 600 && quiet < 120; i++) {
		usleep(50000);
		again = memory();
		quiet = memcmp(&m, &again, sizeof(m)) ? 0 : quiet + 1;
		m = again;
	}
	return m;
}

/* Is it at most what so many jobs may take?  A tenth more: others use these caches too. */
static bool within(const struct memory *before, const struct memory *now, long jobs)
{
	size_t i;

	for (i = 0; i < SLABS; i++)
		if (now->objects[i] - before->objects[i] > jobs + jobs / 10 + 32)
			return false;
	return true;
}

/* The same once RCU and the allocators have had time; they may take a while. */
static bool settles(const struct memory *before, struct memory *now, long jobs)
{
	int i;

	for (i = 0; i < 600; i++) {
		*now = memory();
		if (within(before, now, jobs))
			return true;
		usleep(50000);
	}
	return false;
}

static void print_memory(const char *when, const struct memory *before, const struct memory *now)
{
	size_t i;
	long slab = 0;

	for (i = 0; i < SLABS; i++)
		slab += (now->objects[i] - before->objects[i]) * slabs[i].size;
	tap_note("%s: %ld kB of slab more than before", when, slab / 1024);
}

/* KASAN keeps what was freed for long, so that slabinfo shows what was in use, not what is:
 * there kmemleak looks for leaks. */
static bool kernel_keeps_freed(void)
{
	static const char symbol[] = " kasan_quarantine_put\n";
	char line[512];
	bool found = false;
	FILE *f = fopen("/proc/kallsyms", "r");

	while (f && !found && fgets(line, sizeof(line), f))
		found = strlen(line) >= strlen(symbol) &&
			!strcmp(line + strlen(line) - strlen(symbol), symbol);
	if (f)
		fclose(f);
	return found;
}

/* Is memory of @jobs more than @before there, and no more than what is declared? */
static void memory_is(const struct memory *before, long jobs, const char *what)
{
	struct memory now;

	if (kernel_keeps_freed()) {
		tap_skip(what, "KASAN keeps what was freed");
		return;
	}
	tap_ok(settles(before, &now, jobs), "%s", what);
	print_memory(jobs ? "with all jobs" : "after they are gone", before, &now);
	/* what waits for RCU blurs the other caches */
	if (jobs)
		tap_ok(now.objects[0] - before->objects[0] >= jobs - 56,
		       "the memory of %ld jobs is seen in slabinfo", jobs);
}

static void measure_all(int calls)
{
	measure("job-set policy", calls, job_set);
	measure("job-set state", calls, job_state);
	measure("worker-set state", calls, worker_state);
	measure("worker-set relay", calls, worker_relay);
	measure("worker-del, worker-set", calls, worker_again);
	measure("job-new, job-del", calls, job_again);
	measure("job-get", calls, job_get);
	measure("worker-get", calls, worker_get);
	measure("limits-get", calls, limits_get);
	measure("dump of 4096 workers", 10, all_workers);
}

int main(int argc, char **argv)
{
	struct memory before;
	struct saina_limits_attrs l;
	int calls = 0, j;

	if (argc == 3 && !strcmp(argv[1], "-n"))
		calls = atoi(argv[2]);
	if (argc != 1 && (argc != 3 || calls < 100 || calls > CALLS_MAX))
		return 2;
	calls &= ~1;
	requests_open();
	/* a few before, so that what the allocators keep is there */
	fill(0, 8);
	for (j = 0; j < 8; j++)
		request_job_del(j);
	before = memory_quiet();

	fill(0, JOBS);
	dumps_complete(JOBS);
	if (calls) {
		measure_all(calls);
		dumps_complete(JOBS);
	}
	fill(JOBS, SAINA_JOBS_MAX);
	tap_ok(request_job_new("toomany", 1, 1) == -ENOSPC, "job 257 of 256 is refused");
	dumps_complete(SAINA_JOBS_MAX);
	memory_is(&before, SAINA_JOBS_MAX, "256 jobs of 64 workers take no more memory than is declared");
	for (j = 0; j < SAINA_JOBS_MAX; j++)
		request_job_del(j);
	memory_is(&before, 0, "256 jobs of 64 workers give their memory back");
	tap_ok(!request_limits(&l) && !l.jobs_used && !l.memory_used,
	       "no job and no memory is in use at the end");
	return tap_done();
}
