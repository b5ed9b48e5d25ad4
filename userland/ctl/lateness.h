/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How late a worker is: the one computation of what top, job show, worker show and metrics say. */
#ifndef SAINA_CTL_LATENESS_H
#define SAINA_CTL_LATENESS_H

#include <linux/types.h>

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

#endif /* SAINA_CTL_LATENESS_H */
