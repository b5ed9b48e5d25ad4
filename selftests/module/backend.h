/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs of the rig (datapath/rig.h) in saina.ko, by generic netlink. */
#ifndef SAINA_TEST_BACKEND_H
#define SAINA_TEST_BACKEND_H

#include "datapath/rig.h"

/* What the module was asked for since backend_open(), and what of that it refused. */
struct backend_requests {
	uint64_t made, refused;
	char last[256];		/* its last refusal */
};

/* Before rig_open(): the program for saina.ko, built beside this program, is the rig's. */
void backend_choose(void);
/* After rig_open(), in its network namespace: jobs are in the module from now on. */
void backend_open(struct rig *r);
void backend_close(struct rig *r);
const struct backend_requests *backend_requests(void);

#endif /* SAINA_TEST_BACKEND_H */
