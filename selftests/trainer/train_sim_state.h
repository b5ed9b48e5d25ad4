/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of a simulation, of rounds (train_sim.c) and of steps (train_sim_steps.c).
 */
#ifndef EXAMPLES_TRAIN_SIM_STATE_H
#define EXAMPLES_TRAIN_SIM_STATE_H

#include "train.h"
#include "train_sim_policy.h"

#define SIM_PAYLOAD 256 /* elements of a segment */
#define SIM_LATE    64	/* late gradients of a worker that are computed anew */

struct sim_worker {
	double free;		    /* ms: when it can begin a round */
	double begin, finish, done; /* of the present round: computation ends, gradient is sent */
	double loss;
	int kept;	/* gradients in the residual; fresh: in @late */
	uint32_t *late; /* rounds of late gradients */
	float *g;
	float *residual;
	/* of steps: a model of its own, and the sums that it has seen */
	float *p, *v, *v2, *seen;
	uint32_t steps; /* that the model has made */
	uint32_t pushed;
	bool waits, ends;
	FILE *csv;
};

struct sim {
	struct trainer t;
	struct sim_policy pol;
	struct sim_worker w[TRAIN_WORKERS_MAX];
	float *sum;
	uint8_t *sign;
	bool primed;
	uint64_t late, offered;
	double shown;
	FILE *acc, *events;
};

/* Returns 0, or the exit status after a line on stderr; sim_close() is due either way. */
int sim_open(struct sim *s, const struct train_opts *o);
void sim_close(struct sim *s);
/* Time until worker @w has the result of @round, ms. */
double sim_latency(const struct sim *s, uint32_t round, int w);
/* Time that worker @w computes in @round without a stall, ms. */
double sim_compute(const struct sim *s, uint32_t round, int w);
/* Tests the model @p of @round at @now (ms) and prints a line, if due; @last: in any case. */
void sim_test(struct sim *s, uint32_t round, double now, const float *p, bool last);

#endif /* EXAMPLES_TRAIN_SIM_STATE_H */
