// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which ports the bridge has.  Whenever OVSDB or rtnetlink say that something
 * changed, ports_sync() compares what should be attached with what is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/control/encode.h"

struct port *ports_find(struct agent *a, int ifindex, const char *name)
{
	int i;

	for (i = 0; i < a->ports.n; i++) {
		struct port *p = &a->ports.port[i];

		if (ifindex && p->ifindex != ifindex)
			continue;
		if (name && strcmp(p->name, name))
			continue;
		return p;
	}
	return NULL;
}

void ports_workers(struct agent *a, int ifindex, uint32_t *workers, uint32_t *relayed)
{
	const struct saina_job *job;
	int id, w;

	*workers = *relayed = 0;
	for (id = 0; (job = saina_core_job_next(a->jobs.core, id)); id = job->id + 1)
		for (w = 0; w < job->workers; w++) {
			if (!jobs_alive(job, w) || (int)job->worker[w].bind.ifindex != ifindex)
				continue;
			++*workers;
			*relayed += !!(job->relay & 1ull << w);
		}
}

static void port_notify(struct agent *a, const struct port *p)
{
	struct msg m;

	if (!(a->ctl.groups & SAINA_GROUPS_CONFIG))
		return;
	msg_start(&m, SAINA_CMD_PORT_NTF, 0, 0);
	encode_port(&m, a, p);
	ctlserver_notify(a, SAINA_GROUPS_CONFIG, m.nlh);
}

static void port_event(struct agent *a, const struct port *p, bool there)
{
	struct saina_event ev = {
		.type = SAINA_EV_PORT,
		.worker = 0xff,
		.a = p->ifindex,
		.b = there,
	};

	events_control(a, &ev, p->name);
	port_notify(a, p);
}

int ports_faults_set(struct agent *a, struct port *p, const struct saina_port_conf *conf)
{
	int ret;

	if (conf->delay_in_us || conf->delay_out_us) {
		ret = saina_dp_delay_start(a->dp);
		if (ret)
			return ret;
	}
	ret = saina_dp_port_set(a->dp, p->ifindex, conf);
	if (ret)
		return ret;
	p->faults = conf->loss_in || conf->loss_out || conf->delay_in_us || conf->delay_out_us;
	if (p->faults)
		log_info(
			"port %s: faults on purpose: lost %.2f %% in, %.2f %% out, held %u us in, %u us out",
			p->name, conf->loss_in / 42949672.96, conf->loss_out / 42949672.96,
			conf->delay_in_us, conf->delay_out_us);
	else
		log_info("port %s: no more faults on purpose", p->name);
	port_notify(a, p);
	return 0;
}

/* What was behind the port cannot be reached any more. */
static void port_bury_workers(struct agent *a, const struct port *p)
{
	const struct saina_job *job;
	char why[64];
	int id, w;

	snprintf(why, sizeof(why), "its port %s is gone from the bridge", p->name);
	for (id = 0; (job = saina_core_job_next(a->jobs.core, id)); id = job->id + 1)
		for (w = 0; w < job->workers; w++)
			if (jobs_alive(job, w) && (int)job->worker[w].bind.ifindex == p->ifindex)
				jobs_worker_end(a, job, w, SAINA_WORKER_STATE_DEAD, why);
}

static void port_remove(struct agent *a, struct port *p)
{
	struct port gone = *p;

	*p = a->ports.port[--a->ports.n];
	if (gone.mode != SAINA_PORT_MODE_NONE)
		detach_port(a, &gone);
	gone.mode = SAINA_PORT_MODE_NONE;
	snprintf(gone.text, sizeof(gone.text), "it is gone from the bridge");
	log_info("port %s is gone from bridge %s", gone.name, a->cfg.bridge);
	port_bury_workers(a, &gone);
	port_event(a, &gone, false);
}

static void port_add(struct agent *a, const struct link *link)
{
	struct port *p;

	if (a->ports.n == a->ports.room) {
		int room = a->ports.room ? 2 * a->ports.room : 32;

		p = realloc(a->ports.port, room * sizeof(*p));
		if (!p) {
			log_error("port %s: out of memory", link->name);
			return;
		}
		a->ports.port = p;
		a->ports.room = room;
	}
	p = &a->ports.port[a->ports.n++];
	memset(p, 0, sizeof(*p));
	p->ifindex = link->ifindex;
	p->mtu = link->mtu;
	p->wanted = true;
	snprintf(p->name, sizeof(p->name), "%s", link->name);
	rtnl_driver(p->name, p->driver, sizeof(p->driver));
	attach_port(a, p);
	port_event(a, p, p->mode != SAINA_PORT_MODE_NONE);
}

/* A link that should be a port. */
static void port_want(struct agent *a, const struct link *link)
{
	struct port *p;

	/* the bridge itself is where everything foreign has to get through */
	if (link->ifindex == a->ports.bridge_ifindex || !strcmp(link->kind, "bridge"))
		return;
	p = ports_find(a, link->ifindex, NULL);
	if (!p) {
		port_add(a, link);
		return;
	}
	p->wanted = true;
	snprintf(p->name, sizeof(p->name), "%s", link->name);
	if (p->mtu != link->mtu) {
		p->mtu = link->mtu;
		/* an MTU that was too large for native XDP may fit now */
		if (p->mode == SAINA_PORT_MODE_NONE)
			attach_port(a, p);
	}
}

