// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * By reference: input arrays of workers, and boards.  What there is stands in the outer maps
 * alone, so an agent that takes over finds it.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "dp/priv.h"

#define SHARED_FLAGS (BPF_F_INNER_MAP | BPF_F_MMAPABLE)

static __u32 input_key(__u32 job, unsigned int w)
{
	return job * SAINA_WORKERS_MAX + w;
}

static __u32 number_of(const struct saina_dp *dp, int outer, __u32 key)
{
	__u32 id;

	return bpf_map_lookup_elem(dp->map[outer], &key, &id) ? 0 : id;
}

/* Also frozen, so that those who get it can neither write nor map it to write. */
static int board_new(struct saina_dp *dp, const struct saina_job_conf *c, int size)
{
	__u32 entry = sizeof(struct saina_output_head) + 4 * c->payload;
	int fd, err;

	fd = dp_map_new(dp, BPF_MAP_TYPE_ARRAY, "board", c->job, entry,
			c->segments * SAINA_OUTPUT_ROUNDS, SHARED_FLAGS);
	if (fd < 0)
		return fd;
	err = bpf_map_freeze(fd) ? dp_fail(dp, -errno, "cannot freeze the board of job %u: %s", c->job,
					   strerror(errno)) :
				   dp_outer_set(dp, DP_OUTPUT + size, c->job, c->job, fd);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int input_new(struct saina_dp *dp, const struct saina_job_conf *c, int size, unsigned int w)
{
	__u32 entry = sizeof(struct saina_input_head) + 4 * c->payload;
	int fd, err;

	fd = dp_map_new(dp, BPF_MAP_TYPE_ARRAY, "input", c->job, entry, c->pool, SHARED_FLAGS);
	if (fd < 0)
		return fd;
	err = dp_outer_set(dp, DP_INPUT + size, input_key(c->job, w), c->job, fd);
	if (!err)
		return fd;
	close(fd);
	return err;
}

int saina_dp_share(struct saina_dp *dp, __u16 job, unsigned int w, int fd[2], __u32 *board)
{
	struct dp_job *j = dp_job_find(dp, job);
	int size;

	if (!j || w >= SAINA_WORKERS_MAX)
		return dp_fail(dp, -ENOENT, "job %u has no worker %u in the data path", job, w);
	size = dp_size_index(j->conf.payload);
	fd[1] = dp_inner_open(dp, DP_OUTPUT + size, job);
	if (fd[1] < 0)
		fd[1] = board_new(dp, &j->conf, size);
	if (fd[1] < 0)
		return fd[1];
	fd[0] = dp_inner_open(dp, DP_INPUT + size, input_key(job, w));
	if (fd[0] < 0)
		fd[0] = input_new(dp, &j->conf, size, w);
	if (fd[0] < 0) {
		close(fd[1]);
		return fd[0];
	}
	*board = number_of(dp, DP_OUTPUT + size, job);
	return 0;
}

int saina_dp_unshare(struct saina_dp *dp, __u16 job, unsigned int w)
{
	struct dp_job *j = dp_job_find(dp, job);
	__u32 key = input_key(job, w);
	int size, fd;

	if (!j || !saina_dp_is_shared(dp, job, w))
		return 0;
	size = dp_size_index(j->conf.payload);
	bpf_map_delete_elem(dp->map[DP_INPUT + size], &key);
	fd = board_new(dp, &j->conf, size);
	if (fd < 0) {
		/* none is better than one that it can read */
		key = job;
		bpf_map_delete_elem(dp->map[DP_OUTPUT + size], &key);
		return fd;
	}
	close(fd);
	return 0;
}

bool saina_dp_is_shared(struct saina_dp *dp, __u16 job, unsigned int w)
{
	struct dp_job *j = dp_job_find(dp, job);

	return j && w < SAINA_WORKERS_MAX &&
	       number_of(dp, DP_INPUT + dp_size_index(j->conf.payload), input_key(job, w));
}

__u32 saina_dp_board(struct saina_dp *dp, __u16 job)
{
	struct dp_job *j = dp_job_find(dp, job);

	return j ? number_of(dp, DP_OUTPUT + dp_size_index(j->conf.payload), job) : 0;
}

void dp_share_clear(struct saina_dp *dp, const struct saina_job_conf *c)
{
	int size = dp_size_index(c->payload);
	__u32 key = c->job;

	if (!number_of(dp, DP_OUTPUT + size, key))
		return;
	bpf_map_delete_elem(dp->map[DP_OUTPUT + size], &key);
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		key = input_key(c->job, w);
		if (number_of(dp, DP_INPUT + size, key))
			bpf_map_delete_elem(dp->map[DP_INPUT + size], &key);
	}
}
