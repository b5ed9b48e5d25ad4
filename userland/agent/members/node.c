// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * JOIN in a tree.  A job with weights admits nodes, jobs of other hosts, as the workers that have one;
 * a job with an uplink admits its members once its parent has admitted it, and its own relay as the
 * worker behind the last.  A node's weight is at least its workers, so jobs form no loop.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "agent/backend/backend.h"
#include "agent/members/internal.h"

static bool is_tree(const struct saina_job *job)
{
	return job->weight[0] || saina_job_has_uplink(job);
}

static bool is_uplink(const struct saina_job *job, int w)
{
	return saina_job_has_uplink(job) && w == job->workers;
}

static const struct saina_join_node *node_of(const struct join *j)
{
	return j->h->flags & SAINA_F_NODE ? (const void *)j->body : NULL;
}

#define WAITS " is not admitted by its parent yet: "

#define REFUSE(reason, ...) \
	reply_refuse(a, j->from, j->h, le64toh(j->body->nonce), reason, __VA_ARGS__)

bool round_needs(const struct saina_job *job, const struct saina_job_rt *rt, int w)
{
	return rt->next_round > job->first_round && rt->members & 1ull << w &&
	       rt->segs_done < job->segments;
}

bool node_job_admits(struct agent *a, const struct join *j, const struct saina_job *job)
{
	struct job_place *p = &a->jobs->aux[job->id]->place;

	if (is_tree(job) && !(j->h->flags & SAINA_F_TREE)) {
		REFUSE(SAINA_REFUSE_TREE,
		       "job %s has workers on several hosts, which this worker's libsaina does not know of: update libsaina there",
		       job->name);
		return false;
	}
	if (!saina_job_has_uplink(job) || is_uplink(job, j->h->worker) || p->admitted)
		return true;
	p->asked_at = loop_now();
	/* the sentence of the highest job that waits says why */
	if (strstr(p->text, WAITS))
		REFUSE(SAINA_REFUSE_NO_ROOT, "%s", p->text);
	else
		REFUSE(SAINA_REFUSE_NO_ROOT, "job %s" WAITS "%.100s", job->name,
		       p->text[0] ? p->text : "the relay is started");
	return false;
}

int node_worker_of_rank(struct agent *a, const struct join *j, const struct saina_job *job)
{
	const struct job_place *p = &a->jobs->aux[job->id]->place;
	__u32 rank = le32toh(j->h->aux) - 1, first, n = saina_job_weight(job, job->workers);

	/* the parent says which ranks are here */
	if (!node_job_admits(a, j, job))
		return -1;
	first = saina_job_has_uplink(job) ? p->rank0 : 0;
	for (int w = 0; rank >= first && w < job->workers; w++)
		if (saina_job_weight(job, w) == rank - first && node_place_is_any(job, w))
			return w;
	if (is_tree(job))
		REFUSE(SAINA_REFUSE_FULL,
		       "rank %u is not here: job %s has the ranks %u to %u of its tree (parent-worker is to follow the hosts' ranks)",
		       rank, job->name, first, first + n - 1);
	else
		REFUSE(SAINA_REFUSE_FULL, "job %s has the workers 0..%u: there is no %u", job->name,
		       job->workers - 1, rank);
	return -1;
}

/* What a node's job must have like its parent; NULL: all is like it. */
static const char *mismatch(const struct saina_join_node *n, const struct saina_job *job,
			    unsigned int *theirs, unsigned int *ours)
{
	const struct {
		const char *what;
		unsigned int theirs, ours;
	} same[] = {
		{ "type (1 int32, 4 int16)", n->elem, job->elem },
		{ "payload", le16toh(n->payload), job->payload },
		{ "segments (of elements)", le32toh(n->segments), job->segments },
		{ "ring", le16toh(n->ring), job->ring },
	};

	for (unsigned int i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		*theirs = same[i].theirs;
		*ours = same[i].ours;
		if (*theirs != *ours)
			return same[i].what;
	}
	return NULL;
}

