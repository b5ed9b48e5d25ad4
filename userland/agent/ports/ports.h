/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ports of the bridge, and the program on them.  When OVSDB or rtnetlink notify a
 * change, the ports that should be attached are compared with those that are.
 */
#ifndef AGENT_PORTS_H
#define AGENT_PORTS_H

#include "agent/agent.h"
#include "net/links.h"
#include "net/ovsdb.h"

/**
 * struct port - a port of the bridge
 * @mode: enum saina_port_mode
 * @hook_requested: enum saina_port_hook
 * @wanted: used by ports_sync()
 * @faults: loss is injected
 * @running: its link is up
 * @stp: spanning-tree state that keeps it from forwarding, NULL: none
 * @isolated: it exchanges nothing with other isolated ports of its bridge
 * @policing: of Open vSwitch, kbit/s, 0: none
 * @text: why it is not attached, or why at this hook
 */
struct port {
	int ifindex;
	char name[IFNAMSIZ];
	char driver[32];
	unsigned int mtu;
	int mode;
	int hook_requested;
	bool wanted;
	bool faults;
	bool running;
	const char *stp;
	bool isolated;
	long long policing;
	char text[SAINA_TEXT_LEN];
};

/**
 * struct bridge_ops - notifications
 * @port: a new port (maybe not attached); @there false: a port is gone
 * @hook: a port was attached, or moved to another hook
 * @bridge: the bridge's interface or MAC address is another one
 * @changed: injected faults or the requested hook of a port changed
 */
struct bridge_ops {
	void (*port)(struct agent *a, const struct port *p, bool there);
	void (*hook)(struct agent *a, const struct port *p);
	void (*bridge)(struct agent *a);
	void (*changed)(struct agent *a, const struct port *p);
};

/**
 * struct bridge
 * @retry: timer to read links, or to connect to OVSDB, again
 * @links_stale: the list of links is incomplete
 * @announce: timer of the next announcement of the aggregator's address
 * @announced: announcements since the last change
 * @announcements: .. that were sent, in all
 * @announced_at: time of the last one
 * @announce_error: its negative errno, or 0
 * @running: its interface is up, and has a port that is
 * @ovs: the bridge is Open vSwitch's, else a Linux bridge
 */
struct bridge {
	const struct bridge_ops *ops;
	struct links links;
	struct ovsdb ovsdb;
	struct source links_source, ovsdb_source, retry, announce;
	unsigned int announced;
	uint64_t announcements;
	uint64_t announced_at;
	int announce_error;
	bool links_stale;
	bool ovs;
	int ifindex;
	bool running;
	unsigned char mac[6];
	struct port *port;
	int n, room;
};

/* Finds the bridge and its address; attaches nothing. */
int bridge_init(struct agent *a, const struct bridge_ops *ops);
/* Attaches the program to the bridge's ports, and follows them from now on. */
int bridge_attach(struct agent *a);
void bridge_uninit(struct agent *a);

/* announce.c */
int announce_init(struct agent *a);
/* Announces the aggregator's address: bridge, address or ports have changed. */
void announce_soon(struct agent *a);

/* sync.c */
void ports_sync(struct agent *a);	/* updates the ports after a change */
/* Detaches interfaces that an earlier agent attached and that are not ports any more. */
void ports_detach_stale(struct agent *a);
struct port *ports_find(struct agent *a, int ifindex, const char *name);
/* By Open vSwitch, or by a filter. */
bool port_is_policed(const struct port *p);
/* @hook: enum saina_port_hook; @conf: faults, NULL: unchanged; @text: message of an error. */
int ports_set(struct agent *a, struct port *p, int hook, const struct saina_port_conf *conf,
	      char *text, size_t size);
/* Moves ports whose hook others have taken for good to another hook. */
void ports_repaired(struct agent *a);
/* Moves all ports to their requested hooks. */
void ports_hooks_apply(struct agent *a);

/* attach.c */
bool ports_have_tc(struct agent *a);	/* is the tc program on all ports, maybe behind XDP's? */
void port_attach(struct agent *a, struct port *p);
/* Moves the port to the hook that it should have now.  On failure p->text says why. */
int port_hook_apply(struct agent *a, struct port *p);
void port_detach(struct agent *a, struct port *p);

#endif /* AGENT_PORTS_H */
