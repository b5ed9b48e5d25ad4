/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A small world to make traces in: jobs (world_life.h) whose workers (world_workers.h) keep to
 * their window, retransmit, pull, catch up, straggle, die and come back, and a channel
 * (world_channel.h) between them and the aggregator.  Everything follows from the seed.
 */
#ifndef SAINA_WORLD_H
#define SAINA_WORLD_H

#include "lib/rng.h"
#include "oracle/ledger.h"
#include "oracle/recompute.h"
#include "rig.h"

#define WORLD_SEGMENTS	256	/* largest number of a job here */
#define WORLD_JOBS	4	/* largest number at once */
#define WORLD_FLIGHT	2048	/* messages on their way */
#define WORLD_ATTIC	512	/* messages held back for a long time */
#define WORLD_VALUES	65536	/* values workers say, picked from a table */

/* Kinds of policies: those of enum saina_policy_mode, and two variants of them. */
enum { WORLD_FASTEST_TIMEOUT = SAINA_POLICY_CODED + 1, WORLD_SFCD_DOWN, WORLD_KINDS };

/* A message on its way; its elements follow from its header. */
struct message {
	uint8_t job, worker, type, flags;
	uint8_t lie;		/* carries the liar's second content */
	int8_t exponent;
	uint64_t session;
	uint32_t round, segment;
	uint64_t rung;		/* DOORBELL: segments */
};

struct sim_worker {
	bool alive;
	uint32_t round;
	uint32_t got_n;
	uint32_t stall;				/* turns that it skips, to straggle */
	uint32_t idle;				/* turns since its last new result */
	uint64_t got[WORLD_SEGMENTS / 64];
	uint64_t sent[WORLD_SEGMENTS / 64];
};

struct sim_job {
	struct world *world;
	bool present;
	struct saina_job_conf conf;
	unsigned int workers;
	uint32_t first_round;
	struct sim_worker worker[SAINA_WORKERS_MAX];
	struct ledger ledger;
	struct recompute recompute;
	int liar;			/* worker that sends two contents for one gradient, -1: none */
	bool steady;			/* values change every eighth round only */
	uint64_t value_seed;
	uint64_t sessions;		/* the last one assigned */
	uint32_t policies;		/* seq of the last one */
	uint64_t results_seen, seen_at;	/* to detect that it is stuck */
};

struct world {
	struct rig *rig;
	struct rng rng;
	struct sim_job job[WORLD_JOBS];	/* conf.job is another number */
	struct message flight[WORLD_FLIGHT], attic[WORLD_ATTIC];
	unsigned int in_flight, in_attic;
	unsigned int loss_up, loss_down, dup, hold;	/* permille */
	struct sim_job *paused;		/* at most one is not RUNNING */
	unsigned int kind;		/* that most policies are of, 0: any */
	uint64_t results[WORLD_KINDS];	/* of rounds with policies of the kind */
	uint64_t stuck;			/* jobs restarted */
	char error[512];
};

void world_init(struct world *w, struct rig *rig, uint64_t seed);

/* The job with that number, NULL if there is none (any more). */
struct sim_job *world_job(struct world *w, unsigned int number);

/*
 * What a worker says there, as ledger_value has it; @job: struct sim_job.  In half of the slots
 * all are at one exponent, in the others each has its own: mostly near, some far, a few NaN.
 */
struct ledger_said world_said(void *job, unsigned int worker, uint32_t round, uint32_t segment,
			      int lie);
/* Elements for messages whose elements nobody reads. */
const int32_t *world_unread_values(void);
/* An exponent that no GRAD may have. */
int8_t world_bad_exponent(struct rng *r);

static inline const struct saina_job_rt *world_rt(const struct sim_job *j)
{
	return &j->world->rig->o.job[j->conf.job].rt;
}

#endif /* SAINA_WORLD_H */
