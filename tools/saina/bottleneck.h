/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why a job is slow, in one line; shared by job show and top. */
#ifndef SAINA_BOTTLENECK_H
#define SAINA_BOTTLENECK_H

#include "tool.h"

#define BOTTLENECK_TEXT_LEN 192

/**
 * struct bottleneck - what a job waits for, and whom it has waited for
 * @oldest_us: age of the sum that waits longest, 0 if none does
 * @missing: workers that are not in that sum yet
 * @more: how many of them it still needs
 * @round: of that sum
 * @next: of each worker, the round that it sends next, as its last heartbeat before said
 * @wait_us: of each worker, how long a sum has been waiting that it is not in
 * @completed: of each worker, sums that its gradient completed
 * @total: of all
 */
struct bottleneck {
	__u64 oldest_us, missing;
	unsigned int more;
	__u32 round, next[SAINA_WORKERS_MAX];
	__u64 wait_us[SAINA_WORKERS_MAX], completed[SAINA_WORKERS_MAX], total;
};

/* In this order: what a worker has said was so before the slot was looked at. */
void bottleneck_add_worker(struct bottleneck *s, const struct saina_worker_attrs *worker);
void bottleneck_add_slot(struct bottleneck *s, const struct saina_slot_attrs *slot);
void bottleneck_add_stats(struct bottleneck *s, const struct saina_stats_attrs *stats);
/* Asks @agent for all that; 0 or a negative errno, and nothing is printed. */
int bottleneck_read(struct saina_ctl *agent, __u16 job, struct bottleneck *s);
/* The sentence; false if there is nothing to say. */
bool bottleneck_text(const struct bottleneck *s, unsigned int workers, char *text, size_t size);
/* Share of the sums that the worker completed. */
double bottleneck_share(const struct bottleneck *s, int worker);

#endif /* SAINA_BOTTLENECK_H */
