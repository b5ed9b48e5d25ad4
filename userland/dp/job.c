// SPDX-License-Identifier: GPL-2.0-or-later
/* Jobs: their maps, their snapshots, the ports that their results are sent to. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "dp/priv.h"

static const struct dp_job_maps no_maps = { -1, -1, -1, -1, -1, -1 };

static bool is_power_of_two(__u32 x)
{
	return x && !(x & (x - 1));
}

static void job_maps_close(struct dp_job_maps *m)
{
	int fd[] = { m->hot, m->ring, m->counted, m->signs, m->fanout, m->wcount };

	for (size_t i = 0; i < sizeof(fd) / sizeof(fd[0]); i++)
		if (fd[i] >= 0)
			close(fd[i]);
	*m = no_maps;
}

/* Opens the inner map of a job, by the id that its outer map has. */
int dp_inner_open(const struct saina_dp *dp, int outer, __u32 job)
{
	__u32 id;

	if (bpf_map_lookup_elem(dp->map[outer], &job, &id))
		return -errno;
	return bpf_map_get_fd_by_id(id);
}

/* After a take-over: opens the maps that the kernel has of a job. */
static void job_adopt(struct saina_dp *dp, __u32 job, struct dp_job *j)
{
	int fd, size;
	__u32 zero = 0;

	fd = dp_inner_open(dp, DP_JOBS, job);
	if (fd < 0)
		return;
	if (!bpf_map_lookup_elem(fd, &zero, &j->conf)) {
		size = dp_size_index(j->conf.payload);
		if (size >= 0) {
			j->maps.hot = dp_inner_open(dp, DP_HOT + size, job);
			j->maps.ring = dp_inner_open(dp, DP_RING + size, job);
		}
		j->maps.counted = dp_inner_open(dp, DP_COUNTED, job);
		j->maps.signs = dp_inner_open(dp, DP_SIGNS, job);
		j->maps.fanout = dp_inner_open(dp, DP_FANOUT, job);
		j->maps.wcount = dp_inner_open(dp, DP_WCOUNT, job);
		j->live = j->maps.hot >= 0 && j->maps.ring >= 0 && j->maps.counted >= 0 &&
			  j->maps.signs >= 0 && j->maps.fanout >= 0 && j->maps.wcount >= 0;
		if (!j->live)
			job_maps_close(&j->maps);
		else
			dp_fanout_ifb_adopt(dp, j, job);
	}
	close(fd);
}

static struct dp_job *job_entry(struct saina_dp *dp, __u16 job)
{
	struct dp_job *j;

	if (job >= SAINA_JOBS_MAX)
		return NULL;
	j = dp->job[job];
	if (!j) {
		j = calloc(1, sizeof(*j));
		if (!j)
			return NULL;
		j->maps = no_maps;
		dp->job[job] = j;
	}
	if (!j->known && dp->taken_over)
		job_adopt(dp, job, j);
	j->known = true;
	return j;
}

struct dp_job *dp_job_find(struct saina_dp *dp, __u16 job)
{
	struct dp_job *j = job_entry(dp, job);

	return j && j->live ? j : NULL;
}

void dp_jobs_free(struct saina_dp *dp)
{
	for (int i = 0; i < SAINA_JOBS_MAX; i++) {
		if (!dp->job[i])
			continue;
		job_maps_close(&dp->job[i]->maps);
		free(dp->job[i]);
		dp->job[i] = NULL;
	}
}

int dp_map_new(struct saina_dp *dp, enum bpf_map_type type, const char *what, __u32 job,
	       __u32 value, __u32 entries, __u32 flags)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = flags);
	char name[16];
	int fd;

	snprintf(name, sizeof(name), "saina_%.4s%u", what, job);
	fd = bpf_map_create(type, name, sizeof(__u32), value, entries, &opts);
	if (fd < 0)
		return dp_fail(dp, -errno,
			       "no memory for %s of job %u (%u entries of %u bytes): %s", what, job,
			       entries, value, strerror(errno));
	return fd;
}

static int job_maps_create(struct saina_dp *dp, const struct saina_job_conf *c,
			   struct dp_job_maps *m)
{
	__u32 slot = sizeof(struct saina_slot_meta) + 4 * c->payload;

