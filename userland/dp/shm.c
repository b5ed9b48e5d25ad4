// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Shared memory: input arrays of workers, and output rings.  The outer maps alone say
 * which exist, so that an agent that takes over finds them.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "dp/priv.h"

#define SHM_FLAGS (BPF_F_INNER_MAP | BPF_F_MMAPABLE)

static __u32 input_key(__u32 job, unsigned int w)
{
	return job * SAINA_WORKERS_MAX + w;
}

/* Frozen: workers that get it can neither write to it nor map it writable. */
static int output_create(struct saina_dp *dp, const struct saina_job_conf *c, int size)
{
	__u32 entry = sizeof(struct saina_output_head) + 4 * c->payload;
	int fd, err;

	fd = dp_map_new(dp, BPF_MAP_TYPE_ARRAY, "output", c->job, entry,
			c->segments * SAINA_OUTPUT_ROUNDS, SHM_FLAGS);
	if (fd < 0)
		return fd;
	if (bpf_map_freeze(fd))
		err = dp_fail(dp, -errno, "cannot freeze the output of job %u: %s", c->job,
			      strerror(errno));
	else
		err = dp_outer_set(dp, DP_OUTPUT + size, c->job, c->job, fd);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int input_create(struct saina_dp *dp, const struct saina_job_conf *c, int size,
			unsigned int w)
{
	__u32 entry = sizeof(struct saina_input_head) + 4 * c->payload;
	int fd, err;

	fd = dp_map_new(dp, BPF_MAP_TYPE_ARRAY, "input", c->job, entry, c->pool, SHM_FLAGS);
	if (fd < 0)
		return fd;
	err = dp_outer_set(dp, DP_INPUT + size, input_key(c->job, w), c->job, fd);
	if (!err)
		return fd;
	close(fd);
	return err;
}

int saina_dp_shm_grant(struct saina_dp *dp, __u16 job, unsigned int w, int fd[2], __u32 *output_id)
{
	struct dp_job *j = dp_job_find(dp, job);
	int size;

	if (!j || w >= SAINA_WORKERS_MAX)
		return dp_fail(dp, -ENOENT, "job %u has no worker %u in the data path", job, w);
	size = dp_size_index(j->conf.payload);
	fd[1] = dp_inner_open(dp, DP_OUTPUT + size, job);
	if (fd[1] < 0)
		fd[1] = output_create(dp, &j->conf, size);
	if (fd[1] < 0)
		return fd[1];
	fd[0] = dp_inner_open(dp, DP_INPUT + size, input_key(job, w));
	if (fd[0] < 0)
		fd[0] = input_create(dp, &j->conf, size, w);
	if (fd[0] < 0) {
		close(fd[1]);
		return fd[0];
	}
	*output_id = dp_inner_id(dp, DP_OUTPUT + size, job);
	return 0;
}

int saina_dp_shm_revoke(struct saina_dp *dp, __u16 job, unsigned int w)
{
	struct dp_job *j = dp_job_find(dp, job);
	int size, fd;

	if (!j || !saina_dp_shm_is_granted(dp, job, w))
		return 0;
	size = dp_size_index(j->conf.payload);
	dp_outer_clear(dp, DP_INPUT + size, input_key(job, w));
	fd = output_create(dp, &j->conf, size);
	if (fd < 0) {
		/* No ring rather than one that the worker can still read. */
		dp_outer_clear(dp, DP_OUTPUT + size, job);
		return fd;
	}
	close(fd);
	return 0;
}

bool saina_dp_shm_is_granted(struct saina_dp *dp, __u16 job, unsigned int w)
{
	struct dp_job *j = dp_job_find(dp, job);

	return j && w < SAINA_WORKERS_MAX &&
	       dp_inner_id(dp, DP_INPUT + dp_size_index(j->conf.payload), input_key(job, w));
}

__u32 saina_dp_shm_output_id(struct saina_dp *dp, __u16 job)
{
	struct dp_job *j = dp_job_find(dp, job);

	return j ? dp_inner_id(dp, DP_OUTPUT + dp_size_index(j->conf.payload), job) : 0;
}

void dp_shm_clear(struct saina_dp *dp, const struct saina_job_conf *c)
{
	int size = dp_size_index(c->payload);

	if (!dp_inner_id(dp, DP_OUTPUT + size, c->job))
		return;
	dp_outer_clear(dp, DP_OUTPUT + size, c->job);
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		if (dp_inner_id(dp, DP_INPUT + size, input_key(c->job, w)))
			dp_outer_clear(dp, DP_INPUT + size, input_key(c->job, w));
}
