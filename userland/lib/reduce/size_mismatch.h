/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The sentences about workers that submit different sizes or types. */
#ifndef SAINA_SIZE_MISMATCH_H
#define SAINA_SIZE_MISMATCH_H

#include "round.h"

#define SAINA_SAME_SIZES "All workers must start the same sizes in the same order"

/**
 * saina_size_mismatch() - can the present round never end, because sizes differ?
 * @active: mask of live workers, as the agent said at @heard
 * @text: out, the sentence if so
 */
bool saina_size_mismatch(struct saina_round *r, uint64_t active, uint64_t heard, uint64_t now,
			 char *text, size_t size);

/* Why @q has failed with -EPROTO: who has started which type. */
void saina_type_mismatch(const struct saina_round *r, const struct saina_req *q, char *text, size_t size);

#endif /* SAINA_SIZE_MISMATCH_H */
