// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include <errno.h>
#include <stdlib.h>
#include "reorder.h"

int saina_reorder_init(struct saina_reorder *e, const struct saina_job *job)
{
	e->segments = job->segments;
	e->ring = job->ring;
	e->entry = calloc(e->ring, sizeof(*e->entry));
	for (uint32_t i = 0; e->entry && i < e->ring; i++) {
		e->entry[i].present = calloc(e->segments, 1);
		if (!e->entry[i].present)
			return -ENOMEM;
	}
	return e->entry ? 0 : -ENOMEM;
}

void saina_reorder_exit(struct saina_reorder *e)
{
	for (uint32_t i = 0; e->entry && i < e->ring; i++)
		free(e->entry[i].present);
	free(e->entry);
}

static struct saina_reorder_round *entry(const struct saina_reorder *e, uint32_t round)
{
	return &e->entry[round & (e->ring - 1)];
}

uint32_t saina_reorder_count(const struct saina_reorder *e, uint32_t round)
{
	return entry(e, round)->round == round ? entry(e, round)->have : 0;
}

bool saina_reorder_has(const struct saina_reorder *e, uint32_t round, uint32_t segment)
{
	return saina_reorder_count(e, round) && entry(e, round)->present[segment];
}

bool saina_reorder_add(struct saina_reorder *e, uint32_t round, uint32_t segment)
{
	struct saina_reorder_round *r = entry(e, round);

	if (!r->have || r->round != round) {
		memset(r->present, 0, e->segments);
		r->have = 0;
		r->round = round;
	}
	if (r->present[segment])
		return false;
	r->present[segment] = 1;
	r->have++;
	return true;
}

void saina_reorder_remove(struct saina_reorder *e, uint32_t round, uint32_t segment)
{
	if (saina_reorder_has(e, round, segment)) {
		entry(e, round)->present[segment] = 0;
		entry(e, round)->have--;
	}
}

void saina_reorder_drop(struct saina_reorder *e, uint32_t from, uint32_t below)
{
	for (uint32_t i = 0; i < e->ring; i++)
		if (e->entry[i].round >= from && e->entry[i].round < below)
			e->entry[i].have = 0;
}
