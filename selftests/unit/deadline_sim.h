/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulated workers with patterns of stalls, under policy timeout; what a controller would see. */
#ifndef DEADLINE_SIM_H
#define DEADLINE_SIM_H

#include <stdint.h>

#include "saina/arrivals.h"

#define SIM_BASE_US 100000	/* computing a gradient takes so long without a stall */

/*
 * GIVE_UP: who is not in time gives up, and begins the next round with the others. STALL: the same,
 * but a stall lasts its time. FINISH: everybody finishes his gradient, and goes on with the newest
 * round.
 */
enum sim_manner { SIM_GIVE_UP, SIM_STALL, SIM_FINISH, SIM_MANNERS };

enum sim_pattern { SIM_NONE, SIM_SERENE, SIM_SLOW, SIM_TAIL, SIM_EXP, SIM_PERIODS, SIM_TOGETHER, SIM_PATTERNS };

/*
 * HAND: T a tenth of the base, kmin half of the workers; DEADLINE begins with it. DBW begins with
 * all.
 */
enum sim_rule { SIM_FIXED_K, SIM_HAND, SIM_DBW, SIM_DEADLINE };

/* Mean gain per second; T and kmin at the end. */
struct sim_earned {
	double rate;
	unsigned int timeout_us, k_min;
};

extern const char *const sim_pattern_name[SIM_PATTERNS], *const sim_manner_name[SIM_MANNERS];

/**
 * struct sim - a job
 * @now: microseconds, begin of the round
 * @ready: per worker: since when it could begin the round
 * @left: per worker, or [0] of all: gradients until its period ends
 * @bad: the period is a bad one
 */
struct sim {
	unsigned int workers;
	enum sim_pattern pattern;
	enum sim_manner manner;
	uint64_t rng;
	double now;
	double ready[SAINA_WORKERS_MAX];
	double left[SAINA_WORKERS_MAX];
	bool bad[SAINA_WORKERS_MAX];
};

void sim_init(struct sim *s, enum sim_pattern pattern, enum sim_manner manner, unsigned int workers, uint64_t seed);

/*
 * One round, which ends with the last gradient, or with the later of @timeout_us after the first
 * and the @k_min-th. Adds to @seen, whose round_us is that of all its rounds together. Returns the
 * number of gradients in the sum.
 */
unsigned int sim_round(struct sim *s, double timeout_us, unsigned int k_min, struct arrivals *seen);

/* Has the pattern stalls that differ from the time of computing? */
bool sim_has_stalls(enum sim_pattern pattern);

/* @rounds rounds under @rule, which decides every 20 rounds; @k: of SIM_FIXED_K. */
struct sim_earned sim_play(struct sim *s, enum sim_rule rule, unsigned int k, double noise, unsigned int rounds);

#endif /* DEADLINE_SIM_H */
