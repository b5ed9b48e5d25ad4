// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <sys/timerfd.h>
#include "agent/log.h"
#include "agent/loop.h"

uint64_t loop_now(void)
{
	return monotonic_ns();
}

static int call_failed(const char *call)
{
	int err = -errno;

	log_error("event loop: %s: %s", call, strerror(-err));
	return err;
}

int loop_init(struct loop *l)
{
	l->stop = false;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	return l->epoll < 0 ? call_failed("epoll_create1") : 0;
}

void loop_uninit(struct loop *l)
{
	close(l->epoll);
	l->epoll = -1;
}

int loop_add(struct loop *l, struct source *s, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = s };

	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, s->fd, &ev) ? call_failed("epoll_ctl") : 0;
}

int loop_change(struct loop *l, struct source *s, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = s };

	return epoll_ctl(l->epoll, EPOLL_CTL_MOD, s->fd, &ev) ? -errno : 0;
}

void loop_del(struct loop *l, struct source *s)
{
	epoll_ctl(l->epoll, EPOLL_CTL_DEL, s->fd, NULL);
}

int loop_turn(struct loop *l, int timeout_ms)
{
	struct epoll_event ev;
	struct source *s;
	int n;

	/* one at a time: a handler may free any other source */
	n = epoll_wait(l->epoll, &ev, 1, timeout_ms);
	if (n < 0)
		return errno == EINTR ? 0 : call_failed("epoll_wait");
	if (n) {
		s = ev.data.ptr;
		s->ready(s, ev.events);
	}
	return 0;
}

int loop_run(struct loop *l, void (*after)(void *arg), void *arg)
{
	int ret = 0;

	while (!l->stop && !ret) {
		ret = loop_turn(l, -1);
		after(arg);
	}
	return ret;
}

int loop_timer_add(struct loop *l, struct source *s)
{
	int ret;

	s->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (s->fd < 0)
		return call_failed("timerfd_create");
	ret = loop_add(l, s, EPOLLIN);
	if (ret) {
		close(s->fd);
		s->fd = -1;
	}
	return ret;
}

static struct timespec from_ms(unsigned int ms)
{
	return (struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * NSEC_PER_MSEC };
}

void loop_timer_set(struct source *s, unsigned int first_ms, unsigned int period_ms)
{
	struct itimerspec its = {
		.it_value = from_ms(first_ms),
		.it_interval = from_ms(period_ms),
	};

	timerfd_settime(s->fd, 0, &its, NULL);
}

void loop_timer_ack(struct source *s)
{
	uint64_t expirations;
	ssize_t n = read(s->fd, &expirations, sizeof(expirations));

	(void)n; /* EAGAIN: the timer was rearmed meanwhile */
}

void loop_timer_del(struct loop *l, struct source *s)
{
	if (s->fd < 0)
		return;
	loop_del(l, s);
	close(s->fd);
	s->fd = -1;
}
