/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of the jobs of a world: from their beginning through random changes to their end. */
#ifndef SAINA_SIM_JOBS_H
#define SAINA_SIM_JOBS_H

#include "sim.h"

/* Creates a job in slot @i of the world with number @number; 0 or -errno. */
int sim_job_create(struct sim *w, unsigned int i, unsigned int number, unsigned int payload);
/* Removes all jobs. */
void sim_jobs_remove(struct sim *w);
/*
 * Changes a job at random: a worker dies or joins, another policy or k, time that passes,
 * another state.  0 or -errno
 */
int sim_job_change(struct sim *w);
/* The job that was stopped, if one is, goes on. */
int sim_job_resume(struct sim *w);
/* Restarts each job that has made no progress for long. */
int sim_restart_stuck(struct sim *w);

#endif /* SAINA_SIM_JOBS_H */
