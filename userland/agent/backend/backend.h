/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which control plane is in charge: the agent's own job core, or saina.ko's.
 * Chosen once, at start.
 *
 * With the kernel's, jobs live there.  The core in here is a mirror of it: each
 * change is asked of the kernel first, by netlink, and then read back; changes
 * made by others come as notifications.  What follows from a change (maps,
 * workers, subscribers, log) follows as ever from the mirror.  The XDP program uses
 * saina.ko, so the module stays for as long as the agent or its data path does.
 */
#ifndef AGENT_BACKEND_H
#define AGENT_BACKEND_H

#include "agent/jobs.h"
#include "agent/backend/kernel_client.h"

/* A job of the kernel for which no maps could be made; @text says why. */
struct detached_job {
	struct saina_job job;
	char text[SAINA_TEXT_LEN];
};

/**
 * struct backend
 * @kernel: saina.ko is in charge
 * @client: with it
 * @notifications: what others change there
 * @resync: some notifications were lost
 * @limits_dirty: there was one of the limits
 * @dirty: jobs of which there was a notification
 * @stuck: by number, NULL: has a data path, or there is no such job
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
/* Finds out who is in charge, before the data path is opened.  @running: an agent
 * without saina.ko has left jobs that run, which keeps it that way unless the
 * configuration demands the kernel. */
int backend_init(struct agent *a, bool running);
/* Mirrors what the kernel has; the data path is there. */
int backend_start(struct agent *a);
/* No worker is left behind in the kernel that nobody serves. */
void backend_release_workers(struct agent *a);
void backend_uninit(struct agent *a);
int backend_add_configured(struct agent *a);	/* adds the jobs of the configuration file */

/* mirror.c */
/* Takes in what others have changed; jobs may go, so hold none across it. */
void backend_drain(struct agent *a);
int mirror_all(struct agent *a);	/* anew */
void mirror_uninit(struct agent *a);
/* The first whose number is >= @from, or NULL. */
const struct detached_job *backend_detached_next(struct agent *a, unsigned int from);

/* As saina_core_*() of the same name, by whoever is in charge. */
int backend_job_new(struct agent *a, const struct saina_job_attrs *req, const struct saina_job **job,
		  struct saina_core_err *err);
int backend_job_set(struct agent *a, const struct saina_job_attrs *req, struct saina_core_err *err);
int backend_job_del(struct agent *a, const struct saina_job_attrs *req, struct saina_core_err *err);
int backend_worker_set(struct agent *a, const struct saina_worker_attrs *req,
		     const struct saina_job **job, struct saina_core_err *err);
int backend_worker_del(struct agent *a, const struct saina_worker_attrs *req,
		     struct saina_core_err *err);
/* Ends a worker's life: @state DEAD or LEFT; @why for the log. */
int backend_worker_end(struct agent *a, const struct saina_job *job, int w, int state,
		     const char *why);
/* The kernel's subscribers learn of it, too. */
void backend_worker_late(struct agent *a, const struct saina_job *job, int w, uint64_t late);
int backend_limits_set(struct agent *a, const struct saina_limits *limits,
		     struct saina_core_err *err);

#endif /* AGENT_BACKEND_H */
