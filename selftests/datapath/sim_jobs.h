/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The simulator's jobs: creation, random changes, removal. */
#ifndef SAINA_SIM_JOBS_H
#define SAINA_SIM_JOBS_H

#include "sim.h"

/* Creates job[@i], with number @number; 0 or -errno. */
int sim_job_create(struct sim *w, unsigned int i, unsigned int number, unsigned int payload);
/* Removes all jobs. */
void sim_jobs_remove(struct sim *w);
/*
 * Changes a job at random: a worker dies or joins, the policy, k or the state changes, or time
 * passes.  0 or -errno
 */
int sim_job_change(struct sim *w);
/* Resumes the job that was paused, if there is one. */
int sim_job_resume(struct sim *w);
/* Restarts jobs that have made no progress for a long time. */
int sim_restart_stuck(struct sim *w);

#endif /* SAINA_SIM_JOBS_H */
