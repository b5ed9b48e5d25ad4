// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The job core by its public interface: refusals with their errno and guilty
 * attribute, the rules of life, snapshots, limits, policy strings.  The owner
 * is a fake that records what is published and can be told to refuse.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "jobcore.h"

#define BIT_OF(a) (1ull << (a))
#define SEEN_MAX  4096

struct owner {
	struct saina_core *core;
	int refuse; /* errno publish answers with */
	int published;
	int gone;
	struct saina_job_conf last; /* snapshot last published */
	__u32 last_first_round;
	int notes, note[SEEN_MAX]; /* commands of notifications */
	int events;
	struct saina_event event[SEEN_MAX];
	long live; /* allocations not freed */
};

static void *own_alloc(void *ctx, unsigned long size)
{
	struct owner *o = ctx;

	o->live++;
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

static const struct saina_core_ops ops = {
	.alloc = own_alloc,
	.free = own_free,
	.publish = own_publish,
	.notify = own_notify,
	.event = own_event,
};

static int setup(void **state)
{
	struct owner *o = calloc(1, sizeof(*o));

	o->core = saina_core_new(&ops, o, NULL);
	assert_non_null(o->core);
	*state = o;
	return 0;
}

static int teardown(void **state)
{
	struct owner *o = *state;

	saina_core_free(o->core);
	assert_int_equal(o->live, 0);
	free(o);
	return 0;
}

/* Requests */

static struct saina_job_req job_req(const char *name, unsigned long long elements, int workers)
{
	struct saina_job_req r = {
		.has = BIT_OF(SAINA_A_JOB_NAME) | BIT_OF(SAINA_A_JOB_ELEMENTS) |
		       BIT_OF(SAINA_A_JOB_WORKERS),
		.elements = elements,
		.workers = workers,
	};

	snprintf(r.name, sizeof(r.name), "%s", name);
	return r;
}

static void with_policy(struct saina_job_req *r, const char *policy)
{
	r->has |= BIT_OF(SAINA_A_JOB_POLICY);
	snprintf(r->policy, sizeof(r->policy), "%s", policy);
}

static const struct saina_job *add(struct owner *o, const char *name, int workers,
				   const char *policy)
{
	struct saina_job_req r = job_req(name, 10000, workers);
	const struct saina_job *job = NULL;
	struct saina_core_err err;

	if (policy)
		with_policy(&r, policy);
	if (saina_core_job_new(o->core, &r, &job, &err))
		fail_msg("%s", err.text);
	return job;
}

static struct saina_worker_req join_req(const struct saina_job *job, int w, __u32 round)
{
	struct saina_worker_req r = {
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
		.mac = { 2, 0, 0, 0, 0, w },
	};

	snprintf(r.name, sizeof(r.name), "w%d", w);
	return r;
}

static int try_join(struct owner *o, const struct saina_job *job, int w, __u32 round,
		    struct saina_core_err *err)
{
	struct saina_worker_req r = join_req(job, w, round);

	return saina_core_worker_set(o->core, &r, NULL, err);
}

static void join_all(struct owner *o, const struct saina_job *job)
{
	int w;

	for (w = 0; w < job->workers; w++)
		assert_int_equal(try_join(o, job, w, 0, NULL), 0);
}

static int set_state(struct owner *o, const struct saina_job *job, int w, int state)
{
	struct saina_worker_req r = {
		.has = BIT_OF(SAINA_A_WORKER_JOB_ID) | BIT_OF(SAINA_A_WORKER_ID) |
		       BIT_OF(SAINA_A_WORKER_STATE),
		.job_id = job->id,
		.id = w,
		.state = state,
	};

	return saina_core_worker_set(o->core, &r, NULL, NULL);
}

static int set_job_state(struct owner *o, const struct saina_job *job, int state,
			 struct saina_core_err *err)
{
	struct saina_job_req r = {
		.has = BIT_OF(SAINA_A_JOB_ID) | BIT_OF(SAINA_A_JOB_STATE),
		.id = job->id,
		.state = state,
	};

	return saina_core_job_set(o->core, &r, NULL, err);
}

static int set_policy(struct owner *o, const struct saina_job *job, const char *policy,
		      struct saina_core_err *err)
{
	struct saina_job_req r = { .has = BIT_OF(SAINA_A_JOB_ID), .id = job->id };

	with_policy(&r, policy);
	return saina_core_job_set(o->core, &r, NULL, err);
}

/* A refusal must come with the errno, the attribute and one whole sentence. */
static void assert_refused(int ret, int error, const struct saina_core_err *err, int attr)
{
	if (ret != error || err->attr != attr)
		print_error("got %d, attribute %u: %s\n", ret, err->attr, err->text);
	assert_int_equal(ret, error);
	assert_int_equal(err->attr, attr);
	assert_true(strlen(err->text) > 10);
	assert_non_null(memchr(err->text, 0, sizeof(err->text)));
	assert_true(strlen(err->text) < sizeof(err->text) - 1); /* not cut off */
}

static void refused(struct owner *o, const struct saina_job_req *r, int error, int attr)
{
	struct saina_core_err err = { 0 };
	int before = o->published;
	__u32 jobs, jobs_after;
	__u64 memory, memory_after;
	struct saina_limits l;

	saina_core_limits_get(o->core, &l, &jobs, &memory);
	assert_refused(saina_core_job_new(o->core, r, NULL, &err), error, &err, attr);
	saina_core_limits_get(o->core, &l, &jobs_after, &memory_after);
	assert_int_equal(o->published, before);
	assert_int_equal(jobs_after, jobs);
	assert_int_equal(memory_after, memory);
}

/* Jobs */

static void job_defaults(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "mnist", 8, NULL);

	assert_int_equal(job->id, 0);
	assert_int_equal(job->state, SAINA_JOB_FORMING);
	assert_int_equal(job->payload, 256);
	assert_int_equal(job->ring, 8);
	assert_int_equal(job->segments, 40);
	assert_int_equal(job->pool, 64); /* not more than the segments need */
	assert_int_equal(job->exponent, 20);
	assert_int_equal(job->elem, SAINA_ELEM_INT32);
	assert_string_equal(job->policy_text, "bsp");
	assert_int_equal(job->policy.seq, 1);
	assert_int_equal(job->active, 0);
	assert_true(job->dead_ms > job->heartbeat_ms);
	assert_int_equal(job->memory, saina_core_memory(10000, 256, 64, 8));
	assert_int_equal(o->published, 1);
	assert_int_equal(o->events, 1);
	assert_int_equal(o->event[0].type, SAINA_EV_JOB_STATE);
	assert_int_equal(o->event[0].b, SAINA_JOB_FORMING);
	assert_int_equal(o->note[o->notes - 1], SAINA_CMD_JOB_NTF);
}

