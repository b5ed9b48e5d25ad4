// SPDX-License-Identifier: GPL-2.0-or-later
/* JOIN: who is admitted, as which worker. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "agent/ports/ports.h"
#include "agent/backend/backend.h"
#include "agent/members/internal.h"
#include "ctl/obj.h"

#define REJOIN_HOLD_NS 2000000000ull	/* below the 5 s that libsaina repeats a JOIN for */
#define SILENT_MS      1000		/* in addition to two heartbeats */

static bool token_equal(const __u8 *x, const __u8 *y)
{
	volatile __u8 diff = 0; /* constant time */
	int i;

	for (i = 0; i < SAINA_TOKEN_LEN; i++)
		diff |= x[i] ^ y[i];
	return !diff;
}

static void copy_name(char *to, const char *from)
{
	snprintf(to, SAINA_NAME_LEN, "%.*s", SAINA_NAME_LEN - 1, from);
	saina_ctl_sanitize(to);
}

/* Is this the live worker itself, whose link or MAC address was replaced (liveness.c)? */
static bool is_same_socket(const struct saina_job *job, int w, const struct sender *from)
{
	return job->worker[w].bind.ip == from->addr.sin_addr.s_addr &&
	       job->worker[w].bind.udp_port == from->addr.sin_port;
}

/* Is this the live node, whose relay was started again? */
static bool node_takes_over(const struct saina_job *job, const struct saina_hdr *h,
			    const struct sender *from)
{
	return h->flags & SAINA_F_NODE &&
	       job->worker[h->worker].bind.ip == from->addr.sin_addr.s_addr;
}

/* Return: number of the worker that a JOIN gets, or -1 after sending a refusal. */
static int choose_worker(struct agent *a, const struct sender *from, const struct saina_hdr *h,
			 uint64_t nonce, const struct saina_job *job)
{
	static const int order[] = { SAINA_WORKER_STATE_ABSENT, SAINA_WORKER_STATE_LEFT,
				     SAINA_WORKER_STATE_DEAD };
	const struct worker_aux *aux;
	unsigned int i;
	int w;

	if (h->worker == SAINA_WORKER_ANY) {
		for (i = 0; i < sizeof(order) / sizeof(order[0]); i++)
			for (w = 0; w < job->workers; w++)
				if (job->worker[w].state == order[i] && node_place_is_any(job, w))
					return w;
		reply_refuse(a, from, h, nonce, SAINA_REFUSE_FULL,
			     "job %s is full: all its %u workers are alive", job->name,
			     job->workers);
		return -1;
	}
	if (h->worker >= saina_job_places(job)) {
		reply_refuse(a, from, h, nonce, SAINA_REFUSE_FULL,
			     "job %s has the workers 0..%u: there is no %u", job->name,
			     job->workers - 1, h->worker);
		return -1;
	}
	if (jobs_alive(job, h->worker) && !is_same_socket(job, h->worker, from) &&
	    !node_takes_over(job, h, from)) {
		aux = jobs_worker(a, job, h->worker);
		reply_refuse(
			a, from, h, nonce, SAINA_REFUSE_TAKEN,
			"worker %u of job %s is alive (%s, heard %llu ms ago): use another number, or wait until it has been silent for %u ms",
			h->worker, job->name, job->worker[h->worker].name,
			(unsigned long long)((loop_now() - aux->last_heard) / NSEC_PER_MSEC),
			job->dead_ms);
		return -1;
	}
	return h->worker;
}

static uint64_t random_session(uint64_t last)
{
	uint64_t session = 0;

	while (!session || session == last)
		if (getrandom(&session, sizeof(session), 0) != sizeof(session))
			session = loop_now();
	return session;
}

