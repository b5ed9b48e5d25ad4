// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The job core by its public interface: jobs and limits, refusals with their
 * errno and guilty attribute.
 */
#include "jobcore_owner.h"

/* Bytes of the maps of a job with int32, by the table of architecture.rst, section 5. */
static __u64 memory_of(__u64 elements, __u32 payload, __u32 pool, __u32 ring)
{
	__u64 segments = (elements + payload - 1) / payload, slot = 64 + 4 * payload;
	__u64 signs = 8 * ((payload + 63) / 64), counted = 256;

	return (pool + segments * ring) * slot + segments * (counted + signs) + sizeof(struct saina_job_conf);
}

static void refused(struct owner *o, const struct saina_job_attrs *r, int error, int attr)
{
	int before = o->published;
	__u32 jobs, jobs_after;
	__u64 memory, memory_after;
	struct saina_limits l;

	saina_core_limits_get(o->core, &l, &jobs, &memory);
	assert_refused(o, job_new(o, r, NULL), error, attr);
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
	assert_int_equal(job->payload, 352);
	assert_int_equal(job->ring, 8);
	assert_int_equal(job->segments, 29);
	assert_int_equal(job->pool, 32); /* not more than the segments need */
	assert_int_equal(job->exponent, 20);
	assert_int_equal(job->elem, SAINA_ELEM_INT32);
	assert_int_equal(job->policy.mode, SAINA_POLICY_BSP);
	assert_int_equal(job->policy.seq, 1);
	assert_int_equal(job->active, 0);
	assert_true(job->dead_ms > job->heartbeat_ms);
	assert_int_equal(job->memory, memory_of(10000, 352, 32, 8));
	assert_int_equal(o->published, 1);
	assert_int_equal(o->events, 1);
	assert_int_equal(o->event[0].type, SAINA_EV_JOB_STATE);
	assert_int_equal(o->event[0].b, SAINA_JOB_FORMING);
	assert_int_equal(o->note[o->notes - 1], SAINA_CMD_JOB_NTF);
}

static int join_with(struct owner *o, const struct saina_job *job, int w, __u64 elements)
{
	struct saina_worker_attrs r = join_req(job, w, 0);

	r.elements = elements;
	r.has |= BIT_OF(SAINA_A_WORKER_ELEMENTS);
	return worker_set(o, &r);
}

static void size_of_the_first_worker(void **state)
{
	struct owner *o = *state;
	struct saina_job_attrs r = job_req("a", 0, 2);
	struct saina_limits l;
	const struct saina_job *job;
	__u64 memory;
	__u32 jobs, generation;

	r.has &= ~BIT_OF(SAINA_A_JOB_ELEMENTS);
	r.has |= BIT_OF(SAINA_A_JOB_ELEMENTS_AUTO);
	r.elements_auto = 2;
	refused(o, &r, -EINVAL, SAINA_A_JOB_ELEMENTS_AUTO);
	r.elements_auto = 1;
	assert_int_equal(job_new(o, &r, &job), 0);
	assert_int_equal(job->segments, 0);
	assert_int_equal(job->memory, 0);
	assert_int_equal(job->pool, 256);

	assert_refused(o, try_join(o, job, 0, 0), -EINVAL, SAINA_A_WORKER_ELEMENTS);
	assert_refused(o, join_with(o, job, 0, 0), -EINVAL, SAINA_A_WORKER_ELEMENTS);
	assert_refused(o, join_with(o, job, 0, (1ull << 22) * 352 + 1), -ERANGE,
		       SAINA_A_WORKER_ELEMENTS);
	assert_refused(o, join_with(o, job, 0, 1ull << 30), -EDQUOT, SAINA_A_WORKER_ELEMENTS);
	assert_int_equal(job->active, 0);
	assert_int_equal(job->segments, 0);

	generation = job->generation;
	assert_int_equal(join_with(o, job, 0, 10000), 0);
	assert_int_equal(o->last.segments, 29);
	assert_true(job->generation > generation);
	saina_core_limits_get(o->core, &l, &jobs, &memory);
	assert_int_equal(memory, memory_of(10000, 352, 256, 8));
	assert_refused(o, join_with(o, job, 1, 10001), -EMSGSIZE, SAINA_A_WORKER_ELEMENTS);
	assert_refused(o, join_with(o, job, 1, 9999), -EMSGSIZE, SAINA_A_WORKER_ELEMENTS);
	assert_int_equal(try_join(o, job, 1, 0), 0);

	/* the size of those who are gone stays until somebody has another */
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_STATE_LEFT), 0);
	assert_refused(o, join_with(o, job, 0, 20000), -EMSGSIZE, SAINA_A_WORKER_ELEMENTS);
	assert_int_equal(set_state(o, job, 1, SAINA_WORKER_STATE_DEAD), 0);
	assert_int_equal(job->elements, 10000);
	generation = job->generation;
	assert_int_equal(join_with(o, job, 1, 10000), 0);
	assert_int_equal(job->generation, generation);
	assert_int_equal(set_state(o, job, 1, SAINA_WORKER_STATE_LEFT), 0);
	assert_int_equal(join_with(o, job, 1, 20000), 0);
	assert_int_equal(job->elements, 20000);
	assert_int_equal(o->last.segments, 57);
	saina_core_limits_get(o->core, &l, &jobs, &memory);
	assert_int_equal(memory, memory_of(20000, 352, 256, 8));

	/* a job that the operator has given a size keeps it */
	job = add(o, "fixed", 2, NULL);
	assert_refused(o, join_with(o, job, 0, 10001), -EMSGSIZE, SAINA_A_WORKER_ELEMENTS);
	assert_int_equal(join_with(o, job, 0, 9999), 0);
	assert_int_equal(job->elements, 10000);
}