static void job_needs_its_attributes(void **state)
{
	struct owner *o = *state;
	struct saina_job_req r = job_req("a", 1000, 4);

	r.has &= ~BIT_OF(SAINA_A_JOB_NAME);
	refused(o, &r, -EINVAL, SAINA_A_JOB_NAME);
	r = job_req("a", 1000, 4);
	r.has &= ~BIT_OF(SAINA_A_JOB_ELEMENTS);
	refused(o, &r, -EINVAL, SAINA_A_JOB_ELEMENTS);
	r = job_req("a", 1000, 4);
	r.has &= ~BIT_OF(SAINA_A_JOB_WORKERS);
	refused(o, &r, -EINVAL, SAINA_A_JOB_WORKERS);
}

static void job_names(void **state)
{
	static const char *const bad[] = { "", "a b", "a/b", "12", "0", "\xc3\xa4", "a\n", "x%s" };
	static const char *const good[] = { "a", "1a", "A.b_c-9",
					    "1234567890123456789012345678.01" };
	struct owner *o = *state;
	struct saina_job_req r;
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		r = job_req(bad[i], 1000, 4);
		refused(o, &r, -EINVAL, SAINA_A_JOB_NAME);
	}
	r = job_req("", 1000, 4);
	memset(r.name, 'x', sizeof(r.name)); /* not terminated */
	refused(o, &r, -EINVAL, SAINA_A_JOB_NAME);
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_string_equal(add(o, good[i], 4, NULL)->name, good[i]);
	r = job_req("a", 1000, 4);
	refused(o, &r, -EEXIST, SAINA_A_JOB_NAME);
}

