// SPDX-License-Identifier: GPL-2.0-or-later
/* Reading the state of jobs: round state, slots, results, arrival times, counters. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "dp/priv.h"

/* A slot of any payload size fits. */
struct any_slot {
	struct saina_slot_meta meta;
	__s32 sum[SAINA_ELEMS_MAX];
};

/* The snapshot in force. */
int saina_dp_job_get(struct saina_dp *dp, __u16 job, struct saina_job_conf *conf)
{
	struct dp_job *j = dp_job_find(dp, job);

	if (!j)
		return dp_fail(dp, -ENOENT, "job %u is not in the data path", job);
	*conf = j->conf;
	return 0;
}

/* The entry that @map has of a job, read under its lock. */
static int locked_read(struct saina_dp *dp, int map, __u32 job, void *to)
{
	if (!dp_job_find(dp, job))
		return dp_fail(dp, -ENOENT, "job %u is not in the data path", job);
	if (bpf_map_lookup_elem_flags(dp->map[map], &job, to, BPF_F_LOCK))
		return dp_fail(dp, -errno, "map %s of job %u: %s", dp_map_name[map], job, strerror(errno));
	return 0;
}

int saina_dp_job_rt(struct saina_dp *dp, __u16 job, struct saina_job_rt *rt)
{
	return locked_read(dp, DP_RT, job, rt);
}

/* The clock of a job with a parameter server. */
int saina_dp_job_clock(struct saina_dp *dp, __u16 job, struct saina_clock *clock)
{
	return locked_read(dp, DP_CLOCK, job, clock);
}

/**
 * saina_dp_slot() - a hot slot of a job
 * @index: in the job's pool
 * @m: out: its head
 *
 * Read without the slot's lock: counts may be one packet old.  Returns -ENOENT if
 * there is no such job, or if its pool ends before @index.
 */
int saina_dp_slot(struct saina_dp *dp, __u16 job, __u32 index, struct saina_slot_meta *m)
{
	struct dp_job *j = dp_job_find(dp, job);
	struct any_slot slot;

	if (!j || index >= j->conf.pool)
		return dp_fail(dp, -ENOENT, "job %u has no slot %u", job, index);
	if (bpf_map_lookup_elem(j->maps[DP_JOB_HOT], &index, &slot))
		return dp_fail(dp, -errno, "slot %u of job %u: %s", index, job, strerror(errno));
	*m = slot.meta;
	return 0;
}

/**
 * saina_dp_arrival() - arrival times of a worker's gradients, relative to the first one's
 * @a: out; all 0 if none has come in this generation of the job
 */
int saina_dp_arrival(struct saina_dp *dp, __u16 job, __u32 worker, struct saina_arrival *a)
{
	struct dp_job *j = dp_job_find(dp, job);
	__u32 key = job * SAINA_WORKERS_MAX + worker;

	if (!j || worker >= SAINA_WORKERS_MAX)
		return dp_fail(dp, -ENOENT, "job %u has no worker %u", job, worker);
	if (bpf_map_lookup_elem(dp->map[DP_ARRIVAL], &key, a))
		return dp_fail(dp, -errno, "map saina_arrival of job %u: %s", job, strerror(errno));
	if (a->generation != j->conf.generation)
		memset(a, 0, sizeof(*a));
	return 0;
}

/**
 * saina_dp_result() - the result of a segment in a round, from the ring
 * @m: out: its head
 * @sums: out: payload elements of it
 *
 * Returns -ENOENT if the round is not finished, or no longer in the ring.
 */
int saina_dp_result(struct saina_dp *dp, __u16 job, __u32 segment, __u32 round,
		    struct saina_slot_meta *m, __s32 *sums)
{
	struct dp_job *j = dp_job_find(dp, job);
	struct any_slot slot, again;
	__u32 key;

	if (!j || segment >= j->conf.segments)
		return dp_fail(dp, -ENOENT, "job %u has no segment %u", job, segment);
	key = (round & (j->conf.ring - 1)) * j->conf.segments + segment;
	/* Two equal reads: the entry was not being overwritten. */
	do {
		if (bpf_map_lookup_elem(j->maps[DP_JOB_RING], &key, &slot) ||
		    bpf_map_lookup_elem(j->maps[DP_JOB_RING], &key, &again))
			return dp_fail(dp, -errno, "result of job %u: %s", job, strerror(errno));
	} while (memcmp(&slot, &again, sizeof(slot.meta) + 4 * j->conf.payload));
	if (slot.meta.state != SAINA_SLOT_DONE || slot.meta.round != round)
		return dp_fail(dp, -ENOENT, "job %u has no result of segment %u, round %u", job,
			       segment, round);
	*m = slot.meta;
	memcpy(sums, slot.sum, 4 * j->conf.payload);
	return 0;
}

/**
 * saina_dp_join_src_pop() - port and MAC address that a JOIN came from
 * @ip, @udp_port: its source address
 * @nonce: its nonce, host order
 *
 * Removes the entry; the next JOIN with that nonce makes another one.
 */
int saina_dp_join_src_pop(struct saina_dp *dp, __be32 ip, __be16 udp_port, __u64 nonce,
			  struct saina_place *p)
{
	struct saina_addr key = { .nonce = nonce, .ip = ip, .udp_port = udp_port };

	if (bpf_map_lookup_and_delete_elem(dp->map[DP_JOIN_SRC], &key, p))
		return dp_fail(dp, -errno,
			       "no JOIN came from that address by a port with the program");
	return 0;
}

const struct saina_counter_info saina_counter_info[SAINA_C_N] = {
#define COUNTER_INFO(id, name, drop, text) [SAINA_C_##id] = { name, text, drop },
	SAINA_COUNTER_LIST(COUNTER_INFO)
};

/**
 * saina_dp_counters() - counters summed over the CPUs
 * @job, @worker: whose; either negative: those of no job
 */
int saina_dp_counters(struct saina_dp *dp, int job, int worker, struct saina_counters *out)
{
	bool global = job < 0 || worker < 0;
	struct dp_job *j = global ? NULL : dp_job_find(dp, job);
	struct saina_counters *per_cpu;
	__u32 key = global ? 0 : worker;
	int fd, err = 0;

	if (!global && (!j || worker >= SAINA_WORKERS_MAX))
		return dp_fail(dp, -ENOENT, "job %d has no worker %d in the data path", job,
			       worker);
	/* the kernel's element is rounded up to 8, which a struct of u64 is */
	per_cpu = calloc(dp->cpus, sizeof(*per_cpu));
	if (!per_cpu)
		return dp_fail(dp, -ENOMEM, "no memory for counters");
	fd = global ? dp->map[DP_GCOUNT] : j->maps[DP_JOB_WCOUNT];
	memset(out, 0, sizeof(*out));
	if (bpf_map_lookup_elem(fd, &key, per_cpu))
		err = dp_fail(dp, -errno, "counters: %s", strerror(errno));
	else
		for (int cpu = 0; cpu < dp->cpus; cpu++)
			for (int i = 0; i < SAINA_C_N; i++)
				out->c[i] += per_cpu[cpu].c[i];
	free(per_cpu);
	return err;
}
