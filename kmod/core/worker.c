// SPDX-License-Identifier: GPL-2.0
/*
 * Workers of a job: admission, changes, notifications.
 */
#include "core/os.h"
#include "core/internal.h"

void saina_worker_announce(struct saina_core *c, const struct saina_job *job, int w, int old)
{
	int now = job->worker[w].state;
	int was_alive = old == SAINA_WORKER_STATE_ALIVE || old == SAINA_WORKER_STATE_SLOW;

	if (!was_alive && saina_worker_alive(&job->worker[w]))
		saina_core_event(c, job, SAINA_EV_WORKER_JOINED, w, 0, 0);
	else if (was_alive && now == SAINA_WORKER_STATE_DEAD)
		saina_core_event(c, job, SAINA_EV_WORKER_DEAD, w, 0, 0);
	else if (was_alive && (now == SAINA_WORKER_STATE_LEFT || now == SAINA_WORKER_STATE_ABSENT))
		saina_core_event(c, job, SAINA_EV_WORKER_LEFT, w, 0, 0);
}

#define WORKER_BINDING                                                                             \
	(1ull << SAINA_A_WORKER_IFINDEX | 1ull << SAINA_A_WORKER_IP | 1ull << SAINA_A_WORKER_MAC | \
	 1ull << SAINA_A_WORKER_UDP_PORT | 1ull << SAINA_A_WORKER_SESSION)

static int worker_find(const struct saina_core *c, const struct saina_worker_attrs *req,
		       const struct saina_job **job, struct saina_core_err *err)
{
	int has_id = SAINA_HAS(req, SAINA_A_WORKER_JOB_ID) != 0;
	int has_name = SAINA_HAS(req, SAINA_A_WORKER_JOB_NAME) != 0;

	*job = saina_core_job_find(c, has_id, req->job_id, has_name ? req->job_name : NULL, err);
	if (!*job) {
		if (err)
			err->attr = has_id && err->attr == SAINA_A_JOB_ID ? SAINA_A_WORKER_JOB_ID
									  : SAINA_A_WORKER_JOB_NAME;
		return has_id || has_name ? -ENOENT : -EINVAL;
	}
	if (!SAINA_HAS(req, SAINA_A_WORKER_ID))
		return saina_refuse(err, -EINVAL, SAINA_A_WORKER_ID, "say which worker: 0..%u",
				    (*job)->workers - 1);
	if (req->id >= saina_job_places(*job))
		return saina_refuse(err, -ERANGE, SAINA_A_WORKER_ID,
				    "worker %u: job %s has the workers 0..%u", req->id,
				    (*job)->name, (*job)->workers - 1);
	return 0;
}

#define RELAY_SENTENCE "relay: must be 0 or 1"

static int relay_bad(const struct saina_worker_attrs *req)
{
	return SAINA_HAS(req, SAINA_A_WORKER_RELAY) && req->relay > 1;
}

/* The attribute of a whole binding that nobody can have, 0 if it is good. */
static int binding_bad(const struct saina_worker_attrs *req)
{
	static const __u8 zero[sizeof(req->mac)];

	if (!req->ifindex)
		return SAINA_A_WORKER_IFINDEX;
	if (!req->ip)
		return SAINA_A_WORKER_IP;
	if ((req->mac[0] & 1) || !memcmp(req->mac, zero, sizeof(zero)))
		return SAINA_A_WORKER_MAC;
	if (!req->udp_port)
		return SAINA_A_WORKER_UDP_PORT;
	if (!req->session)
		return SAINA_A_WORKER_SESSION;
	return 0;
}

/*
 * Has the worker as many elements as the job?  Who joins while nobody else is alive may say how
 * many those are, if the operator allows it.
 */