static void job_ranges(void **state)
{
	struct owner *o = *state;
	struct saina_job_req r;

#define BAD(field, value, ATTR, error)                     \
	do {                                               \
		r = job_req("a", 1000, 4);                 \
		r.field = value;                           \
		r.has |= BIT_OF(SAINA_A_JOB_##ATTR);       \
		refused(o, &r, error, SAINA_A_JOB_##ATTR); \
	} while (0)
	BAD(workers, 0, WORKERS, -ERANGE);
	BAD(workers, 65, WORKERS, -ERANGE);
	BAD(elements, 0, ELEMENTS, -ERANGE);
	BAD(elements, (1ull << 22) * 256 + 1, ELEMENTS, -ERANGE);
	BAD(elements, ~0ull, ELEMENTS, -ERANGE);
	BAD(payload, 0, PAYLOAD, -EINVAL);
	BAD(payload, 65, PAYLOAD, -EINVAL);
	BAD(payload, 512, PAYLOAD, -EINVAL);
	BAD(payload, 4096, PAYLOAD, -EINVAL);
	BAD(pool, 0, POOL, -EINVAL);
	BAD(pool, 3, POOL, -EINVAL);
	BAD(pool, 8192, POOL, -EINVAL);
	BAD(ring, 1, RING, -EINVAL);
	BAD(ring, 6, RING, -EINVAL);
	BAD(ring, 128, RING, -EINVAL);
	BAD(elem, SAINA_ELEM_FLOAT32, ELEM_TYPE, -EOPNOTSUPP);
	BAD(elem, SAINA_ELEM_BFLOAT16, ELEM_TYPE, -EOPNOTSUPP);
	BAD(elem, 0, ELEM_TYPE, -EINVAL);
	BAD(elem, 9, ELEM_TYPE, -EINVAL);
	BAD(exponent, -127, EXPONENT, -ERANGE);
	BAD(heartbeat_ms, 9, HEARTBEAT_MS, -ERANGE);
	BAD(heartbeat_ms, 60001, HEARTBEAT_MS, -ERANGE);
	BAD(dead_ms, 0, DEAD_MS, -ERANGE);
	BAD(dead_ms, 10, DEAD_MS, -ERANGE);
	BAD(id, 256, ID, -ERANGE);
#undef BAD
	r = job_req("a", 1000, 4);
	r.has |= BIT_OF(SAINA_A_JOB_HEARTBEAT_MS) | BIT_OF(SAINA_A_JOB_DEAD_MS);
	r.heartbeat_ms = r.dead_ms = 500;
	refused(o, &r, -ERANGE, SAINA_A_JOB_DEAD_MS);
}

static void job_payload_sizes(void **state)
{
	static const int sizes[] = { 64, 128, 256, 352, 1024, 2048 };
	struct owner *o = *state;
	struct saina_job_req r;
	const struct saina_job *job;
	char name[16];
	unsigned int i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(name, sizeof(name), "p%d", sizes[i]);
		r = job_req(name, sizes[i] + 1, 1);
		r.has |= BIT_OF(SAINA_A_JOB_PAYLOAD);
		r.payload = sizes[i];
		assert_int_equal(saina_core_job_new(o->core, &r, &job, NULL), 0);
		assert_int_equal(job->segments, 2);
		assert_int_equal(job->pool, 2);
		assert_int_equal(o->last.sign_words, (sizes[i] + 63) / 64);
	}
}

static void job_times_follow_each_other(void **state)
{
	struct owner *o = *state;
	struct saina_job_req r = job_req("slow", 1000, 4);
	const struct saina_job *job;

	r.has |= BIT_OF(SAINA_A_JOB_HEARTBEAT_MS);
	r.heartbeat_ms = 60000;
	assert_int_equal(saina_core_job_new(o->core, &r, &job, NULL), 0);
	assert_int_equal(job->heartbeat_ms, 60000);
	assert_true(job->dead_ms > 60000);

	r = job_req("quick", 1000, 4);
	r.has |= BIT_OF(SAINA_A_JOB_DEAD_MS);
	r.dead_ms = 100;
	assert_int_equal(saina_core_job_new(o->core, &r, &job, NULL), 0);
	assert_int_equal(job->dead_ms, 100);
	assert_true(job->heartbeat_ms >= 10 && job->heartbeat_ms < 100);
}

static void job_numbers(void **state)
{
	struct owner *o = *state;
	struct saina_job_req r;
	char name[16];
	int i;

	add(o, "a", 1, NULL);
	assert_int_equal(add(o, "b", 1, NULL)->id, 1);
	r = job_req("c", 1000, 1);
	r.has |= BIT_OF(SAINA_A_JOB_ID);
	r.id = 1;
	refused(o, &r, -EEXIST, SAINA_A_JOB_ID);
	r = job_req("a", 0, 0);
	r.has = BIT_OF(SAINA_A_JOB_NAME);
	assert_int_equal(saina_core_job_del(o->core, &r, NULL), 0);
	assert_int_equal(o->gone, 1);
	assert_int_equal(add(o, "c", 1, NULL)->id, 0); /* the lowest free */
	for (i = 2; i < SAINA_JOBS_MAX; i++) {
		snprintf(name, sizeof(name), "j%d", i);
		assert_int_equal(add(o, name, 1, NULL)->id, i);
	}
	r = job_req("more", 1000, 1);
	refused(o, &r, -ENOSPC, SAINA_A_JOB_ID);
}

static void job_lookup(void **state)
{
	struct owner *o = *state;
	struct saina_core_err err = { 0 };
	struct saina_job_req r = { 0 };

	add(o, "a", 1, NULL);
	assert_non_null(saina_core_job_find(o->core, 0, 0, "a", NULL));
	assert_non_null(saina_core_job_find(o->core, 1, 0, NULL, NULL));
	assert_non_null(saina_core_job_find(o->core, 1, 0, "a", NULL));
	assert_null(saina_core_job_find(o->core, 1, 0, "b", &err));
	assert_int_equal(err.attr, SAINA_A_JOB_NAME);
	assert_null(saina_core_job_find(o->core, 1, 300, NULL, &err));
	assert_int_equal(err.attr, SAINA_A_JOB_ID);
	assert_null(saina_core_job_find(o->core, 0, 0, "zz", &err));
	assert_int_equal(saina_core_job_set(o->core, &r, NULL, &err), -EINVAL);
	assert_int_equal(saina_core_job_del(o->core, &r, &err), -EINVAL);
	r.has = BIT_OF(SAINA_A_JOB_ID);
	r.id = 7;
	assert_refused(saina_core_job_del(o->core, &r, &err), -ENOENT, &err, SAINA_A_JOB_ID);
	assert_null(saina_core_job_next(o->core, 1));
	assert_int_equal(saina_core_job_next(o->core, 0)->id, 0);
	assert_null(saina_core_job_next(o->core, 256));
}

static void job_set_only_what_can_change(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 4, NULL);
	struct saina_job_req r = job_req("a", 5, 4);
	struct saina_core_err err = { 0 };
	int published = o->published;

	r.has = BIT_OF(SAINA_A_JOB_NAME) | BIT_OF(SAINA_A_JOB_ELEMENTS);
	assert_refused(saina_core_job_set(o->core, &r, NULL, &err), -EINVAL, &err,
		       SAINA_A_JOB_ELEMENTS);
	r.has = BIT_OF(SAINA_A_JOB_NAME) | BIT_OF(SAINA_A_JOB_DEAD_MS);
	r.dead_ms = job->heartbeat_ms;
	/* the heartbeat follows */
	assert_int_equal(saina_core_job_set(o->core, &r, NULL, &err), 0);
	assert_true(job->heartbeat_ms < job->dead_ms);
	r.has = BIT_OF(SAINA_A_JOB_NAME) | BIT_OF(SAINA_A_JOB_TOKEN);
	memset(r.token, 'k', sizeof(r.token));
	assert_int_equal(saina_core_job_set(o->core, &r, NULL, &err), 0);
	assert_memory_equal(job->token, r.token, sizeof(r.token));
	/* the data path knows neither times nor tokens */
	assert_int_equal(o->published, published);
	assert_int_equal(o->note[o->notes - 1], SAINA_CMD_JOB_NTF);
}

static void job_publish_refused(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 2, NULL);
	struct saina_job_req r = job_req("b", 1000, 2);
	struct saina_core_err err = { 0 };
	struct saina_job before = *job;
	int notes = o->notes, events = o->events;

	o->refuse = -ENOMEM;
	refused(o, &r, -ENOMEM, 0);
	assert_int_equal(try_join(o, job, 0, 0, &err), -ENOMEM);
	assert_int_equal(set_policy(o, job, "fastest:k=1", &err), -ENOMEM);
	assert_int_equal(set_job_state(o, job, SAINA_JOB_STOPPED, &err), -ENOMEM);
	r.has = BIT_OF(SAINA_A_JOB_NAME);
	snprintf(r.name, sizeof(r.name), "a");
	assert_int_equal(saina_core_job_del(o->core, &r, &err), -ENOMEM);
	assert_memory_equal(&before, job, sizeof(before));
	assert_int_equal(o->notes, notes);
	assert_int_equal(o->events, events);
	o->refuse = 0;
	assert_int_equal(try_join(o, job, 0, 0, NULL), 0);
	assert_int_equal(add(o, "b", 1, NULL)->generation, before.generation + 1);
}

/* Limits */

