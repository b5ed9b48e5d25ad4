// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copies the state of jobs, workers, ports and data path.  Counters and arrivals of a worker
 * cost a system call each, so only a few workers are copied in one turn of the loop.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/metrics/internal.h"
#include "agent/uplink/uplink.h"

#define WORKER_BUDGET 64 /* workers copied in one turn of the loop */

static double seconds(uint64_t ns)
{
	return (double)ns / NSEC_PER_SEC;
}

static void copy_agent(struct agent *a, struct snapshot *s)
{
	struct saina_limits limits;
	__u32 jobs;
	__u64 memory;

	s->up = seconds(loop_now() - a->started);
	s->backend = a->backend->ops->name;
	s->taken_over = saina_dp_taken_over(a->dp);
	s->held_up_ns = a->members->liveness.held_up_ns;
	s->held_up_times = a->members->liveness.held_up_times;
	s->announcements = a->bridge->announcements;
	memcpy(s->shm, a->members->shm.counts, sizeof(s->shm));
	s->foreign = a->peers.foreign;
	s->counted = !saina_dp_counters(a->dp, -1, -1, &s->global);
	saina_core_limits_get(a->jobs->core, &limits, &jobs, &memory);
	s->memory = memory;
	s->limit_jobs = limits.jobs;
	s->limit_memory = limits.memory;
}

static int copy_ports(struct agent *a, struct snapshot *s)
{
	int i;

	s->port = calloc(a->bridge->n + 1, sizeof(*s->port));
	if (!s->port)
		return -ENOMEM;
	for (i = 0; i < a->bridge->n; i++) {
		struct snap_port *p = &s->port[s->ports++];

		p->port = a->bridge->port[i];
		members_on_port(a, p->port.ifindex, &p->workers, &p->relayed);
		if (p->port.mode != SAINA_PORT_MODE_NONE)
			saina_dp_port_get(a->dp, p->port.ifindex, &p->faults);
	}
	return 0;
}

struct snapshot *snapshot_begin(struct agent *a)
{
	struct snapshot *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->users = 1;
	copy_agent(a, s);
	s->job = calloc(SAINA_JOBS_MAX, sizeof(*s->job));
	if (!s->job || copy_ports(a, s)) {
		snapshot_put(s);
		return NULL;
	}
	return s;
}

static void copy_uplink(struct agent *a, struct snap_job *o, const struct saina_job *job)
{
	const struct uplink_report *r = uplink_report(a, job);
	uint64_t now = loop_now();

	o->below = saina_job_has_uplink(job);
	if (!r)
		return;
	o->admitted = r->state == UPLINK_ADMITTED || r->state == UPLINK_RUNNING;
	o->tree_workers = r->workers;
	if (r->away_since && now > r->away_since)
		o->away = seconds(now - r->away_since);
	o->bytes_up = r->bytes_up;
	o->bytes_down = r->bytes_down;
}

static void copy_job(struct agent *a, struct snapshot *s, const struct saina_job *job)
{
	struct snap_job *o = &s->job[s->jobs++];
	uint64_t now = loop_now();

	o->id = job->id;
	memcpy(o->name, job->name, sizeof(o->name));
	o->state = job->state;
	o->workers = job->workers;
	o->alive = __builtin_popcountll(job->active);
	o->payload = job->payload;
	o->elem_bytes = job->elem == SAINA_ELEM_BFLOAT16 ? 2 : 4;
	o->elements = job->elements;
	o->segments = job->segments;
	o->memory = job->memory;
	o->detached = backend_detached(a, job->id);
	o->seen = jobs_rt(a, job, &o->rt);
	saina_policy_format(o->seen && o->rt.policy.seq ? &o->rt.policy : &job->policy, o->policy,
			    sizeof(o->policy));
	o->lead = saina_policy_lead(jobs_policy(a, job), job->ring, saina_job_has_uplink(job));
	if (o->seen && o->rt.open_slots && now > o->rt.opened_at)
		o->age = seconds(now - o->rt.opened_at);
	copy_uplink(a, o, job);
}

/* A worker that has joined since the last round opened begins with the next one. */
static uint32_t rounds_behind(const struct saina_job_rt *rt, int w)
{
	return rt->members >> w & 1 && rt->next_round > rt->at[w] ? rt->next_round - rt->at[w] : 0;
}

static int copy_worker(struct agent *a, struct snapshot *s, const struct saina_job *job, int w)
{
	const struct saina_worker *wk = &job->worker[w];
	const struct snap_job *of = &s->job[s->jobs - 1];
	const struct worker_aux *aux;
	char why[SAINA_TEXT_LEN];
	struct snap_worker *o;

	if (s->workers == s->room_worker) {
		unsigned int room = s->room_worker ? 2 * s->room_worker : 64;
		void *more = reallocarray(s->worker, room, sizeof(*s->worker));

		if (!more)
			return -ENOMEM;
		s->worker = more;
		s->room_worker = room;
	}
	o = &s->worker[s->workers++];
	memset(o, 0, sizeof(*o));
	o->job = s->jobs - 1;
	o->id = w;
	o->state = wk->state;
	memcpy(o->name, wk->name, sizeof(o->name));
	o->leads = of->seen && job->active >> w & 1 && of->lead != UINT32_MAX;
	if (o->leads)
		o->behind = rounds_behind(&of->rt, w);
	o->relayed = wk->bind.flags & SAINA_BIND_RELAY;
	if (a->jobs->aux[job->id]) {
		aux = jobs_worker(a, job, w);
		o->heard = aux->last_heard;
		o->silent = seconds(loop_now() - aux->last_heard);
		o->round = aux->round;
		o->late = aux->late_total;
		o->reported = aux->reported;
		o->sent = aux->sent;
		o->resent = aux->resent;
		o->rtt_us = aux->rtt_us;
		o->window = aux->window;
		o->unheard = worker_unheard(a, job, w, why, sizeof(why));
		o->shared = aux->shm_session;
	}
	if (saina_dp_arrival(a->dp, job->id, w, &o->arrival))
		memset(&o->arrival, 0, sizeof(o->arrival));
	o->counted = !saina_dp_counters(a->dp, job->id, w, &o->c);
	if (o->counted)
		s->job[o->job].completed += o->c.c[SAINA_C_COMPLETED];
	return 0;
}

int snapshot_more(struct agent *a, struct snapshot *s)
{
	const struct saina_job *job;
	int n = 0, ret;

	/* a job that is deleted between two turns stays in the snapshot as far as it was copied */
	while ((job = saina_core_job_next(a->jobs->core, s->at_job))) {
		if (job->id != s->at_job || !s->at_worker) {
			s->at_job = job->id;
			s->at_worker = 0;
			copy_job(a, s, job);
		}
		while (s->at_worker < job->workers) {
			int w = s->at_worker++;

			if (job->worker[w].state == SAINA_WORKER_STATE_ABSENT)
				continue;
			ret = copy_worker(a, s, job, w);
			if (ret)
				return ret;
			if (++n == WORKER_BUDGET)
				return 1;
		}
		s->at_job++;
		s->at_worker = 0;
	}
	s->taken_at = loop_now();
	return 0;
}

void snapshot_put(struct snapshot *s)
{
	if (!s || --s->users)
		return;
	free(s->job);
	free(s->worker);
	free(s->port);
	free(s);
}
