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
#ifndef AGENT_PLANE_H
#define AGENT_PLANE_H

#include "agent/jobs.h"
#include "agent/kernel/session.h"

/* A job of the kernel for which no maps could be made; @text says why. */
struct plane_stuck {
	struct saina_job job;
	char text[SAINA_TEXT_LEN];
};

/**
 * struct plane
 * @kernel: saina.ko is in charge
 * @session: with it
 * @notes: what others change there
 * @resync: some notifications were lost
 * @limits: there was one of the limits
 * @dirty: jobs of which there was a notification
 * @stuck: by number, NULL: has a data path, or there is no such job
 */
struct plane {
	bool kernel;
	struct kernel session;
	struct source notes;
	bool resync;
	bool limits;
	uint64_t dirty[SAINA_JOBS_MAX / 64];
	struct plane_stuck *stuck[SAINA_JOBS_MAX];
};

/* Would a start with this configuration use saina.ko? */
bool plane_wanted(const struct config *cfg);
/* Finds out who is in charge, before the data path is opened.  @running: an agent
 * without saina.ko has left jobs that run, which keeps it that way unless the
 * configuration demands the kernel. */
int plane_init(struct agent *a, bool running);
/* Mirrors what the kernel has; the data path is there. */
int plane_start(struct agent *a);
/* No worker is left behind in the kernel that nobody serves. */
void plane_dismiss(struct agent *a);
void plane_uninit(struct agent *a);
int plane_configure(struct agent *a);	/* adds the jobs of the configuration file */

/* mirror.c */
/* Takes in what others have changed; jobs may go, so hold none across it. */
void plane_drain(struct agent *a);
int mirror_all(struct agent *a);	/* anew */
void mirror_uninit(struct agent *a);
/* The first whose number is >= @from, or NULL. */
const struct plane_stuck *plane_stuck_next(struct agent *a, unsigned int from);

/* As saina_core_*() of the same name, by whoever is in charge. */
int plane_job_new(struct agent *a, const struct saina_job_attrs *req, const struct saina_job **job,
		  struct saina_core_err *err);
int plane_job_set(struct agent *a, const struct saina_job_attrs *req, struct saina_core_err *err);
int plane_job_del(struct agent *a, const struct saina_job_attrs *req, struct saina_core_err *err);
int plane_worker_set(struct agent *a, const struct saina_worker_attrs *req,
		     const struct saina_job **job, struct saina_core_err *err);
int plane_worker_del(struct agent *a, const struct saina_worker_attrs *req,
		     struct saina_core_err *err);
/* Ends a worker's life: @state DEAD or LEFT; @why for the log. */
int plane_worker_end(struct agent *a, const struct saina_job *job, int w, int state,
		     const char *why);
/* The kernel's subscribers learn of it, too. */
void plane_worker_late(struct agent *a, const struct saina_job *job, int w, uint64_t late);
int plane_limits_set(struct agent *a, const struct saina_limits *limits,
		     struct saina_core_err *err);

#endif /* AGENT_PLANE_H */
