/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A worker of the random rounds of numbers_test.c: gradients, their encoding, and what results must be. */
#ifndef SAINA_NUMBERS_WORKER_H
#define SAINA_NUMBERS_WORKER_H

#include "lib/rng.h"
#include "test_job.h"

#define E		JOB_ELEMS
#define NAN_BLOCK	SAINA_EXPONENT_NAN
#define NONE		1000	/* no exponent */
#define SEGMENTS	2

struct result {
	int exponent, flags;
	uint64_t mask;
	int32_t v[E];
};

struct worker {
	float x[SEGMENTS][E];		/* gradient plus residual, before encoding */
	float residual[SEGMENTS][E];
	int32_t v[SEGMENTS][E];
	int exponent[SEGMENTS];		/* of v */
	int last[SEGMENTS];		/* exponent of the last finite result, or NONE */
	bool heard[SEGMENTS];
};

/* Encodes gradients of all magnitudes: they jump from round to round and from worker to worker. */
void worker_produce(struct worker *p, struct rng *r, int magnitude, unsigned int workers);
/* Worker @w gets a result: the rest of its gradient becomes the residual. */
void worker_take(struct worker *p, unsigned int w, unsigned int s, const struct result *r);
/* Is the sum what float64 gives: within a unit for each contributor, and 1e-6 of the largest contribution? */
bool result_is_right(const struct worker *p, unsigned int s, const struct result *r);

#endif /* SAINA_NUMBERS_WORKER_H */
