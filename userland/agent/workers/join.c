// SPDX-License-Identifier: GPL-2.0-or-later
/* JOIN: who gets in, and in which place. */
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "agent/bridge/bridge.h"
#include "agent/kernel/plane.h"
#include "agent/workers/internal.h"

#define COME_BACK_NS 2000000000ull	/* a JOIN is repeated for 5 s */

static bool token_equal(const __u8 *x, const __u8 *y)
{
	volatile __u8 diff = 0; /* as long for a wrong first byte as for a wrong last */
	int i;

	for (i = 0; i < SAINA_TOKEN_LEN; i++)
		diff |= x[i] ^ y[i];
	return !diff;
}

static void clean_name(const char *from, char *to)
{
	int i;

	for (i = 0; i < SAINA_NAME_LEN - 1 && from[i]; i++)
		to[i] = isprint((unsigned char)from[i]) ? from[i] : '?';
	to[i] = 0;
}

/* The place a JOIN asks for: a number, or -1 and the sentence was sent. */
static int find_place(struct agent *a, const struct from *from, const struct saina_hdr *h,
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
				if (job->worker[w].state == order[i])
					return w;
		message_refuse(a, from, h, nonce, SAINA_REFUSE_FULL,
		       "job %s is full: all its %u workers are alive", job->name, job->workers);
		return -1;
	}
	if (h->worker >= job->workers) {
		message_refuse(a, from, h, nonce, SAINA_REFUSE_FULL,
		       "job %s has the workers 0..%u: there is no %u", job->name, job->workers - 1,
		       h->worker);
		return -1;
	}
	if (jobs_alive(job, h->worker)) {
		aux = jobs_worker(a, job, h->worker);
		message_refuse(a, from, h, nonce, SAINA_REFUSE_TAKEN,
		       "worker %u of job %s is alive (%s, heard %llu ms ago): use another number, or wait until it has been silent for %u ms",
		       h->worker, job->name, job->worker[h->worker].name,
		       (unsigned long long)((loop_now() - aux->heard) / NSEC_PER_MSEC),
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

/* The port of ours the JOIN came in by. */
static bool find_port(struct agent *a, const struct from *from, const struct saina_hdr *h,
		      uint64_t nonce, struct saina_place *place)
{
	const struct port *p;

	if (saina_dp_join_src_pop(a->dp, from->addr.sin_addr.s_addr, from->addr.sin_port, nonce,
				  place)) {
		message_refuse(a, from, h, nonce, SAINA_REFUSE_PORT,
		       "you did not come in by an attached port of bridge %s: see `saina port show` there",
		       a->cfg.bridge);
		return false;
	}
	p = ports_find(a, place->ifindex, NULL);
	if (!p || p->mode == SAINA_PORT_MODE_NONE) {
		message_refuse(a, from, h, nonce, SAINA_REFUSE_PORT,
		       "your port is not (any more) an attached port of bridge %s: see `saina port show` there",
		       a->cfg.bridge);
		return false;
	}
	return true;
}

static int refusal_of(int error, const struct saina_core_err *err)
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

/* Has the present round counted on this worker, and may it have something to come? */
static bool waits_for(const struct saina_job *job, const struct saina_job_rt *rt, int w)
{
	return rt->next_round > job->first_round && rt->members & 1ull << w &&
	       rt->segs_done < job->segments;
}

/*
 * Where a worker that comes to a running job begins.  Read after it has
 * become active: a round that opens from now on waits for it.  So does the
 * present one if it counts on an earlier life of this worker.
 */
static uint32_t first_round_of(struct agent *a, const struct saina_job *job, int w)
{
	struct saina_job_rt rt;

	if (saina_dp_job_rt(a->dp, job->id, &rt) || rt.generation != job->generation)
		return job->first_round;
	return waits_for(job, &rt, w) ? rt.next_round - 1 : rt.next_round;
}

/*
 * Is it too early for a worker that has left, or died, to come back?  The present round may have all it
 * had to give: it would take the sums of then for those of what it gives now.  Where all are
 * started anew the first is back before the last has gone: when that has, the job forms
 * again; where the others go on, the next round opens.
 */
static bool too_early(struct agent *a, const struct saina_job *job, int w)
{
	uint64_t ended = jobs_worker(a, job, w)->ended;
	struct saina_job_rt rt;

	return job->state == SAINA_JOB_RUNNING && !jobs_alive(job, w) && ended &&
	       loop_now() - ended < COME_BACK_NS && !saina_dp_job_rt(a->dp, job->id, &rt) &&
	       rt.generation == job->generation && waits_for(job, &rt, w);
}

static void admit_worker(struct agent *a, const struct from *from, const struct saina_hdr *h,
			 const struct saina_join *join, const struct saina_job *job, int w)
{
	struct saina_worker_attrs req = {
		.has = 1ull << SAINA_A_WORKER_JOB_ID | 1ull << SAINA_A_WORKER_ID |
		       1ull << SAINA_A_WORKER_NAME | 1ull << SAINA_A_WORKER_IFINDEX |
		       1ull << SAINA_A_WORKER_IP | 1ull << SAINA_A_WORKER_MAC |
		       1ull << SAINA_A_WORKER_UDP_PORT | 1ull << SAINA_A_WORKER_SESSION |
		       1ull << SAINA_A_WORKER_ROUND | 1ull << SAINA_A_WORKER_ELEMENTS,
		.job_id = job->id,
		.id = w,
		.session = random_session(job->worker[w].bind.session),
		.round = le32toh(join->round),
		.ip = from->addr.sin_addr.s_addr,
		.udp_port = from->addr.sin_port,
		.elements = le64toh(join->elements),
	};
	uint64_t nonce = le64toh(join->nonce);
	bool formed = job->state == SAINA_JOB_FORMING;
	struct worker_aux *aux, before;
	struct saina_place place;
	struct saina_core_err err;
	const struct port *p;
	int ret;

	if (!find_port(a, from, h, nonce, &place))
		return;
	req.ifindex = place.ifindex;
	memcpy(req.mac, place.mac, sizeof(req.mac));
	clean_name(join->name, req.name);

	aux = jobs_worker(a, job, w);
	numbers_read(a, job, w);
	before = *aux;
	*aux = (struct worker_aux){ .nonce = nonce, .heard = loop_now(), .formed = formed,
				    .ended = before.ended, .lent = before.lent,
				    .numbers = before.numbers };
	ret = plane_worker_set(a, &req, &job, &err);
	if (ret) {
		*aux = before;
		message_refuse(a, from, h, nonce, refusal_of(ret, &err), "%s", err.text);
		return;
	}
	aux->first_round = formed ? job->first_round : first_round_of(a, job, w);
	health_heard(a, job, w);
	p = ports_find(a, place.ifindex, NULL);
	log_info("job %s: worker %d (%s) joined from %s by port %s: %d of %u", job->name, w,
		 req.name, from->text, p ? p->name : "?", __builtin_popcountll(job->active),
		 job->workers);
	/* a crash from here on must not forget whom we welcomed */
	jobs_commit(a);
	message_welcome(a, &from->addr, job, w);
}

/* The job a JOIN asks for, by number or name; or NULL and the sentence was sent. */
static const struct saina_job *find_job(struct agent *a, const struct from *from,
					const struct saina_hdr *h, const struct saina_join *join)
{
	const struct saina_join_named *by = (const void *)join;
	const struct saina_job *job;
	char name[SAINA_NAME_LEN];

	if (!(h->flags & SAINA_F_NAMED)) {
		job = saina_core_job_find(a->jobs->core, 1, le16toh(h->job), NULL, NULL);
		if (!job)
			message_refuse(a, from, h, le64toh(join->nonce), SAINA_REFUSE_NO_JOB,
				       "there is no job %u here: `saina job show` lists them",
				       le16toh(h->job));
		return job;
	}
	clean_name(by->job, name);
	job = saina_core_job_find(a->jobs->core, 0, 0, name, NULL);
	if (!job)
		message_refuse(a, from, h, le64toh(join->nonce), SAINA_REFUSE_NO_JOB,
			       "there is no job \"%s\" here: `saina job show` lists them", name);
	return job;
}

void join(struct agent *a, const struct from *from, const struct saina_hdr *h,
		 const struct saina_join *join)
{
	uint64_t nonce = le64toh(join->nonce);
	const struct saina_job *job;
	int w;

	job = find_job(a, from, h, join);
	if (!job)
		return;
	if (!token_equal(join->token, job->token)) {
		message_refuse(a, from, h, nonce, SAINA_REFUSE_TOKEN, "that is not the token of job %u",
		       job->id);
		return;
	}
	/* the same JOIN again: its answer was lost, or the worker wants to know
	 * where the job begins now that it runs */
	for (w = 0; w < job->workers; w++) {
		if (!jobs_alive(job, w) || jobs_worker(a, job, w)->nonce != nonce ||
		    job->worker[w].bind.ip != from->addr.sin_addr.s_addr ||
		    job->worker[w].bind.udp_port != from->addr.sin_port)
			continue;
		health_heard(a, job, w);
		message_welcome(a, &from->addr, job, w);
		return;
	}
	if (job->state == SAINA_JOB_STOPPED) {
		message_refuse(a, from, h, nonce, SAINA_REFUSE_STOPPED, "job %s is stopped by its operator",
		       job->name);
		return;
	}
	w = find_place(a, from, h, nonce, job);
	/* it asks again */
	if (w >= 0 && !too_early(a, job, w))
		admit_worker(a, from, h, join, job, w);
}
