// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Who drives: one thread at a time sends, receives and keeps the time, turn by turn.
 *
 * A thread of the trainer that waits for an all-reduce drives itself, so its results wake no other
 * thread.  When several wait, one of them drives, and another when that one has its result.  When
 * none waits, the library's own thread drives, but not at once: most trainers soon start or wait
 * for the next all-reduce.
 */
#include <fenv.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif
#include "progress.h"

#define REST_NS 200000 /* the library's thread begins this long after the last wait */
/* The same after an all-reduce has started.  Mostly another one, or a wait, follows at once: then
 * nobody is woken, and the messages of both leave together.
 */
#define START_NS 100000

static void set_default_fenv(void)
{
	fesetenv(FE_DFL_ENV);
#if defined(__x86_64__)
	_mm_setcsr(0x1f80); /* to nearest, no flush to zero, whatever was inherited */
#endif
}

/* Caller holds s->lock.  Another thread may drive now. */
static void stop_progress(struct saina *s)
{
	s->progressing = false;
	if (s->waiting)
		pthread_cond_broadcast(&s->cond);
}

void saina_wake(struct saina *s)
{
	if (s->progressing)
		saina_io_wake(&s->io);
	else if (!s->waiting)
		saina_io_set_timer(&s->io, START_NS);
}

uint64_t saina_deadline(int timeout_ms)
{
	return timeout_ms < 0 ? NEVER : saina_now() + timeout_ms * MSEC;
}

static bool is_over(const struct saina_req *req, uint64_t until)
{
	return req->finished || (until != NEVER && saina_now() >= until);
}

/* Caller holds s->lock.  Waits while another thread drives. */
static void wait_until(struct saina *s, uint64_t until)
{
	struct timespec t = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};

	if (until == NEVER)
		pthread_cond_wait(&s->cond, &s->lock);
	else
		pthread_cond_timedwait(&s->cond, &s->lock, &t);
}

/* Caller holds s->lock.  Turns of the trainer's thread, in the default rounding mode. */
static void progress_until(struct saina *s, const struct saina_req *req, uint64_t until)
{
	fenv_t env;

	fegetenv(&env);
	set_default_fenv();
	s->progressing = true;
	while (!is_over(req, until)) {
		pthread_mutex_unlock(&s->lock);
		saina_progress(s, req, until);
		pthread_mutex_lock(&s->lock);
	}
	stop_progress(s);
	fesetenv(&env);
}

bool saina_progress_until(struct saina *s, const struct saina_req *req, uint64_t until)
{
	if (is_over(req, until))
		return req->finished;
	if (s->progressing && !s->waiting)
		saina_io_wake(&s->io); /* so that the library's thread stops driving */
	if (!s->waiting++)
		saina_io_set_timer(&s->io, 0);
	while (!is_over(req, until)) {
		if (s->progressing)
			wait_until(s, until);
		else
			progress_until(s, req, until);
	}
	if (!--s->waiting)
		saina_io_set_timer(&s->io, REST_NS);
	return req->finished;
}

void *saina_progress_thread(void *arg)
{
	struct saina *s = arg;

	set_default_fenv();
	pthread_mutex_lock(&s->lock);
	while (!s->stop) {
		if (s->progressing || s->waiting) {
			pthread_mutex_unlock(&s->lock);
			saina_io_wait_timer(&s->io);
			pthread_mutex_lock(&s->lock);
			continue;
		}
		s->progressing = true;
		while (!s->stop && !s->waiting) {
			pthread_mutex_unlock(&s->lock);
			saina_progress(s, NULL, NEVER);
			pthread_mutex_lock(&s->lock);
		}
		stop_progress(s);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}
