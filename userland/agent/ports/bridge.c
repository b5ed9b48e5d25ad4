// SPDX-License-Identifier: GPL-2.0-or-later
/* Finds the bridge, and follows its ports by rtnetlink and OVSDB. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ports/ports.h"

#define RETRY_MS  1000
#define OVSDB_WAIT_MS 5000	/* at start, for the first reply */

static void retry_soon(struct bridge *b)
{
	loop_timer_set(&b->retry, RETRY_MS, 0);
}

/* Links */

static void links_ready(struct source *s, uint32_t events)
{
	struct agent *a = s->arg;
	struct bridge *b = a->bridge;

	/* an incomplete list of links is worse than the previous one */
	b->links_stale = links_receive(&b->links) != 0;
	if (b->links.repair) {
		b->links.repair = false;
		saina_dp_repair(a->dp);
		ports_repaired(a);
	}
	if (!b->links_stale) {
		ports_sync(a);
		if (b->links.addresses)
			announce_soon(a);
		b->links.addresses = false;
		return;
	}
	log_warn("rtnetlink: links change too fast to be read: ports stay as they are, trying again");
	retry_soon(b);
}

static int links_start(struct agent *a)
{
	struct bridge *b = a->bridge;
	int ret = links_follow(&b->links);

	b->links_source = (struct source){ .fd = -1, .ready = links_ready, .arg = a };
	if (!ret) {
		b->links_source.fd = links_fd(&b->links);
		ret = loop_add(&a->loop, &b->links_source, EPOLLIN);
	}
	if (ret)
		log_error("rtnetlink: %s", strerror(-ret));
	return ret;
}

/* OVSDB.  While its server is away the ports stay as last known. */

static int ovsdb_open(struct agent *a)
{
	struct bridge *b = a->bridge;
	int ret = ovsdb_connect(&b->ovsdb, a->cfg.ovsdb);

	if (ret)
		return ret;
	b->ovsdb_source.fd = b->ovsdb.fd;
	ret = loop_add(&a->loop, &b->ovsdb_source, EPOLLIN);
	if (ret)
		ovsdb_disconnect(&b->ovsdb);
	return ret;
}

static void ovsdb_stop(struct agent *a)
{
	if (a->bridge->ovsdb.fd >= 0)
		loop_del(&a->loop, &a->bridge->ovsdb_source);
	ovsdb_close(&a->bridge->ovsdb);
}

static void ovsdb_ready(struct source *s, uint32_t events)
{
	struct agent *a = s->arg;
	int ret = ovsdb_receive(&a->bridge->ovsdb);

	if (ret > 0)
		ports_sync(a);
	if (ret >= 0)
		return;
	log_warn("ovsdb: connection lost (%s): ports stay as they are, trying again every second",
		 strerror(-ret));
	loop_del(&a->loop, s);
	ovsdb_disconnect(&a->bridge->ovsdb);
	retry_soon(a->bridge);
}

/* Waits for the list of ports, which has to be known before anything is attached. */
static int ovsdb_start(struct agent *a)
{
	int ret = ovsdb_open(a);

	if (!ret)
		ret = ovsdb_wait(&a->bridge->ovsdb, OVSDB_WAIT_MS);
	if (ret)
		ovsdb_stop(a);
	return ret;
}

static void retry_sources(struct source *s, uint32_t events)
{
	struct agent *a = s->arg;
	struct bridge *b = a->bridge;

	loop_timer_ack(s);
	if (b->links_stale && !links_read(&b->links)) {
		b->links_stale = false;
		ports_sync(a);
	}
	if (b->ovs && b->ovsdb.fd < 0 && !ovsdb_open(a))
		log_info("ovsdb: connected again");
	if (b->links_stale || (b->ovs && b->ovsdb.fd < 0))
		retry_soon(b);
}

static int find_bridge(struct agent *a)
{
	const struct link *link = links_by_name(&a->bridge->links, a->cfg.bridge);
	char asked[160] = "Open vSwitch not asked";
	int ret = -ENOENT;

	if (a->cfg.bridge_type != BRIDGE_LINUX) {
		ret = ovsdb_start(a);
		if (!ret && !ovsdb_bridge(&a->bridge->ovsdb, a->cfg.bridge, NULL)) {
			a->bridge->ovs = true;
			return 0;
		}
		snprintf(asked, sizeof(asked), "Open vSwitch at %s: %s", a->cfg.ovsdb,
			 ret ? strerror(-ret) : "no bridge of that name");
		if (!ret)
			ovsdb_stop(a);
	}
	if (a->cfg.bridge_type == BRIDGE_OVS) {
		log_error("%s: there is no such bridge (%s): %s", a->cfg.bridge, asked,
			  ret ? "is Open vSwitch running, and is this its socket (--ovsdb)?"
			      : "`ovs-vsctl add-br` creates one");
		return ret ? ret : -ENODEV;
	}
	if (link && !strcmp(link->kind, "bridge"))
		return 0;
	log_error("%s%s (%s): choose another bridge (--bridge), or another socket of Open vSwitch (--ovsdb)",
		  a->cfg.bridge, link ? " is not a Linux bridge" : ": there is no such bridge here",
		  asked);
	return -ENODEV;
}

static int bridge_find(struct agent *a)
{
	int ret = find_bridge(a);

	if (ret)
		return ret;
	a->addr = a->cfg.address;
	if (!a->addr.s_addr && link_address(a->cfg.bridge, &a->addr, NULL)) {
		log_error(
			"bridge %s has no IPv4 address and none is configured: add one (such as `ip address add 192.0.2.1/24 dev %s`), or set --address",
			a->cfg.bridge, a->cfg.bridge);
		return -EADDRNOTAVAIL;
	}
	return 0;
}

int bridge_attach(struct agent *a)
{
	ports_sync(a);
	if (!a->bridge->ifindex) {
		log_error("bridge %s has no interface here: is it in another network namespace?",
			  a->cfg.bridge);
		return -ENODEV;
	}
	ports_detach_stale(a);
	return 0;
}

int bridge_init(struct agent *a, const struct bridge_ops *ops)
{
	struct bridge *b = a->bridge;
	int ret;

	b->ops = ops;
	b->ovsdb.fd = -1;
	b->ovsdb_source = (struct source){ .fd = -1, .ready = ovsdb_ready, .arg = a };
	b->announce.fd = -1;
	b->retry = (struct source){ .fd = -1, .ready = retry_sources, .arg = a };
	ret = loop_timer_add(&a->loop, &b->retry);
	if (!ret)
		ret = announce_init(a);
	if (!ret)
		ret = links_start(a);
	if (!ret)
		ret = bridge_find(a);
	if (ret)
		bridge_uninit(a);
	return ret;
}

/* Does not detach: saina_dp_close() decides about that. */
void bridge_uninit(struct agent *a)
{
	struct bridge *b = a->bridge;

	ovsdb_stop(a);
	if (b->links.nl)
		loop_del(&a->loop, &b->links_source);
	links_close(&b->links);
	loop_timer_del(&a->loop, &b->announce);
	loop_timer_del(&a->loop, &b->retry);
	free(b->port);
	b->port = NULL;
	b->n = b->room = 0;
}
