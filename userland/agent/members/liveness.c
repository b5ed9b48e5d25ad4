// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Alive or dead.  Signs of life are heartbeats, and packets that the data path has
 * accepted as the worker's own: a worker whose control messages are lost stays alive while its
 * gradients arrive.
 */
#include <stdio.h>

#include "agent/backend/backend.h"
#include "agent/members/internal.h"

#define PERIOD_MIN_MS 10
#define PERIOD_MAX_MS 200
#define STALL_MS      100	/* a tick later than this means that the agent was not scheduled */

/* These count only packets whose sender was verified. */
static const int life_signs[] = {
	SAINA_C_STORED,	    SAINA_C_ADDED,	 SAINA_C_LATE,	     SAINA_C_RESENT,
	SAINA_C_PULLED,	    SAINA_C_STALE,	 SAINA_C_PROBED,     SAINA_C_DUPLICATE,
	SAINA_C_PULL_EARLY, SAINA_C_FUTURE,	 SAINA_C_ROUND_BUSY, SAINA_C_SLOT_BUSY,
	SAINA_C_EXPONENT,   SAINA_C_NOT_RUNNING, SAINA_C_INCED,	     SAINA_C_READ,
	SAINA_C_CLOCKED,    SAINA_C_CLOCK_WAIT,	 SAINA_C_CLOCK_ORDER, SAINA_C_INC_ORDER,
	SAINA_C_INC_WAIT,   SAINA_C_MODE,	 SAINA_C_LEAD,	     SAINA_C_AWAY,
};

uint64_t liveness_signs(const struct saina_counters *c)
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
	aux->restored = false;
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
	loop_timer_set(&a->members->tick, period, period);
}

/*
 * Has the data path got packets of the worker since the last check?  @moved: only such as have
 * another MAC address, which it drops.
 */
static bool has_sent_packets(struct agent *a, const struct saina_job *job, int w,
			     struct worker_aux *aux, bool *moved)
{
	struct saina_counters c;
	uint64_t signs;
	bool came;

	*moved = false;
	if (saina_dp_counters(a->dp, job->id, w, &c))
		return false;
	signs = liveness_signs(&c);
	came = aux->signs_read && signs != aux->signs;
	*moved = aux->signs_read && !came && c.c[SAINA_C_BAD_MAC] != aux->bad_mac;
	aux->signs_read = true;
	aux->signs = signs;
	aux->bad_mac = c.c[SAINA_C_BAD_MAC];
	return came;
}

void liveness_check(struct agent *a, const struct saina_job *job, int w)
{
	struct worker_aux *aux = jobs_worker(a, job, w);
	const struct port *port = worker_port(a, job, w);
	uint64_t now = loop_now();
	uint64_t silent_ms = (now - aux->last_heard) / NSEC_PER_MSEC;
	bool moved;
	char why[128];

	/* reading counters costs a system call: only if a heartbeat is overdue.  The first
	 * read is only the baseline. */
	if (silent_ms <= job->heartbeat_ms)
		return;
	if (has_sent_packets(a, job, w, aux, &moved)) {
		aux->last_heard = now;
		aux->restored = false;
		return;
	}
	/* it may be behind another port: the data path does not accept it from there */
	if (!port)
		reply_join_again(a, job, w, "port has left the bridge");
	else if (moved)
		reply_join_again(a, job, w, "MAC address has changed");
	if (silent_ms <= job->dead_ms)
		return;
	snprintf(why, sizeof(why), "silent for %llu ms%s%s%s%s", (unsigned long long)silent_ms,
		 port ? "" : ": its port ", port ? "" : worker_port_name(a, job, w),
		 port ? "" : " has left bridge ", port ? "" : a->cfg.bridge);
	backend_worker_end(a, job, w, SAINA_WORKER_STATE_DEAD, why);
}

void liveness_discount_stall(struct agent *a)
{
	struct liveness *l = &a->members->liveness;
	uint64_t now = loop_now(), due = l->last + l->period_ms * NSEC_PER_MSEC;
	const struct saina_job *job;
	struct worker_aux *aux;
	int id, w;

	l->last = now;
	if (now <= due + STALL_MS * NSEC_PER_MSEC)
		return;
	l->held_up_ns += now - due;
	l->held_up_times++;
	log_debug("sainad was not scheduled for %llu ms", (unsigned long long)((now - due) / NSEC_PER_MSEC));
	for (id = 0; (job = saina_core_job_next(a->jobs->core, id)); id = job->id + 1)
		for (w = 0; w < job->workers; w++) {
			aux = jobs_worker(a, job, w);
			aux->last_heard += now - due;
			if (aux->last_heard > now)
				aux->last_heard = now;
		}
}