/* Finds the port and MAC that the JOIN came from, or sends a refusal. */
static bool find_port(struct agent *a, const struct sender *from, const struct saina_hdr *h,
		      uint64_t nonce, struct saina_place *place)
{
	const struct port *p;

	if (saina_dp_join_src_pop(a->dp, from->addr.sin_addr.s_addr, from->addr.sin_port, nonce,
				  place)) {
		reply_refuse(
			a, from, h, nonce, SAINA_REFUSE_PORT,
			"the JOIN did not arrive by an attached port of bridge %s: see `saina port show` on the bridge's host",
			a->cfg.bridge);
		return false;
	}
	p = ports_find(a, place->ifindex, NULL);
	if (!p || p->mode == SAINA_PORT_MODE_NONE) {
		reply_refuse(
			a, from, h, nonce, SAINA_REFUSE_PORT,
			"the worker's port is no longer an attached port of bridge %s: see `saina port show` on the bridge's host",
			a->cfg.bridge);
		return false;
	}
	return true;
}

static int refusal_reason(int error, const struct saina_core_err *err)
{
	if (err->attr == SAINA_A_WORKER_ELEMENTS)
		return SAINA_REFUSE_ELEMENTS;
	switch (error) {
	case -EEXIST:
	case -EADDRINUSE:
		return SAINA_REFUSE_TAKEN;
	case -ESHUTDOWN:
		return SAINA_REFUSE_STOPPED;
	case -EINVAL:
	case -ERANGE:
		return SAINA_REFUSE_MALFORMED;
	default:
		return SAINA_REFUSE_FULL;
	}
}

/*
 * The first round of a worker that joins a running job.  It is active already, so rounds that
 * open from now on wait for it.  The present round does, too, if it counts on an earlier session
 * of this worker.
 */
static uint32_t choose_first_round(struct agent *a, const struct saina_job *job, int w)
{
	struct saina_job_rt rt;

	if (!jobs_rt(a, job, &rt))
		return job->first_round;
	return round_needs(job, &rt, w) ? rt.next_round - 1 : rt.next_round;
}

/* Return: milliseconds for which nothing has been heard of any of @workers, or 0 if one of them
 * lives. */
static uint64_t silent_ms(struct agent *a, const struct saina_job *job, uint64_t workers)
{
	uint64_t now = loop_now(), least = UINT64_MAX;

	for (; workers; workers &= workers - 1) {
		const struct worker_aux *aux = jobs_worker(a, job, __builtin_ctzll(workers));
		uint64_t ms = (now - aux->last_heard) / NSEC_PER_MSEC;

		if (ms < least)
			least = ms;
	}
	return least != UINT64_MAX && least > SILENT_MS + 2ull * job->heartbeat_ms ? least : 0;
}

/*
 * Must a worker that has left or died wait before it rejoins?  Its old contribution may already
 * be counted in the present round; a quick rejoin would mix old sums with new ones.  The wait
 * ends when the others open the next round.
 *
 * If all workers are being restarted, it ends when the last has gone and the job forms again.
 * They are if nothing is heard of the others: a worker that was stopped a moment before them is
 * dead before them, and would complete a round whose other contributions are of processes that
 * have ended.
 */
static bool rejoin_is_early(struct agent *a, const struct sender *from, const struct saina_hdr *h,
			    uint64_t nonce, const struct saina_job *job, int w)
{
	uint64_t ended = jobs_worker(a, job, w)->ended_at, silent;
	struct saina_job_rt rt;

	if (job->state != SAINA_JOB_RUNNING || jobs_alive(job, w) || !ended ||
	    !jobs_rt(a, job, &rt) || !round_needs(job, &rt, w))
		return false;
	/* without a reply the worker repeats its JOIN */
	if (loop_now() - ended < REJOIN_HOLD_NS)
		return true;
	silent = silent_ms(a, job, rt.members & job->active);
	if (!silent)
		return false;
	reply_refuse(
		a, from, h, nonce, SAINA_REFUSE_TAKEN,
		"round %u has an earlier session of worker %d; its other workers have been silent for %llu ms: join again when one is heard or all are dead (%u ms)",
		rt.next_round - 1, w, (unsigned long long)silent, job->dead_ms);
	return true;
}

