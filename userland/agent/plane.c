// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "jobcore_os.h"

static void mark(void *plane, unsigned int id)
{
	struct plane *p = plane;

	p->dirty[id / 64] |= 1ull << id % 64;
}

/* The mirror */

static void mirror_del(struct agent *a, unsigned int id)
{
	struct saina_job_req req = { .has = 1ull << SAINA_A_JOB_ID, .id = id };
	struct saina_core_err err;

	if (!saina_core_job_find(a->jobs.core, 1, id, NULL, NULL))
		return;
	if (saina_core_job_del(a->jobs.core, &req, &err))
		log_error("job %u: %s", id, err.text);
}

static bool same_shape(const struct saina_job *x, const struct saina_job *y)
{
	return !strcmp(x->name, y->name) && x->elements == y->elements &&
	       x->workers == y->workers && x->payload == y->payload && x->ring == y->ring &&
	       x->pool == y->pool;
}

/*
 * Job @id is read and put in the mirror.  @asked: the first round that the
 * change just made asked for.  @may_go: it may go, or be replaced by another
 * of that number; else that is left for plane_drain().
 */
static int mirror_job(struct agent *a, unsigned int id, uint32_t asked, bool may_go,
		      const struct saina_job **out, struct saina_core_err *err)
{
	const struct saina_job *have = saina_core_job_find(a->jobs.core, 1, id, NULL, NULL);
	struct saina_job job;
	int ret;

	ret = kernel_job_read(&a->plane.session, id, &job);
	if (ret == -ENOENT && may_go) {
		mirror_del(a, id);
		return 0;
	}
	if (ret)
		goto later;
	if (have && !same_shape(have, &job)) {
		ret = -EAGAIN;
		if (!may_go)
			goto later;
		mirror_del(a, id);
		have = NULL;
	}
	/* the kernel keeps the first round to itself; it comes from our JOINs */
	if (have && have->generation == job.generation)
		job.first_round = have->first_round;
	else if (have)
		job.first_round = asked > have->first_round ? asked : 0;
	ret = saina_core_job_adopt(a->jobs.core, &job, out, err);
	if (ret)
		log_error("job %s of the kernel: no data path for it: %s", job.name, err->text);
	return ret;

later:
	mark(&a->plane, id);
	return saina_refuse(err, ret, 0, "job %u is being changed by somebody else: try again", id);
}

static void there_cb(void *arg, unsigned int id)
{
	uint64_t *there = arg;

	there[id / 64] |= 1ull << id % 64;
}

/* Everything anew. */
static int mirror_all(struct agent *a)
{
	uint64_t there[SAINA_JOBS_MAX / 64] = { 0 };
	struct saina_limits limits;
	struct saina_core_err err;
	unsigned int id;
	int ret;

	ret = kernel_jobs(&a->plane.session, there_cb, there, &err);
	if (ret) {
		log_error("saina.ko: %s", err.text);
		return ret;
	}
	a->plane.resync = false;
	memset(a->plane.dirty, 0, sizeof(a->plane.dirty));
	/* first what went: its name may be another's now */
	for (id = 0; id < SAINA_JOBS_MAX; id++)
		if (!(there[id / 64] & 1ull << id % 64))
			mirror_del(a, id);
	for (id = 0; id < SAINA_JOBS_MAX; id++)
		if (there[id / 64] & 1ull << id % 64)
			mirror_job(a, id, 0, true, NULL, &err);
	if (!kernel_limits_read(&a->plane.session, &limits))
		saina_core_limits_set(a->jobs.core, &limits, NULL);
	return 0;
}

/* Notifications */

void plane_drain(struct agent *a)
{
	struct plane *p = &a->plane;
	uint64_t changed[SAINA_JOBS_MAX / 64];
	struct saina_core_err err;
	unsigned int id;
	int ret, pass;

	if (!p->kernel || p->down)
		return;
	do {
		ret = kernel_next(&p->session, mark, p);
		if (ret == -ENOBUFS)
			p->resync = true;
	} while (!ret || ret == -ENOBUFS);
	if (p->resync) {
		mirror_all(a);
		return;
	}
	memcpy(changed, p->dirty, sizeof(changed));
	memset(p->dirty, 0, sizeof(p->dirty));
	/* what went before what came: a name may have moved to another number */
	for (pass = 0; pass < 2; pass++)
		for (id = 0; id < SAINA_JOBS_MAX; id++) {
			if (!(changed[id / 64] & 1ull << id % 64))
				continue;
			if (pass)
				mirror_job(a, id, 0, true, NULL, &err);
			else if (kernel_job_there(&p->session, id) == -ENOENT)
				mirror_del(a, id);
		}
}

