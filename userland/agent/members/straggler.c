// SPDX-License-Identifier: GPL-2.0-or-later
/* Stragglers: counts sums that were made without a worker, and marks workers slow. */
#include "agent/backend/backend.h"
#include "agent/members/internal.h"

static void mark_slow(struct agent *a, const struct saina_job *job, int w, bool slow)
{
	struct saina_worker_attrs req = {
		.has = 1ull << SAINA_A_WORKER_JOB_ID | 1ull << SAINA_A_WORKER_ID |
		       1ull << SAINA_A_WORKER_STATE,
		.job_id = job->id,
		.id = w,
		.state = slow ? SAINA_WORKER_STATE_SLOW : SAINA_WORKER_STATE_ALIVE,
	};

	if (job->worker[w].state != req.state)
		backend_worker_set(a, &req, NULL, NULL);
}

struct progress straggler_progress(struct agent *a, const struct saina_job *job)
{
	struct progress p = { 0 };
	struct saina_counters c;
	struct saina_job_rt rt;

	if (!jobs_rt(a, job, &rt))
		return p;
	/* of dead workers, too */
	for (int w = 0; w < job->workers; w++) {
		if (saina_dp_counters(a->dp, job->id, w, &c))
			return p;
		p.opened += c.c[SAINA_C_STORED];
		p.completed += c.c[SAINA_C_COMPLETED];
	}
	p.next_round = rt.next_round;
	p.k = rt.k;
	return p;
}

/*
 * Late is what is not in a sum: gradients that arrived after it was complete, and those that were
 * not sent because the result arrived first.  If all workers are equally fast and a result takes k
 * of n, each worker is in time for k/n of the sums.  A worker below half of that is slow.
 */
void straggler_check(struct agent *a, const struct saina_job *job, int w, struct progress p,
		     const struct saina_counters *c)
{
	struct worker_aux *aux = jobs_worker(a, job, w);
	uint32_t first = aux->formed ? job->first_round : aux->first_round;
	uint64_t in_time, late, total = saina_in_time(c->c);
	unsigned int n = __builtin_popcountll(job->active);

	/* sums of rounds before its first one need no gradient of it */
	if (!p.k || p.next_round <= first)
		return;
	in_time = aux->missed.samples ? total - aux->in_time : 0;
	late = saina_missed_add(&aux->missed, p.completed, p.opened, total);
	aux->in_time = total;
	if (late) {
		struct saina_event ev = {
			.type = SAINA_EV_WORKER_LATE,
			.job = job->id,
			.worker = w,
			.a = late,
		};

		aux->late_total += late;
		jobs_event(a, &ev, NULL);
		backend_worker_late(a, job, w, late);
	}
	if (late || in_time)
		mark_slow(a, job, w, late && in_time * 2 * n < (in_time + late) * p.k);
}
