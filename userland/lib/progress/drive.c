// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Who drives: one thread at a time sends, receives and keeps the time, turn by turn.
 *
 * A thread of the trainer that waits for an all-reduce drives itself: its results wake nobody
 * else.  When several wait, one of them drives, and another when that one has what it waited
 * for.  When none waits it is the library's own thread, but not at once: most trainers come
 * back in a moment, with the next all-reduce or to wait for one.
 */
#include <fenv.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif
#include "base.h"

#define REST_NS	 200000	/* that the library's thread leaves the sockets alone */
/* ... and after a start, for the next one or a wait mostly comes at once: then nobody is woken,
 * and what both have to send goes together.
 */
#define START_NS 100000

static void default_float(void)
{
	fesetenv(FE_DFL_ENV);
#if defined(__x86_64__)
	_mm_setcsr(0x1f80); /* to nearest, no flush to zero, whatever was inherited */
#endif
}

/* The next one may drive; locked. */
static void stop_driving(struct saina *s)
{
	s->driven = false;
	if (s->waiting)
		pthread_cond_broadcast(&s->cond);
}

/* Something is to be sent, or the thread is to stop: whoever drives looks; locked. */
void saina_kick(struct saina *s)
{
	if (s->driven)
		saina_io_kick(&s->io);
	else if (!s->waiting)
		saina_io_alarm(&s->io, START_NS);
}

uint64_t saina_until(int timeout_ms)
{
	return timeout_ms < 0 ? NEVER : saina_now() + timeout_ms * MSEC;
}

static bool is_over(const struct saina_req *req, uint64_t until)
{
	return req->finished || (until != NEVER && saina_now() >= until);
}

/* Another thread drives; locked. */
static void wait_until(struct saina *s, uint64_t until)
{
	struct timespec t = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};

	if (until == NEVER)
		pthread_cond_wait(&s->cond, &s->lock);
	else
		pthread_cond_timedwait(&s->cond, &s->lock, &t);
}

/* Turns of the trainer's thread, in the floating-point environment of the library's; locked. */
static void drive_until(struct saina *s, const struct saina_req *req, uint64_t until)
{
	fenv_t env;

	fegetenv(&env);
	default_float();
	s->driven = true;
	while (!is_over(req, until)) {
		pthread_mutex_unlock(&s->lock);
		saina_turn(s, req, until);
		pthread_mutex_lock(&s->lock);
	}
	stop_driving(s);
	fesetenv(&env);
}

bool saina_drive(struct saina *s, const struct saina_req *req, uint64_t until)
{
	if (is_over(req, until))
		return req->finished;
	if (s->driven && !s->waiting)
		saina_io_kick(&s->io); /* the library's thread is to make room */
	if (!s->waiting++)
		saina_io_alarm(&s->io, 0);
	while (!is_over(req, until)) {
		if (s->driven)
			wait_until(s, until);
		else
			drive_until(s, req, until);
	}
	if (!--s->waiting)
		saina_io_alarm(&s->io, REST_NS);
	return req->finished;
}

void *saina_thread(void *arg)
{
	struct saina *s = arg;

	default_float();
	pthread_mutex_lock(&s->lock);
	while (!s->stop) {
		if (s->driven || s->waiting) {
			pthread_mutex_unlock(&s->lock);
			saina_io_rest(&s->io);
			pthread_mutex_lock(&s->lock);
			continue;
		}
		s->driven = true;
		while (!s->stop && !s->waiting) {
			pthread_mutex_unlock(&s->lock);
			saina_turn(s, NULL, NEVER);
			pthread_mutex_lock(&s->lock);
		}
		stop_driving(s);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}