/* The largest ring with which a job of this size fits. */
static void elements_auto_fits(void **state)
{
	struct owner *o = *state;
	struct saina_job_attrs r = job_req("a", 0, 2);
	const struct saina_job *job;

	r.has &= ~BIT_OF(SAINA_A_JOB_ELEMENTS);
	SAINA_PUT(&r, SAINA_A_JOB_ELEMENTS_AUTO, elements_auto, 1);
	assert_int_equal(job_new(o, &r, &job), 0);
	/* 1 GiB a job: 110 million elements take 3.6 GiB with the default ring */
	assert_int_equal(join_with(o, job, 0, 110000000), 0);
	assert_int_equal(job->ring, 2);
	assert_int_equal(o->last.ring, 2);
	assert_int_equal(job->memory, memory_of(110000000, 352, 256, 2));
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_STATE_LEFT), 0);
	assert_int_equal(join_with(o, job, 0, 50000000), 0);
	assert_int_equal(job->ring, 4);
	/* a smaller gradient has the default again */
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_STATE_LEFT), 0);
	assert_int_equal(join_with(o, job, 0, 10000), 0);
	assert_int_equal(job->ring, 8);
}

/* Too large: the refusal has the command that fits, which does. */
static void refusal_has_command(void **state)
{
	struct owner *o = *state;
	struct saina_job_attrs r = job_req("big", 110000000, 2);
	const struct saina_job *job;
	unsigned long long one, all;
	struct saina_limits l;

	assert_refused(o, job_new(o, &r, NULL), -EDQUOT, SAINA_A_JOB_ELEMENTS);
	assert_non_null(strstr(o->err.text, "fits: saina job add big elements 110000000 workers 2 ring 2"));
	assert_null(strstr(o->err.text, "payload"));
	SAINA_PUT(&r, SAINA_A_JOB_RING, ring, 2);
	assert_int_equal(job_new(o, &r, &job), 0);
	/* with messages of 64 elements even the smallest ring takes more */
	r = job_req("more", 120000000, 2);
	SAINA_PUT(&r, SAINA_A_JOB_PAYLOAD, payload, 64);
	assert_refused(o, job_new(o, &r, NULL), -EDQUOT, SAINA_A_JOB_ELEMENTS);
	assert_non_null(strstr(o->err.text, "fits: saina job add more elements 120000000 workers 2 ring 2 payload 2048"));
	SAINA_PUT(&r, SAINA_A_JOB_RING, ring, 2);
	SAINA_PUT(&r, SAINA_A_JOB_PAYLOAD, payload, 2048);
	assert_int_equal(job_new(o, &r, &job), 0);
	/* nothing fits: the limit that has to be raised, and to what */
	r = job_req("most", 1000000000, 2);
	assert_refused(o, job_new(o, &r, NULL), -EDQUOT, SAINA_A_JOB_ELEMENTS);
	assert_non_null(strstr(o->err.text, "saina limits set memory-job 3"));
	/* ... of all jobs, too: the command as it stands succeeds, and then so does the job */
	assert_int_equal(sscanf(strstr(o->err.text, "memory-job"), "memory-job %lluM memory %lluM",
				&one, &all), 2);
	l = (struct saina_limits){ .jobs = 64, .memory_job = one << 20, .memory = all << 20 };
	assert_int_equal(saina_core_limits_set(o->core, &l, NULL), 0);
	assert_int_equal(job_new(o, &r, &job), 0);
}

