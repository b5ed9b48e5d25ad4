/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The workers of a world: what they send in their turns, and what they learn from answers. */
#ifndef SAINA_WORLD_WORKERS_H
#define SAINA_WORLD_WORKERS_H

#include "world.h"

/* All live workers send what their windows let them; in each job a random one begins. */
void world_workers_turn(struct world *w);
/* Worker @i of the job receives an answer, unless the channel loses it. */
void world_worker_hear(struct world *w, struct sim_job *j, unsigned int i,
		       const struct saina_hdr *h);

#endif /* SAINA_WORLD_WORKERS_H */
