/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why a job is slow, in one line; shared by job show and top. */
#ifndef SAINA_BOTTLENECK_H
#define SAINA_BOTTLENECK_H

#include "tool.h"

#define BOTTLENECK_TEXT_LEN 192

/**
 * struct bottleneck - the workers that a job waits for, now and on average
 * @oldest_us: age of the oldest incomplete sum, 0 if there is none
 * @missing: workers that are not in that sum
 * @more: number of them that the sum still needs
 * @round: round of that sum
 * @next: per worker, the next round that it sends, by its last heartbeat
 * @wait_us: per worker, age of the oldest sum that it is missing in
 * @completed: per worker, sums that its gradient completed
 * @total: sum of @completed
 * @slow: workers without which most sums are made (state slow)
 * @late_ms: per worker, how much later than the first of its round it is, on average
 */
struct bottleneck {
	__u64 oldest_us, missing, slow;
	unsigned int more;
	__u32 round, next[SAINA_WORKERS_MAX];
	__u64 wait_us[SAINA_WORKERS_MAX], completed[SAINA_WORKERS_MAX], total;
	double late_ms[SAINA_WORKERS_MAX];
};

/* Call in this order: heartbeats must be older than the slots with which they are compared. */
void bottleneck_add_worker(struct bottleneck *s, const struct saina_worker_attrs *worker);
void bottleneck_add_slot(struct bottleneck *s, const struct saina_slot_attrs *slot);
void bottleneck_add_stats(struct bottleneck *s, const struct saina_stats_attrs *stats);
/* Reads all of it from @agent. Returns 0 or a negative errno; prints nothing. */
int bottleneck_read(struct saina_ctl *agent, __u16 job, struct bottleneck *s);
/* Formats the sentence of @job; false if there is no bottleneck. */
bool bottleneck_text(const struct bottleneck *s, const struct saina_job_attrs *job, char *text, size_t size);

#endif /* SAINA_BOTTLENECK_H */
