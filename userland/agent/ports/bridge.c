// SPDX-License-Identifier: GPL-2.0-or-later
/* Finds the bridge, and follows its ports by rtnetlink and OVSDB. */
#include <errno.h>
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
	int ret = -ENOENT;

	if (a->cfg.bridge_type != BRIDGE_LINUX) {
		ret = ovsdb_start(a);
		if (!ret && !ovsdb_bridge(&a->bridge->ovsdb, a->cfg.bridge, NULL)) {
			a->bridge->ovs = true;
			return 0;
		}
		if (a->cfg.bridge_type == BRIDGE_OVS) {
			if (ret)
				log_error("ovsdb: %s: %s: is Open vSwitch running?", a->cfg.ovsdb,
					  strerror(-ret));
			else
				log_error(
					"Open vSwitch has no bridge '%s': ovs-vsctl add-br %s makes it",
					a->cfg.bridge, a->cfg.bridge);
		}
		if (!ret)
			ovsdb_stop(a);
		if (a->cfg.bridge_type == BRIDGE_OVS)
			return ret ? ret : -ENODEV;
	}
	if (!link) {
		log_error(
			"there is no bridge '%s' here, neither in Open vSwitch (%s) nor as a Linux bridge",
			a->cfg.bridge,
			a->cfg.bridge_type == BRIDGE_AUTO ? a->cfg.ovsdb : "not asked");
		return -ENODEV;
	}
	if (strcmp(link->kind, "bridge")) {
		log_error("%s is no Linux bridge%s", a->cfg.bridge,
			  a->cfg.bridge_type == BRIDGE_AUTO
				  ? ", and Open vSwitch has none of that name"
				  : "");
		return -ENODEV;
	}
	return 0;
}

static int bridge_start(struct agent *a)
{
	int ret = find_bridge(a);

	if (ret)
		return ret;
	a->addr = a->cfg.address;
	if (!a->addr.s_addr && link_address(a->cfg.bridge, &a->addr, NULL)) {
		log_error(
			"bridge %s has no IPv4 address and none is configured: ip address add 192.0.2.1/24 dev %s, for one",
			a->cfg.bridge, a->cfg.bridge);
		return -EADDRNOTAVAIL;
	}
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
	b->retry = (struct source){ .fd = -1, .ready = retry_sources, .arg = a };
	ret = loop_timer_add(&a->loop, &b->retry);
	if (!ret)
		ret = links_start(a);
	if (!ret)
		ret = bridge_start(a);
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
	loop_timer_del(&a->loop, &b->retry);
	free(b->port);
	b->port = NULL;
	b->n = b->room = 0;
}
