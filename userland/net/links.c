// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The links of this network namespace, read once and followed from then on.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "agent/agent.h"

#define RCVBUF (1 << 20)

static struct link *link_get(struct rtnl *r, int ifindex)
{
	int i;

	for (i = 0; i < r->n_links; i++)
		if (r->link[i].ifindex == ifindex)
			return &r->link[i];
	return NULL;
}

static struct link *link_add(struct rtnl *r, int ifindex)
{
	struct link *link = link_get(r, ifindex);

	if (link)
		return link;
	if (r->n_links == r->room) {
		int room = r->room ? 2 * r->room : 64;

		link = realloc(r->link, room * sizeof(*link));
		if (!link)
			return NULL;
		r->link = link;
		r->room = room;
	}
	link = &r->link[r->n_links++];
	memset(link, 0, sizeof(*link));
	link->ifindex = ifindex;
	return link;
}

static void link_del(struct rtnl *r, int ifindex)
{
	struct link *link = link_get(r, ifindex);

	if (link)
		*link = r->link[--r->n_links];
}

static void link_kind(struct link *link, const struct nlattr *info)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested (attr, info)
		if (mnl_attr_get_type(attr) == IFLA_INFO_KIND)
			snprintf(link->kind, sizeof(link->kind), "%.*s",
				 (int)mnl_attr_get_payload_len(attr),
				 (const char *)mnl_attr_get_payload(attr));
}

static void link_xdp(struct link *link, const struct nlattr *xdp)
{
	const struct nlattr *attr;

	link->xdp = XDP_ATTACHED_NONE;
	mnl_attr_for_each_nested (attr, xdp)
		if (mnl_attr_get_type(attr) == IFLA_XDP_ATTACHED)
			link->xdp = mnl_attr_get_u8(attr);
}

/* One message of a dump or notification. */
static int link_message(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;
	struct rtnl *r = arg;
	struct link *link;

	if (nlh->nlmsg_type != RTM_NEWLINK && nlh->nlmsg_type != RTM_DELLINK)
		return MNL_CB_OK;
	/* The bridge says DELLINK (AF_BRIDGE) when a port merely leaves it; the
	 * ordinary NEWLINK that comes along tells the same. */
	if (ifi->ifi_family != AF_UNSPEC)
		return MNL_CB_OK;
	if (nlh->nlmsg_type == RTM_DELLINK) {
		link_del(r, ifi->ifi_index);
		return MNL_CB_OK;
	}
	link = link_add(r, ifi->ifi_index);
	if (!link)
		return MNL_CB_ERROR;
	link->flags = ifi->ifi_flags;
	link->master = 0;
	mnl_attr_for_each (attr, nlh, sizeof(*ifi)) {
		switch (mnl_attr_get_type(attr)) {
		case IFLA_IFNAME:
			snprintf(link->name, sizeof(link->name), "%s", mnl_attr_get_str(attr));
			break;
		case IFLA_MTU:
			link->mtu = mnl_attr_get_u32(attr);
			break;
		case IFLA_MASTER:
			link->master = mnl_attr_get_u32(attr);
			break;
		case IFLA_ADDRESS:
			if (mnl_attr_get_payload_len(attr) == sizeof(link->mac))
				memcpy(link->mac, mnl_attr_get_payload(attr), sizeof(link->mac));
			break;
		case IFLA_XDP:
			link_xdp(link, attr);
			break;
		case IFLA_LINKINFO:
			link_kind(link, attr);
			break;
		}
	}
	return MNL_CB_OK;
}

/* Reads all links anew, on a socket of its own. */
static int links_dump(struct rtnl *r)
{
	char buf[MNL_SOCKET_BUFFER_SIZE] __attribute__((aligned(8)));
	struct mnl_socket *nl;
	struct nlmsghdr *nlh;
	struct ifinfomsg *ifi;
	int ret = -EIO;
	ssize_t n;

	nl = mnl_socket_open(NETLINK_ROUTE);
	if (!nl)
		return -errno;
	if (mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID))
		goto out;
	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = RTM_GETLINK;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	nlh->nlmsg_seq = 1;
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_family = AF_UNSPEC;
	if (mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0)
		goto out;
	r->n_links = 0;
	do {
		n = mnl_socket_recvfrom(nl, buf, sizeof(buf));
		if (n < 0)
			goto out;
		ret = mnl_cb_run(buf, n, 1, mnl_socket_get_portid(nl), link_message, r);
	} while (ret > 0);
	ret = ret < 0 ? -errno : 0;
out:
	mnl_socket_close(nl);
	return ret;
}

static void rtnl_ready(struct source *s, uint32_t events)
{
	char buf[MNL_SOCKET_BUFFER_SIZE] __attribute__((aligned(8)));
	struct agent *a = s->arg;
	struct rtnl *r = &a->rtnl;
	ssize_t n;

	while ((n = recv(s->fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		mnl_cb_run(buf, n, 0, 0, link_message, r);
	if (n < 0 && errno == ENOBUFS) {
		/* some were lost: what there is now is all that matters */
		log_debug("rtnetlink: notifications were lost, reading all links again");
		links_dump(r);
	}
	ports_sync(a);
}

int rtnl_init(struct agent *a)
{
	struct rtnl *r = &a->rtnl;
	int ret, size = RCVBUF;

	r->nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (!r->nl)
		return -errno;
	r->source =
		(struct source){ .fd = mnl_socket_get_fd(r->nl), .ready = rtnl_ready, .arg = a };
	setsockopt(r->source.fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	/* listen first, then read: nothing falls in between */
	if (mnl_socket_bind(r->nl, RTMGRP_LINK, MNL_SOCKET_AUTOPID)) {
		ret = -errno;
		goto err_close;
	}
	ret = links_dump(r);
	if (!ret)
		ret = loop_add(&a->loop, &r->source, EPOLLIN);
	if (ret)
		goto err_close;
	return 0;

err_close:
	log_error("rtnetlink: %s", strerror(-ret));
	mnl_socket_close(r->nl);
	free(r->link);
	return ret;
}

void rtnl_uninit(struct agent *a)
{
	loop_del(&a->loop, &a->rtnl.source);
	mnl_socket_close(a->rtnl.nl);
	free(a->rtnl.link);
}

const struct link *rtnl_by_index(const struct rtnl *r, int ifindex)
{
	return link_get((struct rtnl *)r, ifindex);
}

const struct link *rtnl_by_name(const struct rtnl *r, const char *name)
{
	int i;

	for (i = 0; i < r->n_links; i++)
		if (!strcmp(r->link[i].name, name))
			return &r->link[i];
	return NULL;
}

void rtnl_driver(const char *ifname, char *driver, size_t size)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq ifr = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	ifr.ifr_data = (void *)&info;
	if (fd < 0 || ioctl(fd, SIOCETHTOOL, &ifr))
		info.driver[0] = 0;
	if (fd >= 0)
		close(fd);
	snprintf(driver, size, "%.*s", (int)sizeof(info.driver),
		 info.driver[0] ? info.driver : "unknown");
}

int rtnl_address(const char *ifname, struct in_addr *addr)
{
	struct ifaddrs *list, *i;
	int ret = -EADDRNOTAVAIL;

	if (getifaddrs(&list))
		return -errno;
	for (i = list; i && ret; i = i->ifa_next) {
		if (strcmp(i->ifa_name, ifname) || !i->ifa_addr ||
		    i->ifa_addr->sa_family != AF_INET)
			continue;
		*addr = ((struct sockaddr_in *)i->ifa_addr)->sin_addr;
		ret = 0;
	}
	freeifaddrs(list);
	return ret;
}