	*m = no_maps;
	if ((m->hot = dp_map_new(dp, BPF_MAP_TYPE_ARRAY, "hot", c->job, slot, c->pool,
				 BPF_F_INNER_MAP)) < 0)
		return m->hot;
	if ((m->ring = dp_map_new(dp, BPF_MAP_TYPE_ARRAY, "ring", c->job, slot,
				  c->segments * c->ring, BPF_F_INNER_MAP)) < 0)
		return m->ring;
	if ((m->counted = dp_map_new(dp, BPF_MAP_TYPE_ARRAY, "counted", c->job,
				     sizeof(struct saina_counted), c->segments, BPF_F_INNER_MAP)) <
	    0)
		return m->counted;
	if ((m->signs = dp_map_new(dp, BPF_MAP_TYPE_ARRAY, "signs", c->job, sizeof(__u64),
				   c->segments * c->sign_words, BPF_F_INNER_MAP)) < 0)
		return m->signs;
	if ((m->fanout = dp_map_new(dp, BPF_MAP_TYPE_DEVMAP_HASH, "fanout", c->job,
				    sizeof(struct bpf_devmap_val), SAINA_FANOUT_MAX, 0)) < 0)
		return m->fanout;
	if ((m->wcount = dp_map_new(dp, BPF_MAP_TYPE_PERCPU_ARRAY, "wcount", c->job,
				    sizeof(struct saina_counters), SAINA_WORKERS_MAX, 0)) < 0)
		return m->wcount;
	return 0;
}

int dp_outer_set(struct saina_dp *dp, int outer, __u32 key, __u32 job, int inner)
{
	if (bpf_map_update_elem(dp->map[outer], &key, &inner, BPF_ANY))
		return dp_fail(dp, -errno, "cannot put a map of job %u in %s: %s", job,
			       dp_map_name[outer], strerror(errno));
	return 0;
}

static int outer_set(struct saina_dp *dp, int outer, __u32 job, int inner)
{
	return dp_outer_set(dp, outer, job, job, inner);
}

static void outer_clear(struct saina_dp *dp, int outer, __u32 job)
{
	bpf_map_delete_elem(dp->map[outer], &job);
}

/* The snapshot is removed first, so that no packet meets a job without maps. */
static void outers_clear(struct saina_dp *dp, const struct dp_job *j)
{
	int size = dp_size_index(j->conf.payload);
	__u32 job = j->conf.job;

	outer_clear(dp, DP_JOBS, job);
	outer_clear(dp, DP_HOT + size, job);
	outer_clear(dp, DP_RING + size, job);
	outer_clear(dp, DP_COUNTED, job);
	outer_clear(dp, DP_SIGNS, job);
	outer_clear(dp, DP_FANOUT, job);
	outer_clear(dp, DP_WCOUNT, job);
	dp_group_clear(dp, &j->conf);
	dp_shm_clear(dp, &j->conf);
}

/* Adds or updates a port in a devmap.  A port that no longer exists is no error: its
 * workers will be declared dead. */
static void devmap_set(struct saina_dp *dp, int fd, int ifindex)
{
	struct bpf_devmap_val v = {
		.ifindex = ifindex,
		.bpf_prog.fd = dp_port_egress(dp, ifindex),
	};
	__u32 key = ifindex;

	if (bpf_map_update_elem(fd, &key, &v, BPF_ANY) && errno != EINVAL && errno != ENODEV)
		dp_log(dp, 1, "port %d cannot be sent to: %s", ifindex, strerror(errno));
}

static bool port_is_wanted(const struct saina_job_conf *c, __u32 ifindex)
{
	for (int w = 0; w < SAINA_WORKERS_MAX; w++)
		if (c->worker[w].flags & SAINA_BIND_BOUND && c->worker[w].ifindex == ifindex &&
		    (c->active & ~c->relay) >> w & 1)
			return true;
	return false;
}

