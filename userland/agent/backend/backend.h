/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The owner of the jobs, chosen once at start: the job core of this process, or saina.ko.
 *
 * With saina.ko the core of this process is a mirror.  Each change is requested from the
 * kernel by netlink and then read back; changes of other clients arrive as notifications.
 * Consequences (maps, workers, subscribers, log) follow from changes of the mirror.  The XDP
 * program uses saina.ko, so the module stays loaded as long as the agent or its data path.
 */
#ifndef AGENT_BACKEND_H
#define AGENT_BACKEND_H

#include "agent/jobs.h"
#include "agent/backend/kernel_client.h"

/* A job of the kernel without a data path; @text says why. */
struct detached_job {
	struct saina_job job;
	char text[SAINA_TEXT_LEN];
};

/**
 * struct backend
 * @kernel: saina.ko is the owner
 * @client: connection to it
 * @notifications: of changes by other clients
 * @resync: notifications were lost, the mirror is out of date
 * @limits_dirty: the limits have changed there
 * @dirty: bits of jobs that have changed there
 * @detached: jobs without a data path, by number; NULL: it has one, or there is no such job
 */
struct backend {
	bool kernel;
	struct kernel_client client;
	struct source notifications;
	bool resync;
	bool limits_dirty;
	uint64_t dirty[SAINA_JOBS_MAX / 64];
	struct detached_job *detached[SAINA_JOBS_MAX];
};

/* Would a start with this configuration use saina.ko? */
bool backend_wants_kernel(const struct config *cfg);
/* Chooses the owner, before the data path is opened.  @running: jobs of an earlier agent
 * without saina.ko are running, so go on without it unless the configuration demands it. */
int backend_init(struct agent *a, bool running);
/* Mirrors the kernel's jobs.  Needs the data path. */
int backend_start(struct agent *a);
/* Ends the kernel's workers, as this agent stops serving them. */
void backend_release_workers(struct agent *a);
void backend_uninit(struct agent *a);
int backend_add_configured(struct agent *a);	/* adds the jobs of the configuration file */

/* kernel.c */
/* Mirrors changes of other clients.  Jobs may go: hold none across a call. */
void backend_drain(struct agent *a);
int mirror_all(struct agent *a);	/* everything again */
void mirror_uninit(struct agent *a);
/* The first whose number is >= @from, or NULL. */
const struct detached_job *backend_detached_next(struct agent *a, unsigned int from);

/* As saina_core_*() of the same name, by the owner of the jobs. */
int backend_job_new(struct agent *a, const struct saina_job_attrs *req,
		    const struct saina_job **job, struct saina_core_err *err);
int backend_job_set(struct agent *a, const struct saina_job_attrs *req, struct saina_core_err *err);
int backend_job_del(struct agent *a, const struct saina_job_attrs *req, struct saina_core_err *err);
int backend_worker_set(struct agent *a, const struct saina_worker_attrs *req,
		       const struct saina_job **job, struct saina_core_err *err);
int backend_worker_del(struct agent *a, const struct saina_worker_attrs *req,
		       struct saina_core_err *err);
/* Ends a worker's session; @state: DEAD or LEFT; @why: for the log. */
int backend_worker_end(struct agent *a, const struct saina_job *job, int w, int state,
		       const char *why);
/* Reports late gradients to the kernel's subscribers, if it is the owner. */
void backend_worker_late(struct agent *a, const struct saina_job *job, int w, uint64_t late);
int backend_limits_set(struct agent *a, const struct saina_limits *limits,
		       struct saina_core_err *err);

#endif /* AGENT_BACKEND_H */