/* In the kernel every network namespace has a core. */
static void core_without_jobs_is_small(void **state)
{
	struct owner *o = *state;
	struct saina_limits l = { .jobs = 3, .memory_job = 1, .memory = 1 };
	struct saina_job_attrs r = { .has = BIT_OF(SAINA_A_JOB_ID), .id = 7 };

	assert_int_equal(saina_core_limits_set(o->core, &l, NULL), 0);
	assert_int_equal(saina_core_job_del(o->core, &r, NULL), -ENOENT);
	assert_null(saina_core_job_next(o->core, 0));
	assert_null(saina_core_job_find(o->core, 0, 0, "a", NULL));
	assert_true(o->bytes < 256);
}

static void job_needs_its_attributes(void **state)
{
	struct owner *o = *state;
	struct saina_job_attrs r = job_req("a", 1000, 4);

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
	static const char *const bad[] = {"", "a b", "a/b", "12", "0", "\xc3\xa4", "a\n", "x%s"};
	static const char *const good[] = {"a", "1a", "A.b_c-9", "1234567890123456789012345678.01"};
	struct owner *o = *state;
	struct saina_job_attrs r;
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

/* Two elements in each word that payload and memory count. */
static void job_of_int16(void **state)
{
	struct owner *o = *state;
	struct saina_job_attrs r = job_req("a", 10001, 4);
	struct saina_core_ops module = owner_ops;
	struct saina_core *with_module;
	const struct saina_job *job;

	SAINA_PUT(&r, SAINA_A_JOB_ELEM_TYPE, elem_type, SAINA_ELEM_INT16);
	SAINA_PUT(&r, SAINA_A_JOB_BY_REFERENCE, by_reference, 1);
	assert_int_equal(job_new(o, &r, &job), 0);
	assert_int_equal(job->payload, 352);
	assert_int_equal(job->segments, 15);
	assert_int_equal(job->pool, 16);
	assert_int_equal(o->last.elem, SAINA_ELEM_INT16);
	assert_int_equal(o->last.segments, 15);
	assert_int_equal(job->memory,
			 memory_of(5001, 352, 16, 8) + (64 + 4 * 352) * 16 * 4);

	r = job_req("b", (2ull << 22) * 352 + 1, 4);
	SAINA_PUT(&r, SAINA_A_JOB_ELEM_TYPE, elem_type, SAINA_ELEM_INT16);
	refused(o, &r, -ERANGE, SAINA_A_JOB_ELEMENTS);
	r.elements = 1000;
	SAINA_PUT(&r, SAINA_A_JOB_EXPONENT, exponent, 1);
	refused(o, &r, -EINVAL, SAINA_A_JOB_EXPONENT);
	r.has &= ~BIT_OF(SAINA_A_JOB_EXPONENT);
	with_policy(&r, "ssp:2");
	refused(o, &r, -EOPNOTSUPP, SAINA_A_JOB_POLICY);
	/* too large: the command that fits is of the same type */
	r = job_req("big", 220000000, 2);
	SAINA_PUT(&r, SAINA_A_JOB_ELEM_TYPE, elem_type, SAINA_ELEM_INT16);
	assert_refused(o, job_new(o, &r, NULL), -EDQUOT, SAINA_A_JOB_ELEMENTS);
	assert_non_null(strstr(o->err.text, "workers 2 ring 2 type int16"));
	SAINA_PUT(&r, SAINA_A_JOB_RING, ring, 2);
	assert_int_equal(job_new(o, &r, &job), 0);

	/* the programs for saina.ko have no loops for them */
	module.floats = 1;
	with_module = saina_core_new(&module, o, NULL);
	r = job_req("c", 1000, 4);
	SAINA_PUT(&r, SAINA_A_JOB_ELEM_TYPE, elem_type, SAINA_ELEM_INT16);
	assert_refused(o, saina_core_job_new(with_module, &r, NULL, &o->err), -EOPNOTSUPP,
		       SAINA_A_JOB_ELEM_TYPE);
	assert_non_null(strstr(o->err.text, "bfloat16"));
	r.elem_type = SAINA_ELEM_BFLOAT16;
	assert_int_equal(saina_core_job_new(with_module, &r, &job, &o->err), 0);
	assert_int_equal(job->segments, 3);
	r = job_req("big-job-with-the-longest-name-x", 110000000, 2);
	SAINA_PUT(&r, SAINA_A_JOB_ELEM_TYPE, elem_type, SAINA_ELEM_BFLOAT16);
	assert_refused(o, saina_core_job_new(with_module, &r, NULL, &o->err), -EDQUOT,
		       SAINA_A_JOB_ELEMENTS);
	assert_non_null(strstr(o->err.text, " type bfloat16"));
	saina_core_free(with_module);
}

static void job_ranges(void **state)
{
	struct owner *o = *state;
	struct saina_job_attrs r;

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
	BAD(elements, (1ull << 22) * 352 + 1, ELEMENTS, -ERANGE);
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
	BAD(elem_type, SAINA_ELEM_FLOAT32, ELEM_TYPE, -EOPNOTSUPP);
	BAD(elem_type, SAINA_ELEM_BFLOAT16, ELEM_TYPE, -EOPNOTSUPP);
	BAD(elem_type, 0, ELEM_TYPE, -EINVAL);
	BAD(elem_type, 9, ELEM_TYPE, -EINVAL);
	BAD(exponent, SAINA_EXPONENT_NAN, EXPONENT, -ERANGE);
	BAD(exponent, -105, EXPONENT, -ERANGE);
	BAD(exponent, 150, EXPONENT, -ERANGE);
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
	static const int sizes[] = {64, 128, 256, 352, 1024, 2048};
	struct owner *o = *state;
	struct saina_job_attrs r;
	const struct saina_job *job;
	char name[16];
	unsigned int i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(name, sizeof(name), "p%d", sizes[i]);
		r = job_req(name, sizes[i] + 1, 1);
		r.has |= BIT_OF(SAINA_A_JOB_PAYLOAD);
		r.payload = sizes[i];
		assert_int_equal(job_new(o, &r, &job), 0);
		assert_int_equal(job->segments, 2);
		assert_int_equal(job->pool, 2);
		assert_int_equal(o->last.sign_words, (sizes[i] + 63) / 64);
	}
}

