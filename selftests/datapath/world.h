/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A small world to make traces in: jobs whose workers behave (they keep to
 * their window, retransmit, pull, catch up), straggle, die and come back, and
 * a channel between them and the aggregator that loses, duplicates, reorders
 * and holds packets back for rounds.  Everything follows from the seed.
 */
#ifndef SAINA_WORLD_H
#define SAINA_WORLD_H

#include "lib/rng.h"
#include "oracle/ledger.h"
#include "oracle/recompute.h"
#include "rig.h"

#define WORLD_SEGMENTS	256	/* most of a job here */
#define WORLD_JOBS	4	/* most at once */
#define WORLD_FLIGHT	2048	/* messages on their way */
#define WORLD_ATTIC	512	/* messages held back for a long time */
#define WORLD_TICK_US	250000000u	/* time-outs are multiples, and time passes so */
#define WORLD_VALUES	65536	/* values workers say, picked from a table */

/* Kinds of policies: those of enum saina_policy_mode, and two that some of these may be. */
enum { WORLD_FASTEST_TIMEOUT = SAINA_POLICY_CODED + 1, WORLD_SFCD_DOWN, WORLD_KINDS };

/* A message on its way; what it carries follows from what it is. */
struct message {
	uint8_t job, worker, type, flags;
	uint8_t lie;		/* carries the liar's other values */
	int8_t exponent;
	uint64_t session;
	uint32_t round, segment;
	uint64_t rung;		/* BELL: segments */
};

struct sim_worker {
	bool alive;
	uint32_t round;
	uint32_t got_n;
	uint32_t stall;				/* turns it will not take */
	uint32_t idle;				/* turns since it last learnt something */
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
	int liar;			/* worker that says two things, -1 */
	bool steady;			/* values change every eighth round only */
	uint64_t value_seed;
	uint64_t sessions;		/* given out */
	uint32_t policies;		/* seq of the last one */
	uint64_t results_seen, seen_at;	/* to notice that it is stuck */
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
	uint64_t stuck;			/* jobs started afresh */
	char error[512];
};

void world_init(struct world *w, struct rig *rig, uint64_t seed);
void world_exit(struct world *w);

/* Makes a job in slot @i of the world with number @number; 0 or -errno. */
int world_job_new(struct world *w, unsigned int i, unsigned int number, unsigned int payload);
int world_job_del(struct world *w, unsigned int i);

/* Takes a message that arrives now.  Returns false if there is none (again). */
bool world_next(struct world *w, struct message *m);
/* Takes another one of the same worker, for the same frame. */
bool world_more(struct world *w, const struct message *like, struct message *m);
/* The frame of a message; returns its length. */
unsigned int world_frame(struct world *w, const struct message *m, uint8_t *frame);
/* Gives the last answer of the rig to the workers it is for.  False: w->error */
bool world_answer(struct world *w);
/* Something happens to a job: a death, a birth, a policy, a state. */
int world_happens(struct world *w);
/* The job that was stopped, if one is, goes on. */
int world_resume(struct world *w);
/* Any job that made no progress for long?  Starts it afresh. */
int world_unstick(struct world *w);

struct sim_job *world_job(struct world *w, unsigned int number);
const int32_t *world_value(void *job, unsigned int worker, uint32_t round, uint32_t segment,
			   int lie);
int8_t world_exponent(uint32_t round, uint32_t segment);

#endif /* SAINA_WORLD_H */
