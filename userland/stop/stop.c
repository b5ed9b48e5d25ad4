// SPDX-License-Identifier: GPL-2.0-or-later
/* The signal handler, and waits that it can end. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "monotonic.h"
#include "stop/stop.h"

#define POLL_MS	 100 /* between two checks for a signal */
#define CANCEL_S 3   /* until saina_open() has left the job; mostly it takes less than 1 */

static volatile sig_atomic_t asked;
static sem_t event; /* a signal has come, or saina_open() has returned */

static void on_signal(int sig)
{
	asked = 1;
	sem_post(&event);
}

void stop_catch(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};

	sem_init(&event, 0, 0);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
}

bool stop_asked(void)
{
	return asked;
}

/* A call of saina_open(), in a thread that may outlive stop_open(). */
struct opener {
	struct saina_opts o;
	struct saina *s;
	int ret, cancel, returned;
	char text[256];
};

static void *open_it(void *arg)
{
	struct opener *p = arg;

	p->ret = saina_open(&p->s, &p->o);
	/* saina_strerror(NULL) belongs to the calling thread */
	if (p->ret)
		snprintf(p->text, sizeof(p->text), "%s", saina_strerror(NULL, p->ret));
	__atomic_store_n(&p->returned, 1, __ATOMIC_RELEASE);
	sem_post(&event);
	return NULL;
}

int stop_open(struct saina **s, const struct saina_opts *o, char *text, size_t size)
{
	struct opener *p = calloc(1, sizeof(*p));
	struct timespec until;
	pthread_t t;
	int ret = p ? 0 : ENOMEM;

	if (p) {
		p->o = *o;
		p->o.cancel = &p->cancel;
		ret = pthread_create(&t, NULL, open_it, p);
	}
	if (ret) {
		snprintf(text, size, "out of memory or threads");
		free(p);
		return -ret;
	}
	while (sem_wait(&event) && errno == EINTR)
		;
	if (asked) {
		/* The thread leaves the job.  If it still looks up a name, it ends with the process. */
		__atomic_store_n(&p->cancel, 1, __ATOMIC_RELAXED);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += CANCEL_S;
		while (sem_timedwait(&event, &until) && errno == EINTR)
			;
		/* The job began to run before saina_open() saw the signal: the others count on us. */
		if (__atomic_load_n(&p->returned, __ATOMIC_ACQUIRE) && !p->ret)
			saina_close(p->s);
		pthread_detach(t);
		snprintf(text, size, "ended by a signal before the job ran");
		return -EINTR;
	}
	pthread_join(t, NULL);
	ret = p->ret;
	*s = p->s;
	snprintf(text, size, "%s", p->text);
	free(p);
	return ret;
}

/* Since the signal: how many results there were, and since when no other has come. */
struct idle {
	uint64_t results, since;
};

static bool idle_too_long(struct idle *p, struct saina *s, unsigned int ms)
{
	struct saina_stats st = {.size = sizeof(st)};

	if (!asked)
		return false;
	saina_get_stats(s, &st);
	if (!p->since || st.results != p->results)
		p->since = monotonic_ms();
	p->results = st.results;
	return monotonic_ms() >= p->since + ms;
}

int stop_wait(struct saina *s, struct saina_req *req, struct saina_call *call, unsigned int ms)
{
	struct idle p = {0};

	while (!saina_poll(s, req, POLL_MS))
		if (idle_too_long(&p, s, ms))
			return -EINTR;
	return saina_wait(s, req, call);
}

int stop_read(struct saina *s, struct saina_step *step, unsigned int ms)
{
	struct idle p = {0};
	int ret;

	/* saina_decided() fails once the session has ended */
	while ((ret = saina_read(s, step, POLL_MS)) == -ETIMEDOUT && saina_decided(s) >= 0)
		if (idle_too_long(&p, s, ms))
			return -EINTR;
	return ret;
}
