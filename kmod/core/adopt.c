// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs of another core: restored from an earlier one, or mirrored from a running one (adopt).
 * The agent does both; saina.ko is built without.
 */
#include "core/os.h"
#include "core/internal.h"
#include "core/adopt.h"

static void saina_tree_read(const struct saina_job_attrs *a, struct saina_job *job)
{
	struct saina_uplink *u = &job->uplink;

	memcpy(job->weight, a->weights, sizeof(job->weight));
	if (!SAINA_HAS(a, SAINA_A_JOB_UPLINK))
		return;
	u->address = a->uplink.address;
	u->port = a->uplink.port;
	u->worker = a->uplink.worker;
	memcpy(u->job, a->uplink.job, sizeof(u->job));
	memcpy(u->token_file, a->uplink.token_file, sizeof(u->token_file));
}

/**
 * saina_job_read() - convert the attributes of a reply to a job
 * @a: all attributes of a job
 * @job: out, without workers; restore and adopt validate it
 */
void saina_job_read(const struct saina_job_attrs *a, struct saina_job *job)
{
	memset(job, 0, sizeof(*job));
	job->id = a->id;
	job->state = a->state;
	job->workers = a->workers;
	job->elem = a->elem_type;
	job->exponent = a->exponent;
	job->by_reference = a->by_reference;
	job->elements_auto = a->elements_auto;
	job->payload = a->payload;
	job->heartbeat_ms = a->heartbeat_ms;
	job->dead_ms = a->dead_ms;
	job->pool = a->pool;
	job->ring = a->ring;
	job->ring_most = a->ring;
	job->elements = a->elements;
	job->generation = a->generation;
	job->segments = a->segments;
	job->memory = a->memory;
	memcpy(job->name, a->name, sizeof(job->name));
	memcpy(job->token, a->token, sizeof(job->token));
	saina_policy_read(&a->policy, &job->policy);
	job->policy.seq = a->policy_seq;
	if (SAINA_HAS(a, SAINA_A_JOB_POLICY_NEXT)) {
		saina_policy_read(&a->policy_next, &job->next);
		job->next.seq = a->policy_next_seq;
		job->next_from = a->policy_from;
		/* more bits than fit are invalid: as many as fit are refused, too */
		job->next_on = a->policy_on > 0xffff ? 0xffff : a->policy_on;
	}
	job->k_set = a->k_set;
	job->controlled = a->controller;
	saina_tree_read(a, job);
}

void saina_worker_read(const struct saina_worker_attrs *a, struct saina_worker *wk)
{
	memset(wk, 0, sizeof(*wk));
	memcpy(wk->name, a->name, sizeof(wk->name));
	wk->state = a->state;
	if (!SAINA_HAS(a, SAINA_A_WORKER_SESSION))
		return;
	wk->bind.ifindex = a->ifindex;
	wk->bind.ip = a->ip;
	wk->bind.udp_port = a->udp_port;
	wk->bind.session = a->session;
	memcpy(wk->bind.mac, a->mac, sizeof(wk->bind.mac));
	wk->bind.flags = SAINA_BIND_BOUND | (a->relay ? SAINA_BIND_RELAY : 0);
}

/**
 * saina_core_job_restore() - take over a job of an earlier core
 * @c: core
 * @old: the job; derived members are computed again
 * @out: the job; may be NULL
 * @err: out on failure; may be NULL
 *
 * The job is published, without event or notification, because nothing has changed.
 *
 * Return: as saina_core_job_new(); saina_job_leave_out() may remove the reason of a refusal
 */
int saina_core_job_restore(struct saina_core *c, const struct saina_job *old,
			   const struct saina_job **out, struct saina_core_err *err)
{
	struct saina_job_attrs req = {
		.has = 1ull << SAINA_A_JOB_ELEMENTS | 1ull << SAINA_A_JOB_PAYLOAD |
		       1ull << SAINA_A_JOB_POOL | 1ull << SAINA_A_JOB_RING |
		       1ull << SAINA_A_JOB_HEARTBEAT_MS | 1ull << SAINA_A_JOB_DEAD_MS,
		.elements = old->elements,
		.payload = old->payload,
		.pool = old->pool,
		.ring = old->ring,
		.heartbeat_ms = old->heartbeat_ms,
		.dead_ms = old->dead_ms,
	};
	struct saina_job *job;
	int ret, w;

	ret = saina_core_prepare(c, err);
	if (ret)
		return ret;
	job = &c->t->next;
	*job = *old;
	ret = saina_name_check(job->name, err);
	if (ret)
		return ret;
	if (!job->workers || job->workers > SAINA_WORKERS_MAX ||
	    job->state < SAINA_JOB_FORMING || job->state > SAINA_JOB_STOPPED || !job->generation)
		return saina_refuse(err, -EINVAL, 0, "job %s: its saved state is not valid",
				    job->name);
	ret = saina_elem_check(c, job->elem, err);
	if (!ret)
		ret = saina_exponent_check(job->exponent, err);
	if (!ret)
		ret = saina_job_geometry(job, &req, err);
	if (!ret)
		ret = saina_job_times(job, &req, err);
	if (!ret)
		ret = saina_job_tree_check(job, err);
	if (ret)
		return ret;
	saina_job_masks(job);
	if (job->active && !job->elements)
		return saina_refuse(err, -EINVAL, 0, "job %s: its saved state is not valid",
				    job->name);
	ret = saina_policy_check(&job->policy, job->workers, err);
	if (!ret)
		ret = saina_job_schedule_check(job, err);
	if (!ret)
		ret = saina_job_admit(c, job, err);
	if (ret)
		return ret;
	for (w = 0; w < SAINA_WORKERS_MAX; w++) {
		struct saina_worker *wk = &job->worker[w];

		if (wk->state == SAINA_WORKER_STATE_ABSENT || w >= saina_job_places(job))
			memset(wk, 0, sizeof(*wk));
	}
	return saina_job_insert(c, out, err);
}

