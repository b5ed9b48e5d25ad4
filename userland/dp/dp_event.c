// SPDX-License-Identifier: GPL-2.0-or-later
/* What the program says by itself: events, and answers for slow ports. */
#include <errno.h>
#include <string.h>
#include "dp/priv.h"

static int on_event(void *ctx, void *data, size_t size)
{
	struct saina_dp *dp = ctx;

	if (size >= sizeof(struct saina_event) && dp->cb && dp->cb->event)
		dp->cb->event(dp->cb->arg, data);
	return 0;
}

static int on_relay(void *ctx, void *data, size_t size)
{
	const struct saina_relay_msg *m = data;
	struct saina_dp *dp = ctx;

	if (size >= offsetof(struct saina_relay_msg, payload) &&
	    m->len <= size - offsetof(struct saina_relay_msg, hdr) && dp->cb && dp->cb->relay)
		dp->cb->relay(dp->cb->arg, m);
	return 0;
}

static int open_rings(struct saina_dp *dp)
{
	if (dp->rings)
		return 0;
	dp->rings = ring_buffer__new(dp->map[DP_EVENTS], on_event, dp, NULL);
	if (!dp->rings || ring_buffer__add(dp->rings, dp->map[DP_RELAY], on_relay, dp)) {
		int err = -errno;

		if (dp->rings)
			ring_buffer__free(dp->rings);
		dp->rings = NULL;
		return dp_fail(dp, err, "ring buffers: %s", strerror(-err));
	}
	return 0;
}

/**
 * saina_dp_event_fd() - readable when saina_dp_event_dispatch() has work
 *
 * Returns a descriptor that stays the handle's, or a negative errno.
 */
int saina_dp_event_fd(struct saina_dp *dp)
{
	int err = open_rings(dp);

	return err ? err : ring_buffer__epoll_fd(dp->rings);
}

/**
 * saina_dp_event_dispatch() - call back for all that waits
 *
 * Returns how much it was, or a negative errno.
 */
int saina_dp_event_dispatch(struct saina_dp *dp, const struct saina_dp_cb *cb)
{
	int n = open_rings(dp);

	if (n)
		return n;
	dp->cb = cb;
	n = ring_buffer__consume(dp->rings);
	dp->cb = NULL;
	return n;
}
