// SPDX-License-Identifier: GPL-2.0-or-later
/* The maps: their names and sizes, and the inner maps of jobs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "dp/priv.h"

#define MAP_NAME_HOT(E)		[DP_HOT + SIZE_##E] = "saina_hot_" #E,
#define MAP_NAME_RING(E)	[DP_RING + SIZE_##E] = "saina_ring_" #E,
#define MAP_NAME_VIEW(E)	[DP_VIEW + SIZE_##E] = "saina_view_" #E,
#define MAP_NAME_INPUT(E)	[DP_INPUT + SIZE_##E] = "saina_input_" #E,
#define SIZE_NAME(E)		SIZE_##E,
enum { SAINA_ELEMS_LIST(SIZE_NAME) SIZES };
SAINA_ASSERT(SIZES == DP_SIZES, "DP_SIZES");

/* A change of one of these requires the next SAINA_LAYOUT in uapi/saina/bpf.h. */
#define LAYOUT_SIZE(TYPE, SIZE) \
	SAINA_ASSERT(sizeof(struct TYPE) == (SIZE), #TYPE " has another size: increase SAINA_LAYOUT")
SAINA_ASSERT(SAINA_LAYOUT == 22, "the sizes below are those of layout 22");
SAINA_ASSERT(DP_MAPS == 45, "there are other maps: increase SAINA_LAYOUT");
SAINA_ASSERT(SAINA_JC_N <= SAINA_JC_ROOM, "no room for another counter of jobs");
LAYOUT_SIZE(saina_global, 12);
LAYOUT_SIZE(saina_job_conf, 2312);
LAYOUT_SIZE(saina_job_rt, 520);
LAYOUT_SIZE(saina_slot_meta, 64);
LAYOUT_SIZE(saina_counted, 256);
LAYOUT_SIZE(saina_input_head, 64);
LAYOUT_SIZE(saina_output_head, 64);
LAYOUT_SIZE(saina_slot_lock, 64);
LAYOUT_SIZE(saina_clock, 2680);
LAYOUT_SIZE(saina_arrival, 224);
LAYOUT_SIZE(saina_counters, 480);
LAYOUT_SIZE(saina_away, 8);
LAYOUT_SIZE(saina_port_conf, 32);
LAYOUT_SIZE(saina_addr, 16);
LAYOUT_SIZE(saina_place, 12);
LAYOUT_SIZE(saina_asked, 8);
LAYOUT_SIZE(saina_event_seen, 528);
LAYOUT_SIZE(saina_event, 40);
LAYOUT_SIZE(saina_relay_msg, 8256);

const char *const dp_map_name[DP_MAPS] = {
	[DP_GLOBAL] = "saina_global",
	[DP_JOBS] = "saina_jobs",
	[DP_RT] = "saina_rt",
	[DP_CLOCK] = "saina_clock",
	[DP_COUNTED] = "saina_counted",
	[DP_SIGNS] = "saina_signs",
	[DP_FANOUT] = "saina_fanout",
	[DP_WCOUNT] = "saina_wcount",
	[DP_GCOUNT] = "saina_gcount",
	[DP_LOCKS] = "saina_locks",
	[DP_PORTS] = "saina_ports",
	[DP_TX] = "saina_tx",
	[DP_JOIN_SRC] = "saina_join_src",
	[DP_EVENTS] = "saina_events",
	[DP_RELAY] = "saina_relay",
	[DP_FANOUT_IFB] = "saina_fanout_ifb",
	[DP_TC_HANDOFF] = "saina_tc_handoff",
	[DP_ASKED] = "saina_asked",
	[DP_EVENT_SEEN] = "saina_event_seen",
	[DP_ARRIVAL] = "saina_arrival",
	[DP_AWAY] = "saina_away",
	SAINA_ELEMS_LIST(MAP_NAME_HOT)
	SAINA_ELEMS_LIST(MAP_NAME_RING)
	SAINA_ELEMS_LIST(MAP_NAME_INPUT)
	SAINA_ELEMS_LIST(MAP_NAME_VIEW)
};

#define SIZE_VALUE(E) E,
static const __u32 dp_elems[DP_SIZES] = { SAINA_ELEMS_LIST(SIZE_VALUE) };

int dp_size_index(__u32 elems)
{
	for (int i = 0; i < DP_SIZES; i++)
		if (dp_elems[i] == elems)
			return i;
	return -1;
}

__u32 dp_inner_id(const struct saina_dp *dp, int outer, __u32 key)
{
	__u32 id;

	return bpf_map_lookup_elem(dp->map[outer], &key, &id) ? 0 : id;
}

int dp_inner_open(const struct saina_dp *dp, int outer, __u32 key)
{
	__u32 id = dp_inner_id(dp, outer, key);

	return id ? bpf_map_get_fd_by_id(id) : -ENOENT;
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
			       "cannot create map %s of job %u (%u entries of %u bytes): %s", what, job,
			       entries, value, strerror(errno));
	return fd;
}

int dp_outer_set(struct saina_dp *dp, int outer, __u32 key, __u32 job, int inner)
{
	if (bpf_map_update_elem(dp->map[outer], &key, &inner, BPF_ANY))
		return dp_fail(dp, -errno, "cannot put a map of job %u in %s: %s", job,
			       dp_map_name[outer], strerror(errno));
	return 0;
}

void dp_outer_clear(struct saina_dp *dp, int outer, __u32 key)
{
	bpf_map_delete_elem(dp->map[outer], &key);
}
