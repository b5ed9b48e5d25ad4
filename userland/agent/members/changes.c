// SPDX-License-Identifier: GPL-2.0-or-later
/* Carries changes of jobs and ports to their workers. */
#include <stdio.h>

#include "agent/backend/backend.h"
#include "agent/members/internal.h"
#include "agent/ports/ports.h"

static struct log_limit limit;

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

struct changed_port {
	int ifindex;
	const char *name;
	bool there;
};

static void note_port(struct agent *a, const struct saina_job *job, int w, void *arg)
{
	const struct changed_port *p = arg;
	struct worker_aux *aux = jobs_worker(a, job, w);

	if ((int)job->worker[w].bind.ifindex != p->ifindex)
		return;
	snprintf(aux->port, sizeof(aux->port), "%s", p->name);
	if (p->there)
		log_limited(&limit, LOG_L_INFO, "job %s: port %s of worker %d (%s) is on the bridge again",
			    job->name, p->name, w, job->worker[w].name);
	else
		log_limited(&limit, LOG_L_INFO,
			    "job %s: port %s of worker %d (%s) has left the bridge: if it does not come back, this worker is dead after %u ms of silence",
			    job->name, p->name, w, job->worker[w].name, job->dead_ms);
}

void members_port_changed(struct agent *a, int ifindex, const char *name, bool there)
{
	struct changed_port p = { ifindex, name, there };

	jobs_each_alive(a, note_port, &p);
}

const struct port *worker_port(struct agent *a, const struct saina_job *job, int w)
{
	return ports_find(a, job->worker[w].bind.ifindex, NULL);
}

const char *worker_port_name(struct agent *a, const struct saina_job *job, int w)
{
	const struct port *p = worker_port(a, job, w);
	const char *last = jobs_worker(a, job, w)->port;

	return p ? p->name : last[0] ? last : "?";
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
