/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The links of this process's network namespace, from rtnetlink (/sys may be that of another
 * namespace): read once, or followed.
 */
#ifndef NET_LINKS_H
#define NET_LINKS_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

/**
 * struct link - a network interface
 * @master: ifindex of its bridge, 0: none
 * @flags: IFF_*
 * @xdp: XDP_ATTACHED_*
 * @xdp_id: the program attached, 0: none
 * @stp: ports of a Linux bridge: BR_STATE_*, -1: unknown
 * @isolated: .. exchanges nothing with other isolated ports
 * @snooping: bridges: multicast snooping, -1: unknown
 * @kind: "bridge", "veth", ..; empty: none
 * @alias: IFLA_IFALIAS
 */
struct link {
	int ifindex;
	int master;
	unsigned int mtu;
	unsigned int flags;
	unsigned char xdp;
	unsigned int xdp_id;
	int stp;
	bool isolated;
	int snooping;
	char name[IFNAMSIZ];
	char kind[16];
	char alias[256];
	unsigned char mac[6];
};

struct links {
	struct mnl_socket *nl;	/* NULL: not followed */
	struct link *v;
	int n, room;
	bool addresses;		/* an IPv4 address was added; the caller clears it */
	bool repair;		/* filters were added or removed, qdiscs or links were removed, or
				 * changes were lost; the caller clears it */
};

/* Reads all links into @l (all zero at first), which is unchanged on failure.  -EINTR: the
 * links keep changing; or another negative errno. */
int links_read(struct links *l);
/* Reads all links into @l (all zero) and subscribes to their changes.  0 or a negative errno. */
int links_follow(struct links *l);
int links_fd(const struct links *l);	/* readable: links_receive() */
/* Applies the changes that were received; never waits.  -EAGAIN: changes were lost and
 * reading the links failed: try links_read() later. */
int links_receive(struct links *l);
void links_close(struct links *l);

/* Applies one datagram of a dump or of notifications to @l.  Return: 1: more to come, 0: end of
 * the dump, -EINTR: the dump is inconsistent, or another negative errno. */
int links_parse(struct links *l, const void *buf, size_t len);

const struct link *links_by_index(const struct links *l, int ifindex);
const struct link *links_by_name(const struct links *l, const char *name);

/* Name of the spanning-tree state that keeps a port of a Linux bridge from forwarding; NULL: none. */
const char *link_stp_text(const struct link *l);

/* Name of an interface's driver, or "unknown". */
void link_driver(const char *name, char *driver, size_t size);
/* The first IPv4 address of an interface, and its prefix length (@prefix may be NULL).  0;
 * -EADDRNOTAVAIL: it has none; or another negative errno. */
int link_address(const char *name, struct in_addr *addr, int *prefix);

bool link_has_address(const char *name, struct in_addr addr);

#endif /* NET_LINKS_H */
