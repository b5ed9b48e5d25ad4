/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of the control client. */
#ifndef SAINA_CTL_PRIV_H
#define SAINA_CTL_PRIV_H

#include <stdbool.h>
#include "ctl/ctl.h"
#include "ctl/obj.h"

#define REQUEST_MAX	8192
#define REPLY_MAX	(256 * 1024)

#ifndef SOL_NETLINK
#define SOL_NETLINK 270
#endif

struct notification {
	struct notification *next;
	struct nlmsghdr nlh;	/* and what follows it */
};

/* What to do about an agent that does not answer. */
#define SILENT	"it is stopped, overloaded or hangs. Its log may say why. " \
		"If you kill sainad and start it again, its jobs continue"

struct saina_ctl {
	int fd;
	bool kernel;
	__u16 type;		/* of our messages */
	__u32 group_config;	/* multicast groups of the family, kernel only */
	__u32 group_events;
	__u32 seq;
	int timeout_ms;	/* of a call */
	char peer[108];
	char error[512];
	char warning[256];	/* of the last call, which has succeeded */
	const char *attr;	/* attribute of the last refusal, or NULL */
	struct notification *first, **last;
	unsigned int queued;
	bool lost;		/* notifications were dropped */
	char request[REQUEST_MAX] __attribute__((aligned(8)));
	char reply[REPLY_MAX] __attribute__((aligned(8)));
};

/* Sets the sentence of saina_ctl_error() and returns @err. */
int saina_ctl_fail(struct saina_ctl *ctl, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Parses an NLMSG_ERROR or NLMSG_DONE that answers @req.  Returns its errno, and sets the
 * sentence and the attribute; 0: success. */
int saina_ctl_ack_parse(struct saina_ctl *ctl, const struct nlmsghdr *nlh,
			const struct nlmsghdr *req);

#endif /* SAINA_CTL_PRIV_H */
