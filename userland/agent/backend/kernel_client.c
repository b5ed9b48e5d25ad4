// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/adopt.h"
#include "agent/backend/kernel_client.h"
#include "agent/log.h"
#include "ctl/obj.h"

/* The kernel replies within send(): a reply that is not there is lost.  The wait is short,
 * because it blocks the whole agent. */
#define REPLY_MS 200

#define READ_TRIES 20 /* for a job that keeps changing; the caller tries again later */

int kernel_client_open(struct kernel_client *k)
{
	const char *error;
	int ret;

	ret = saina_ctl_open(&k->call, "kernel", &error);
	if (!ret)
		ret = saina_ctl_open(&k->sub, "kernel", &error);
	if (!ret && saina_ctl_subscribe(k->sub, SAINA_GROUPS_CONFIG)) {
		error = saina_ctl_error(k->sub);
		ret = -EIO;
	}
	if (!ret) {
		saina_ctl_set_timeout(k->call, REPLY_MS);
		return 0;
	}
	log_error("saina.ko: %s", error);
	kernel_client_close(k);
	return ret;
}

void kernel_client_close(struct kernel_client *k)
{
	saina_ctl_close(k->call);
	saina_ctl_close(k->sub);
	k->call = k->sub = NULL;
}

int kernel_client_fd(const struct kernel_client *k)
{
	return saina_ctl_fd(k->sub);
}

static int attr_number(const struct saina_attr_class *c, const char *name)
{
	unsigned int i;

	for (i = 0; name && i < c->n; i++)
		if (!strcmp(c->attrs[i].name, name))
			return c->attrs[i].number;
	return 0;
}

/* Sends a request with one object.  @err: the kernel's message. */
static int send_request(struct kernel_client *k, int cmd, const struct saina_attr_class *c,
			const void *obj, int (*cb)(const struct nlmsghdr *nlh, void *arg),
			void *arg, struct saina_core_err *err)
{
	struct nlmsghdr *nlh;
	int ret;

	nlh = saina_ctl_msg(k->call, cmd, 0);
	if (obj)
		saina_ctl_encode(nlh, c, obj);
	ret = saina_ctl_call(k->call, nlh, cb, arg);
	if (!ret)
		return 0;
	return saina_refuse(err, ret, attr_number(c, saina_ctl_error_attr(k->call)), "%s",
			    saina_ctl_error(k->call));
}

/* Notifications */

struct notification {
	void (*job)(void *arg, unsigned int id);
	void (*limits)(void *arg);
	void *arg;
};

static int notification_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(nlh);
	const struct notification *n = arg;
	struct saina_worker_attrs w;
	struct saina_job_attrs job;

	if (g->cmd == SAINA_CMD_LIMITS_NTF)
		n->limits(n->arg);
	else if (!saina_ctl_decode(nlh, &saina_job_class, &job) && job.id < SAINA_JOBS_MAX)
		n->job(n->arg, job.id);
	else if (!saina_ctl_decode(nlh, &saina_worker_class, &w) && w.job_id < SAINA_JOBS_MAX)
		n->job(n->arg, w.job_id);
	return 0;
}

int kernel_client_receive(struct kernel_client *k, void (*job)(void *arg, unsigned int id),
			  void (*limits)(void *arg), void *arg)
{
	struct notification n = { job, limits, arg };

	return saina_ctl_next(k->sub, 0, notification_cb, &n);
}

/* Reading */

static int job_cb(const struct nlmsghdr *nlh, void *arg)
{
	return saina_ctl_decode(nlh, &saina_job_class, arg);
}

static int id_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct notification *n = arg;
	struct saina_job_attrs job;
	int ret = saina_ctl_decode(nlh, &saina_job_class, &job);

	if (!ret && job.id < SAINA_JOBS_MAX)
		n->job(n->arg, job.id);
	return ret;
}

int kernel_client_each_job(struct kernel_client *k, void (*fn)(void *arg, unsigned int id),
			   void *arg, struct saina_core_err *err)
{
	struct notification n = { .job = fn, .arg = arg };
	int i, ret = -EINTR;

	for (i = 0; ret == -EINTR && i < READ_TRIES; i++)
		ret = saina_ctl_call(k->call, saina_ctl_msg(k->call, SAINA_CMD_JOB_GET, 1), id_cb,
				     &n);
	if (ret)
		return saina_refuse(err, ret, 0, "%s", saina_ctl_error(k->call));
	return 0;
}

