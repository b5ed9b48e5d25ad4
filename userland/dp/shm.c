// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Shared memory: input arrays of workers, and their job's ring, which they read.  The outer maps
 * alone say which exist, so that an agent that takes over finds them.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "dp/priv.h"

static __u32 input_key(__u32 job, unsigned int w)
{
	return job * SAINA_WORKERS_MAX + w;
}

static int input_create(struct saina_dp *dp, const struct saina_job_conf *c, int size,
			unsigned int w)
{
	__u32 entry = sizeof(struct saina_input_head) + 4 * c->payload;
	int fd, err;

	fd = dp_map_new(dp, BPF_MAP_TYPE_ARRAY, "input", c->job, entry, c->pool,
			BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	if (fd < 0)
		return fd;
	dp_map_touch(fd);
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
	fd[1] = dp_inner_open(dp, DP_RING + size, job);
	if (fd[1] < 0)
		return dp_fail(dp, fd[1], "job %u has no ring of results: %s", job, strerror(-fd[1]));
	fd[0] = dp_inner_open(dp, DP_INPUT + size, input_key(job, w));
	if (fd[0] < 0)
		fd[0] = input_create(dp, &j->conf, size, w);
	if (fd[0] < 0) {
		close(fd[1]);
		return fd[0];
	}
	*output_id = saina_dp_shm_output_id(dp, job);
	return 0;
}

static size_t ring_len(const struct saina_job_conf *c)
{
	return (size_t)c->segments * c->ring * (sizeof(struct saina_slot_meta) + 4 * c->payload);
}

/*
 * Puts a copy in the place of a job's ring.  While there is none no round is decided: what would
 * decide one is dropped, and comes again as after loss.
 */
static int ring_replace(struct saina_dp *dp, struct dp_job *j, int outer)
{
	const struct saina_job_conf *c = &j->conf;
	int old = j->maps[DP_JOB_RING], fd = dp_job_map_create(dp, c, DP_JOB_RING), err = 0;
	void *from, *to;

	if (fd < 0)
		return fd;
	from = mmap(NULL, ring_len(c), PROT_READ, MAP_SHARED | MAP_POPULATE, old, 0);
	to = mmap(NULL, ring_len(c), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (from == MAP_FAILED || to == MAP_FAILED) {
		err = dp_fail(dp, -errno, "cannot map the results of job %u: %s", c->job, strerror(errno));
	} else {
		dp_ring_keep(dp, c->job, true);
		/* waits for programs that run */
		dp_outer_clear(dp, outer, c->job);
		memcpy(to, from, ring_len(c));
	}
	if (from != MAP_FAILED)
		munmap(from, ring_len(c));
	if (to != MAP_FAILED)
		munmap(to, ring_len(c));
	if (!err)
		err = dp_ring_freeze(dp, c, fd);
	if (!err)
		err = dp_outer_set(dp, outer, c->job, c->job, fd);
	if (err)
		dp_outer_set(dp, outer, c->job, c->job, old);
	dp_ring_keep(dp, c->job, false);
	close(err ? fd : old);
	if (!err) {
		j->maps[DP_JOB_RING] = fd;
		dp_touch_again(j, DP_JOB_RING);
	}
	return err;
}

int saina_dp_shm_revoke(struct saina_dp *dp, __u16 job, __u64 workers)
{
	struct dp_job *j = dp_job_find(dp, job);
	__u64 granted = 0;
	int size, err;

	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		if (workers >> w & 1 && saina_dp_shm_is_granted(dp, job, w))
			granted |= 1ull << w;
	if (!granted)
		return 0;
	size = dp_size_index(j->conf.payload);
	/* The arrays last: as long as there is one, whoever comes after a crash revokes it again. */
	err = ring_replace(dp, j, DP_RING + size);
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		if (granted >> w & 1)
			dp_outer_clear(dp, DP_INPUT + size, input_key(job, w));
	return err;
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

	return j ? dp_inner_id(dp, DP_RING + dp_size_index(j->conf.payload), job) : 0;
}

void dp_shm_clear(struct saina_dp *dp, const struct saina_job_conf *c)
{
	int size = dp_size_index(c->payload);

	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		if (dp_inner_id(dp, DP_INPUT + size, input_key(c->job, w)))
			dp_outer_clear(dp, DP_INPUT + size, input_key(c->job, w));
}
