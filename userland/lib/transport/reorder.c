// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Results that came before they are wanted. */
#include <errno.h>
#include <stdlib.h>
#include "reorder.h"

int saina_reorder_init(struct saina_reorder *e, const struct saina_job *job)
{
	e->job = job;
	e->entry = calloc(job->ring, sizeof(*e->entry));
	for (uint32_t i = 0; e->entry && i < job->ring; i++) {
		e->entry[i].present = calloc(job->segments, 1);
		if (!e->entry[i].present)
			return -ENOMEM;
	}
	return e->entry ? 0 : -ENOMEM;
}

void saina_reorder_exit(struct saina_reorder *e)
{
	for (uint32_t i = 0; e->entry && i < e->job->ring; i++) {
		free(e->entry[i].present);
		free(e->entry[i].messages);
	}
	free(e->entry);
}

static struct saina_reorder_round *entry_of(const struct saina_reorder *e, uint32_t round)
{
	return &e->entry[round & (e->job->ring - 1)];
}

uint32_t saina_reorder_count(const struct saina_reorder *e, uint32_t round)
{
	const struct saina_reorder_round *r = entry_of(e, round);

	return r->round == round ? r->have : 0;
}

bool saina_reorder_has(const struct saina_reorder *e, uint32_t round, uint32_t segment)
{
	return saina_reorder_count(e, round) && entry_of(e, round)->present[segment];
}

bool saina_reorder_add(struct saina_reorder *e, uint32_t round, uint32_t segment)
{
	struct saina_reorder_round *r = entry_of(e, round);

	if (!r->have || r->round != round) {
		memset(r->present, 0, e->job->segments);
		r->have = 0;
		r->round = round;
	}
	if (r->present[segment])
		return false;
	r->present[segment] = 1;
	r->have++;
	return true;
}

/* Memory is allocated for the first such result of an entry, and kept for later rounds. */
bool saina_reorder_put(struct saina_reorder *e, const struct saina_hdr *h)
{
	struct saina_reorder_round *r = entry_of(e, le32toh(h->round));
	uint32_t segment = le32toh(h->segment);

	/* Large: its pages take no memory until they are written. */
	if (!r->messages)
		r->messages = malloc(e->job->segments * e->job->msglen);
	if (!r->messages) {
		r->present[segment] = 0;
		r->have--;
		return false;
	}
	memcpy(r->messages + segment * e->job->msglen, h, e->job->msglen);
	return true;
}

const struct saina_hdr *saina_reorder_get(const struct saina_reorder *e, uint32_t round,
					  uint32_t segment)
{
	return (const void *)(entry_of(e, round)->messages + segment * e->job->msglen);
}

void saina_reorder_drop(struct saina_reorder *e, uint32_t from, uint32_t below)
{
	for (uint32_t i = 0; i < e->job->ring; i++)
		if (e->entry[i].round >= from && e->entry[i].round < below)
			e->entry[i].have = 0;
}
