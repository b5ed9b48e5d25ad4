// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina doctor: network interfaces, from rtnetlink, ethtool and the kernel's
 * generic netlink family "netdev" (XDP abilities, from 6.3 on).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>

#include "doctor.h"

/* <linux/netdev.h> came with 6.3; the headers we build with may be older */
#define NETDEV_FAMILY			"netdev"
#define NETDEV_CMD_DEV_GET		1
#define NETDEV_A_DEV_IFINDEX		1
#define NETDEV_A_DEV_XDP_FEATURES	3

/* One request on a socket of its own; dumps end by themselves. */
static int ask(int bus, struct nlmsghdr *nlh, mnl_cb_t cb, void *arg)
{
	char buf[65536] __attribute__((aligned(8)));
	struct mnl_socket *nl = mnl_socket_open(bus);
	unsigned int portid;
	ssize_t n;
	int ret = -1;

	if (!nl)
		return -errno;
	nlh->nlmsg_seq = 1;
	if (mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0)
		goto out;
	portid = mnl_socket_get_portid(nl);
	do {
		n = mnl_socket_recvfrom(nl, buf, sizeof(buf));
		ret = n < 0 ? -1 : mnl_cb_run(buf, n, 1, portid, cb, arg);
	} while (ret > 0);
out:
	ret = ret < 0 ? -errno : 0;
	mnl_socket_close(nl);
	return ret;
}

static void info_parse(struct doc_link *l, const struct nlattr *info)
{
	const struct nlattr *a, *d;

	mnl_attr_for_each_nested(a, info) {
		if (mnl_attr_get_type(a) == IFLA_INFO_KIND)
			snprintf(l->kind, sizeof(l->kind), "%s", mnl_attr_get_str(a));
		if (mnl_attr_get_type(a) == IFLA_INFO_DATA && !strcmp(l->kind, "bridge")) {
			mnl_attr_for_each_nested(d, a) {
				if (mnl_attr_get_type(d) == IFLA_BR_MCAST_SNOOPING)
					l->snooping = mnl_attr_get_u8(d);
			}
		}
	}
}

static int link_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct doc_links *list = arg;
	const struct nlattr *a, *x;
	struct doc_link *l;
	void *v;

	v = reallocarray(list->v, list->n + 1, sizeof(*list->v));
	if (!v)
		return MNL_CB_ERROR;
	list->v = v;
	l = &list->v[list->n++];
	*l = (struct doc_link){ .ifindex = ifi->ifi_index, .flags = ifi->ifi_flags, .snooping = -1 };
	mnl_attr_for_each(a, nlh, sizeof(*ifi)) {
		switch (mnl_attr_get_type(a)) {
		case IFLA_IFNAME:
			snprintf(l->name, sizeof(l->name), "%s", mnl_attr_get_str(a));
			break;
		case IFLA_MTU:
			l->mtu = mnl_attr_get_u32(a);
			break;
		case IFLA_ADDRESS:
			if (mnl_attr_get_payload_len(a) == sizeof(l->mac))
				memcpy(l->mac, mnl_attr_get_payload(a), sizeof(l->mac));
			break;
		case IFLA_MASTER:
			l->master = (int)mnl_attr_get_u32(a);
			break;
		case IFLA_LINKINFO:
			info_parse(l, a);
			break;
		case IFLA_XDP:
			mnl_attr_for_each_nested(x, a) {
				if (mnl_attr_get_type(x) == IFLA_XDP_PROG_ID)
					l->xdp_id = mnl_attr_get_u32(x);
				if (mnl_attr_get_type(x) == IFLA_XDP_ATTACHED)
					l->xdp_generic = mnl_attr_get_u8(x) == XDP_ATTACHED_SKB;
			}
			break;
		}
	}
	return MNL_CB_OK;
}

int doc_links_read(struct doc_links *l)
{
	char buf[256] __attribute__((aligned(8)));
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *ifi;

	memset(l, 0, sizeof(*l));
	nlh->nlmsg_type = RTM_GETLINK;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_family = AF_UNSPEC;
	return ask(NETLINK_ROUTE, nlh, link_cb, l);
}

