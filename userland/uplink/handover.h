/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What sainad and saina-uplink say to each other over a socket pair (AF_UNIX, SOCK_SEQPACKET),
 * which is descriptor UPLINK_FD of saina-uplink.
 *
 * sainad sends one struct uplink_handover, with UPLINK_FD_COUNT descriptors (SCM_RIGHTS) in the
 * order of enum uplink_fd.  saina-uplink sends struct uplink_report: one when it has begun, one
 * whenever @state, @workers or @error changes, and else at most two in a second.  At SIGTERM it
 * leaves the parent's job and ends (the own job was deleted or stopped).  Numbers are in host byte
 * order, both are of one build.
 *
 * It runs on when sainad ends.  The next sainad connects to uplink_address(), reads the struct
 * uplink_handover that the earlier one sent, and then reports.  It kills a relay to which it would
 * hand over anything else, or whose program was replaced.
 */
#ifndef SAINA_UPLINK_HANDOVER_H
#define SAINA_UPLINK_HANDOVER_H

#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <linux/types.h>
#include "saina/proto.h"

#define UPLINK_FD 3

/* Changes with the structures: a process of another build is refused with a sentence. */
#define UPLINK_VERSION 1

enum uplink_fd {
	UPLINK_FD_NETNS,	/* network namespace of the port of the own job's bridge.  Sockets to
				 * the parent are opened in sainad's own, in which saina-uplink is
				 * started: the uplink is the device of `ip route get PARENT'
				 */
	UPLINK_FD_HOT,		/* inner map of saina_hot_<payload>, to be mapped read-only */
	UPLINK_FD_AWAY,		/* inner map of saina_away: a ring buffer */
	UPLINK_FD_COUNT
};

/**
 * struct uplink_handover - what a relay needs to know
 * @version: UPLINK_VERSION
 * @size: of this structure
 * @job: own job: its number
 * @worker: of the own job: number of the uplink worker
 * @max_weight: of the own job: the most workers in one of its sums
 * @elem: enum saina_elem_type
 * @reserved: 0
 * @payload: elements of a segment
 * @segments: of a round
 * @pool: hot slots, a power of two
 * @ring: rounds kept, a power of two
 * @elements: of the own job's gradient
 * @incarnation: of the own job's maps: random, not 0, the same for as long as the maps live
 * @ip: own agent
 * @udp_port: own agent's control port; host byte order
 * @parent_udp_port: parent's agent's control port; host byte order
 * @parent_ip: parent's agent
 * @parent_job: number of the parent's job; not used if @parent_name is not empty
 * @parent_worker: number of the node in it
 * @parent_name: name of the parent's job, zero terminated
 * @node: this node's name, for people and for the parent
 * @token: of the own job, SAINA_TOKEN_LEN bytes as in JOIN
 * @parent_token: of the parent's job, likewise
 */
struct uplink_handover {
	__u32	version;
	__u32	size;
	__u16	job;
	__u8	worker;
	__u8	elem;
	__u32	max_weight;
	__u32	payload;
	__u32	segments;
	__u32	pool;
	__u32	ring;
	__u64	elements;
	__u64	incarnation;
	__be32	ip;
	__be32	parent_ip;
	__u16	udp_port;
	__u16	parent_udp_port;
	__u16	parent_job;
	__u8	parent_worker;
	__u8	reserved;
	char	parent_name[SAINA_NAME_LEN];
	char	node[SAINA_NAME_LEN];
	__u8	token[SAINA_TOKEN_LEN];
	__u8	parent_token[SAINA_TOKEN_LEN];
};

enum uplink_state {
	UPLINK_STARTING	= 1,	/* not yet admitted by the parent; @error may say why */
	UPLINK_ADMITTED	= 2,	/* @workers to @first_round are valid; the own job may admit members */
	UPLINK_RUNNING	= 3,	/* admitted by the own job, too: sums go up */
	UPLINK_ENDED	= 4,	/* the process ends; @error says why.  Start it again, with back-off */
	UPLINK_STALE	= 5,	/* .. and sums that are AWAY have no result any more: the own job must
				 * begin anew (its workers join again) before it is started again
				 */
};

/**
 * struct uplink_report - how the relay is
 * @version: UPLINK_VERSION
 * @state: enum uplink_state
 * @workers: W: workers of the whole tree
 * @rank0: rank of the own job's worker 0 in it
 * @depth: of the own job: the parent's + 1
 * @quorum: as the parent says
 * @first_round: first round that the parent takes from this node
 * @away_round: round of the oldest sum that waits for the parent
 * @away_since: when it was first seen to wait, CLOCK_MONOTONIC ns; 0: nothing waits
 * @bytes_up: sent to the parent's data port, UDP payload
 * @bytes_down: received from it
 * @sums_up: sums of segments sent for the first time
 * @sums_resent: .. and sent again
 * @results_down: results given to the own job
 * @error: one sentence for people; empty: none
 */
struct uplink_report {
	__u32	version;
	__u32	state;
	__u32	workers;
	__u32	rank0;
	__u32	depth;
	__u32	quorum;
	__u32	first_round;
	__u32	away_round;
	__u64	away_since;
	__u64	bytes_up;
	__u64	bytes_down;
	__u64	sums_up;
	__u64	sums_resent;
	__u64	results_down;
	char	error[SAINA_TEXT_LEN];
};

/*
 * Where the relay of a job listens for the next sainad, in the abstract namespace of sainad's network
 * namespace: nothing is left of it when the relay ends.  Each checks the other's user (SO_PEERCRED).
 */
static inline socklen_t uplink_address(struct sockaddr_un *a, unsigned int job)
{
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	return offsetof(struct sockaddr_un, sun_path) + 1 +
	       snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "saina-uplink.%u", job);
}

#endif /* SAINA_UPLINK_HANDOVER_H */
