// SPDX-License-Identifier: GPL-2.0
/*
 * The job core (see jobcore.h): every change is made on a copy of the job,
 * settled by the rules of life, published if the data path can tell the
 * difference, and only then becomes the job.  A publish that fails therefore
 * needs no undo.
 */
#include "jobcore_os.h"
#include "jobcore.h"

#define PAYLOAD_DEFAULT	  256
#define POOL_DEFAULT	  256
#define RING_DEFAULT	  8
#define EXPONENT_DEFAULT  20
#define HEARTBEAT_DEFAULT 200
#define HEARTBEAT_MIN	  10
#define HEARTBEAT_MAX	  60000
#define DEAD_DEFAULT	  2000
#define DEAD_MAX	  65535

#define MiB		  (1024ull * 1024)
#define LIMIT_MEMORY_JOB  (1024 * MiB)
#define LIMIT_MEMORY	  (4096 * MiB)

struct saina_core {
	const struct saina_core_ops *ops;
	void *ctx;
	struct saina_limits limits;
	__u32 jobs;	  /* in the table */
	__u64 memory;	  /* of all jobs */
	__u32 generation; /* last given out */
	struct saina_job *job[SAINA_JOBS_MAX];
	/* the change in the making; too large for a kernel stack */
	struct saina_job next;
	struct saina_job_conf conf_old, conf_new;
};

#ifdef __KERNEL__
#define core_vsnprintf vscnprintf
#else
#define core_vsnprintf vsnprintf
#endif

int saina_refuse(struct saina_core_err *err, int error, unsigned int attr, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return error;
	err->attr = attr;
	va_start(ap, fmt);
	core_vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return error;
}

static unsigned long long to_mib(__u64 bytes)
{
	return (bytes + MiB - 1) >> 20;
}

static int worker_alive(const struct saina_worker *w)
{
	return w->state == SAINA_WORKER_ALIVE || w->state == SAINA_WORKER_SLOW;
}

/* Snapshot and memory: pure functions of the job */

/**
 * saina_core_memory() - bytes of map memory a job takes
 * @elements: of the gradient
 * @payload: elements of one message
 * @pool: hot slots
 * @ring: rounds of results kept
 *
 * Hot slots, result ring, sign bits, last-counted table and one snapshot.  The
 * counters (a few kB per CPU and job) are not counted in.
 */
__u64 saina_core_memory(__u64 elements, __u32 payload, __u32 pool, __u32 ring)
{
	__u64 slot = sizeof(struct saina_slot_meta) + 4ull * payload;
	__u64 segments = saina_div(elements + payload - 1, payload);

	return pool * slot + segments * ring * slot + segments * 8 * SAINA_SIGN_WORDS(payload, 1) +
	       segments * sizeof(struct saina_counted) + sizeof(struct saina_job_conf);
}

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
	for (w = 0; w < SAINA_WORKERS_MAX; w++)
		conf->worker[w] = job->worker[w].bind;
}

/* Committing a change */

static void core_event(struct saina_core *c, const struct saina_job *job, int type, int worker,
		       __u64 a, __u64 b)
{
	struct saina_event ev = {
		.type = type,
		.job = job->id,
		.worker = worker,
		.a = a,
		.b = b,
	};

	if (c->ops->event)
		c->ops->event(c->ctx, &ev);
}

static void core_notify(struct saina_core *c, int cmd, const struct saina_job *job, int worker)
{
	if (c->ops->notify)
		c->ops->notify(c->ctx, cmd, job, worker);
}

/* A new generation: the data path forgets all rounds. */
static void job_afresh(struct saina_core *c, struct saina_job *job, __u32 first_round)
{
	job->generation = c->generation + 1;
	job->first_round = first_round;
}

static void job_masks(struct saina_job *job)
{
	int w;

	job->active = job->relay = 0;
	for (w = 0; w < job->workers; w++) {
		if (!worker_alive(&job->worker[w]))
			continue;
		job->active |= 1ull << w;
		if (job->worker[w].bind.flags & SAINA_BIND_RELAY)
			job->relay |= 1ull << w;
	}
}

/* The rules of life (jobcore.h), applied to a job about to replace @old. */
static void job_settle(struct saina_core *c, struct saina_job *job, const struct saina_job *old)
{
	job_masks(job);
	if (!job->active && old && old->active) {
		if (job->state == SAINA_JOB_RUNNING)
			job->state = SAINA_JOB_FORMING;
		job_afresh(c, job, 0);
	}
	if (job->state == SAINA_JOB_FORMING && saina_weight(job->active) == job->workers)
		job->state = SAINA_JOB_RUNNING;
}

