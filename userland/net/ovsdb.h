/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A client of Open vSwitch's OVSDB server (RFC 7047: JSON-RPC over a unix socket).  It
 * monitors the tables Bridge, Port and Interface.
 */
#ifndef NET_OVSDB_H
#define NET_OVSDB_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct ovsdb - a connection and the tables; all zero but @fd = -1 at first
 * @fd: -1: not connected
 * @known: the tables have been read; they are kept when the connection is lost
 * @tables: {table: {uuid: row}}
 */
struct ovsdb {
	int fd;
	bool known;
	char *buf;
	size_t len, room;
	struct json_t *tables;
};

struct ovsdb_bridge {
	bool userspace;		/* datapath_type=netdev */
	bool snooping;		/* of multicast */
};

/* Texts are empty where the database has none. */
struct ovsdb_interface {
	const char *name;
	const char *type;
	long long policing;	/* ingress_policing_rate, kbit/s, 0: none */
	const char *error;	/* why Open vSwitch could not open it */
};

/* Connects to the server's socket and asks for the tables; never waits.  0 or a negative errno. */
int ovsdb_connect(struct ovsdb *o, const char *path);
void ovsdb_disconnect(struct ovsdb *o);
/* Handles received messages; never waits.  Return: 1: the tables may have changed, 0, or a
 * negative errno: the connection must be closed. */
int ovsdb_receive(struct ovsdb *o);
/* Waits until the tables have been read.  0, -ETIMEDOUT, or ovsdb_receive()'s error. */
int ovsdb_wait(struct ovsdb *o, int timeout_ms);
/* Disconnects and frees the tables. */
void ovsdb_close(struct ovsdb *o);

/* 0, or -ENOENT: no such bridge.  @out may be NULL. */
int ovsdb_bridge(const struct ovsdb *o, const char *bridge, struct ovsdb_bridge *out);
/* Calls @fn for each interface of the bridge. */
void ovsdb_interfaces(const struct ovsdb *o, const char *bridge,
		      void (*fn)(void *arg, const struct ovsdb_interface *i), void *arg);

#endif /* NET_OVSDB_H */
