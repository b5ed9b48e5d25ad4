/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The objects of the configuration interface as plain structures, and the
 * tables that carry them to and from attributes.  One row of a table gives a
 * field its attribute, its type, its place and its name, so that requests,
 * replies and refusals speak of the same thing.
 *
 * @has of each object: bit SAINA_A_<OBJECT>_<FIELD> set if the field is there.
 */
#ifndef SAINA_CTL_OBJ_H
#define SAINA_CTL_OBJ_H

#include <stdbool.h>
#include <stddef.h>
#include "ctl/ctl.h"

#define SAINA_CTL_HAS(obj, attr)	(!!((obj)->has & (1ull << (attr))))
#define SAINA_CTL_SET(obj, attr)	((obj)->has |= 1ull << (attr))

struct saina_ctl_job {
	__u64	has;
	__u64	elements, memory, active;
	__u64	sfcd_flips, sfcd_observed, policy_mix;
	__u32	pool, ring, segments, generation, round;
	__u32	policy_seq, policy_seq_active, sfcd_converged, open_slots;
	__u16	id, payload, heartbeat_ms, dead_ms;
	__u8	state, workers, elem_type, k;
	__s8	exponent;
	char	name[SAINA_NAME_LEN];
	char	policy[128];
	char	policy_active[128];
	char	token[SAINA_TOKEN_LEN + 1];
	char	text[SAINA_TEXT_LEN];
};

struct saina_ctl_worker {
	__u64	has;
	__u64	late;
	__u64	session;
	__u32	ifindex, seen_ms, round;
	__be32	ip;
	__be16	udp_port;
	__u16	job_id;
	__u8	id, state, relay;
	__u8	mac[6];
	char	job_name[SAINA_NAME_LEN];
	char	name[SAINA_NAME_LEN];
	char	ifname[16];
};

struct saina_ctl_port {
	__u64	has;
	__u64	seed;
	__u32	ifindex, mtu, workers, relayed;
	__u32	loss_in, loss_out, delay_in, delay_out;
	__u8	mode;
	char	ifname[16];
	char	driver[32];
	char	text[SAINA_TEXT_LEN];
};

struct saina_ctl_slot {
	__u64	has;
	__u64	seen, missing, age_us;
	__u32	index, round, segment, policy;
	__u16	job_id;
	__u8	count, k;
	char	job_name[SAINA_NAME_LEN];
};

struct saina_ctl_stats {
	__u64	has;
	__u16	job_id;
	__u8	worker;
	char	job_name[SAINA_NAME_LEN];
	__u64	counters[SAINA_C_N];	/* those the other side does not have: 0 */
};

struct saina_ctl_limits {
	__u64	has;
	__u64	memory_job, memory, memory_used;
	__u32	jobs, jobs_used;
	__u8	plane;
};

struct saina_ctl_event {
	__u64	has;
	__u64	time, a, b;
	__u32	type, round;
	__u16	job_id;
	__u8	worker, k;
	char	job_name[SAINA_NAME_LEN];
	char	text[SAINA_TEXT_LEN];
};

enum saina_ctl_kind {
	SAINA_CTL_U8, SAINA_CTL_U16, SAINA_CTL_U32, SAINA_CTL_U64,	/* S8 and BE* likewise */
	SAINA_CTL_STRING,	/* at most size - 1 bytes */
	SAINA_CTL_BYTES,	/* exactly size bytes */
	SAINA_CTL_WORDS,	/* u64s, as many as both sides know */
};

struct saina_ctl_field {
	__u16		attr;
	__u16		kind;
	__u16		offset, size;
	const char	*name;
};

struct saina_ctl_class {
	const char			*name;
	__u16				nest;	/* SAINA_A_JOB .. */
	const struct saina_ctl_field	*fields;
	unsigned int			n;
	size_t				size;
};

extern const struct saina_ctl_class saina_ctl_job_class, saina_ctl_worker_class,
	saina_ctl_port_class, saina_ctl_slot_class, saina_ctl_stats_class,
	saina_ctl_limits_class, saina_ctl_event_class;

const struct saina_ctl_class *saina_ctl_class_find(unsigned int nest);
const char *saina_ctl_attr_name(const struct saina_ctl_class *c, unsigned int attr);

/**
 * saina_ctl_decode() - the object of class @c in message @nlh
 * @obj: struct saina_ctl_<class>, overwritten
 *
 * Attributes that are not known are skipped.  Strings lose what is not
 * printable ASCII.  Returns 0, -ENOENT if the message has no such object,
 * -EBADMSG if it is malformed.
 */
int saina_ctl_decode(const struct nlmsghdr *nlh, const struct saina_ctl_class *c, void *obj);

/**
 * saina_ctl_encode() - append @obj with the fields its @has names to @nlh
 *
 * An object without fields is appended as an empty nest.
 */
void saina_ctl_encode(struct nlmsghdr *nlh, const struct saina_ctl_class *c, const void *obj);

/* Replaces what is not printable ASCII: a name must not steer a terminal. */
void saina_ctl_clean(char *text);

#endif /* SAINA_CTL_OBJ_H */
