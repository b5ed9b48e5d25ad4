// SPDX-License-Identifier: GPL-2.0-or-later
/* Stragglers: counts late gradients, and marks workers slow. */
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
	struct job_aux *aux = a->jobs->aux[job->id];
	struct progress p = { 0 };
	struct saina_job_rt rt;

	if (!jobs_rt(a, job, &rt))
		return p;
	/* each generation starts to count its rounds anew */
	if (aux->checked_generation == rt.generation && rt.next_round >= aux->checked_round)
		p.rounds = rt.next_round - aux->checked_round;
	p.k = rt.k;
	aux->checked_generation = rt.generation;
	aux->checked_round = rt.next_round;
	return p;
}

/*
 * Late gradients are those that arrived after their result, and those that were not sent
 * because the result arrived first.  If all workers are equally fast and a result takes k of n,
 * each worker is in time for k/n of its gradients.  A worker below half of that is slow.
 */
void straggler_check(struct agent *a, const struct saina_job *job, int w, struct progress p,
		     const struct saina_counters *c)
{
	struct worker_aux *aux = jobs_worker(a, job, w);
	uint64_t due = (uint64_t)p.rounds * job->segments;
	unsigned int n = __builtin_popcountll(job->active);
	uint64_t in_time, late, missed;
	bool first = !aux->counted;

	in_time = c->c[SAINA_C_STORED] + c->c[SAINA_C_ADDED] - aux->in_time;
	late = c->c[SAINA_C_LATE] - aux->late;
	aux->in_time += in_time;
	aux->late += late;
	aux->counted = true;
	/* counters outlive a session: the first read is only the baseline */
	if (first)
		return;
	/* gradients of the open round may still be in time */
	missed = due > in_time + job->segments ? due - in_time - job->segments : 0;
	if (missed > late)
		late = missed;
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
