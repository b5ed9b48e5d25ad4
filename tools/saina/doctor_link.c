// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina doctor: capabilities of a link's driver, from ethtool and the kernel's generic netlink
 * family "netdev" (XDP features, since 6.3).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/sockios.h>

#include "net/request.h"
#include "doctor_check.h"

/* From <linux/netdev.h>, which is new in 6.3: the kernel headers of the build may be older. */
#define NETDEV_FAMILY			"netdev"
#define NETDEV_CMD_DEV_GET		1
#define NETDEV_A_DEV_IFINDEX		1
#define NETDEV_A_DEV_XDP_FEATURES	3

int doc_read_offload(const char *ifname, unsigned int cmd)
{
	struct ethtool_value v = { .cmd = cmd };
	struct ifreq ifr = { .ifr_data = (void *)&v };
	int fd, ret;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	ret = ioctl(fd, SIOCETHTOOL, &ifr) ? -errno : !!v.data;
	close(fd);
	return ret;
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
	struct doc_driver *d = arg;
	const struct nlattr *a;

	mnl_attr_for_each(a, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(a) == NETDEV_A_DEV_XDP_FEATURES &&
		    mnl_attr_validate(a, MNL_TYPE_U64) >= 0) {
			d->features = mnl_attr_get_u64(a);
			d->has_features = true;
		}
	}
	return MNL_CB_STOP;
}

static struct nlmsghdr *put_genl(char *buf, __u16 type, __u8 cmd)
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

void doc_read_driver(const struct link *l, struct doc_driver *d)
{
	char buf[256] __attribute__((aligned(8)));
	struct nlmsghdr *nlh;
	__u16 family = 0;

	memset(d, 0, sizeof(*d));
	link_driver(l->name, d->name, sizeof(d->name));
	nlh = put_genl(buf, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, NETDEV_FAMILY);
	if (net_request(NETLINK_GENERIC, nlh, family_cb, &family) || !family)
		return;	/* kernel before 6.3 */
	nlh = put_genl(buf, family, NETDEV_CMD_DEV_GET);
	mnl_attr_put_u32(nlh, NETDEV_A_DEV_IFINDEX, l->ifindex);
	net_request(NETLINK_GENERIC, nlh, features_cb, d);
}
