// SPDX-License-Identifier: GPL-2.0-or-later
/* Publishing jobs: their snapshots, and new generations. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "dp/priv.h"

static bool is_power_of_two(__u32 x)
{
	return x && !(x & (x - 1));
}

/* In a new map of one element: a program sees the old or the new snapshot, never a mix. */
static int snapshot_publish(struct saina_dp *dp, const struct saina_job_conf *c)
{
	__u32 zero = 0;
	int fd, err;

	fd = dp_map_new(dp, BPF_MAP_TYPE_ARRAY, "conf", c->job, sizeof(*c), 1, 0);
	if (fd < 0)
		return fd;
	if (bpf_map_update_elem(fd, &zero, c, BPF_ANY))
		err = dp_fail(dp, -errno, "snapshot of job %u: %s", c->job, strerror(errno));
	else
		err = dp_outer_set(dp, DP_JOBS, c->job, c->job, fd);
	close(fd);
	return err;
}

/*
 * A controller may set k each round: one byte of the snapshot in force.  It is updated in
 * place, the other bytes with their present values, so that no grace period has to pass.
 */
static bool snapshot_set_k(struct saina_dp *dp, struct dp_job *j, const struct saina_job_conf *c)
{
	struct saina_job_conf same = j->conf;
	__u32 zero = 0;
	bool set;
	int fd;

	same.k_set = c->k_set;
	if (dp->opts.kernel || memcmp(&same, c, sizeof(same)))
		return false;
	fd = dp_inner_open(dp, DP_JOBS, c->job);
	if (fd < 0)
		return false;
	set = !bpf_map_update_elem(fd, &zero, c, BPF_ANY);
	close(fd);
	if (set)
		j->conf.k_set = c->k_set;
	return set;
}

static int conf_check(struct saina_dp *dp, const struct saina_job_conf *c)
{
	if (c->job >= SAINA_JOBS_MAX)
		return dp_fail(dp, -EINVAL, "job %u: identifiers are 0..%u", c->job,
			       SAINA_JOBS_MAX - 1);
	if (dp_size_index(c->payload) < 0)
		return dp_fail(dp, -EINVAL, "job %u: no payload of %u elements", c->job,
			       c->payload);
	if (!is_power_of_two(c->pool) || c->pool > SAINA_POOL_MAX)
		return dp_fail(dp, -EINVAL, "job %u: pool %u is not a power of two up to %u",
			       c->job, c->pool, SAINA_POOL_MAX);
	if (!is_power_of_two(c->ring) || c->ring < SAINA_RING_MIN || c->ring > SAINA_RING_MAX)
		return dp_fail(dp, -EINVAL, "job %u: ring %u is not a power of two from %u to %u",
			       c->job, c->ring, SAINA_RING_MIN, SAINA_RING_MAX);
	if (!c->segments || c->segments > SAINA_SEGMENTS_MAX)
		return dp_fail(dp, -EINVAL, "job %u: %u segments, allowed are 1..%u", c->job,
			       c->segments, SAINA_SEGMENTS_MAX);
	if (c->sign_words < SAINA_SIGN_WORDS(c->payload, 1))
		return dp_fail(dp, -EINVAL, "job %u: %u sign words are too few for %u elements",
			       c->job, c->sign_words, c->payload);
	return 0;
}

static int rt_reset(struct saina_dp *dp, __u32 job, __u32 generation, __u32 first_round)
{
	struct saina_job_rt rt = { .generation = generation,
				   .next_round = first_round,
				   .base = first_round };
	struct saina_clock clock = { .generation = generation,
				     .low = first_round,
				     .base = first_round };

	if (bpf_map_update_elem(dp->map[DP_RT], &job, &rt, BPF_ANY))
		return dp_fail(dp, -errno, "map saina_rt of job %u: %s", job, strerror(errno));
	if (bpf_map_update_elem(dp->map[DP_CLOCK], &job, &clock, BPF_ANY))
		return dp_fail(dp, -errno, "map saina_clock of job %u: %s", job, strerror(errno));
	return 0;
}

/* Arrival times of an earlier job with this id. */
static void arrivals_clear(struct saina_dp *dp, __u32 job)
{
	const struct saina_arrival none = { 0 };

	for (__u32 w = 0; w < SAINA_WORKERS_MAX; w++) {
		__u32 key = job * SAINA_WORKERS_MAX + w;

		bpf_map_update_elem(dp->map[DP_ARRIVAL], &key, &none, BPF_ANY);
	}
}

