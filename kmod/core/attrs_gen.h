/* SPDX-License-Identifier: GPL-2.0 */
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/saina.yaml */
/* by tools/netlink/attrs-gen */

#ifndef _SAINA_ATTRS_GEN_H
#define _SAINA_ATTRS_GEN_H

struct saina_policy_attrs {
	__u64 has;
	__u8 mode;
	__u8 late;
	__u8 k;
	__u8 k_min;
	__u8 k_max;
	__u8 flags;
	__u16 s_th;
	__u16 c_th;
	__u16 stride;
	__u32 timeout_us;
	__u8 spread;
	__u32 window;
	__u8 groups;
	__u8 group[64];
	__u8 lead;
};

extern const struct saina_attr_class saina_policy_class;

struct saina_uplink_attrs {
	__u64 has;
	__be32 address;
	__be16 port;
	char job[32];
	__u8 worker;
	char token_file[108];
	char text[160];
	__u32 weight;
	__u32 rank;
	__u8 depth;
	__u32 away_round;
	__u64 away_ms;
	__u64 bytes_up;
	__u64 bytes_down;
};

extern const struct saina_attr_class saina_uplink_class;

struct saina_job_attrs {
	__u64 has;
	__u16 id;
	char name[32];
	__u8 state;
	__u64 elements;
	__u8 workers;
	__u16 payload;
	__u32 pool;
	__u32 ring;
	__u8 elem_type;
	__s32 exponent;
	struct saina_policy_attrs policy;
	char token[33];
	__u16 heartbeat_ms;
	__u16 dead_ms;
	__u32 segments;
	__u32 generation;
	__u64 memory;
	__u64 active;
	__u32 round;
	__u8 k;
	__u32 policy_seq;
	__u32 policy_seq_active;
	__u32 sfcd_converged;
	__u64 sfcd_flips;
	__u64 sfcd_observed;
	__u32 open_slots;
	struct saina_policy_attrs policy_active;
	char text[SAINA_TEXT_LEN];
	struct saina_policy_attrs policy_next;
	__u32 policy_next_seq;
	__u32 policy_from;
	__u32 policy_on;
	__u8 policy_cancel;
	__u8 k_set;
	__u8 controller;
	__u8 by_reference;
	char reference[SAINA_TEXT_LEN];
	__u8 elements_auto;
	char trouble[SAINA_TEXT_LEN];
	__u64 count[SAINA_JC_N];
	__u16 weights[64];
	struct saina_uplink_attrs uplink;
};

extern const struct saina_attr_class saina_job_class;

struct saina_worker_attrs {
	__u64 has;
	__u16 job_id;
	char job_name[32];
	__u8 id;
	char name[32];
	__u8 state;
	__u32 ifindex;
	char ifname[16];
	__be32 ip;
	__u8 mac[6];
	__be16 udp_port;
	__u64 session;
	__u8 relay;
	__u32 seen_ms;
	__u32 round;
	__u64 late;
	__u64 sent;
	__u64 resent;
	__u32 rtt_us;
	__u32 window;
	__u64 arrivals;
	__u64 arrival_us;
	__u64 arrival_last_us;
	__u64 arrival_hist[SAINA_ARRIVAL_BUCKETS];
	__u8 part;
	__u64 elements;
	char trouble[SAINA_TEXT_LEN];
};

extern const struct saina_attr_class saina_worker_class;

struct saina_port_attrs {
	__u64 has;
	__u32 ifindex;
	char ifname[16];
	__u8 mode;
	char driver[32];
	__u32 mtu;
	__u32 workers;
	__u32 relayed;
	__u32 loss_in;
	__u32 loss_out;
	__u64 seed;
	char text[SAINA_TEXT_LEN];
	__u8 hook;
	__u8 jumbo;
};

extern const struct saina_attr_class saina_port_class;

struct saina_slot_attrs {
	__u64 has;
	__u16 job_id;
	char job_name[32];
	__u32 index;
	__u32 round;
	__u32 segment;
	__u8 count;
	__u8 k;
	__u64 seen;
	__u64 missing;
	__u64 age_us;
	__u32 policy;
};

extern const struct saina_attr_class saina_slot_class;

struct saina_stats_attrs {
	__u64 has;
	__u16 job_id;
	char job_name[32];
	__u8 worker;
	__u64 counters[SAINA_C_N];
};

extern const struct saina_attr_class saina_stats_class;

struct saina_limits_attrs {
	__u64 has;
	__u32 jobs;
	__u64 memory_job;
	__u64 memory;
	__u32 jobs_used;
	__u64 memory_used;
	__u8 backend;
	char bridge[16];
	char ovsdb[108];
};

extern const struct saina_attr_class saina_limits_class;

struct saina_event_attrs {
	__u64 has;
	__u32 type;
	__u64 time;
	__u16 job_id;
	char job_name[32];
	__u8 worker;
	__u32 round;
	__u8 k;
	__u64 a;
	__u64 b;
	char text[SAINA_TEXT_LEN];
};

extern const struct saina_attr_class saina_event_class;

struct saina_subscription_attrs {
	__u64 has;
	__u32 groups;
};

extern const struct saina_attr_class saina_subscription_class;

/* Names by value: see SAINA_ENUM_NAME(). */
extern const char *const saina_worker_state_names[6];
extern const char *const saina_port_mode_names[5];
extern const char *const saina_port_hook_names[5];
extern const char *const saina_job_state_names[5];
extern const char *const saina_elem_type_names[6];

extern const struct saina_op saina_ops[SAINA_CMD_MAX + 1];

#endif /* _SAINA_ATTRS_GEN_H */
