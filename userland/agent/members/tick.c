// SPDX-License-Identifier: GPL-2.0-or-later
/* Sets up the parts of this folder, and runs their checks. */
#include "agent/members/internal.h"

#define COUNTERS_MS 1000
#define DRAIN_MAX   8192	/* messages */

/* Counters are what diagnosis, numerics and stragglers have in common. */
static void check_counters(struct agent *a, const struct saina_job *job, int w, struct progress p)
{
	struct saina_counters c;

	if (saina_dp_counters(a->dp, job->id, w, &c))
		return;
	diagnose_tick(a, job, w, liveness_signs(&c) + c.c[SAINA_C_ASKED]);
	numerics_tick(a, job, w, &c);
	straggler_check(a, job, w, p, &c);
}

/* Reads all messages first: they are signs of life that may have waited during a stall. */
static void members_tick(struct source *s, uint32_t events)
{
	struct agent *a = s->arg;
	const struct saina_job *job;
	struct progress p = { 0 };
	bool due, check;
	int id, w;

	loop_timer_ack(s);
	liveness_discount_stall(a);
	ctrl_socket_drain(a, DRAIN_MAX);
	due = loop_now() - a->members->counters_read >= COUNTERS_MS * NSEC_PER_MSEC;
	if (due)
		a->members->counters_read = loop_now();
	for (id = 0; (job = saina_core_job_next(a->jobs->core, id)); id = job->id + 1) {
		check = due && job->state == SAINA_JOB_RUNNING;
		if (check)
			p = straggler_progress(a, job);
		if (due)
			diagnose_awaited(a, job);
		for (w = 0; w < job->workers; w++) {
			if (jobs_alive(job, w))
				liveness_check(a, job, w);
			if (check && jobs_alive(job, w))
				check_counters(a, job, w, p);
		}
	}
	liveness_replan(a);
}

int members_init(struct agent *a)
{
	int ret;

	a->members->tick = (struct source){ .fd = -1, .ready = members_tick, .arg = a };
	ret = loop_timer_add(&a->loop, &a->members->tick);
	if (ret)
		return ret;
	ret = ctrl_socket_init(a);
	if (ret)
		goto err_tick;
	ret = delivery_init(a);
	if (ret)
		goto err_admit;
	ret = shm_server_init(a);
	if (!ret)
		return 0;
	delivery_uninit(a);
err_admit:
	ctrl_socket_uninit(a);
err_tick:
	loop_timer_del(&a->loop, &a->members->tick);
	return ret;
}

void members_uninit(struct agent *a)
{
	shm_server_uninit(a);
	delivery_uninit(a);
	ctrl_socket_uninit(a);
	loop_timer_del(&a->loop, &a->members->tick);
}
