/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state file: its own messages besides those of the family, and its content. */
#ifndef AGENT_STATE_H
#define AGENT_STATE_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/core.h"

#define STATE_CMD_WORKER 0x80
#define STATE_CMD_BACKEND 0x81	/* payload: __u32, enum saina_backend */

/* Follows the WORKER_SET of the same worker.  Files of older versions end before @shm_session. */
struct state_worker {
	__u64 nonce;
	__u32 first_round;
	__u8 worker;
	__u8 formed;
	__u8 ready;
	__u8 fast;
	__u64 shm_session;
	__u64 incarnation;
} __attribute__((packed, aligned(4)));

/* @refused: why the pending policy of @job was dropped, "": it was not */
struct saved_job {
	struct saina_job job;
	char refused[SAINA_TEXT_LEN];
	struct state_worker worker[SAINA_WORKERS_MAX];
};

/* A port with a requested hook. */
struct saved_port {
	char ifname[IFNAMSIZ];
	int hook;
};

/**
 * struct saved - content of a state file
 * @backend: enum saina_backend, 0: unknown
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
 * Reads the messages at @buf into @s; 8 bytes after @len must be readable.
 * Return: 0, or -EBADMSG for an invalid message; the messages before it are in @s.
 */
int state_parse(struct saved *s, const void *buf, size_t len);

#endif /* AGENT_STATE_H */