static void job_times_follow_each_other(void **state)
{
	struct owner *o = *state;
	struct saina_job_attrs r = job_req("slow", 1000, 4);
	const struct saina_job *job;

	r.has |= BIT_OF(SAINA_A_JOB_HEARTBEAT_MS);
	r.heartbeat_ms = 60000;
	assert_int_equal(job_new(o, &r, &job), 0);
	assert_int_equal(job->heartbeat_ms, 60000);
	assert_true(job->dead_ms > 60000);

	r = job_req("quick", 1000, 4);
	r.has |= BIT_OF(SAINA_A_JOB_DEAD_MS);
	r.dead_ms = 100;
	assert_int_equal(job_new(o, &r, &job), 0);
	assert_int_equal(job->dead_ms, 100);
	assert_true(job->heartbeat_ms >= 10 && job->heartbeat_ms < 100);
}

static void job_numbers(void **state)
{
	struct owner *o = *state;
	struct saina_job_attrs r;
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
	struct saina_job_attrs r = {0};

	add(o, "a", 1, NULL);
	assert_non_null(saina_core_job_find(o->core, 0, 0, "a", NULL));
	assert_non_null(saina_core_job_find(o->core, 1, 0, NULL, NULL));
	assert_non_null(saina_core_job_find(o->core, 1, 0, "a", NULL));
	assert_null(saina_core_job_find(o->core, 1, 0, "b", &o->err));
	assert_int_equal(o->err.attr, SAINA_A_JOB_NAME);
	assert_null(saina_core_job_find(o->core, 1, 300, NULL, &o->err));
	assert_int_equal(o->err.attr, SAINA_A_JOB_ID);
	assert_null(saina_core_job_find(o->core, 0, 0, "zz", &o->err));
	assert_int_equal(job_set(o, &r), -EINVAL);
	assert_int_equal(saina_core_job_del(o->core, &r, &o->err), -EINVAL);
	r.has = BIT_OF(SAINA_A_JOB_ID);
	r.id = 7;
	assert_refused(o, saina_core_job_del(o->core, &r, &o->err), -ENOENT, SAINA_A_JOB_ID);
	assert_null(saina_core_job_next(o->core, 1));
	assert_int_equal(saina_core_job_next(o->core, 0)->id, 0);
	assert_null(saina_core_job_next(o->core, 256));
}

