// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Views: what each group of a job sees of its table.  Which there are the outer map alone
 * says, so an agent that takes over finds them.
 */
#include <unistd.h>
#include "dp/priv.h"

static __u32 view_key(__u32 job, unsigned int group)
{
	return job * SAINA_WORKERS_MAX + group;
}

static int outer_of(const struct saina_job_conf *c)
{
	return DP_VIEW + dp_size_index(c->payload);
}

static bool is_there(const struct saina_dp *dp, int outer, __u32 key)
{
	__u32 id;

	return !bpf_map_lookup_elem(dp->map[outer], &key, &id);
}

/* A table may have more groups than the policy that comes after it, or fewer. */
static unsigned int groups_of(const struct saina_job_conf *c)
{
	return c->policy.groups > c->next.groups ? c->policy.groups : c->next.groups;
}

int dp_view_grow(struct saina_dp *dp, const struct saina_job_conf *c)
{
	__u32 slot = sizeof(struct saina_slot_meta) + 4 * c->payload;
	int outer = outer_of(c), fd, err = 0;

	for (unsigned int g = 0; !err && g < groups_of(c); g++) {
		if (is_there(dp, outer, view_key(c->job, g)))
			continue;
		fd = dp_map_new(dp, BPF_MAP_TYPE_ARRAY, "view", c->job, slot, c->segments,
				BPF_F_INNER_MAP);
		if (fd < 0)
			return fd;
		err = dp_outer_set(dp, outer, view_key(c->job, g), c->job, fd);
		close(fd);
	}
	return err;
}

static void remove_from(struct saina_dp *dp, const struct saina_job_conf *c, unsigned int group)
{
	int outer = outer_of(c);

	for (; group < SAINA_WORKERS_MAX; group++) {
		__u32 key = view_key(c->job, group);

		/* there are those of the first groups */
		if (!is_there(dp, outer, key))
			break;
		bpf_map_delete_elem(dp->map[outer], &key);
	}
}

void dp_view_shrink(struct saina_dp *dp, const struct saina_job_conf *c)
{
	unsigned int groups = groups_of(c);
	struct saina_job_rt rt;

	/* there may be a table still of a policy that is asked for no more */
	if (saina_dp_job_rt(dp, c->job, &rt))
		return;
	remove_from(dp, c, groups > rt.policy.groups ? groups : rt.policy.groups);
}

void dp_view_clear(struct saina_dp *dp, const struct saina_job_conf *c)
{
	remove_from(dp, c, 0);
}
