// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Owner of the job core: carries its changes to the data path, to those who
 * subscribed and to the workers, and keeps what the agent knows of a worker
 * beyond what the core does.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/control/encode.h"

static void *jobs_alloc(void *ctx, unsigned long size)
{
	return calloc(1, size);
}

static void jobs_release(void *ctx, void *p)
{
	free(p);
}

static int jobs_publish(void *ctx, const struct saina_job *job, int gone,
			struct saina_core_err *err)
{
	struct saina_job_conf conf;
	struct agent *a = ctx;
	int ret;

	if (!gone && !a->jobs.aux[job->id]) {
		a->jobs.aux[job->id] = calloc(1, sizeof(*a->jobs.aux[0]));
		if (!a->jobs.aux[job->id])
			return saina_refuse(err, -ENOMEM, 0, "job %s: out of memory", job->name);
	}
	if (gone) {
		ret = saina_dp_job_remove(a->dp, job->id);
	} else {
		saina_core_snapshot(job, &conf);
		ret = saina_dp_job_publish(a->dp, &conf, job->first_round);
	}
	if (ret)
		return saina_refuse(err, ret, 0, "job %s: %s", job->name, saina_dp_error(a->dp));
	return 0;
}

static void jobs_notify(void *ctx, int cmd, const struct saina_job *job, int worker)
{
	struct agent *a = ctx;
	struct msg m;

	a->jobs.changed = a->jobs.unsaved = true;
	if (cmd == SAINA_CMD_JOB_NTF && a->jobs.aux[job->id])
		a->jobs.aux[job->id]->status_due = true;
	if (cmd == SAINA_CMD_JOB_DEL_NTF) {
		admit_job_gone(a, job);
		free(a->jobs.aux[job->id]);
		a->jobs.aux[job->id] = NULL;
	}
	if (!(a->ctl.groups & SAINA_GROUPS_CONFIG))
		return;
	msg_start(&m, cmd, 0, 0);
	if (!job)
		encode_limits(&m, a);
	else if (worker >= 0)
		encode_worker(&m, a, job, worker);
	else
		encode_job(&m, a, job, false);
	ctlserver_notify(a, SAINA_GROUPS_CONFIG, m.nlh);
}

static const char *state_name(uint64_t state)
{
	static const char *const name[] = { "none", "forming", "running", "stopped" };

	return state < 4 ? name[state] : "?";
}

/* Deaths and departures are logged by jobs_worker_end(), which knows why. */
static void jobs_event(void *ctx, const struct saina_event *core_ev)
{
	struct agent *a = ctx;
	struct saina_event ev = *core_ev;
	const struct saina_job *job = saina_core_job_find(a->jobs.core, 1, ev.job, NULL, NULL);

	if (ev.type == SAINA_EV_JOB_STATE && a->plane.moving)
		log_debug("job %u goes to the other control plane", ev.job);
	else if (ev.type == SAINA_EV_JOB_STATE && ev.b && job)
		log_info("job %s is %s (was %s)", job->name, state_name(ev.b), state_name(ev.a));
	else if (ev.type == SAINA_EV_JOB_STATE)
		log_info("job %u is deleted", ev.job);
	/* somebody else may have admitted it, or it was before this agent */
	if (ev.type == SAINA_EV_WORKER_JOINED && job && a->plane.kernel)
		health_heard(a, job, ev.worker);
	events_control(a, &ev, NULL);
}

static const struct saina_core_ops jobs_ops = {
	.alloc = jobs_alloc,
	.free = jobs_release,
	.publish = jobs_publish,
	.notify = jobs_notify,
	.event = jobs_event,
};

int jobs_init(struct agent *a)
{
	struct saina_core_err err;
	struct saina_limits check;
	int ret;

	a->jobs.core = saina_core_new(&jobs_ops, a, NULL);
	if (!a->jobs.core)
		return -ENOMEM;
	check = a->cfg.limits;
	ret = saina_core_limits_set(a->jobs.core, &check, &err);
	if (ret) {
		log_error("%s:%d: limits: %s", a->cfg.file, a->cfg.limits_line, err.text);
		saina_core_free(a->jobs.core);
		a->jobs.core = NULL;
	}
	return ret;
}

