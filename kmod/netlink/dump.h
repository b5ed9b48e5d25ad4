/* SPDX-License-Identifier: GPL-2.0 */
/* State of a dump between two calls of its callback. */
#ifndef _SAINA_DUMP_H
#define _SAINA_DUMP_H

#include <net/genetlink.h>

#include "pernet/nlmsg.h"

/**
 * struct saina_dump - position of a dump, in the callback's context
 * @job: next to look at
 * @worker: next to look at of it
 * @one_job: and no other
 * @admin: tokens and sessions are shown
 */
struct saina_dump {
	u32 job;
	u32 worker;
	bool one_job;
	bool admin;
};

static inline struct saina_dump *saina_dump_of(struct netlink_callback *cb)
{
	BUILD_BUG_ON(sizeof(struct saina_dump) > sizeof(cb->ctx));
	return (struct saina_dump *)cb->ctx;
}

/* One more message; -EMSGSIZE: not into this @skb. */
static inline int saina_dump_put(struct sk_buff *skb, struct netlink_callback *cb,
				 const struct saina_attr_class *c, const void *attrs)
{
	const struct genlmsghdr *g = nlmsg_data(cb->nlh);
	const struct saina_nlmsg_to to = {
		.portid = NETLINK_CB(cb->skb).portid,
		.seq = cb->nlh->nlmsg_seq,
		.flags = NLM_F_MULTI,
		.cmd = g->cmd,
	};
	unsigned int before = skb->len;
	int ret;

	ret = saina_nlmsg_put(skb, &to, c, attrs);
	if (!ret)
		nl_dump_check_consistent(cb, (struct nlmsghdr *)(skb->data + before));
	return ret;
}

#endif /* _SAINA_DUMP_H */
