// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which session has which shared memory of the data path (uapi/saina/shm.h).  Whoever knows a
 * worker's session gets that worker's input array and its job's ring of results.  An array
 * belongs to one session: when that ends, for any reason, the data path drops array and ring,
 * and the next session gets new ones.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/members/internal.h"

__attribute__((format(printf, 3, 4)))
static int refuse(struct saina_shm_reply *m, int error, const char *fmt, ...)
{
	va_list ap;

	m->error = -error;
	va_start(ap, fmt);
	vsnprintf(m->text, sizeof(m->text), fmt, ap);
	va_end(ap);
	return error;
}

/* Workers whose array belongs to a session that has ended. */
static uint64_t ended_sessions(struct agent *a, const struct saina_job *job)
{
	uint64_t workers = 0, session;

	for (int w = 0; w < job->workers; w++) {
		session = jobs_worker(a, job, w)->shm_session;
		if (session && (!jobs_alive(job, w) || session != job->worker[w].bind.session))
			workers |= 1ull << w;
	}
	return workers;
}

/* Of all @workers at once: each call of saina_dp_shm_revoke() copies the ring. */
static void revoke_arrays(struct agent *a, const struct saina_job *job, uint64_t workers)
{
	if (!workers)
		return;
	for (int w = 0; w < job->workers; w++)
		if (workers >> w & 1)
			jobs_worker(a, job, w)->shm_session = 0;
	a->jobs->aux[job->id]->status_due = true;
	a->jobs->changed = a->jobs->unsaved = true;
	if (!saina_dp_shm_revoke(a->dp, job->id, workers))
		log_info("job %s: shared memory of workers (mask %#" PRIx64 ") is revoked",
			 job->name, workers);
	else
		log_error("job %s: %s", job->name, saina_dp_error(a->dp));
}

int shm_grant(struct agent *a, const struct saina_shm_request *q, struct saina_shm_reply *m,
	      int map[2])
{
	const struct saina_job *job = saina_core_job_find(a->jobs->core, 1, q->job, NULL, NULL);
	struct worker_aux *aux;
	int ret;

	if (q->version != SAINA_SHM_VERSION)
		return refuse(m, -EPROTO, "version %u of the request is not supported, only %u",
			      q->version, SAINA_SHM_VERSION);
	if (!job || q->worker >= job->workers || !jobs_alive(job, q->worker) ||
	    job->worker[q->worker].bind.session != q->session)
		return refuse(m, -EACCES, "worker %u of job %u is not admitted in this session",
			      q->worker, q->job);
	if (!job->by_reference)
		return refuse(m, -EPERM, "job %s does not share memory: its operator has not allowed this",
			      job->name);
	aux = jobs_worker(a, job, q->worker);
	if (aux->shm_session != q->session && saina_dp_shm_is_granted(a->dp, job->id, q->worker))
		revoke_arrays(a, job, ended_sessions(a, job) | 1ull << q->worker);
	ret = saina_dp_shm_grant(a->dp, job->id, q->worker, map, &m->output);
	if (ret)
		return refuse(m, ret, "%s", saina_dp_error(a->dp));
	m->segments = job->segments;
	m->ring = job->ring;
	m->pool = job->pool;
	m->payload = job->payload;
	if (!aux->shm_session)
		log_info("job %s: worker %u (%s) has its input array", job->name, q->worker,
			 job->worker[q->worker].name);
	aux->shm_session = q->session;
	a->jobs->aux[job->id]->status_due = true;
	/* a restart after a crash must know the owner */
	a->jobs->changed = a->jobs->unsaved = true;
	jobs_commit(a);
	return 0;
}

/* The job has formed again, with new maps.  STATUS names a ring that the worker does not have,
 * so that it requests the new ones. */
static void renew_maps(struct agent *a, const struct saina_job *job, int w)
{
	uint32_t results;
	int map[2];

	a->jobs->aux[job->id]->status_due = true;
	if (saina_dp_shm_grant(a->dp, job->id, w, map, &results)) {
		log_error("job %s: %s", job->name, saina_dp_error(a->dp));
		revoke_arrays(a, job, 1ull << w);
		return;
	}
	close(map[0]);
	close(map[1]);
}

void shm_job_changed(struct agent *a, const struct saina_job *job)
{
	if (a->jobs->aux[job->id] && job->by_reference)
		a->jobs->aux[job->id]->shm_due = true;
}

static void update_job(struct agent *a, const struct saina_job *job)
{
	revoke_arrays(a, job, ended_sessions(a, job));
	for (int w = 0; w < job->workers; w++)
		if (jobs_worker(a, job, w)->shm_session &&
		    !saina_dp_shm_is_granted(a->dp, job->id, w))
			renew_maps(a, job, w);
}

void shm_update(struct agent *a)
{
	const struct saina_job *job;

	for (int id = 0; (job = saina_core_job_next(a->jobs->core, id)); id = job->id + 1) {
		if (!a->jobs->aux[job->id]->shm_due)
			continue;
		a->jobs->aux[job->id]->shm_due = false;
		update_job(a, job);
	}
}

void shm_revoke_stale(struct agent *a)
{
	const struct saina_job *job;
	struct worker_aux *aux;
	uint64_t ended;

	for (int id = 0; (job = saina_core_job_next(a->jobs->core, id)); id = job->id + 1) {
		ended = 0;
		for (int w = 0; job->by_reference && w < job->workers; w++) {
			aux = jobs_worker(a, job, w);
			if (!saina_dp_shm_is_granted(a->dp, job->id, w))
				aux->shm_session = 0;
			else if (!jobs_alive(job, w) || aux->shm_session != job->worker[w].bind.session)
				ended |= 1ull << w;
		}
		revoke_arrays(a, job, ended);
	}
}

uint32_t shm_output_id(struct agent *a, const struct saina_job *job, char *why, size_t size)
{
	uint32_t results;

	if (!job->by_reference) {
		snprintf(why, size, "not allowed for this job");
		return 0;
	}
	for (int w = 0; job->by_reference != SAINA_REFERENCE_ONLY && w < job->workers; w++) {
		if (!jobs_alive(job, w) || jobs_worker(a, job, w)->shm_session)
			continue;
		snprintf(why, size,
			 "not in use: worker %d (%s) has not asked for its array: is this worker on this host, with access to the socket %s/share?",
			 w, job->worker[w].name, a->cfg.runtime_dir);
		return 0;
	}
	results = job->active ? saina_dp_shm_output_id(a->dp, job->id) : 0;
	snprintf(why, size, results ? "in use" : "not in use: no worker is alive");
	return results;
}