static int worker_size(struct saina_core *c, struct saina_job *job,
		       const struct saina_worker_attrs *req, struct saina_core_err *err)
{
	__u64 has = job->memory, elements = job->elements;
	int ret;

	if (SAINA_HAS(req, SAINA_A_WORKER_ELEMENTS) && req->elements)
		elements = req->elements;
	if (!elements)
		return saina_refuse(err, -EINVAL, SAINA_A_WORKER_ELEMENTS,
				    "job %s takes its size from the first worker that joins: worker %u "
				    "must say how many elements it has",
				    job->name, req->id);
	if (elements == job->elements || (elements < job->elements && !job->elements_auto))
		return 0;
	if (!job->elements_auto || job->active)
		return saina_refuse(err, -EMSGSIZE, SAINA_A_WORKER_ELEMENTS,
				    "job %s has %llu elements%s; worker %u asks for %llu",
				    job->name, (unsigned long long)job->elements,
				    job->elements_auto ? ", as its first worker said" : "", req->id,
				    (unsigned long long)elements);
	ret = saina_job_size(job, elements, SAINA_A_WORKER_ELEMENTS, err);
	if (!ret) {
		saina_job_fit(c, job, has);
		ret = saina_job_room(c, job, has, SAINA_A_WORKER_ELEMENTS, err);
	}
	if (!ret)
		saina_job_restart(c, job, 0);
	return ret;
}

/* The process of the live worker, which must join again because its link was replaced? */
static int is_same_socket(const struct saina_worker *wk, const struct saina_worker_attrs *req)
{
	return wk->bind.ip == req->ip && wk->bind.udp_port == req->udp_port &&
	       wk->bind.session != req->session;
}

/* Takes a worker in: a whole binding, for a place that is free. */
static int worker_admit(struct saina_core *c, struct saina_job *job,
			const struct saina_worker_attrs *req, struct saina_core_err *err)
{
	struct saina_worker *wk = &job->worker[req->id];
	__u64 missing = WORKER_BINDING & ~req->has;
	__u32 round = SAINA_HAS(req, SAINA_A_WORKER_ROUND) ? req->round : 0;
	int attr, w, ret;

	if (missing) {
		for (attr = 0; !(missing & 1ull << attr); attr++)
			;
		return saina_refuse(err, -EINVAL, attr,
				    "worker %u: interface, IP, MAC, UDP port and session belong "
				    "together; one is missing",
				    req->id);
	}
	/*
	 * A node's new relay goes on where the old one was (the control plane knows it by its
	 * incarnation).  Inactive in between, slots that wait for it would complete without it.
	 */
	if (saina_worker_alive(wk) && !is_same_socket(wk, req) && !job->weight[0])
		return saina_refuse(err, -EEXIST, SAINA_A_WORKER_ID,
				    "worker %u of job %s is alive already", req->id, job->name);
	if (job->state == SAINA_JOB_STOPPED)
		return saina_refuse(
			err, -ESHUTDOWN, SAINA_A_WORKER_JOB_NAME,
			"job %s is stopped: no worker can join until its operator runs `saina job set %s state forming`",
			job->name, job->name);
	if (SAINA_HAS(req, SAINA_A_WORKER_STATE) && req->state != SAINA_WORKER_STATE_ALIVE)
		return saina_refuse(err, -EINVAL, SAINA_A_WORKER_STATE,
				    "worker %u: state: must be alive (1) for a worker that joins",
				    req->id);
	if (round > SAINA_ROUND_MAX)
		return saina_refuse(err, -ERANGE, SAINA_A_WORKER_ROUND,
				    "worker %u: a job has no round %u: must be 0..%u", req->id,
				    round, SAINA_ROUND_MAX);
	attr = binding_bad(req);
	if (attr)
		return saina_refuse(
			err, -EINVAL, attr,
			"worker %u: interface, IP, MAC, UDP port and session must not be 0, and the MAC must be unicast",
			req->id);
	if (relay_bad(req))
		return saina_refuse(err, -ERANGE, SAINA_A_WORKER_RELAY, RELAY_SENTENCE);
	for (w = 0; w < saina_job_places(job); w++)
		if (w != req->id && saina_worker_alive(&job->worker[w]) &&
		    job->worker[w].bind.ip == req->ip &&
		    job->worker[w].bind.udp_port == req->udp_port)
			return saina_refuse(
				err, -EADDRINUSE, SAINA_A_WORKER_UDP_PORT,
				"worker %u: worker %d of job %s has that IP and UDP port", req->id,
				w, job->name);

	ret = worker_size(c, job, req, err);
	if (ret)
		return ret;
	memset(wk, 0, sizeof(*wk));
	memcpy(wk->name, req->name, sizeof(wk->name) - 1);
	wk->state = SAINA_WORKER_STATE_ALIVE;
	wk->bind.ifindex = req->ifindex;
	wk->bind.ip = req->ip;
	wk->bind.udp_port = req->udp_port;
	wk->bind.session = req->session;
	memcpy(wk->bind.mac, req->mac, sizeof(wk->bind.mac));
	wk->bind.flags = SAINA_BIND_BOUND;
	if (SAINA_HAS(req, SAINA_A_WORKER_RELAY) && req->relay)
		wk->bind.flags |= SAINA_BIND_RELAY;
	if (job->state == SAINA_JOB_FORMING)
		wk->round = round;
	return 0;
}

