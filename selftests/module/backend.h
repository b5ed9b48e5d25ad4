/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs of the harness (datapath/harness.h) in saina.ko, by generic netlink. */
#ifndef SAINA_TEST_BACKEND_H
#define SAINA_TEST_BACKEND_H

#include "datapath/harness.h"

/* What the module was asked for since backend_open(), and what of that it refused. */
struct backend_requests {
	uint64_t made, refused;
	char last[256];		/* its last refusal */
};

/* Before harness_open(): the program for saina.ko, built beside this program, is the harness's. */
void backend_choose(void);
/* After harness_open(), in its network namespace: jobs are in the module from now on. */
void backend_open(struct harness *r);
void backend_close(struct harness *r);
const struct backend_requests *backend_requests(void);

#endif /* SAINA_TEST_BACKEND_H */
