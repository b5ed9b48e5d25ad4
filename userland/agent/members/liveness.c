// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Alive, slow or dead.  Signs of life are heartbeats, and packets that the data path has
 * accepted as the worker's own: a worker whose control messages are lost stays alive while its
 * gradients arrive.
 */
#include <stdio.h>
#include <string.h>

#include "agent/backend/backend.h"
#include "agent/members/internal.h"

#define PERIOD_MIN_MS 10
#define PERIOD_MAX_MS 200
#define SLOW_CHECK_MS 1000
#define STALL_MS      100	/* a tick later than this means that the agent was not scheduled */
#define DRAIN_MAX  8192

/* These count only packets whose sender was verified. */
static const int life_signs[] = {
	SAINA_C_STORED,	    SAINA_C_ADDED,	 SAINA_C_LATE,	     SAINA_C_RESENT,
	SAINA_C_PULLED,	    SAINA_C_STALE,	 SAINA_C_PROBED,     SAINA_C_DUPLICATE,
	SAINA_C_PULL_EARLY, SAINA_C_FUTURE,	 SAINA_C_ROUND_BUSY, SAINA_C_SLOT_BUSY,
	SAINA_C_EXPONENT,   SAINA_C_NOT_RUNNING, SAINA_C_INCED,	     SAINA_C_READ,
	SAINA_C_CLOCKED,    SAINA_C_CLOCK_WAIT,	 SAINA_C_CLOCK_ORDER, SAINA_C_INC_ORDER,
	SAINA_C_INC_WAIT,   SAINA_C_MODE,
};

static uint64_t sum_life_signs(const struct saina_counters *c)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < sizeof(life_signs) / sizeof(life_signs[0]); i++)
		sum += c->c[life_signs[i]];
	return sum;
}

void liveness_heard(struct agent *a, const struct saina_job *job, int w)
{
	struct worker_aux *aux = jobs_worker(a, job, w);

	aux->last_heard = loop_now();
	aux->signs_read = false;
	liveness_replan(a);
}

/* The timer runs while any worker is alive, often enough for the strictest job. */
void liveness_replan(struct agent *a)
{
	const struct saina_job *job;
	unsigned int period = 0;
	int id;

	for (id = 0; (job = saina_core_job_next(a->jobs->core, id)); id = job->id + 1) {
		unsigned int ms = job->dead_ms / 4;

		if (!job->active)
			continue;
		if (ms < PERIOD_MIN_MS)
			ms = PERIOD_MIN_MS;
		if (ms > PERIOD_MAX_MS)
			ms = PERIOD_MAX_MS;
		if (!period || ms < period)
			period = ms;
	}
	if (period == a->members->liveness.period_ms)
		return;
	a->members->liveness.period_ms = period;
	a->members->liveness.last = loop_now();
	loop_timer_set(&a->members->liveness.timer, period, period);
}

/* Has the data path got packets of the worker since the last check? */
static bool has_sent_packets(struct agent *a, const struct saina_job *job, int w,
			     struct worker_aux *aux)
{
	struct saina_counters c;
	uint64_t signs;
	bool came;

	if (saina_dp_counters(a->dp, job->id, w, &c))
		return false;
	signs = sum_life_signs(&c);
	came = aux->signs_read && signs != aux->signs;
	aux->signs_read = true;
	aux->signs = signs;
	return came;
}

static void check_silence(struct agent *a, const struct saina_job *job, int w, uint64_t now)
{
	struct worker_aux *aux = jobs_worker(a, job, w);
	uint64_t silent_ms = (now - aux->last_heard) / NSEC_PER_MSEC;
	char why[64];

	/* reading counters costs a system call: only if a heartbeat is overdue.  The first
	 * read is only the baseline. */
	if (silent_ms <= job->heartbeat_ms)
		return;
	if (has_sent_packets(a, job, w, aux)) {
		aux->last_heard = now;
		return;
	}
	if (silent_ms <= job->dead_ms)
		return;
	snprintf(why, sizeof(why), "silent for %llu ms", (unsigned long long)silent_ms);
	backend_worker_end(a, job, w, SAINA_WORKER_STATE_DEAD, why);
}

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

