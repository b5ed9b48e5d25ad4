// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Several processes create, change, delete and dump the same jobs and workers at
 * once.  In the test VM, with the module loaded and no jobs; as root.
 *
 *	writers      any call on jobs that come and go, and changes of jobs that stay
 *	a pair       one process gives worker 0 of the first job that stays a number for a
 *	             name, then the last worker of the last: the second number is never
 *	             ahead, and never more than one behind
 *	dumpers      each object that was there all the time is in each dump, once; a dump
 *	             that does not say that it was torn shows the pair in order
 *	a listener   makes a copy of everything from the notifications alone
 *
 * In the end table, workers, limits and the listener's copy must agree.
 *
 *	netlink_storm [-n CALLS]	of each writer (2000)
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "requests.h"
#include "../lib/rng.h"
#include "../lib/tap.h"

#define WRITERS	 4
#define DUMPERS	 2
#define STAY	 8		/* jobs 0 .. 7 */
#define COME	 8		/* and as many names of others */
#define WORKERS	 64
#define LO	 1	/* an interface that is always there */
#define BIT_OF(a) (1ull << (a))

/* What all processes report to the first. */
static struct shared {
	int stop;
	unsigned long accepted, refused, unexpected;
	unsigned long dumps, torn, out_of_order, missing, double_seen, bad_order, broken;
	int unexpected_error;
	char unexpected_text[256];
} *shared;

/* What there is, as far as the test looks at it. */
struct table {
	struct {
		bool there;
		char name[SAINA_NAME_LEN], policy[SAINA_POLICY_TEXT_LEN];
		int state;
		__u64 active, memory;
		__u32 generation;
		struct {
			int state;
			char name[SAINA_NAME_LEN];
		} worker[SAINA_WORKERS_MAX];
	} job[SAINA_JOBS_MAX];
	unsigned int job_seen[SAINA_JOBS_MAX], worker_seen[SAINA_JOBS_MAX][SAINA_WORKERS_MAX];
};

static void count(unsigned long *what)
{
	__atomic_fetch_add(what, 1, __ATOMIC_RELAXED);
}

static bool stopped(void)
{
	return __atomic_load_n(&shared->stop, __ATOMIC_ACQUIRE);
}

/* Replies and notifications into a table */

static int take_job(struct table *t, const struct nlmsghdr *nlh)
{
	struct saina_job_attrs o;

	if (saina_ctl_decode(nlh, &saina_job_class, &o) || o.id >= SAINA_JOBS_MAX)
		return -EBADMSG;
	/* another one of that number: its workers are not those of the last */
	if (!t->job[o.id].there || strcmp(t->job[o.id].name, o.name))
		memset(&t->job[o.id], 0, sizeof(t->job[o.id]));
	t->job[o.id].there = true;
	t->job[o.id].state = o.state;
	t->job[o.id].active = o.active;
	t->job[o.id].memory = o.memory;
	t->job[o.id].generation = o.generation;
	snprintf(t->job[o.id].name, sizeof(t->job[o.id].name), "%s", o.name);
	request_policy_text(&o.policy, t->job[o.id].policy);
	t->job_seen[o.id]++;
	return 0;
}

static int take_worker(struct table *t, const struct nlmsghdr *nlh)
{
	struct saina_worker_attrs o;

	if (saina_ctl_decode(nlh, &saina_worker_class, &o) || o.job_id >= SAINA_JOBS_MAX ||
	    o.id >= SAINA_WORKERS_MAX)
		return -EBADMSG;
	t->job[o.job_id].worker[o.id].state = o.state;
	snprintf(t->job[o.job_id].worker[o.id].name, SAINA_NAME_LEN, "%s", o.name);
	t->worker_seen[o.job_id][o.id]++;
	return 0;
}

static int dump_job(const struct nlmsghdr *nlh, void *arg)
{
	return take_job(arg, nlh);
}

static int dump_worker(const struct nlmsghdr *nlh, void *arg)
{
	return take_worker(arg, nlh);
}

