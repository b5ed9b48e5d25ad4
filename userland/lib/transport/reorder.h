/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Which results are here before they are wanted, of as many rounds as the job's ring has. */
#ifndef SAINA_EARLY_H
#define SAINA_EARLY_H

#include <stdbool.h>
#include <stdint.h>
#include "wire/job.h"

struct saina_early {
	uint32_t segments, ring;
	struct saina_early_round {
		uint32_t round;
		uint32_t have;		/* segments present, 0 = entry not used */
		uint8_t	 *present;	/* [segments] */
	} *entry;			/* [ring], by round & (ring - 1) */
};

int saina_early_init(struct saina_early *e, const struct saina_job *job);
void saina_early_exit(struct saina_early *e);
/* False if it is here already. */
bool saina_early_add(struct saina_early *e, uint32_t round, uint32_t segment);
void saina_early_remove(struct saina_early *e, uint32_t round, uint32_t segment);
bool saina_early_has(const struct saina_early *e, uint32_t round, uint32_t segment);
uint32_t saina_early_count(const struct saina_early *e, uint32_t round);
/* Rounds from @from on, below @below. */
void saina_early_drop(struct saina_early *e, uint32_t from, uint32_t below);

#endif /* SAINA_EARLY_H */
