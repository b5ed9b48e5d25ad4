/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs of the harness: published to the program and to the oracle alike. */
#ifndef SAINA_HARNESS_JOBS_H
#define SAINA_HARNESS_JOBS_H

#include "harness.h"

/* Creates or changes a job in both; @conf becomes what the backend has made of it.  0 or -errno */
int harness_job(struct harness *r, struct saina_job_conf *conf, uint32_t first_round);
/*
 * As harness_job() for a job that exists, but by a write into the snapshot, which
 * avoids the wait for a grace period; no program runs meanwhile.
 */
int harness_job_overwrite(struct harness *r, struct saina_job_conf *conf);
int harness_job_remove(struct harness *r, unsigned int job);

/* Advances the time of open slots by @ns: their deadlines are set back.  0 or -errno */
int harness_advance_time(struct harness *r, uint64_t ns);

/* The program's counters of a worker since this generation of its job began. */
int harness_counters(struct harness *r, unsigned int job, unsigned int worker,
		 struct saina_counters *out);

#endif /* SAINA_HARNESS_JOBS_H */
