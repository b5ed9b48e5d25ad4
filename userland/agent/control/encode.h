/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Objects of the agent -> messages of the netlink family. */
#ifndef AGENT_ENCODE_H
#define AGENT_ENCODE_H

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include "agent/control/control.h"

#define MSG_MAX 4096	/* the largest object, a job, takes less than 2000 bytes */

struct msg {
	struct nlmsghdr *nlh;
	char buf[MSG_MAX] __attribute__((aligned(8)));
};

void msg_start(struct msg *m, int cmd, int flags, unsigned int seq);

/* @tokens: include the token; the reader is an admin */
void encode_job(struct msg *m, struct agent *a, const struct saina_job *job, bool tokens);
void encode_worker(struct msg *m, struct agent *a, const struct saina_job *job, int w,
		   bool secret);
void encode_port(struct msg *m, struct agent *a, const struct port *p);
void encode_slot(struct msg *m, const struct saina_job *job, uint32_t index,
		 const struct saina_slot_meta *meta);
/* @job NULL: counters that belong to no job */
void encode_stats(struct msg *m, const struct saina_job *job, int w,
		  const struct saina_counters *c);
void encode_limits(struct msg *m, struct agent *a);
void encode_event(struct msg *m, const struct saina_event *ev, const char *job, const char *text);

#endif /* AGENT_ENCODE_H */
