// SPDX-License-Identifier: GPL-2.0-or-later
/* Chooses the backend, and does what both have in common. */
#include <unistd.h>

#include "agent/backend/backend.h"
#include "ctl/ctl.h"
#include "ctl/payload.h"
#include "ctl/policy_text.h"

/* Return: 0, or -ENOENT and the like if it is not loaded; *@error is the message. */
static int find_module(const char **error)
{
	struct saina_ctl *ctl;
	int ret = saina_ctl_open(&ctl, "kernel", error);

	saina_ctl_close(ctl);
	return ret;
}

/* Programs need the module's BTF, which DKMS cannot make with the headers of Debian's 6.1. */
static bool module_has_btf(void)
{
	return !access("/sys/kernel/btf/saina", F_OK);
}

bool backend_wants_kernel(const struct config *cfg)
{
	const char *error;

	return cfg->backend == BACKEND_KERNEL ||
	       (cfg->backend == BACKEND_AUTO && !find_module(&error) && module_has_btf());
}

int backend_init(struct agent *a, bool running)
{
	const char *error;
	int ret;

	a->backend->ops = &local_backend;
	if (!backend_wants_kernel(&a->cfg)) {
		if (a->cfg.backend == BACKEND_AUTO && !find_module(&error))
			log_warn("saina.ko is loaded, but not used: it was built without BTF, so the XDP program cannot call it; see `saina doctor`");
	} else if (running && a->cfg.backend == BACKEND_AUTO) {
		log_warn("saina.ko is loaded, but not used: jobs of this agent are running; sainad will use saina.ko when it starts without running jobs");
	} else {
		ret = find_module(&error);
		if (ret) {
			log_error("%s", error);
			return ret;
		}
		a->backend->ops = &kernel_backend;
	}
	return a->backend->ops->init ? a->backend->ops->init(a) : 0;
}

/* For workers whose rounds were lost with the data path. */
static void end_dead(struct agent *a, const struct saina_job *job, int w, void *arg)
{
	backend_worker_end(a, job, w, SAINA_WORKER_STATE_DEAD,
			   "its rounds were lost with the data path");
}

static void end_left(struct agent *a, const struct saina_job *job, int w, void *arg)
{
	backend_worker_end(a, job, w, SAINA_WORKER_STATE_LEFT, "is released: sainad stops");
}

int backend_start(struct agent *a)
{
	int ret = a->backend->ops->start(a);

	if (!ret && !saina_dp_taken_over(a->dp))
		jobs_each_alive(a, end_dead, NULL);
	return ret;
}

void backend_release_workers(struct agent *a)
{
	if (a->backend->ops->keeps_jobs)
		jobs_each_alive(a, end_left, NULL);
}

void backend_uninit(struct agent *a)
{
	if (a->backend->ops->uninit)
		a->backend->ops->uninit(a);
}

int backend_job_new(struct agent *a, const struct saina_job_attrs *req,
		    const struct saina_job **job, struct saina_core_err *err)
{
	struct saina_job_attrs filled = *req;

	saina_payload_choose(&filled, a->mtu, a->jumbo);
	return a->backend->ops->job_new(a, &filled, job, err);
}

/* A job that was taken over stays as it is. */
int backend_add_configured(struct agent *a)
{
	char policy[SAINA_POLICY_TEXT_LEN], elements[24];
	struct saina_core_err err;
	const struct saina_job *job;
	int i, ret;

	for (i = 0; i < a->cfg.n_jobs; i++) {
		const struct config_job *j = &a->cfg.jobs[i];

		if (saina_core_job_find(a->jobs->core, 0, 0, j->req.name, NULL)) {
			log_info("job %s was taken over; its entry in the configuration file is not applied",
				 j->req.name);
			continue;
		}
		ret = backend_job_new(a, &j->req, &job, &err);
		if (ret) {
			log_error("%s:%d: %s", a->cfg.file, j->line, err.text);
			return ret;
		}
		saina_policy_format(&job->policy, policy, sizeof(policy));
		snprintf(elements, sizeof(elements), "%llu", (unsigned long long)job->elements);
		log_info("added job %s (%u): %s elements, %u workers, %s", job->name, job->id,
			 job->elements ? elements : "the first worker's number of", job->workers, policy);
	}
	return 0;
}

const struct saina_job *backend_job_anew(struct agent *a, unsigned int id)
{
	static const int state[] = { SAINA_JOB_STOPPED, SAINA_JOB_FORMING };
	struct saina_core_err err;

	for (int i = 0; i < 2; i++) {
		struct saina_job_attrs req = {
			.has = 1ull << SAINA_A_JOB_ID | 1ull << SAINA_A_JOB_STATE,
			.id = id,
			.state = state[i],
		};

		if (backend_job_set(a, &req, &err))
			log_error("job %u: %s", id, err.text);
	}
	return saina_core_job_find(a->jobs->core, 1, id, NULL, NULL);
}

int backend_worker_end(struct agent *a, const struct saina_job *job, int w, int state,
		       const char *why)
{
	struct saina_worker_attrs req = {
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
	ret = backend_worker_set(a, &req, NULL, &err);
	if (ret)
		log_error("job %s: worker %d: %s", job->name, w, err.text);
	return ret;
}
