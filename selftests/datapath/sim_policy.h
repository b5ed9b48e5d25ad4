/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random policies for the simulator's jobs. */
#ifndef SAINA_SIM_POLICY_H
#define SAINA_SIM_POLICY_H

#include "sim.h"

/* Draws the next policy of a job into @p, most of them of w->kind; @before is the last one. */
void sim_policy_draw(struct sim *w, struct sim_job *j, const struct saina_policy *before,
		     struct saina_policy *p);

#endif /* SAINA_SIM_POLICY_H */