static int note(const struct nlmsghdr *nlh, void *arg)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(nlh);
	struct saina_worker_attrs w;
	struct saina_job_attrs j;
	struct table *t = arg;

	switch (g->cmd) {
	case SAINA_CMD_JOB_NTF:
		return take_job(t, nlh);
	case SAINA_CMD_WORKER_NTF:
		return take_worker(t, nlh);
	case SAINA_CMD_JOB_DEL_NTF:
		if (saina_ctl_decode(nlh, &saina_job_class, &j) || j.id >= SAINA_JOBS_MAX)
			return -EBADMSG;
		memset(&t->job[j.id], 0, sizeof(t->job[j.id]));
		return 0;
	case SAINA_CMD_WORKER_DEL_NTF:
		if (saina_ctl_decode(nlh, &saina_worker_class, &w) ||
		    w.job_id >= SAINA_JOBS_MAX || w.id >= SAINA_WORKERS_MAX)
			return -EBADMSG;
		memset(&t->job[w.job_id].worker[w.id], 0, sizeof(t->job[0].worker[0]));
		return 0;
	}
	return -EBADMSG;
}

/* Writers */

/* Two processes at the same objects: these are refusals to be expected. */
static void outcome(int ret)
{
	switch (ret) {
	case 0:
		count(&shared->accepted);
		break;
	case -EEXIST:
	case -ENOENT:
	case -ENOTCONN:
	case -ESHUTDOWN:
	case -ERANGE:
	case -EBUSY:
		count(&shared->refused);
		break;
	default:
		shared->unexpected_error = -ret;
		snprintf(shared->unexpected_text, sizeof(shared->unexpected_text), "%s",
			 saina_ctl_error(requests_ctl));
		count(&shared->unexpected);
	}
}

static int id_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct saina_job_attrs o;

	if (saina_ctl_decode(nlh, &saina_job_class, &o))
		return -EBADMSG;
	/* the last of those that are not of the first STAY, of whom numbers are kept */
	if (o.id >= STAY)
		*(int *)arg = o.id;
	return 0;
}

static void writer(int n, int calls)
{
	static const char *const policies[] = { "bsp", "fastest:k=1", "sfcd", "fastest:k=2,late=drop" };
	struct rng rng;
	char name[16];
	int i, come = STAY, stay, w;

	requests_open();
	rng_seed(&rng, 100 + n);
	for (i = 0; i < calls; i++) {
		come = STAY + rng_below(&rng, COME);
		stay = rng_below(&rng, STAY);
		/* neither of the pair */
		w = 1 + rng_below(&rng, WORKERS - 2);
		switch (rng_below(&rng, 12)) {
		case 0:
		case 1:
			snprintf(name, sizeof(name), "come%d", (int)rng_below(&rng, COME));
			outcome(request_job_new(name, 1 + rng_below(&rng, 8), 1000));
			break;
		case 2:
			outcome(request_job_del(come));
			break;
		case 3:
		case 4:
			outcome(request_worker_bind(come, rng_below(&rng, 8), LO));
			break;
		case 5:
			outcome(request_worker_del(come, rng_below(&rng, 8)));
			break;
		case 6:
			outcome(request_job_policy(come, policies[rng_below(&rng, 3)]));
			break;
		case 7:
			outcome(request_worker_state(come, rng_below(&rng, 8),
						     rng_range(&rng, 1, 4)));
			break;
		case 8:
			outcome(request_job_policy(stay, policies[rng_below(&rng, 4)]));
			break;
		case 9:
			outcome(request_worker_state(stay, w, rng_range(&rng, 1, 2)));
			break;
		case 10:
			outcome(request_job_state(come, rng_range(&rng, 1, 3)));
			break;
		case 11:
			outcome(request_worker_relay(stay, w, rng_below(&rng, 2)));
			break;
		}
	}
}

static void pair_writer(void)
{
	char name[16];
	int i;

	requests_open();
	for (i = 1; !stopped(); i++) {
		snprintf(name, sizeof(name), "%d", i);
		outcome(request_worker_name(0, 0, name));
		outcome(request_worker_name(STAY - 1, WORKERS - 1, name));
	}
}

/* Dumpers */

/* Counts a dump that ended with @ret. */
static void dumped(int ret)
{
	count(&shared->dumps);
	if (ret && ret != -EINTR)
		count(&shared->broken);
	if (ret == -EINTR)
		count(&shared->torn);
}

