// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/ethtool.h>
#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "net/request.h"
#include "net/links.h"

#define RCVBUF	  (1 << 20)
#define DUMP_TRIES 10	/* then the links keep changing */

static struct link *link_find(const struct links *l, int ifindex)
{
	int i;

	for (i = 0; i < l->n; i++)
		if (l->v[i].ifindex == ifindex)
			return &l->v[i];
	return NULL;
}

static struct link *link_add(struct links *l, int ifindex)
{
	struct link *link = link_find(l, ifindex);

	if (link)
		return link;
	if (l->n == l->room) {
		int room = l->room ? 2 * l->room : 64;

		link = realloc(l->v, room * sizeof(*link));
		if (!link)
			return NULL;
		l->v = link;
		l->room = room;
	}
	link = &l->v[l->n++];
	memset(link, 0, sizeof(*link));
	link->ifindex = ifindex;
	link->stp = link->snooping = -1;
	return link;
}

static void link_del(struct links *l, int ifindex)
{
	struct link *link = link_find(l, ifindex);

	if (link)
		*link = l->v[--l->n];
}

/* What a bridge says about its port. */
static void link_port_parse(struct link *link, const struct nlattr *port)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested(a, port) {
		if (mnl_attr_get_type(a) == IFLA_BRPORT_STATE)
			link->stp = mnl_attr_get_u8(a);
		if (mnl_attr_get_type(a) == IFLA_BRPORT_ISOLATED)
			link->isolated = mnl_attr_get_u8(a);
	}
}

static void link_info_parse(struct link *link, const struct nlattr *info)
{
	const struct nlattr *a, *d;
	bool port = false;

	mnl_attr_for_each_nested(a, info) {
		if (mnl_attr_get_type(a) == IFLA_INFO_SLAVE_KIND)
			port = !strcmp(mnl_attr_get_str(a), "bridge");
		if (mnl_attr_get_type(a) == IFLA_INFO_SLAVE_DATA && port)
			link_port_parse(link, a);
		if (mnl_attr_get_type(a) == IFLA_INFO_KIND)
			snprintf(link->kind, sizeof(link->kind), "%.*s",
				 (int)mnl_attr_get_payload_len(a),
				 (const char *)mnl_attr_get_payload(a));
		if (mnl_attr_get_type(a) != IFLA_INFO_DATA || strcmp(link->kind, "bridge"))
			continue;
		mnl_attr_for_each_nested(d, a)
			if (mnl_attr_get_type(d) == IFLA_BR_MCAST_SNOOPING)
				link->snooping = mnl_attr_get_u8(d);
	}
}

static void link_xdp_parse(struct link *link, const struct nlattr *xdp)
{
	const struct nlattr *a;

	link->xdp = XDP_ATTACHED_NONE;
	link->xdp_id = 0;
	mnl_attr_for_each_nested(a, xdp) {
		if (mnl_attr_get_type(a) == IFLA_XDP_ATTACHED)
			link->xdp = mnl_attr_get_u8(a);
		if (mnl_attr_get_type(a) == IFLA_XDP_PROG_ID)
			link->xdp_id = mnl_attr_get_u32(a);
	}
}

/* One message of a dump or notification. */
static int link_message_parse(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;
	struct links *l = arg;
	struct link *link;

	switch (nlh->nlmsg_type) {
	case RTM_DELQDISC:
	case RTM_DELTFILTER:
	case RTM_NEWTFILTER:
	case RTM_DELLINK:
		l->repair = true;
		break;
	case RTM_NEWADDR:
		l->addresses = true;
	}
	if (nlh->nlmsg_type != RTM_NEWLINK && nlh->nlmsg_type != RTM_DELLINK)
		return MNL_CB_OK;
	/* The bridge sends DELLINK (AF_BRIDGE) when a port leaves it; an ordinary NEWLINK
	 * with the new master follows. */
	if (ifi->ifi_family == AF_BRIDGE && nlh->nlmsg_type == RTM_NEWLINK) {
		link = link_find(l, ifi->ifi_index);
		mnl_attr_for_each(attr, nlh, sizeof(*ifi))
			if (link && mnl_attr_get_type(attr) == IFLA_PROTINFO)
				link_port_parse(link, attr);
	}
	if (ifi->ifi_family != AF_UNSPEC)
		return MNL_CB_OK;
	if (nlh->nlmsg_type == RTM_DELLINK) {
		link_del(l, ifi->ifi_index);
		return MNL_CB_OK;
	}
	link = link_add(l, ifi->ifi_index);
	if (!link)
		return MNL_CB_ERROR;
	link->flags = ifi->ifi_flags;
	link->master = 0;
	link->stp = -1;
	link->isolated = false;
	mnl_attr_for_each(attr, nlh, sizeof(*ifi)) {
		switch (mnl_attr_get_type(attr)) {
		case IFLA_IFNAME:
			snprintf(link->name, sizeof(link->name), "%s", mnl_attr_get_str(attr));
			break;
		case IFLA_IFALIAS:
			snprintf(link->alias, sizeof(link->alias), "%.*s",
				 (int)mnl_attr_get_payload_len(attr), mnl_attr_get_str(attr));
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
			link_xdp_parse(link, attr);
			break;
		case IFLA_LINKINFO:
			link_info_parse(link, attr);
			break;
		}
	}
	return MNL_CB_OK;
}

