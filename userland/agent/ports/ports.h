/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which ports the bridge has, and the program on them.  Whenever OVSDB or
 * rtnetlink say that something changed, what should be attached is compared with
 * what is.
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
 * @wanted: scratch of ports_sync()
 * @faults: has injected delay or loss
 * @delayed: has, or is about to have, injected delay
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
	bool delayed;
	char text[SAINA_TEXT_LEN];
};

/**
 * struct bridge_ops - who has to know
 * @port: it came (or could not be attached), or (@there false) it is gone
 * @hook: it is at another hook (or at one for the first time)
 * @changed: its injected faults or the hook that was asked for are others
 */
struct bridge_ops {
	void (*port)(struct agent *a, const struct port *p, bool there);
	void (*hook)(struct agent *a, const struct port *p);
	void (*changed)(struct agent *a, const struct port *p);
};

/**
 * struct bridge
 * @retry: links or OVSDB are to be asked again
 * @ovs: ports are Open vSwitch's, else a Linux bridge's
 */
struct bridge {
	const struct bridge_ops *ops;
	struct links links;
	struct ovsdb ovsdb;
	struct source links_source, ovsdb_source, retry;
	bool links_stale;
	bool ovs;
	int ifindex;
	unsigned char mac[6];
	struct port *port;
	int n, room;
};

int bridge_init(struct agent *a, const struct bridge_ops *ops);
void bridge_uninit(struct agent *a);

/* ports.c */
void ports_sync(struct agent *a);	/* something changed: look again */
/* What an earlier agent attached to and is no port now. */
void ports_detach_stale(struct agent *a);
struct port *ports_find(struct agent *a, int ifindex, const char *name);
/* @hook: enum saina_port_hook; @conf: faults, NULL: as they are.  @text: why not. */
int ports_set(struct agent *a, struct port *p, int hook, const struct saina_port_conf *conf,
	      char *text, size_t size);
/* Ports that others took the program off, for good, get it at another hook. */
void ports_repaired(struct agent *a);
/* Brings all ports to the hooks that were asked for. */
void ports_hooks_apply(struct agent *a);

/* attach.c */
bool ports_have_tc(struct agent *a);	/* do ports have the tc program, be it behind XDP's? */
void port_attach(struct agent *a, struct port *p);
/* To the hook that is right now, if it is not there; else the port's text says why. */
int port_hook_apply(struct agent *a, struct port *p);
void port_detach(struct agent *a, struct port *p);

#endif /* AGENT_PORTS_H */
