/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which control plane is in charge: the agent's own job core, or saina.ko's.
 *
 * With the kernel's, jobs live there.  The core in here is a mirror of it: each
 * change is asked of the kernel first, by netlink, and then read back; changes
 * made by others come as notifications.  What follows from a change (maps,
 * workers told, subscribers, log) follows as ever from the mirror.
 */
#ifndef AGENT_PLANE_H
#define AGENT_PLANE_H

#include "core/core.h"
#include "agent/kernel/session.h"
#include "agent/loop.h"

struct agent;
struct config;

/* A job of the kernel for which no maps could be made; @text says why. */
struct plane_stuck {
	struct saina_job job;
	char text[SAINA_TEXT_LEN];
};

/**
 * struct plane
 * @kernel: saina.ko is in charge
 * @down: ... but cannot be reached
 * @moved: the state found is of the other plane
 * @moving: jobs are on their way from one to the other
 * @resync: some notifications were lost
 * @session: with it
 * @notes: what others change there
 * @family: of nlctrl, which tells when the module comes and goes
 * @live, @tries: until the module's init is through
 * @dirty: jobs of which there was a notification
 * @limits: there was one of the limits
 * @stuck: by number, NULL: has a data path, or there is no such job
 */
struct plane {
	bool kernel;
	bool down;
	bool moved;
	bool moving;
	bool resync;
	bool limits;
	struct kernel session;
	struct source notes;
	struct source family;
	struct source live;
	int tries;
	uint64_t dirty[SAINA_JOBS_MAX / 64];
	struct plane_stuck *stuck[SAINA_JOBS_MAX];
};

/* Would a start with this configuration use saina.ko? */
bool plane_wanted(const struct config *cfg);
/* Finds out who is in charge, before the data path is opened. */
int plane_init(struct agent *a);
/* Mirrors what the kernel has; the data path is there. */
int plane_start(struct agent *a);
/* No worker is left behind in the kernel that nobody serves. */
void plane_dismiss(struct agent *a);
void plane_uninit(struct agent *a);
/* A job of this agent is from now on the kernel's. */
int plane_give(struct agent *a, const struct saina_job *job);

/* mirror.c */
/* Takes in what others have changed; jobs may go, so hold none across it. */
void plane_drain(struct agent *a);
int mirror_all(struct agent *a);	/* anew */
void mirror_empty(struct agent *a);
void mirror_forget_stuck(struct agent *a);
/* The first whose number is >= @from, or NULL. */
const struct plane_stuck *plane_stuck_next(struct agent *a, unsigned int from);

/* family.c, and what it tells */
void family_init(struct agent *a);
void family_uninit(struct agent *a);
void plane_module_gone(struct agent *a);
void plane_module_came(struct agent *a);
void plane_module_unsure(struct agent *a);	/* some was missed */

/* As saina_core_*() of the same name, by whoever is in charge. */
int plane_job_new(struct agent *a, const struct saina_job_req *req, const struct saina_job **job,
		  struct saina_core_err *err);
int plane_job_set(struct agent *a, const struct saina_job_req *req, struct saina_core_err *err);
int plane_job_del(struct agent *a, const struct saina_job_req *req, struct saina_core_err *err);
int plane_worker_set(struct agent *a, const struct saina_worker_req *req,
		     const struct saina_job **job, struct saina_core_err *err);
int plane_worker_del(struct agent *a, const struct saina_worker_req *req,
		     struct saina_core_err *err);
/* The kernel's subscribers learn of it, too. */
void plane_worker_late(struct agent *a, const struct saina_job *job, int w, uint64_t late);
int plane_limits_set(struct agent *a, const struct saina_limits *limits,
		     struct saina_core_err *err);

#endif /* AGENT_PLANE_H */
