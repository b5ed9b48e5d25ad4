/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The contents of results that came before they are wanted (which: transport/reorder.h). */
#ifndef SAINA_KEPT_H
#define SAINA_KEPT_H

#include "wire/job.h"

struct saina_kept {
	const struct saina_job *job;
	uint8_t **round;	/* [ring], by round & (ring - 1): messages, as they came */
};

int saina_kept_init(struct saina_kept *k, const struct saina_job *job);
void saina_kept_exit(struct saina_kept *k);
/* A whole RESULT; false without memory. */
bool saina_kept_put(struct saina_kept *k, const struct saina_hdr *h);
/* One that was put. */
const struct saina_hdr *saina_kept_get(const struct saina_kept *k, uint32_t round,
				       uint32_t segment);

#endif /* SAINA_KEPT_H */
