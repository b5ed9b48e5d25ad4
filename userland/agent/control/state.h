/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state file: what it says beyond the family's messages, and what was read. */
#ifndef AGENT_STATE_H
#define AGENT_STATE_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/core.h"

#define STATE_CMD_WORKER 0x80
#define STATE_CMD_BACKEND	 0x81	/* payload: __u32, enum saina_plane */

/* Follows the WORKER_SET of the same worker.  An earlier version's ends before @shm_session. */
struct state_worker {
	__u64 nonce;
	__u32 first_round;
	__u8 worker;
	__u8 formed;
	__u8 ready;
	__u8 fast;
	__u64 shm_session;	/* the session that has its input array */
} __attribute__((packed, aligned(4)));

/* @refused: why @job is without the policy that waited, "": it is as the file has it */
struct saved_job {
	struct saina_job job;
	char refused[SAINA_TEXT_LEN];
	struct state_worker worker[SAINA_WORKERS_MAX];
};

/* A port that was asked to be at a certain hook. */
struct saved_port {
	char ifname[IFNAMSIZ];
	int hook;
};

/**
 * struct saved - a state file that was read
 * @backend: enum saina_plane, 0: it does not say
 * @has_limits: @limits are valid
 */
struct saved {
	int backend;
	bool has_limits;
	struct saina_limits limits;
	struct saved_job *job;
	int n;
	struct saved_port port[SAINA_PORTS_MAX];
	int ports;
};

/*
 * Reads the messages at @buf (8 bytes behind its end must be there) into @s.
 * Return: 0, or -EBADMSG: from some point on they make no sense; those before it
 * are in @s all the same.
 */
int state_parse(struct saved *s, const void *buf, size_t len);

#endif /* AGENT_STATE_H */
