/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The simulator's workers: what they send, and how they react to answers. */
#ifndef SAINA_SIM_WORKERS_H
#define SAINA_SIM_WORKERS_H

#include "sim.h"

/* All live workers send what their windows permit; in each job a random one begins. */
/* A new message in flight, of the present session; NULL: too many are. */
struct message *sim_emit(struct sim *w, struct sim_job *j, unsigned int worker, int type, uint32_t round,
			 uint32_t segment);
void sim_workers_send(struct sim *w);
/* Worker @i of the job receives an answer, unless the channel loses it. */
void sim_worker_receive(struct sim *w, struct sim_job *j, unsigned int i,
		       const struct saina_hdr *h);

#endif /* SAINA_SIM_WORKERS_H */
