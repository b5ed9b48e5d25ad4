// SPDX-License-Identifier: GPL-2.0
#include "core/os.h"
#include "core/internal.h"
#include "core/show.h"

/**
 * saina_job_show() - attributes of a job
 * @job: the job
 * @token: the reader may see it
 * @a: out
 */
void saina_job_show(const struct saina_job *job, int token, struct saina_job_attrs *a)
{
	memset(a, 0, sizeof(*a));
	SAINA_PUT(a, SAINA_A_JOB_ID, id, job->id);
	SAINA_PUT_TEXT(a, SAINA_A_JOB_NAME, name, job->name);
	SAINA_PUT(a, SAINA_A_JOB_STATE, state, job->state);
	SAINA_PUT(a, SAINA_A_JOB_ELEMENTS, elements, job->elements);
	SAINA_PUT(a, SAINA_A_JOB_WORKERS, workers, job->workers);
	SAINA_PUT(a, SAINA_A_JOB_PAYLOAD, payload, job->payload);
	SAINA_PUT(a, SAINA_A_JOB_POOL, pool, job->pool);
	SAINA_PUT(a, SAINA_A_JOB_RING, ring, job->ring);
	SAINA_PUT(a, SAINA_A_JOB_ELEM_TYPE, elem_type, job->elem);
	SAINA_PUT(a, SAINA_A_JOB_EXPONENT, exponent, job->exponent);
	saina_policy_show(&job->policy, &a->policy);
	SAINA_SET(a, SAINA_A_JOB_POLICY);
	if (token && job->token[0]) {
		memcpy(a->token, job->token, SAINA_TOKEN_LEN);
		SAINA_SET(a, SAINA_A_JOB_TOKEN);
	}
	SAINA_PUT(a, SAINA_A_JOB_HEARTBEAT_MS, heartbeat_ms, job->heartbeat_ms);
	SAINA_PUT(a, SAINA_A_JOB_DEAD_MS, dead_ms, job->dead_ms);
	SAINA_PUT(a, SAINA_A_JOB_SEGMENTS, segments, job->segments);
	SAINA_PUT(a, SAINA_A_JOB_GENERATION, generation, job->generation);
	SAINA_PUT(a, SAINA_A_JOB_MEMORY, memory, job->memory);
	SAINA_PUT(a, SAINA_A_JOB_ACTIVE, active, job->active);
	SAINA_PUT(a, SAINA_A_JOB_POLICY_SEQ, policy_seq, job->policy.seq);
	if (job->next.seq) {
		saina_policy_show(&job->next, &a->policy_next);
		SAINA_SET(a, SAINA_A_JOB_POLICY_NEXT);
		SAINA_PUT(a, SAINA_A_JOB_POLICY_NEXT_SEQ, policy_next_seq, job->next.seq);
		SAINA_PUT(a, SAINA_A_JOB_POLICY_FROM, policy_from, job->next_from);
		SAINA_PUT(a, SAINA_A_JOB_POLICY_ON, policy_on, job->next_on);
	}
	if (job->k_set)
		SAINA_PUT(a, SAINA_A_JOB_K_SET, k_set, job->k_set);
	if (job->controlled)
		SAINA_PUT(a, SAINA_A_JOB_CONTROLLER, controller, 1);
	SAINA_PUT(a, SAINA_A_JOB_BY_REFERENCE, by_reference, job->by_reference);
	if (job->elements_auto)
		SAINA_PUT(a, SAINA_A_JOB_ELEMENTS_AUTO, elements_auto, 1);
	saina_tree_show(job, a);
}

/**
 * saina_job_show_in_force() - the data path has adopted a policy
 * @seq: its number
 * @a: as saina_job_show() made it
 *
 * What was to come waits no more, even if the core has not noticed.
 */
void saina_job_show_in_force(__u32 seq, struct saina_job_attrs *a)
{
	SAINA_PUT(a, SAINA_A_JOB_POLICY_SEQ_ACTIVE, policy_seq_active, seq);
	if (!SAINA_HAS(a, SAINA_A_JOB_POLICY_NEXT) || a->policy_next_seq != seq)
		return;
	a->policy = a->policy_next;
	a->policy_seq = seq;
	a->has &= ~(1ull << SAINA_A_JOB_POLICY_NEXT | 1ull << SAINA_A_JOB_POLICY_NEXT_SEQ |
		    1ull << SAINA_A_JOB_POLICY_FROM | 1ull << SAINA_A_JOB_POLICY_ON);
}