static void limits(void **state)
{
	struct owner *o = *state;
	struct saina_limits l = { .jobs = 2, .memory_job = 1 << 20, .memory = 3 << 19 };
	struct saina_limits got;
	struct saina_core_err err = { 0 };
	struct saina_job_req r;
	__u32 jobs;
	__u64 memory;

	assert_int_equal(saina_core_limits_set(o->core, &l, &err), 0);
	r = job_req("big", 1000000, 2);
	refused(o, &r, -EDQUOT, SAINA_A_JOB_ELEMENTS);
	r = job_req("a", 24000, 2);
	assert_int_equal(saina_core_job_new(o->core, &r, NULL, &err), 0);
	saina_core_limits_get(o->core, &got, &jobs, &memory);
	assert_int_equal(jobs, 1);
	assert_int_equal(memory, saina_core_memory(24000, 256, 128, 8));
	assert_true(memory > l.memory / 2 && memory <= l.memory_job);
	r = job_req("b", 24000, 2);
	refused(o, &r, -EDQUOT, SAINA_A_JOB_ELEMENTS); /* all together */
	add(o, "b", 2, NULL);
	r = job_req("c", 100, 2);
	refused(o, &r, -EDQUOT, 0); /* number of jobs */

	l.jobs = 1;
	assert_refused(saina_core_limits_set(o->core, &l, &err), -EBUSY, &err, SAINA_A_LIMITS_JOBS);
	l.jobs = 0;
	assert_refused(saina_core_limits_set(o->core, &l, &err), -ERANGE, &err,
		       SAINA_A_LIMITS_JOBS);
	l.jobs = 257;
	assert_refused(saina_core_limits_set(o->core, &l, &err), -ERANGE, &err,
		       SAINA_A_LIMITS_JOBS);
	l.jobs = 2;
	l.memory_job = 1000;
	assert_refused(saina_core_limits_set(o->core, &l, &err), -EBUSY, &err,
		       SAINA_A_LIMITS_MEMORY_JOB);
	l.memory_job = 0;
	assert_refused(saina_core_limits_set(o->core, &l, &err), -ERANGE, &err,
		       SAINA_A_LIMITS_MEMORY_JOB);
	l.memory_job = 1 << 20;
	l.memory = 1 << 10;
	assert_refused(saina_core_limits_set(o->core, &l, &err), -ERANGE, &err,
		       SAINA_A_LIMITS_MEMORY);
	l.memory = 1 << 20;
	assert_refused(saina_core_limits_set(o->core, &l, &err), -EBUSY, &err,
		       SAINA_A_LIMITS_MEMORY);
	r = job_req("a", 0, 0);
	r.has = BIT_OF(SAINA_A_JOB_NAME);
	assert_int_equal(saina_core_job_del(o->core, &r, NULL), 0);
	assert_int_equal(saina_core_limits_set(o->core, &l, &err), 0);
	l.jobs = 300;
	assert_null(saina_core_new(&ops, o, &l));
}

/* The largest job there can be must not overflow the sum. */
static void memory_does_not_wrap(void **state)
{
	__u64 most = saina_core_memory((1ull << 22) * 2048, 2048, 4096, 64);

	assert_true(most > (1ull << 22) * 64 * 2048 * 4);
	assert_true(most < 1ull << 42);
	assert_true(saina_core_memory(1, 64, 1, 2) >= sizeof(struct saina_job_conf));
}

static void many_jobs_at_once(void **state)
{
	struct owner *o = *state;
	__u64 used[SAINA_LOCKS / 64] = { 0 };
	char name[16];
	int i, l;

	for (i = 0; i < 64; i++) {
		snprintf(name, sizeof(name), "job%d", i);
		add(o, name, 64, NULL);
		/* 64 slots each: nobody shares a lock */
		for (l = 0; l < 64; l++) {
			__u32 lock = (o->last.lock_base + l) & (SAINA_LOCKS - 1);

			assert_false(used[lock / 64] & 1ull << (lock % 64));
			used[lock / 64] |= 1ull << (lock % 64);
		}
	}
}

/* Workers and the rules of life */

static void snapshot_of_a_job(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 3, "fastest:k=2,late=drop");
	struct saina_job_conf *c = &o->last;

	assert_int_equal(try_join(o, job, 1, 0, NULL), 0);
	assert_int_equal(c->job, 0);
	assert_int_equal(c->generation, job->generation);
	assert_int_equal(c->state, SAINA_JOB_FORMING);
	assert_int_equal(c->payload, 256);
	assert_int_equal(c->segments, 40);
	assert_int_equal(c->pool, 64);
	assert_int_equal(c->ring, 8);
	assert_int_equal(c->active, 2);
	assert_int_equal(c->relay, 0);
	assert_int_equal(c->group, htonl(0xefbe0000));
	assert_int_equal(c->policy.mode, SAINA_POLICY_FASTEST);
	assert_int_equal(c->policy.late, SAINA_LATE_DROP);
	assert_int_equal(c->policy.k, 2);
	assert_int_equal(c->policy.seq, 1);
	assert_int_equal(c->worker[0].flags, 0);
	assert_int_equal(c->worker[1].flags, SAINA_BIND_BOUND);
	assert_int_equal(c->worker[1].ifindex, 11);
	assert_int_equal(c->worker[1].ip, htonl(0x0a000002));
	assert_int_equal(c->worker[1].udp_port, htons(40001));
	assert_int_equal(c->worker[1].session, 1001);
	assert_int_equal(c->worker[1].mac[5], 1);
}

static void runs_when_all_are_there(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 3, NULL);

	assert_int_equal(try_join(o, job, 2, 0, NULL), 0);
	assert_int_equal(try_join(o, job, 0, 0, NULL), 0);
	assert_int_equal(job->state, SAINA_JOB_FORMING);
	assert_int_equal(o->last.state, SAINA_JOB_FORMING);
	assert_int_equal(try_join(o, job, 1, 0, NULL), 0);
	assert_int_equal(job->state, SAINA_JOB_RUNNING);
	assert_int_equal(o->last.state, SAINA_JOB_RUNNING);
	assert_int_equal(o->last.active, 7);
	assert_int_equal(o->event[o->events - 2].type, SAINA_EV_WORKER_JOINED);
	assert_int_equal(o->event[o->events - 1].type, SAINA_EV_JOB_STATE);
	assert_int_equal(o->event[o->events - 1].a, SAINA_JOB_FORMING);
	assert_int_equal(o->event[o->events - 1].b, SAINA_JOB_RUNNING);
	assert_int_equal(o->note[o->notes - 2], SAINA_CMD_WORKER_NTF);
	assert_int_equal(o->note[o->notes - 1], SAINA_CMD_JOB_NTF);
}

