// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina.ko owns the jobs; the core of this process is a mirror.  Each change is requested from
 * the kernel, then read back; changes of other clients arrive as notifications.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/adopt.h"
#include "agent/backend/backend.h"
#include "agent/backend/kernel_client.h"
#include "core/err.h"

/**
 * struct kernel_mirror
 * @client: connection to saina.ko
 * @notifications: of changes by other clients
 * @resync: notifications were lost, the mirror is out of date
 * @limits_dirty: the limits have changed there
 * @dirty: bits of jobs that have changed there
 * @detached: jobs without a data path, by number; NULL: it has one, or there is no such job
 */
struct kernel_mirror {
	struct kernel_client client;
	struct source notifications;
	bool resync;
	bool limits_dirty;
	uint64_t dirty[SAINA_JOBS_MAX / 64];
	struct detached_job *detached[SAINA_JOBS_MAX];
};

static struct kernel_client *client_of(struct agent *a)
{
	return &a->backend->kernel->client;
}

static void mark_dirty(void *mirror, unsigned int id)
{
	struct kernel_mirror *m = mirror;

	m->dirty[id / 64] |= 1ull << id % 64;
}

static void mark_limits_dirty(void *mirror)
{
	struct kernel_mirror *m = mirror;

	m->limits_dirty = true;
}

/* The mirror */

static void mirror_del(struct agent *a, unsigned int id)
{
	struct saina_job_attrs req = { .has = 1ull << SAINA_A_JOB_ID, .id = id };
	struct saina_core_err err;

	if (!saina_core_job_find(a->jobs->core, 1, id, NULL, NULL))
		return;
	if (saina_core_job_del(a->jobs->core, &req, &err))
		log_error("job %u: %s", id, err.text);
}

/* Jobs of the kernel that have no data path */

static void detached_free(struct agent *a, unsigned int id)
{
	free(a->backend->kernel->detached[id]);
	a->backend->kernel->detached[id] = NULL;
}

/* Stops the job.  Starting it again makes another attempt to attach it. */
static void detached_stop(struct agent *a, const struct saina_job *job, const char *why)
{
	struct saina_job_attrs req = {
		.has = 1ull << SAINA_A_JOB_ID | 1ull << SAINA_A_JOB_STATE,
		.id = job->id,
		.state = SAINA_JOB_STOPPED,
	};
	struct saina_event ev = {
		.type = SAINA_EV_JOB_STATE,
		.job = job->id,
		.worker = 0xff,
		.a = job->state,
		.b = SAINA_JOB_STOPPED,
	};
	struct detached_job *s = calloc(1, sizeof(*s));
	struct saina_core_err err;

	log_error("job %s of the kernel is stopped, there is no data path for it: %s", job->name,
		  why);
	detached_free(a, job->id);
	if (!s)
		return;
	s->job = *job;
	s->job.state = SAINA_JOB_STOPPED;
	snprintf(s->text, sizeof(s->text), "no data path: %.100s", why);
	a->backend->kernel->detached[job->id] = s;
	if (job->state != SAINA_JOB_STOPPED &&
	    kernel_client_job_request(client_of(a), SAINA_CMD_JOB_SET, &req, NULL, &err))
		log_error("job %s: %s", job->name, err.text);
	jobs_event(a, &ev, s->text);
}

static const struct detached_job *kernel_detached_next(struct agent *a, unsigned int from)
{
	while (from < SAINA_JOBS_MAX && !a->backend->kernel->detached[from])
		from++;
	return from < SAINA_JOBS_MAX ? a->backend->kernel->detached[from] : NULL;
}

static bool same_shape(const struct saina_job *x, const struct saina_job *y)
{
	return !strcmp(x->name, y->name) && x->elements_auto == y->elements_auto &&
	       (x->elements_auto || x->elements == y->elements) &&
	       x->workers == y->workers && x->payload == y->payload && x->ring == y->ring &&
	       x->pool == y->pool && x->elem == y->elem && x->exponent == y->exponent;
}

enum mirror_mode {
	KEEP, /* no job may go: if it is deleted or replaced, leave that to kernel_drain() */
	NEW, /* just requested: the caller deletes it if it gets no data path */
	FOLLOW, /* changed by others: it may be deleted, replaced or detached */
};