/* Nothing but how many gradients of a worker came late? */
static int is_late_report(const struct saina_worker_attrs *req)
{
	return req->has == (req->has & (1ull << SAINA_A_WORKER_JOB_ID |
					1ull << SAINA_A_WORKER_JOB_NAME |
					1ull << SAINA_A_WORKER_ID | 1ull << SAINA_A_WORKER_LATE)) &&
	       SAINA_HAS(req, SAINA_A_WORKER_LATE);
}

static int worker_report_late(struct saina_core *c, const struct saina_job *job,
			      const struct saina_worker_attrs *req, struct saina_core_err *err)
{
	if (!saina_worker_alive(&job->worker[req->id]))
		return saina_refuse(err, -ENOTCONN, SAINA_A_WORKER_ID,
				    "worker %u of job %s is not alive, so it cannot be late",
				    req->id, job->name);
	saina_core_event(c, job, SAINA_EV_WORKER_LATE, req->id, req->late, 0);
	return 0;
}

static int worker_change(struct saina_job *job, const struct saina_worker_attrs *req,
			 struct saina_core_err *err)
{
	struct saina_worker *wk = &job->worker[req->id];

	if (SAINA_HAS(req, SAINA_A_WORKER_ROUND))
		return saina_refuse(
			err, -EINVAL, SAINA_A_WORKER_ROUND,
			"worker %u: round: only a worker that joins can name its first round",
			req->id);
	if (SAINA_HAS(req, SAINA_A_WORKER_STATE)) {
		if (req->state == SAINA_WORKER_STATE_ABSENT || req->state > SAINA_WORKER_STATE_LEFT)
			return saina_refuse(
				err, -EINVAL, SAINA_A_WORKER_STATE,
				"state: %u: alive (1), slow (2), dead (3) and left (4) are allowed",
				req->state);
		if (!saina_worker_alive(wk))
			return saina_refuse(err, -ENOTCONN, SAINA_A_WORKER_ID,
					    "worker %u of job %s is not alive: it must join again",
					    req->id, job->name);
		wk->state = req->state;
	} else if (!saina_worker_alive(wk)) {
		return saina_refuse(err, -ENOTCONN, SAINA_A_WORKER_ID,
				    "worker %u of job %s is not alive", req->id, job->name);
	}
	if (SAINA_HAS(req, SAINA_A_WORKER_RELAY)) {
		if (relay_bad(req))
			return saina_refuse(err, -ERANGE, SAINA_A_WORKER_RELAY, RELAY_SENTENCE);
		wk->bind.flags &= ~SAINA_BIND_RELAY;
		if (req->relay)
			wk->bind.flags |= SAINA_BIND_RELAY;
	}
	if (SAINA_HAS(req, SAINA_A_WORKER_NAME)) {
		memset(wk->name, 0, sizeof(wk->name));
		memcpy(wk->name, req->name, sizeof(wk->name) - 1);
	}
	return 0;
}