/*
 * Makes c->next the job of its number; @old is what was there, or NULL.  The
 * worker notifications are the caller's, between this and job_announce().
 */
static int job_commit(struct saina_core *c, struct saina_job *old, struct saina_core_err *err)
{
	int ret;

	job_settle(c, &c->next, old);
	saina_core_snapshot(&c->next, &c->conf_new);
	if (old)
		saina_core_snapshot(old, &c->conf_old);
	if (!old || memcmp(&c->conf_old, &c->conf_new, sizeof(c->conf_new))) {
		if (err)
			memset(err, 0, sizeof(*err));
		ret = c->ops->publish(c->ctx, &c->next, 0, err);
		if (ret) {
			if (err && !err->text[0])
				saina_refuse(err, ret, 0,
					     "job %s: the data path refused it (error %d)",
					     c->next.name, -ret);
			return ret;
		}
	}
	if (c->next.generation > c->generation)
		c->generation = c->next.generation;
	return 0;
}

static void job_announce(struct saina_core *c, const struct saina_job *job, int old_state)
{
	if (job->state != old_state)
		core_event(c, job, SAINA_EV_JOB_STATE, 0xff, old_state, job->state);
	core_notify(c, SAINA_CMD_JOB_NTF, job, -1);
}

/* Look-up */

/**
 * saina_core_job_find() - a job by number or name
 * @c: core
 * @has_id: look for @id, else for @name
 * @id: 0..255
 * @name: zero terminated, may be NULL with @has_id; checked if both are given
 * @err: out if there is none; may be NULL
 */
const struct saina_job *saina_core_job_find(const struct saina_core *c, int has_id, __u16 id,
					    const char *name, struct saina_core_err *err)
{
	const struct saina_job *job = NULL;
	int i, has_name = name && name[0];

	if (has_id) {
		if (id < SAINA_JOBS_MAX)
			job = c->job[id];
		if (!job) {
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
	for (i = 0; i < SAINA_JOBS_MAX; i++)
		if (c->job[i] && !strcmp(c->job[i]->name, name))
			return c->job[i];
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
	for (; from >= 0 && from < SAINA_JOBS_MAX; from++)
		if (c->job[from])
			return c->job[from];
	return NULL;
}

/* Jobs: validation */

static int name_check(const char *name, struct saina_core_err *err)
{
	int i, digits = 0;

	for (i = 0; i < SAINA_NAME_LEN && name[i]; i++) {
		char ch = name[i];

		if (ch >= '0' && ch <= '9')
			digits++;
		else if (!(ch >= 'a' && ch <= 'z') && !(ch >= 'A' && ch <= 'Z') && ch != '.' &&
			 ch != '_' && ch != '-')
			return saina_refuse(
				err, -EINVAL, SAINA_A_JOB_NAME,
				"name: only letters, digits, '.', '_' and '-' are allowed");
	}
	if (!i || i == SAINA_NAME_LEN)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_NAME,
				    "name: must have 1..%d characters", SAINA_NAME_LEN - 1);
	if (digits == i)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_NAME,
				    "name: '%s' is all digits and would be taken for a job number",
				    name);
	return 0;
}

static int payload_ok(__u32 payload)
{
	switch (payload) {
#define X(E) case E:
		SAINA_ELEMS_LIST(X)
#undef X
		return 1;
	}
	return 0;
}

static int job_geometry(struct saina_job *job, const struct saina_job_req *req,
			struct saina_core_err *err)
{
	__u64 segments;
	__u32 pool;

