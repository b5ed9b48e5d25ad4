// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "dp/priv.h"

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
	fd = global ? dp->map[DP_GCOUNT] : j->maps.wcount;
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
