// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Measures how late each worker's gradients came since the last measurement, for policies with
 * rounds.
 */
#include "arrivals.h"
#include "controller_policy.h"

enum measured controller_measure(struct controller *c, const struct saina_job_attrs *job,
				 const struct saina_worker_attrs *w, size_t n, struct arrivals *a)
{
	double now = monotonic_seconds();
	bool same = c->t > 0 && c->generation == job->generation && job->round >= c->round;

	if (same && job->round - c->round < ARRIVALS_ROUNDS_MIN)
		return MEASURED_TOO_FEW;
	a->rounds = job->round - c->round;
	a->round_us = (now - c->t) * 1e6 / a->rounds;
	for (size_t i = 0; i < n; i++) {
		struct saina_worker_attrs *old = &c->worker[w[i].id];
		bool alive = worker_is_alive(&w[i]);

		for (int h = 0; alive && h < SAINA_ARRIVAL_BUCKETS; h++)
			a->late[a->workers][h] = (double)w[i].arrival_hist[h] - old->arrival_hist[h];
		a->workers += alive;
		same &= !alive || old->session == w[i].session;
		*old = w[i];
	}
	c->t = now;
	c->generation = job->generation;
	c->round = job->round;
	return same ? MEASURED : MEASURED_FIRST;
}