/**
 * saina_job_leave_out() - remove what saina_core_job_restore() has refused
 * @old: the job
 * @attr: attribute that was refused
 *
 * The data path may have adopted the pending policy already, so the policy in force gets a
 * number above that.
 *
 * Return: 1, or 0 if the job cannot be without it
 */
int saina_job_leave_out(struct saina_job *old, unsigned int attr)
{
	switch (attr) {
	case SAINA_A_JOB_POLICY_NEXT:
		memset(&old->next, 0, sizeof(old->next));
		old->next_from = 0;
		old->next_on = 0;
		old->policy.seq += 2;
		return 1;
	case SAINA_A_JOB_K_SET:
		old->k_set = 0;
		return 1;
	}
	return 0;
}

/* Announces changes of a job's workers, after the change. */
static void workers_announce(struct saina_core *c, const struct saina_job *job,
			     const struct saina_job *old)
{
	int w, was;

	for (w = 0; w < saina_job_places(job); w++) {
		const struct saina_worker *wk = &job->worker[w];

		if (old && !memcmp(wk, &old->worker[w], sizeof(*wk)))
			continue;
		was = old ? old->worker[w].state : SAINA_WORKER_STATE_ABSENT;
		if (was == SAINA_WORKER_STATE_ABSENT && wk->state == SAINA_WORKER_STATE_ABSENT)
			continue;
		saina_worker_announce(c, job, w, was);
		saina_core_notify(c,
				  wk->state == SAINA_WORKER_STATE_ABSENT ? SAINA_CMD_WORKER_DEL_NTF
								   : SAINA_CMD_WORKER_NTF,
				  job, w);
	}
}

/**
 * saina_core_job_adopt() - mirror a job of another core
 * @c: core, a mirror of the other
 * @theirs: the job in the other core; derived members are computed again
 * @out: the job; may be NULL
 * @err: out on failure; may be NULL
 *
 * Return: 0, -EINVAL if the job is invalid, -ENOMEM, or the error of publish, after which
 * the mirror has the previous job
 */
int saina_core_job_adopt(struct saina_core *c, const struct saina_job *theirs,
			 const struct saina_job **out, struct saina_core_err *err)
{
	struct saina_job_attrs shape = {
		.has = 1ull << SAINA_A_JOB_ELEMENTS | 1ull << SAINA_A_JOB_PAYLOAD |
		       1ull << SAINA_A_JOB_POOL | 1ull << SAINA_A_JOB_RING,
		.elements = theirs->elements,
		.payload = theirs->payload,
		.pool = theirs->pool,
		.ring = theirs->ring,
	};
	struct saina_job *job, *have, *old;
	int ret, state;

	if (theirs->id >= SAINA_JOBS_MAX || !theirs->workers ||
	    theirs->workers > SAINA_WORKERS_MAX || !theirs->generation)
		return saina_refuse(err, -EINVAL, 0,
				    "job %u: id, workers or generation is out of range",
				    theirs->id);
	ret = saina_core_prepare(c, err);
	if (ret)
		return ret;
	job = &c->t->next;
	*job = *theirs;
	ret = saina_job_geometry(job, &shape, err);
	if (!ret)
		ret = saina_job_tree_check(job, err);
	if (!ret)
		ret = saina_policy_check(&job->policy, job->workers, err);
	if (ret)
		return ret;
	saina_job_masks(job);
	have = c->t->job[job->id];
	if (have && !memcmp(have, job, sizeof(*job))) {
		if (out)
			*out = have;
		return 0;
	}
	old = c->ops->alloc(c->ctx, sizeof(*old));
	if (!old)
		return saina_refuse(err, -ENOMEM, 0, "job %s: out of memory", job->name);
	ret = c->ops->publish(c->ctx, job, 0, err);
	if (ret) {
		c->ops->free(c->ctx, old);
		return ret;
	}
	if (job->generation > c->generation)
		c->generation = job->generation;
	if (!have) {
		*old = *job;
		have = old;
		c->t->job[job->id] = old;
		c->jobs++;
		c->memory += job->memory;
		old = NULL;
		state = 0;
	} else {
		*old = *have;
		*have = *job;
		c->memory += have->memory - old->memory;
		state = old->state;
	}
	if (out)
		*out = have;
	workers_announce(c, have, old);
	saina_job_announce(c, have, state);
	if (old)
		c->ops->free(c->ctx, old);
	return 0;
}
