/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * Memory that workers on the switch's own host share with the BPF programs.  Host byte order.
 *
 * A worker whose WELCOME has by_reference connects to the agent's unix socket
 * (SOCK_SEQPACKET; the operator mounts it into the worker's container) and sends struct
 * saina_shm_request.  The agent answers with struct saina_shm_reply and closes the
 * connection.  If @error is 0, two maps come with it (SCM_RIGHTS), of this session only:
 *
 *	input array	entry s & (pool - 1): struct saina_input_head and the worker's gradient
 *			of segment s.  Map it for writing; no other worker has it
 *	output array	entry (round & (ring - 1)) * segments + s: struct saina_output_head and
 *			the sums of segment s.  Map it read-only
 *
 * The worker may then send DOORBELL (saina/proto.h) instead of GRAD, as long as STATUS names
 * the output array that it has, and FETCH instead of PULL.
 *
 * A request that carries file descriptors is refused, on Linux 6.16 and later by the kernel
 * (sendmsg: EPERM).  A connection without a request is closed after two seconds.  A user may
 * have 64 of them; another connection is refused if its request is not there yet.
 */
#ifndef _UAPI_SAINA_SHM_H
#define _UAPI_SAINA_SHM_H

#include <linux/types.h>
#include "saina/proto.h"

#define SAINA_SHM_VERSION	6

/**
 * struct saina_input_head - head of an entry of a worker's input array; its gradient follows
 * @session: of the worker, 0 while it writes: written last
 * @round: of the gradient
 * @segment: likewise
 * @exponent: block scale of the gradient, as in a GRAD
 * @flags: of the uplink worker of a job: as in its GRAD
 * @weight: likewise: slot_round of its GRAD
 * @pad: not looked at, nor are @flags and @weight of other workers
 * @pad1: likewise
 */
struct saina_input_head {
	__u64	session;
	__u32	round;
	__u32	segment;
	__s8	exponent;
	__u8	flags;
	__u8	pad[2];
	__u32	weight;
	__u8	pad1[40];
};
SAINA_ASSERT(sizeof(struct saina_input_head) == 64, "saina_input_head is 64 bytes");

#define SAINA_OUTPUT_VALID	2

/**
 * struct saina_output_head - head of an entry of the output array; the sums follow
 * @round: of the result
 * @segment: of the result
 * @state: SAINA_OUTPUT_VALID: the entry holds a result.  Read it, and @round, before and after
 *	the entry: what was read is that result if both are the same
 * @k: latched
 * @contributors: how many are in it
 * @exponent: block scale, as in a RESULT
 * @policy: seq of its policy
 * @mask: of the result
 * @pad: of the data path
 * @pad1: likewise
 * @flags: SAINA_F_*
 * @weight: slot_round of a RESULT: workers in the sums, less @contributors
 * @pad2: of the data path
 * @pad3: likewise
 */
struct saina_output_head {
	__u32	round;
	__u32	segment;
	__u8	state;
	__u8	k;
	__u8	contributors;
	__s8	exponent;
	__u32	policy;
	__u64	mask;
	__u64	pad[2];
	__u32	pad1;
	__u8	flags;
	__u8	pad2[7];
	__u32	weight;
	__u8	pad3[8];
};
SAINA_ASSERT(sizeof(struct saina_output_head) == 64, "saina_output_head is 64 bytes");

/**
 * struct saina_shm_request - a worker asks for its memory
 * @version: SAINA_SHM_VERSION
 * @job: of the worker
 * @worker: who it is
 * @pad: 0
 * @session: of its WELCOME
 */
struct saina_shm_request {
	__u32	version;
	__u16	job;
	__u8	worker;
	__u8	pad;
	__u64	session;
};
SAINA_ASSERT(sizeof(struct saina_shm_request) == 16, "saina_shm_request is 16 bytes");

/**
 * struct saina_shm_reply - sent with the two maps, or with the reason why there are none
 * @error: 0, or an errno
 * @output: number of the output array, not 0
 * @segments: of the job: entries of the output array for each of its rounds
 * @ring: rounds that the output array keeps; power of two
 * @pool: entries of the input array
 * @payload: elements of an entry
 * @text: why not, one sentence, zero terminated
 */
struct saina_shm_reply {
	__s32	error;
	__u32	output;
	__u32	segments;
	__u32	ring;
	__u32	pool;
	__u32	payload;
	char	text[SAINA_TEXT_LEN];
};
SAINA_ASSERT(sizeof(struct saina_shm_reply) == 184, "saina_shm_reply is 184 bytes");

#endif /* _UAPI_SAINA_SHM_H */
