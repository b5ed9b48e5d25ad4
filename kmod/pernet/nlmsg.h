/* SPDX-License-Identifier: GPL-2.0 */
/* Attributes (core/attrs.h) -> messages of the family. */
#ifndef _SAINA_NLMSG_H
#define _SAINA_NLMSG_H

#include <linux/skbuff.h>

#include "core/show.h"
#include "pernet/pernet.h"

struct genl_family;

/* Of all messages; registered, and set, by netlink/family.c. */
extern const struct genl_family *saina_nlmsg_family;

/* Its multicast groups. */
#define SAINA_NLMSG_CONFIG	0
#define SAINA_NLMSG_EVENTS	1

/**
 * struct saina_nlmsg_to - whose message it is
 * @portid: of the request; 0 in notifications
 * @seq: of the request; 0 in notifications
 * @flags: NLM_F_MULTI in dumps
 * @cmd: SAINA_CMD_*
 */
struct saina_nlmsg_to {
	u32 portid;
	u32 seq;
	int flags;
	u8 cmd;
};

int saina_nlmsg_put(struct sk_buff *skb, const struct saina_nlmsg_to *to,
		    const struct saina_attr_class *c, const void *attrs);

/* What the core shows, and what only the module knows: the caller holds the lock of @sn. */
void saina_nlmsg_show_job(const struct saina_net *sn, const struct saina_job *job, bool token,
			  struct saina_job_attrs *a);
void saina_nlmsg_show_worker(const struct saina_net *sn, const struct saina_job *job, int w,
			     bool secret, struct saina_worker_attrs *a);

#endif /* _SAINA_NLMSG_H */
