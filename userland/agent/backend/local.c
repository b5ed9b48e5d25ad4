// SPDX-License-Identifier: GPL-2.0-or-later
/* The job core of this process owns the jobs.  They end with the agent. */
#include "agent/backend/backend.h"

static int local_start(struct agent *a)
{
	log_info("control plane: this agent");
	return 0;
}

static int local_job_new(struct agent *a, const struct saina_job_attrs *req,
			 const struct saina_job **job, struct saina_core_err *err)
{
	return saina_core_job_new(a->jobs->core, req, job, err);
}

static int local_job_set(struct agent *a, const struct saina_job_attrs *req,
			 struct saina_core_err *err)
{
	return saina_core_job_set(a->jobs->core, req, NULL, err);
}

static int local_job_del(struct agent *a, const struct saina_job_attrs *req,
			 struct saina_core_err *err)
{
	return saina_core_job_del(a->jobs->core, req, err);
}

static int local_worker_set(struct agent *a, const struct saina_worker_attrs *req,
			    const struct saina_job **job, struct saina_core_err *err)
{
	return saina_core_worker_set(a->jobs->core, req, job, err);
}

static int local_worker_del(struct agent *a, const struct saina_worker_attrs *req,
			    struct saina_core_err *err)
{
	return saina_core_worker_del(a->jobs->core, req, err);
}

static int local_limits_set(struct agent *a, const struct saina_limits *limits,
			    struct saina_core_err *err)
{
	return saina_core_limits_set(a->jobs->core, limits, err);
}

const struct backend_ops local_backend = {
	.owner = SAINA_BACKEND_AGENT,
	.name = "agent",
	.start = local_start,
	.job_new = local_job_new,
	.job_set = local_job_set,
	.job_del = local_job_del,
	.worker_set = local_worker_set,
	.worker_del = local_worker_del,
	.limits_set = local_limits_set,
};
