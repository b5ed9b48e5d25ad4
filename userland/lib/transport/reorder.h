/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Results that came before they are wanted, of as many rounds as the job's ring has. */
#ifndef SAINA_REORDER_H
#define SAINA_REORDER_H

#include <stdbool.h>
#include <stdint.h>
#include "wire/job.h"

/**
 * struct saina_reorder
 * @job: of the handle
 * @entry: [ring], by round & (ring - 1)
 */
struct saina_reorder {
	const struct saina_job *job;
	struct saina_reorder_round {
		uint32_t round;
		uint32_t have;		/* segments present, 0 = entry not used */
		uint8_t	 *present;	/* [segments] */
		uint8_t	 *messages;	/* [segments]: as they came */
	} *entry;
};

int saina_reorder_init(struct saina_reorder *e, const struct saina_job *job);
void saina_reorder_exit(struct saina_reorder *e);
/* Marks a result as present; false if it was already. */
bool saina_reorder_add(struct saina_reorder *e, uint32_t round, uint32_t segment);
/* Stores a RESULT that was added; false without memory: it is not present any more. */
bool saina_reorder_put(struct saina_reorder *e, const struct saina_hdr *h);
/* A RESULT that was stored. */
const struct saina_hdr *saina_reorder_get(const struct saina_reorder *e, uint32_t round,
					  uint32_t segment);
bool saina_reorder_has(const struct saina_reorder *e, uint32_t round, uint32_t segment);
uint32_t saina_reorder_count(const struct saina_reorder *e, uint32_t round);
/* Drops rounds from @from on, below @below. */
void saina_reorder_drop(struct saina_reorder *e, uint32_t from, uint32_t below);

#endif /* SAINA_REORDER_H */
