// SPDX-License-Identifier: GPL-2.0-or-later
/* The list of ports: comparison with links and OVSDB, settings of a port. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ports/ports.h"
#include "net/tc.h"

struct port *ports_find(struct agent *a, int ifindex, const char *name)
{
	int i;

	for (i = 0; i < a->bridge->n; i++) {
		struct port *p = &a->bridge->port[i];

		if (ifindex && p->ifindex != ifindex)
			continue;
		if (name && strcmp(p->name, name))
			continue;
		return p;
	}
	return NULL;
}

bool port_is_policed(const struct port *p)
{
	return p->policing || tc_is_policed(p->ifindex);
}

static int faults_set(struct agent *a, struct port *p, const struct saina_port_conf *conf)
{
	int ret = saina_dp_port_set(a->dp, p->ifindex, conf);

	if (ret)
		return ret;
	p->faults = conf->loss_in || conf->loss_out;
	if (p->faults)
		log_info("port %s: injected faults: loss %.2f %% in, %.2f %% out", p->name,
			 conf->loss_in / 42949672.96, conf->loss_out / 42949672.96);
	else
		log_info("port %s: no injected faults any more", p->name);
	return 0;
}

int ports_set(struct agent *a, struct port *p, int hook, const struct saina_port_conf *conf,
	      char *text, size_t size)
{
	int before = p->hook_requested;
	int ret = conf ? faults_set(a, p, conf) : 0;

	if (ret) {
		snprintf(text, size, "port %s: %.80s", p->name, saina_dp_error(a->dp));
		return ret;
	}
	p->hook_requested = hook;
	ret = port_hook_apply(a, p);
	if (ret) {
		snprintf(text, size, "%s", p->text);
		p->hook_requested = before;
		if (p->mode != SAINA_PORT_MODE_NONE)
			port_hook_apply(a, p);
		return ret;
	}
	a->bridge->ops->changed(a, p);
	return 0;
}

void ports_hooks_apply(struct agent *a)
{
	int i;

	for (i = 0; i < a->bridge->n; i++) {
		struct port *p = &a->bridge->port[i];

		if (p->mode != SAINA_PORT_MODE_NONE && port_hook_apply(a, p))
			log_warn("port %s: stays as it was attached: %s", p->name, p->text);
	}
}

void ports_repaired(struct agent *a)
{
	int i;

	for (i = 0; i < a->bridge->n; i++) {
		struct port *p = &a->bridge->port[i];
		int mode = (int)saina_dp_hook(a->dp, p->ifindex);

		if (mode == p->mode)
			continue;
		p->mode = mode;
		if (port_hook_apply(a, p))
			log_warn("port %s: not attached any more: %s", p->name, p->text);
	}
}

static void port_remove(struct agent *a, struct port *p)
{
	struct port gone = *p;

	*p = a->bridge->port[--a->bridge->n];
	if (gone.mode != SAINA_PORT_MODE_NONE)
		port_detach(a, &gone);
	gone.mode = SAINA_PORT_MODE_NONE;
	snprintf(gone.text, sizeof(gone.text), "it is gone from the bridge");
	log_info("port %s is gone from bridge %s", gone.name, a->cfg.bridge);
	a->bridge->ops->port(a, &gone, false);
}

static struct port *port_add(struct agent *a, const struct link *link)
{
	struct port *p;

	if (a->bridge->n == a->bridge->room) {
		int room = a->bridge->room ? 2 * a->bridge->room : 32;

		p = realloc(a->bridge->port, room * sizeof(*p));
		if (!p) {
			log_error("port %s: out of memory", link->name);
			return NULL;
		}
		a->bridge->port = p;
		a->bridge->room = room;
	}
	p = &a->bridge->port[a->bridge->n++];
	memset(p, 0, sizeof(*p));
	p->ifindex = link->ifindex;
	p->mtu = link->mtu;
	p->hook_requested = a->cfg.hook;
	p->wanted = true;
	snprintf(p->name, sizeof(p->name), "%s", link->name);
	link_driver(p->name, p->driver, sizeof(p->driver));
	port_attach(a, p);
	a->bridge->ops->port(a, p, true);
	return p;
}

/* Adds or updates the port of a link.  @policing: of Open vSwitch, kbit/s */
static void port_want(struct agent *a, const struct link *link, long long policing)
{
	bool running = link->flags & IFF_RUNNING;
	const char *stp = link_stp_text(link);
	struct port *p;

	/* the bridge itself must pass all other traffic */
	if (link->ifindex == a->bridge->ifindex || !strcmp(link->kind, "bridge"))
		return;
	p = ports_find(a, link->ifindex, NULL);
	if (!p)
		p = port_add(a, link);
	if (!p)
		return;
	/* who is behind it hears an announcement from now on */
	if ((running && !p->running) || (!stp && p->stp))
		announce_soon(a);
	p->stp = stp;
	p->isolated = link->isolated;
	p->policing = policing;
	p->running = running;
	p->wanted = true;
	snprintf(p->name, sizeof(p->name), "%s", link->name);
	if (p->mtu != link->mtu) {
		p->mtu = link->mtu;
		/* the previous MTU may have been too large for native XDP */
		if (p->mode == SAINA_PORT_MODE_NONE)
			port_attach(a, p);
	}
}