static void notes_ready(struct source *s, uint32_t events)
{
	plane_drain(s->arg);
}

static void disconnect(struct agent *a)
{
	struct plane *p = &a->plane;

	if (p->notes.fd >= 0)
		loop_del(&a->loop, &p->notes);
	p->notes.fd = -1;
	kernel_close(&p->session);
}

static int listen_kernel(struct agent *a)
{
	struct plane *p = &a->plane;
	int ret;

	p->notes = (struct source){ .ready = notes_ready, .arg = a };
	p->notes.fd = kernel_fd(&p->session);
	ret = loop_add(&a->loop, &p->notes, EPOLLIN);
	if (ret)
		p->notes.fd = -1;
	return ret;
}

/* The module comes and goes */

void plane_module_gone(struct agent *a)
{
	if (!a->plane.kernel || a->plane.down)
		return;
	log_error("saina.ko is gone, and the configuration with it: jobs stand still until it is loaded again");
	a->plane.down = true;
	disconnect(a);
}

void plane_module_came(struct agent *a)
{
	if (!a->plane.kernel) {
		log_warn("saina.ko was loaded, but this sainad is its own control plane: restart it to have the jobs in the kernel; until then use saina -s %s",
			 a->cfg.control);
		return;
	}
	if (!a->plane.down)
		return;
	if (kernel_open(&a->plane.session))
		return;
	if (listen_kernel(a)) {
		disconnect(a);
		return;
	}
	a->plane.down = false;
	if (!mirror_all(a))
		log_warn("saina.ko is back: its jobs are served again, those it does not have are gone");
}

/* -ENOENT and the like: there is none; *@error says so. */
static int module_there(const char **error)
{
	struct saina_ctl *ctl;
	int ret = saina_ctl_open(&ctl, "kernel", error);

	saina_ctl_close(ctl);
	return ret;
}

int plane_init(struct agent *a)
{
	struct plane *p = &a->plane;
	const char *error;
	int ret;

	p->notes.fd = p->family.fd = -1;
	family_init(a);
	if (a->cfg.plane == PLANE_AGENT)
		return 0;
	ret = module_there(&error);
	if (ret && a->cfg.plane == PLANE_AUTO)
		return 0;
	if (ret) {
		log_error("%s", error);
		goto err;
	}
	p->kernel = true;
	ret = kernel_open(&p->session);
	if (!ret)
		return 0;
err:
	plane_uninit(a);
	return ret;
}

/* Workers whose rounds are gone with the data path. */
static void bury_all(struct agent *a, int state, const char *why)
{
	const struct saina_job *job;
	int id, w;

	for (id = 0; (job = saina_core_job_next(a->jobs.core, id)); id = job->id + 1)
		for (w = 0; w < job->workers; w++)
			if (jobs_alive(job, w))
				jobs_worker_end(a, job, w, state, why);
}

/* Numbers of generations mean something only to the plane that gave them. */
static void forget_other_plane(struct agent *a)
{
	char path[CONFIG_PATH_MAX + 16];
	int id, fd;

	runtime_path(a, "kernel", path, sizeof(path));
	if (!a->plane.kernel) {
		unlink(path);
		return;
	}
	if (saina_dp_taken_over(a->dp) && access(path, F_OK)) {
		log_warn("the data path found was under the agent's control, now it is under the kernel's: its jobs end");
		for (id = 0; id < SAINA_JOBS_MAX; id++)
			saina_dp_job_remove(a->dp, id);
	}
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		log_warn("%s: %s: a later start could not take over", path, strerror(errno));
	else
		close(fd);
}

int plane_start(struct agent *a)
{
	int ret;

	forget_other_plane(a);
	if (!a->plane.kernel) {
		log_info("control plane: this agent (saina.ko is not %s)",
			 a->cfg.plane == PLANE_AGENT ? "to be used" : "loaded");
		return 0;
	}
	ret = listen_kernel(a);
	if (!ret)
		ret = mirror_all(a);
	if (ret)
		return ret;
	log_info("control plane: saina.ko in the kernel");
	if (!saina_dp_taken_over(a->dp))
		bury_all(a, SAINA_WORKER_DEAD, "its rounds went with the data path");
	return 0;
}