/* Adds the ports of active workers, before the snapshot is in force. */
static void fanout_grow(struct saina_dp *dp, const struct dp_job_maps *m,
			const struct saina_job_conf *c)
{
	struct bpf_devmap_val v;

	for (int w = 0; w < SAINA_WORKERS_MAX; w++) {
		const struct saina_binding *b = &c->worker[w];
		__u32 key = b->ifindex;

		if (!(b->flags & SAINA_BIND_BOUND) || !key)
			continue;
		if (bpf_map_lookup_elem(dp->map[DP_TX], &key, &v))
			devmap_set(dp, dp->map[DP_TX], key);
		if ((c->active & ~c->relay) >> w & 1 && bpf_map_lookup_elem(m->fanout, &key, &v))
			devmap_set(dp, m->fanout, key);
	}
}

/* Removes the other ports, after it is in force. */
static void fanout_shrink(const struct dp_job_maps *m, const struct saina_job_conf *c)
{
	__u32 have[SAINA_FANOUT_MAX], key, *prev = NULL;
	int n = 0;

	while (n < SAINA_FANOUT_MAX && !bpf_map_get_next_key(m->fanout, prev, &key)) {
		have[n] = key;
		prev = &have[n++];
	}
	for (int i = 0; i < n; i++)
		if (!port_is_wanted(c, have[i]))
			bpf_map_delete_elem(m->fanout, &have[i]);
}

void dp_job_port_changed(struct saina_dp *dp, int ifindex)
{
	__u32 key = ifindex;
	struct bpf_devmap_val v;

	if (!bpf_map_lookup_elem(dp->map[DP_TX], &key, &v))
		devmap_set(dp, dp->map[DP_TX], ifindex);
	for (int i = 0; i < SAINA_JOBS_MAX; i++) {
		struct dp_job *j = dp_job_find(dp, i);

		if (j && !bpf_map_lookup_elem(j->maps.fanout, &key, &v))
			devmap_set(dp, j->maps.fanout, ifindex);
	}
}

int dp_jobs_port_tc(struct saina_dp *dp, bool there)
{
	int err = 0;

	for (int i = 0; !err && i < SAINA_JOBS_MAX; i++) {
		struct dp_job *j = dp_job_find(dp, i);

		if (j && there)
			err = dp_fanout_ifb_grow(dp, j, &j->conf);
		else if (j)
			dp_fanout_ifb_shrink(dp, j, &j->conf);
	}
	return err;
}

void dp_jobs_repair(struct saina_dp *dp)
{
	for (int i = 0; i < SAINA_JOBS_MAX; i++) {
		struct dp_job *j = dp_job_find(dp, i);

		if (j)
			dp_fanout_ifb_repair(dp, j);
	}
}

