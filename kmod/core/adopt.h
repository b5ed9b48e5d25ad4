/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Jobs of another core: read from messages, restored from an earlier core, or mirrored from a
 * running one.
 */
#ifndef _SAINA_CORE_ADOPT_H
#define _SAINA_CORE_ADOPT_H

#include "core/core.h"

void saina_job_read(const struct saina_job_attrs *a, struct saina_job *job);
void saina_worker_read(const struct saina_worker_attrs *a, struct saina_worker *wk);
/* The same generation, policy number and bindings, published again. */
int saina_core_job_restore(struct saina_core *c, const struct saina_job *old,
			   const struct saina_job **job, struct saina_core_err *err);
/* Removes from @old what restore refused with @attr; 0: the job cannot be without it. */
int saina_job_leave_out(struct saina_job *old, unsigned int attr);
/* Adds or replaces the job of that number, without checking states or limits. */
int saina_core_job_adopt(struct saina_core *c, const struct saina_job *theirs,
			 const struct saina_job **job, struct saina_core_err *err);

#endif /* _SAINA_CORE_ADOPT_H */