static void runs_at_the_operators_word(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 3, NULL);
	struct saina_core_err err = { 0 };

	assert_refused(set_job_state(o, job, SAINA_JOB_RUNNING, &err), -ENOTCONN, &err,
		       SAINA_A_JOB_STATE);
	assert_int_equal(try_join(o, job, 0, 0, NULL), 0);
	assert_int_equal(set_job_state(o, job, SAINA_JOB_RUNNING, &err), 0);
	assert_int_equal(o->last.state, SAINA_JOB_RUNNING);
	assert_refused(set_job_state(o, job, SAINA_JOB_FORMING, &err), -EBUSY, &err,
		       SAINA_A_JOB_STATE);
	assert_refused(set_job_state(o, job, 9, &err), -EINVAL, &err, SAINA_A_JOB_STATE);
	assert_int_equal(try_join(o, job, 1, 0, NULL), 0); /* late comers are welcome */
	assert_int_equal(o->last.active, 3);
}

static void first_round_is_the_largest(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 3, NULL);
	__u32 generation = job->generation;

	assert_int_equal(try_join(o, job, 0, 5, NULL), 0);
	assert_int_equal(o->last_first_round, 5);
	assert_int_equal(job->generation, generation + 1); /* or the data path would not see it */
	assert_int_equal(try_join(o, job, 1, 3, NULL), 0);
	assert_int_equal(job->first_round, 5);
	assert_int_equal(job->generation, generation + 1);
	assert_int_equal(try_join(o, job, 2, 9, NULL), 0);
	assert_int_equal(job->state, SAINA_JOB_RUNNING);
	assert_int_equal(o->last_first_round, 9);
	assert_int_equal(job->generation, generation + 2);
	/* a running job does not ask anybody where it is */
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_DEAD), 0);
	assert_int_equal(try_join(o, job, 0, 100, NULL), 0);
	assert_int_equal(job->first_round, 9);
	assert_int_equal(job->generation, generation + 2);
}

static void death_and_return(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 3, NULL);
	__u32 generation = job->generation;

	join_all(o, job);
	assert_int_equal(set_state(o, job, 1, SAINA_WORKER_DEAD), 0);
	assert_int_equal(o->last.active, 5);
	assert_int_equal(o->last.state, SAINA_JOB_RUNNING);
	assert_int_equal(o->last.worker[1].flags, SAINA_BIND_BOUND); /* counted as inactive */
	assert_int_equal(o->event[o->events - 1].type, SAINA_EV_WORKER_DEAD);
	assert_int_equal(o->event[o->events - 1].worker, 1);
	assert_int_equal(set_state(o, job, 1, SAINA_WORKER_DEAD), -ENOTCONN);
	assert_int_equal(set_state(o, job, 1, SAINA_WORKER_ALIVE), -ENOTCONN); /* must join */
	assert_int_equal(try_join(o, job, 1, 0, NULL), 0);
	assert_int_equal(o->last.active, 7);
	assert_int_equal(job->generation, generation);
}

static void last_one_out(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 2, NULL);
	__u32 generation;

	assert_int_equal(try_join(o, job, 0, 7, NULL), 0);
	assert_int_equal(try_join(o, job, 1, 7, NULL), 0);
	generation = job->generation;
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_LEFT), 0);
	assert_int_equal(job->state, SAINA_JOB_RUNNING);
	assert_int_equal(o->event[o->events - 1].type, SAINA_EV_WORKER_LEFT);
	assert_int_equal(set_state(o, job, 1, SAINA_WORKER_DEAD), 0);
	assert_int_equal(job->state, SAINA_JOB_FORMING);
	assert_int_equal(job->first_round, 0);
	assert_int_equal(job->generation, generation + 1);
	assert_int_equal(o->last.generation, generation + 1);
	assert_int_equal(o->last.active, 0);
	join_all(o, job);
	assert_int_equal(job->state, SAINA_JOB_RUNNING);
	assert_int_equal(job->generation, generation + 1);
}

static void stopped(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 2, NULL);
	struct saina_core_err err = { 0 };
	__u32 generation = job->generation;

	assert_int_equal(try_join(o, job, 0, 0, NULL), 0);
	assert_int_equal(set_job_state(o, job, SAINA_JOB_STOPPED, NULL), 0);
	assert_int_equal(o->last.state, SAINA_JOB_STOPPED);
	assert_refused(try_join(o, job, 1, 0, &err), -ESHUTDOWN, &err, SAINA_A_WORKER_JOB_NAME);
	assert_int_equal(set_job_state(o, job, SAINA_JOB_FORMING, NULL), 0);
	assert_int_equal(try_join(o, job, 1, 0, NULL), 0);
	assert_int_equal(job->state, SAINA_JOB_RUNNING);
	assert_int_equal(set_job_state(o, job, SAINA_JOB_STOPPED, NULL), 0);
	/* forming lifts it, and all are there */
	assert_int_equal(set_job_state(o, job, SAINA_JOB_FORMING, NULL), 0);
	assert_int_equal(job->state, SAINA_JOB_RUNNING);
	assert_int_equal(job->generation, generation);
	/* the last to leave a stopped job leaves it stopped, and afresh */
	assert_int_equal(set_job_state(o, job, SAINA_JOB_STOPPED, NULL), 0);
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_LEFT), 0);
	assert_int_equal(set_state(o, job, 1, SAINA_WORKER_LEFT), 0);
	assert_int_equal(job->state, SAINA_JOB_STOPPED);
	assert_int_equal(job->generation, generation + 1);
	assert_int_equal(set_job_state(o, job, SAINA_JOB_FORMING, NULL), 0);
	join_all(o, job);
	assert_int_equal(o->last.state, SAINA_JOB_RUNNING);
}

static void slow_is_alive(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 2, NULL);
	int published;

	join_all(o, job);
	published = o->published;
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_SLOW), 0);
	assert_int_equal(job->active, 3);
	assert_int_equal(o->published, published); /* nothing the data path could tell */
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_ALIVE), 0);
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_SLOW), 0);
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_DEAD), 0);
	assert_int_equal(o->last.active, 2);
}

