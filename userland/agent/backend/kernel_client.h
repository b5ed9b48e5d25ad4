/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Netlink client of saina.ko: one socket for requests, one for notifications; converts
 * between structures of the job core and attributes of the family.
 */
#ifndef AGENT_KERNEL_CLIENT_H
#define AGENT_KERNEL_CLIENT_H

#include "ctl/ctl.h"
#include "core/core.h"

/**
 * struct kernel_client
 * @call: for requests
 * @sub: for notifications
 */
struct kernel_client {
	struct saina_ctl *call, *sub;
};

int kernel_client_open(struct kernel_client *k);	/* logs errors */
void kernel_client_close(struct kernel_client *k);
int kernel_client_fd(const struct kernel_client *k);	/* readable: kernel_client_receive() */

/* Receives one notification, without waiting: calls @job with the number of the job that has
 * changed, or @limits.  Return: as saina_ctl_next(). */
int kernel_client_receive(struct kernel_client *k, void (*job)(void *arg, unsigned int id),
			  void (*limits)(void *arg), void *arg);

/* Calls @fn with the number of each job. */
int kernel_client_each_job(struct kernel_client *k, void (*fn)(void *arg, unsigned int id),
			   void *arg, struct saina_core_err *err);
int kernel_client_job_exists(struct kernel_client *k, unsigned int id);	/* 0, -ENOENT, .. */
/* Reads a consistent job with its workers.  -EAGAIN: it kept changing. */
int kernel_client_job_read(struct kernel_client *k, unsigned int id, struct saina_job *job);
int kernel_client_limits_read(struct kernel_client *k, struct saina_limits *limits);

/* @cmd: SAINA_CMD_JOB_* or _WORKER_*; @id: out, of a new job. */
int kernel_client_job_request(struct kernel_client *k, int cmd, const struct saina_job_attrs *req,
			      unsigned int *id, struct saina_core_err *err);
int kernel_client_worker_request(struct kernel_client *k, int cmd,
				 const struct saina_worker_attrs *req, struct saina_core_err *err);
int kernel_client_limits_set(struct kernel_client *k, const struct saina_limits *limits,
			     struct saina_core_err *err);

#endif /* AGENT_KERNEL_CLIENT_H */
