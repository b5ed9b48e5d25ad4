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
