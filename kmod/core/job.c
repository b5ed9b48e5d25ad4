// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs (see core.h): every change is made on a copy of the job, completed by the rules in
 * core.h, published if the snapshot differs, and only then becomes the job.  A publish that
 * fails therefore needs no undo.
 */
#include "core/os.h"
#include "core/internal.h"

#define LIMIT_MEMORY_JOB (1024ull << 20)
#define LIMIT_MEMORY	 (4096ull << 20)

/* The snapshot: a pure function of the job */

/* Jobs numbered one after the other get locks far from each other. */
static __u32 lock_base(__u16 id)
{
	__u32 base = 0;
	int bit;

	for (bit = 0; bit < 8; bit++)
		if (id & (1 << bit))
			base |= (SAINA_LOCKS / 2) >> bit;
	return base;
}

void saina_core_snapshot(const struct saina_job *job, struct saina_job_conf *conf)
{
	int w;

	memset(conf, 0, sizeof(*conf));
	conf->generation = job->generation;
	conf->job = job->id;
	conf->state = job->state;
	conf->elem = job->elem;
	conf->payload = job->payload;
	conf->segments = job->segments;
	conf->pool = job->pool;
	conf->ring = job->ring;
	conf->lock_base = lock_base(job->id);
	conf->sign_words = SAINA_SIGN_WORDS(job->payload, 1);
	conf->active = job->active;
	conf->relay = job->relay;
	conf->group = saina_be32(SAINA_GROUP_BASE + job->id);
	conf->policy = job->policy;
	conf->next = job->next;
	conf->next_from = job->next_from;
	conf->next_on = job->next_on;
	conf->workers = job->workers;
	conf->k_set = job->k_set;
	conf->uplink = saina_job_has_uplink(job) ? 1ull << job->workers : 0;
	for (w = 0; w < SAINA_WORKERS_MAX; w++) {
		conf->worker[w] = job->worker[w].bind;
		/* of 1: the job of a host with one worker, or a worker */
		conf->worker[w].max_weight = job->weight[w] == 1 ? 2 : job->weight[w];
	}
	/* of the whole tree, whose size the parent alone knows */
	if (conf->uplink)
		conf->worker[job->workers].max_weight = SAINA_RANKS_MAX + 1;
}

/* Committing a change */

void saina_core_event(struct saina_core *c, const struct saina_job *job, int type, int worker,
		      __u64 a, __u64 b)
{
	struct saina_event ev = {
		.type = type,
		.job = job->id,
		.worker = worker,
		.generation = job->generation,
		.a = a,
		.b = b,
	};

	if (c->ops->event)
		c->ops->event(c->ctx, &ev);
}

void saina_core_notify(struct saina_core *c, int cmd, const struct saina_job *job, int worker)
{
	if (c->ops->notify)
		c->ops->notify(c->ctx, cmd, job, worker);
}

/* A new generation: the data path forgets all rounds, and which policy it has adopted. */
void saina_job_restart(struct saina_core *c, struct saina_job *job, __u32 first_round)
{
	saina_job_schedule_settle(c, job);
	job->generation = c->generation + 1;
	job->first_round = first_round;
	/* nothing of the old generation may be taken for a result of the new one */
	if (saina_job_has_uplink(job))
		memset(&job->worker[job->workers], 0, sizeof(job->worker[0]));
}

void saina_job_masks(struct saina_job *job)
{
	int w;

	job->active = 0;
	job->relay = 0;
	for (w = 0; w < job->workers; w++) {
		if (!saina_worker_alive(&job->worker[w]))
			continue;
		job->active |= 1ull << w;
		if (job->worker[w].bind.flags & SAINA_BIND_RELAY)
			job->relay |= 1ull << w;
	}
}

/*
 * Have its rounds ended?  Nodes that are all away may come back with sums of the present round, so
 * their job goes on until it is stopped.
 */