static void job_set_only_what_can_change(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 4, NULL);
	struct saina_job_attrs r = job_req("a", 5, 4);
	int published = o->published;

	r.has = BIT_OF(SAINA_A_JOB_NAME) | BIT_OF(SAINA_A_JOB_ELEMENTS);
	assert_refused(o, job_set(o, &r), -EINVAL, SAINA_A_JOB_ELEMENTS);
	r.has = BIT_OF(SAINA_A_JOB_NAME) | BIT_OF(SAINA_A_JOB_DEAD_MS);
	r.dead_ms = job->heartbeat_ms;
	/* the heartbeat follows */
	assert_int_equal(job_set(o, &r), 0);
	assert_true(job->heartbeat_ms < job->dead_ms);
	r.has = BIT_OF(SAINA_A_JOB_NAME) | BIT_OF(SAINA_A_JOB_TOKEN);
	memset(r.token, 'k', SAINA_TOKEN_LEN);
	assert_int_equal(job_set(o, &r), 0);
	assert_memory_equal(job->token, r.token, sizeof(job->token));
	/* the data path knows neither times nor tokens */
	assert_int_equal(o->published, published);
	assert_int_equal(o->note[o->notes - 1], SAINA_CMD_JOB_NTF);
}

static void job_publish_refused(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 2, NULL);
	struct saina_job_attrs r = job_req("b", 1000, 2);
	struct saina_job before = *job;
	int notes = o->notes, events = o->events;

	o->refuse = -ENOMEM;
	refused(o, &r, -ENOMEM, 0);
	assert_int_equal(try_join(o, job, 0, 0), -ENOMEM);
	assert_int_equal(set_policy(o, job, "fastest:k=1"), -ENOMEM);
	assert_int_equal(set_job_state(o, job, SAINA_JOB_STOPPED), -ENOMEM);
	r.has = BIT_OF(SAINA_A_JOB_NAME);
	snprintf(r.name, sizeof(r.name), "a");
	assert_int_equal(saina_core_job_del(o->core, &r, &o->err), -ENOMEM);
	assert_memory_equal(&before, job, sizeof(before));
	assert_int_equal(o->notes, notes);
	assert_int_equal(o->events, events);
	o->refuse = 0;
	assert_int_equal(try_join(o, job, 0, 0), 0);
	assert_int_equal(add(o, "b", 1, NULL)->generation, before.generation + 1);
}

/* Limits */