void plane_dismiss(struct agent *a)
{
	if (a->plane.kernel && !a->plane.down)
		bury_all(a, SAINA_WORKER_LEFT, "is let go: the agent stops");
}

void plane_uninit(struct agent *a)
{
	disconnect(a);
	family_uninit(a);
}

/* Changes */

/* The number of the job a request names, in the mirror; < 0 and refused. */
static int number_of(struct agent *a, int has_id, __u16 id, const char *name, struct saina_core_err *err)
{
	const struct saina_job *job;

	job = saina_core_job_find(a->jobs.core, has_id, id, name, err);
	return job ? job->id : -ENOENT;
}

int plane_job_new(struct agent *a, const struct saina_job_req *req, const struct saina_job **out,
		  struct saina_core_err *err)
{
	struct saina_job_req undo = { .has = 1ull << SAINA_A_JOB_ID };
	struct saina_core_err ignored;
	unsigned int id;
	int ret;

	if (!a->plane.kernel)
		return saina_core_job_new(a->jobs.core, req, out, err);
	ret = kernel_job_ask(&a->plane.session, SAINA_CMD_JOB_NEW, req, &id, err);
	if (ret)
		return ret;
	ret = mirror_job(a, id, 0, true, out, err);
	if (!ret && !saina_core_job_find(a->jobs.core, 1, id, NULL, err))
		ret = -ENOENT; /* somebody was quick */
	if (!ret)
		return 0;
	undo.id = id;
	kernel_job_ask(&a->plane.session, SAINA_CMD_JOB_DEL, &undo, NULL, &ignored);
	return ret;
}

int plane_job_set(struct agent *a, const struct saina_job_req *req, struct saina_core_err *err)
{
	struct saina_core_err ignored;
	int ret;

	if (!a->plane.kernel)
		return saina_core_job_set(a->jobs.core, req, NULL, err);
	ret = kernel_job_ask(&a->plane.session, SAINA_CMD_JOB_SET, req, NULL, err);
	if (ret)
		return ret;
	ret = number_of(a, SAINA_HAS(req, SAINA_A_JOB_ID) != 0, req->id, req->name, NULL);
	if (ret >= 0)
		mirror_job(a, ret, 0, false, NULL, &ignored);
	return 0;
}

int plane_job_del(struct agent *a, const struct saina_job_req *req, struct saina_core_err *err)
{
	int ret;

	if (!a->plane.kernel)
		return saina_core_job_del(a->jobs.core, req, err);
	ret = kernel_job_ask(&a->plane.session, SAINA_CMD_JOB_DEL, req, NULL, err);
	if (!ret)
		plane_drain(a);
	return ret;
}

static int worker_ask(struct agent *a, int cmd, const struct saina_worker_req *req,
		      const struct saina_job **out, struct saina_core_err *err)
{
	int ret;

	ret = kernel_worker_ask(&a->plane.session, cmd, req, err);
	if (ret)
		return ret;
	ret = number_of(a, SAINA_HAS(req, SAINA_A_WORKER_JOB_ID) != 0, req->job_id, req->job_name,
			err);
	if (ret < 0)
		return ret;
	return mirror_job(a, ret, req->round, false, out, err);
}

int plane_worker_set(struct agent *a, const struct saina_worker_req *req,
		     const struct saina_job **out, struct saina_core_err *err)
{
	struct saina_core_err ours;

	if (!a->plane.kernel)
		return saina_core_worker_set(a->jobs.core, req, out, err);
	return worker_ask(a, SAINA_CMD_WORKER_SET, req, out, err ? err : &ours);
}

int plane_worker_del(struct agent *a, const struct saina_worker_req *req,
		     struct saina_core_err *err)
{
	if (!a->plane.kernel)
		return saina_core_worker_del(a->jobs.core, req, err);
	return worker_ask(a, SAINA_CMD_WORKER_DEL, req, NULL, err);
}

int plane_limits_set(struct agent *a, const struct saina_limits *limits,
		     struct saina_core_err *err)
{
	int ret;

	if (a->plane.kernel) {
		ret = kernel_limits_ask(&a->plane.session, limits, err);
		if (ret)
			return ret;
	}
	return saina_core_limits_set(a->jobs.core, limits, err);
}
