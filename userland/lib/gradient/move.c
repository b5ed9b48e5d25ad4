// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Elements move to other places in the gradient: residual and scale move with them.
 *
 * A scale only proposes the exponent of the next contribution.  So a segment that pieces of several
 * others move to gets the coarsest of their scales.  A segment that nothing moves to has no scale,
 * as before the first round.
 */
#include <errno.h>
#include <stdlib.h>
#include "gradient.h"

#define TAKEN 1
#define GIVEN 2

/**
 * struct moved - the gradient after the moves
 * @residual: [segments * payload]
 * @state: [segments]
 * @used: [segments * payload]: TAKEN: moved from there; GIVEN: moved to there
 */
struct moved {
	uint32_t *residual;
	struct saina_segment_state *state;
	uint8_t *used;
};

static size_t count_nonzero(const struct saina_job *job, const struct saina_segment_state *state,
			    const uint32_t *residual)
{
	size_t n = 0;

	for (uint32_t i = 0; i < job->segments; i++)
		for (uint32_t j = 0; state[i].residual && j < job->payload; j++)
			n += residual[(size_t)i * job->payload + j] != 0;
	return n;
}

static int8_t coarsest(int8_t a, int8_t b)
{
	if (a == SAINA_EXPONENT_NAN || b == SAINA_EXPONENT_NAN)
		return a == SAINA_EXPONENT_NAN ? b : a;
	return a < b ? a : b;
}

/* Moves a piece that is in one segment before, and in one after. */
static int move_piece(const struct saina_gradient *g, struct moved *to, uint64_t from, uint64_t at,
		      uint64_t n)
{
	uint32_t a = from / g->job->payload, b = at / g->job->payload;
	const struct saina_segment_state *old = &g->state[a];
	struct saina_segment_state *new = &to->state[b];

	for (uint64_t i = 0; i < n; i++) {
		if (to->used[from + i] & TAKEN || to->used[at + i] & GIVEN)
			return -ENOTEMPTY;
		to->used[from + i] |= TAKEN;
		to->used[at + i] |= GIVEN;
	}
	new->scale = coarsest(old->scale, new->scale);
	if (!old->residual)
		return 0;
	if (new->residual && new->residual != old->residual)
		return -EINVAL;
	new->residual = old->residual;
	memcpy(to->residual + at, g->residual + from, 4 * n);
	return 0;
}

static int apply_move(const struct saina_gradient *g, struct moved *to, const struct saina_move *m)
{
	uint32_t payload = g->job->payload;
	uint64_t from = m->from, at = m->to, left = m->n, n;
	int ret = 0;

	for (; left && !ret; from += n, at += n, left -= n) {
		n = left;
		if (n > payload - from % payload)
			n = payload - from % payload;
		if (n > payload - at % payload)
			n = payload - at % payload;
		ret = move_piece(g, to, from, at, n);
	}
	return ret;
}

static void reset_states(const struct saina_gradient *g, struct moved *to)
{
	for (uint32_t i = 0; i < g->job->segments; i++) {
		to->state[i].last = g->state[i].last;
		to->state[i].scale = SAINA_EXPONENT_NAN;
	}
}

int saina_gradient_move(struct saina_gradient *g, const struct saina_move *moves, size_t n)
{
	const struct saina_job *job = g->job;
	struct moved to = {
		.residual = calloc((size_t)job->segments * job->payload, 4),
		.state = calloc(job->segments, sizeof(*to.state)),
		.used = calloc(job->segments, job->payload),
	};
	int ret = to.residual && to.state && to.used ? 0 : -ENOMEM;

	if (!ret)
		reset_states(g, &to);
	for (size_t i = 0; i < n && !ret; i++)
		ret = apply_move(g, &to, &moves[i]);
	/* Residual that was not moved would be lost. */
	if (!ret && count_nonzero(job, g->state, g->residual) !=
			    count_nonzero(job, to.state, to.residual))
		ret = -ENOTEMPTY;
	if (!ret) {
		saina_gradient_exit(g);
		g->residual = to.residual;
		g->state = to.state;
	} else {
		free(to.residual);
		free(to.state);
	}
	free(to.used);
	return ret;
}