static void limits(void **state)
{
	struct owner *o = *state;
	struct saina_limits l = {.jobs = 2, .memory_job = 1 << 20, .memory = 3 << 19};
	struct saina_limits got;
	struct saina_job_attrs r;
	__u32 jobs;
	__u64 memory;
	int notes;

	assert_int_equal(saina_core_limits_set(o->core, &l, &o->err), 0);
	assert_int_equal(o->notes, 1);
	assert_int_equal(o->note[0], SAINA_CMD_LIMITS_NTF);
	r = job_req("big", 1000000, 2);
	refused(o, &r, -EDQUOT, SAINA_A_JOB_ELEMENTS);
	r = job_req("a", 24000, 2);
	assert_int_equal(job_new(o, &r, NULL), 0);
	saina_core_limits_get(o->core, &got, &jobs, &memory);
	assert_int_equal(jobs, 1);
	assert_int_equal(memory, memory_of(24000, 352, 128, 8));
	assert_true(memory > l.memory / 2 && memory <= l.memory_job);
	r = job_req("b", 24000, 2);
	refused(o, &r, -EDQUOT, SAINA_A_JOB_ELEMENTS); /* all together */
	add(o, "b", 2, NULL);
	r = job_req("c", 100, 2);
	refused(o, &r, -EDQUOT, 0); /* number of jobs */

	notes = o->notes;
	l.jobs = 1;
	assert_refused(o, saina_core_limits_set(o->core, &l, &o->err), -EBUSY, SAINA_A_LIMITS_JOBS);
	l.jobs = 0;
	assert_refused(o, saina_core_limits_set(o->core, &l, &o->err), -ERANGE,
		       SAINA_A_LIMITS_JOBS);
	l.jobs = 257;
	assert_refused(o, saina_core_limits_set(o->core, &l, &o->err), -ERANGE,
		       SAINA_A_LIMITS_JOBS);
	l.jobs = 2;
	l.memory_job = 1000;
	assert_refused(o, saina_core_limits_set(o->core, &l, &o->err), -EBUSY,
		       SAINA_A_LIMITS_MEMORY_JOB);
	l.memory_job = 0;
	assert_refused(o, saina_core_limits_set(o->core, &l, &o->err), -ERANGE,
		       SAINA_A_LIMITS_MEMORY_JOB);
	l.memory_job = 1 << 20;
	l.memory = 1 << 10;
	assert_refused(o, saina_core_limits_set(o->core, &l, &o->err), -ERANGE,
		       SAINA_A_LIMITS_MEMORY);
	l.memory = 1 << 20;
	assert_refused(o, saina_core_limits_set(o->core, &l, &o->err), -EBUSY,
		       SAINA_A_LIMITS_MEMORY);
	assert_int_equal(o->notes, notes);
	r = job_req("a", 0, 0);
	r.has = BIT_OF(SAINA_A_JOB_NAME);
	assert_int_equal(saina_core_job_del(o->core, &r, NULL), 0);
	assert_int_equal(saina_core_limits_set(o->core, &l, &o->err), 0);
	l.jobs = 300;
	assert_null(saina_core_new(&owner_ops, o, &l));
}

/* The largest job there can be must not overflow the sum. */
static void memory_does_not_wrap(void **state)
{
	const struct saina_limits all = { 1, 1ull << 42, 1ull << 42 };
	struct saina_job_attrs r = job_req("a", (1ull << 22) * 2048, 64);
	struct owner *o = *state;
	const struct saina_job *job;

	SAINA_PUT(&r, SAINA_A_JOB_PAYLOAD, payload, 2048);
	SAINA_PUT(&r, SAINA_A_JOB_POOL, pool, 4096);
	SAINA_PUT(&r, SAINA_A_JOB_RING, ring, 64);
	assert_int_equal(saina_core_limits_set(o->core, &all, &o->err), 0);
	assert_int_equal(job_new(o, &r, &job), 0);
	assert_int_equal(job->memory, memory_of((1ull << 22) * 2048, 2048, 4096, 64));
}

static void many_jobs_at_once(void **state)
{
	struct owner *o = *state;
	__u64 used[SAINA_LOCKS / 64] = {0};
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("job core: a core without jobs takes less than 256 bytes", core_without_jobs_is_small),
		TEST("job core: a new job has the defaults and is published once", job_defaults),
		TEST("job core: a job without name, elements or workers is refused", job_needs_its_attributes),
		TEST("job core: the first worker gives a job its size if it may, others must have it", size_of_the_first_worker),
		TEST("job core: a malformed or taken job name is refused", job_names),
		TEST("job core: an attribute of a job out of its range is refused and named", job_ranges),
		TEST("job core: a job of int16 has two elements in a word, and no steps", job_of_int16),
		TEST("job core: a job of every payload size is accepted", job_payload_sizes),
		TEST("job core: heartbeat and dead-ms follow each other if only one is given", job_times_follow_each_other),
		TEST("job core: a new job gets the lowest free number, a taken one is refused", job_numbers),
		TEST("job core: a job is found by its name, its number or both", job_lookup),
		TEST("job core: job-set changes times and token and refuses elements", job_set_only_what_can_change),
		TEST("job core: a change that the data path refuses changes nothing", job_publish_refused),
		TEST("job core: limits are checked and enforced", limits),
		TEST("job core: a job with elements auto keeps as many rounds as there is memory for", elements_auto_fits),
		TEST("job core: a job too large for the memory is refused with a command that fits", refusal_has_command),
		TEST("job core: the memory of the largest job does not overflow", memory_does_not_wrap),
		TEST("job core: 64 jobs with 64 slots each share no lock", many_jobs_at_once),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