	job->payload = SAINA_HAS(req, SAINA_A_JOB_PAYLOAD) ? req->payload : PAYLOAD_DEFAULT;
	if (!payload_ok(job->payload))
		return saina_refuse(
			err, -EINVAL, SAINA_A_JOB_PAYLOAD,
			"payload: %u is not among 64, 128, 256, 352 (MTU 1500), 1024 and 2048 (jumbo frames)",
			job->payload);
	if (!SAINA_HAS(req, SAINA_A_JOB_ELEMENTS))
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_ELEMENTS,
				    "elements: a job needs the number of elements of its gradient");
	job->elements = req->elements;
	if (!job->elements)
		return saina_refuse(err, -ERANGE, SAINA_A_JOB_ELEMENTS,
				    "elements: must be at least 1");
	/* compared before it is rounded up: elements + payload could wrap */
	if (job->elements > (__u64)SAINA_SEGMENTS_MAX * job->payload)
		return saina_refuse(
			err, -ERANGE, SAINA_A_JOB_ELEMENTS,
			"elements: more than %llu do not fit %u messages of %u; choose a larger payload",
			(unsigned long long)SAINA_SEGMENTS_MAX * job->payload, SAINA_SEGMENTS_MAX,
			job->payload);
	segments = saina_div(job->elements + job->payload - 1, job->payload);
	job->segments = segments;

	pool = SAINA_HAS(req, SAINA_A_JOB_POOL) ? req->pool : POOL_DEFAULT;
	if (!is_power_of_2(pool) || pool > SAINA_POOL_MAX)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POOL,
				    "pool: %u hot slots: must be a power of two, 1..%u", pool,
				    SAINA_POOL_MAX);
	while (pool > 1 && pool / 2 >= job->segments)
		pool /= 2;
	job->pool = pool;

	job->ring = SAINA_HAS(req, SAINA_A_JOB_RING) ? req->ring : RING_DEFAULT;
	if (!is_power_of_2(job->ring) || job->ring < SAINA_RING_MIN || job->ring > SAINA_RING_MAX)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_RING,
				    "ring: %u rounds kept: must be a power of two, %u..%u",
				    job->ring, SAINA_RING_MIN, SAINA_RING_MAX);
	job->memory = saina_core_memory(job->elements, job->payload, job->pool, job->ring);
	return 0;
}

/* The one not given follows the other. */
static int job_times(struct saina_job *job, const struct saina_job_req *req,
		     struct saina_core_err *err)
{
	int has_dead = SAINA_HAS(req, SAINA_A_JOB_DEAD_MS) != 0;
	int has_beat = SAINA_HAS(req, SAINA_A_JOB_HEARTBEAT_MS) != 0;
	__u32 dead = has_dead ? req->dead_ms : job->dead_ms ? job->dead_ms : DEAD_DEFAULT;
	__u32 beat = has_beat		 ? req->heartbeat_ms
		     : job->heartbeat_ms ? job->heartbeat_ms
					 : HEARTBEAT_DEFAULT;

	if (beat < HEARTBEAT_MIN || beat > HEARTBEAT_MAX)
		return saina_refuse(err, -ERANGE, SAINA_A_JOB_HEARTBEAT_MS,
				    "heartbeat: %u ms: must be %u..%u", beat, HEARTBEAT_MIN,
				    HEARTBEAT_MAX);
	if (has_beat && !has_dead && dead <= beat)
		dead = saina_min(10 * beat, DEAD_MAX);
	if (has_dead && !has_beat && dead <= beat)
		beat = dead / 5 > HEARTBEAT_MIN ? dead / 5 : HEARTBEAT_MIN;
	if (dead <= beat)
		return saina_refuse(err, -ERANGE, SAINA_A_JOB_DEAD_MS,
				    "dead: %u ms: must be more than the heartbeat of %u ms", dead,
				    beat);
	job->heartbeat_ms = beat;
	job->dead_ms = dead;
	return 0;
}

static int job_policy(struct saina_job *job, const char *text, struct saina_core_err *err)
{
	struct saina_policy p;
	char canonical[sizeof(job->policy_text)];
	int ret;

	ret = saina_policy_parse(text, job->workers, &p, err);
	if (ret)
		return ret;
	saina_policy_format(&p, canonical, sizeof(canonical));
	if (!strcmp(canonical, job->policy_text))
		return 0;
	p.seq = job->policy.seq + 1;
	job->policy = p;
	memcpy(job->policy_text, canonical, sizeof(canonical));
	return 0;
}

/* What job_new and job_restore have to check against the table. */
static int job_admit(struct saina_core *c, const struct saina_job *job, struct saina_core_err *err)
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
	if (c->job[job->id])
		return saina_refuse(err, -EEXIST, SAINA_A_JOB_ID,
				    "id: number %u is job '%s' already", job->id,
				    c->job[job->id]->name);
	if (c->jobs >= c->limits.jobs)
		return saina_refuse(
			err, -EDQUOT, 0,
			"there are %u jobs, the limit: delete one or raise the limit of jobs",
			c->jobs);
	if (job->memory > c->limits.memory_job)
		return saina_refuse(
			err, -EDQUOT, SAINA_A_JOB_ELEMENTS,
			"the job needs %llu MiB, the limit is %llu MiB a job: fewer elements, a smaller ring or a higher limit",
			to_mib(job->memory), to_mib(c->limits.memory_job));
	if (c->memory + job->memory > c->limits.memory)
		return saina_refuse(
			err, -EDQUOT, SAINA_A_JOB_ELEMENTS,
			"the job needs %llu MiB, %llu of the %llu MiB for all jobs are taken: delete one or raise the limit",
			to_mib(job->memory), to_mib(c->memory), to_mib(c->limits.memory));
	return 0;
}

