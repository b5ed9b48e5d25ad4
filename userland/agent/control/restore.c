// SPDX-License-Identifier: GPL-2.0-or-later
/* Taking over from an earlier agent: the state file and its jobs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "core/adopt.h"
#include "agent/control/control.h"
#include "agent/control/state.h"
#include "core/show.h"

#define STATE_MAX (64l << 20)

/* Return: content of the file, followed by 8 bytes of 0; or NULL and errno. */
static char *read_file(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), error;
	struct stat st;
	char *buf = NULL;

	if (fd < 0)
		return NULL;
	errno = EFBIG;
	if (!fstat(fd, &st) && st.st_size <= STATE_MAX)
		buf = malloc(st.st_size + 8);
	if (buf && read(fd, buf, st.st_size) != st.st_size) {
		free(buf);
		buf = NULL;
		errno = EIO;
	}
	error = errno;
	close(fd);
	errno = error;
	if (buf) {
		memset(buf + st.st_size, 0, 8);
		*len = st.st_size;
	}
	return buf;
}

struct saved *state_load(struct agent *a)
{
	char path[CONFIG_PATH_MAX + 16], backup[CONFIG_PATH_MAX + 32], *buf;
	struct saved *s = NULL;
	size_t len = 0;
	int ret;

	buf = read_file(runtime_path(&a->runtime, "state", path, sizeof(path)), &len);
	if (!buf && errno == ENOENT)
		return NULL;
	ret = buf ? -ENOMEM : -errno;
	if (buf)
		s = calloc(1, sizeof(*s));
	if (s)
		ret = state_parse(s, buf, len);
	free(buf);
	if (!ret)
		return s;
	snprintf(backup, sizeof(backup), "%s.unreadable", path);
	log_error(
		"state: %s: %s: starting with the %d jobs that could be read; the file is kept as %s",
		path, ret == -EBADMSG ? "it is damaged, or of another version" : strerror(-ret),
		s ? s->n : 0, backup);
	if (rename(path, backup))
		log_error("state: cannot rename %s to %s: %s", path, backup,
			  strerror(errno));
	return s;
}

void state_free(struct saved *s)
{
	if (s)
		free(s->job);
	free(s);
}

static bool has_live_worker(const struct saina_job *job)
{
	int w;

	for (w = 0; w < job->workers && w < SAINA_WORKERS_MAX; w++)
		if (job->worker[w].state == SAINA_WORKER_STATE_ALIVE ||
		    job->worker[w].state == SAINA_WORKER_STATE_SLOW)
			return true;
	return false;
}

bool state_has_running_local(const struct saved *s)
{
	int i;

	for (i = 0; s && s->backend != SAINA_BACKEND_KERNEL && i < s->n; i++)
		if (has_live_worker(&s->job[i].job))
			return true;
	return false;
}

bool state_of_other_backend(const struct agent *a, const struct saved *s)
{
	return s &&
	       (a->backend->ops->owner == SAINA_BACKEND_KERNEL) != (s->backend == SAINA_BACKEND_KERNEL);
}

/* Restores what the agent knows of workers.  Time without an agent does not count as silence. */
static int restore_workers(struct agent *a, const struct saved_job *from,
			   const struct saina_job *job)
{
	int w, alive = 0;

	for (w = 0; w < saina_job_places(job); w++) {
		const struct state_worker *sw = &from->worker[w];

		if (job->worker[w].state == SAINA_WORKER_STATE_ABSENT ||
		    job->worker[w].bind.session != from->job.worker[w].bind.session)
			continue;
		*jobs_worker(a, job, w) = (struct worker_aux){
			.nonce = sw->nonce,
			.first_round = sw->first_round,
			.formed = sw->formed,
			.ready = sw->ready,
			.fast = sw->fast,
			.xdp_works = !(job->worker[w].bind.flags & SAINA_BIND_RELAY),
			.last_heard = loop_now(),
			.restored = true,
			.shm_session = sw->shm_session,
			.incarnation = sw->incarnation,
		};
		alive += w < job->workers && jobs_alive(job, w);
	}
	return alive;
}

/* The kernel has kept the job: restores only what the kernel does not know. */
static int restore_mirrored(struct agent *a, const struct saved_job *from)
{
	const struct saina_job *job;
	struct saina_core_err err;
	struct saina_job copy;

	job = saina_core_job_find(a->jobs->core, 1, from->job.id, NULL, NULL);
	if (!job || strcmp(job->name, from->job.name) || job->generation != from->job.generation) {
		if (!saina_core_job_find(a->jobs->core, 0, 0, from->job.name, NULL))
			log_warn("job %s is known from before, but saina.ko does not have it: add it again, unless it was deleted on purpose",
				 from->job.name);
		return 0;
	}
	if (!saina_dp_taken_over(a->dp))
		return 0;
	copy = *job;
	copy.first_round = from->job.first_round;
	if (saina_core_job_adopt(a->jobs->core, &copy, &job, &err))
		log_error("job %s: %s", copy.name, err.text);
	return restore_workers(a, from, job);
}

static void log_dropped(const struct saina_job *job, unsigned int attr, const char *why)
{
	log_error("job %s: %s cannot be taken over: %s", job->name,
		  attr == SAINA_A_JOB_K_SET ? "the k that was set" : "the pending policy", why);
}

