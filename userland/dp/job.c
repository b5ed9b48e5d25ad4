// SPDX-License-Identifier: GPL-2.0-or-later
/* The jobs of a handle: their maps, and finding them, also after a take-over. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "dp/priv.h"

/* @outer: the outer map, with @sized that of the smallest payload. */
static const struct {
	const char *what;
	int outer;
	bool sized;
} job_map[DP_JOB_MAPS] = {
	[DP_JOB_HOT] = { "hot", DP_HOT, true },
	[DP_JOB_RING] = { "ring", DP_RING, true },
	[DP_JOB_COUNTED] = { "counted", DP_COUNTED },
	[DP_JOB_SIGNS] = { "signs", DP_SIGNS },
	[DP_JOB_FANOUT] = { "fanout", DP_FANOUT },
	[DP_JOB_WCOUNT] = { "wcount", DP_WCOUNT },
};

static int outer_map(enum dp_job_map m, const struct saina_job_conf *c)
{
	return job_map[m].outer + (job_map[m].sized ? dp_size_index(c->payload) : 0);
}

int dp_job_map_create(struct saina_dp *dp, const struct saina_job_conf *c, enum dp_job_map m)
{
	__u32 slot = sizeof(struct saina_slot_meta) + 4 * c->payload;
	const struct {
		enum bpf_map_type type;
		__u32 value, entries, flags;
	} spec[DP_JOB_MAPS] = {
		[DP_JOB_HOT] = { BPF_MAP_TYPE_ARRAY, slot, c->pool,
				 BPF_F_INNER_MAP | BPF_F_MMAPABLE },
		[DP_JOB_RING] = { BPF_MAP_TYPE_ARRAY, slot, c->segments * c->ring,
				  BPF_F_INNER_MAP | BPF_F_MMAPABLE },
		[DP_JOB_COUNTED] = { BPF_MAP_TYPE_ARRAY, sizeof(struct saina_counted), c->segments,
				     BPF_F_INNER_MAP },
		[DP_JOB_SIGNS] = { BPF_MAP_TYPE_ARRAY, sizeof(__u64), c->segments * c->sign_words,
				   BPF_F_INNER_MAP },
		[DP_JOB_FANOUT] = { BPF_MAP_TYPE_DEVMAP_HASH, sizeof(struct bpf_devmap_val),
				    SAINA_FANOUT_MAX },
		[DP_JOB_WCOUNT] = { BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(struct saina_counters),
				    SAINA_WORKERS_MAX },
	};

	return dp_map_new(dp, spec[m].type, job_map[m].what, c->job, spec[m].value,
			  spec[m].entries, spec[m].flags);
}

void dp_job_maps_close(int maps[DP_JOB_MAPS])
{
	for (int m = 0; m < DP_JOB_MAPS; m++) {
		if (maps[m] >= 0)
			close(maps[m]);
		maps[m] = -1;
	}
}

int dp_ring_freeze(struct saina_dp *dp, const struct saina_job_conf *c, int fd)
{
	if (!bpf_map_freeze(fd))
		return 0;
	return dp_fail(dp, -errno, "cannot freeze the ring of job %u: %s", c->job, strerror(errno));
}

int dp_job_maps_create(struct saina_dp *dp, const struct saina_job_conf *c, int maps[DP_JOB_MAPS])
{
	int err = 0;

	for (int m = 0; m < DP_JOB_MAPS; m++) {
		maps[m] = err ? -1 : dp_job_map_create(dp, c, m);
		if (!err && maps[m] < 0)
			err = maps[m];
	}
	return err ? err : dp_ring_freeze(dp, c, maps[DP_JOB_RING]);
}

int dp_job_maps_set(struct saina_dp *dp, const struct saina_job_conf *c,
		    const int maps[DP_JOB_MAPS])
{
	int err = 0;

	for (int m = 0; !err && m < DP_JOB_MAPS; m++)
		err = dp_outer_set(dp, outer_map(m, c), c->job, c->job, maps[m]);
	return err;
}

void dp_job_maps_clear(struct saina_dp *dp, const struct saina_job_conf *c, bool sized_only)
{
	for (int m = 0; m < DP_JOB_MAPS; m++)
		if (job_map[m].sized || !sized_only)
			dp_outer_clear(dp, outer_map(m, c), c->job);
}