static int job_ends(const struct saina_job *job, const struct saina_job *old)
{
	if (job->active || !old)
		return 0;
	if (!job->weight[0])
		return old->active != 0;
	return job->state == SAINA_JOB_STOPPED && (old->active || old->state != SAINA_JOB_STOPPED);
}

/* Applies the rules in core.h to a job about to replace @old. */
static void job_settle(struct saina_core *c, struct saina_job *job, const struct saina_job *old)
{
	__u32 first;
	int w;

	saina_job_masks(job);
	if (job_ends(job, old)) {
		if (job->state == SAINA_JOB_RUNNING)
			job->state = SAINA_JOB_FORMING;
		saina_job_restart(c, job, 0);
	}
	if (job->state == SAINA_JOB_FORMING && saina_weight(job->active) == job->workers)
		job->state = SAINA_JOB_RUNNING;
	if (job->state != SAINA_JOB_RUNNING)
		return;
	/* the data path learns of a first round only with a new generation */
	first = saina_job_first_round(job);
	if (first)
		saina_job_restart(c, job, first);
	for (w = 0; w < job->workers; w++)
		job->worker[w].round = 0;
}

/*
 * Makes c->t->next the job of its number; @old is what was there, or NULL.  The
 * worker notifications are the caller's, between this and saina_job_announce().
 */
int saina_job_commit(struct saina_core *c, struct saina_job *old, struct saina_core_err *err)
{
	int ret;

	job_settle(c, &c->t->next, old);
	saina_core_snapshot(&c->t->next, &c->t->conf_new);
	if (old)
		saina_core_snapshot(old, &c->t->conf_old);
	if (!old || memcmp(&c->t->conf_old, &c->t->conf_new, sizeof(c->t->conf_new))) {
		if (err)
			memset(err, 0, sizeof(*err));
		ret = c->ops->publish(c->ctx, &c->t->next, 0, err);
		if (ret) {
			if (err && !err->text[0])
				saina_refuse(err, ret, 0,
					     "job %s: the data path refused it (error %d)",
					     c->t->next.name, -ret);
			return ret;
		}
	}
	if (c->t->next.generation > c->generation)
		c->generation = c->t->next.generation;
	return 0;
}

void saina_job_announce(struct saina_core *c, const struct saina_job *job, int old_state)
{
	if (job->state != old_state)
		saina_core_event(c, job, SAINA_EV_JOB_STATE, 0xff, old_state, job->state);
	saina_core_notify(c, SAINA_CMD_JOB_NTF, job, -1);
}

/* Look-up */

/**
 * saina_core_job_find() - a job by number or name
 * @c: core
 * @has_id: look for @id, else for @name
 * @id: 0..255
 * @name: zero terminated, may be NULL with @has_id; checked if both are given
 * @err: out if there is none; may be NULL
 *
 * Return: the job, or NULL
 */
const struct saina_job *saina_core_job_find(const struct saina_core *c, int has_id, __u16 id,
					    const char *name, struct saina_core_err *err)
{
	const struct saina_job *job = NULL;
	int i, has_name = name && name[0];

	/* messages quote it */
	if (has_name && saina_text_check(name, SAINA_A_JOB_NAME, "name", err))
		return NULL;
	if (has_id) {
		if (id < SAINA_JOBS_MAX)
			job = saina_core_job_next(c, id);
		if (!job || job->id != id) {
			saina_refuse(err, -ENOENT, SAINA_A_JOB_ID, "there is no job %u", id);
			return NULL;
		}
		if (has_name && strcmp(job->name, name)) {
			saina_refuse(err, -ENOENT, SAINA_A_JOB_NAME,
				     "job %u is called '%s', not '%.31s'", id, job->name, name);
			return NULL;
		}
		return job;
	}
	if (!has_name) {
		saina_refuse(err, -EINVAL, SAINA_A_JOB_NAME, "say which job: by name or by number");
		return NULL;
	}
	for (i = 0; (job = saina_core_job_next(c, i)); i = job->id + 1)
		if (!strcmp(job->name, name))
			return job;
	saina_refuse(err, -ENOENT, SAINA_A_JOB_NAME, "there is no job '%.31s'", name);
	return NULL;
}

