/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Workers: who gets in (admit, its messages in message), who is alive, slow or dead
 * (health), which of them need the relay (path), results for those (relay), and memory
 * for those of this host (share, share_socket).
 */
#ifndef AGENT_WORKERS_H
#define AGENT_WORKERS_H

#include "agent/jobs.h"

#define ADMIT_SOURCES 64	/* classes of addresses, a hash */

/**
 * struct admit
 * @refusals_from: the second of which @refusals and @refusals_of are
 * @refusals: sent in it
 * @refusals_of: .. by who asked, so that nobody uses up what is for all
 */
struct admit {
	struct source source;
	uint64_t refusals_from;
	unsigned int refusals;
	unsigned int refusals_of[ADMIT_SOURCES];
};

struct health {
	struct source timer;
	unsigned int period_ms;
	uint64_t last;		/* tick */
	uint64_t slow_check;
	uint64_t held_up_ns, held_up_times;	/* the agent did not get to run */
};

struct relay {
	struct source source;		/* aggregator:48864, for sending */
	struct source events;		/* the data path's ring buffers */
	struct log_limit limit;
};

enum share_count {
	SHARE_LENT,	/* questions answered with memory */
	SHARE_REFUSED,	/* .. with a sentence */
	SHARE_SILENT,	/* connections without a question */
	SHARE_CROWDED,	/* .. that were not let wait */
	SHARE_COUNTS
};

/**
 * struct share - the socket that memory is lent by
 * @askers: connections whose question has not come, @n of them
 * @looks: @timer runs
 */
struct share {
	struct source listener, timer;
	struct asker *askers;
	unsigned int n;
	bool looks;
	uint64_t counts[SHARE_COUNTS];
};

struct workers {
	struct admit admit;
	struct health health;
	struct relay relay;
	struct share share;
};

int workers_init(struct agent *a);
void workers_uninit(struct agent *a);
/* A job was changed (struct jobs_ops). */
void workers_job_changed(struct agent *a, int cmd, const struct saina_job *job);
/* Sends each live worker the STATUS that is due. */
void workers_notify(struct agent *a);
/* Nobody admits any more: they need not find out by silence. */
void workers_goodbye(struct agent *a);
/* What was behind the port cannot be reached any more. */
void workers_port_gone(struct agent *a, int ifindex, const char *name);
/* Workers whose port went while nobody looked. */
void workers_end_unreachable(struct agent *a);
/* Workers came or went, or a port is at another hook: who needs the relay? */
void path_replan(struct agent *a);
/* Number of the board that all live workers of the job have, 0: frames; @why says it. */
uint32_t share_board(struct agent *a, const struct saina_job *job, char *why, size_t size);
/* The jobs are known: takes back what an earlier agent lent to sessions that are over. */
void share_recall(struct agent *a);
void workers_on_port(struct agent *a, int ifindex, uint32_t *workers, uint32_t *relayed);

/* Why nothing arrives of a live worker; false: it does. */
bool worker_unheard(struct agent *a, const struct saina_job *job, int w, char *text, size_t size);
/* That, or what its numbers do to others; of a worker, or the first such one of a job. */
bool worker_trouble(struct agent *a, const struct saina_job *job, int w, char *text, size_t size);
bool job_trouble(struct agent *a, const struct saina_job *job, char *text, size_t size);

void health_heard(struct agent *a, const struct saina_job *job, int w);
void health_replan(struct agent *a);	/* jobs or their times changed */

#endif /* AGENT_WORKERS_H */