/* The snapshot is removed first, so that no packet meets a job without maps. */
static void job_withdraw(struct saina_dp *dp, const struct dp_job *j)
{
	dp_outer_clear(dp, DP_JOBS, j->conf.job);
	dp_job_maps_clear(dp, &j->conf, false);
	dp_group_clear(dp, &j->conf);
	dp_uplink_clear(dp, &j->conf);
	dp_shm_clear(dp, &j->conf);
}

/* Withdraws the present generation but for maps that the next one replaces; @maps get its
 * counters, which are kept until the job is removed. */
static void generation_end(struct saina_dp *dp, struct dp_job *j,
			   const struct saina_job_conf *next, int maps[DP_JOB_MAPS])
{
	dp_outer_clear(dp, DP_JOBS, next->job);
	if (j->conf.payload != next->payload)
		dp_job_maps_clear(dp, &j->conf, true);
	close(maps[DP_JOB_WCOUNT]);
	maps[DP_JOB_WCOUNT] = j->maps[DP_JOB_WCOUNT];
	j->maps[DP_JOB_WCOUNT] = -1;
	dp_job_maps_close(j->maps);
	dp_group_clear(dp, &j->conf);
	dp_uplink_clear(dp, &j->conf);
	dp_shm_clear(dp, &j->conf);
	j->live = false;
}

/* A new generation: creates all maps but the counters', and resets the round state. */
static int job_restart(struct saina_dp *dp, struct dp_job *j, const struct saina_job_conf *conf,
		       __u32 first_round)
{
	int maps[DP_JOB_MAPS], err;
	__u32 job = conf->job;

	err = dp_job_maps_create(dp, conf, maps);
	if (err)
		goto close;
	if (j->live)
		generation_end(dp, j, conf, maps);
	j->conf = *conf;
	arrivals_clear(dp, job);
	/* Generation 0 marks the state unused until the maps are there: with saina.ko
	 * the program may see the new snapshot already. */
	err = rt_reset(dp, job, 0, first_round);
	if (!err)
		err = dp_job_maps_set(dp, conf, maps);
	if (!err)
		err = rt_reset(dp, job, conf->generation, first_round);
	if (err)
		goto clear;
	memcpy(j->maps, maps, sizeof(j->maps));
	j->live = true;
	dp_touch_again(j, DP_JOB_HOT);
	return 0;

clear:
	/* also the maps of an earlier generation */
	job_withdraw(dp, j);
	dp_fanout_ifb_remove(dp, j, job);
close:
	dp_job_maps_close(maps);
	return err;
}

/**
 * saina_dp_job_publish() - put a job's snapshot in force
 * @conf: the snapshot
 * @first_round: for a new generation: the next round to open
 *
 * The first publish of a generation creates the job's maps.  If a later one fails, the
 * present snapshot stays in force; if the first one fails half way, the job is removed
 * from the data path.
 */
int saina_dp_job_publish(struct saina_dp *dp, const struct saina_job_conf *conf, __u32 first_round)
{
	struct dp_job *j;
	bool fresh;
	int err;

	err = conf_check(dp, conf);
	if (err)
		return err;
	j = dp_job_entry(dp, conf->job);
	if (!j)
		return dp_fail(dp, -ENOMEM, "no memory for job %u", conf->job);
	fresh = !j->live || j->conf.generation != conf->generation;
	if (!fresh && (conf->payload != j->conf.payload || conf->segments != j->conf.segments ||
		       conf->pool != j->conf.pool || conf->ring != j->conf.ring ||
		       conf->sign_words != j->conf.sign_words))
		return dp_fail(dp, -EINVAL, "job %u: sizes can change only with the generation",
			       conf->job);
	if (!fresh && snapshot_set_k(dp, j, conf))
		return 0;
	if (fresh) {
		err = job_restart(dp, j, conf, first_round);
		if (err)
			return err;
	}
	err = dp_fanout_grow(dp, j, conf);
	if (!err)
		err = dp_group_grow(dp, conf);
	if (!err)
		err = dp_uplink_grow(dp, conf);
	if (!err)
		err = snapshot_publish(dp, conf);
	if (err) {
		if (fresh)
			saina_dp_job_remove(dp, conf->job);
		return err;
	}
	j->conf = *conf;
	dp_fanout_shrink(dp, j, conf);
	dp_group_shrink(dp, conf);
	dp_uplink_shrink(dp, conf);
	return 0;
}

/* Removes a job with its maps and counters. */
int saina_dp_job_remove(struct saina_dp *dp, __u16 job)
{
	struct dp_job *j = dp_job_find(dp, job);

	if (!j)
		return dp_fail(dp, -ENOENT, "job %u is not in the data path", job);
	job_withdraw(dp, j);
	dp_fanout_ifb_remove(dp, j, job);
	dp_job_maps_close(j->maps);
	j->live = false;
	return 0;
}