/**
 * saina_core_job_next() - iterate over the jobs
 * @c: core
 * @from: least number wanted
 *
 * Return: the job with the least number >= @from, NULL at the end
 */
const struct saina_job *saina_core_job_next(const struct saina_core *c, int from)
{
	for (; c->t && from >= 0 && from < SAINA_JOBS_MAX; from++)
		if (c->t->job[from])
			return c->t->job[from];
	return NULL;
}

/* The job table */

int saina_core_prepare(struct saina_core *c, struct saina_core_err *err)
{
	if (!c->t)
		c->t = c->ops->alloc(c->ctx, sizeof(*c->t));
	return c->t ? 0 : saina_refuse(err, -ENOMEM, 0, "out of memory for the table of jobs");
}

/* What saina_core_job_new() and saina_core_job_restore() check against the table. */
int saina_job_admit(struct saina_core *c, struct saina_job *job, struct saina_core_err *err)
{
	const struct saina_job *other;

	other = saina_core_job_find(c, 0, 0, job->name, NULL);
	if (other)
		return saina_refuse(err, -EEXIST, SAINA_A_JOB_NAME,
				    "job '%s' exists already, as number %u", other->name,
				    other->id);
	if (job->id >= SAINA_JOBS_MAX)
		return saina_refuse(err, -ERANGE, SAINA_A_JOB_ID, "id: %u: must be 0..%d", job->id,
				    SAINA_JOBS_MAX - 1);
	if (c->t->job[job->id])
		return saina_refuse(err, -EEXIST, SAINA_A_JOB_ID,
				    "id: number %u is job '%s' already", job->id,
				    c->t->job[job->id]->name);
	if (c->jobs >= c->limits.jobs)
		return saina_refuse(
			err, -EDQUOT, 0,
			"there are %u jobs, which is the limit: delete one, or raise it (saina limits set jobs N)",
			c->jobs);
	return saina_job_room(c, job, 0, SAINA_A_JOB_ELEMENTS, err);
}

/* Puts c->t->next, checked, in the table. */
int saina_job_insert(struct saina_core *c, const struct saina_job **out, struct saina_core_err *err)
{
	struct saina_job *job;
	int ret;

	job = c->ops->alloc(c->ctx, sizeof(*job));
	if (!job)
		return saina_refuse(err, -ENOMEM, 0, "job %s: out of memory", c->t->next.name);
	ret = saina_job_commit(c, NULL, err);
	if (ret) {
		c->ops->free(c->ctx, job);
		return ret;
	}
	*job = c->t->next;
	c->t->job[job->id] = job;
	c->jobs++;
	c->memory += job->memory;
	if (out)
		*out = job;
	return 0;
}

/**
 * saina_core_job_new() - add a job
 * @c: core
 * @req: NAME, WORKERS, and ELEMENTS or ELEMENTS_AUTO are needed, the rest has defaults
 * @out: the job; may be NULL
 * @err: out on failure; may be NULL
 *
 * Return: 0, -EINVAL, -ERANGE, -EEXIST, -EDQUOT (a limit), -ENOSPC (no number
 * free), -EOPNOTSUPP (element type), -ENOMEM, or what publish returned
 */