bool node_place_fits(struct agent *a, const struct join *j, const struct saina_job *job, int w)
{
	const struct saina_join_node *n = node_of(j);
	unsigned int weight = job->weight[w] ? job->weight[w] : 1, theirs, ours;
	const char *what;

	if (is_uplink(job, w))
		return true;
	if (!n && weight > 1) {
		REFUSE(SAINA_REFUSE_WEIGHT,
		       "worker %d of job %s is a node, the job of another host with %u workers: use another number, or a job there",
		       w, job->name, weight);
		return false;
	}
	if (!n)
		return true;
	if (!job->weight[0]) {
		REFUSE(SAINA_REFUSE_WEIGHT,
		       "job %s has no nodes: add it with weights, so that other jobs can have it as their parent",
		       job->name);
		return false;
	}
	if (!n->incarnation || !n->max_weight || le32toh(n->max_weight) > weight) {
		REFUSE(SAINA_REFUSE_WEIGHT,
		       "worker %d of job %s stands for %u workers by its weight, and this node has %u: change one of the two",
		       w, job->name, weight, le32toh(n->max_weight));
		return false;
	}
	if (saina_job_has_uplink(job) && a->jobs->aux[job->id]->place.depth >= SAINA_DEPTH_MAX) {
		REFUSE(SAINA_REFUSE_MISMATCH, "job %s has %d jobs above it, and cannot be the parent of one more",
		       job->name, SAINA_DEPTH_MAX);
		return false;
	}
	what = mismatch(n, job, &theirs, &ours);
	if (what)
		REFUSE(SAINA_REFUSE_MISMATCH, "job %s has %s %u, and the job of node %d has %u: they must be equal",
		       job->name, what, ours, w, theirs);
	return !what;
}

bool node_place_is_any(const struct saina_job *job, int w)
{
	return job->weight[w] <= 1;
}

bool node_port_fits(struct agent *a, const struct join *j, const struct saina_job *job, int w,
		    int ifindex)
{
	if (!is_uplink(job, w) || ifindex == a->jobs->aux[job->id]->place.ifindex)
		return true;
	REFUSE(SAINA_REFUSE_FULL, "worker %d of job %s is its uplink, at a port of its own", w,
	       job->name);
	return false;
}

uint64_t node_incarnation(struct agent *a, const struct join *j, const struct saina_job *job, int w)
{
	if (is_uplink(job, w))
		return a->jobs->aux[job->id]->place.incarnation;
	return node_of(j) ? le64toh(node_of(j)->incarnation) : 0;
}

/*
 * No node is live, and the present round has sums of lives that have ended: nobody completes it.  The
 * rounds go on behind it, under a new generation.  A node that comes back with sums of that round
 * finds it stale.
 */
static const struct saina_job *leave_round(struct agent *a, const struct saina_job *job)
{
	log_warn("job %s: no node is live, and round %u is not complete: it goes on with the next",
		 job->name, jobs_next_round(a, job) - 1);
	return backend_job_anew(a, job->id);
}

bool node_is_same(struct agent *a, const struct join *j, const struct saina_job *job, int w)
{
	uint64_t incarnation = node_incarnation(a, j, job, w);

	return is_uplink(job, w) ||
	       (incarnation && incarnation == jobs_worker(a, job, w)->incarnation);
}

const struct saina_job *node_comes_back(struct agent *a, const struct join *j,
					const struct saina_job *job, int w)
{
	bool same = node_is_same(a, j, job, w);
	unsigned int id = job->id;
	struct saina_job_rt rt;

	if (!node_incarnation(a, j, job, w))
		return job;
	if (same && jobs_alive(job, w)) {
		log_info("job %s: worker %d has a new relay", job->name, w);
		return job;
	}
	if (jobs_alive(job, w)) {
		backend_worker_end(a, job, w, SAINA_WORKER_STATE_LEFT, "begins anew");
		job = saina_core_job_find(a->jobs->core, 1, id, NULL, NULL);
	}
	if (!job || same || !jobs_rt(a, job, &rt) || !round_needs(job, &rt, w))
		return job;
	/* until the others have completed the round */
	if (job->active)
		return NULL;
	a->jobs->aux[id]->restart_round = rt.next_round;
	return leave_round(a, job);
}

uint32_t node_first_round(struct agent *a, const struct saina_job *job, uint32_t named)
{
	const struct job_aux *aux = a->jobs->aux[job->id];

	if (job->state != SAINA_JOB_FORMING)
		return named;
	if (saina_job_has_uplink(job))
		return aux->place.first_round;
	return job->weight[0] && named < aux->restart_round ? aux->restart_round : named;
}
