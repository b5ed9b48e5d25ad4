// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads the memory of new maps once.  The kernel has filled it with zeros by other addresses than
 * those of the map; on some virtual machines the first access by these takes 10 us a page, which
 * else the first rounds of a job wait for.
 */
#include "dp/priv.h"

#define PAGE 4096

/* What packets use.  The ring is the last: it may be replaced by itself. */
static const enum dp_job_map touched[] = { DP_JOB_HOT, DP_JOB_COUNTED, DP_JOB_SIGNS, DP_JOB_RING };

/* Reads up to @entries entries that are not more than a page apart.  Returns the next one, 0 at the end. */
static __u32 map_touch(int fd, __u32 from, unsigned int *entries)
{
	__u8 value[sizeof(struct saina_slot_meta) + 4 * SAINA_ELEMS_MAX];
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info), step;

	if (bpf_obj_get_info_by_fd(fd, &info, &len) || !info.value_size ||
	    info.value_size > sizeof(value))
		return 0;
	step = info.value_size < PAGE ? PAGE / info.value_size : 1;
	for (; from < info.max_entries && *entries; --*entries, from += step)
		bpf_map_lookup_elem(fd, &from, value);
	return from < info.max_entries ? from : 0;
}

void dp_map_touch(int fd)
{
	unsigned int all = ~0u;

	map_touch(fd, 0, &all);
}

void dp_touch_again(struct dp_job *j, enum dp_job_map first)
{
	int i = 0;

	while (touched[i] != first)
		i++;
	if (i > j->touched)
		return;
	j->touched = i;
	j->touch_next = 0;
}

bool saina_dp_touch(struct saina_dp *dp, unsigned int entries)
{
	const int maps = sizeof(touched) / sizeof(touched[0]);
	struct dp_job *j;

	for (int i = 0; i < SAINA_JOBS_MAX; i++) {
		j = dp->job[i];
		if (!j || !j->live)
			continue;
		for (; j->touched < maps; j->touched++) {
			if (!entries)
				return true;
			j->touch_next = map_touch(j->maps[touched[j->touched]], j->touch_next, &entries);
			if (j->touch_next)
				return true;
		}
	}
	return false;
}
