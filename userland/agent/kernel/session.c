// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/kernel/session.h"
#include "agent/log.h"
#include "ctl/obj.h"

/* The kernel answers before the request is sent off: what is not there then is lost,
 * and nobody else is served meanwhile. */
#define ANSWER_MS 200

#define READ_TRIES 20 /* a job that changes all the time is looked at later */

int kernel_open(struct kernel *k)
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
		saina_ctl_set_timeout(k->call, ANSWER_MS);
		return 0;
	}
	log_error("saina.ko: %s", error);
	kernel_close(k);
	return ret;
}

void kernel_close(struct kernel *k)
{
	saina_ctl_close(k->call);
	saina_ctl_close(k->sub);
	k->call = k->sub = NULL;
}

int kernel_fd(const struct kernel *k)
{
	return saina_ctl_fd(k->sub);
}

static int attr_of(const struct saina_attr_class *c, const char *name)
{
	unsigned int i;

	for (i = 0; name && i < c->n; i++)
		if (!strcmp(c->attrs[i].name, name))
			return c->attrs[i].number;
	return 0;
}

/* One request with one object; the refusal is the kernel's own. */
static int ask(struct kernel *k, int cmd, const struct saina_attr_class *c, const void *obj,
	       int (*cb)(const struct nlmsghdr *nlh, void *arg), void *arg,
	       struct saina_core_err *err)
{
	struct nlmsghdr *nlh;
	int ret;

	nlh = saina_ctl_msg(k->call, cmd, 0);
	if (obj)
		saina_ctl_encode(nlh, c, obj);
	ret = saina_ctl_call(k->call, nlh, cb, arg);
	if (!ret)
		return 0;
	return saina_refuse(err, ret, attr_of(c, saina_ctl_error_attr(k->call)), "%s",
			    saina_ctl_error(k->call));
}

/* Notifications */

struct note {
	void (*job)(void *arg, unsigned int id);
	void (*limits)(void *arg);
	void *arg;
};

static int note_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(nlh);
	const struct note *n = arg;
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

int kernel_next(struct kernel *k, void (*job)(void *arg, unsigned int id),
		void (*limits)(void *arg), void *arg)
{
	struct note n = { job, limits, arg };

	return saina_ctl_next(k->sub, 0, note_cb, &n);
}

/* Reading */

static int job_cb(const struct nlmsghdr *nlh, void *arg)
{
	return saina_ctl_decode(nlh, &saina_job_class, arg);
}

static int id_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct note *n = arg;
	struct saina_job_attrs job;
	int ret = saina_ctl_decode(nlh, &saina_job_class, &job);

	if (!ret && job.id < SAINA_JOBS_MAX)
		n->job(n->arg, job.id);
	return ret;
}

int kernel_jobs(struct kernel *k, void (*fn)(void *arg, unsigned int id), void *arg,
		struct saina_core_err *err)
{
	struct note n = { .job = fn, .arg = arg };
	int i, ret = -EINTR;

	for (i = 0; ret == -EINTR && i < READ_TRIES; i++)
		ret = saina_ctl_call(k->call, saina_ctl_msg(k->call, SAINA_CMD_JOB_GET, 1), id_cb,
				     &n);
	if (ret)
		return saina_refuse(err, ret, 0, "%s", saina_ctl_error(k->call));
	return 0;
}

static int job_get(struct kernel *k, unsigned int id, struct saina_job_attrs *job)
{
	struct saina_job_attrs which = { .id = id };

	SAINA_SET(&which, SAINA_A_JOB_ID);
	memset(job, 0, sizeof(*job));
	return ask(k, SAINA_CMD_JOB_GET, &saina_job_class, &which, job_cb, job, NULL);
}

int kernel_job_there(struct kernel *k, unsigned int id)
{
	struct saina_job_attrs job;

	return job_get(k, id, &job);
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

static int workers_ask(struct kernel *k, struct saina_job *job)
{
	struct saina_worker_attrs which = { .job_id = job->id };
	struct nlmsghdr *nlh = saina_ctl_msg(k->call, SAINA_CMD_WORKER_GET, 1);

	SAINA_SET(&which, SAINA_A_WORKER_JOB_ID);
	saina_ctl_encode(nlh, &saina_worker_class, &which);
	memset(job->worker, 0, sizeof(job->worker));
	return saina_ctl_call(k->call, nlh, worker_cb, job);
}

static uint64_t active_of(const struct saina_job *job)
{
	uint64_t active = 0;
	int w;

	for (w = 0; w < job->workers; w++)
		if (job->worker[w].state == SAINA_WORKER_STATE_ALIVE ||
		    job->worker[w].state == SAINA_WORKER_STATE_SLOW)
			active |= 1ull << w;
	return active;
}

/* A job and its workers are two answers: read until they are of one state. */
int kernel_job_read(struct kernel *k, unsigned int id, struct saina_job *job)
{
	struct saina_job_attrs before, after;
	int i, ret;

	ret = job_get(k, id, &before);
	for (i = 0; !ret && i < READ_TRIES; i++) {
		saina_job_read(&before, job);
		job->first_round = before.round;
		ret = workers_ask(k, job);
		if (ret == -EINTR)
			ret = 0;
		if (!ret)
			ret = job_get(k, id, &after);
		if (ret)
			break;
		if (before.generation == after.generation && before.state == after.state &&
		    before.active == after.active && before.policy_seq == after.policy_seq &&
		    active_of(job) == after.active)
			return 0;
		before = after;
	}
	return ret ? ret : -EAGAIN;
}

static int limits_cb(const struct nlmsghdr *nlh, void *arg)
{
	return saina_ctl_decode(nlh, &saina_limits_class, arg);
}

int kernel_limits_read(struct kernel *k, struct saina_limits *limits)
{
	struct saina_limits_attrs l = { 0 };
	int ret;

	ret = ask(k, SAINA_CMD_LIMITS_GET, &saina_limits_class, NULL, limits_cb, &l, NULL);
	if (!ret)
		*limits = (struct saina_limits){ l.jobs, l.memory_job, l.memory };
	return ret;
}

/* Changes */

int kernel_job_ask(struct kernel *k, int cmd, const struct saina_job_attrs *req, unsigned int *id,
		   struct saina_core_err *err)
{
	struct saina_job_attrs made = { 0 };
	int ret;

	ret = ask(k, cmd, &saina_job_class, req, id ? job_cb : NULL, &made, err);
	if (!ret && id)
		*id = made.id;
	return ret;
}

int kernel_worker_ask(struct kernel *k, int cmd, const struct saina_worker_attrs *req,
		      struct saina_core_err *err)
{
	return ask(k, cmd, &saina_worker_class, req, NULL, NULL, err);
}

int kernel_limits_ask(struct kernel *k, const struct saina_limits *limits,
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
	return ask(k, SAINA_CMD_LIMITS_SET, &saina_limits_class, &l, NULL, NULL, err);
}
