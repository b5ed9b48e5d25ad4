/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All maps but the scratch memory of single programs.  What they hold: uapi/saina/bpf.h.
 *
 * Sizes of a job's own (inner) maps are the job's; the templates below give
 * only types, key and value sizes.  BPF_F_INNER_MAP lets max_entries differ.
 * Locks live in flat arrays because 6.1 refuses bpf_spin_lock in inner maps.
 */
#ifndef SAINA_MAPS_BPF_H
#define SAINA_MAPS_BPF_H

#include "common.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct saina_global);
} saina_global SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAINA_JOBS_MAX);
	__type(key, __u32);
	__type(value, struct saina_job_rt);
} saina_rt SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAINA_JOBS_MAX);
	__type(key, __u32);
	__type(value, struct saina_clock);
} saina_clock SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAINA_LOCKS);
	__type(key, __u32);
	__type(value, struct saina_slot_lock);
} saina_locks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct saina_counters);
} saina_gcount SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SAINA_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct saina_port_conf);
} saina_ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, SAINA_PORTS_MAX);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct bpf_devmap_val));
} saina_tx SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAINA_JOBS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} saina_fanout_ifb SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SAINA_PORTS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} saina_tc_handoff SEC(".maps");

/* A worker has one limit, whichever hook its messages come by. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAINA_JOBS_MAX * SAINA_WORKERS_MAX);
	__type(key, __u32);
	__type(value, struct saina_asked);
} saina_asked SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAINA_JOBS_MAX);
	__type(key, __u32);
	__type(value, struct saina_event_seen);
} saina_event_seen SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAINA_JOBS_MAX * SAINA_WORKERS_MAX);
	__type(key, __u32);
	__type(value, struct saina_arrival);
} saina_arrival SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct saina_addr);
	__type(value, struct saina_place);
} saina_join_src SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} saina_events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 * 1024 * 1024);
} saina_relay SEC(".maps");

/*
 * Per job: array of maps, indexed by job.  Sizes instead of types: clang 14
 * leaves types that only inner definitions name as forward declarations.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SAINA_JOBS_MAX);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_ARRAY);
		__uint(max_entries, 1);
		__uint(key_size, sizeof(__u32));
		__uint(value_size, sizeof(struct saina_job_conf));
	});
} saina_jobs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SAINA_JOBS_MAX);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_ARRAY);
		__uint(map_flags, BPF_F_INNER_MAP);
		__uint(max_entries, 1);
		__uint(key_size, sizeof(__u32));
		__uint(value_size, sizeof(struct saina_counted));
	});
} saina_counted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SAINA_JOBS_MAX);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_ARRAY);
		__uint(map_flags, BPF_F_INNER_MAP);
		__uint(max_entries, 1);
		__uint(key_size, sizeof(__u32));
		__uint(value_size, sizeof(__u64));
	});
} saina_signs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SAINA_JOBS_MAX);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
		__uint(max_entries, SAINA_FANOUT_MAX);
		__uint(key_size, sizeof(__u32));
		__uint(value_size, sizeof(struct bpf_devmap_val));
	});
} saina_fanout SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SAINA_JOBS_MAX);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
		__uint(max_entries, SAINA_WORKERS_MAX);
		__uint(key_size, sizeof(__u32));
		__uint(value_size, sizeof(struct saina_counters));
	});
} saina_wcount SEC(".maps");

/* Only jobs with an uplink have one. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SAINA_JOBS_MAX);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_RINGBUF);
		__uint(max_entries, 4096);
	});
} saina_away SEC(".maps");

/* The value size of an inner map is fixed, so each payload size has its own outer maps. */
#define SAINA_SIZED_MAP(NAME, ENTRIES, VALUE, FLAGS)			\
struct {								\
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);			\
	__uint(max_entries, ENTRIES);					\
	__type(key, __u32);						\
	__array(values, struct {					\
		__uint(type, BPF_MAP_TYPE_ARRAY);			\
		__uint(map_flags, BPF_F_INNER_MAP | (FLAGS));		\
		__uint(max_entries, 1);					\
		__uint(key_size, sizeof(__u32));			\
		__uint(value_size, sizeof(struct VALUE));		\
	});								\
} NAME SEC(".maps");
/*
 * Workers map the ring, and an input array each; a relay maps the hot slots.  Parameter server
 * with groups: a view for each group of a job.
 */
#define SAINA_SIZED_MAPS(E)								\
SAINA_SIZED_MAP(saina_hot_##E, SAINA_JOBS_MAX, saina_slot_##E, BPF_F_MMAPABLE)		\
SAINA_SIZED_MAP(saina_ring_##E, SAINA_JOBS_MAX, saina_slot_##E, BPF_F_MMAPABLE)		\
SAINA_SIZED_MAP(saina_view_##E, SAINA_JOBS_MAX * SAINA_WORKERS_MAX, saina_slot_##E, 0)	\
SAINA_SIZED_MAP(saina_input_##E, SAINA_JOBS_MAX * SAINA_WORKERS_MAX, saina_input_##E,	\
		BPF_F_MMAPABLE)
SAINA_ELEMS_LIST(SAINA_SIZED_MAPS)

/* The ifb that copies to the job's ports, 0 if there is none. */
static __always_inline __u32 map_fanout_ifb(__u32 job)
{
	const __u32 *ifindex = bpf_map_lookup_elem(&saina_fanout_ifb, &job);

	return ifindex ? *ifindex : 0;
}

/* Does XDP leave results to the tc program of the same port? */
static __always_inline bool map_tc_handoff(__u32 ifindex)
{
	return bpf_map_lookup_elem(&saina_tc_handoff, &ifindex);
}

static __always_inline const struct saina_global *map_global(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&saina_global, &zero);
}

static __always_inline struct saina_counted *map_counted(__u32 job, __u32 segment)
{
	void *inner = bpf_map_lookup_elem(&saina_counted, &job);

	return inner ? bpf_map_lookup_elem(inner, &segment) : NULL;
}

#endif /* SAINA_MAPS_BPF_H */