/**
 * saina_worker_show() - attributes of a worker
 * @job: the job
 * @w: number of the worker
 * @secret: the reader may see what a message must carry to be taken for the worker's
 * @a: out
 */
void saina_worker_show(const struct saina_job *job, int w, int secret,
		       struct saina_worker_attrs *a)
{
	const struct saina_worker *wk = &job->worker[w];
	const struct saina_binding *b = &wk->bind;

	memset(a, 0, sizeof(*a));
	SAINA_PUT(a, SAINA_A_WORKER_JOB_ID, job_id, job->id);
	SAINA_PUT_TEXT(a, SAINA_A_WORKER_JOB_NAME, job_name, job->name);
	SAINA_PUT(a, SAINA_A_WORKER_ID, id, w);
	SAINA_PUT_TEXT(a, SAINA_A_WORKER_NAME, name, wk->name);
	SAINA_PUT(a, SAINA_A_WORKER_STATE, state, wk->state);
	if (job->policy.mode == SAINA_POLICY_CODED)
		SAINA_PUT(a, SAINA_A_WORKER_PART, part,
			  w % (job->workers / (job->policy.spread + 1)));
	if (!(b->flags & SAINA_BIND_BOUND))
		return;
	SAINA_PUT(a, SAINA_A_WORKER_IFINDEX, ifindex, b->ifindex);
	SAINA_PUT(a, SAINA_A_WORKER_IP, ip, b->ip);
	memcpy(a->mac, b->mac, sizeof(a->mac));
	SAINA_SET(a, SAINA_A_WORKER_MAC);
	SAINA_PUT(a, SAINA_A_WORKER_RELAY, relay, !!(b->flags & SAINA_BIND_RELAY));
	if (!secret)
		return;
	SAINA_PUT(a, SAINA_A_WORKER_UDP_PORT, udp_port, b->udp_port);
	SAINA_PUT(a, SAINA_A_WORKER_SESSION, session, b->session);
}

void saina_limits_show(const struct saina_core *c, int backend, struct saina_limits_attrs *a)
{
	struct saina_limits l;

	memset(a, 0, sizeof(*a));
	saina_core_limits_get(c, &l, &a->jobs_used, &a->memory_used);
	SAINA_SET(a, SAINA_A_LIMITS_JOBS_USED);
	SAINA_SET(a, SAINA_A_LIMITS_MEMORY_USED);
	SAINA_PUT(a, SAINA_A_LIMITS_JOBS, jobs, l.jobs);
	SAINA_PUT(a, SAINA_A_LIMITS_MEMORY_JOB, memory_job, l.memory_job);
	SAINA_PUT(a, SAINA_A_LIMITS_MEMORY, memory, l.memory);
	SAINA_PUT(a, SAINA_A_LIMITS_BACKEND, backend, backend);
}

void saina_event_show(const struct saina_event *ev, const char *job, struct saina_event_attrs *a)
{
	memset(a, 0, sizeof(*a));
	SAINA_PUT(a, SAINA_A_EVENT_TYPE, type, ev->type);
	SAINA_PUT(a, SAINA_A_EVENT_TIME, time, ev->time);
	SAINA_PUT(a, SAINA_A_EVENT_A, a, ev->a);
	SAINA_PUT(a, SAINA_A_EVENT_B, b, ev->b);
	if (ev->worker != 0xff)
		SAINA_PUT(a, SAINA_A_EVENT_WORKER, worker, ev->worker);
	if (ev->type == SAINA_EV_PORT)
		return;
	SAINA_PUT(a, SAINA_A_EVENT_JOB_ID, job_id, ev->job);
	if (job)
		SAINA_PUT_TEXT(a, SAINA_A_EVENT_JOB_NAME, job_name, job);
	SAINA_PUT(a, SAINA_A_EVENT_ROUND, round, ev->round);
	SAINA_PUT(a, SAINA_A_EVENT_K, k, ev->k);
}

void saina_limits_merge(struct saina_limits *limits, const struct saina_limits_attrs *a)
{
	if (SAINA_HAS(a, SAINA_A_LIMITS_JOBS))
		limits->jobs = a->jobs;
	if (SAINA_HAS(a, SAINA_A_LIMITS_MEMORY_JOB))
		limits->memory_job = a->memory_job;
	if (SAINA_HAS(a, SAINA_A_LIMITS_MEMORY))
		limits->memory = a->memory;
}
