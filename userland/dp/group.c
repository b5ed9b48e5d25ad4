// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Views: the copy of a job's parameters that each of its groups is sent (policy grouped).
 * The outer map alone says which exist, so that an agent that takes over finds them.
 */
#include <unistd.h>
#include "dp/priv.h"

static __u32 group_key(__u32 job, unsigned int group)
{
	return job * SAINA_WORKERS_MAX + group;
}

static int outer_map(const struct saina_job_conf *c)
{
	return DP_VIEW + dp_size_index(c->payload);
}

/* The policy in force may have more or fewer groups than the next one. */
static unsigned int groups_needed(const struct saina_job_conf *c)
{
	return c->policy.groups > c->next.groups ? c->policy.groups : c->next.groups;
}

int dp_group_grow(struct saina_dp *dp, const struct saina_job_conf *c)
{
	__u32 slot = sizeof(struct saina_slot_meta) + 4 * c->payload;
	int outer = outer_map(c), fd, err = 0;

	for (unsigned int g = 0; !err && g < groups_needed(c); g++) {
		if (dp_inner_id(dp, outer, group_key(c->job, g)))
			continue;
		fd = dp_map_new(dp, BPF_MAP_TYPE_ARRAY, "view", c->job, slot, c->segments,
				BPF_F_INNER_MAP);
		if (fd < 0)
			return fd;
		err = dp_outer_set(dp, outer, group_key(c->job, g), c->job, fd);
		close(fd);
	}
	return err;
}

/* Views exist for groups 0 .. n - 1. */
static void views_remove(struct saina_dp *dp, const struct saina_job_conf *c, unsigned int group)
{
	int outer = outer_map(c);

	for (; group < SAINA_WORKERS_MAX; group++) {
		if (!dp_inner_id(dp, outer, group_key(c->job, group)))
			break;
		dp_outer_clear(dp, outer, group_key(c->job, group));
	}
}

void dp_group_shrink(struct saina_dp *dp, const struct saina_job_conf *c)
{
	unsigned int groups = groups_needed(c);
	struct saina_job_rt rt;

	/* The data path may still run a policy that the snapshot no longer has. */
	if (saina_dp_job_rt(dp, c->job, &rt))
		return;
	views_remove(dp, c, groups > rt.policy.groups ? groups : rt.policy.groups);
}

void dp_group_clear(struct saina_dp *dp, const struct saina_job_conf *c)
{
	views_remove(dp, c, 0);
}
