/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * Configuration of SAINA: generic netlink family "saina".
 *
 * The same messages travel over generic netlink (saina.ko) and over the
 * agent's unix socket (SOCK_SEQPACKET, one netlink message per datagram,
 * nlmsg_type = SAINA_NLMSG_TYPE), with the same attributes, the same NLM_F_DUMP
 * / NLMSG_DONE framing and the same extended acknowledgements.
 *
 * Requests and replies ([...] optional, * repeated):
 *
 * JOB_NEW     JOB { NAME, ELEMENTS, WORKERS, [ID] [PAYLOAD] [POOL] [RING]
 *                   [POLICY] [TOKEN] [ELEM_TYPE] [EXPONENT] [HEARTBEAT_MS] [DEAD_MS] }
 *             -> JOB { ID, ... all of it }
 * JOB_SET     JOB { NAME | ID, [POLICY] [STATE] [TOKEN] [HEARTBEAT_MS] [DEAD_MS] }
 * JOB_DEL     JOB { NAME | ID }
 * JOB_GET     JOB { NAME | ID } -> JOB { ... };   dump: all jobs
 * WORKER_SET  WORKER { JOB_ID | JOB_NAME, ID, [IFINDEX IP MAC UDP_PORT SESSION [ROUND]] [NAME] [STATE] [RELAY] }
 *             (admits or changes a worker; the agent does this for JOINs)
 *             WORKER { JOB_ID | JOB_NAME, ID, LATE } changes nothing: subscribers get
 *             the event that the worker was late so often
 * WORKER_DEL  WORKER { JOB_ID | JOB_NAME, ID }
 * WORKER_GET  WORKER { JOB_ID | JOB_NAME, ID } -> WORKER { ... }; dump: all, or of one job
 * PORT_GET    dump -> PORT { ... }*
 * PORT_SET    PORT { IFNAME | IFINDEX, [LOSS_IN] [LOSS_OUT] [DELAY_IN] [DELAY_OUT] [SEED] }
 * SLOT_GET    SLOT { JOB_ID | JOB_NAME } dump -> SLOT { ... }*   open slots only
 * STATS_GET   [STATS { JOB_ID | JOB_NAME }] dump -> STATS { ... }*  per (job, worker); without job: global first
 * LIMITS_GET  -> LIMITS { ... }
 * LIMITS_SET  LIMITS { [JOBS] [MEMORY_JOB] [MEMORY] }
 * SUBSCRIBE   GROUPS (mask; unix socket only: generic netlink has groups of
 *             its own) -> notifications of these groups on this socket
 *
 * Notifications: *_NTF with the object as in the reply (group "config");
 * EVENT { ... } (group "events").
 */
#ifndef _UAPI_LINUX_SAINA_H
#define _UAPI_LINUX_SAINA_H

#define SAINA_FAMILY_NAME		"saina"
#define SAINA_FAMILY_VERSION	1
#define SAINA_NLMSG_TYPE	0x20	/* nlmsg_type on the unix socket */
#define SAINA_MCGRP_CONFIG	"config"
#define SAINA_MCGRP_EVENTS	"events"

/* GROUPS of SUBSCRIBE */
#define SAINA_GROUPS_CONFIG	0x1
#define SAINA_GROUPS_EVENTS	0x2

enum {
	SAINA_CMD_UNSPEC,
	SAINA_CMD_JOB_NEW,
	SAINA_CMD_JOB_SET,
	SAINA_CMD_JOB_DEL,
	SAINA_CMD_JOB_GET,
	SAINA_CMD_JOB_NTF,
	SAINA_CMD_JOB_DEL_NTF,
	SAINA_CMD_WORKER_SET,
	SAINA_CMD_WORKER_DEL,
	SAINA_CMD_WORKER_GET,
	SAINA_CMD_WORKER_NTF,
	SAINA_CMD_WORKER_DEL_NTF,
	SAINA_CMD_PORT_GET,
	SAINA_CMD_PORT_SET,
	SAINA_CMD_PORT_NTF,
	SAINA_CMD_SLOT_GET,
	SAINA_CMD_STATS_GET,
	SAINA_CMD_LIMITS_GET,
	SAINA_CMD_LIMITS_SET,
	SAINA_CMD_EVENT,
	SAINA_CMD_SUBSCRIBE,
	SAINA_CMD_LIMITS_NTF,
	__SAINA_CMD_MAX,
	SAINA_CMD_MAX = __SAINA_CMD_MAX - 1
};

/* Top level of every message */
enum {
	SAINA_A_UNSPEC,
	SAINA_A_JOB,		/* nest, SAINA_A_JOB_* */
	SAINA_A_WORKER,		/* nest, SAINA_A_WORKER_* */
	SAINA_A_PORT,		/* nest, SAINA_A_PORT_* */
	SAINA_A_SLOT,		/* nest, SAINA_A_SLOT_* */
	SAINA_A_STATS,		/* nest, SAINA_A_STATS_* */
	SAINA_A_LIMITS,		/* nest, SAINA_A_LIMITS_* */
	SAINA_A_EVENT,		/* nest, SAINA_A_EVENT_* */
	SAINA_A_GROUPS,		/* u32, SAINA_GROUPS_* */
	__SAINA_A_MAX,
	SAINA_A_MAX = __SAINA_A_MAX - 1
};

