/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A client of the OVSDB server of an Open vSwitch (RFC 7047: JSON-RPC over its
 * unix socket).  Tables Bridge, Port and Interface are monitored, so that ports
 * that come and go are seen as they do.
 */
#ifndef NET_OVSDB_H
#define NET_OVSDB_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct ovsdb - a connection, and what is known; all zero but @fd = -1 at first
 * @fd: -1: not connected
 * @known: the tables have been read; they stay when the connection is lost
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
	const char *error;	/* why Open vSwitch could not open it */
};

int ovsdb_connect(struct ovsdb *o, const char *path);	/* never waits */
void ovsdb_disconnect(struct ovsdb *o);
/* Takes in what has come; never waits.  Return: 1: the tables may have changed, 0,
 * or a negative errno: the connection is of no use any more. */
int ovsdb_receive(struct ovsdb *o);
/* Waits until the tables are known. */
int ovsdb_wait(struct ovsdb *o, int timeout_ms);
void ovsdb_close(struct ovsdb *o);

/* 0, or -ENOENT: no such bridge.  @out may be NULL. */
int ovsdb_bridge(const struct ovsdb *o, const char *bridge, struct ovsdb_bridge *out);
/* Calls @fn for each interface of the bridge. */
void ovsdb_interfaces(const struct ovsdb *o, const char *bridge,
		      void (*fn)(void *arg, const struct ovsdb_interface *i), void *arg);

#endif /* NET_OVSDB_H */
