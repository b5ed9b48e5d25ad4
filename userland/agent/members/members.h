/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Members: the workers of the jobs, from admission to death.
 *
 *	tick.c         runs all checks periodically
 *	changes.c      carries changes of jobs and ports to workers
 *	ctrl_socket.c  the UDP socket of control messages, and their checks
 *	admit.c        JOIN: who is admitted, as which worker
 *	node.c         JOIN in a tree: nodes, their places, and the worker of the uplink
 *	reply.c        WELCOME, STATUS and REFUSE
 *	delivery.c     which way results take to a worker; the relay; events of the data path
 *	liveness.c     alive or dead
 *	straggler.c    late gradients; slow or not
 *	diagnose.c     alive, but nothing arrives
 *	numerics.c     NaN, infinity, scales that are too coarse
 *	shm_server.c   socket where workers of this host request shared memory
 *	shm_grant.c    which session has which shared memory
 */
#ifndef AGENT_MEMBERS_H
#define AGENT_MEMBERS_H

#include "agent/jobs.h"

#define REFUSAL_CLASSES 64	/* of addresses, by a hash */

/**
 * struct ctrl_socket
 * @refusal_second: the second that the budgets below are for
 * @refusals: refusals sent in that second
 * @refusals_by: the same by class of address, so that no sender can use the whole budget
 */
struct ctrl_socket {
	struct source source;
	uint64_t refusal_second;
	unsigned int refusals;
	unsigned int refusals_by[REFUSAL_CLASSES];
};

/**
 * struct liveness
 * @period_ms: of the tick, 0: no worker is alive
 * @last: time of the last tick
 * @held_up_ns: time in which the agent was not scheduled, in @held_up_times stalls
 */
struct liveness {
	unsigned int period_ms;
	uint64_t last;
	uint64_t held_up_ns, held_up_times;
};

struct delivery {
	struct source source;		/* UDP socket at the data port, to send results from */
	struct source events;		/* the data path's ring buffers */
	struct log_limit limit;
};

enum shm_count {
	SHM_GRANTED, /* requests that got memory */
	SHM_REFUSED, /* requests that were refused */
	SHM_SILENT, /* connections that sent no request */
	SHM_CROWDED, /* connections refused because the user had too many */
	SHM_COUNTS
};

/**
 * struct shm_server - the socket where workers request shared memory
 * @clients: connections whose request has not arrived, @n of them
 * @checking: @timer is armed
 */
struct shm_server {
	struct source listener, timer;
	struct shm_client *clients;
	unsigned int n;
	bool checking;
	uint64_t counts[SHM_COUNTS];
};

/**
 * struct members
 * @tick: timer of all checks
 * @counters_read: time of the last check of all counters
 */
struct members {
	struct source tick;
	uint64_t counters_read;
	struct ctrl_socket ctrl;
	struct liveness liveness;
	struct delivery delivery;
	struct shm_server shm;
};

int members_init(struct agent *a);
void members_uninit(struct agent *a);
/* A job has changed (struct jobs_ops). */
void members_job_changed(struct agent *a, int cmd, const struct saina_job *job);
/* Sends STATUS to all workers that are due one. */
void members_send_status(struct agent *a);
/* Refuses all workers: the agent stops, and they need not wait for a time-out. */
void members_dismiss(struct agent *a);
/* A port has come or gone.  Its workers are judged by their silence alone: ports come back. */
void members_port_changed(struct agent *a, int ifindex, const char *name, bool there);
/* Counts the live workers behind a port, and those of them that need the relay. */
void members_on_port(struct agent *a, int ifindex, uint32_t *workers, uint32_t *relayed);

/* Decides again which workers need the relay, after changes of workers or hooks. */
void delivery_replan(struct agent *a);
/* Relayed results leave by the bridge's interface, which may be another one now. */
void delivery_bridge_changed(struct agent *a);

/* Id of the results ring, if all live workers of the job map it; 0: results come in messages.
 * @why: explanation for the user. */
uint32_t shm_output_id(struct agent *a, const struct saina_job *job, char *why, size_t size);
/* After changes of jobs: revokes memory of sessions that have ended, and renews what is missing. */
void shm_update(struct agent *a);
/* After a start: revokes memory of sessions that are over. */
void shm_revoke_stale(struct agent *a);

/* Says why nothing arrives from a live worker.  Return: false if gradients arrive. */
bool worker_unheard(struct agent *a, const struct saina_job *job, int w, char *text, size_t size);
/* The same, or that a round waits for it, or what its numbers do to the results of others. */
bool diagnose_worker(struct agent *a, const struct saina_job *job, int w, char *text, size_t size);
/* Diagnosis of the first worker with one. */
bool diagnose_job(struct agent *a, const struct saina_job *job, char *text, size_t size);
/*
 * The live workers that a slot waits for.  With parts, not those whose part has arrived.  AWAY: the
 * uplink worker.
 */
uint64_t diagnose_slot(const struct saina_job *job, const struct saina_slot_meta *meta);

/* A sign of life. */
void liveness_heard(struct agent *a, const struct saina_job *job, int w);
/* Sets the period of the checks, after changes of jobs. */
void liveness_replan(struct agent *a);

#endif /* AGENT_MEMBERS_H */
