// SPDX-License-Identifier: GPL-2.0
#include <linux/netlink.h>
#include <linux/notifier.h>

#include "pernet/controller.h"
#include "pernet/nlmsg.h"
#include "netlink/family.h"
#include "netlink/ops.h"

static struct genl_family *family;

/* The chain is a blocking one, called by close(): sn->lock can be taken, and the socket
 * still holds its namespace.
 */
static int socket_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	const struct netlink_notify *n = ptr;

	if (event == NETLINK_URELEASE && n->protocol == NETLINK_GENERIC)
		saina_controller_gone(saina_net_get(n->net), n->portid);
	return NOTIFY_DONE;
}

static struct notifier_block socket_notifier = {
	.notifier_call = socket_event,
};

int __init saina_family_init(void)
{
	int ret;

	BUILD_BUG_ON(SAINA_NLMSG_CONFIG != SAINA_NLGRP_CONFIG);
	BUILD_BUG_ON(SAINA_NLMSG_EVENTS != SAINA_NLGRP_EVENTS);
	family = saina_compat_family(&saina_nl_family);
	saina_nlmsg_family = family;
	ret = netlink_register_notifier(&socket_notifier);
	if (ret)
		return ret;
	ret = genl_register_family(family);
	if (ret)
		netlink_unregister_notifier(&socket_notifier);
	return ret;
}

void saina_family_uninit(void)
{
	genl_unregister_family(family);
	netlink_unregister_notifier(&socket_notifier);
}

/* What the kernel cannot serve: it attaches no programs and owns no slots. */

static int refuse(struct netlink_ext_ack *extack)
{
	NL_SET_ERR_MSG(extack, "the kernel has no ports, slots and counters: ask sainad, which attaches the programs (saina -s /run/saina/control)");
	return -EOPNOTSUPP;
}

int saina_nl_port_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return refuse(cb->extack);
}

int saina_nl_port_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	return refuse(info->extack);
}

int saina_nl_slot_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return refuse(cb->extack);
}

int saina_nl_stats_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return refuse(cb->extack);
}

int saina_nl_subscribe_doit(struct sk_buff *skb, struct genl_info *info)
{
	NL_SET_ERR_MSG(info->extack, "on generic netlink, join the multicast groups config and events");
	return -EOPNOTSUPP;
}
