/* SPDX-License-Identifier: GPL-2.0 */
/*
 * 6.2: operations of generic netlink have callbacks and a policy of their own for
 * NLM_F_DUMP, and hooks before and after.  ynl-gen-c.py makes nothing else; here they
 * become what earlier kernels know.
 */
#ifndef _SAINA_COMPAT_GENL_H
#define _SAINA_COMPAT_GENL_H

#include <linux/version.h>
#include <net/genetlink.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)

static inline struct genl_family *saina_compat_family(struct genl_family *family)
{
	return family;
}

#else

struct genl_split_ops {
	union {
		struct {
			int (*pre_doit)(const struct genl_split_ops *ops, struct sk_buff *skb,
					struct genl_info *info);
			int (*doit)(struct sk_buff *skb, struct genl_info *info);
			void (*post_doit)(const struct genl_split_ops *ops, struct sk_buff *skb,
					  struct genl_info *info);
		};
		struct {
			int (*start)(struct netlink_callback *cb);
			int (*dumpit)(struct sk_buff *skb, struct netlink_callback *cb);
			int (*done)(struct netlink_callback *cb);
		};
	};
	const struct nla_policy *policy;
	unsigned int maxattr;
	u8 cmd;
	u8 flags;
};

/* The family as it is generated; what the kernel gets is made of it. */
struct saina_split_family {
	char name[GENL_NAMSIZ];
	unsigned int version;
	bool netnsok;
	bool parallel_ops;
	u8 n_split_ops;
	u8 n_mcgrps;
	const struct genl_split_ops *split_ops;
	const struct genl_multicast_group *mcgrps;
	struct module *module;
};

struct genl_family *saina_compat_family(const struct saina_split_family *split);

/* In netlink_gen.[ch] only: netlink/ops.h takes it back. */
#define genl_family saina_split_family

#endif

#endif /* _SAINA_COMPAT_GENL_H */
