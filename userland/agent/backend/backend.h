/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The backend owns the jobs: the job core of this process (local.c), or saina.ko (kernel.c).
 * It is chosen once, at start.
 *
 * With saina.ko the core of this process is a mirror.  Each change is requested from the
 * kernel by netlink and then read back; changes of other clients arrive as notifications.
 * Consequences (maps, workers, subscribers, log) follow from changes of the mirror.  The XDP
 * program uses saina.ko, so the module stays loaded as long as the agent or its data path.
 */
#ifndef AGENT_BACKEND_H
#define AGENT_BACKEND_H

#include "agent/jobs.h"

/* A job of the kernel without a data path; @text says why. */
struct detached_job {
	struct saina_job job;
	char text[SAINA_TEXT_LEN];
};

/**
 * struct backend_ops
 * @owner: enum saina_backend
 * @name: for metrics
 * @keeps_jobs: jobs and limits outlive the agent
 * @uses_module: programs of the data path call saina.ko
 * @init: before the data path is opened
 * @start: needs the data path
 * @drain: applies changes of other clients
 * @detached_next: the first with a number >= @from, or NULL
 *
 * The others are as saina_core_*() of the same name, or described below.  A backend without other
 * clients has no @drain, @detached_next and @worker_late; @init and @uninit may be NULL.
 */
struct backend_ops {
	int owner;
	const char *name;
	bool keeps_jobs;
	bool uses_module;
	int (*init)(struct agent *a);
	int (*start)(struct agent *a);
	void (*uninit)(struct agent *a);
	void (*drain)(struct agent *a);
	const struct detached_job *(*detached_next)(struct agent *a, unsigned int from);
	int (*job_new)(struct agent *a, const struct saina_job_attrs *req,
		       const struct saina_job **job, struct saina_core_err *err);
	int (*job_set)(struct agent *a, const struct saina_job_attrs *req,
		       struct saina_core_err *err);
	int (*job_del)(struct agent *a, const struct saina_job_attrs *req,
		       struct saina_core_err *err);
	int (*worker_set)(struct agent *a, const struct saina_worker_attrs *req,
			  const struct saina_job **job, struct saina_core_err *err);
	int (*worker_del)(struct agent *a, const struct saina_worker_attrs *req,
			  struct saina_core_err *err);
	void (*worker_late)(struct agent *a, const struct saina_job *job, int w, uint64_t late);
	int (*limits_set)(struct agent *a, const struct saina_limits *limits,
			  struct saina_core_err *err);
};

extern const struct backend_ops local_backend, kernel_backend;

/**
 * struct backend
 * @kernel: state of kernel.c, NULL with the local backend
 */
struct backend {
	const struct backend_ops *ops;
	struct kernel_mirror *kernel;
};

/* Would a start with this configuration use saina.ko? */
bool backend_wants_kernel(const struct config *cfg);
/* Chooses the backend.  @running: jobs of an earlier agent without saina.ko are running, so go
 * on without it unless the configuration demands it. */
int backend_init(struct agent *a, bool running);
int backend_start(struct agent *a);
/* Ends workers of jobs that outlive this agent, which stops serving them. */
void backend_release_workers(struct agent *a);
void backend_uninit(struct agent *a);
int backend_add_configured(struct agent *a); /* adds the jobs of the configuration file */

/* Chooses the payload if the request leaves it open. */
int backend_job_new(struct agent *a, const struct saina_job_attrs *req,
		    const struct saina_job **job, struct saina_core_err *err);
/* Ends a worker's session; @state: DEAD or LEFT; @why: for the log. */
int backend_worker_end(struct agent *a, const struct saina_job *job, int w, int state,
		       const char *why);
/* Begins a new generation of a job without live workers, which waits for them again.  Return: the job */
const struct saina_job *backend_job_anew(struct agent *a, unsigned int id);
/* Return: job @id if it is detached, or NULL. */
const struct detached_job *backend_detached(struct agent *a, unsigned int id);
/* Likewise, by its number if @has_id, else by @name, which may be NULL. */
const struct detached_job *backend_detached_find(struct agent *a, bool has_id, unsigned int id,
						 const char *name);

static inline const struct detached_job *backend_detached_next(struct agent *a, unsigned int from)
{
	return a->backend->ops->detached_next ? a->backend->ops->detached_next(a, from) : NULL;
}

/* Applies changes of other clients.  Jobs may go: hold none across a call. */
static inline void backend_drain(struct agent *a)
{
	if (a->backend->ops->drain)
		a->backend->ops->drain(a);
}

static inline int backend_job_set(struct agent *a, const struct saina_job_attrs *req,
				  struct saina_core_err *err)
{
	return a->backend->ops->job_set(a, req, err);
}

static inline int backend_job_del(struct agent *a, const struct saina_job_attrs *req,
				  struct saina_core_err *err)
{
	return a->backend->ops->job_del(a, req, err);
}

static inline int backend_worker_set(struct agent *a, const struct saina_worker_attrs *req,
				     const struct saina_job **job, struct saina_core_err *err)
{
	return a->backend->ops->worker_set(a, req, job, err);
}

static inline int backend_worker_del(struct agent *a, const struct saina_worker_attrs *req,
				     struct saina_core_err *err)
{
	return a->backend->ops->worker_del(a, req, err);
}

/* Reports late gradients to subscribers of the owner. */
static inline void backend_worker_late(struct agent *a, const struct saina_job *job, int w,
				       uint64_t late)
{
	if (a->backend->ops->worker_late)
		a->backend->ops->worker_late(a, job, w, late);
}

static inline int backend_limits_set(struct agent *a, const struct saina_limits *limits,
				     struct saina_core_err *err)
{
	return a->backend->ops->limits_set(a, limits, err);
}

#endif /* AGENT_BACKEND_H */
