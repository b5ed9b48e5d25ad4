/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A simulator that makes traces: jobs (sim_jobs.h) whose workers (sim_workers.h) keep to their
 * window, retransmit, pull, catch up, straggle, die and come back, and a channel (sim_channel.h)
 * between them and the aggregator.  Everything follows from the seed.
 */
#ifndef SAINA_SIM_H
#define SAINA_SIM_H

#include "lib/rng.h"
#include "oracle/ledger.h"
#include "harness.h"

#define SIM_SEGMENTS	256	/* of a job, at most */
#define SIM_JOBS	4	/* at once, at most */
#define SIM_FLIGHT	2048	/* messages in flight */
#define SIM_STALE	512	/* messages that are delayed for a long time */
#define SIM_VALUES	65536	/* elements are taken from so many random values */

/* Kinds of policies: those of enum saina_policy_mode, and two variants of them. */
enum { SIM_FASTEST_TIMEOUT = SAINA_POLICY_CODED + 1, SIM_SFCD_DOWN, SIM_KINDS };

/* A message in flight; its elements follow from its header. */
struct message {
	uint8_t job, worker, type, flags;
	uint8_t lie;		/* carries the second gradient of a worker that sends two */
	int8_t exponent;
	uint64_t session;
	uint32_t round, segment;
	uint32_t weight;	/* GRAD: slot_round */
	uint64_t posted;	/* DOORBELL, FETCH: segments */
};

struct sim_worker {
	bool alive;
	uint32_t round;
	uint32_t got_n;
	uint32_t stall;				/* turns that it skips, to straggle */
	uint32_t idle;				/* turns since its last new result */
	uint64_t got[SIM_SEGMENTS / 64];
	uint64_t sent[SIM_SEGMENTS / 64];
};

struct sim_job {
	struct sim *sim;
	bool present;
	struct saina_job_conf conf;
	unsigned int workers;
	int uplink;			/* the uplink worker, beside @workers; -1: none, ever */
	unsigned int parent_rests;	/* turns that it skips */
	bool nodes;			/* gradients stand for several workers */
	uint32_t first_round;
	struct sim_worker worker[SAINA_WORKERS_MAX];
	struct ledger ledger;
	int liar;			/* worker that sends two gradients for one segment, -1: none */
	bool steady;			/* values change every eighth round only */
	uint64_t value_seed;
	uint64_t sessions;		/* the last one assigned */
	uint32_t policies;		/* seq of the last one */
	uint64_t results_seen, seen_at;	/* to detect that it is stuck */
};

struct sim {
	struct harness *harness;
	struct rng rng;
	struct sim_job job[SIM_JOBS];	/* conf.job is another number */
	struct message flight[SIM_FLIGHT], stale[SIM_STALE];
	unsigned int in_flight, in_stale;
	unsigned int loss_up, loss_down, dup, delay;	/* probabilities, permille */
	struct sim_job *paused;		/* at most one is not RUNNING */
	bool int16;			/* some jobs are of it */
	bool uplinks;			/* some jobs have one */
	unsigned int kind;		/* that most policies are of, 0: any */
	uint64_t results[SIM_KINDS];	/* of rounds with policies of the kind */
	uint64_t stuck;			/* jobs restarted */
	uint64_t from_parent, not_counted;	/* results; of them, without a worker of the job */
	uint64_t types_above;			/* of them, of integers and floats */
	char error[512];
};

void sim_init(struct sim *w, struct harness *harness, uint64_t seed);

/* The job with that number, NULL if there is none. */
struct sim_job *sim_job_find(struct sim *w, unsigned int number);

/*
 * The gradient of a worker in a segment, a ledger_value; @job: struct sim_job.  In half of the
 * slots all workers have one exponent, in the others each has its own: mostly near, some far, a few
 * NaN.
 */
struct ledger_gradient sim_gradient(void *job, unsigned int worker, uint32_t round, uint32_t segment,
				    int lie);
/* max_weight of a binding of @worker; what its gradients say is less. */
uint32_t sim_max_weight(const struct sim_job *j, unsigned int worker);
/* Elements for messages whose elements are ignored. */
const int32_t *sim_unread_values(void);
/* Sets an exponent that no GRAD of the job may have; false: there is none. */
bool sim_spoil_exponent(const struct sim_job *j, int8_t *e);

static inline const struct saina_job_rt *sim_rt(const struct sim_job *j)
{
	return &j->sim->harness->o.job[j->conf.job].rt;
}

#endif /* SAINA_SIM_H */