enum {
	SAINA_A_JOB_UNSPEC,
	SAINA_A_JOB_ID,			/* u16, 0..255 */
	SAINA_A_JOB_NAME,		/* string, 1..31 of [A-Za-z0-9._-], not all digits */
	SAINA_A_JOB_STATE,		/* u8, enum saina_job_state */
	SAINA_A_JOB_ELEMENTS,		/* u64, elements of the gradient, >= 1 */
	SAINA_A_JOB_WORKERS,		/* u8, 1..64 */
	SAINA_A_JOB_PAYLOAD,		/* u16, elements of a message (default 256) */
	SAINA_A_JOB_POOL,		/* u32, hot slots, power of two (default 256, at most what segments need) */
	SAINA_A_JOB_RING,		/* u32, rounds kept, power of two (default 8) */
	SAINA_A_JOB_ELEM_TYPE,		/* u8, enum saina_elem_type */
	SAINA_A_JOB_EXPONENT,		/* s8, block scale of the first round (default 20) */
	SAINA_A_JOB_POLICY,		/* string as the user writes it, canonical in replies */
	SAINA_A_JOB_TOKEN,		/* string, 0..32; never in replies to unprivileged readers */
	SAINA_A_JOB_HEARTBEAT_MS,	/* u16, 10..60000 */
	SAINA_A_JOB_DEAD_MS,		/* u16, > heartbeat */
	/* replies only */
	SAINA_A_JOB_SEGMENTS,		/* u32 */
	SAINA_A_JOB_GENERATION,		/* u32 */
	SAINA_A_JOB_MEMORY,		/* u64, bytes of maps */
	SAINA_A_JOB_ACTIVE,		/* u64, mask of live workers */
	SAINA_A_JOB_ROUND,		/* u32, next round to open */
	SAINA_A_JOB_K,			/* u8, k in force */
	SAINA_A_JOB_POLICY_SEQ,		/* u32, of the policy asked for */
	SAINA_A_JOB_POLICY_SEQ_ACTIVE,	/* u32, of the policy in force: differs while a swap waits for its round */
	SAINA_A_JOB_SFCD_CONVERGED,	/* u32 */
	SAINA_A_JOB_SFCD_FLIPS,		/* u64, of the last round decided */
	SAINA_A_JOB_SFCD_OBSERVED,	/* u64 */
	SAINA_A_JOB_POLICY_MIX,		/* u64, must be 0 */
	SAINA_A_JOB_OPEN_SLOTS,		/* u32 */
	SAINA_A_JOB_POLICY_ACTIVE,	/* string, the policy in force; absent before the first round */
	SAINA_A_JOB_PAD,
	SAINA_A_JOB_TEXT,		/* string: why it does not run; of the agent, which has the maps */
	__SAINA_A_JOB_MAX,
	SAINA_A_JOB_MAX = __SAINA_A_JOB_MAX - 1
};

enum saina_worker_state {
	SAINA_WORKER_STATE_ABSENT	= 0,
	SAINA_WORKER_STATE_ALIVE	= 1,
	SAINA_WORKER_STATE_SLOW	= 2,	/* alive, but late more than in time */
	SAINA_WORKER_STATE_DEAD	= 3,	/* silent for dead_ms: out of the active set */
	SAINA_WORKER_STATE_LEFT	= 4,	/* said LEAVE */
};

enum {
	SAINA_A_WORKER_UNSPEC,
	SAINA_A_WORKER_JOB_ID,		/* u16 */
	SAINA_A_WORKER_JOB_NAME,	/* string */
	SAINA_A_WORKER_ID,		/* u8, 0..63 */
	SAINA_A_WORKER_NAME,		/* string, up to 31 printable */
	SAINA_A_WORKER_STATE,		/* u8, enum saina_worker_state */
	SAINA_A_WORKER_IFINDEX,		/* u32 */
	SAINA_A_WORKER_IFNAME,		/* string, replies */
	SAINA_A_WORKER_IP,		/* u32, big endian */
	SAINA_A_WORKER_MAC,		/* 6 bytes */
	SAINA_A_WORKER_UDP_PORT,	/* u16, big endian */
	SAINA_A_WORKER_SESSION,		/* u64 */
	SAINA_A_WORKER_RELAY,		/* u8, 1: results take the slow path */
	SAINA_A_WORKER_SEEN_MS,		/* u32, replies: since it was last heard */
	SAINA_A_WORKER_ROUND,		/* u32, admission: the first it would send; replies: its last heartbeat's */
	SAINA_A_WORKER_PAD,
	SAINA_A_WORKER_LATE,		/* u64, requests: gradients that were late, for an event */
	__SAINA_A_WORKER_MAX,
	SAINA_A_WORKER_MAX = __SAINA_A_WORKER_MAX - 1
};

