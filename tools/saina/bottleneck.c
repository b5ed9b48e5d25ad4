// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Why a job is slow. Open slots say which workers are missing now; counters say which worker's
 * gradient completed a sum, hence who is usually the last.
 */
#include <stdio.h>
#include <string.h>

#include "bottleneck.h"
#include "ctl/lateness.h"

#define WAIT_MIN_US 100000 /* shorter waits are not reported */
#define LATE_MIN_MS 1 /* less lateness is not reported */
#define SUMS_MIN	100    /* sums needed to say who is usually the last */

void bottleneck_add_worker(struct bottleneck *s, const struct saina_worker_attrs *worker)
{
	if (worker->id >= SAINA_WORKERS_MAX)
		return;
	s->next[worker->id] = worker->round;
	if (worker->state == SAINA_WORKER_STATE_SLOW)
		s->slow |= 1ull << worker->id;
	s->late_ms[worker->id] = saina_lateness_ms(worker->arrival_us, worker->arrivals, 0, 0);
}

void bottleneck_add_slot(struct bottleneck *s, const struct saina_slot_attrs *slot)
{
	for (int w = 0; w < SAINA_WORKERS_MAX; w++)
		if (slot->missing & 1ull << w && slot->age_us > s->wait_us[w])
			s->wait_us[w] = slot->age_us;
	if (slot->age_us <= s->oldest_us || !slot->missing)
		return;
	s->oldest_us = slot->age_us;
	s->missing = slot->missing;
	s->round = slot->round;
	s->more = slot->k > slot->count ? slot->k - slot->count : 1;
}

void bottleneck_add_stats(struct bottleneck *s, const struct saina_stats_attrs *stats)
{
	if (!SAINA_HAS(stats, SAINA_A_STATS_WORKER) || stats->worker >= SAINA_WORKERS_MAX)
		return;
	s->completed[stats->worker] = stats->counters[SAINA_C_COMPLETED];
	s->total += stats->counters[SAINA_C_COMPLETED];
}

static void worker_cb(void *arg, const void *obj)
{
	bottleneck_add_worker(arg, obj);
}

static void slot_cb(void *arg, const void *obj)
{
	bottleneck_add_slot(arg, obj);
}

static void stats_cb(void *arg, const void *obj)
{
	bottleneck_add_stats(arg, obj);
}

int bottleneck_read(struct saina_ctl *agent, __u16 job, struct bottleneck *s)
{
	struct saina_slot_attrs slot = { .job_id = job };
	struct saina_stats_attrs stats = { .job_id = job };
	struct saina_worker_attrs worker = { .job_id = job };
	int ret;

	memset(s, 0, sizeof(*s));
	SAINA_SET(&slot, SAINA_A_SLOT_JOB_ID);
	SAINA_SET(&stats, SAINA_A_STATS_JOB_ID);
	SAINA_SET(&worker, SAINA_A_WORKER_JOB_ID);
	ret = rpc_call_quiet(agent, SAINA_CMD_WORKER_GET, true, &saina_worker_class, &worker,
			     &saina_worker_class, worker_cb, s);
	if (!ret)
		ret = rpc_call_quiet(agent, SAINA_CMD_SLOT_GET, true, &saina_slot_class, &slot,
				     &saina_slot_class, slot_cb, s);
	if (!ret)
		ret = rpc_call_quiet(agent, SAINA_CMD_STATS_GET, true, &saina_stats_class, &stats,
				     &saina_stats_class, stats_cb, s);
	return ret;
}

/* Share of the sums that the worker's gradient completed. */
static double bottleneck_share(const struct bottleneck *s, int worker)
{
	return s->total ? (double)s->completed[worker] / s->total : 0;
}

/* Formats "worker 3", "workers 1,4" or, if only @some of them are meant, "2 of workers 1,4,5". */
static void format_workers(__u64 mask, unsigned int some, char *text, size_t size)
{
	unsigned int n = __builtin_popcountll(mask);
	size_t len = 0;

	if (some < n)
		len = snprintf(text, size, "%u of ", some);
	len += snprintf(text + len, size - len, "worker%s ", n > 1 ? "s" : "");
	for (int w = 0, i = 0; w < SAINA_WORKERS_MAX && len < size - 8; w++)
		if (mask & 1ull << w)
			len += snprintf(text + len, size - len, "%s%d", i++ ? "," : "", w);
}

/*
 * Finds a worker that is missing in the sum although it is at a later round: it starts fewer
 * elements than the others, or joined again since the round began. -1: there is none.
 */
static int find_ahead(const struct bottleneck *s)
{
	for (int w = 0; w < SAINA_WORKERS_MAX; w++)
		if (s->missing >> w & 1 && s->next[w] > s->round)
			return w;
	return -1;
}

/* Finds the worker whose mean lateness is at least twice that of any other.  -1: there is none. */
static int find_late(const struct bottleneck *s)
{
	double most = LATE_MIN_MS, second = 0;
	int late = -1;

	for (int w = 0; w < SAINA_WORKERS_MAX; w++) {
		if (s->late_ms[w] > most) {
			second = late >= 0 ? most : second;
			most = s->late_ms[w];
			late = w;
		} else if (s->late_ms[w] > second) {
			second = s->late_ms[w];
		}
	}
	return late >= 0 && most >= 2 * second ? late : -1;
}

bool bottleneck_text(const struct bottleneck *s, const struct saina_job_attrs *job, char *text, size_t size)
{
	int last = 0, one = s->missing ? __builtin_ctzll(s->missing) : -1, ahead;
	unsigned int workers = __builtin_popcountll(job->active);
	/* else sums are completed by the k-th, and those that come after it are the slow ones */
	bool of_all = job->k >= workers;
	char names[80];
	size_t len;

	for (int w = 1; w < SAINA_WORKERS_MAX; w++)
		if (s->completed[w] > s->completed[last])
			last = w;
	/* who misses sums has no part in the lateness of the rounds that it misses */
	if (s->oldest_us < WAIT_MIN_US && s->slow) {
		format_workers(s->slow, SAINA_WORKERS_MAX, names, sizeof(names));
		snprintf(text, size, "%s missed most sums of the last second", names);
		return true;
	}
	if (s->oldest_us < WAIT_MIN_US && find_late(s) >= 0) {
		last = find_late(s);
		snprintf(text, size, "worker %d is late in each round: %.1f ms after the first, on average",
			 last, s->late_ms[last]);
		return true;
	}
	if (s->oldest_us < WAIT_MIN_US) {
		/* if none is slower, each is the last in 1/workers of the sums */
		if (!of_all || s->total < SUMS_MIN || workers < 2 || bottleneck_share(s, last) * workers < 1.5)
			return false;
		snprintf(text, size, "worker %d was last in %.0f %% of the sums", last,
			 100 * bottleneck_share(s, last));
		return true;
	}
	format_workers(s->missing, s->more, names, sizeof(names));
	len = snprintf(text, size, "waiting for %s for %.1f s", names, s->oldest_us / 1e6);
	ahead = find_ahead(s);
	if (len < size && ahead >= 0) {
		snprintf(text + len, size - len,
			 "; worker %d is at round %u already: it starts fewer elements, or joined again",
			 ahead, s->next[ahead]);
		return true;
	}
	if (len < size && of_all && !(s->missing & (s->missing - 1)) && s->total >= SUMS_MIN)
		snprintf(text + len, size - len, "; it was last in %.0f %% of the sums",
			 100 * bottleneck_share(s, one));
	return true;
}
