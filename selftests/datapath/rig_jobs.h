/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs of the rig: published to the program and to the oracle alike. */
#ifndef SAINA_RIG_JOBS_H
#define SAINA_RIG_JOBS_H

#include "rig.h"

/* Creates or changes a job in both; @conf becomes what the plane has made of it.  0 or -errno */
int rig_job(struct rig *r, struct saina_job_conf *conf, uint32_t first_round);
/*
 * As rig_job() for a job that exists, but by a write into the snapshot, which
 * saves the wait for a grace period; nothing runs meanwhile.
 */
int rig_job_poke(struct rig *r, struct saina_job_conf *conf);
int rig_job_remove(struct rig *r, unsigned int job);

/* Lets @ns pass for open slots: their times are set back.  0 or -errno */
int rig_time_passes(struct rig *r, uint64_t ns);

/* The program's counters of a worker since this generation of its job began. */
int rig_counters(struct rig *r, unsigned int job, unsigned int worker,
		 struct saina_counters *out);

#endif /* SAINA_RIG_JOBS_H */