/* Reads job @id and updates the mirror. */
static int mirror_job(struct agent *a, unsigned int id, enum mirror_mode mode,
		      const struct saina_job **out, struct saina_core_err *err)
{
	const struct saina_job *have = saina_core_job_find(a->jobs->core, 1, id, NULL, NULL);
	struct detached_job *detached = a->backend->kernel->detached[id];
	struct saina_job job;
	int ret;

	ret = kernel_client_job_read(client_of(a), id, &job);
	if (ret == -ENOENT && mode != KEEP) {
		mirror_del(a, id);
		detached_free(a, id);
		return 0;
	}
	if (ret)
		goto later;
	if (detached && job.state == SAINA_JOB_STOPPED && same_shape(&detached->job, &job)) {
		detached->job = job;
		return saina_refuse(err, -ENODATA, 0, "job %s: %.100s", job.name, detached->text);
	}
	if (have && !same_shape(have, &job)) {
		ret = -EAGAIN;
		if (mode == KEEP)
			goto later;
		mirror_del(a, id);
		have = NULL;
	}
	/* of a new generation the kernel's is right: no round can open before it is mirrored */
	if (have && have->generation == job.generation)
		job.first_round = have->first_round;
	ret = saina_core_job_adopt(a->jobs->core, &job, out, err);
	if (!ret) {
		detached_free(a, id);
		return 0;
	}
	if (mode == KEEP)
		mark_dirty(a->backend->kernel, id);
	if (mode == FOLLOW) {
		mirror_del(a, id);
		detached_stop(a, &job, err->text);
	}
	return ret;

later:
	mark_dirty(a->backend->kernel, id);
	if (ret == -EAGAIN)
		return saina_refuse(err, ret, 0,
				    "job %u is being changed by another process: try again", id);
	return saina_refuse(err, ret, 0, "job %u cannot be read from saina.ko: %s", id,
			    ret == -ENOENT ? "it was deleted" : strerror(-ret));
}

/* Limits that this agent has set are equal already and not notified again. */
static void mirror_limits(struct agent *a)
{
	struct saina_limits limits, ours;

	a->backend->kernel->limits_dirty = false;
	if (kernel_client_limits_read(client_of(a), &limits))
		return;
	saina_core_limits_get(a->jobs->core, &ours, NULL, NULL);
	if (limits.jobs != ours.jobs || limits.memory_job != ours.memory_job ||
	    limits.memory != ours.memory)
		saina_core_limits_set(a->jobs->core, &limits, NULL);
}

static void mark_present(void *arg, unsigned int id)
{
	uint64_t *present = arg;

	present[id / 64] |= 1ull << id % 64;
}

static int mirror_all(struct agent *a)
{
	uint64_t present[SAINA_JOBS_MAX / 64] = { 0 };
	struct saina_core_err err;
	unsigned int id;
	int ret;

	ret = kernel_client_each_job(client_of(a), mark_present, present, &err);
	if (ret) {
		log_error("saina.ko: %s", err.text);
		return ret;
	}
	a->backend->kernel->resync = false;
	memset(a->backend->kernel->dirty, 0, sizeof(a->backend->kernel->dirty));
	/* deletions first: a name may be reused by a new id */
	for (id = 0; id < SAINA_JOBS_MAX; id++)
		if (!(present[id / 64] & 1ull << id % 64)) {
			mirror_del(a, id);
			detached_free(a, id);
		}
	for (id = 0; id < SAINA_JOBS_MAX; id++)
		if (present[id / 64] & 1ull << id % 64)
			mirror_job(a, id, FOLLOW, NULL, &err);
	mirror_limits(a);
	return 0;
}

/* Notifications */

