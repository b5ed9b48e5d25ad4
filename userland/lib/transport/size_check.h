/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Have other workers submitted other sizes in this round, so that it can never end? */
#ifndef SAINA_SIZE_CHECK_H
#define SAINA_SIZE_CHECK_H

#include "flow.h"

/**
 * struct saina_size_check
 * @wait_ns: how long nothing may happen before sizes are compared: by then the agent has found dead
 *	workers
 * @progress_ns: when a segment was over last
 * @checked_ns: when saina_size_check() was called last
 */
struct saina_size_check {
	uint64_t wait_ns, progress_ns, checked_ns;
};

enum saina_sizes {
	SAINA_SIZES_UNKNOWN,	/* nothing says that they differ */
	SAINA_SIZES_TOO_FEW,	/* in the previous round others have submitted more than this worker */
	SAINA_SIZES_STALLED,	/* saina_size_check_others() may find an all-reduce that others lack */
};

void saina_size_check_init(struct saina_size_check *c, const struct saina_job *job);

/**
 * saina_size_check() - compare sizes, as far as that is possible; called in each turn
 * @heard: when the agent last said who is alive
 *
 * Only for jobs with rounds.  Does not find sizes that differ but fill the same number of segments
 * in all; nor, with a policy that does not wait for all workers, those of workers it does not wait
 * for.
 */
enum saina_sizes saina_size_check(struct saina_size_check *c, struct saina_flow *f, uint64_t heard,
				  uint64_t now);

/**
 * saina_size_check_others() - segments of a stalled all-reduce that all others can have submitted
 * @first: its first segment
 * @segments: that this worker has submitted
 * @counted: mask of workers that are counted in any of them
 * @active: mask of live workers
 * Return: how many at most, less than @segments; 0 if that is not known
 */
uint32_t saina_size_check_others(const struct saina_flow *f, uint32_t first, uint32_t segments,
				 uint64_t counted, uint64_t active);

#endif /* SAINA_SIZE_CHECK_H */
