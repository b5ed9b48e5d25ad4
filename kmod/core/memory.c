// SPDX-License-Identifier: GPL-2.0
/* What the maps of a job take, and whether the limits leave room for them. */
#include "core/os.h"
#include "core/internal.h"

/**
 * saina_job_memory() - compute the bytes of map memory that a job takes
 * @job: its @memory is set, by its segments and policies; without a size 0
 *
 * Hot slots, result ring, sign bits, last-counted table and one snapshot; the workers' inputs in
 * shared memory; views of groups.  The counters (about 30 kB per CPU and job) are not counted in.
 */
void saina_job_memory(struct saina_job *job)
{
	__u64 slot = sizeof(struct saina_slot_meta) + 4ull * job->payload, segments = job->segments;
	__u32 groups = job->policy.groups > job->next.groups ?
			       job->policy.groups : job->next.groups;

	job->memory = 0;
	if (!segments)
		return;
	job->memory = (job->pool + segments * job->ring) * slot + sizeof(struct saina_job_conf) +
		      segments * 8 * SAINA_SIGN_WORDS(job->payload, 1) +
		      segments * sizeof(struct saina_counted);
	if (job->by_reference)
		job->memory += (sizeof(struct saina_input_head) + 4ull * job->payload) *
			       job->pool * job->workers;
	job->memory += segments * slot * groups;
}

/* Bytes that a job may take which has @has of those of all jobs already. */
static __u64 memory_room(const struct saina_core *c, __u64 has)
{
	__u64 others = c->memory - has;
	__u64 room = c->limits.memory > others ? c->limits.memory - others : 0;

	return saina_min(room, c->limits.memory_job);
}

/**
 * saina_job_fit() - keep the results of fewer rounds where memory is short
 * @c: core
 * @job: its ring becomes the largest, up to @job->ring_most, with which there is room; the
 *	smallest if there is none
 * @has: bytes of the job that are among those of all jobs already
 */
void saina_job_fit(const struct saina_core *c, struct saina_job *job, __u64 has)
{
	__u64 room = memory_room(c, has);

	job->ring = job->ring_most;
	saina_job_memory(job);
	while (job->memory > room && job->ring > SAINA_RING_MIN) {
		job->ring /= 2;
		saina_job_memory(job);
	}
}

/* The same job, as it would fit: with a smaller ring, else in larger messages, too. */
static int refuse_with_command(const struct saina_core *c, const struct saina_job *job, __u64 room,
			       struct saina_core_err *err)
{
	static const char *const type[] = { [SAINA_ELEM_INT32] = "",
					    [SAINA_ELEM_FLOAT32] = " type float32",
					    [SAINA_ELEM_BFLOAT16] = " type bfloat16",
					    [SAINA_ELEM_INT16] = " type int16" };
	struct saina_job *fit = &c->t->fit;

	*fit = *job;
	saina_job_fit(c, fit, 0);
	if (fit->memory > room && fit->payload != SAINA_ELEMS_MAX) {
		fit->payload = SAINA_ELEMS_MAX;
		fit->segments = saina_job_segments(fit, fit->elements);
		saina_job_memory(fit);
	}
	if (fit->memory > room)
		return 0;
	return saina_refuse(err, -EDQUOT, SAINA_A_JOB_ELEMENTS,
			    "the job needs %llu of %llu MiB; this fits: saina job add %s "
			    "elements %llu workers %u ring %u%s%s",
			    saina_mib(job->memory), saina_mib(room), fit->name,
			    (unsigned long long)fit->elements, fit->workers, fit->ring,
			    fit->payload != job->payload ? " payload 2048" : "",
			    type[fit->elem]);
}

/*
 * The limits of memory; @has: bytes of the job that are among those of all jobs already.  A job
 * that is added, and could be smaller, is refused with the command that fits.
 */
int saina_job_room(struct saina_core *c, const struct saina_job *job, __u64 has, unsigned int attr,
		   struct saina_core_err *err)
{
	__u64 room = memory_room(c, has), all = c->memory - has + job->memory;
	int ret = 0;

	if (job->memory <= room)
		return 0;
	if (attr == SAINA_A_JOB_ELEMENTS)
		ret = refuse_with_command(c, job, room, err);
	if (ret)
		return ret;
	if (job->memory > c->limits.memory_job && all > c->limits.memory)
		return saina_refuse(err, -EDQUOT, attr,
				    "the job needs %llu MiB, the limit is %llu MiB a job: saina "
				    "limits set memory-job %lluM memory %lluM raises both",
				    saina_mib(job->memory), saina_mib(c->limits.memory_job),
				    saina_mib(job->memory), saina_mib(all));
	if (job->memory > c->limits.memory_job)
		return saina_refuse(err, -EDQUOT, attr,
				    "the job needs %llu MiB, the limit is %llu MiB a job: saina "
				    "limits set memory-job %lluM raises it",
				    saina_mib(job->memory), saina_mib(c->limits.memory_job),
				    saina_mib(job->memory));
	return saina_refuse(err, -EDQUOT, attr,
			    "the job needs %llu MiB, %llu of the %llu MiB for all jobs are taken: "
			    "delete one, or saina limits set memory %lluM",
			    saina_mib(job->memory), saina_mib(c->memory - has),
			    saina_mib(c->limits.memory),
			    saina_mib(all));
}