static void kernel_drain(struct agent *a)
{
	struct kernel_mirror *m = a->backend->kernel;
	uint64_t changed[SAINA_JOBS_MAX / 64];
	struct saina_core_err err;
	unsigned int id;
	int ret, pass;

	do {
		ret = kernel_client_receive(&m->client, mark_dirty, mark_limits_dirty, m);
		if (ret == -ENOBUFS)
			m->resync = true;
	} while (!ret || ret == -ENOBUFS);
	if (m->resync) {
		mirror_all(a);
		return;
	}
	if (m->limits_dirty)
		mirror_limits(a);
	memcpy(changed, m->dirty, sizeof(changed));
	memset(m->dirty, 0, sizeof(m->dirty));
	/* deletions first: a name may be reused by a new id */
	for (pass = 0; pass < 2; pass++)
		for (id = 0; id < SAINA_JOBS_MAX; id++) {
			if (!(changed[id / 64] & 1ull << id % 64))
				continue;
			if (pass)
				mirror_job(a, id, FOLLOW, NULL, &err);
			else if (kernel_client_job_exists(&m->client, id) == -ENOENT)
				mirror_del(a, id);
		}
}

/* Changes */

/* Return: id of the job that a request names, in the mirror; or a negative errno and @err. */
static int job_number(struct agent *a, int has_id, __u16 id, const char *name,
		      struct saina_core_err *err)
{
	const struct saina_job *job;

	job = saina_core_job_find(a->jobs->core, has_id, id, name, err);
	return job ? job->id : -ENOENT;
}

static int kernel_job_new(struct agent *a, const struct saina_job_attrs *req,
			  const struct saina_job **out, struct saina_core_err *err)
{
	struct saina_job_attrs undo = { .has = 1ull << SAINA_A_JOB_ID };
	struct saina_core_err unused_err;
	unsigned int id;
	int ret;

	ret = kernel_client_job_request(client_of(a), SAINA_CMD_JOB_NEW, req, &id, err);
	if (ret)
		return ret;
	ret = mirror_job(a, id, NEW, out, err);
	if (!ret && !saina_core_job_find(a->jobs->core, 1, id, NULL, err))
		ret = -ENOENT; /* another client has deleted it already */
	if (!ret)
		return 0;
	undo.id = id;
	kernel_client_job_request(client_of(a), SAINA_CMD_JOB_DEL, &undo, NULL, &unused_err);
	return ret;
}

static int kernel_job_set(struct agent *a, const struct saina_job_attrs *req,
			  struct saina_core_err *err)
{
	struct saina_core_err unused_err;
	int ret;

	ret = kernel_client_job_request(client_of(a), SAINA_CMD_JOB_SET, req, NULL, err);
	if (ret)
		return ret;
	ret = job_number(a, SAINA_HAS(req, SAINA_A_JOB_ID) != 0, req->id, req->name, NULL);
	if (ret >= 0)
		mirror_job(a, ret, KEEP, NULL, &unused_err);
	return 0;
}

static int kernel_job_del(struct agent *a, const struct saina_job_attrs *req,
			  struct saina_core_err *err)
{
	int ret;

	ret = kernel_client_job_request(client_of(a), SAINA_CMD_JOB_DEL, req, NULL, err);
	if (!ret)
		kernel_drain(a);
	return ret;
}

static int worker_request(struct agent *a, int cmd, const struct saina_worker_attrs *req,
			  const struct saina_job **out, struct saina_core_err *err)
{
	const struct detached_job *detached;
	struct saina_core_err unused_err;
	int ret;

	err = err ? err : &unused_err;
	detached = backend_detached_find(a, SAINA_HAS(req, SAINA_A_WORKER_JOB_ID), req->job_id,
					 req->job_name);
	if (detached)
		return saina_refuse(err, -ENODATA, 0, "job %s: %.100s", detached->job.name,
				    detached->text);
	ret = kernel_client_worker_request(client_of(a), cmd, req, err);
	if (ret)
		return ret;
	ret = job_number(a, SAINA_HAS(req, SAINA_A_WORKER_JOB_ID) != 0, req->job_id, req->job_name,
			 err);
	if (ret < 0)
		return ret;
	return mirror_job(a, ret, KEEP, out, err);
}

static int kernel_worker_set(struct agent *a, const struct saina_worker_attrs *req,
			     const struct saina_job **out, struct saina_core_err *err)
{
	return worker_request(a, SAINA_CMD_WORKER_SET, req, out, err);
}