/* Puts c->next, checked, in the table. */
static int job_insert(struct saina_core *c, const struct saina_job **out,
		      struct saina_core_err *err)
{
	struct saina_job *job;
	int ret;

	job = c->ops->alloc(c->ctx, sizeof(*job));
	if (!job)
		return saina_refuse(err, -ENOMEM, 0, "job %s: out of memory", c->next.name);
	ret = job_commit(c, NULL, err);
	if (ret) {
		c->ops->free(c->ctx, job);
		return ret;
	}
	*job = c->next;
	c->job[job->id] = job;
	c->jobs++;
	c->memory += job->memory;
	if (out)
		*out = job;
	return 0;
}

/**
 * saina_core_job_new() - add a job
 * @c: core
 * @req: NAME, ELEMENTS and WORKERS are needed, the rest has defaults
 * @out: the job; may be NULL
 * @err: out on failure; may be NULL
 *
 * Return: 0, -EINVAL, -ERANGE, -EEXIST, -EDQUOT (a limit), -ENOSPC (no number
 * free), -EOPNOTSUPP (element type), -ENOMEM, or what publish returned
 */
int saina_core_job_new(struct saina_core *c, const struct saina_job_req *req,
		       const struct saina_job **out, struct saina_core_err *err)
{
	struct saina_job *job = &c->next;
	int ret, i;

	memset(job, 0, sizeof(*job));
	if (!SAINA_HAS(req, SAINA_A_JOB_NAME))
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_NAME, "name: a job needs one");
	ret = name_check(req->name, err);
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
	job->elem = SAINA_HAS(req, SAINA_A_JOB_ELEM_TYPE) ? req->elem : SAINA_ELEM_INT32;
	if (job->elem == SAINA_ELEM_FLOAT32 || job->elem == SAINA_ELEM_BFLOAT16)
		return saina_refuse(
			err, -EOPNOTSUPP, SAINA_A_JOB_ELEM_TYPE,
			"element type: the XDP program sums int32 only, which carries float tensors too");
	if (job->elem != SAINA_ELEM_INT32)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_ELEM_TYPE,
				    "element type: %u is unknown; int32 is %d", job->elem,
				    SAINA_ELEM_INT32);
	job->exponent = SAINA_HAS(req, SAINA_A_JOB_EXPONENT) ? req->exponent : EXPONENT_DEFAULT;
	if (job->exponent < -126)
		return saina_refuse(err, -ERANGE, SAINA_A_JOB_EXPONENT,
				    "exponent: %d: must be -126..127", job->exponent);
	ret = job_geometry(job, req, err);
	if (!ret)
		ret = job_times(job, req, err);
	if (!ret)
		ret = job_policy(job, SAINA_HAS(req, SAINA_A_JOB_POLICY) ? req->policy : "bsp",
				 err);
	if (ret)
		return ret;
	if (SAINA_HAS(req, SAINA_A_JOB_TOKEN))
		memcpy(job->token, req->token, sizeof(job->token));

	if (SAINA_HAS(req, SAINA_A_JOB_ID)) {
		job->id = req->id;
	} else {
		for (i = 0; i < SAINA_JOBS_MAX && c->job[i]; i++)
			;
		if (i == SAINA_JOBS_MAX)
			return saina_refuse(err, -ENOSPC, SAINA_A_JOB_ID,
					    "all %d job numbers are taken: delete a job",
					    SAINA_JOBS_MAX);
		job->id = i;
	}
	ret = job_admit(c, job, err);
	if (ret)
		return ret;
	job->state = SAINA_JOB_FORMING;
	job_afresh(c, job, 0);
	ret = job_insert(c, out, err);
	if (!ret)
		job_announce(c, c->job[c->next.id], 0);
	return ret;
}

/**
 * saina_core_job_restore() - take over a job an earlier core had
 * @c: core
 * @old: as it was; what follows from other members is computed anew
 * @out: the job; may be NULL
 * @err: out on failure; may be NULL
 *
 * Published, but neither an event nor a notification: nothing has changed.
 *
 * Return: as saina_core_job_new()
 */