int saina_core_job_new(struct saina_core *c, const struct saina_job_attrs *req,
		       const struct saina_job **out, struct saina_core_err *err)
{
	struct saina_job *job;
	int ret, i;

	ret = saina_core_prepare(c, err);
	if (ret)
		return ret;
	job = &c->t->next;
	memset(job, 0, sizeof(*job));
	if (!SAINA_HAS(req, SAINA_A_JOB_NAME))
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_NAME, "name: a job needs one");
	ret = saina_name_check(req->name, err);
	if (ret)
		return ret;
	memcpy(job->name, req->name, sizeof(job->name));
	if (!SAINA_HAS(req, SAINA_A_JOB_WORKERS))
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_WORKERS,
				    "workers: a job needs the number of its workers");
	if (!req->workers || req->workers > SAINA_WORKERS_MAX)
		return saina_refuse(err, -ERANGE, SAINA_A_JOB_WORKERS, "workers: %u: must be 1..%d",
				    req->workers, SAINA_WORKERS_MAX);
	job->workers = req->workers;
	job->elem = SAINA_HAS(req, SAINA_A_JOB_ELEM_TYPE) ? req->elem_type : SAINA_ELEM_INT32;
	ret = saina_job_elem(c, job, req, err);
	if (!ret)
		ret = saina_job_reference(job, req, err);
	if (!ret)
		ret = saina_job_geometry(job, req, err);
	if (!ret)
		ret = saina_job_times(job, req, err);
	if (!ret)
		ret = saina_job_tree(job, req, err);
	if (!ret)
		ret = saina_job_policy(c, job, req, err);
	if (!ret)
		ret = saina_job_token(job, req, err);
	if (ret)
		return ret;

	if (SAINA_HAS(req, SAINA_A_JOB_ID)) {
		job->id = req->id;
	} else {
		for (i = 0; i < SAINA_JOBS_MAX && c->t->job[i]; i++)
			;
		if (i == SAINA_JOBS_MAX)
			return saina_refuse(err, -ENOSPC, SAINA_A_JOB_ID,
					    "all %d job numbers are taken: delete a job",
					    SAINA_JOBS_MAX);
		job->id = i;
	}
	ret = saina_job_admit(c, job, err);
	if (ret)
		return ret;
	job->state = SAINA_JOB_FORMING;
	saina_job_restart(c, job, 0);
	ret = saina_job_insert(c, out, err);
	if (!ret)
		saina_job_announce(c, c->t->job[c->t->next.id], 0);
	return ret;
}

#define JOB_SETTABLE                                                                      \
	(1ull << SAINA_A_JOB_ID | 1ull << SAINA_A_JOB_NAME | 1ull << SAINA_A_JOB_POLICY | \
	 1ull << SAINA_A_JOB_STATE | 1ull << SAINA_A_JOB_TOKEN |                          \
	 1ull << SAINA_A_JOB_POLICY_FROM | 1ull << SAINA_A_JOB_POLICY_ON |                \
	 1ull << SAINA_A_JOB_POLICY_CANCEL | 1ull << SAINA_A_JOB_K_SET |                  \
	 1ull << SAINA_A_JOB_CONTROLLER | 1ull << SAINA_A_JOB_UPLINK |                    \
	 1ull << SAINA_A_JOB_HEARTBEAT_MS | 1ull << SAINA_A_JOB_DEAD_MS)

/**
 * saina_core_job_set() - change policy, k, controller, state, token, times or uplink of a job
 * @c: core
 * @req: NAME or ID, and what is to change
 * @out: the job; may be NULL
 * @err: out on failure; may be NULL
 *
 * Return: 0, -ENOENT, -EINVAL, -ERANGE, -EBUSY, -ENOTCONN, -EOPNOTSUPP (not with this policy,
 * or this policy not with this job), -EDQUOT (a limit), or what publish returned
 */