static void relay(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 2, NULL);
	struct saina_worker_req r = {
		.has = BIT_OF(SAINA_A_WORKER_JOB_ID) | BIT_OF(SAINA_A_WORKER_ID) |
		       BIT_OF(SAINA_A_WORKER_RELAY),
		.relay = 1,
	};
	struct saina_core_err err = { 0 };

	assert_refused(saina_core_worker_set(o->core, &r, NULL, &err), -ENOTCONN, &err,
		       SAINA_A_WORKER_ID);
	join_all(o, job);
	assert_int_equal(saina_core_worker_set(o->core, &r, NULL, &err), 0);
	assert_int_equal(o->last.relay, 1);
	assert_int_equal(o->last.worker[0].flags, SAINA_BIND_BOUND | SAINA_BIND_RELAY);
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_DEAD), 0);
	assert_int_equal(o->last.relay, 0); /* of live workers only */
	assert_int_equal(try_join(o, job, 0, 0, NULL), 0);
	assert_int_equal(o->last.relay, 0); /* a new life, a new probe */
	r.relay = 2;
	assert_refused(saina_core_worker_set(o->core, &r, NULL, &err), -ERANGE, &err,
		       SAINA_A_WORKER_RELAY);
}

static void join_refusals(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 2, NULL);
	struct saina_core_err err = { 0 };
	struct saina_worker_req r;
	int attr;

	assert_refused(try_join(o, job, 2, 0, &err), -ERANGE, &err, SAINA_A_WORKER_ID);
	for (attr = SAINA_A_WORKER_IFINDEX; attr <= SAINA_A_WORKER_SESSION; attr++) {
		if (attr == SAINA_A_WORKER_IFNAME)
			continue;
		r = join_req(job, 0, 0);
		r.has &= ~BIT_OF(attr);
		assert_refused(saina_core_worker_set(o->core, &r, NULL, &err), -EINVAL, &err, attr);
	}
	r = join_req(job, 0, 0);
	r.session = 0;
	assert_refused(saina_core_worker_set(o->core, &r, NULL, &err), -EINVAL, &err,
		       SAINA_A_WORKER_IFINDEX);
	r = join_req(job, 0, 0);
	r.mac[0] = 1; /* multicast */
	assert_refused(saina_core_worker_set(o->core, &r, NULL, &err), -EINVAL, &err,
		       SAINA_A_WORKER_IFINDEX);
	r = join_req(job, 0, 0);
	r.has |= BIT_OF(SAINA_A_WORKER_STATE);
	r.state = SAINA_WORKER_DEAD;
	assert_refused(saina_core_worker_set(o->core, &r, NULL, &err), -EINVAL, &err,
		       SAINA_A_WORKER_STATE);
	r = join_req(job, 0, 0);
	r.job_id = 5;
	assert_refused(saina_core_worker_set(o->core, &r, NULL, &err), -ENOENT, &err,
		       SAINA_A_WORKER_JOB_ID);
	r.has &= ~(BIT_OF(SAINA_A_WORKER_JOB_ID) | BIT_OF(SAINA_A_WORKER_ID));
	assert_refused(saina_core_worker_set(o->core, &r, NULL, &err), -EINVAL, &err,
		       SAINA_A_WORKER_JOB_NAME);
	r.has |= BIT_OF(SAINA_A_WORKER_JOB_NAME);
	snprintf(r.job_name, sizeof(r.job_name), "a");
	assert_refused(saina_core_worker_set(o->core, &r, NULL, &err), -EINVAL, &err,
		       SAINA_A_WORKER_ID);
	assert_int_equal(job->active, 0);

	assert_int_equal(try_join(o, job, 0, 0, NULL), 0);
	assert_refused(try_join(o, job, 0, 0, &err), -EEXIST, &err, SAINA_A_WORKER_ID);
	r = join_req(job, 1, 0);
	r.ip = htonl(0x0a000001);
	r.udp_port = htons(40000);
	assert_refused(saina_core_worker_set(o->core, &r, NULL, &err), -EADDRINUSE, &err,
		       SAINA_A_WORKER_UDP_PORT);
	assert_int_equal(set_state(o, job, 0, 9), -EINVAL);
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_ABSENT), -EINVAL);
}

static void worker_del(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 2, NULL);
	struct saina_worker_req r = {
		.has = BIT_OF(SAINA_A_WORKER_JOB_ID) | BIT_OF(SAINA_A_WORKER_ID),
	};
	struct saina_core_err err = { 0 };

	assert_refused(saina_core_worker_del(o->core, &r, &err), -ENOENT, &err, SAINA_A_WORKER_ID);
	join_all(o, job);
	assert_int_equal(saina_core_worker_del(o->core, &r, &err), 0);
	assert_int_equal(o->last.worker[0].flags, 0);
	assert_int_equal(o->last.active, 2);
	assert_int_equal(job->worker[0].state, SAINA_WORKER_ABSENT);
	assert_int_equal(o->event[o->events - 1].type, SAINA_EV_WORKER_LEFT);
}

static void restore(void **state)
{
	struct owner *o = *state;
	struct saina_job copy = *add(o, "a", 2, "sfcd:k0=1,cth=k"), bad;
	struct saina_core_err err = { 0 };
	struct saina_job_req r = job_req("a", 0, 0);
	const struct saina_job *job;
	int events;

	join_all(o, saina_core_job_next(o->core, 0));
	assert_int_equal(set_policy(o, &copy, "fastest:k=1", NULL), 0);
	copy = *saina_core_job_next(o->core, 0);
	assert_refused(saina_core_job_restore(o->core, &copy, NULL, &err), -EEXIST, &err,
		       SAINA_A_JOB_NAME);
	r.has = BIT_OF(SAINA_A_JOB_NAME);
	assert_int_equal(saina_core_job_del(o->core, &r, NULL), 0);

	bad = copy;
	bad.generation = 0;
	assert_refused(saina_core_job_restore(o->core, &bad, NULL, &err), -EINVAL, &err, 0);
	bad = copy;
	bad.workers = 65;
	assert_refused(saina_core_job_restore(o->core, &bad, NULL, &err), -EINVAL, &err, 0);
	bad = copy;
	snprintf(bad.policy_text, sizeof(bad.policy_text), "fastest:k=3");
	assert_refused(saina_core_job_restore(o->core, &bad, NULL, &err), -ERANGE, &err,
		       SAINA_A_JOB_POLICY);

	events = o->events;
	copy.generation = 41;
	assert_int_equal(saina_core_job_restore(o->core, &copy, &job, &err), 0);
	assert_int_equal(o->events, events); /* nothing happened */
	assert_int_equal(o->last.generation, 41);
	assert_int_equal(o->last.active, 3);
	assert_int_equal(o->last.state, SAINA_JOB_RUNNING);
	assert_int_equal(o->last.policy.seq, 2);
	assert_int_equal(job->worker[1].bind.session, 1001);
	assert_true(add(o, "new", 1, NULL)->generation > 41);
}

