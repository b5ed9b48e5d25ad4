/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why a job is slow, in one line; shared by job show and top. */
#ifndef SAINA_SLOW_H
#define SAINA_SLOW_H

#include "tool.h"

#define SLOW_TEXT_LEN 192

/**
 * struct slow - what a job waits for, and whom it has waited for
 * @oldest_us: age of the sum that waits longest, 0 if none does
 * @missing: workers that are not in that sum yet
 * @more: how many of them it still needs
 * @round: of that sum
 * @next: of each worker, the round that it sends next, as its last heartbeat before said
 * @wait_us: of each worker, how long a sum has been waiting that it is not in
 * @completed: of each worker, sums that its gradient completed
 * @total: of all
 */
struct slow {
	__u64 oldest_us, missing;
	unsigned int more;
	__u32 round, next[SAINA_WORKERS_MAX];
	__u64 wait_us[SAINA_WORKERS_MAX], completed[SAINA_WORKERS_MAX], total;
};

/* In this order: what a worker has said was so before the slot was looked at. */
void slow_worker(struct slow *s, const struct saina_worker_attrs *worker);
void slow_slot(struct slow *s, const struct saina_slot_attrs *slot);
void slow_stats(struct slow *s, const struct saina_stats_attrs *stats);
/* Asks @agent for all that; 0 or a negative errno, and nothing is printed. */
int slow_ask(struct saina_ctl *agent, __u16 job, struct slow *s);
/* The sentence; false if there is nothing to say. */
bool slow_text(const struct slow *s, unsigned int workers, char *text, size_t size);
/* Share of the sums that the worker completed. */
double slow_share(const struct slow *s, int worker);

#endif /* SAINA_SLOW_H */
