/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Workers that submit different sizes in a round: it would never end. */
#ifndef SAINA_SIZE_CHECK_H
#define SAINA_SIZE_CHECK_H

#include "round.h"

#define SAINA_SAME_SIZES "All workers must start the same sizes in the same order"

/**
 * saina_size_check() - have other workers submitted other sizes than this one?
 * @active: mask of live workers, as the agent said at @heard
 * @text: out, the sentence if so
 * Return: true if the present round can never end because of it
 *
 * Only for jobs with rounds.  Does not find sizes that differ but fill the same number of segments
 * in all; nor, with a policy that does not wait for all workers, those of workers it does not wait
 * for.
 */
bool saina_size_check(struct saina_round *r, uint64_t active, uint64_t heard, uint64_t now, char *text,
		   size_t size);

/* How long saina_size_check() waits: the agent has found dead workers by then. */
uint64_t saina_size_check_ns(const struct saina_job *job);

#endif /* SAINA_SIZE_CHECK_H */
