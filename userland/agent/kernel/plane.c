// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "core/refuse.h"

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

/* -ENOENT and the like: there is none; *@error says so. */
static int module_there(const char **error)
{
	struct saina_ctl *ctl;
	int ret = saina_ctl_open(&ctl, "kernel", error);

	saina_ctl_close(ctl);
	return ret;
}

bool plane_wanted(const struct config *cfg)
{
	const char *error;

	return cfg->plane == PLANE_KERNEL || (cfg->plane == PLANE_AUTO && !module_there(&error));
}

int plane_init(struct agent *a)
{
	struct plane *p = &a->plane;
	const char *error;
	int ret;

	p->notes.fd = p->family.fd = p->live.fd = -1;
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

/*
 * Numbers of generations mean something only to the plane that gave them, so
 * whose they are is kept beside the state: a file for the kernel's.
 */
static void mark_plane(struct agent *a)
{
	char path[CONFIG_PATH_MAX + 16];
	int fd;

	runtime_path(a, "kernel", path, sizeof(path));
	if (!a->plane.kernel) {
		unlink(path);
		return;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		log_warn("%s: %s: a later start could not take over", path, strerror(errno));
	else
		close(fd);
}

static void forget_other_plane(struct agent *a)
{
	char path[CONFIG_PATH_MAX + 16];
	int id;

	a->plane.moved = a->plane.kernel &&
			 access(runtime_path(a, "kernel", path, sizeof(path)), F_OK);
	if (a->plane.moved && saina_dp_taken_over(a->dp)) {
		log_warn("the data path found was under the agent's control, now it is under the kernel's: its workers have to join again");
		for (id = 0; id < SAINA_JOBS_MAX; id++)
			saina_dp_job_remove(a->dp, id);
	}
	mark_plane(a);
}

/* Limits of the configuration count in the kernel, too; those that it does not
 * name are left as they are there. */
static int give_limits(struct agent *a)
{
	const __u64 has = a->cfg.limits_has;
	struct saina_limits limits;
	struct saina_core_err err;
	int ret;

	if (!has)
		return 0;
	ret = kernel_limits_read(&a->plane.session, &limits);
	if (ret)
		return ret;
	if (has & 1ull << SAINA_A_LIMITS_JOBS)
		limits.jobs = a->cfg.limits.jobs;
	if (has & 1ull << SAINA_A_LIMITS_MEMORY_JOB)
		limits.memory_job = a->cfg.limits.memory_job;
	if (has & 1ull << SAINA_A_LIMITS_MEMORY)
		limits.memory = a->cfg.limits.memory;
	ret = kernel_limits_ask(&a->plane.session, &limits, &err);
	if (ret)
		log_error("%s:%d: limits: %s", a->cfg.file, a->cfg.limits_line, err.text);
	return ret;
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
		ret = give_limits(a);
	if (!ret)
		ret = mirror_all(a);
	if (ret)
		return ret;
	log_info("control plane: saina.ko in the kernel");
	if (!saina_dp_taken_over(a->dp))
		bury_all(a, SAINA_WORKER_STATE_DEAD, "its rounds went with the data path");
	return 0;
}

void plane_dismiss(struct agent *a)
{
	if (a->plane.kernel && !a->plane.down)
		bury_all(a, SAINA_WORKER_STATE_LEFT, "is let go: the agent stops");
}

void plane_uninit(struct agent *a)
{
	disconnect(a);
	family_uninit(a);
	mirror_forget_stuck(a);
}


/* The module comes and goes */

static bool anybody_alive(struct agent *a)
{
	const struct saina_job *job;
	int id;

	for (id = 0; (job = saina_core_job_next(a->jobs.core, id)); id = job->id + 1)
		if (job->active)
			return true;
	return false;
}

int plane_give(struct agent *a, const struct saina_job *job)
{
	struct saina_job_req req = {
		.has = 1ull << SAINA_A_JOB_ID | 1ull << SAINA_A_JOB_NAME |
		       1ull << SAINA_A_JOB_ELEMENTS | 1ull << SAINA_A_JOB_WORKERS |
		       1ull << SAINA_A_JOB_PAYLOAD | 1ull << SAINA_A_JOB_POOL |
		       1ull << SAINA_A_JOB_RING | 1ull << SAINA_A_JOB_ELEM_TYPE |
		       1ull << SAINA_A_JOB_EXPONENT | 1ull << SAINA_A_JOB_POLICY |
		       1ull << SAINA_A_JOB_HEARTBEAT_MS | 1ull << SAINA_A_JOB_DEAD_MS,
		.id = job->id,
		.workers = job->workers,
		.elem = job->elem,
		.exponent = job->exponent,
		.payload = job->payload,
		.heartbeat_ms = job->heartbeat_ms,
		.dead_ms = job->dead_ms,
		.pool = job->pool,
		.ring = job->ring,
		.policy = job->policy,
		.elements = job->elements,
	};
	struct saina_core_err err;
	unsigned int id;
	int ret;

	memcpy(req.name, job->name, sizeof(req.name));
	memcpy(req.token, job->token, sizeof(req.token));
	if (job->token[0])
		req.has |= 1ull << SAINA_A_JOB_TOKEN;
	ret = kernel_job_ask(&a->plane.session, SAINA_CMD_JOB_NEW, &req, &id, &err);
	if (!ret && job->state == SAINA_JOB_STOPPED) {
		req.has = 1ull << SAINA_A_JOB_ID | 1ull << SAINA_A_JOB_STATE;
		req.state = SAINA_JOB_STOPPED;
		ret = kernel_job_ask(&a->plane.session, SAINA_CMD_JOB_SET, &req, NULL, &err);
	}
	if (ret)
		log_warn("job %s of this agent does not get into the kernel: %s", job->name,
			 err.text);
	return ret;
}

/* The agent's jobs become the kernel's; nobody is in them. */
static void give_all(struct agent *a)
{
	const struct saina_job *job;
	int id, n = 0;

	for (id = 0; (job = saina_core_job_next(a->jobs.core, id)); id = job->id + 1)
		n += !plane_give(a, job);
	/* their rounds begin anew: the kernel counts generations by itself */
	a->plane.moving = true;
	mirror_empty(a);
	a->plane.moving = false;
	log_warn("control plane: saina.ko in the kernel, as of now; %d jobs were handed to it", n);
}

/* The program on the ports comes first: it is what can fail. */
static int take_up(struct agent *a)
{
	struct plane *p = &a->plane;
	int ret;

	ret = kernel_open(&p->session);
	if (ret)
		return ret;
	ret = saina_dp_variant(a->dp, true);
	if (ret) {
		log_error("saina.ko was loaded, but it cannot be used: %s", saina_dp_error(a->dp));
		goto err_session;
	}
	ret = listen_kernel(a);
	if (ret)
		goto err_variant;
	ret = give_limits(a);
	if (ret)
		goto err_variant;
	give_all(a);
	p->kernel = true;
	p->down = false;
	mirror_all(a);
	/* of an agent before us that died */
	bury_all(a, SAINA_WORKER_STATE_DEAD, "its rounds went with the data path");
	return 0;

err_variant:
	saina_dp_variant(a->dp, p->kernel);
err_session:
	disconnect(a);
	return ret;
}

void plane_module_came(struct agent *a)
{
	struct plane *p = &a->plane;

	if (p->kernel && !p->down)
		return;
	if (a->cfg.plane == PLANE_AGENT) {
		log_info("saina.ko was loaded; this sainad does not use it (control_plane = \"agent\"): use saina -s %s",
			 a->cfg.control);
		return;
	}
	if (!p->kernel && anybody_alive(a)) {
		log_warn("saina.ko was loaded, but workers train under this sainad, which stays their control plane: restart it when they are done; until then use saina -s %s",
			 a->cfg.control);
		return;
	}
	if (take_up(a))
		return;
	mark_plane(a);
	state_save(a);
	ports_retry(a);
}

/* No port is attached then, so nobody is alive: the mirror is all there is. */
static void take_back(struct agent *a)
{
	const struct plane_stuck *stuck;
	const struct saina_job *job;
	unsigned int from;
	int id, n = 0;

	for (from = 0; (stuck = plane_stuck_next(a, from)); from = stuck->job.id + 1)
		log_warn("job %s went with saina.ko: it had no data path", stuck->job.name);
	for (id = 0; (job = saina_core_job_next(a->jobs.core, id)); id = job->id + 1)
		n++;
	a->plane.kernel = false;
	mirror_forget_stuck(a);
	saina_dp_variant(a->dp, false);
	mark_plane(a);
	state_save(a);
	log_warn("saina.ko is gone; control plane: this agent, as of now, with its %d jobs", n);
	ports_retry(a);
}

void plane_module_gone(struct agent *a)
{
	struct plane *p = &a->plane;

	if (!p->kernel) {
		log_info("saina.ko is gone again; this agent stays the control plane");
		return;
	}
	if (p->down)
		return;
	disconnect(a);
	if (a->cfg.plane == PLANE_AUTO) {
		take_back(a);
		return;
	}
	p->down = true;
	log_error("saina.ko is gone: jobs stand still until it is loaded again, then they are handed to it (control_plane = \"kernel\")");
}

void plane_module_unsure(struct agent *a)
{
	struct plane *p = &a->plane;
	struct saina_limits limits;
	const char *error;
	bool there = !module_there(&error);

	if (p->kernel && !p->down && (!there || kernel_limits_read(&p->session, &limits)))
		plane_module_gone(a);
	if (there)
		plane_module_came(a);
}
