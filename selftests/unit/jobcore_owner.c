// SPDX-License-Identifier: GPL-2.0-or-later
#include "jobcore_owner.h"

static void *own_alloc(void *ctx, unsigned long size)
{
	struct owner *o = ctx;

	o->live++;
	o->bytes += size;
	return calloc(1, size);
}

static void own_free(void *ctx, void *p)
{
	struct owner *o = ctx;

	o->live--;
	free(p);
}

static int own_publish(void *ctx, const struct saina_job *job, int gone, struct saina_core_err *err)
{
	struct owner *o = ctx;

	if (o->refuse)
		return o->refuse;
	if (gone) {
		o->gone++;
		return 0;
	}
	o->published++;
	if (job->generation != o->last.generation)
		o->adopted = 0;
	saina_core_snapshot(job, &o->last);
	o->last_first_round = job->first_round;
	return 0;
}

static void own_notify(void *ctx, int cmd, const struct saina_job *job, int worker)
{
	struct owner *o = ctx;

	assert_true(o->notes < SEEN_MAX);
	o->note[o->notes++] = cmd;
}

static void own_event(void *ctx, const struct saina_event *ev)
{
	struct owner *o = ctx;

	assert_true(o->events < SEEN_MAX);
	o->event[o->events++] = *ev;
}

static __u32 own_policy_seq(void *ctx, const struct saina_job *job)
{
	const struct owner *o = ctx;

	return job->generation == o->last.generation ? o->adopted : 0;
}

const struct saina_core_ops owner_ops = {
	.alloc = own_alloc,
	.free = own_free,
	.publish = own_publish,
	.notify = own_notify,
	.event = own_event,
	.policy_seq = own_policy_seq,
};

int owner_setup(void **state)
{
	struct owner *o = calloc(1, sizeof(*o));

	o->core = saina_core_new(&owner_ops, o, NULL);
	assert_non_null(o->core);
	*state = o;
	return 0;
}

int owner_teardown(void **state)
{
	struct owner *o = *state;

	saina_core_free(o->core);
	assert_int_equal(o->live, 0);
	free(o);
	return 0;
}

/* Requests */

struct saina_job_attrs job_req(const char *name, unsigned long long elements, int workers)
{
	struct saina_job_attrs r = {
		.has = BIT_OF(SAINA_A_JOB_NAME) | BIT_OF(SAINA_A_JOB_ELEMENTS) |
		       BIT_OF(SAINA_A_JOB_WORKERS),
		.elements = elements,
		.workers = workers,
	};

	snprintf(r.name, sizeof(r.name), "%s", name);
	return r;
}

void with_policy(struct saina_job_attrs *r, const char *policy)
{
	struct saina_policy p;

	assert_int_equal(saina_policy_parse(policy, 0, &p, NULL), 0);
	saina_policy_show(&p, &r->policy);
	SAINA_SET(r, SAINA_A_JOB_POLICY);
}

int job_new(struct owner *o, const struct saina_job_attrs *r, const struct saina_job **job)
{
	return saina_core_job_new(o->core, r, job, &o->err);
}

int job_set(struct owner *o, const struct saina_job_attrs *r)
{
	return saina_core_job_set(o->core, r, NULL, &o->err);
}

int worker_set(struct owner *o, const struct saina_worker_attrs *r)
{
	return saina_core_worker_set(o->core, r, NULL, &o->err);
}

const struct saina_job *add(struct owner *o, const char *name, int workers, const char *policy)
{
	struct saina_job_attrs r = job_req(name, 10000, workers);
	const struct saina_job *job = NULL;

	if (policy)
		with_policy(&r, policy);
	if (job_new(o, &r, &job))
		fail_msg("%s", o->err.text);
	return job;
}

struct saina_worker_attrs join_req(const struct saina_job *job, int w, __u32 round)
{
	struct saina_worker_attrs r = {
		.has = BIT_OF(SAINA_A_WORKER_JOB_ID) | BIT_OF(SAINA_A_WORKER_ID) |
		       BIT_OF(SAINA_A_WORKER_IFINDEX) | BIT_OF(SAINA_A_WORKER_IP) |
		       BIT_OF(SAINA_A_WORKER_MAC) | BIT_OF(SAINA_A_WORKER_UDP_PORT) |
		       BIT_OF(SAINA_A_WORKER_SESSION) | BIT_OF(SAINA_A_WORKER_NAME) |
		       BIT_OF(SAINA_A_WORKER_ROUND),
		.job_id = job->id,
		.id = w,
		.ifindex = 10 + w,
		.ip = htonl(0x0a000001 + w),
		.udp_port = htons(40000 + w),
		.session = 1000 + w,
		.round = round,
		.mac = {2, 0, 0, 0, 0, w},
	};

	snprintf(r.name, sizeof(r.name), "w%d", w);
	return r;
}

int try_join(struct owner *o, const struct saina_job *job, int w, __u32 round)
{
	struct saina_worker_attrs r = join_req(job, w, round);

	return worker_set(o, &r);
}

void join_all(struct owner *o, const struct saina_job *job)
{
	int w;

	for (w = 0; w < job->workers; w++)
		assert_int_equal(try_join(o, job, w, 0), 0);
}

const struct saina_job *add_all(struct owner *o, int workers, const char *policy)
{
	const struct saina_job *job = add(o, "a", workers, policy);

	join_all(o, job);
	return job;
}

int set_state(struct owner *o, const struct saina_job *job, int w, int state)
{
	struct saina_worker_attrs r = {
		.has = BIT_OF(SAINA_A_WORKER_JOB_ID) | BIT_OF(SAINA_A_WORKER_ID) |
		       BIT_OF(SAINA_A_WORKER_STATE),
		.job_id = job->id,
		.id = w,
		.state = state,
	};

	return saina_core_worker_set(o->core, &r, NULL, NULL);
}

int set_job_state(struct owner *o, const struct saina_job *job, int state)
{
	struct saina_job_attrs r = {
		.has = BIT_OF(SAINA_A_JOB_ID) | BIT_OF(SAINA_A_JOB_STATE),
		.id = job->id,
		.state = state,
	};

	return job_set(o, &r);
}

int set_policy(struct owner *o, const struct saina_job *job, const char *policy)
{
	struct saina_job_attrs r = {.has = BIT_OF(SAINA_A_JOB_ID), .id = job->id};

	with_policy(&r, policy);
	return job_set(o, &r);
}

void assert_refused(struct owner *o, int ret, int error, int attr)
{
	const struct saina_core_err *err = &o->err;

	if (ret != error || err->attr != attr)
		print_error("got %d, attribute %u: %s\n", ret, err->attr, err->text);
	assert_int_equal(ret, error);
	assert_int_equal(err->attr, attr);
	assert_true(strlen(err->text) > 10);
	assert_non_null(memchr(err->text, 0, sizeof(err->text)));
	assert_true(strlen(err->text) < sizeof(err->text) - 1); /* not cut off */
}