int saina_core_job_restore(struct saina_core *c, const struct saina_job *old,
			   const struct saina_job **out, struct saina_core_err *err)
{
	struct saina_job_req req = {
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
	struct saina_job *job = &c->next;
	int ret, w;

	*job = *old;
	ret = name_check(job->name, err);
	if (ret)
		return ret;
	if (!job->workers || job->workers > SAINA_WORKERS_MAX || job->elem != SAINA_ELEM_INT32 ||
	    job->state < SAINA_JOB_FORMING || job->state > SAINA_JOB_STOPPED || !job->generation)
		return saina_refuse(err, -EINVAL, 0, "job %s: its saved state makes no sense",
				    job->name);
	ret = job_geometry(job, &req, err);
	if (!ret)
		ret = job_times(job, &req, err);
	if (ret)
		return ret;
	/* same number as before, or the data path would adopt the policy again */
	ret = saina_policy_parse(old->policy_text, job->workers, &job->policy, err);
	if (ret)
		return ret;
	job->policy.seq = old->policy.seq;
	ret = job_admit(c, job, err);
	if (ret)
		return ret;
	for (w = 0; w < SAINA_WORKERS_MAX; w++) {
		struct saina_worker *wk = &job->worker[w];

		if (wk->state == SAINA_WORKER_ABSENT || w >= job->workers)
			memset(wk, 0, sizeof(*wk));
	}
	return job_insert(c, out, err);
}

static void worker_announce(struct saina_core *c, const struct saina_job *job, int w, int old)
{
	int now = job->worker[w].state;
	int was_alive = old == SAINA_WORKER_ALIVE || old == SAINA_WORKER_SLOW;

	if (!was_alive && worker_alive(&job->worker[w]))
		core_event(c, job, SAINA_EV_WORKER_JOINED, w, 0, 0);
	else if (was_alive && now == SAINA_WORKER_DEAD)
		core_event(c, job, SAINA_EV_WORKER_DEAD, w, 0, 0);
	else if (was_alive && (now == SAINA_WORKER_LEFT || now == SAINA_WORKER_ABSENT))
		core_event(c, job, SAINA_EV_WORKER_LEFT, w, 0, 0);
}

/* What has changed of a job's workers; said after the change. */
static void workers_announce(struct saina_core *c, const struct saina_job *job,
			     const struct saina_job *old)
{
	int w, was;

	for (w = 0; w < job->workers; w++) {
		const struct saina_worker *wk = &job->worker[w];

		if (old && !memcmp(wk, &old->worker[w], sizeof(*wk)))
			continue;
		was = old ? old->worker[w].state : SAINA_WORKER_ABSENT;
		if (was == SAINA_WORKER_ABSENT && wk->state == SAINA_WORKER_ABSENT)
			continue;
		worker_announce(c, job, w, was);
		core_notify(c, wk->state == SAINA_WORKER_ABSENT ? SAINA_CMD_WORKER_DEL_NTF :
								  SAINA_CMD_WORKER_NTF, job, w);
	}
}

/**
 * saina_core_job_adopt() - have a job as another core has it
 * @c: core, a mirror of the other
 * @theirs: what the other says of it; what follows from that is computed anew
 * @out: the job; may be NULL
 * @err: out on failure; may be NULL
 *
 * Return: 0, -EINVAL (no job can be like that), -ENOMEM, or what publish
 * returned: then the mirror has the job as before
 */
int saina_core_job_adopt(struct saina_core *c, const struct saina_job *theirs,
			 const struct saina_job **out, struct saina_core_err *err)
{
	struct saina_job_req shape = {
		.has = 1ull << SAINA_A_JOB_ELEMENTS | 1ull << SAINA_A_JOB_PAYLOAD |
		       1ull << SAINA_A_JOB_POOL | 1ull << SAINA_A_JOB_RING,
		.elements = theirs->elements,
		.payload = theirs->payload,
		.pool = theirs->pool,
		.ring = theirs->ring,
	};
	struct saina_job *job = &c->next, *have, *old;
	int ret, state;

	if (theirs->id >= SAINA_JOBS_MAX || !theirs->workers ||
	    theirs->workers > SAINA_WORKERS_MAX || !theirs->generation)
		return saina_refuse(err, -EINVAL, 0, "job %u: there can be no such job", theirs->id);
	*job = *theirs;
	ret = job_geometry(job, &shape, err);
	if (!ret)
		ret = saina_policy_parse(theirs->policy_text, job->workers, &job->policy, err);
	if (ret)
		return ret;
	job->policy.seq = theirs->policy.seq;
	job_masks(job);
	have = c->job[job->id];
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
		c->job[job->id] = have = old;
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
	job_announce(c, have, state);
	if (old)
		c->ops->free(c->ctx, old);
	return 0;
}

static int job_state_set(struct saina_core *c, struct saina_job *job, int state,
			 struct saina_core_err *err)
{
	switch (state) {
	case SAINA_JOB_STOPPED:
		break;
	case SAINA_JOB_RUNNING:
		if (!job->active)
			return saina_refuse(
				err, -ENOTCONN, SAINA_A_JOB_STATE,
				"job %s has no live worker: it runs as soon as all %u have joined, or at your word once one has",
				job->name, job->workers);
		break;
	case SAINA_JOB_FORMING:
		if (job->state == SAINA_JOB_RUNNING)
			return saina_refuse(err, -EBUSY, SAINA_A_JOB_STATE,
					    "job %s is running: stop it first", job->name);
		break;
	default:
		return saina_refuse(
			err, -EINVAL, SAINA_A_JOB_STATE,
			"state: %d is unknown; forming (%d), running (%d) and stopped (%d) are allowed",
			state, SAINA_JOB_FORMING, SAINA_JOB_RUNNING, SAINA_JOB_STOPPED);
	}
	job->state = state;
	return 0;
}

#define JOB_SETTABLE                                                                      \
	(1ull << SAINA_A_JOB_ID | 1ull << SAINA_A_JOB_NAME | 1ull << SAINA_A_JOB_POLICY | \
	 1ull << SAINA_A_JOB_STATE | 1ull << SAINA_A_JOB_TOKEN |                          \
	 1ull << SAINA_A_JOB_HEARTBEAT_MS | 1ull << SAINA_A_JOB_DEAD_MS)

/**
 * saina_core_job_set() - change policy, state, token or times of a job
 * @c: core
 * @req: NAME or ID, and what is to change
 * @out: the job; may be NULL
 * @err: out on failure; may be NULL
 *
 * Return: 0, -ENOENT, -EINVAL, -ERANGE, -EBUSY, -ENOTCONN, or what publish
 * returned
 */
int saina_core_job_set(struct saina_core *c, const struct saina_job_req *req,
		       const struct saina_job **out, struct saina_core_err *err)
{
	struct saina_job *job = &c->next;
	const struct saina_job *found;
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
		return saina_refuse(
			err, -EINVAL, attr,
			"only policy, state, token, heartbeat and dead can change while job %s exists: delete and add it for the rest",
			found->name);
	}
	*job = *found;
	if (SAINA_HAS(req, SAINA_A_JOB_POLICY)) {
		ret = job_policy(job, req->policy, err);
		if (ret)
			return ret;
	}
	ret = job_times(job, req, err);
	if (ret)
		return ret;
	if (SAINA_HAS(req, SAINA_A_JOB_TOKEN))
		memcpy(job->token, req->token, sizeof(job->token));
	if (SAINA_HAS(req, SAINA_A_JOB_STATE)) {
		ret = job_state_set(c, job, req->state, err);
		if (ret)
			return ret;
	}
	old_state = found->state;
	ret = job_commit(c, c->job[found->id], err);
	if (ret)
		return ret;
	*c->job[found->id] = *job;
	if (out)
		*out = found;
	job_announce(c, found, old_state);
	return 0;
}

