/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Which results came before they are wanted, for as many rounds as the job's ring has. */
#ifndef SAINA_REORDER_H
#define SAINA_REORDER_H

#include <stdbool.h>
#include <stdint.h>
#include "wire/job.h"

struct saina_reorder {
	uint32_t segments, ring;
	struct saina_reorder_round {
		uint32_t round;
		uint32_t have;		/* segments present, 0 = entry not used */
		uint8_t	 *present;	/* [segments] */
	} *entry;			/* [ring], by round & (ring - 1) */
};

int saina_reorder_init(struct saina_reorder *e, const struct saina_job *job);
void saina_reorder_exit(struct saina_reorder *e);
/* False if it was there already. */
bool saina_reorder_add(struct saina_reorder *e, uint32_t round, uint32_t segment);
void saina_reorder_remove(struct saina_reorder *e, uint32_t round, uint32_t segment);
bool saina_reorder_has(const struct saina_reorder *e, uint32_t round, uint32_t segment);
uint32_t saina_reorder_count(const struct saina_reorder *e, uint32_t round);
/* Rounds from @from on, below @below. */
void saina_reorder_drop(struct saina_reorder *e, uint32_t from, uint32_t below);

#endif /* SAINA_REORDER_H */
