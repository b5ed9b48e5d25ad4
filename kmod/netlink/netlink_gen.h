/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Commands and policies of the family, as Documentation/netlink/specs/saina.yaml
 * says them; selftests/module/spec_check.py compares the two.
 */
#ifndef _SAINA_NETLINK_GEN_H
#define _SAINA_NETLINK_GEN_H

#include <net/genetlink.h>

#include "netlink/netlink.h"

extern const struct genl_ops saina_nl_ops[];
extern const unsigned int saina_nl_n_ops;
extern const struct genl_multicast_group saina_nl_groups[];
extern const unsigned int saina_nl_n_groups;

int saina_nl_job_new_doit(struct sk_buff *skb, struct genl_info *info);
int saina_nl_job_set_doit(struct sk_buff *skb, struct genl_info *info);
int saina_nl_job_del_doit(struct sk_buff *skb, struct genl_info *info);
int saina_nl_job_get_doit(struct sk_buff *skb, struct genl_info *info);
int saina_nl_job_get_start(struct netlink_callback *cb);
int saina_nl_job_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int saina_nl_worker_set_doit(struct sk_buff *skb, struct genl_info *info);
int saina_nl_worker_del_doit(struct sk_buff *skb, struct genl_info *info);
int saina_nl_worker_get_doit(struct sk_buff *skb, struct genl_info *info);
int saina_nl_worker_get_start(struct netlink_callback *cb);
int saina_nl_worker_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int saina_nl_stats_get_start(struct netlink_callback *cb);
int saina_nl_stats_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int saina_nl_limits_get_doit(struct sk_buff *skb, struct genl_info *info);
int saina_nl_limits_set_doit(struct sk_buff *skb, struct genl_info *info);
/* Commands that only the agent can serve: refused with the reason. */
int saina_nl_agent_doit(struct sk_buff *skb, struct genl_info *info);
int saina_nl_agent_start(struct netlink_callback *cb);
int saina_nl_agent_dumpit(struct sk_buff *skb, struct netlink_callback *cb);

#endif /* _SAINA_NETLINK_GEN_H */