/**
 * saina_core_job_del() - remove a job, its workers and its maps
 * @c: core
 * @req: NAME or ID
 * @err: out on failure; may be NULL
 *
 * Return: 0, -ENOENT, -EINVAL, or what publish returned
 */
int saina_core_job_del(struct saina_core *c, const struct saina_job_req *req,
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
	job = c->job[found->id];
	ret = c->ops->publish(c->ctx, job, 1, err);
	if (ret)
		return ret;
	c->job[job->id] = NULL;
	c->jobs--;
	c->memory -= job->memory;
	core_event(c, job, SAINA_EV_JOB_STATE, 0xff, job->state, 0);
	core_notify(c, SAINA_CMD_JOB_DEL_NTF, job, -1);
	c->ops->free(c->ctx, job);
	return 0;
}

/* Workers */

#define WORKER_BINDING                                                                             \
	(1ull << SAINA_A_WORKER_IFINDEX | 1ull << SAINA_A_WORKER_IP | 1ull << SAINA_A_WORKER_MAC | \
	 1ull << SAINA_A_WORKER_UDP_PORT | 1ull << SAINA_A_WORKER_SESSION)

static int worker_find(const struct saina_core *c, const struct saina_worker_req *req,
		       const struct saina_job **job, struct saina_core_err *err)
{
	int has_id = SAINA_HAS(req, SAINA_A_WORKER_JOB_ID) != 0;
	int has_name = SAINA_HAS(req, SAINA_A_WORKER_JOB_NAME) != 0;

	*job = saina_core_job_find(c, has_id, req->job_id, has_name ? req->job_name : NULL, err);
	if (!*job) {
		if (err)
			err->attr = has_id && err->attr == SAINA_A_JOB_ID ? SAINA_A_WORKER_JOB_ID
									  : SAINA_A_WORKER_JOB_NAME;
		return has_id || has_name ? -ENOENT : -EINVAL;
	}
	if (!SAINA_HAS(req, SAINA_A_WORKER_ID))
		return saina_refuse(err, -EINVAL, SAINA_A_WORKER_ID, "say which worker: 0..%u",
				    (*job)->workers - 1);
	if (req->id >= (*job)->workers)
		return saina_refuse(err, -ERANGE, SAINA_A_WORKER_ID,
				    "worker %u: job %s has the workers 0..%u", req->id,
				    (*job)->name, (*job)->workers - 1);
	return 0;
}