/* Progress of a job since the last check. */
struct progress {
	uint32_t rounds;
	unsigned int k;
};

static struct progress read_progress(struct agent *a, const struct saina_job *job)
{
	struct job_aux *aux = a->jobs->aux[job->id];
	struct progress p = { 0 };
	struct saina_job_rt rt;

	if (saina_dp_job_rt(a->dp, job->id, &rt) || rt.generation != job->generation)
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
static void check_late(struct agent *a, const struct saina_job *job, int w, struct progress p)
{
	struct worker_aux *aux = jobs_worker(a, job, w);
	uint64_t due = (uint64_t)p.rounds * job->segments;
	unsigned int n = __builtin_popcountll(job->active);
	uint64_t in_time, late, missed;
	struct saina_counters c;
	bool first = !aux->counted;

	if (saina_dp_counters(a->dp, job->id, w, &c))
		return;
	diagnose_tick(a, job, w, sum_life_signs(&c) + c.c[SAINA_C_ASKED]);
	numerics_tick(a, job, w, &c);
	in_time = c.c[SAINA_C_STORED] + c.c[SAINA_C_ADDED] - aux->in_time;
	late = c.c[SAINA_C_LATE] - aux->late;
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

/* No worker dies because the agent was not scheduled: such time does not count as silence,
 * and messages that arrived meanwhile are read first. */
static void discount_stall(struct agent *a)
{
	uint64_t now = loop_now(),
		 due = a->members->liveness.last + a->members->liveness.period_ms * NSEC_PER_MSEC;
	const struct saina_job *job;
	struct worker_aux *aux;
	int id, w;

	a->members->liveness.last = now;
	if (now > due + STALL_MS * NSEC_PER_MSEC) {
		a->members->liveness.held_up_ns += now - due;
		a->members->liveness.held_up_times++;
		log_debug("held up for %llu ms", (unsigned long long)((now - due) / NSEC_PER_MSEC));
		for (id = 0; (job = saina_core_job_next(a->jobs->core, id)); id = job->id + 1)
			for (w = 0; w < job->workers; w++) {
				aux = jobs_worker(a, job, w);
				aux->last_heard += now - due;
				if (aux->last_heard > now)
					aux->last_heard = now;
			}
	}
	ctrl_socket_drain(a, DRAIN_MAX);
}

static void liveness_tick(struct source *s, uint32_t events)
{
	struct agent *a = s->arg;
	uint64_t now;
	struct progress p = { 0 };
	const struct saina_job *job;
	bool late;
	int id, w;

	loop_timer_ack(s);
	discount_stall(a);
	now = loop_now();
	late = now - a->members->liveness.slow_check >= SLOW_CHECK_MS * NSEC_PER_MSEC;
	if (late)
		a->members->liveness.slow_check = now;
	for (id = 0; (job = saina_core_job_next(a->jobs->core, id)); id = job->id + 1) {
		bool check = late && job->state == SAINA_JOB_RUNNING;

		if (check)
			p = read_progress(a, job);
		for (w = 0; w < job->workers; w++) {
			if (jobs_alive(job, w))
				check_silence(a, job, w, now);
			if (check && jobs_alive(job, w))
				check_late(a, job, w, p);
		}
	}
	liveness_replan(a);
}

int liveness_init(struct agent *a)
{
	a->members->liveness.timer = (struct source){ .fd = -1, .ready = liveness_tick, .arg = a };
	return loop_timer_add(&a->loop, &a->members->liveness.timer);
}

void liveness_uninit(struct agent *a)
{
	loop_timer_del(&a->loop, &a->members->liveness.timer);
}