/* Commits c->t->next, in which worker @w has changed. */
static int worker_commit(struct saina_core *c, const struct saina_job *found, int w, int cmd,
			 const struct saina_job **out, struct saina_core_err *err)
{
	struct saina_job *job = c->t->job[found->id];
	int ret, state = job->state, old = job->worker[w].state;
	__u64 active = job->active, relay = job->relay;

	ret = saina_job_commit(c, job, err);
	if (ret)
		return ret;
	c->memory += c->t->next.memory - job->memory;
	*job = c->t->next;
	if (out)
		*out = job;
	saina_worker_announce(c, job, w, old);
	saina_core_notify(c, cmd, job, w);
	if (job->state != state || job->active != active || job->relay != relay)
		saina_job_announce(c, job, state);
	return 0;
}

/**
 * saina_core_worker_set() - admit a worker, or change one that is there
 * @c: core
 * @req: job and ID; with a whole binding (IFINDEX, IP, MAC, UDP_PORT, SESSION)
 *	the worker is admitted, alive and active from now on (a live one only again, from its IP
 *	and UDP port, with another session, unless the job has weights); else STATE, RELAY
 *	and NAME may change.  ROUND: what the worker would send first.  ELEMENTS: of its
 *	gradient.  LATE changes nothing and makes an event
 * @out: the job; may be NULL
 * @err: out on failure; may be NULL
 *
 * Return: 0, -ENOENT (job), -ERANGE (worker, round, relay, elements), -EEXIST (alive already),
 * -EADDRINUSE, -ESHUTDOWN (job stopped), -ENOTCONN (not alive), -EMSGSIZE (other elements
 * than the job), -EDQUOT (a limit), -EINVAL, or what publish returned
 */
int saina_core_worker_set(struct saina_core *c, const struct saina_worker_attrs *req,
			  const struct saina_job **out, struct saina_core_err *err)
{
	const struct saina_job *found;
	int ret;

	ret = worker_find(c, req, &found, err);
	if (!ret && SAINA_HAS(req, SAINA_A_WORKER_NAME))
		ret = saina_text_check(req->name, SAINA_A_WORKER_NAME, "name", err);
	if (ret)
		return ret;
	if (is_late_report(req)) {
		if (out)
			*out = found;
		return worker_report_late(c, found, req, err);
	}
	if (SAINA_HAS(req, SAINA_A_WORKER_LATE))
		return saina_refuse(err, -EINVAL, SAINA_A_WORKER_LATE,
				    "late: cannot be combined with other changes");
	c->t->next = *found;
	if (req->has & WORKER_BINDING)
		ret = worker_admit(c, &c->t->next, req, err);
	else
		ret = worker_change(&c->t->next, req, err);
	if (ret)
		return ret;
	return worker_commit(c, found, req->id, SAINA_CMD_WORKER_NTF, out, err);
}

/**
 * saina_core_worker_del() - forget a worker: its place is empty again
 * @c: core
 * @req: job and ID
 * @err: out on failure; may be NULL
 *
 * Return: 0, -ENOENT, -ERANGE, -EINVAL, or what publish returned
 */
int saina_core_worker_del(struct saina_core *c, const struct saina_worker_attrs *req,
			  struct saina_core_err *err)
{
	const struct saina_job *found;
	int ret;

	ret = worker_find(c, req, &found, err);
	if (ret)
		return ret;
	if (found->worker[req->id].state == SAINA_WORKER_STATE_ABSENT)
		return saina_refuse(err, -ENOENT, SAINA_A_WORKER_ID,
				    "job %s has no worker %u", found->name, req->id);
	c->t->next = *found;
	memset(&c->t->next.worker[req->id], 0, sizeof(c->t->next.worker[0]));
	return worker_commit(c, found, req->id, SAINA_CMD_WORKER_DEL_NTF, NULL, err);
}
