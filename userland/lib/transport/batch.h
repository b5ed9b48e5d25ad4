/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Trains, within the flow machine. */
#ifndef SAINA_TRAIN_H
#define SAINA_TRAIN_H

#include "flow.h"

static inline struct saina_train *train_of(const struct saina_flow *f, uint32_t segment)
{
	return &f->train[segment / f->cut];
}

static inline uint64_t bit_of(const struct saina_flow *f, uint32_t segment)
{
	return 1ull << segment % f->cut;
}

/* The segments of train @j that are below @below. */
static inline uint64_t train_below(const struct saina_flow *f, uint32_t j, uint32_t below)
{
	uint32_t first = j * f->cut, n = below > first ? below - first : 0;

	if (n > f->cut)
		n = f->cut;
	return n ? ~0ull >> (64 - n) : 0;
}

static inline bool train_busy(const struct saina_train *t)
{
	return t->out | t->learn;
}

/* In flight are @out and @learn from now on. */
static inline void train_set(struct saina_flow *f, struct saina_train *t, uint64_t out,
			     uint64_t learn)
{
	bool was = train_busy(t);

	t->out = out;
	t->learn = learn;
	f->inflight += (int)train_busy(t) - was;
}

/* Something of it is news: the next question may come soon again. */
static inline void train_refresh(struct saina_train *t, uint64_t now)
{
	t->quiet_ns = now;
	t->tries = t->unanswered = 0;
	t->waits = false;
}

/* Results that should be here already may be on their way: so long they are waited for. */
static inline uint64_t saina_flow_grace(const struct saina_flow *f)
{
	uint64_t ns = f->window.srtt / 2;

	return ns < MSEC / 5 ? MSEC / 5 : ns < 5 * MSEC ? ns : 5 * MSEC;
}

#endif /* SAINA_TRAIN_H */
