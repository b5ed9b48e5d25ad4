/* SPDX-License-Identifier: GPL-2.0 */
/* The generic netlink family `saina` (uapi/linux/saina.h). */
#ifndef _SAINA_NETLINK_H
#define _SAINA_NETLINK_H

#include <net/genetlink.h>

#include "net/jobs.h"

/* Multicast groups, in the order of the family's table. */
enum {
	SAINA_NLGRP_CONFIG,
	SAINA_NLGRP_EVENTS,
};

extern struct genl_family saina_nl_family;

/* A change is in force: @cmd is SAINA_CMD_*_NTF, @worker < 0: of the job, @job
 * NULL: of the limits.  The caller holds the lock. */
void saina_nl_notify(struct saina_net *sn, int cmd, const struct saina_job *job, int worker);

int saina_netlink_init(void);
void saina_netlink_uninit(void);

#endif /* _SAINA_NETLINK_H */