void doc_links_free(struct doc_links *l)
{
	free(l->v);
	memset(l, 0, sizeof(*l));
}

const struct doc_link *doc_link_find(const struct doc_links *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++) {
		if (!strcmp(l->v[i].name, name))
			return &l->v[i];
	}
	return NULL;
}

const struct doc_link *doc_link_index(const struct doc_links *l, int ifindex)
{
	for (size_t i = 0; i < l->n; i++) {
		if (l->v[i].ifindex == ifindex)
			return &l->v[i];
	}
	return NULL;
}

struct address {
	int ifindex, prefix;
	__be32 ip;
};

static int addr_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(nlh);
	struct address *want = arg;
	const struct nlattr *a;

	if ((int)ifa->ifa_index != want->ifindex || want->ip)
		return MNL_CB_OK;
	mnl_attr_for_each(a, nlh, sizeof(*ifa)) {
		if (mnl_attr_get_type(a) == IFA_LOCAL) {
			want->ip = mnl_attr_get_u32(a);
			want->prefix = ifa->ifa_prefixlen;
		}
	}
	return MNL_CB_OK;
}

__be32 doc_link_address(int ifindex, int *prefix)
{
	char buf[256] __attribute__((aligned(8)));
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct address want = { .ifindex = ifindex };
	struct ifaddrmsg *ifa;

	nlh->nlmsg_type = RTM_GETADDR;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	ifa = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifa));
	ifa->ifa_family = AF_INET;
	if (ask(NETLINK_ROUTE, nlh, addr_cb, &want))
		return 0;
	*prefix = want.prefix;
	return want.ip;
}

static int ethtool(const char *ifname, void *data)
{
	struct ifreq ifr = { 0 };
	int fd, ret;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	ifr.ifr_data = data;
	ret = ioctl(fd, SIOCETHTOOL, &ifr) ? -errno : 0;
	close(fd);
	return ret;
}

int doc_offload(const char *ifname, unsigned int cmd)
{
	struct ethtool_value v = { .cmd = cmd };
	int ret = ethtool(ifname, &v);

	return ret ? ret : !!v.data;
}

static int family_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *a;
	__u16 *id = arg;

	mnl_attr_for_each(a, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(a) == CTRL_ATTR_FAMILY_ID)
			*id = mnl_attr_get_u16(a);
	}
	return MNL_CB_STOP;
}

static int features_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct doc_link *l = arg;
	const struct nlattr *a;

	mnl_attr_for_each(a, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(a) == NETDEV_A_DEV_XDP_FEATURES &&
		    mnl_attr_validate(a, MNL_TYPE_U64) >= 0) {
			l->features = mnl_attr_get_u64(a);
			l->has_features = true;
		}
	}
	return MNL_CB_STOP;
}

static struct nlmsghdr *genl(char *buf, __u16 type, __u8 cmd)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *g;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	g = mnl_nlmsg_put_extra_header(nlh, sizeof(*g));
	g->cmd = cmd;
	g->version = 1;
	return nlh;
}

void doc_link_details(struct doc_link *l)
{
	struct ethtool_drvinfo drv = { .cmd = ETHTOOL_GDRVINFO };
	char buf[256] __attribute__((aligned(8)));
	struct nlmsghdr *nlh;
	__u16 family = 0;

	if (!ethtool(l->name, &drv)) {
		drv.driver[sizeof(drv.driver) - 1] = 0;
		snprintf(l->driver, sizeof(l->driver), "%s", drv.driver);
	}
	nlh = genl(buf, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, NETDEV_FAMILY);
	if (ask(NETLINK_GENERIC, nlh, family_cb, &family) || !family)
		return;	/* before 6.3 */
	nlh = genl(buf, family, NETDEV_CMD_DEV_GET);
	mnl_attr_put_u32(nlh, NETDEV_A_DEV_IFINDEX, l->ifindex);
	ask(NETLINK_GENERIC, nlh, features_cb, l);
}
