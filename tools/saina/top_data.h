/* SPDX-License-Identifier: GPL-2.0-or-later */
/* saina top: top_data.c takes samples, top.c draws them. */
#ifndef SAINA_TOP_DATA_H
#define SAINA_TOP_DATA_H

#include "bottleneck.h"
#include "ctl/lateness.h"

#define HISTORY 60 /* samples kept */

/* The last samples of a value, the newest at (next - 1) % HISTORY. */
struct history {
	float v[HISTORY];
	unsigned int n, next;
};

/**
 * struct top_worker - a worker, and its changes since the previous sample
 * @c, @before: counters now, and at the previous sample
 * @missed: share of the job's sums that were made without it while it took part
 * @session: its session, by which another life of the worker is known
 * @sums: what it is compared with
 * @rate: gradients in time per second
 * @last: share of the job's sums that its gradient completed
 * @wait: age of the oldest sum that waits for it, seconds
 * @drops, @resent: dropped packets and results sent again, per second
 */
struct top_worker {
	bool there;
	struct saina_worker_attrs attrs;
	__u64 c[SAINA_C_N], before[SAINA_C_N];
	double missed, rate, last, wait, drops, resent;
	double late_ms;	/* after the first of each round */
	__u64 arrivals, arrival_us;	/* at the previous sample */
	double recent;	/* sums that it completed, decaying with age */
	bool known;	/* @before is valid */
	__u64 session;
	struct saina_missed sums;
	struct history misses;
};

struct top_job {
	bool there, known;
	struct saina_job_attrs attrs;
	struct bottleneck bottleneck;
	struct top_worker *worker;	/* SAINA_WORKERS_MAX */
	__u32 generation, round_before;
	__u64 completed[2];	/* sums, at the last two samples */
	double rounds, goodput, flips;
	struct history rounds_history, k_history, flips_history;
};

struct top {
	struct top_job job[SAINA_JOBS_MAX];
	double at;	/* seconds, of the last sample */
	char error[256];
};

/* Takes a sample; on failure returns false and sets top->error. */
bool top_sample(struct top *top, struct saina_ctl *agent);
void top_free(struct top *top);

#endif /* SAINA_TOP_DATA_H */