enum saina_port_mode {
	SAINA_PORT_MODE_NONE		= 0,	/* could not be attached: see TEXT */
	SAINA_PORT_MODE_NATIVE	= 1,
	SAINA_PORT_MODE_GENERIC	= 2,
};

enum {
	SAINA_A_PORT_UNSPEC,
	SAINA_A_PORT_IFINDEX,		/* u32 */
	SAINA_A_PORT_IFNAME,		/* string */
	SAINA_A_PORT_MODE,		/* u8, enum saina_port_mode */
	SAINA_A_PORT_DRIVER,		/* string */
	SAINA_A_PORT_MTU,		/* u32 */
	SAINA_A_PORT_WORKERS,		/* u32, workers behind it */
	SAINA_A_PORT_RELAYED,		/* u32, of them on the slow path */
	SAINA_A_PORT_LOSS_IN,		/* u32, probability * 2^32 */
	SAINA_A_PORT_LOSS_OUT,		/* u32 */
	SAINA_A_PORT_DELAY_IN,		/* u32, microseconds */
	SAINA_A_PORT_DELAY_OUT,		/* u32, microseconds */
	SAINA_A_PORT_SEED,		/* u64 */
	SAINA_A_PORT_TEXT,		/* string: why it is not attached, or not fast */
	SAINA_A_PORT_PAD,
	__SAINA_A_PORT_MAX,
	SAINA_A_PORT_MAX = __SAINA_A_PORT_MAX - 1
};

enum {
	SAINA_A_SLOT_UNSPEC,
	SAINA_A_SLOT_JOB_ID,		/* u16 */
	SAINA_A_SLOT_JOB_NAME,		/* string */
	SAINA_A_SLOT_INDEX,		/* u32 */
	SAINA_A_SLOT_ROUND,		/* u32 */
	SAINA_A_SLOT_SEGMENT,		/* u32 */
	SAINA_A_SLOT_COUNT,		/* u8, contributors so far */
	SAINA_A_SLOT_K,			/* u8, latched */
	SAINA_A_SLOT_SEEN,		/* u64, mask */
	SAINA_A_SLOT_MISSING,		/* u64, mask of members alive and not seen */
	SAINA_A_SLOT_AGE_US,		/* u64 */
	SAINA_A_SLOT_POLICY,		/* u32, seq */
	SAINA_A_SLOT_PAD,
	__SAINA_A_SLOT_MAX,
	SAINA_A_SLOT_MAX = __SAINA_A_SLOT_MAX - 1
};

enum {
	SAINA_A_STATS_UNSPEC,
	SAINA_A_STATS_JOB_ID,		/* u16; absent: of no job */
	SAINA_A_STATS_JOB_NAME,		/* string */
	SAINA_A_STATS_WORKER,		/* u8 */
	SAINA_A_STATS_COUNTERS,		/* binary, array of u64 in the order of enum saina_counter */
	SAINA_A_STATS_PAD,
	__SAINA_A_STATS_MAX,
	SAINA_A_STATS_MAX = __SAINA_A_STATS_MAX - 1
};

/* Who has the jobs */
enum saina_plane {
	SAINA_PLANE_KERNEL	= 1,
	SAINA_PLANE_AGENT	= 2,
};

enum {
	SAINA_A_LIMITS_UNSPEC,
	SAINA_A_LIMITS_JOBS,		/* u32, most jobs at once, 1..256 */
	SAINA_A_LIMITS_MEMORY_JOB,	/* u64, bytes of maps a job may have */
	SAINA_A_LIMITS_MEMORY,		/* u64, bytes of maps all jobs may have */
	SAINA_A_LIMITS_JOBS_USED,	/* u32, replies */
	SAINA_A_LIMITS_MEMORY_USED,	/* u64, replies */
	SAINA_A_LIMITS_PAD,
	SAINA_A_LIMITS_PLANE,		/* u8, enum saina_plane, replies: whose limits these are */
	__SAINA_A_LIMITS_MAX,
	SAINA_A_LIMITS_MAX = __SAINA_A_LIMITS_MAX - 1
};

enum {
	SAINA_A_EVENT_UNSPEC,
	SAINA_A_EVENT_TYPE,		/* u32, enum saina_event_type */
	SAINA_A_EVENT_TIME,		/* u64, CLOCK_MONOTONIC ns */
	SAINA_A_EVENT_JOB_ID,		/* u16 */
	SAINA_A_EVENT_JOB_NAME,		/* string */
	SAINA_A_EVENT_WORKER,		/* u8, absent: none */
	SAINA_A_EVENT_ROUND,		/* u32 */
	SAINA_A_EVENT_K,		/* u8 */
	SAINA_A_EVENT_A,		/* u64, see enum saina_event_type */
	SAINA_A_EVENT_B,		/* u64 */
	SAINA_A_EVENT_TEXT,		/* string */
	SAINA_A_EVENT_PAD,
	__SAINA_A_EVENT_MAX,
	SAINA_A_EVENT_MAX = __SAINA_A_EVENT_MAX - 1
};

#endif /* _UAPI_LINUX_SAINA_H */