static void want_interface(void *arg, const char *name, const char *type)
{
	struct agent *a = arg;
	const struct link *link = rtnl_by_name(&a->rtnl, name);

	/* patch ports and tunnels of the userspace datapath are no devices here,
	 * an internal port is the host's own, an afxdp port has its own program */
	if (!link || (type[0] && strcmp(type, "system") && strcmp(type, "tap")))
		return;
	port_want(a, link);
}

/* The bridge's MAC is what results come from; a Linux bridge changes it when
 * ports come and go. */
static void bridge_sync(struct agent *a)
{
	const struct link *link = rtnl_by_name(&a->rtnl, a->cfg.bridge);
	struct saina_global g = { .ip = a->addr.s_addr };
	struct saina_global old;

	if (!link) {
		if (a->ports.bridge_ifindex)
			log_warn("bridge %s is gone", a->cfg.bridge);
		a->ports.bridge_ifindex = 0;
		return;
	}
	if (link->ifindex == a->ports.bridge_ifindex && !memcmp(link->mac, a->ports.bridge_mac, 6))
		return;
	a->ports.bridge_ifindex = link->ifindex;
	memcpy(a->ports.bridge_mac, link->mac, 6);
	memcpy(g.mac, link->mac, 6);
	if (!saina_dp_global_get(a->dp, &old))
		g.flags = old.flags;
	if (saina_dp_global_set(a->dp, &g))
		log_error("bridge %s: %s", a->cfg.bridge, saina_dp_error(a->dp));
}

/* A program that is on no port only keeps saina.ko from being unloaded. */
static void rest(struct agent *a)
{
	if (a->plane.kernel)
		saina_dp_rest(a->dp);
}

void ports_retry(struct agent *a)
{
	int i;

	for (i = 0; i < a->ports.n; i++) {
		struct port *p = &a->ports.port[i];

		if (p->mode != SAINA_PORT_MODE_NONE)
			continue;
		attach_port(a, p);
		port_event(a, p, p->mode != SAINA_PORT_MODE_NONE);
	}
}

void ports_sync(struct agent *a)
{
	int i;

	bridge_sync(a);
	for (i = 0; i < a->ports.n; i++)
		a->ports.port[i].wanted = false;
	if (a->ports.ovs)
		ovsdb_interfaces(&a->ovsdb, a->cfg.bridge, want_interface, a);
	else if (a->ports.bridge_ifindex)
		for (i = 0; i < a->rtnl.n_links; i++)
			if (a->rtnl.link[i].master == a->ports.bridge_ifindex)
				port_want(a, &a->rtnl.link[i]);
	for (i = a->ports.n - 1; i >= 0; i--)
		if (!a->ports.port[i].wanted)
			port_remove(a, &a->ports.port[i]);
	rest(a);
}

/* Attachments found pinned of ports that are no longer the bridge's. */
static void detach_strangers(struct agent *a)
{
	int ifindex[SAINA_PORTS_MAX], i, n;
	struct port p;

	n = saina_dp_attached(a->dp, ifindex, SAINA_PORTS_MAX);
	for (i = 0; i < n; i++) {
		if (ports_find(a, ifindex[i], NULL))
			continue;
		p = (struct port){ .ifindex = ifindex[i] };
		snprintf(p.name, sizeof(p.name), "#%d", ifindex[i]);
		detach_port(a, &p);
	}
	rest(a);
}

static int find_bridge(struct agent *a)
{
	const struct link *link = rtnl_by_name(&a->rtnl, a->cfg.bridge);
	int ret = -ENOENT;

	if (a->cfg.bridge_type != BRIDGE_LINUX) {
		ret = ovsdb_init(a);
		if (!ret && ovsdb_has_bridge(&a->ovsdb, a->cfg.bridge)) {
			a->ports.ovs = true;
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
			ovsdb_uninit(a);
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

int ports_init(struct agent *a)
{
	int ret = find_bridge(a);

	if (ret)
		return ret;
	a->addr = a->cfg.address;
	if (!a->addr.s_addr && rtnl_address(a->cfg.bridge, &a->addr)) {
		log_error(
			"bridge %s has no IPv4 address and none is configured: ip address add 192.0.2.1/24 dev %s, for one",
			a->cfg.bridge, a->cfg.bridge);
		ret = -EADDRNOTAVAIL;
		goto err;
	}
	ports_sync(a);
	if (!a->ports.bridge_ifindex) {
		log_error("bridge %s has no interface here: is it in another network namespace?",
			  a->cfg.bridge);
		ret = -ENODEV;
		goto err;
	}
	detach_strangers(a);
	return 0;

err:
	ports_uninit(a);
	return ret;
}

/* Leaves the attachments: whether they go is saina_dp_close()'s business. */
void ports_uninit(struct agent *a)
{
	if (a->ports.ovs)
		ovsdb_uninit(a);
	free(a->ports.port);
	a->ports.port = NULL;
	a->ports.n = a->ports.room = 0;
}
