/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of the jobs of a world: from their beginning through random changes to their end. */
#ifndef SAINA_WORLD_LIFE_H
#define SAINA_WORLD_LIFE_H

#include "world.h"

/* Creates a job in slot @i of the world with number @number; 0 or -errno. */
int world_job_new(struct world *w, unsigned int i, unsigned int number, unsigned int payload);
/* Removes all jobs. */
void world_jobs_del(struct world *w);
/*
 * Changes a job at random: a worker dies or joins, another policy or k, time that passes,
 * another state.  0 or -errno
 */
int world_change_job(struct world *w);
/* The job that was stopped, if one is, goes on. */
int world_resume(struct world *w);
/* Restarts each job that has made no progress for long. */
int world_unstick(struct world *w);

#endif /* SAINA_WORLD_LIFE_H */
