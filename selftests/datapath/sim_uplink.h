/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The uplink worker of a simulated job: its gradients are results of a parent that nobody sees, of
 * slots that are AWAY and of any other, with all flags.
 */
#ifndef SAINA_SIM_UPLINK_H
#define SAINA_SIM_UPLINK_H

#include "sim.h"

/* Appends some of its messages to those in flight. */
void sim_uplink_send(struct sim *w, struct sim_job *j);
/* May conf.uplink change now?  Not while a slot is AWAY. */
bool sim_uplink_is_idle(const struct sim *w, const struct sim_job *j);

#endif /* SAINA_SIM_UPLINK_H */