/* Takes a worker in: a whole binding, for a place that is free. */
static int worker_admit(struct saina_core *c, struct saina_job *job,
			const struct saina_worker_req *req, struct saina_core_err *err)
{
	struct saina_worker *wk = &job->worker[req->id];
	__u64 missing = WORKER_BINDING & ~req->has;
	__u32 round = SAINA_HAS(req, SAINA_A_WORKER_ROUND) ? req->round : 0;
	int attr, w;

	if (missing) {
		for (attr = 0; !(missing & 1ull << attr); attr++)
			;
		return saina_refuse(
			err, -EINVAL, attr,
			"worker %u: interface, IP, MAC, UDP port and session belong together; one is missing",
			req->id);
	}
	if (worker_alive(wk))
		return saina_refuse(err, -EEXIST, SAINA_A_WORKER_ID,
				    "worker %u of job %s is alive already", req->id, job->name);
	if (job->state == SAINA_JOB_STOPPED)
		return saina_refuse(
			err, -ESHUTDOWN, SAINA_A_WORKER_JOB_NAME,
			"job %s is stopped: nobody can join until it is set running or forming",
			job->name);
	if (SAINA_HAS(req, SAINA_A_WORKER_STATE) && req->state != SAINA_WORKER_ALIVE)
		return saina_refuse(err, -EINVAL, SAINA_A_WORKER_STATE,
				    "worker %u: a worker that is admitted is alive", req->id);
	if (!req->ifindex || !req->ip || !req->udp_port || !req->session || (req->mac[0] & 1))
		return saina_refuse(
			err, -EINVAL, SAINA_A_WORKER_IFINDEX,
			"worker %u: interface, IP, UDP port and session must not be 0, the MAC must be unicast",
			req->id);
	for (w = 0; w < job->workers; w++)
		if (w != req->id && worker_alive(&job->worker[w]) &&
		    job->worker[w].bind.ip == req->ip &&
		    job->worker[w].bind.udp_port == req->udp_port)
			return saina_refuse(
				err, -EADDRINUSE, SAINA_A_WORKER_UDP_PORT,
				"worker %u: worker %d of job %s has that IP and UDP port", req->id,
				w, job->name);

	memset(wk, 0, sizeof(*wk));
	memcpy(wk->name, req->name, sizeof(wk->name) - 1);
	wk->state = SAINA_WORKER_ALIVE;
	wk->bind.ifindex = req->ifindex;
	wk->bind.ip = req->ip;
	wk->bind.udp_port = req->udp_port;
	wk->bind.session = req->session;
	memcpy(wk->bind.mac, req->mac, sizeof(wk->bind.mac));
	wk->bind.flags = SAINA_BIND_BOUND;
	if (SAINA_HAS(req, SAINA_A_WORKER_RELAY) && req->relay)
		wk->bind.flags |= SAINA_BIND_RELAY;
	/* the data path learns of a first round only with a new generation */
	if (job->state == SAINA_JOB_FORMING && round > job->first_round)
		job_afresh(c, job, round);
	return 0;
}

static int worker_change(struct saina_job *job, const struct saina_worker_req *req,
			 struct saina_core_err *err)
{
	struct saina_worker *wk = &job->worker[req->id];

