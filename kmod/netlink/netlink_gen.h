/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/saina.yaml */
/* YNL-GEN kernel header */

#ifndef _LINUX_SAINA_GEN_H
#define _LINUX_SAINA_GEN_H

#include <net/netlink.h>
#include <net/genetlink.h>

#include <uapi/linux/saina.h>
#include <saina/proto.h>
#include <saina/proto.h>
#include <saina/proto.h>
#include <saina/bpf.h>
#include <saina/bpf.h>
#include <saina/bpf.h>
#include <saina/bpf.h>

/* Common nested types */
extern const struct nla_policy saina_policy_nl_policy[SAINA_A_POLICY_LEAD + 1];
extern const struct nla_policy saina_uplink_nl_policy[SAINA_A_UPLINK_PAD + 1];

int saina_nl_admin_pre_doit(const struct genl_split_ops *ops,
			    struct sk_buff *skb, struct genl_info *info);
int saina_nl_pre_doit(const struct genl_split_ops *ops, struct sk_buff *skb,
		      struct genl_info *info);
void
saina_nl_post_doit(const struct genl_split_ops *ops, struct sk_buff *skb,
		   struct genl_info *info);
int saina_nl_job_get_start(struct netlink_callback *cb);
int saina_nl_worker_get_start(struct netlink_callback *cb);

int saina_nl_job_new_doit(struct sk_buff *skb, struct genl_info *info);
int saina_nl_job_set_doit(struct sk_buff *skb, struct genl_info *info);
int saina_nl_job_del_doit(struct sk_buff *skb, struct genl_info *info);
int saina_nl_job_get_doit(struct sk_buff *skb, struct genl_info *info);
int saina_nl_job_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int saina_nl_worker_set_doit(struct sk_buff *skb, struct genl_info *info);
int saina_nl_worker_del_doit(struct sk_buff *skb, struct genl_info *info);
int saina_nl_worker_get_doit(struct sk_buff *skb, struct genl_info *info);
int saina_nl_worker_get_dumpit(struct sk_buff *skb,
			       struct netlink_callback *cb);
int saina_nl_limits_get_doit(struct sk_buff *skb, struct genl_info *info);
int saina_nl_limits_set_doit(struct sk_buff *skb, struct genl_info *info);
int saina_nl_port_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int saina_nl_port_set_doit(struct sk_buff *skb, struct genl_info *info);
int saina_nl_slot_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int saina_nl_stats_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int saina_nl_subscribe_doit(struct sk_buff *skb, struct genl_info *info);

enum {
	SAINA_NLGRP_CONFIG,
	SAINA_NLGRP_EVENTS,
};

extern struct genl_family saina_nl_family;

#endif /* _LINUX_SAINA_GEN_H */
