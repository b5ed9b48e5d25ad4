/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The comparison of state: what program and oracle remember, not what they answered. */
#ifndef SAINA_RIG_STATE_H
#define SAINA_RIG_STATE_H

#include "rig.h"

/* Counters, rt, clock and open slots of a job.  @deep: all other state of it, too */
bool rig_check_job(struct rig *r, unsigned int job, bool deep);
/* Counters that belong to no job. */
bool rig_check_global(struct rig *r);

#endif /* SAINA_RIG_STATE_H */
