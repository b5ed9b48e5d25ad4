// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina.ko owns the jobs; the core of this process is a mirror.  Each change is requested from
 * the kernel, then read back; changes of other clients arrive as notifications.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/backend/backend.h"
#include "core/refuse.h"
#include "ctl/payload.h"

static void mark_dirty(void *backend, unsigned int id)
{
	struct backend *p = backend;

	p->dirty[id / 64] |= 1ull << id % 64;
}

static void mark_limits_dirty(void *backend)
{
	struct backend *p = backend;

	p->limits_dirty = true;
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
	free(a->backend->detached[id]);
	a->backend->detached[id] = NULL;
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
	a->backend->detached[job->id] = s;
	if (job->state != SAINA_JOB_STOPPED &&
	    kernel_client_job_request(&a->backend->client, SAINA_CMD_JOB_SET, &req, NULL, &err))
		log_error("job %s: %s", job->name, err.text);
	jobs_event(a, &ev, s->text);
}

const struct detached_job *backend_detached_next(struct agent *a, unsigned int from)
{
	while (from < SAINA_JOBS_MAX && !a->backend->detached[from])
		from++;
	return from < SAINA_JOBS_MAX ? a->backend->detached[from] : NULL;
}

static bool same_shape(const struct saina_job *x, const struct saina_job *y)
{
	return !strcmp(x->name, y->name) && x->elements_auto == y->elements_auto &&
	       (x->elements_auto || x->elements == y->elements) &&
	       x->workers == y->workers && x->payload == y->payload && x->ring == y->ring &&
	       x->pool == y->pool && x->elem == y->elem && x->exponent == y->exponent;
}

enum mirror_mode {
	KEEP, /* no job may go: if it is deleted or replaced, leave that to backend_drain() */
	NEW, /* just requested: the caller deletes it if it gets no data path */
	FOLLOW, /* changed by others: it may be deleted, replaced or detached */
};

/* Reads job @id and updates the mirror. */
static int mirror_job(struct agent *a, unsigned int id, enum mirror_mode mode,
		      const struct saina_job **out, struct saina_core_err *err)
{
	const struct saina_job *have = saina_core_job_find(a->jobs->core, 1, id, NULL, NULL);
	struct detached_job *detached = a->backend->detached[id];
	struct saina_job job;
	int ret;

	ret = kernel_client_job_read(&a->backend->client, id, &job);
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
		mark_dirty(a->backend, id);
	if (mode == FOLLOW) {
		mirror_del(a, id);
		detached_stop(a, &job, err->text);
	}
	return ret;

later:
	mark_dirty(a->backend, id);
	return saina_refuse(err, ret, 0, "job %u is being changed by somebody else: try again", id);
}

