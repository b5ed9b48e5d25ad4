/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A worker's link in the simulator (lib_sim.h): a rate and a queue each way, messages that are
 * lost, repeated, delayed and overtaken.
 */
#ifndef SAINA_LIB_LINK_H
#define SAINA_LIB_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include "lib_sim.h"

enum link_way { LINK_OUT, LINK_IN };	/* from the worker, to it */

/**
 * struct lib_link
 * @rng: the job's random numbers
 * @free: when it can take the next message; @came: when the last one arrived, each way
 * @bursting: all is lost, until @turns
 */
struct lib_link {
	const struct sim_conf *c;
	unsigned int worker;
	uint64_t *rng;
	uint64_t free[2], came[2];
	bool	 bursting;
	uint64_t turns;
};

/* Is something lost that is said at @now? */
bool link_lost(struct lib_link *l, uint64_t now);
/*
 * @msg of @len bytes goes on its way at @now.  Return: how many copies of it arrive (0: it is
 * lost), and when.
 */
unsigned int link_carry(struct lib_link *l, enum link_way way, const void *msg, unsigned int len,
			uint64_t now, uint64_t arrive[2]);

#endif /* SAINA_LIB_LINK_H */
