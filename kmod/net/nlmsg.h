/* SPDX-License-Identifier: GPL-2.0 */
/* Objects -> messages of the family; the agent's encode.c makes the same. */
#ifndef _SAINA_NLMSG_H
#define _SAINA_NLMSG_H

#include <linux/skbuff.h>

#include "net/jobs.h"

/**
 * struct saina_nlmsg_to - whose message it is
 * @portid, @seq: of the request; 0 in notifications
 * @flags: NLM_F_MULTI in dumps
 * @cmd: SAINA_CMD_*
 */
struct saina_nlmsg_to {
	u32 portid;
	u32 seq;
	int flags;
	u8 cmd;
};

/* All return 0, or -EMSGSIZE with @skb as it was.  The caller holds the lock
 * of @sn (but for events). */
int saina_nlmsg_job(struct sk_buff *skb, const struct saina_nlmsg_to *to,
		    const struct saina_net *sn, const struct saina_job *job, bool tokens);
int saina_nlmsg_worker(struct sk_buff *skb, const struct saina_nlmsg_to *to,
		       const struct saina_net *sn, const struct saina_job *job, int w);
/* @job NULL: what belongs to no job */
int saina_nlmsg_stats(struct sk_buff *skb, const struct saina_nlmsg_to *to,
		      const struct saina_net *sn, const struct saina_job *job, int w);
int saina_nlmsg_limits(struct sk_buff *skb, const struct saina_nlmsg_to *to,
		       const struct saina_net *sn);
int saina_nlmsg_event(struct sk_buff *skb, const struct saina_event *ev, const char *name);

#endif /* _SAINA_NLMSG_H */