/*
 * Elements that the worker needs the job to have, where the first worker decides: each array begins
 * at a segment.
 */
static uint64_t join_elements(const struct saina_job *job, const struct saina_join *join)
{
	uint64_t each = SAINA_SEGMENT_ELEMS(job->elem, job->payload);
	uint64_t elements = le64toh(join->elements), arrays = le16toh(join->arrays);
	uint64_t own = (uint64_t)le16toh(join->per_worker) * job->workers;

	/* the core refuses more than 2^32 */
	if (!job->elements_auto || !arrays || !elements || elements >> 32)
		return elements;
	return ((elements + arrays * (each - 1)) / each + (own + each - 1) / each) * each;
}

static void admit_at(struct agent *a, const struct join *j, const struct saina_job *job, int w,
		     const struct saina_place *place)
{
	const struct saina_join *join = j->body;
	const struct sender *from = j->from;
	const struct saina_hdr *h = j->h;
	struct saina_worker_attrs req = {
		.has = 1ull << SAINA_A_WORKER_JOB_ID | 1ull << SAINA_A_WORKER_ID |
		       1ull << SAINA_A_WORKER_NAME | 1ull << SAINA_A_WORKER_IFINDEX |
		       1ull << SAINA_A_WORKER_IP | 1ull << SAINA_A_WORKER_MAC |
		       1ull << SAINA_A_WORKER_UDP_PORT | 1ull << SAINA_A_WORKER_SESSION |
		       1ull << SAINA_A_WORKER_ROUND | 1ull << SAINA_A_WORKER_ELEMENTS,
		.job_id = job->id,
		.id = w,
		.session = random_session(job->worker[w].bind.session),
		.round = node_first_round(a, job, le32toh(join->round)),
		.ip = from->addr.sin_addr.s_addr,
		.udp_port = from->addr.sin_port,
		.elements = join_elements(job, join),
	};
	uint64_t nonce = le64toh(join->nonce);
	bool formed = job->state == SAINA_JOB_FORMING;
	struct worker_aux *aux, old;
	struct saina_core_err err;
	const struct port *p;
	int ret;

	req.ifindex = place->ifindex;
	memcpy(req.mac, place->mac, sizeof(req.mac));
	copy_name(req.name, join->name);

	aux = jobs_worker(a, job, w);
	numerics_read(a, job, w);
	old = *aux;
	*aux = (struct worker_aux){ .nonce = nonce,
				    .last_heard = loop_now(),
				    .formed = formed,
				    .ended_at = old.ended_at,
				    .shm_session = old.shm_session,
				    .incarnation = node_incarnation(a, j, job, w),
				    .late_total = old.late_total,
				    .numerics = old.numerics };
	ret = backend_worker_set(a, &req, &job, &err);
	if (ret) {
		*aux = old;
		reply_refuse(a, from, h, nonce, refusal_reason(ret, &err), "%s", err.text);
		return;
	}
	aux->first_round = formed ? job->first_round : choose_first_round(a, job, w);
	liveness_heard(a, job, w);
	p = ports_find(a, place->ifindex, NULL);
	log_info("job %s: worker %d (%s) joined from %s by port %s: %d of %u", job->name, w,
		 req.name, from->text, p ? p->name : "?", __builtin_popcountll(job->active),
		 job->workers);
	/* a restart after a crash must know whoever has got a WELCOME */
	jobs_commit(a);
	reply_welcome(a, &from->addr, job, w, h->flags & SAINA_F_TREE);
}

