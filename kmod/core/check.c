// SPDX-License-Identifier: GPL-2.0
/*
 * What a job may be: each function checks one part of a request, fills the job
 * with it or with the default, and refuses with a sentence and the guilty
 * attribute.
 */
#include "core/os.h"
#include "core/internal.h"

#define EXPONENT_COARSEST (SAINA_EXPONENT_MIN + SAINA_EXPONENT_BIAS)
#define EXPONENT_FINEST	  (SAINA_EXPONENT_MAX + SAINA_EXPONENT_BIAS)
#define EXPONENT_DEFAULT  20
#define PAYLOAD_DEFAULT	  352
#define POOL_DEFAULT	  256
#define RING_DEFAULT	  8
#define HEARTBEAT_DEFAULT 200
#define HEARTBEAT_MIN	  10
#define HEARTBEAT_MAX	  60000
#define DEAD_DEFAULT	  2000
#define DEAD_MAX	  65535

int saina_name_check(const char *name, struct saina_core_err *err)
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

/* Text that people will see, and that must not steer a terminal: printable ASCII. */
int saina_text_check(const char *text, unsigned int attr, const char *what,
		     struct saina_core_err *err)
{
	for (; *text; text++)
		if (*text < 0x20 || *text > 0x7e)
			return saina_refuse(err, -EINVAL, attr,
					    "%s: has a character that is not printable ASCII",
					    what);
	return 0;
}

int saina_job_token(struct saina_job *job, const struct saina_job_attrs *req,
		    struct saina_core_err *err)
{
	int ret;

	if (!SAINA_HAS(req, SAINA_A_JOB_TOKEN))
		return 0;
	ret = saina_text_check(req->token, SAINA_A_JOB_TOKEN, "token", err);
	if (!ret)
		memcpy(job->token, req->token, sizeof(job->token));
	return ret;
}

int saina_elem_check(const struct saina_core *c, unsigned int elem, struct saina_core_err *err)
{
	if (elem != SAINA_ELEM_FLOAT32 && elem != SAINA_ELEM_BFLOAT16 && !SAINA_ELEM_IS_INT(elem))
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_ELEM_TYPE,
				    "element type: %u is unknown; int32 is %d, float32 %d, bfloat16 %d, "
				    "int16 %d",
				    elem, SAINA_ELEM_INT32, SAINA_ELEM_FLOAT32, SAINA_ELEM_BFLOAT16,
				    SAINA_ELEM_INT16);
	if (elem == SAINA_ELEM_INT16 && c->ops->floats)
		return saina_refuse(err, -EOPNOTSUPP, SAINA_A_JOB_ELEM_TYPE,
				    "element type: int16 is for hosts without saina.ko: use bfloat16, which "
				    "takes as few bytes");
	if (!SAINA_ELEM_IS_INT(elem) && !c->ops->floats)
		return saina_refuse(err, -EOPNOTSUPP, SAINA_A_JOB_ELEM_TYPE,
				    "element type: sums of floats need saina.ko: load it and restart "
				    "sainad, or use int32 or int16 (half the bytes), which carry float "
				    "tensors too");
	return 0;
}

int saina_exponent_check(int exponent, struct saina_core_err *err)
{
	if (exponent < EXPONENT_COARSEST || exponent > EXPONENT_FINEST)
		return saina_refuse(err, -ERANGE, SAINA_A_JOB_EXPONENT,
				    "exponent: %d: must be %d..%d", exponent, EXPONENT_COARSEST,
				    EXPONENT_FINEST);
	return 0;
}

/* Element type, and the scale of parameters that only int32 has. */
int saina_job_elem(const struct saina_core *c, struct saina_job *job,
		   const struct saina_job_attrs *req, struct saina_core_err *err)
{
	int ret;

	job->elem = SAINA_HAS(req, SAINA_A_JOB_ELEM_TYPE) ? req->elem_type : SAINA_ELEM_INT32;
	ret = saina_elem_check(c, job->elem, err);
	if (ret)
		return ret;
	if (job->elem != SAINA_ELEM_INT32) {
		if (SAINA_HAS(req, SAINA_A_JOB_EXPONENT) && req->exponent)
			return saina_refuse(err, -EINVAL, SAINA_A_JOB_EXPONENT,
					    "exponent: only jobs of int32 have one (the scale of the "
					    "parameters of steps): leave it out");
		return 0;
	}
	job->exponent = EXPONENT_DEFAULT;
	if (!SAINA_HAS(req, SAINA_A_JOB_EXPONENT))
		return 0;
	ret = saina_exponent_check(req->exponent, err);
	if (!ret)
		job->exponent = req->exponent;
	return ret;
}

