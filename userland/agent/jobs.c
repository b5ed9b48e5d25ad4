// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/jobs.h"
#include "core/err.h"

#define TOUCH_NS      (2 * NSEC_PER_MSEC)
#define TOUCH_ENTRIES 64
#define RETRY_MS      1000

static void *jobs_alloc(void *ctx, unsigned long size)
{
	return calloc(1, size);
}

static void jobs_release(void *ctx, void *p)
{
	free(p);
}

/* A part at a time, so that the agent is not away for long. */
static void touch_ready(struct source *s, uint32_t events)
{
	struct agent *a = s->arg;
	uint64_t end = loop_now() + TOUCH_NS;
	bool more;

	loop_timer_ack(s);
	do
		more = saina_dp_touch(a->dp, TOUCH_ENTRIES);
	while (more && loop_now() < end);
	if (!more) {
		loop_timer_set(s, 0, 0);
		log_debug("the memory of all jobs has been read: first rounds need not wait for it");
	}
}

static int jobs_publish(void *ctx, const struct saina_job *job, int gone,
			struct saina_core_err *err)
{
	struct saina_job_conf conf;
	struct agent *a = ctx;
	int ret;

	if (!gone && !a->jobs->aux[job->id]) {
		a->jobs->aux[job->id] = calloc(1, sizeof(*a->jobs->aux[0]));
		if (!a->jobs->aux[job->id])
			return saina_refuse(err, -ENOMEM, 0, "job %s: out of memory", job->name);
	}
	if (!gone && job->uplink.address == a->addr.s_addr)
		return saina_refuse(err, -ELOOP, SAINA_A_JOB_UPLINK,
				    "uplink: the address is this agent's own: the parent of job %s is on "
				    "another host",
				    job->name);
	if (!job->segments) {
		ret = 0; /* the first worker sets its size; its maps are made then */
	} else if (gone) {
		ret = saina_dp_job_remove(a->dp, job->id);
	} else {
		saina_core_snapshot(job, &conf);
		ret = saina_dp_job_publish(a->dp, &conf, job->first_round);
		if (!ret && saina_dp_touch(a->dp, 0))
			loop_timer_set(&a->jobs->touch, 1, 1);
	}
	if (ret)
		return saina_refuse(err, ret, 0, "job %s: %s", job->name, saina_dp_error(a->dp));
	return 0;
}

static void jobs_notify(void *ctx, int cmd, const struct saina_job *job, int worker)
{
	struct agent *a = ctx;

	a->jobs->changed = a->jobs->unsaved = true;
	a->jobs->ops->changed(a, cmd, job, worker);
	if (cmd == SAINA_CMD_JOB_DEL_NTF) {
		free(a->jobs->aux[job->id]);
		a->jobs->aux[job->id] = NULL;
	}
}

void jobs_event(struct agent *a, struct saina_event *ev, const char *text)
{
	struct saina_job_rt rt;

	ev->time = loop_now();
	if (saina_core_job_find(a->jobs->core, 1, ev->job, NULL, NULL) &&
	    !saina_dp_job_rt(a->dp, ev->job, &rt)) {
		ev->round = rt.next_round;
		ev->k = rt.k;
	}
	a->jobs->ops->event(a, ev, text);
}

/* Workers' deaths and departures are logged by the caller, which knows the reason. */
static void core_event(void *ctx, const struct saina_event *core_ev)
{
	struct agent *a = ctx;
	struct saina_event ev = *core_ev;
	const struct saina_job *job = saina_core_job_find(a->jobs->core, 1, ev.job, NULL, NULL);

	if (ev.type == SAINA_EV_JOB_STATE && ev.b && job)
		log_info("job %s is %s (was %s)", job->name, SAINA_ENUM_NAME(saina_job_state_names, ev.b),
			 SAINA_ENUM_NAME(saina_job_state_names, ev.a));
	else if (ev.type == SAINA_EV_JOB_STATE)
		log_info("job %u is deleted", ev.job);
	jobs_event(a, &ev, NULL);
}

