// SPDX-License-Identifier: GPL-2.0-or-later
/* Carries changes of jobs and ports to their workers. */
#include <stdio.h>

#include "agent/backend/backend.h"
#include "agent/members/internal.h"
#include "agent/ports/ports.h"

/* Notes when sessions ended, for any reason. */
static void record_ends(struct agent *a, const struct saina_job *job)
{
	struct worker_aux *aux;

	for (int w = 0; a->jobs->aux[job->id] && w < job->workers; w++) {
		aux = jobs_worker(a, job, w);
		if (jobs_alive(job, w))
			aux->ended_at = 0;
		else if (!aux->ended_at && job->worker[w].state != SAINA_WORKER_STATE_ABSENT) {
			aux->ended_at = loop_now();
			/* its last messages may be why it ended */
			numerics_read(a, job, w);
		}
	}
}

void members_job_changed(struct agent *a, int cmd, const struct saina_job *job)
{
	if (job && cmd != SAINA_CMD_JOB_DEL_NTF) {
		record_ends(a, job);
		shm_job_changed(a, job);
	}
	if (cmd == SAINA_CMD_JOB_NTF)
		a->jobs->aux[job->id]->status_due = true;
	if (cmd == SAINA_CMD_JOB_DEL_NTF)
		reply_job_gone(a, job, "was deleted");
}

void members_send_status(struct agent *a)
{
	const struct saina_job *job;
	int id, w;

	for (id = 0; (job = saina_core_job_next(a->jobs->core, id)); id = job->id + 1) {
		if (!a->jobs->aux[job->id]->status_due)
			continue;
		a->jobs->aux[job->id]->status_due = false;
		for (w = 0; w < job->workers; w++)
			if (jobs_alive(job, w))
				reply_status(a, job, w);
	}
}

void members_dismiss(struct agent *a)
{
	const struct saina_job *job;
	int id;

	for (id = 0; (job = saina_core_job_next(a->jobs->core, id)); id = job->id + 1)
		reply_job_gone(a, job, "has no aggregator any more: sainad was stopped");
}

struct gone_port {
	int ifindex;
	const char *name;
};

static void end_on_port(struct agent *a, const struct saina_job *job, int w, void *arg)
{
	const struct gone_port *p = arg;
	char why[64];

	if ((int)job->worker[w].bind.ifindex != p->ifindex)
		return;
	snprintf(why, sizeof(why), "its port %s is gone from the bridge", p->name);
	backend_worker_end(a, job, w, SAINA_WORKER_STATE_DEAD, why);
}

void members_port_gone(struct agent *a, int ifindex, const char *name)
{
	struct gone_port p = { ifindex, name };

	jobs_each_alive(a, end_on_port, &p);
}

static void end_unreachable(struct agent *a, const struct saina_job *job, int w, void *arg)
{
	const struct port *p = ports_find(a, job->worker[w].bind.ifindex, NULL);

	if (!p || p->mode == SAINA_PORT_MODE_NONE)
		backend_worker_end(a, job, w, SAINA_WORKER_STATE_DEAD,
				   "its port is gone, or no longer attached");
}

void members_end_unreachable(struct agent *a)
{
	jobs_each_alive(a, end_unreachable, NULL);
}

void members_on_port(struct agent *a, int ifindex, uint32_t *workers, uint32_t *relayed)
{
	const struct saina_job *job;
	int id, w;

	*workers = *relayed = 0;
	for (id = 0; (job = saina_core_job_next(a->jobs->core, id)); id = job->id + 1)
		for (w = 0; w < job->workers; w++) {
			if (!jobs_alive(job, w) || (int)job->worker[w].bind.ifindex != ifindex)
				continue;
			++*workers;
			*relayed += !!(job->relay & 1ull << w);
		}
}
