// SPDX-License-Identifier: GPL-2.0
/* What the maps of a job take, and whether the limits leave room for them. */
#include "core/os.h"
#include "core/internal.h"

/**
 * saina_core_memory() - bytes of map memory a job takes
 * @elements: of the gradient
 * @payload: elements of one message
 * @pool: hot slots
 * @ring: rounds of results kept
 *
 * Hot slots, result ring, sign bits, last-counted table and one snapshot.  The
 * counters (a few kB per CPU and job) are not counted in.
 *
 * Return: bytes
 */
__u64 saina_core_memory(__u64 elements, __u32 payload, __u32 pool, __u32 ring)
{
	__u64 slot = sizeof(struct saina_slot_meta) + 4ull * payload;
	__u64 segments = saina_div(elements + payload - 1, payload);

	return pool * slot + segments * ring * slot + segments * 8 * SAINA_SIGN_WORDS(payload, 1) +
	       segments * sizeof(struct saina_counted) + sizeof(struct saina_job_conf);
}

/**
 * saina_core_memory_shared() - bytes of map memory that a job by reference takes beyond that
 * @segments: of the gradient
 * @payload: elements of one of them
 * @pool: hot slots
 * @workers: of the job
 *
 * An input array for each worker, and the output array.
 *
 * Return: bytes
 */
__u64 saina_core_memory_shared(__u32 segments, __u32 payload, __u32 pool, __u32 workers)
{
	__u64 entry = sizeof(struct saina_input_head) + 4ull * payload;

	return entry * ((__u64)pool * workers + (__u64)segments * SAINA_OUTPUT_ROUNDS);
}

/**
 * saina_core_memory_views() - bytes of map memory that a job of groups takes beyond that
 * @segments: of the gradient
 * @payload: elements of one of them
 * @groups: of its workers
 *
 * Views of the groups.
 *
 * Return: bytes
 */
__u64 saina_core_memory_views(__u32 segments, __u32 payload, __u32 groups)
{
	return groups * (sizeof(struct saina_slot_meta) + 4ull * payload) * segments;
}

/* What the maps of a job take: of its size, and of its policies. */
void saina_job_memory(struct saina_job *job)
{
	job->memory = 0;
	if (!job->elements)
		return;
	job->memory = saina_core_memory(job->elements, job->payload, job->pool, job->ring);
	if (job->by_reference)
		job->memory += saina_core_memory_shared(job->segments, job->payload, job->pool,
							job->workers);
	job->memory += saina_core_memory_views(job->segments, job->payload,
					       job->policy.groups > job->next.groups ?
						       job->policy.groups : job->next.groups);
}

/* The limits of memory; @has: bytes of the job that are among those of all jobs already. */
int saina_job_room(struct saina_core *c, const struct saina_job *job, __u64 has, unsigned int attr,
		   struct saina_core_err *err)
{
	if (job->memory > c->limits.memory_job)
		return saina_refuse(err, -EDQUOT, attr,
				    "the job needs %llu MiB, the limit is %llu MiB a job: fewer "
				    "elements, a smaller ring or a higher limit",
				    saina_mib(job->memory), saina_mib(c->limits.memory_job));
	if (c->memory - has + job->memory > c->limits.memory)
		return saina_refuse(err, -EDQUOT, attr,
				    "the job needs %llu MiB, %llu of the %llu MiB for all jobs are "
				    "taken: delete one or raise the limit",
				    saina_mib(job->memory), saina_mib(c->memory - has),
				    saina_mib(c->limits.memory));
	return 0;
}