static int read_job(struct kernel_client *k, unsigned int id, struct saina_job_attrs *job)
{
	struct saina_job_attrs which = { .id = id };

	SAINA_SET(&which, SAINA_A_JOB_ID);
	memset(job, 0, sizeof(*job));
	return send_request(k, SAINA_CMD_JOB_GET, &saina_job_class, &which, job_cb, job, NULL);
}

int kernel_client_job_exists(struct kernel_client *k, unsigned int id)
{
	struct saina_job_attrs job;

	return read_job(k, id, &job);
}

static int worker_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct saina_job *job = arg;
	struct saina_worker_attrs w;
	int ret = saina_ctl_decode(nlh, &saina_worker_class, &w);

	if (ret || w.id >= SAINA_WORKERS_MAX)
		return ret ? ret : -EBADMSG;
	saina_worker_read(&w, &job->worker[w.id]);
	return 0;
}

static int read_workers(struct kernel_client *k, struct saina_job *job)
{
	struct saina_worker_attrs which = { .job_id = job->id };
	struct nlmsghdr *nlh = saina_ctl_msg(k->call, SAINA_CMD_WORKER_GET, 1);

	SAINA_SET(&which, SAINA_A_WORKER_JOB_ID);
	saina_ctl_encode(nlh, &saina_worker_class, &which);
	memset(job->worker, 0, sizeof(job->worker));
	return saina_ctl_call(k->call, nlh, worker_cb, job);
}

static uint64_t active_mask(const struct saina_job *job)
{
	uint64_t active = 0;
	int w;

	for (w = 0; w < job->workers; w++)
		if (job->worker[w].state == SAINA_WORKER_STATE_ALIVE ||
		    job->worker[w].state == SAINA_WORKER_STATE_SLOW)
			active |= 1ull << w;
	return active;
}

/* A job and its workers are two replies: read both until they are consistent. */
int kernel_client_job_read(struct kernel_client *k, unsigned int id, struct saina_job *job)
{
	struct saina_job_attrs before, after;
	int i, ret;

	ret = read_job(k, id, &before);
	for (i = 0; !ret && i < READ_TRIES; i++) {
		saina_job_read(&before, job);
		job->first_round = before.round;
		ret = read_workers(k, job);
		if (ret == -EINTR)
			ret = 0;
		if (!ret)
			ret = read_job(k, id, &after);
		if (ret)
			break;
		if (before.generation == after.generation && before.state == after.state &&
		    before.active == after.active && before.policy_seq == after.policy_seq &&
		    active_mask(job) == after.active)
			return 0;
		before = after;
	}
	return ret ? ret : -EAGAIN;
}

static int limits_cb(const struct nlmsghdr *nlh, void *arg)
{
	return saina_ctl_decode(nlh, &saina_limits_class, arg);
}

int kernel_client_limits_read(struct kernel_client *k, struct saina_limits *limits)
{
	struct saina_limits_attrs l = { 0 };
	int ret;

	ret = send_request(k, SAINA_CMD_LIMITS_GET, &saina_limits_class, NULL, limits_cb, &l, NULL);
	if (!ret)
		*limits = (struct saina_limits){ l.jobs, l.memory_job, l.memory };
	return ret;
}

/* Changes */

int kernel_client_job_request(struct kernel_client *k, int cmd, const struct saina_job_attrs *req,
			      unsigned int *id, struct saina_core_err *err)
{
	struct saina_job_attrs made = { 0 };
	int ret;

	ret = send_request(k, cmd, &saina_job_class, req, id ? job_cb : NULL, &made, err);
	if (!ret && id)
		*id = made.id;
	return ret;
}

int kernel_client_worker_request(struct kernel_client *k, int cmd,
				 const struct saina_worker_attrs *req, struct saina_core_err *err)
{
	return send_request(k, cmd, &saina_worker_class, req, NULL, NULL, err);
}

int kernel_client_limits_set(struct kernel_client *k, const struct saina_limits *limits,
			     struct saina_core_err *err)
{
	struct saina_limits_attrs l = {
		.jobs = limits->jobs,
		.memory_job = limits->memory_job,
		.memory = limits->memory,
	};

	SAINA_SET(&l, SAINA_A_LIMITS_JOBS);
	SAINA_SET(&l, SAINA_A_LIMITS_MEMORY_JOB);
	SAINA_SET(&l, SAINA_A_LIMITS_MEMORY);
	return send_request(k, SAINA_CMD_LIMITS_SET, &saina_limits_class, &l, NULL, NULL, err);
}
