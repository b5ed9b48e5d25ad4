/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs of the harness (datapath/harness.h) in saina.ko, by generic netlink. */
#ifndef SAINA_TEST_PLANE_H
#define SAINA_TEST_PLANE_H

#include "datapath/harness.h"

/* What the module was asked for since plane_open(), and what of that it refused. */
struct plane_calls {
	uint64_t made, refused;
	char last[256];		/* its last refusal */
};

/* Before harness_open(): the program for saina.ko, built beside this program, is the harness's. */
void plane_choose(void);
/* After harness_open(), in its network namespace: jobs are in the module from now on. */
void plane_open(struct harness *r);
void plane_close(struct harness *r);
const struct plane_calls *plane_calls(void);

#endif /* SAINA_TEST_PLANE_H */