static void look_at_workers(struct table *t)
{
	int ret, first, last, j, w;

	memset(t, 0, sizeof(*t));
	ret = request_dump(SAINA_CMD_WORKER_GET, dump_worker, t);
	dumped(ret);
	for (j = 0; j < STAY; j++)
		for (w = 0; w < WORKERS; w++)
			if (!t->worker_seen[j][w])
				count(&shared->missing);
	for (j = 0; j < SAINA_JOBS_MAX; j++)
		for (w = 0; w < SAINA_WORKERS_MAX; w++)
			if (t->worker_seen[j][w] > 1)
				count(&shared->double_seen);
	first = atoi(t->job[0].worker[0].name);
	last = atoi(t->job[STAY - 1].worker[WORKERS - 1].name);
	if (last == first || last == first - 1)
		return;
	count(&shared->out_of_order);
	if (!ret)
		count(&shared->bad_order);
}

static void look_at_jobs(struct table *t)
{
	int ret, j;

	memset(t, 0, sizeof(*t));
	ret = request_dump(SAINA_CMD_JOB_GET, dump_job, t);
	dumped(ret);
	for (j = 0; j < STAY; j++)
		if (!t->job_seen[j])
			count(&shared->missing);
	for (j = 0; j < SAINA_JOBS_MAX; j++)
		if (t->job_seen[j] > 1)
			count(&shared->double_seen);
}

static void dumper(void)
{
	static struct table t;

	requests_open();
	while (!stopped()) {
		look_at_workers(&t);
		look_at_jobs(&t);
	}
}

/* The listener: its copy is in shared memory; *ready when it hears, *done when the
 * job "end" has been notified. */
static void listener(struct table *copy, int *ready, int *done)
{
	int size = 256 << 20, ret;

	requests_open();
	setsockopt(saina_ctl_fd(requests_ctl), SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	if (saina_ctl_subscribe(requests_ctl, SAINA_GROUPS_CONFIG))
		_exit(1);
	__atomic_store_n(ready, 1, __ATOMIC_RELEASE);
	for (;;) {
		ret = saina_ctl_next(requests_ctl, -1, note, copy);
		if (ret < 0) {
			printf("# listener: %s\n", saina_ctl_error(requests_ctl));
			fflush(stdout);
			_exit(2);
		}
		for (int i = 0; i < SAINA_JOBS_MAX; i++) {
			if (copy->job[i].there && !strcmp(copy->job[i].name, "end")) {
				__atomic_store_n(done, 1, __ATOMIC_RELEASE);
				_exit(0);
			}
		}
	}
}

/* The end */

static bool alive(int state)
{
	return state == SAINA_WORKER_STATE_ALIVE || state == SAINA_WORKER_STATE_SLOW;
}

static void agree(const struct table *t)
{
	struct saina_limits_attrs l = { 0 };
	__u64 memory = 0;
	unsigned int jobs = 0;
	int j, w, masks = 0;

	for (j = 0; j < SAINA_JOBS_MAX; j++) {
		jobs += t->job[j].there;
		memory += t->job[j].memory;
		for (w = 0; w < SAINA_WORKERS_MAX; w++)
			masks += !!(t->job[j].active & BIT_OF(w)) != alive(t->job[j].worker[w].state);
	}
	tap_ok(!masks, "the active masks hold the workers that are alive");
	tap_ok(!request_limits(&l) && l.jobs_used == jobs && l.memory_used == memory,
	       "limits count the %u jobs there are, and their memory", jobs);
}

static bool same(const struct table *a, const struct table *b)
{
	bool good = true;
	int j, w;

	for (j = 0; j < SAINA_JOBS_MAX; j++) {
		if (a->job[j].there != b->job[j].there ||
		    strcmp(a->job[j].name, b->job[j].name) ||
		    strcmp(a->job[j].policy, b->job[j].policy) ||
		    a->job[j].state != b->job[j].state || a->job[j].active != b->job[j].active ||
		    a->job[j].generation != b->job[j].generation) {
			tap_note("job %d: '%s' %s state %d active %llx, copied '%s' %s state %d active %llx",
				 j, a->job[j].name, a->job[j].policy, a->job[j].state,
				 a->job[j].active, b->job[j].name, b->job[j].policy, b->job[j].state,
				 b->job[j].active);
			good = false;
		}
		for (w = 0; w < SAINA_WORKERS_MAX; w++) {
			if (a->job[j].worker[w].state == b->job[j].worker[w].state &&
			    !strcmp(a->job[j].worker[w].name, b->job[j].worker[w].name))
				continue;
			tap_note("worker %d of job %d: state %d, copied %d", w, j,
				 a->job[j].worker[w].state, b->job[j].worker[w].state);
			good = false;
		}
	}
	return good;
}

static void wait_flag(const int *flag, pid_t other)
{
	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE) && !waitpid(other, NULL, WNOHANG))
		usleep(1000);
}