/* Policies */

static void policy_change(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 8, "fastest:k=6");
	struct saina_core_err err = { 0 };
	int published = o->published;

	assert_int_equal(set_policy(o, job, "fastest:k=6,late=residual", &err), 0);
	assert_int_equal(job->policy.seq, 1); /* the same in other words */
	assert_int_equal(o->published, published);
	assert_int_equal(set_policy(o, job, "sfcd", &err), 0);
	assert_int_equal(o->last.policy.seq, 2);
	assert_int_equal(o->last.policy.mode, SAINA_POLICY_SFCD);
	assert_refused(set_policy(o, job, "fastest:k=9", &err), -ERANGE, &err, SAINA_A_JOB_POLICY);
	assert_int_equal(job->policy.seq, 2);
}

static void policy_canonical(void **state)
{
	static const struct {
		const char *text, *canonical;
	} good[] = {
		{ "bsp", "bsp" },
		{ "fastest:k=1", "fastest:k=1" },
		{ "fastest:k=64,late=residual", "fastest:k=64" },
		{ "fastest:late=drop,k=6", "fastest:k=6,late=drop" },
		{ "sfcd", "sfcd:k0=1,kmin=1,sth=0.5,cth=5,stride=32" },
		{ "sfcd:k0=1,sth=0.5,cth=5", "sfcd:k0=1,kmin=1,sth=0.5,cth=5,stride=32" },
		{ "sfcd:k0=2,kmin=2,kmax=8,sth=0.125,cth=k,stride=1,late=drop",
		  "sfcd:k0=2,kmin=2,kmax=8,sth=0.125,cth=k,stride=1,late=drop" },
		{ "sfcd:parity", "sfcd:k0=1,kmin=1,sth=0.5,cth=5,stride=32,parity" },
		{ "sfcd:sth=1", "sfcd:k0=1,kmin=1,sth=1,cth=5,stride=32" },
		{ "sfcd:sth=0", "sfcd:k0=1,kmin=1,sth=0,cth=5,stride=32" },
		{ "sfcd:sth=0.05,cth=65535", "sfcd:k0=1,kmin=1,sth=0.05,cth=65535,stride=32" },
		{ "sfcd:cth=k,sth=0.500", "sfcd:k0=1,kmin=1,sth=0.5,cth=k,stride=32" },
		{ "sfcd:k0=64,kmin=64,kmax=64,sth=0.999,cth=65535,stride=32,late=drop,parity",
		  "sfcd:k0=64,kmin=64,kmax=64,sth=0.999,cth=65535,stride=32,late=drop,parity" },
	};
	char text[96];
	struct saina_core_err err;
	struct saina_policy p, q;
	unsigned int i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (saina_policy_parse(good[i].text, 64, &p, &err))
			fail_msg("%s: %s", good[i].text, err.text);
		saina_policy_format(&p, text, sizeof(text));
		assert_string_equal(text, good[i].canonical);
		assert_int_equal(saina_policy_parse(text, 64, &q, NULL), 0);
		assert_memory_equal(&p, &q, sizeof(p));
	}
	assert_int_equal(saina_policy_parse("sfcd:sth=0.5,cth=5", 8, &p, NULL), 0);
	assert_int_equal(p.s_th, 500);
	assert_int_equal(p.c_th, 5);
	assert_int_equal(p.k_max, 0);
	assert_int_equal(p.late, SAINA_LATE_RESIDUAL);
}

static void policy_refusals(void **state)
{
	static const struct {
		const char *text, *names; /* what the sentence must name */
	} bad[] = {
		{ "", "known are bsp" },
		{ "BSP", "'BSP'" },
		{ "bsp:", "bsp takes no settings" },
		{ "bsp:k=3", "bsp takes no settings" },
		{ "asp", "'asp'" },
		{ "fastest", "fastest needs k" },
		{ "fastest:", "empty setting" },
		{ "fastest:k", "'k'" },
		{ "fastest:k=", "must be 1..8" },
		{ "fastest:k=0", "must be 1..8" },
		{ "fastest:k=9", "must be 1..8" },
		{ "fastest:k=-1", "must be 1..8" },
		{ "fastest:k=2x", "'k=2x'" },
		{ "fastest:k= 2", "must be 1..8" },
		{ "fastest:k=4294967298", "must be 1..8" },
		{ "fastest:k=2,k=3", "'k' is given twice" },
		{ "fastest:k=2,", "empty setting" },
		{ "fastest:k=2,,late=drop", "empty setting" },
		{ "fastest:k=2,late=fold", "residual or drop" },
		{ "fastest:k=2,late", "'late'" },
		{ "fastest:k=2,sth=0.5", "'sth'" },
		{ "fastest:k=2,parity", "'parity'" },
		{ "fastest:k=2:late=drop", "must be 1..8" },
		{ "sfcd:k=3", "'k'" },
		{ "sfcd:k0=0", "must be 1..8" },
		{ "sfcd:kmin=9", "must be 1..8" },
		{ "sfcd:kmax=0", "must be 1..8" },
		{ "sfcd:k0=1,kmin=2", "below kmin=2" },
		{ "sfcd:k0=5,kmax=4", "above kmax=4" },
		{ "sfcd:sth=1.001", "0..1" },
		{ "sfcd:sth=2", "0..1" },
		{ "sfcd:sth=.5", "0..1" },
		{ "sfcd:sth=0.", "0..1" },
		{ "sfcd:sth=0.5555", "three decimals" },
		{ "sfcd:sth=-0.5", "0..1" },
		{ "sfcd:cth=0", "1..65535" },
		{ "sfcd:cth=65536", "1..65535" },
		{ "sfcd:cth=K", "1..65535" },
		{ "sfcd:stride=3", "1, 2, 4" },
		{ "sfcd:stride=128", "1, 2, 4" },
		{ "sfcd:parity=1", "'parity'" },
		{ "sfcd:parity,stride=16", "every 32nd" },
		{ "sfcd:parity,parity", "given twice" },
		{ "sfcd:aVeryLongWordThatNobodyWouldEverTypeInEarnestButAFuzzerMight=1",
		  "takes k0=" },
	};
	struct saina_core_err err;
	struct saina_policy p, untouched;
	unsigned int i;
	int ret;

	memset(&p, 0x5a, sizeof(p));
	untouched = p;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(&err, 0, sizeof(err));
		ret = saina_policy_parse(bad[i].text, 8, &p, &err);
		if (ret >= 0 || !strstr(err.text, bad[i].names))
			fail_msg("'%s': %d, '%s' lacks '%s'", bad[i].text, ret, err.text,
				 bad[i].names);
		assert_int_equal(err.attr, SAINA_A_JOB_POLICY);
		assert_true(strlen(err.text) < sizeof(err.text) - 1);
		assert_memory_equal(&p, &untouched, sizeof(p));
	}
}

