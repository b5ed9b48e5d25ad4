// SPDX-License-Identifier: GPL-2.0
/* Requests that only the agent serves: the kernel attaches no programs and owns no slots. */
#include "netlink/ops.h"

static int refuse(struct netlink_ext_ack *extack)
{
	NL_SET_ERR_MSG(extack, "the kernel has no ports, slots or counters: ask sainad, which attaches the programs (saina -s /run/saina/control)");
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