static void admit_worker(struct agent *a, const struct join *j, const struct saina_job *job, int w)
{
	uint64_t nonce = le64toh(j->body->nonce);
	struct saina_place place;

	if (!find_port(a, j->from, j->h, nonce, &place) ||
	    !node_port_fits(a, j, job, w, place.ifindex))
		return;
	/* while its port is on the bridge, nobody takes it over from another */
	if (jobs_alive(job, w) && worker_port(a, job, w) &&
	    job->worker[w].bind.ifindex != place.ifindex) {
		reply_refuse(a, j->from, j->h, nonce, SAINA_REFUSE_TAKEN,
			     "worker %d of job %s is alive behind port %s: use another number", w,
			     job->name, worker_port_name(a, job, w));
		return;
	}
	job = node_comes_back(a, j, job, w);
	if (job)
		admit_at(a, j, job, w, &place);
}

/* Return: the job that a JOIN names by number or name, or NULL after sending a refusal. */
static const struct saina_job *find_job(struct agent *a, const struct sender *from,
					const struct saina_hdr *h, const struct saina_join *join)
{
	const struct saina_join_named *by = (const void *)join;
	bool named = h->flags & SAINA_F_NAMED;
	unsigned int id = le16toh(h->job);
	const struct saina_job *job;
	char name[SAINA_NAME_LEN] = "";

	if (named)
		copy_name(name, by->job);
	job = saina_core_job_find(a->jobs->core, !named, id, name, NULL);
	if (job)
		return job;
	if (backend_detached_find(a, !named, id, name))
		reply_refuse(a, from, h, le64toh(join->nonce), SAINA_REFUSE_STOPPED,
			     "the job is stopped, because it has no data path: `saina job show` on the bridge's host says why");
	else if (named)
		reply_refuse(a, from, h, le64toh(join->nonce), SAINA_REFUSE_NO_JOB,
			     "there is no job \"%s\" here: `saina job show` lists the jobs", name);
	else
		reply_refuse(a, from, h, le64toh(join->nonce), SAINA_REFUSE_NO_JOB,
			     "there is no job %u here: `saina job show` lists the jobs", id);
	return NULL;
}

void admit_join(struct agent *a, const struct sender *from, const struct saina_hdr *h,
		const struct saina_join *join)
{
	struct saina_hdr own = *h;	/* with the job's number of the worker */
	const struct join j = { from, &own, join };
	uint64_t nonce = le64toh(join->nonce);
	const struct saina_job *job;
	int w;

	job = find_job(a, from, h, join);
	if (!job)
		return;
	if (!token_equal(join->token, job->token)) {
		reply_refuse(a, from, h, nonce, SAINA_REFUSE_TOKEN,
			     "that is not the token of job %u: `saina job show %u tokens` prints it, as root on the bridge's host",
			     job->id, job->id);
		return;
	}
	/* a repeated JOIN: the reply was lost, or the worker asks for the first round now that
	 * the job runs */
	for (w = 0; w < saina_job_places(job); w++) {
		if (!jobs_alive(job, w) || jobs_worker(a, job, w)->nonce != nonce ||
		    job->worker[w].bind.ip != from->addr.sin_addr.s_addr ||
		    job->worker[w].bind.udp_port != from->addr.sin_port)
			continue;
		liveness_heard(a, job, w);
		reply_welcome(a, &from->addr, job, w, h->flags & SAINA_F_TREE);
		return;
	}
	if (job->state == SAINA_JOB_STOPPED) {
		reply_refuse(a, from, h, nonce, SAINA_REFUSE_STOPPED,
			     "job %s is stopped by its operator", job->name);
		return;
	}
	if (own.aux) {
		own.worker = SAINA_WORKER_ANY;
		w = node_worker_of_rank(a, &j, job);
		if (w < 0)
			return;
		own.worker = w;
	}
	w = choose_worker(a, from, &own, nonce, job);
	/* last, as it has the parent's rounds wait for this job */
	if (w >= 0 && node_place_fits(a, &j, job, w) &&
	    (node_is_same(a, &j, job, w) || !rejoin_is_early(a, from, h, nonce, job, w)) &&
	    node_job_admits(a, &j, job))
		admit_worker(a, &j, job, w);
}