	if (SAINA_HAS(req, SAINA_A_WORKER_STATE)) {
		if (req->state == SAINA_WORKER_ABSENT || req->state > SAINA_WORKER_LEFT)
			return saina_refuse(
				err, -EINVAL, SAINA_A_WORKER_STATE,
				"state: %u: alive (1), slow (2), dead (3) and left (4) are allowed",
				req->state);
		if (!worker_alive(wk))
			return saina_refuse(err, -ENOTCONN, SAINA_A_WORKER_ID,
					    "worker %u of job %s is not alive: it must join again",
					    req->id, job->name);
		wk->state = req->state;
	} else if (!worker_alive(wk)) {
		return saina_refuse(err, -ENOTCONN, SAINA_A_WORKER_ID,
				    "worker %u of job %s is not there", req->id, job->name);
	}
	if (SAINA_HAS(req, SAINA_A_WORKER_RELAY)) {
		if (req->relay > 1)
			return saina_refuse(err, -ERANGE, SAINA_A_WORKER_RELAY,
					    "relay: must be 0 or 1");
		wk->bind.flags &= ~SAINA_BIND_RELAY;
		if (req->relay)
			wk->bind.flags |= SAINA_BIND_RELAY;
	}
	if (SAINA_HAS(req, SAINA_A_WORKER_NAME)) {
		memset(wk->name, 0, sizeof(wk->name));
		memcpy(wk->name, req->name, sizeof(wk->name) - 1);
	}
	return 0;
}

/* Commits c->next, in which worker @w has changed. */
static int worker_commit(struct saina_core *c, const struct saina_job *found, int w, int cmd,
			 const struct saina_job **out, struct saina_core_err *err)
{
	struct saina_job *job = c->job[found->id];
	int ret, state = job->state, old = job->worker[w].state;
	__u64 active = job->active, relay = job->relay;

	ret = job_commit(c, job, err);
	if (ret)
		return ret;
	*job = c->next;
	if (out)
		*out = job;
	worker_announce(c, job, w, old);
	core_notify(c, cmd, job, w);
	if (job->state != state || job->active != active || job->relay != relay)
		job_announce(c, job, state);
	return 0;
}

/**
 * saina_core_worker_set() - admit a worker, or change one that is there
 * @c: core
 * @req: job and ID; with a whole binding (IFINDEX, IP, MAC, UDP_PORT, SESSION)
 *	the worker is admitted, alive and active from now on; else STATE, RELAY
 *	and NAME may change.  ROUND: what the worker would send first
 * @out: the job; may be NULL
 * @err: out on failure; may be NULL
 *
 * Return: 0, -ENOENT (job), -ERANGE (worker), -EEXIST (alive already),
 * -EADDRINUSE, -ESHUTDOWN (job stopped), -ENOTCONN (not alive), -EINVAL, or
 * what publish returned
 */
int saina_core_worker_set(struct saina_core *c, const struct saina_worker_req *req,
			  const struct saina_job **out, struct saina_core_err *err)
{
	const struct saina_job *found;
	int ret;

	ret = worker_find(c, req, &found, err);
	if (ret)
		return ret;
	c->next = *found;
	if (req->has & WORKER_BINDING)
		ret = worker_admit(c, &c->next, req, err);
	else
		ret = worker_change(&c->next, req, err);
	if (ret)
		return ret;
	return worker_commit(c, found, req->id, SAINA_CMD_WORKER_NTF, out, err);
}

/**
 * saina_core_worker_del() - forget a worker: its place is empty again
 * @c: core
 * @req: job and ID
 * @err: out on failure; may be NULL
 *
 * Return: 0, -ENOENT, -ERANGE, -EINVAL, or what publish returned
 */
int saina_core_worker_del(struct saina_core *c, const struct saina_worker_req *req,
			  struct saina_core_err *err)
{
	const struct saina_job *found;
	int ret;

	ret = worker_find(c, req, &found, err);
	if (ret)
		return ret;
	if (found->worker[req->id].state == SAINA_WORKER_ABSENT)
		return saina_refuse(err, -ENOENT, SAINA_A_WORKER_ID,
				    "worker %u of job %s is not there", req->id, found->name);
	c->next = *found;
	memset(&c->next.worker[req->id], 0, sizeof(c->next.worker[0]));
	return worker_commit(c, found, req->id, SAINA_CMD_WORKER_DEL_NTF, NULL, err);
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
				    "memory of all jobs: must not be less than the %llu MiB of one",
				    to_mib(l->memory_job));
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
				    to_mib(c->memory));
	for (i = 0; (job = saina_core_job_next(c, i)); i = job->id + 1)
		if (job->memory > limits->memory_job)
			return saina_refuse(err, -EBUSY, SAINA_A_LIMITS_MEMORY_JOB,
					    "memory of a job: job %s has %llu MiB: delete it first",
					    job->name, to_mib(job->memory));
	c->limits = *limits;
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

/* Frees the table without publishing that the jobs go: the data path stays. */
void saina_core_free(struct saina_core *c)
{
	int i;

	if (!c)
		return;
	for (i = 0; i < SAINA_JOBS_MAX; i++)
		if (c->job[i])
			c->ops->free(c->ctx, c->job[i]);
	c->ops->free(c->ctx, c);
}