static void want_interface(void *arg, const struct ovsdb_interface *i)
{
	struct agent *a = arg;
	const struct link *link = links_by_name(&a->bridge->links, i->name);

	/* patch ports and tunnels of the userspace datapath have no link, an internal
	 * port belongs to the host, an afxdp port has a program of its own */
	if (!link || (i->type[0] && strcmp(i->type, "system") && strcmp(i->type, "tap")))
		return;
	port_want(a, link, i->policing);
}

/* The bridge's MAC is the source of results.  A Linux bridge changes it when ports come
 * and go. */
static void bridge_sync(struct agent *a)
{
	const struct link *link = links_by_name(&a->bridge->links, a->cfg.bridge);
	struct saina_global g = { .ip = a->addr.s_addr };
	struct saina_global old;

	if (!link) {
		if (a->bridge->ifindex)
			log_warn("bridge %s is gone", a->cfg.bridge);
		a->bridge->ifindex = 0;
		a->bridge->running = false;
		return;
	}
	if (link->flags & IFF_RUNNING && !a->bridge->running)
		announce_soon(a);
	a->bridge->running = link->flags & IFF_RUNNING;
	if (link->ifindex == a->bridge->ifindex && !memcmp(link->mac, a->bridge->mac, 6))
		return;
	a->bridge->ifindex = link->ifindex;
	memcpy(a->bridge->mac, link->mac, 6);
	memcpy(g.mac, link->mac, 6);
	if (!saina_dp_global_get(a->dp, &old))
		g.flags = old.flags;
	if (saina_dp_global_set(a->dp, &g))
		log_error("bridge %s: %s", a->cfg.bridge, saina_dp_error(a->dp));
	log_info("bridge %s has MAC address %02x:%02x:%02x:%02x:%02x:%02x", a->cfg.bridge, g.mac[0],
		 g.mac[1], g.mac[2], g.mac[3], g.mac[4], g.mac[5]);
	a->bridge->ops->bridge(a);
	announce_soon(a);
}

void ports_sync(struct agent *a)
{
	int i;

	bridge_sync(a);
	for (i = 0; i < a->bridge->n; i++)
		a->bridge->port[i].wanted = false;
	if (a->bridge->ovs)
		ovsdb_interfaces(&a->bridge->ovsdb, a->cfg.bridge, want_interface, a);
	else if (a->bridge->ifindex)
		for (i = 0; i < a->bridge->links.n; i++)
			if (a->bridge->links.v[i].master == a->bridge->ifindex)
				port_want(a, &a->bridge->links.v[i], 0);
	for (i = a->bridge->n - 1; i >= 0; i--)
		if (!a->bridge->port[i].wanted)
			port_remove(a, &a->bridge->port[i]);
	a->jumbo = ports_have_tc(a);
	a->mtu = 0;
	for (i = 0; i < a->bridge->n; i++)
		if (!a->mtu || a->bridge->port[i].mtu < a->mtu)
			a->mtu = a->bridge->port[i].mtu;
}

void ports_detach_stale(struct agent *a)
{
	int ifindex[SAINA_PORTS_MAX], i, n;
	struct port p;

	n = saina_dp_attached(a->dp, ifindex, SAINA_PORTS_MAX);
	for (i = 0; i < n; i++) {
		if (ports_find(a, ifindex[i], NULL))
			continue;
		p = (struct port){ .ifindex = ifindex[i] };
		snprintf(p.name, sizeof(p.name), "#%d", ifindex[i]);
		port_detach(a, &p);
	}
}