static int restore_own(struct agent *a, const struct saved_job *from)
{
	struct saina_job copy = from->job;
	const struct saina_job *job;
	struct saina_core_err err;

	while (saina_core_job_restore(a->jobs->core, &copy, &job, &err)) {
		if (!saina_job_leave_out(&copy, err.attr)) {
			log_error("job %s: cannot be taken over: %s", copy.name, err.text);
			return 0; /* go on with other jobs */
		}
		log_dropped(&copy, err.attr, err.text);
	}
	return restore_workers(a, from, job);
}

/* For a job that is added again: restores the pending policy, k if it was set, and whether it
 * had a controller, which may reconnect. */
static void readd_schedule(struct agent *a, const struct saina_job *old)
{
	struct saina_job_attrs next = { .has = 1ull << SAINA_A_JOB_ID, .id = old->id }, k = next;
	struct saina_core_err err;

	if (old->next.seq) {
		saina_policy_show(&old->next, &next.policy);
		SAINA_SET(&next, SAINA_A_JOB_POLICY);
		SAINA_PUT(&next, SAINA_A_JOB_POLICY_FROM, policy_from, old->next_from);
		if (old->next_on)
			SAINA_PUT(&next, SAINA_A_JOB_POLICY_ON, policy_on, old->next_on);
		if (backend_job_set(a, &next, &err))
			log_dropped(old, SAINA_A_JOB_POLICY_NEXT, err.text);
	}
	if (old->k_set)
		SAINA_PUT(&k, SAINA_A_JOB_K_SET, k_set, old->k_set);
	if (old->controlled && !a->backend->ops->keeps_jobs)
		SAINA_PUT(&k, SAINA_A_JOB_CONTROLLER, controller, 1);
	if (k.has != 1ull << SAINA_A_JOB_ID && backend_job_set(a, &k, &err))
		log_dropped(old, SAINA_A_JOB_K_SET, err.text);
}

/* The rounds are lost, or mean nothing to this backend: adds the job again as configured. */
static void readd_job(struct agent *a, const struct saina_job *old)
{
	struct saina_job_attrs req;
	struct saina_job_attrs stop = {
		.has = 1ull << SAINA_A_JOB_ID | 1ull << SAINA_A_JOB_STATE,
		.id = old->id,
		.state = SAINA_JOB_STOPPED,
	};
	struct saina_core_err err;
	const struct saina_job *job;
	int ret;

	saina_job_show(old, true, &req);
	req.has &= saina_ops[SAINA_CMD_JOB_NEW].do_takes;
	ret = backend_job_new(a, &req, &job, &err);
	if (!ret && old->state == SAINA_JOB_STOPPED)
		ret = backend_job_set(a, &stop, &err);
	if (ret)
		log_error("job %s: cannot be taken over: %s", old->name, err.text);
	else
		readd_schedule(a, old);
}

/* Jobs of the data path that are in no state, as an earlier start lost it. */
static void remove_unknown_jobs(struct agent *a)
{
	struct saina_job_conf conf;
	int id;

	for (id = 0; id < SAINA_JOBS_MAX; id++) {
		if (saina_core_job_find(a->jobs->core, 1, id, NULL, NULL) ||
		    saina_dp_job_get(a->dp, id, &conf))
			continue;
		log_warn("job %d is in the data path, but not in the control plane: removing it from the data path",
			 id);
		saina_dp_job_remove(a->dp, id);
	}
}

/* Must precede the jobs: which of their results are relayed depends on the hooks. */
static void restore_ports(struct agent *a, const struct saved *s)
{
	struct port *p;
	int i;

	for (i = 0; s && i < s->ports; i++) {
		p = ports_find(a, 0, s->port[i].ifname);
		if (p)
			p->hook_requested = s->port[i].hook;
	}
	ports_hooks_apply(a);
}

void state_restore(struct agent *a, const struct saved *s)
{
	bool rounds = saina_dp_taken_over(a->dp), other = state_of_other_backend(a, s);
	bool kept = a->backend->ops->keeps_jobs;
	struct saina_core_err err;
	int i, alive = 0;

	restore_ports(a, s);
	if (s && s->has_limits && !kept && saina_core_limits_set(a->jobs->core, &s->limits, &err))
		log_error("limits: cannot be taken over: %s", err.text);
	for (i = 0; s && i < s->n; i++) {
		const struct saved_job *v = &s->job[i];

		if (kept && !other) {
			alive += restore_mirrored(a, v);
			continue;
		}
		if (v->refused[0])
			log_dropped(&v->job, SAINA_A_JOB_POLICY_NEXT, v->refused);
		if (rounds && !other)
			alive += restore_own(a, v);
		else
			readd_job(a, &v->job);
	}
	if (s && s->n && other)
		log_warn("%d jobs are moved from %s to %s: their workers have to join again", s->n,
			 kept ? "this agent" : "saina.ko", kept ? "saina.ko" : "this agent");
	else if (s && s->n && !rounds)
		log_warn("%d jobs are known from before, but the data path is gone: their workers have to join again",
			 s->n);
	else if (s)
		log_info("took over %d jobs with %d live workers", s->n, alive);
	if (rounds)
		remove_unknown_jobs(a);
	shm_revoke_stale(a);
	liveness_replan(a);
	if (s && !kept)
		control_await_controllers(a);
}
