/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Workers that start different sizes in a round, which would never end. */
#ifndef SAINA_UNEQUAL_H
#define SAINA_UNEQUAL_H

#include "round.h"

#define SAINA_SAME_SIZES "All workers must start the same sizes in the same order"

/**
 * saina_unequal() - have others started other sizes than this worker?
 * @active: mask of live workers, as the agent said at @heard
 * @text: out, the sentence if so
 * Return: true if the present round can never end because of it
 *
 * Only for jobs that have rounds.  Not found: sizes that differ but fill the same number of segments
 * in all; and, with a policy that does not wait for all workers, sizes that it does not wait for.
 */
bool saina_unequal(struct saina_round *r, uint64_t active, uint64_t heard, uint64_t now, char *text,
		   size_t size);

/* How long that takes: the agent has noticed by then who is dead. */
uint64_t saina_unequal_patience(const struct saina_job *job);

#endif /* SAINA_UNEQUAL_H */
