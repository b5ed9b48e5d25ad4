/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A simulator of a job in PS mode: workers (ps_workers.h) that push, clock, wait, read, straggle,
 * die and come back; rounds for a while and steps again; and a channel that loses, repeats and
 * reorders.  Its ledger is ps_ledger.h, its invariants are ps_rules.h.  Everything follows from the
 * seed.
 */
#ifndef SAINA_PS_SIM_H
#define SAINA_PS_SIM_H

#include "lib/rng.h"
#include "harness.h"

#define PS_SEGMENTS	16	/* of a job, at most */
#define PS_FLIGHT	1024	/* messages in flight */

enum ps_state { PS_ASKS, PS_PUSHES, PS_CLOCKS, PS_WAITS, PS_ROUNDS };

struct ps_worker {
	enum ps_state state;
	uint32_t step;
	uint32_t stall;			/* turns that it skips, to straggle */
	uint32_t acked, sent;		/* masks of segments; acked in PS_ROUNDS: it has the result */
	uint32_t unread;		/* mask of segments to read before it pushes */
	uint32_t counted[PS_SEGMENTS];	/* 1 + last step, as its answers say */
	uint64_t window;		/* in force at its last GO */
};

/* The sums that a worker of a group of several got; the others of the group must get the same. */
struct ps_view {
	bool known;
	uint32_t base, step;
	uint64_t version;
	int32_t sum[SAINA_ELEMS_MAX];
};

struct ps_message {
	uint8_t type, worker, flags;
	int8_t exponent;
	uint64_t session;
	uint32_t round, segment;
};

struct ps_sim {
	struct harness *harness;
	struct rng rng;
	struct saina_job_conf conf;
	unsigned int workers;
	unsigned int policy;		/* that all steps have; 0: any */
	bool dense;			/* as many steps in as few packets as can be */
	bool constant;			/* the window never changes */
	bool swapping;			/* it changes between steps and rounds */
	uint64_t sessions;
	uint64_t value_seed;
	struct ps_worker worker[SAINA_WORKERS_MAX];
	struct ps_message flight[PS_FLIGHT];
	unsigned int in_flight, depth;	/* workers send nothing while so many are in flight */
	unsigned int loss_up, loss_down, dup;	/* probabilities, permille */
	struct saina_clock seen;	/* after the previous packet */
	int32_t (*sum)[SAINA_ELEMS_MAX];	/* [segment]: of the updates counted */
	uint64_t version[PS_SEGMENTS];
	struct ps_view *view;		/* [group][segment]: the sums that the group got last */
	uint64_t views;			/* comparisons with it */
	unsigned int groups;		/* for which the data path has views */
	uint64_t steps, widest;		/* clocks seen to move; largest lead */
	bool clocked;			/* this packet is a CLOCK: nothing else ends a step */
	uint64_t bound;			/* the largest W in force, an earlier one included */
	uint64_t deaths, windows;	/* workers that died; changes of the window */
	uint64_t swaps, rounds;		/* changes of mode; rounds finished by a worker */
	unsigned int mode;		/* of the job, after the previous packet */
	bool begun;			/* PS mode has begun at least once; */
	uint32_t base;			/* the first step since it last began; */
	uint32_t fence;			/* the first round after it last ended */
	char error[512];
};

/*
 * @policy: SAINA_POLICY_SSP, _ASP or _GROUPED, the only policy with steps; 0: any.  @dense: few
 * workers and segments, no rounds, few messages that make no step.  0 or -errno.
 */
int ps_sim_init(struct ps_sim *w, struct harness *harness, uint64_t seed, unsigned int payload,
		unsigned int policy, bool dense);
void ps_sim_exit(struct ps_sim *w);

/* The next message to arrive.  False: none does this time. */
bool ps_sim_next(struct ps_sim *w, struct ps_message *m);
/* Another message of the same worker, for the same frame. */
bool ps_sim_more(struct ps_sim *w, const struct ps_message *like,
		 struct ps_message *m);
unsigned int ps_sim_frame(struct ps_sim *w, const struct ps_message *m,
			  uint8_t *frame);
/* Delivers the answers to the last packet to ledger, invariants and workers.  False: w->error */
bool ps_sim_deliver(struct ps_sim *w);
/* Changes the job at random: a worker dies, joins or restarts, or the policy.  0 or -errno */
int ps_sim_job_change(struct ps_sim *w);

#endif /* SAINA_PS_SIM_H */
