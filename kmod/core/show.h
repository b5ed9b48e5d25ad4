/* SPDX-License-Identifier: GPL-2.0 */
/* What the core knows -> attributes of replies and notifications. */
#ifndef _SAINA_CORE_SHOW_H
#define _SAINA_CORE_SHOW_H

#include "core/attrs.h"
#include "core/core.h"

/* @a is overwritten.  What only the data path knows is left out. */
void saina_job_show(const struct saina_job *job, int token, struct saina_job_attrs *a);
void saina_job_show_in_force(__u32 seq, struct saina_job_attrs *a);
void saina_worker_show(const struct saina_job *job, int w, int secret,
		       struct saina_worker_attrs *a);
void saina_limits_show(const struct saina_core *c, int backend, struct saina_limits_attrs *a);
/* @job: its name, or NULL */
void saina_event_show(const struct saina_event *ev, const char *job, struct saina_event_attrs *a);

/* What a request asks for, in the place of what is. */
void saina_limits_merge(struct saina_limits *limits, const struct saina_limits_attrs *a);

#endif /* _SAINA_CORE_SHOW_H */