int saina_job_reference(struct saina_job *job, const struct saina_job_attrs *req,
			struct saina_core_err *err)
{
	if (!SAINA_HAS(req, SAINA_A_JOB_BY_REFERENCE))
		return 0;
	if (req->by_reference && !SAINA_ELEM_IS_INT(job->elem))
		return saina_refuse(err, -EOPNOTSUPP, SAINA_A_JOB_BY_REFERENCE,
				    "by-reference: only jobs of int32 and int16 can share memory with "
				    "their workers; float tensors can be reduced in such a job, too");
	job->by_reference = req->by_reference;
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

/* What follows from the number of elements; 0: no worker has said it yet. */
int saina_job_size(struct saina_job *job, __u64 elements, unsigned int attr,
		   struct saina_core_err *err)
{
	const __u32 each = SAINA_SEGMENT_ELEMS(job->elem, job->payload);

	/* compared before it is rounded up: elements + each could wrap */
	if (elements > (__u64)SAINA_SEGMENTS_MAX * each)
		return saina_refuse(err, -ERANGE, attr,
				    "elements: %llu do not fit in %u messages of %u (at most %llu)%s",
				    (unsigned long long)elements, SAINA_SEGMENTS_MAX, each,
				    (unsigned long long)SAINA_SEGMENTS_MAX * each,
				    job->payload < SAINA_ELEMS_MAX ? "; choose a larger payload" :
								     "");
	job->elements = elements;
	job->segments = saina_job_segments(job, elements);
	saina_job_memory(job);
	return 0;
}

static int elements_check(struct saina_job *job, const struct saina_job_attrs *req,
			  struct saina_core_err *err)
{
	if (SAINA_HAS(req, SAINA_A_JOB_ELEMENTS_AUTO)) {
		if (req->elements_auto > 1)
			return saina_refuse(err, -EINVAL, SAINA_A_JOB_ELEMENTS_AUTO,
					    "elements auto: %u: must be 0 or 1",
					    req->elements_auto);
		job->elements_auto = req->elements_auto;
	}
	if (job->elements_auto)
		return 0;
	if (!SAINA_HAS(req, SAINA_A_JOB_ELEMENTS))
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_ELEMENTS,
				    "elements: a job needs the number of elements of its gradient");
	if (!req->elements)
		return saina_refuse(err, -ERANGE, SAINA_A_JOB_ELEMENTS,
				    "elements: must be at least 1");
	return 0;
}

int saina_job_geometry(struct saina_job *job, const struct saina_job_attrs *req,
		       struct saina_core_err *err)
{
	__u64 elements;
	__u32 pool;
	int ret;

	job->payload = SAINA_HAS(req, SAINA_A_JOB_PAYLOAD) ? req->payload : PAYLOAD_DEFAULT;
	if (!payload_ok(job->payload))
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_PAYLOAD,
				    "payload: %u is not among 64, 128, 256, 352 (MTU 1500), 1024 "
				    "and 2048 (jumbo frames)",
				    job->payload);
	ret = elements_check(job, req, err);
	if (ret)
		return ret;
	elements = SAINA_HAS(req, SAINA_A_JOB_ELEMENTS) ? req->elements : 0;

	pool = SAINA_HAS(req, SAINA_A_JOB_POOL) ? req->pool : POOL_DEFAULT;
	if (!is_power_of_2(pool) || pool > SAINA_POOL_MAX)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POOL,
				    "pool: %u hot slots: must be a power of two, 1..%u", pool,
				    SAINA_POOL_MAX);
	/* where a later worker may say more, it is not made smaller */
	while (!job->elements_auto && pool > 1 &&
	       (__u64)pool / 2 * SAINA_SEGMENT_ELEMS(job->elem, job->payload) >= elements)
		pool /= 2;
	job->pool = pool;

	job->ring = SAINA_HAS(req, SAINA_A_JOB_RING) ? req->ring : RING_DEFAULT;
	if (!is_power_of_2(job->ring) || job->ring < SAINA_RING_MIN || job->ring > SAINA_RING_MAX)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_RING,
				    "ring: %u rounds kept: must be a power of two, %u..%u",
				    job->ring, SAINA_RING_MIN, SAINA_RING_MAX);
	job->ring_most = job->ring;
	return saina_job_size(job, elements, SAINA_A_JOB_ELEMENTS, err);
}

/* The one not given follows the other. */
int saina_job_times(struct saina_job *job, const struct saina_job_attrs *req,
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

int saina_job_state_set(struct saina_job *job, int state, struct saina_core_err *err)
{
	switch (state) {
	case SAINA_JOB_STOPPED:
		break;
	case SAINA_JOB_RUNNING:
		if (!job->active)
			return saina_refuse(err, -ENOTCONN, SAINA_A_JOB_STATE,
					    "job %s has no live worker: it runs once all %u have "
					    "joined, or can be set running once one has",
					    job->name, job->workers);
		break;
	case SAINA_JOB_FORMING:
		if (job->state == SAINA_JOB_RUNNING)
			return saina_refuse(err, -EBUSY, SAINA_A_JOB_STATE,
					    "job %s is running: stop it first", job->name);
		break;
	default:
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_STATE,
				    "state: %d is unknown; forming (%d), running (%d) and stopped "
				    "(%d) are allowed",
				    state, SAINA_JOB_FORMING, SAINA_JOB_RUNNING, SAINA_JOB_STOPPED);
	}
	job->state = state;
	return 0;
}