/* Limits that this agent has set are equal already and not notified again. */
static void mirror_limits(struct agent *a)
{
	struct saina_limits limits, ours;

	a->backend->limits_dirty = false;
	if (kernel_client_limits_read(&a->backend->client, &limits))
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

int mirror_all(struct agent *a)
{
	uint64_t present[SAINA_JOBS_MAX / 64] = { 0 };
	struct saina_core_err err;
	unsigned int id;
	int ret;

	ret = kernel_client_each_job(&a->backend->client, mark_present, present, &err);
	if (ret) {
		log_error("saina.ko: %s", err.text);
		return ret;
	}
	a->backend->resync = false;
	memset(a->backend->dirty, 0, sizeof(a->backend->dirty));
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

void mirror_uninit(struct agent *a)
{
	unsigned int id;

	for (id = 0; id < SAINA_JOBS_MAX; id++)
		detached_free(a, id);
}

/* Notifications */

void backend_drain(struct agent *a)
{
	struct backend *p = a->backend;
	uint64_t changed[SAINA_JOBS_MAX / 64];
	struct saina_core_err err;
	unsigned int id;
	int ret, pass;

	if (!p->kernel)
		return;
	do {
		ret = kernel_client_receive(&p->client, mark_dirty, mark_limits_dirty, p);
		if (ret == -ENOBUFS)
			p->resync = true;
	} while (!ret || ret == -ENOBUFS);
	if (p->resync) {
		mirror_all(a);
		return;
	}
	if (p->limits_dirty)
		mirror_limits(a);
	memcpy(changed, p->dirty, sizeof(changed));
	memset(p->dirty, 0, sizeof(p->dirty));
	/* deletions first: a name may be reused by a new id */
	for (pass = 0; pass < 2; pass++)
		for (id = 0; id < SAINA_JOBS_MAX; id++) {
			if (!(changed[id / 64] & 1ull << id % 64))
				continue;
			if (pass)
				mirror_job(a, id, FOLLOW, NULL, &err);
			else if (kernel_client_job_exists(&p->client, id) == -ENOENT)
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

int backend_job_new(struct agent *a, const struct saina_job_attrs *asked,
		    const struct saina_job **out, struct saina_core_err *err)
{
	struct saina_job_attrs filled = *asked, *req = &filled;
	struct saina_job_attrs undo = { .has = 1ull << SAINA_A_JOB_ID };
	struct saina_core_err unused_err;
	unsigned int id;
	int ret;

	saina_payload_choose(req, a->mtu, a->jumbo);
	if (!a->backend->kernel)
		return saina_core_job_new(a->jobs->core, req, out, err);
	ret = kernel_client_job_request(&a->backend->client, SAINA_CMD_JOB_NEW, req, &id, err);
	if (ret)
		return ret;
	ret = mirror_job(a, id, NEW, out, err);
	if (!ret && !saina_core_job_find(a->jobs->core, 1, id, NULL, err))
		ret = -ENOENT; /* another client has deleted it already */
	if (!ret)
		return 0;
	undo.id = id;
	kernel_client_job_request(&a->backend->client, SAINA_CMD_JOB_DEL, &undo, NULL, &unused_err);
	return ret;
}

int backend_job_set(struct agent *a, const struct saina_job_attrs *req, struct saina_core_err *err)
{
	struct saina_core_err unused_err;
	int ret;

	if (!a->backend->kernel)
		return saina_core_job_set(a->jobs->core, req, NULL, err);
	ret = kernel_client_job_request(&a->backend->client, SAINA_CMD_JOB_SET, req, NULL, err);
	if (ret)
		return ret;
	ret = job_number(a, SAINA_HAS(req, SAINA_A_JOB_ID) != 0, req->id, req->name, NULL);
	if (ret >= 0)
		mirror_job(a, ret, KEEP, NULL, &unused_err);
	return 0;
}

int backend_job_del(struct agent *a, const struct saina_job_attrs *req, struct saina_core_err *err)
{
	int ret;

	if (!a->backend->kernel)
		return saina_core_job_del(a->jobs->core, req, err);
	ret = kernel_client_job_request(&a->backend->client, SAINA_CMD_JOB_DEL, req, NULL, err);
	if (!ret)
		backend_drain(a);
	return ret;
}

static int worker_request(struct agent *a, int cmd, const struct saina_worker_attrs *req,
			  const struct saina_job **out, struct saina_core_err *err)
{
	int ret;

	ret = kernel_client_worker_request(&a->backend->client, cmd, req, err);
	if (ret)
		return ret;
	ret = job_number(a, SAINA_HAS(req, SAINA_A_WORKER_JOB_ID) != 0, req->job_id, req->job_name,
			 err);
	if (ret < 0)
		return ret;
	return mirror_job(a, ret, KEEP, out, err);
}

int backend_worker_set(struct agent *a, const struct saina_worker_attrs *req,
		       const struct saina_job **out, struct saina_core_err *err)
{
	struct saina_core_err ours;

	if (!a->backend->kernel)
		return saina_core_worker_set(a->jobs->core, req, out, err);
	return worker_request(a, SAINA_CMD_WORKER_SET, req, out, err ? err : &ours);
}

int backend_worker_del(struct agent *a, const struct saina_worker_attrs *req,
		       struct saina_core_err *err)
{
	if (!a->backend->kernel)
		return saina_core_worker_del(a->jobs->core, req, err);
	return worker_request(a, SAINA_CMD_WORKER_DEL, req, NULL, err);
}

void backend_worker_late(struct agent *a, const struct saina_job *job, int w, uint64_t late)
{
	const struct saina_worker_attrs req = {
		.has = 1ull << SAINA_A_WORKER_JOB_ID | 1ull << SAINA_A_WORKER_ID |
		       1ull << SAINA_A_WORKER_LATE,
		.job_id = job->id,
		.id = w,
		.late = late,
	};

	/* information only: errors are ignored */
	if (a->backend->kernel)
		kernel_client_worker_request(&a->backend->client, SAINA_CMD_WORKER_SET, &req, NULL);
}

int backend_limits_set(struct agent *a, const struct saina_limits *limits,
		       struct saina_core_err *err)
{
	int ret;

	if (a->backend->kernel) {
		ret = kernel_client_limits_set(&a->backend->client, limits, err);
		if (ret)
			return ret;
	}
	return saina_core_limits_set(a->jobs->core, limits, err);
}
