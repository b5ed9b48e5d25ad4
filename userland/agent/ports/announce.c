// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Workers and other hosts have a neighbour entry of the aggregator's address, and use it for up to
 * a minute after its MAC address has changed: the bridge was made again, has taken the address of
 * another port, or the agent has moved to another host.  So the address is announced, and again
 * when a port comes, because that is when somebody behind it can hear it.
 */
#include <string.h>

#include "agent/ports/ports.h"
#include "net/arp.h"

#define TIMES  4
#define GAP_MS 200	/* doubled each time: a port that has just come may not forward yet */

static void announce(struct source *s, uint32_t events)
{
	struct agent *a = s->arg;
	struct bridge *b = a->bridge;
	int ret;

	loop_timer_ack(s);
	/* an address that another interface has is none of the bridge's neighbours' business */
	if (b->running && link_has_address(a->cfg.bridge, a->addr)) {
		ret = arp_announce(b->ifindex, b->mac, a->addr);
		if (ret && ret != b->announce_error)
			log_warn("bridge %s: cannot announce the aggregator's address: %s: workers may use an old MAC address for up to a minute",
				 a->cfg.bridge, strerror(-ret));
		b->announce_error = ret;
		b->announcements += !ret;
	}
	b->announced_at = loop_now();
	if (++b->announced < TIMES)
		loop_timer_set(s, GAP_MS << (b->announced - 1), 0);
}

void announce_soon(struct agent *a)
{
	struct bridge *b = a->bridge;
	uint64_t ms = (loop_now() - b->announced_at) / NSEC_PER_MSEC;

	b->announced = 0;
	loop_timer_set(&b->announce, ms < GAP_MS ? GAP_MS - ms : 1, 0);
}

int announce_init(struct agent *a)
{
	struct bridge *b = a->bridge;

	b->announce = (struct source){ .fd = -1, .ready = announce, .arg = a };
	return loop_timer_add(&a->loop, &b->announce);
}