void jobs_commit(struct agent *a)
{
	char why[SAINA_TEXT_LEN] = "";
	bool was;

	if (!a->jobs->unsaved)
		return;
	was = a->jobs->unsaved_why[0];
	if (a->jobs->ops->save(a, why, sizeof(why))) {
		if (strcmp(why, a->jobs->unsaved_why))
			log_error("state: %s; it is tried again every second", why);
		snprintf(a->jobs->unsaved_why, sizeof(a->jobs->unsaved_why), "%s", why);
		loop_timer_set(&a->jobs->retry, RETRY_MS, 0);
		return;
	}
	a->jobs->unsaved = false;
	a->jobs->unsaved_why[0] = 0;
	if (was)
		log_info("state: saved, with all changes");
}

static void retry_ready(struct source *s, uint32_t events)
{
	loop_timer_ack(s);
	jobs_commit(s->arg);
}

bool jobs_rt(struct agent *a, const struct saina_job *job, struct saina_job_rt *rt)
{
	return !saina_dp_job_rt(a->dp, job->id, rt) && rt->generation == job->generation;
}

static __u32 jobs_policy_seq(void *ctx, const struct saina_job *job)
{
	struct agent *a = ctx;
	struct saina_job_rt rt;

	if (!jobs_rt(a, job, &rt))
		return 0;
	return rt.policy.seq;
}

static const struct saina_core_ops core_ops = {
	.alloc = jobs_alloc,
	.free = jobs_release,
	.publish = jobs_publish,
	.notify = jobs_notify,
	.event = core_event,
	.policy_seq = jobs_policy_seq,
};

int jobs_init(struct agent *a, const struct jobs_ops *ops)
{
	struct saina_core_err err;
	struct saina_limits check;
	int ret;

	a->jobs->ops = ops;
	a->jobs->core = saina_core_new(&core_ops, a, NULL);
	if (!a->jobs->core)
		return -ENOMEM;
	check = a->cfg.limits;
	ret = saina_core_limits_set(a->jobs->core, &check, &err);
	if (ret) {
		log_error("%s:%d: limits: %s", a->cfg.file, a->cfg.limits_line, err.text);
		saina_core_free(a->jobs->core);
		a->jobs->core = NULL;
		return ret;
	}
	a->jobs->touch = (struct source){ .fd = -1, .ready = touch_ready, .arg = a };
	a->jobs->retry = (struct source){ .fd = -1, .ready = retry_ready, .arg = a };
	ret = loop_timer_add(&a->loop, &a->jobs->touch);
	if (!ret)
		ret = loop_timer_add(&a->loop, &a->jobs->retry);
	if (ret)
		jobs_uninit(a);
	return ret;
}

void jobs_uninit(struct agent *a)
{
	int i;

	loop_timer_del(&a->loop, &a->jobs->touch);
	loop_timer_del(&a->loop, &a->jobs->retry);
	saina_core_free(a->jobs->core);
	a->jobs->core = NULL;
	for (i = 0; i < SAINA_JOBS_MAX; i++) {
		free(a->jobs->aux[i]);
		a->jobs->aux[i] = NULL;
	}
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
	if (!core) {
		snprintf(text, size, "out of memory");
		return -ENOMEM;
	}
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
	return &a->jobs->aux[job->id]->worker[w];
}

bool jobs_alive(const struct saina_job *job, int w)
{
	return job->worker[w].state == SAINA_WORKER_STATE_ALIVE ||
	       job->worker[w].state == SAINA_WORKER_STATE_SLOW;
}

void jobs_each_alive(struct agent *a,
		     void (*fn)(struct agent *a, const struct saina_job *job, int w, void *arg),
		     void *arg)
{
	const struct saina_job *job;
	int id, w;

	for (id = 0; (job = saina_core_job_next(a->jobs->core, id)); id = job->id + 1)
		for (w = 0; w < job->workers; w++)
			if (jobs_alive(job, w))
				fn(a, job, w, arg);
}

const struct saina_policy *jobs_policy(struct agent *a, const struct saina_job *job)
{
	if (job->next.seq && jobs_policy_seq(a, job) == job->next.seq)
		return &job->next;
	return &job->policy;
}

uint32_t jobs_next_round(struct agent *a, const struct saina_job *job)
{
	struct saina_job_rt rt;

	if (!jobs_rt(a, job, &rt))
		return job->first_round;
	return rt.next_round;
}
