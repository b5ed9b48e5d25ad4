/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs of the rig (datapath/rig.h) in saina.ko, by generic netlink. */
#ifndef SAINA_TEST_PLANE_H
#define SAINA_TEST_PLANE_H

#include "datapath/rig.h"

/* What the module was asked for since plane_open(), and what of that it refused. */
struct plane_calls {
	uint64_t made, refused;
	char last[256];		/* its last refusal */
};

/* Before rig_open(): the program for saina.ko, built beside this program, is the rig's. */
void plane_choose(void);
/* After rig_open(), in its network namespace: jobs are in the module from now on. */
void plane_open(struct rig *r);
void plane_close(struct rig *r);
const struct plane_calls *plane_calls(void);

#endif /* SAINA_TEST_PLANE_H */
