/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The links of this network namespace, from rtnetlink (unlike /sys that is always
 * of this process's namespace): read once, or followed.
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
 * @snooping: bridges: multicast snooping, -1: unknown
 * @kind: "bridge", "veth", ..; empty: none
 * @alias: text that somebody gave it
 */
struct link {
	int ifindex;
	int master;
	unsigned int mtu;
	unsigned int flags;
	unsigned char xdp;
	unsigned int xdp_id;
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
	bool repair;		/* filters, qdiscs or links were removed; the follower clears it */
};

/* Reads all links into @l, which holds what it held before on failure (@l is all
 * zero at first).  -EINTR: they change all the time; or another negative errno. */
int links_read(struct links *l);
/* Reads them, and follows them from then on. */
int links_follow(struct links *l);
int links_fd(const struct links *l);	/* readable: links_receive() */
/* Takes in what changed; never waits.  -EAGAIN: changes were lost and the links
 * could not be read anew, so links_read() has to be tried later. */
int links_receive(struct links *l);
void links_close(struct links *l);

/* One datagram of a dump or of notifications, into @l.  Return: 1: more is
 * to come, 0: the end of the dump, -EINTR: the dump is torn, or negative errno. */
int links_parse(struct links *l, const void *buf, size_t len);

const struct link *links_by_index(const struct links *l, int ifindex);
const struct link *links_by_name(const struct links *l, const char *name);

/* The driver of an interface; "unknown" if it does not say. */
void link_driver(const char *name, char *driver, size_t size);
/* Its first IPv4 address and prefix length (which may be NULL); -EADDRNOTAVAIL. */
int link_address(const char *name, struct in_addr *addr, int *prefix);

#endif /* NET_LINKS_H */