int saina_core_job_set(struct saina_core *c, const struct saina_job_attrs *req,
		       const struct saina_job **out, struct saina_core_err *err)
{
	const struct saina_job *found;
	struct saina_job *job;
	__u64 fixed = req->has & ~JOB_SETTABLE;
	int ret, attr, old_state;

	found = saina_core_job_find(c, SAINA_HAS(req, SAINA_A_JOB_ID) != 0, req->id,
				    SAINA_HAS(req, SAINA_A_JOB_NAME) ? req->name : NULL, err);
	if (!found)
		return SAINA_HAS(req, SAINA_A_JOB_ID) || SAINA_HAS(req, SAINA_A_JOB_NAME) ? -ENOENT
											  : -EINVAL;
	if (fixed) {
		for (attr = 0; !(fixed & 1ull << attr); attr++)
			;
		return saina_refuse(err, -EINVAL, attr,
				    "only policy, k, state, token, heartbeat, dead and uplink can change "
				    "while job %s exists: for the rest, delete and add it again",
				    found->name);
	}
	job = &c->t->next;
	*job = *found;
	if (SAINA_HAS(req, SAINA_A_JOB_UPLINK) && !saina_job_has_uplink(found))
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_UPLINK,
				    "uplink: job %s has none, and cannot get one while it exists: "
				    "delete and add it again",
				    found->name);
	ret = saina_job_tree(job, req, err);
	if (!ret)
		ret = saina_job_policy(c, job, req, err);
	if (!ret && job->memory > found->memory)
		ret = saina_job_room(c, job, found->memory, SAINA_A_JOB_POLICY, err);
	if (!ret)
		ret = saina_job_k(job, req, err);
	if (!ret)
		ret = saina_job_times(job, req, err);
	if (!ret)
		ret = saina_job_token(job, req, err);
	if (ret)
		return ret;
	if (SAINA_HAS(req, SAINA_A_JOB_STATE)) {
		ret = saina_job_state_set(job, req->state, err);
		if (ret)
			return ret;
	}
	old_state = found->state;
	ret = saina_job_commit(c, c->t->job[found->id], err);
	if (ret)
		return ret;
	c->memory += job->memory - found->memory;
	*c->t->job[found->id] = *job;
	if (out)
		*out = found;
	saina_job_announce(c, found, old_state);
	return 0;
}

/**
 * saina_core_controller_gone() - the socket of a job's controller is closed
 * @c: core
 * @id: number of the job
 *
 * k stays as it was set last.  The owner knows whose socket it was.
 */
void saina_core_controller_gone(struct saina_core *c, __u16 id)
{
	struct saina_job *job = id < SAINA_JOBS_MAX && c->t ? c->t->job[id] : NULL;

	if (!job || !job->controlled)
		return;
	job->controlled = 0;
	saina_core_event(c, job, SAINA_EV_CONTROLLER, 0xff, job->k_set, 0);
	saina_core_notify(c, SAINA_CMD_JOB_NTF, job, -1);
}

/**
 * saina_core_job_del() - remove a job, its workers and its maps
 * @c: core
 * @req: NAME or ID
 * @err: out on failure; may be NULL
 *
 * Return: 0, -ENOENT, -EINVAL, or what publish returned
 */
int saina_core_job_del(struct saina_core *c, const struct saina_job_attrs *req,
		       struct saina_core_err *err)
{
	const struct saina_job *found;
	struct saina_job *job;
	int ret;

	found = saina_core_job_find(c, SAINA_HAS(req, SAINA_A_JOB_ID) != 0, req->id,
				    SAINA_HAS(req, SAINA_A_JOB_NAME) ? req->name : NULL, err);
	if (!found)
		return SAINA_HAS(req, SAINA_A_JOB_ID) || SAINA_HAS(req, SAINA_A_JOB_NAME) ? -ENOENT
											  : -EINVAL;
	job = c->t->job[found->id];
	ret = c->ops->publish(c->ctx, job, 1, err);
	if (ret)
		return ret;
	c->t->job[job->id] = NULL;
	c->jobs--;
	c->memory -= job->memory;
	saina_core_event(c, job, SAINA_EV_JOB_STATE, 0xff, job->state, 0);
	saina_core_notify(c, SAINA_CMD_JOB_DEL_NTF, job, -1);
	c->ops->free(c->ctx, job);
	return 0;
}

/* Limits and the core itself */

