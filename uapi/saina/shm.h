/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * By reference: what workers on the switch's own host share with the BPF program, and how
 * they get it.  Host byte order.
 *
 * A worker that is admitted to a job that works by reference (WELCOME) connects to the
 * agent's unix socket (SOCK_SEQPACKET), which the operator lends to the worker's container,
 * and sends struct saina_shm_request.  The agent answers on that connection with struct
 * saina_shm_reply, and with it (SCM_RIGHTS), if @error is 0, two maps, and closes the
 * connection.  It takes no descriptors: a question that comes with some is refused, on
 * Linux 6.16 and later by the kernel (sendmsg: EPERM).  Who connects and asks nothing is
 * disconnected after two seconds; so is, at once, who has 64 such connections already.
 * The maps are of the session that asked: another session gets others.
 *
 *	its input array		entry s & (pool - 1): struct saina_input_head and its gradient of
 *				segment s; to be mapped for writing.  Nobody else gets it
 *	the job's board		entry (round & (SAINA_OUTPUT_ROUNDS - 1)) * segments + s:
 *				struct saina_output_head and the sums of segment s; to be mapped
 *				for reading, for more is refused
 *
 * Then it may send DOORBELL (saina/proto.h) instead of GRAD, for as long as STATUS names the
 * board that it has.
 */
#ifndef _UAPI_SAINA_SHM_H
#define _UAPI_SAINA_SHM_H

#include <linux/types.h>
#include "saina/proto.h"

#define SAINA_SHM_VERSION	3

#define SAINA_OUTPUT_ROUNDS	2	/* power of two */

/**
 * struct saina_input_head - head of an entry of a worker's input array; its gradient follows
 * @session: of the worker, 0 while it writes: written last
 * @round: of the gradient
 * @segment: likewise
 * @exponent: block scale of the gradient, as in a GRAD
 * @pad: not looked at
 */
struct saina_input_head {
	__u64	session;
	__u32	round;
	__u32	segment;
	__s8	exponent;
	__u8	pad[47];
};
SAINA_ASSERT(sizeof(struct saina_input_head) == 64, "saina_input_head is 64 bytes");

/**
 * struct saina_output_head - head of an entry of the board; the sums follow
 * @tag: 1 + round; 0: nothing, or being written.  Whoever reads the entry reads the tag
 *	before and after: what was between is valid if it is the same
 * @mask: of the result, as all that follows
 * @policy: seq of its policy
 * @k: latched
 * @contributors: how many are in it
 * @exponent: block scale, as in a RESULT
 * @flags: SAINA_F_*
 * @pad: 0
 */
struct saina_output_head {
	__u64	tag;
	__u64	mask;
	__u32	policy;
	__u8	k;
	__u8	contributors;
	__s8	exponent;
	__u8	flags;
	__u8	pad[40];
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
 * struct saina_shm_reply - comes with the two maps, or says why there are none
 * @error: 0, or an errno
 * @board: number of the board, not 0
 * @segments: of the job: entries of the board for each of its rounds
 * @pool: entries of the input array
 * @payload: elements of an entry
 * @text: why not, one sentence, zero terminated
 */
struct saina_shm_reply {
	__s32	error;
	__u32	board;
	__u32	segments;
	__u32	pool;
	__u32	payload;
	char	text[SAINA_TEXT_LEN];
};
SAINA_ASSERT(sizeof(struct saina_shm_reply) == 180, "saina_shm_reply is 180 bytes");

#endif /* _UAPI_SAINA_SHM_H */