static void prepare(void)
{
	char name[16];
	int j, w, bad = 0;

	for (j = 0; j < STAY; j++) {
		snprintf(name, sizeof(name), "stay%d", j);
		bad += request_job_new(name, WORKERS, 1000) != 0;
		for (w = 0; w < WORKERS; w++)
			bad += request_worker_bind(j, w, LO) != 0;
	}
	bad += request_worker_name(0, 0, "0") != 0;
	bad += request_worker_name(STAY - 1, WORKERS - 1, "0") != 0;
	tap_ok(!bad, "%d jobs of %d workers", STAY, WORKERS);
}

static void *share(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	return p;
}

int main(int argc, char **argv)
{
	struct { struct table copy; int ready, done; } *heard = share(sizeof(*heard));
	static struct table now;
	pid_t ear, writers[WRITERS], others[DUMPERS + 1];
	int calls = 2000, i, j, status, failed = 0, last = -1;

	if (argc == 3 && !strcmp(argv[1], "-n"))
		calls = atoi(argv[2]);
	shared = share(sizeof(*shared));
	ear = fork();
	if (!ear)
		listener(&heard->copy, &heard->ready, &heard->done);
	wait_flag(&heard->ready, ear);
	requests_open();
	prepare();
	for (i = 0; i < WRITERS; i++) {
		writers[i] = fork();
		if (!writers[i]) {
			writer(i, calls);
			_exit(0);
		}
	}
	for (i = 0; i < DUMPERS + 1; i++) {
		others[i] = fork();
		if (!others[i]) {
			if (i)
				dumper();
			else
				pair_writer();
			_exit(0);
		}
	}
	for (i = 0; i < WRITERS; i++)
		failed += waitpid(writers[i], &status, 0) < 0 || status;
	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELEASE);
	for (i = 0; i < DUMPERS + 1; i++)
		failed += waitpid(others[i], &status, 0) < 0 || status;

	tap_note("%lu calls accepted, %lu refused; %lu dumps, %lu of them torn, %lu showing the pair out of order",
		 shared->accepted, shared->refused, shared->dumps, shared->torn, shared->out_of_order);
	tap_ok(!failed, "no process died");
	if (!tap_ok(!shared->unexpected, "all refusals are those of a race"))
		tap_note("%lu others, one of them: error %d, %s", shared->unexpected,
			 shared->unexpected_error, shared->unexpected_text);
	tap_ok(shared->accepted > (unsigned long)calls && shared->refused, "some calls were accepted and some refused");
	tap_ok(shared->dumps && !shared->broken, "every dump comes to its end");
	tap_ok(!shared->missing, "an object that was there all the time is in every dump");
	tap_ok(!shared->double_seen, "no object is in a dump twice");
	tap_ok(!shared->bad_order, "a dump that is not marked as interrupted is of one moment");
	tap_ok(shared->torn, "some dumps during changes are marked as interrupted");

	/* the last change there is */
	tap_ok(!request_job_new("end", 1, 1), "the listener gets the last notification");
	wait_flag(&heard->done, ear);
	tap_ok(heard->done, "the listener misses no notification");
	tap_ok(!request_dump(SAINA_CMD_JOB_GET, dump_job, &now) &&
		       !request_dump(SAINA_CMD_WORKER_GET, dump_worker, &now),
	       "dumps without changes are not marked as interrupted");
	agree(&now);
	tap_ok(same(&now, &heard->copy), "a copy made from notifications equals the dumps");

	for (j = 0; j < STAY; j++)
		request_job_del(j);
	while (last = -1, !request_dump(SAINA_CMD_JOB_GET, id_cb, &last) && last >= 0)
		request_job_del(last);
	memset(&now, 0, sizeof(now));
	request_dump(SAINA_CMD_JOB_GET, dump_job, &now);
	for (j = 0; j < SAINA_JOBS_MAX; j++)
		failed += now.job_seen[j];
	tap_ok(!failed, "all jobs can be deleted");
	return tap_done();
}