static int kernel_worker_del(struct agent *a, const struct saina_worker_attrs *req,
			     struct saina_core_err *err)
{
	return worker_request(a, SAINA_CMD_WORKER_DEL, req, NULL, err);
}

static void kernel_worker_late(struct agent *a, const struct saina_job *job, int w, uint64_t late)
{
	const struct saina_worker_attrs req = {
		.has = 1ull << SAINA_A_WORKER_JOB_ID | 1ull << SAINA_A_WORKER_ID |
		       1ull << SAINA_A_WORKER_LATE,
		.job_id = job->id,
		.id = w,
		.late = late,
	};

	/* information only: errors are ignored */
	kernel_client_worker_request(client_of(a), SAINA_CMD_WORKER_SET, &req, NULL);
}

static int kernel_limits_set(struct agent *a, const struct saina_limits *limits,
			     struct saina_core_err *err)
{
	int ret = kernel_client_limits_set(client_of(a), limits, err);

	return ret ? ret : saina_core_limits_set(a->jobs->core, limits, err);
}

/* Start and end */

/* Sets the limits of the configuration in the kernel.  Others stay as they are there. */
static int push_limits(struct agent *a)
{
	const __u64 has = a->cfg.limits_has;
	struct saina_limits limits;
	struct saina_core_err err;
	int ret;

	if (!has)
		return 0;
	ret = kernel_client_limits_read(client_of(a), &limits);
	if (ret)
		return ret;
	if (has & 1ull << SAINA_A_LIMITS_JOBS)
		limits.jobs = a->cfg.limits.jobs;
	if (has & 1ull << SAINA_A_LIMITS_MEMORY_JOB)
		limits.memory_job = a->cfg.limits.memory_job;
	if (has & 1ull << SAINA_A_LIMITS_MEMORY)
		limits.memory = a->cfg.limits.memory;
	ret = kernel_client_limits_set(client_of(a), &limits, &err);
	if (ret)
		log_error("%s:%d: limits: %s", a->cfg.file, a->cfg.limits_line, err.text);
	return ret;
}

static void notifications_ready(struct source *s, uint32_t events)
{
	kernel_drain(s->arg);
}

static int kernel_init(struct agent *a)
{
	struct kernel_mirror *m = calloc(1, sizeof(*m));
	int ret;

	if (!m)
		return -ENOMEM;
	m->notifications = (struct source){ .fd = -1, .ready = notifications_ready, .arg = a };
	ret = kernel_client_open(&m->client);
	if (ret)
		free(m);
	else
		a->backend->kernel = m;
	return ret;
}

static int kernel_start(struct agent *a)
{
	struct source *s = &a->backend->kernel->notifications;
	int ret;

	ret = push_limits(a);
	if (!ret)
		ret = mirror_all(a);
	if (ret)
		return ret;
	s->fd = kernel_client_fd(client_of(a));
	ret = loop_add(&a->loop, s, EPOLLIN);
	if (ret)
		s->fd = -1;
	else
		log_info("control plane: saina.ko in the kernel");
	return ret;
}

static void kernel_uninit(struct agent *a)
{
	struct kernel_mirror *m = a->backend->kernel;
	unsigned int id;

	if (m->notifications.fd >= 0)
		loop_del(&a->loop, &m->notifications);
	kernel_client_close(&m->client);
	for (id = 0; id < SAINA_JOBS_MAX; id++)
		detached_free(a, id);
	free(m);
	a->backend->kernel = NULL;
}

const struct backend_ops kernel_backend = {
	.owner = SAINA_BACKEND_KERNEL,
	.name = "kernel",
	.keeps_jobs = true,
	.uses_module = true,
	.init = kernel_init,
	.start = kernel_start,
	.uninit = kernel_uninit,
	.drain = kernel_drain,
	.detached_next = kernel_detached_next,
	.job_new = kernel_job_new,
	.job_set = kernel_job_set,
	.job_del = kernel_job_del,
	.worker_set = kernel_worker_set,
	.worker_del = kernel_worker_del,
	.worker_late = kernel_worker_late,
	.limits_set = kernel_limits_set,
};
