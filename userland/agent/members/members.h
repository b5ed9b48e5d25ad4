/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Workers: who gets in (admit, its messages in message), who is alive, slow or dead
 * (health), which of them need the relay (path), results for those (relay), and memory
 * for those of this host (share, share_socket).
 */
#ifndef AGENT_MEMBERS_H
#define AGENT_MEMBERS_H

#include "agent/jobs.h"

#define REFUSAL_CLASSES 64	/* classes of addresses, a hash */

/**
 * struct ctrl_socket
 * @refusal_second: the second of which @refusals and @refusals_by are
 * @refusals: sent in it
 * @refusals_by: .. by who asked, so that nobody uses up what is for all
 */
struct ctrl_socket {
	struct source source;
	uint64_t refusal_second;
	unsigned int refusals;
	unsigned int refusals_by[REFUSAL_CLASSES];
};

struct liveness {
	struct source timer;
	unsigned int period_ms;
	uint64_t last;		/* tick */
	uint64_t slow_check;
	uint64_t held_up_ns, held_up_times;	/* the agent did not get to run */
};

struct delivery {
	struct source source;		/* aggregator:48864, for sending */
	struct source events;		/* the data path's ring buffers */
	struct log_limit limit;
};

enum shm_count {
	SHM_GRANTED,	/* questions answered with memory */
	SHM_REFUSED,	/* .. with a sentence */
	SHM_SILENT,	/* connections without a question */
	SHM_CROWDED,	/* .. that were not let wait */
	SHM_COUNTS
};

/**
 * struct shm_server - the socket that memory is lent by
 * @clients: connections whose question has not come, @n of them
 * @checking: @timer runs
 */
struct shm_server {
	struct source listener, timer;
	struct shm_client *clients;
	unsigned int n;
	bool checking;
	uint64_t counts[SHM_COUNTS];
};

struct members {
	struct ctrl_socket ctrl;
	struct liveness liveness;
	struct delivery delivery;
	struct shm_server shm;
};

int members_init(struct agent *a);
void members_uninit(struct agent *a);
/* A job was changed (struct jobs_ops). */
void members_job_changed(struct agent *a, int cmd, const struct saina_job *job);
/* Sends each live worker the STATUS that is due. */
void members_send_status(struct agent *a);
/* Nobody admits any more: they need not find out by silence. */
void members_dismiss(struct agent *a);
/* What was behind the port cannot be reached any more. */
void members_port_gone(struct agent *a, int ifindex, const char *name);
/* Workers whose port went while nobody looked. */
void members_end_unreachable(struct agent *a);
/* Workers came or went, or a port is at another hook: who needs the relay? */
void delivery_replan(struct agent *a);
/* Number of the board that all live workers of the job have, 0: frames; @why says it. */
uint32_t shm_results_id(struct agent *a, const struct saina_job *job, char *why, size_t size);
/* The jobs are known: takes back what an earlier agent lent to sessions that are over. */
void shm_revoke_stale(struct agent *a);
void members_on_port(struct agent *a, int ifindex, uint32_t *workers, uint32_t *relayed);

/* Why nothing arrives of a live worker; false: it does. */
bool worker_unheard(struct agent *a, const struct saina_job *job, int w, char *text, size_t size);
/* That, or what its numbers do to others; of a worker, or the first such one of a job. */
bool diagnose_worker(struct agent *a, const struct saina_job *job, int w, char *text, size_t size);
bool diagnose_job(struct agent *a, const struct saina_job *job, char *text, size_t size);

void liveness_heard(struct agent *a, const struct saina_job *job, int w);
void liveness_replan(struct agent *a);	/* jobs or their times changed */

#endif /* AGENT_MEMBERS_H */