void jobs_uninit(struct agent *a)
{
	int i;

	saina_core_free(a->jobs.core);
	a->jobs.core = NULL;
	for (i = 0; i < SAINA_JOBS_MAX; i++) {
		free(a->jobs.aux[i]);
		a->jobs.aux[i] = NULL;
	}
}

/* Jobs of the file that are there already (taken over) stay as they are. */
int jobs_configure(struct agent *a)
{
	char policy[SAINA_POLICY_TEXT_LEN];
	struct saina_core_err err;
	const struct saina_job *job;
	int i, ret;

	for (i = 0; i < a->cfg.n_jobs; i++) {
		const struct config_job *j = &a->cfg.jobs[i];

		if (saina_core_job_find(a->jobs.core, 0, 0, j->req.name, NULL)) {
			log_info("job %s was taken over and stays as it is", j->req.name);
			continue;
		}
		ret = plane_job_new(a, &j->req, &job, &err);
		if (ret) {
			log_error("%s:%d: %s", a->cfg.file, j->line, err.text);
			return ret;
		}
		saina_policy_format(&job->policy, policy, sizeof(policy));
		log_info("job %s is number %u: %llu elements, %u workers, %s", job->name, job->id,
			 (unsigned long long)job->elements, job->workers, policy);
	}
	return 0;
}

static int check_publish(void *ctx, const struct saina_job *job, int gone,
			 struct saina_core_err *err)
{
	return 0;
}

int jobs_check(const struct config *cfg, char *text, size_t size)
{
	static const struct saina_core_ops ops = {
		.alloc = jobs_alloc,
		.free = jobs_release,
		.publish = check_publish,
	};
	struct saina_core_err err = { 0 };
	struct saina_core *core;
	int i, ret;

	core = saina_core_new(&ops, NULL, NULL);
	if (!core)
		return -ENOMEM;
	ret = saina_core_limits_set(core, &cfg->limits, &err);
	if (ret)
		snprintf(text, size, "%s:%d: limits: %s", cfg->file, cfg->limits_line, err.text);
	for (i = 0; !ret && i < cfg->n_jobs; i++) {
		ret = saina_core_job_new(core, &cfg->jobs[i].req, NULL, &err);
		if (ret)
			snprintf(text, size, "%s:%d: %s", cfg->file, cfg->jobs[i].line, err.text);
	}
	saina_core_free(core);
	return ret;
}

struct worker_aux *jobs_worker(struct agent *a, const struct saina_job *job, int w)
{
	return &a->jobs.aux[job->id]->worker[w];
}

bool jobs_alive(const struct saina_job *job, int w)
{
	return job->active & 1ull << w;
}

uint32_t jobs_next_round(struct agent *a, const struct saina_job *job)
{
	struct saina_job_rt rt;

	if (saina_dp_job_rt(a->dp, job->id, &rt) || rt.generation != job->generation)
		return job->first_round;
	return rt.next_round;
}

int jobs_worker_end(struct agent *a, const struct saina_job *job, int w, int state, const char *why)
{
	struct saina_worker_req req = {
		.has = 1ull << SAINA_A_WORKER_JOB_ID | 1ull << SAINA_A_WORKER_ID |
		       1ull << SAINA_A_WORKER_STATE,
		.job_id = job->id,
		.id = w,
		.state = state,
	};
	struct saina_core_err err;
	int ret;

	if (state == SAINA_WORKER_STATE_DEAD)
		log_warn("job %s: worker %d (%s) is dead: %s", job->name, w, job->worker[w].name,
			 why);
	else
		log_info("job %s: worker %d (%s) %s", job->name, w, job->worker[w].name, why);
	ret = plane_worker_set(a, &req, NULL, &err);
	if (ret)
		log_error("job %s: worker %d: %s", job->name, w, err.text);
	return ret;
}
