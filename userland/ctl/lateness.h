/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How late a worker is: the one computation of what sainad, top, job show, worker show and metrics say. */
#ifndef SAINA_CTL_LATENESS_H
#define SAINA_CTL_LATENESS_H

#include <linux/types.h>

#include "saina/counters.h"

/**
 * saina_lateness_ms() - how much later than the first of its round a worker is, on average
 * @sum_us: lateness of all its rounds together, microseconds (arrival-us)
 * @rounds: those rounds (arrivals)
 * @sum_us_before, @rounds_before: the same at an earlier time, to have what came since; 0: all
 *
 * Return: milliseconds a round; of all rounds if none came since
 */
static inline double saina_lateness_ms(__u64 sum_us, __u64 rounds, __u64 sum_us_before, __u64 rounds_before)
{
	/* smaller than before: the job has formed again */
	if (rounds <= rounds_before || sum_us < sum_us_before)
		sum_us_before = rounds_before = 0;
	if (!rounds)
		return 0;
	return (double)(sum_us - sum_us_before) / (rounds - rounds_before) / 1000;
}

/**
 * struct saina_missed - sums that were made without a worker, while it took part
 * @samples: 0: not compared yet; 1: @first is valid; 2: @base, too
 * @first: its gradients in time at the first sample
 * @base: sums that had been opened when it is first compared, less @first
 * @total: sums without it
 */
struct saina_missed {
	unsigned int samples;
	__u64	first, total;
	__s64	base;
};

/* Gradients of a worker that were not late: they are in a sum, or (coded) spare ones of one that was still open. */
static inline __u64 saina_in_time(const __u64 *counters)
{
	return counters[SAINA_C_STORED] + counters[SAINA_C_ADDED] + counters[SAINA_C_SPARE];
}

/**
 * saina_missed_add() - compare a worker with the sums of its job
 * @m: of the worker; zeros when it joins
 * @completed: sums of the job that were complete before @in_time was read
 * @opened: sums of the job that had been opened, read since @in_time of the sample before
 * @in_time: saina_in_time() of the worker
 *
 * What nobody starts is no sum, so it is missed by nobody: elements that the job has and the
 * tensor has not, and steps.  A worker has its gradient in each complete sum that was opened since it
 * takes part, or has missed it; what it has in sums that are still open is in its favour, for the time being.
 *
 * Return: sums that are found to be missed now and were not before
 */
static inline __u64 saina_missed_add(struct saina_missed *m, __u64 completed, __u64 opened, __u64 in_time)
{
	__s64 missed;
	__u64 more;

	if (!m->samples) {
		m->first = in_time;
		m->samples = 1;
		return 0;
	}
	if (m->samples == 1) {
		m->base = opened - m->first;
		m->samples = 2;
	}
	missed = completed - in_time - m->base;
	if (missed <= (__s64)m->total)
		return 0;
	more = missed - m->total;
	m->total = missed;
	return more;
}

#endif /* SAINA_CTL_LATENESS_H */
