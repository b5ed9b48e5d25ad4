/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares the state of program and oracle. */
#ifndef SAINA_HARNESS_STATE_H
#define SAINA_HARNESS_STATE_H

#include "harness.h"

/* Counters, rt, clock and open slots of a job.  @deep: all other state of it, too */
bool harness_check_job(struct harness *r, unsigned int job, bool deep);
/* Counters that belong to no job. */
bool harness_check_global(struct harness *r);

#endif /* SAINA_HARNESS_STATE_H */
