/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The workers of a world: what they send in their turns, and what they learn from answers. */
#ifndef SAINA_SIM_WORKERS_H
#define SAINA_SIM_WORKERS_H

#include "sim.h"

/* All live workers send what their windows let them; in each job a random one begins. */
void sim_workers_send(struct sim *w);
/* Worker @i of the job receives an answer, unless the channel loses it. */
void sim_worker_receive(struct sim *w, struct sim_job *j, unsigned int i,
		       const struct saina_hdr *h);

#endif /* SAINA_SIM_WORKERS_H */
