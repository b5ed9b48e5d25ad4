/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The session with saina.ko: one netlink socket for requests, one for what others
 * change, and the core's own structures to and from the family's attributes.
 */
#ifndef AGENT_KERNEL_H
#define AGENT_KERNEL_H

#include "ctl/ctl.h"
#include "core/core.h"

/**
 * struct kernel
 * @call: for requests
 * @sub: for notifications
 */
struct kernel {
	struct saina_ctl *call, *sub;
};

int kernel_open(struct kernel *k);	/* logs why not */
void kernel_close(struct kernel *k);
int kernel_fd(const struct kernel *k);	/* readable: kernel_next() */

/* Reads one notification: calls @job with the number of the job that it is about, or
 * @limits.
 * As saina_ctl_next(); never waits. */
int kernel_next(struct kernel *k, void (*job)(void *arg, unsigned int id),
		void (*limits)(void *arg), void *arg);

/* Calls @fn with the number of each job. */
int kernel_jobs(struct kernel *k, void (*fn)(void *arg, unsigned int id), void *arg,
		struct saina_core_err *err);
int kernel_job_there(struct kernel *k, unsigned int id);	/* 0, -ENOENT, .. */
/* The job with its workers, of one moment; -EAGAIN: it changes all the time. */
int kernel_job_read(struct kernel *k, unsigned int id, struct saina_job *job);
int kernel_limits_read(struct kernel *k, struct saina_limits *limits);

/* Requests: SAINA_CMD_JOB_*, WORKER_*.  @id: out, of the new job. */
int kernel_job_ask(struct kernel *k, int cmd, const struct saina_job_attrs *req, unsigned int *id,
		   struct saina_core_err *err);
int kernel_worker_ask(struct kernel *k, int cmd, const struct saina_worker_attrs *req,
		      struct saina_core_err *err);
int kernel_limits_ask(struct kernel *k, const struct saina_limits *limits,
		      struct saina_core_err *err);

#endif /* AGENT_KERNEL_H */