static int limits_check(const struct saina_limits *l, struct saina_core_err *err)
{
	if (!l->jobs || l->jobs > SAINA_JOBS_MAX)
		return saina_refuse(err, -ERANGE, SAINA_A_LIMITS_JOBS, "jobs: %u: must be 1..%d",
				    l->jobs, SAINA_JOBS_MAX);
	if (!l->memory_job)
		return saina_refuse(err, -ERANGE, SAINA_A_LIMITS_MEMORY_JOB,
				    "memory of a job: must not be 0");
	if (l->memory < l->memory_job)
		return saina_refuse(err, -ERANGE, SAINA_A_LIMITS_MEMORY,
				    "memory of all jobs: must not be less than the %llu MiB of one job",
				    saina_mib(l->memory_job));
	return 0;
}

/**
 * saina_core_limits_set() - change the limits
 * @c: core
 * @limits: all of them
 * @err: out on failure; may be NULL
 *
 * Limits below what is in use are refused: nothing that runs is taken away.
 *
 * Return: 0, -ERANGE, -EBUSY
 */
int saina_core_limits_set(struct saina_core *c, const struct saina_limits *limits,
			  struct saina_core_err *err)
{
	const struct saina_job *job;
	int ret, i;

	ret = limits_check(limits, err);
	if (ret)
		return ret;
	if (limits->jobs < c->jobs)
		return saina_refuse(err, -EBUSY, SAINA_A_LIMITS_JOBS,
				    "jobs: there are %u now: delete some first", c->jobs);
	if (limits->memory < c->memory)
		return saina_refuse(err, -EBUSY, SAINA_A_LIMITS_MEMORY,
				    "memory of all jobs: %llu MiB are in use: delete jobs first",
				    saina_mib(c->memory));
	for (i = 0; (job = saina_core_job_next(c, i)); i = job->id + 1)
		if (job->memory > limits->memory_job)
			return saina_refuse(err, -EBUSY, SAINA_A_LIMITS_MEMORY_JOB,
					    "memory of a job: job %s has %llu MiB: delete it first",
					    job->name, saina_mib(job->memory));
	c->limits = *limits;
	saina_core_notify(c, SAINA_CMD_LIMITS_NTF, NULL, -1);
	return 0;
}

void saina_core_limits_get(const struct saina_core *c, struct saina_limits *limits,
			   __u32 *jobs_used, __u64 *memory_used)
{
	*limits = c->limits;
	if (jobs_used)
		*jobs_used = c->jobs;
	if (memory_used)
		*memory_used = c->memory;
}

/**
 * saina_core_new() - an empty job table
 * @ops: of the owner; must outlive the core
 * @ctx: first argument of @ops
 * @limits: NULL: 256 jobs, 1 GiB a job, 4 GiB in all
 *
 * Return: the core, NULL if memory is short or the limits make no sense
 */
struct saina_core *saina_core_new(const struct saina_core_ops *ops, void *ctx,
				  const struct saina_limits *limits)
{
	static const struct saina_limits defaults = {
		.jobs = SAINA_JOBS_MAX,
		.memory_job = LIMIT_MEMORY_JOB,
		.memory = LIMIT_MEMORY,
	};
	struct saina_core *c;

	if (limits && limits_check(limits, NULL))
		return NULL;
	c = ops->alloc(ctx, sizeof(*c));
	if (!c)
		return NULL;
	c->ops = ops;
	c->ctx = ctx;
	c->limits = limits ? *limits : defaults;
	return c;
}

/* Frees the jobs without withdrawing them: the data path stays. */
void saina_core_free(struct saina_core *c)
{
	int i;

	if (!c)
		return;
	for (i = 0; c->t && i < SAINA_JOBS_MAX; i++)
		if (c->t->job[i])
			c->ops->free(c->ctx, c->t->job[i]);
	if (c->t)
		c->ops->free(c->ctx, c->t);
	c->ops->free(c->ctx, c);
}