static const char *ring_pin(const struct saina_dp *dp, char *path, __u32 job)
{
	char name[32];

	snprintf(name, sizeof(name), "saina_kept_ring-%u", job);
	return dp_pin_path(dp, path, name);
}

void dp_ring_keep(struct saina_dp *dp, __u32 job, bool keep)
{
	char path[PATH_MAX];

	if (!dp->pinned)
		return;
	unlink(ring_pin(dp, path, job));
	if (keep && bpf_obj_pin(dp->job[job]->maps[DP_JOB_RING], path))
		dp_log(dp, 1, "cannot pin %s: %s; a crash of sainad now would end the rounds of job %u",
		       path, strerror(errno), job);
}

/* An earlier process may have ended while it replaced the ring. */
static void ring_restore(struct saina_dp *dp, const struct saina_job_conf *c)
{
	int outer = outer_map(DP_JOB_RING, c), fd;
	char path[PATH_MAX];

	fd = bpf_obj_get(ring_pin(dp, path, c->job));
	if (fd < 0)
		return;
	if (!dp_inner_id(dp, outer, c->job))
		dp_outer_set(dp, outer, c->job, c->job, fd);
	close(fd);
	unlink(path);
}

/* After a take-over: opens the maps that the kernel has of a job. */
static void job_adopt(struct saina_dp *dp, __u32 job, struct dp_job *j)
{
	int fd = dp_inner_open(dp, DP_JOBS, job);
	__u32 zero = 0;

	if (fd < 0)
		return;
	if (!bpf_map_lookup_elem(fd, &zero, &j->conf) && dp_size_index(j->conf.payload) >= 0) {
		j->live = true;
		ring_restore(dp, &j->conf);
		for (int m = 0; m < DP_JOB_MAPS; m++) {
			j->maps[m] = dp_inner_open(dp, outer_map(m, &j->conf), job);
			j->live &= j->maps[m] >= 0;
		}
		if (j->live)
			dp_fanout_ifb_adopt(dp, j, job);
		else
			dp_job_maps_close(j->maps);
	}
	close(fd);
}

struct dp_job *dp_job_entry(struct saina_dp *dp, __u16 job)
{
	struct dp_job *j;

	if (job >= SAINA_JOBS_MAX)
		return NULL;
	j = dp->job[job];
	if (!j) {
		j = calloc(1, sizeof(*j));
		if (!j)
			return NULL;
		for (int m = 0; m < DP_JOB_MAPS; m++)
			j->maps[m] = -1;
		dp->job[job] = j;
	}
	if (!j->known && dp->taken_over)
		job_adopt(dp, job, j);
	j->known = true;
	return j;
}

struct dp_job *dp_job_find(struct saina_dp *dp, __u16 job)
{
	struct dp_job *j = dp_job_entry(dp, job);

	return j && j->live ? j : NULL;
}

void dp_jobs_free(struct saina_dp *dp)
{
	for (int i = 0; i < SAINA_JOBS_MAX; i++) {
		if (!dp->job[i])
			continue;
		dp_job_maps_close(dp->job[i]->maps);
		free(dp->job[i]);
		dp->job[i] = NULL;
	}
}

void dp_jobs_port_changed(struct saina_dp *dp, int ifindex)
{
	struct dp_job *j;

	dp_devmap_update(dp, dp->map[DP_TX], ifindex);
	dp_for_each_job(dp, i, j)
		dp_devmap_update(dp, j->maps[DP_JOB_FANOUT], ifindex);
}

int dp_jobs_ports_changed(struct saina_dp *dp, bool there)
{
	struct dp_job *j;
	int err = 0;

	dp_for_each_job(dp, i, j) {
		if (there && !err)
			err = dp_fanout_grow(dp, j, &j->conf);
		else if (!there)
			dp_fanout_shrink(dp, j, &j->conf);
	}
	return err;
}

void dp_jobs_repair(struct saina_dp *dp)
{
	struct dp_job *j;

	dp_for_each_job(dp, i, j)
		dp_fanout_ifb_repair(dp, j);
}

void dp_jobs_remove_ifbs(struct saina_dp *dp)
{
	struct dp_job *j;

	dp_for_each_job(dp, i, j)
		dp_fanout_ifb_remove(dp, j, i);
}