int links_parse(struct links *l, const void *buf, size_t len)
{
	/* libmnl returns EINTR for NLM_F_DUMP_INTR */
	int ret = mnl_cb_run(buf, len, 0, 0, link_message_parse, l);

	return ret < 0 ? -errno : ret;
}

/* Reads one dump into @l, which is empty. */
static int links_dump(struct links *l)
{
	char buf[64] __attribute__((aligned(8)));
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *ifi;

	nlh->nlmsg_type = RTM_GETLINK;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_family = AF_UNSPEC;
	return net_request(NETLINK_ROUTE, nlh, link_message_parse, l);
}

int links_read(struct links *l)
{
	struct links fresh = { 0 };
	int i, ret = -EINTR;

	/* An inconsistent dump may lack existing links; ports, and the workers behind them,
	 * would be removed. */
	for (i = 0; i < DUMP_TRIES && (ret == -EINTR || ret == -ENOBUFS); i++) {
		fresh.n = 0;
		ret = links_dump(&fresh);
	}
	if (ret) {
		free(fresh.v);
		return ret;
	}
	free(l->v);
	l->v = fresh.v;
	l->n = fresh.n;
	l->room = fresh.room;
	return 0;
}

int links_follow(struct links *l)
{
	int ret, size = RCVBUF;

	l->nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (!l->nl)
		return -errno;
	setsockopt(links_fd(l), SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	/* subscribe before reading, so that no change is missed */
	ret = mnl_socket_bind(l->nl, RTMGRP_LINK | RTMGRP_TC | RTMGRP_IPV4_IFADDR, MNL_SOCKET_AUTOPID) ? -errno : links_read(l);
	if (ret)
		links_close(l);
	return ret;
}

int links_fd(const struct links *l)
{
	return mnl_socket_get_fd(l->nl);
}

int links_receive(struct links *l)
{
	char buf[MNL_SOCKET_BUFFER_SIZE] __attribute__((aligned(8)));
	bool lost = false;
	ssize_t n;

	for (;;) {
		n = recv(links_fd(l), buf, sizeof(buf), MSG_DONTWAIT);
		if (n > 0)
			lost |= links_parse(l, buf, n) < 0;
		else if (n < 0 && errno == ENOBUFS)
			lost = true;
		else
			break;
	}
	l->repair |= lost;
	l->addresses |= lost;
	/* lost changes are made up for by reading all links */
	return lost && links_read(l) ? -EAGAIN : 0;
}

void links_close(struct links *l)
{
	if (l->nl)
		mnl_socket_close(l->nl);
	free(l->v);
	*l = (struct links){ 0 };
}

const struct link *links_by_index(const struct links *l, int ifindex)
{
	return link_find(l, ifindex);
}

const struct link *links_by_name(const struct links *l, const char *name)
{
	int i;

	for (i = 0; i < l->n; i++)
		if (!strcmp(l->v[i].name, name))
			return &l->v[i];
	return NULL;
}

const char *link_stp_text(const struct link *l)
{
	static const char *const text[] = {
		[BR_STATE_DISABLED] = "disabled",
		[BR_STATE_LISTENING] = "listening",
		[BR_STATE_LEARNING] = "learning",
		[BR_STATE_BLOCKING] = "blocking",
	};

	return l->stp < 0 || l->stp > BR_STATE_BLOCKING ? NULL : text[l->stp];
}

void link_driver(const char *name, char *driver, size_t size)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq ifr = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	ifr.ifr_data = (void *)&info;
	if (fd < 0 || ioctl(fd, SIOCETHTOOL, &ifr))
		info.driver[0] = 0;
	if (fd >= 0)
		close(fd);
	snprintf(driver, size, "%.*s", (int)sizeof(info.driver),
		 info.driver[0] ? info.driver : "unknown");
}

int link_address(const char *name, struct in_addr *addr, int *prefix)
{
	const struct sockaddr_in *mask;
	struct ifaddrs *list, *i;
	int ret = -EADDRNOTAVAIL;

	if (getifaddrs(&list))
		return -errno;
	for (i = list; i && ret; i = i->ifa_next) {
		if (strcmp(i->ifa_name, name) || !i->ifa_addr ||
		    i->ifa_addr->sa_family != AF_INET)
			continue;
		*addr = ((struct sockaddr_in *)i->ifa_addr)->sin_addr;
		mask = (const struct sockaddr_in *)i->ifa_netmask;
		if (prefix)
			*prefix = mask ? __builtin_popcount(mask->sin_addr.s_addr) : 32;
		ret = 0;
	}
	freeifaddrs(list);
	return ret;
}

bool link_has_address(const char *name, struct in_addr addr)
{
	const struct sockaddr_in *has;
	struct ifaddrs *list, *i;
	bool found = false;

	if (getifaddrs(&list))
		return false;
	for (i = list; i && !found; i = i->ifa_next) {
		has = (const struct sockaddr_in *)i->ifa_addr;
		found = !strcmp(i->ifa_name, name) && has && has->sin_family == AF_INET &&
			has->sin_addr.s_addr == addr.s_addr;
	}
	freeifaddrs(list);
	return found;
}