void dp_jobs_remove_ifbs(struct saina_dp *dp)
{
	for (int i = 0; i < SAINA_JOBS_MAX; i++) {
		struct dp_job *j = dp_job_find(dp, i);

		if (j)
			dp_fanout_ifb_remove(dp, j, i);
	}
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
		err = outer_set(dp, DP_JOBS, c->job, fd);
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

/* Round and clock of a job begin afresh; of generation 0 they are in nobody's use. */
static int rt_reset(struct saina_dp *dp, __u32 job, __u32 generation, __u32 first_round)
{
	struct saina_job_rt rt = { .generation = generation,
				   .next_round = first_round,
				   .base = first_round };
	struct saina_clock clock = { .generation = generation,
				     .low = first_round,
				     .base = first_round };

	if (bpf_map_update_elem(dp->map[DP_RT], &job, &rt, BPF_ANY))
		return dp_fail(dp, -errno, "saina_rt of job %u: %s", job, strerror(errno));
	if (bpf_map_update_elem(dp->map[DP_CLOCK], &job, &clock, BPF_ANY))
		return dp_fail(dp, -errno, "saina_clock of job %u: %s", job, strerror(errno));
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

/* A new generation: creates all maps but the counters', and resets the round state. */
static int job_restart(struct saina_dp *dp, struct dp_job *j, const struct saina_job_conf *conf,
		       __u32 first_round)
{
	int size = dp_size_index(conf->payload), err;
	__u32 job = conf->job;
	struct dp_job_maps m;

	err = job_maps_create(dp, conf, &m);
	if (err)
		goto close;
	if (j->live) {
		int old = dp_size_index(j->conf.payload);

		outer_clear(dp, DP_JOBS, job);
		if (old != size) {
			outer_clear(dp, DP_HOT + old, job);
			outer_clear(dp, DP_RING + old, job);
		}
		/* counters are kept until the job is removed */
		close(m.wcount);
		m.wcount = j->maps.wcount;
		j->maps.wcount = -1;
		job_maps_close(&j->maps);
		dp_group_clear(dp, &j->conf);
		dp_shm_clear(dp, &j->conf);
		j->live = false;
	}
	j->conf = *conf;
	arrivals_clear(dp, job);
	/* Generation 0 marks the state unused until the maps are there: with saina.ko
	 * the program may see the new snapshot already. */
	err = rt_reset(dp, job, 0, first_round);
	if (err)
		goto clear;
	if ((err = outer_set(dp, DP_HOT + size, job, m.hot)) ||
	    (err = outer_set(dp, DP_RING + size, job, m.ring)) ||
	    (err = outer_set(dp, DP_COUNTED, job, m.counted)) ||
	    (err = outer_set(dp, DP_SIGNS, job, m.signs)) ||
	    (err = outer_set(dp, DP_FANOUT, job, m.fanout)) ||
	    (err = outer_set(dp, DP_WCOUNT, job, m.wcount)))
		goto clear;
	err = rt_reset(dp, job, conf->generation, first_round);
	if (err)
		goto clear;
	j->maps = m;
	j->live = true;
	return 0;

clear:
	/* also the maps of an earlier generation */
	outers_clear(dp, j);
	dp_fanout_ifb_remove(dp, j, job);
close:
	job_maps_close(&m);
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
	j = job_entry(dp, conf->job);
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
	fanout_grow(dp, &j->maps, conf);
	err = dp_fanout_ifb_grow(dp, j, conf);
	if (!err)
		err = dp_group_grow(dp, conf);
	if (!err)
		err = snapshot_publish(dp, conf);
	if (err) {
		if (fresh)
			saina_dp_job_remove(dp, conf->job);
		return err;
	}
	j->conf = *conf;
	fanout_shrink(&j->maps, conf);
	dp_group_shrink(dp, conf);
	dp_fanout_ifb_shrink(dp, j, conf);
	return 0;
}

/* Removes a job with its maps and counters. */
int saina_dp_job_remove(struct saina_dp *dp, __u16 job)
{
	struct dp_job *j = dp_job_find(dp, job);

	if (!j)
		return dp_fail(dp, -ENOENT, "job %u is not in the data path", job);
	outers_clear(dp, j);
	dp_fanout_ifb_remove(dp, j, job);
	job_maps_close(&j->maps);
	j->live = false;
	return 0;
}

/* The snapshot in force. */
int saina_dp_job_get(struct saina_dp *dp, __u16 job, struct saina_job_conf *conf)
{
	struct dp_job *j = dp_job_find(dp, job);

	if (!j)
		return dp_fail(dp, -ENOENT, "job %u is not in the data path", job);
	*conf = j->conf;
	return 0;
}

/* The round state of a job, read under its lock. */
int saina_dp_job_rt(struct saina_dp *dp, __u16 job, struct saina_job_rt *rt)
{
	__u32 key = job;

	if (!dp_job_find(dp, job))
		return dp_fail(dp, -ENOENT, "job %u is not in the data path", job);
	if (bpf_map_lookup_elem_flags(dp->map[DP_RT], &key, rt, BPF_F_LOCK))
		return dp_fail(dp, -errno, "saina_rt of job %u: %s", job, strerror(errno));
	return 0;
}

/* The clock of a job with a parameter server, read under its lock. */
int saina_dp_job_clock(struct saina_dp *dp, __u16 job, struct saina_clock *clock)
{
	__u32 key = job;

	if (!dp_job_find(dp, job))
		return dp_fail(dp, -ENOENT, "job %u is not in the data path", job);
	if (bpf_map_lookup_elem_flags(dp->map[DP_CLOCK], &key, clock, BPF_F_LOCK))
		return dp_fail(dp, -errno, "saina_clock of job %u: %s", job, strerror(errno));
	return 0;
}