/* A sequence that is the same on every machine. */
static uint64_t next(uint64_t *s)
{
	uint64_t z = (*s += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* Words of the grammar strung together at random, and random bytes: nothing
 * crashes, and what is accepted is within bounds and survives formatting. */
static void policy_fuzz(void **state)
{
	static const char *const words[] = {
		"bsp",	    "fastest",	  "sfcd",   ":",       ",",	 "=",	   "k",
		"k0",	    "kmin",	  "kmax",   "sth",     "cth",	 "stride", "late",
		"residual", "drop",	  "parity", "0",       "1",	 "2",	   "5",
		"8",	    "0.5",	  "0.",	    "1.0",     "32",	 "64",	   "65536",
		"k=3",	    ",late=drop", "k0=2",   ",kmax=7", ",cth=k", "sfcd:",  "fastest:k=",
		"sfcd:k0=", ",sth=0.",	  "",
	};
	const unsigned int n = sizeof(words) / sizeof(words[0]);
	char text[400], again[96];
	struct saina_policy p, q;
	struct saina_core_err err;
	int i, j, len, workers, accepted = 0;
	uint64_t seed = 1;

	for (i = 0; i < 300000; i++) {
		text[0] = 0;
		len = next(&seed) % 8;
		for (j = 0; j < len; j++)
			strcat(text, words[next(&seed) % n]);
		if (i % 7 == 0 && text[0])
			text[next(&seed) % strlen(text)] = 1 + next(&seed) % 255;
		workers = 1 + next(&seed) % 64;
		if (saina_policy_parse(text, workers, &p, &err)) {
			assert_non_null(memchr(err.text, 0, sizeof(err.text)));
			assert_true(err.text[0]);
			continue;
		}
		accepted++;
		assert_in_range(p.mode, SAINA_POLICY_BSP, SAINA_POLICY_SFCD);
		assert_in_range(p.late, SAINA_LATE_RESIDUAL, SAINA_LATE_DROP);
		assert_true(p.k <= workers && p.k_min <= workers && p.k_max <= workers);
		assert_true(p.mode == SAINA_POLICY_BSP || p.k);
		assert_true(p.s_th <= 1000);
		saina_policy_format(&p, again, sizeof(again));
		assert_true(strlen(again) < sizeof(again) - 1);
		assert_int_equal(saina_policy_parse(again, workers, &q, NULL), 0);
		assert_memory_equal(&p, &q, sizeof(p));
	}
	assert_true(accepted > 1000);
}

/*
 * Random calls against the rules of life: whatever happens, what is published
 * last is what the table says, and the invariants hold.
 */
static void life_fuzz(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 5, "fastest:k=3");
	uint64_t seed = 2;
	__u32 generation, seq;
	int i, w, s;

	for (i = 0; i < 100000; i++) {
		generation = job->generation;
		seq = job->policy.seq;
		w = next(&seed) % 5;
		o->refuse = next(&seed) % 16 ? 0 : -EIO;
		o->notes = o->events = 0;
		switch (next(&seed) % 6) {
		case 0:
		case 1:
		case 2:
			try_join(o, job, w, next(&seed) % 4 ? 0 : next(&seed) % 100, NULL);
			break;
		case 3:
			set_state(o, job, w, 1 + next(&seed) % 4);
			break;
		case 4:
			set_job_state(o, job, 1 + next(&seed) % 3, NULL);
			break;
		case 5:
			set_policy(o, job, next(&seed) % 2 ? "bsp" : "sfcd", NULL);
			break;
		}
		assert_int_equal(o->last.generation, job->generation);
		assert_int_equal(o->last.active, job->active);
		assert_int_equal(o->last.state, job->state);
		assert_int_equal(o->last.policy.seq, job->policy.seq);
		assert_int_equal(o->last_first_round, job->first_round);
		assert_true(job->generation - generation <= 1 && job->policy.seq - seq <= 1);
		for (w = 0; w < 5; w++) {
			s = job->worker[w].state;
			assert_int_equal(!!(job->active & 1 << w),
					 s == SAINA_WORKER_ALIVE || s == SAINA_WORKER_SLOW);
		}
		if (job->state == SAINA_JOB_RUNNING)
			assert_true(job->active);
		if (job->state == SAINA_JOB_FORMING)
			assert_int_not_equal(job->active, 31);
		if (!job->active)
			assert_int_equal(job->first_round, 0);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(job_defaults),
		TEST(job_needs_its_attributes),
		TEST(job_names),
		TEST(job_ranges),
		TEST(job_payload_sizes),
		TEST(job_times_follow_each_other),
		TEST(job_numbers),
		TEST(job_lookup),
		TEST(job_set_only_what_can_change),
		TEST(job_publish_refused),
		TEST(limits),
		TEST(memory_does_not_wrap),
		TEST(many_jobs_at_once),
		TEST(snapshot_of_a_job),
		TEST(runs_when_all_are_there),
		TEST(runs_at_the_operators_word),
		TEST(first_round_is_the_largest),
		TEST(death_and_return),
		TEST(last_one_out),
		TEST(stopped),
		TEST(slow_is_alive),
		TEST(relay),
		TEST(join_refusals),
		TEST(worker_del),
		TEST(restore),
		TEST(policy_change),
		TEST(policy_canonical),
		TEST(policy_refusals),
		TEST(policy_fuzz),
		TEST(life_fuzz),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
