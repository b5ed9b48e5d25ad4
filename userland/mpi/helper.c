// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The thread that waits for the aggregator while the calling thread serves MPI.
 *
 * MPI makes progress only inside its own functions.  If a rank waited for the aggregator outside
 * of them, a message that it has begun to send would not arrive; its receiver would hang in
 * MPI_Recv, and the all-reduce would wait for that receiver.
 */
#include <errno.h>
#include <signal.h>
#include <time.h>
#include "shim.h"

#define PROBE_NS 500000	/* between two calls of PMPI_Iprobe() */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t submitted = PTHREAD_COND_INITIALIZER, done;
static pthread_t thread;
static struct {
	struct saina *s;
	void *buf;
	size_t n;
	enum saina_type type;
	struct saina_call *call;
	int ret;
	bool busy, stop;
} work;

static void *helper(void *arg)
{
	pthread_mutex_lock(&lock);
	while (!work.stop) {
		if (!work.busy) {
			pthread_cond_wait(&submitted, &lock);
			continue;
		}
		pthread_mutex_unlock(&lock);
		work.ret = saina_allreduce(work.s, work.buf, work.n, work.type, SAINA_SUM, work.call);
		pthread_mutex_lock(&lock);
		work.busy = false;
		pthread_cond_signal(&done);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

int shim_helper_start(void)
{
	pthread_condattr_t attr;
	sigset_t all, old;
	int ret;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&done, &attr);
	pthread_condattr_destroy(&attr);
	work.stop = false;
	/* The program's own threads handle its signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(&thread, NULL, helper, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

void shim_helper_stop(void)
{
	pthread_mutex_lock(&lock);
	work.stop = true;
	pthread_cond_signal(&submitted);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	pthread_cond_destroy(&done);
}

static struct timespec next_probe(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += PROBE_NS;
	if (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	return t;
}

int shim_helper_reduce(struct shim *m, void *buf, size_t n, enum saina_type type,
		       struct saina_call *call)
{
	struct timespec t;
	int flag, ret;

	pthread_mutex_lock(&lock);
	work.s = m->s;
	work.buf = buf;
	work.n = n;
	work.type = type;
	work.call = call;
	work.busy = true;
	pthread_cond_signal(&submitted);
	t = next_probe();
	while (work.busy) {
		if (pthread_cond_timedwait(&done, &lock, &t) != ETIMEDOUT)
			continue;
		pthread_mutex_unlock(&lock);
		PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, m->progress, &flag, MPI_STATUS_IGNORE);
		pthread_mutex_lock(&lock);
		t = next_probe();
	}
	ret = work.ret;
	pthread_mutex_unlock(&lock);
	return ret;
}
