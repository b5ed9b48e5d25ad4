// SPDX-License-Identifier: GPL-2.0-or-later
/* The ring buffers of the programs: events, and answers that the agent is to relay. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include "dp/priv.h"

/* libbpf stops after the record for which its callback returns an error. */
static int budget_spent(struct saina_dp *dp)
{
	return dp->budget && !--dp->budget ? -EAGAIN : 0;
}

static int event_deliver(void *ctx, void *data, size_t size)
{
	struct saina_dp *dp = ctx;

	if (size >= sizeof(struct saina_event) && dp->cb && dp->cb->event)
		dp->cb->event(dp->cb->arg, data);
	return budget_spent(dp);
}

static int relay_deliver(void *ctx, void *data, size_t size)
{
	const struct saina_relay_msg *m = data;
	struct saina_dp *dp = ctx;

	if (size >= offsetof(struct saina_relay_msg, payload) &&
	    m->len <= size - offsetof(struct saina_relay_msg, hdr) && dp->cb && dp->cb->relay)
		dp->cb->relay(dp->cb->arg, m);
	return budget_spent(dp);
}

void dp_rings_close(struct saina_dp *dp)
{
	for (int i = 0; i < DP_RINGS; i++) {
		if (dp->rings[i])
			ring_buffer__free(dp->rings[i]);
		dp->rings[i] = NULL;
	}
	if (dp->events_timer >= 0)
		close(dp->events_timer);
	if (dp->rings_epoll >= 0)
		close(dp->rings_epoll);
	dp->events_timer = -1;
	dp->rings_epoll = -1;
	dp->events_rest = false;
}

/* The next events are left in their ring for @ms. */
static int events_set_rest(struct saina_dp *dp, unsigned int ms)
{
	struct itimerspec its = { .it_value.tv_nsec = ms * 1000000 };
	struct epoll_event ev = { .events = ms ? 0 : EPOLLIN };

	dp->events_rest = ms;
	timerfd_settime(dp->events_timer, 0, &its, NULL);
	if (epoll_ctl(dp->rings_epoll, EPOLL_CTL_MOD,
		      ring_buffer__epoll_fd(dp->rings[DP_RING_EVENTS]), &ev))
		return dp_fail(dp, -errno, "ring buffers: %s", strerror(errno));
	return 0;
}

/* Returns what ring_buffer__consume() does, or 0 while they rest. */
static int events_consume(struct saina_dp *dp)
{
	uint64_t expired;
	int n, err;

	if (dp->events_rest && read(dp->events_timer, &expired, sizeof(expired)) < 0)
		return 0;
	n = ring_buffer__consume(dp->rings[DP_RING_EVENTS]);
	if (dp->events_rest || (n > 0 && dp->cb->rest_ms)) {
		err = events_set_rest(dp, n > 0 ? dp->cb->rest_ms : 0);
		if (err)
			return err;
	}
	return n;
}

/* One ring_buffer each: a flood of events does not delay relays, and vice versa. */
static int rings_open(struct saina_dp *dp)
{
	static const struct {
		enum dp_map map;
		ring_buffer_sample_fn fn;
	} ring[DP_RINGS] = {
		[DP_RING_EVENTS] = { DP_EVENTS, event_deliver },
		[DP_RING_RELAY] = { DP_RELAY, relay_deliver },
	};
	struct epoll_event ev = { .events = EPOLLIN };
	int err = 0;

	if (dp->rings_epoll >= 0)
		return 0;
	dp->rings_epoll = epoll_create1(EPOLL_CLOEXEC);
	dp->events_timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (dp->rings_epoll < 0 || dp->events_timer < 0 ||
	    epoll_ctl(dp->rings_epoll, EPOLL_CTL_ADD, dp->events_timer, &ev))
		err = -errno;
	for (int i = 0; !err && i < DP_RINGS; i++) {
		dp->rings[i] = ring_buffer__new(dp->map[ring[i].map], ring[i].fn, dp, NULL);
		if (!dp->rings[i] || epoll_ctl(dp->rings_epoll, EPOLL_CTL_ADD,
					       ring_buffer__epoll_fd(dp->rings[i]), &ev))
			err = -errno;
	}
	if (!err)
		return 0;
	dp_rings_close(dp);
	return dp_fail(dp, err, "ring buffers: %s", strerror(-err));
}

/**
 * saina_dp_event_fd() - readable when saina_dp_event_dispatch() has work
 *
 * Returns a descriptor that stays the handle's, or a negative errno.
 */
int saina_dp_event_fd(struct saina_dp *dp)
{
	int err = rings_open(dp);

	return err ? err : dp->rings_epoll;
}

/**
 * saina_dp_event_dispatch() - call back for the records that wait, events first
 *
 * Returns 0, or a negative errno.
 */
int saina_dp_event_dispatch(struct saina_dp *dp, const struct saina_dp_cb *cb)
{
	int n, err = rings_open(dp);

	dp->cb = cb;
	for (int i = 0; !err && i < DP_RINGS; i++) {
		dp->budget = cb->max;
		n = i == DP_RING_EVENTS ? events_consume(dp) : ring_buffer__consume(dp->rings[i]);
		if (n < 0 && n != -EAGAIN)
			err = dp_fail(dp, n, "ring buffers: %s", strerror(-n));
	}
	dp->cb = NULL;
	return err;
}
