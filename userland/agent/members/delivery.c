// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which way results of the XDP program take to a worker: redirected to its port, or by the
 * relay.  Results of the tc program reach every worker.
 */
#include "agent/ports/ports.h"
#include "agent/backend/backend.h"
#include "agent/members/internal.h"

static struct log_limit limit;

static bool has_tc_hook(struct agent *a, const struct saina_job *job, int w)
{
	const struct port *p = ports_find(a, job->worker[w].bind.ifindex, NULL);

	return p && p->mode == SAINA_PORT_MODE_TC;
}

/* Can the XDP program complete results of this job? */
static bool uses_xdp(struct agent *a, const struct saina_job *job)
{
	int w;

	for (w = 0; w < job->workers; w++)
		if (jobs_alive(job, w) && !has_tc_hook(a, job, w))
			return true;
	return false;
}

/*
 * Probes test whether redirected frames reach a worker, until it echoes one.  The test is
 * repeated when its port moves from tc to XDP, because replies of the tc program prove nothing.
 */
static void update_probe(struct worker_aux *aux, bool on_tc)
{
	if (on_tc)
		aux->xdp_works = false;
	if (!aux->ready || (on_tc ? aux->fast : aux->xdp_works))
		aux->probe = 0;
	else if (!aux->probe)
		aux->probe = ++aux->last_probe;
}

static void choose_path(struct agent *a, const struct saina_job *job, int w)
{
	struct worker_aux *aux = jobs_worker(a, job, w);
	const struct port *p = ports_find(a, job->worker[w].bind.ifindex, NULL);
	bool on_tc = has_tc_hook(a, job, w);
	struct saina_worker_attrs req = {
		.has = 1ull << SAINA_A_WORKER_JOB_ID | 1ull << SAINA_A_WORKER_ID |
		       1ull << SAINA_A_WORKER_RELAY,
		.job_id = job->id,
		.id = w,
		.relay = on_tc ? uses_xdp(a, job) : !aux->xdp_works,
	};
	const char *name = job->worker[w].name, *port = p ? p->name : "?";
	struct saina_core_err err;

	update_probe(aux, on_tc);
	/* before READY a port with XDP stays as it was admitted */
	if ((!on_tc && !aux->ready) ||
	    req.relay == !!(job->worker[w].bind.flags & SAINA_BIND_RELAY))
		return;
	if (req.relay && on_tc)
		log_limited(&limit, LOG_L_INFO,
			    "job %s: port %s of worker %d (%s) has the tc hook, ports of others have XDP: what is made there takes a slower way to it",
			    job->name, port, w, name);
	else if (req.relay && aux->fast)
		log_limited(&limit, LOG_L_INFO,
			    "job %s: port %s of worker %d (%s) has XDP now: its results take a slower way until it has shown that these get to it",
			    job->name, port, w, name);
	else if (req.relay)
		log_limited(&limit, LOG_L_WARN,
			    "job %s: worker %d (%s) gets no redirected frames: its results go through the bridge, slower. `ethtool -K IF gro on` where the other end of port %s is (or an XDP program on it) fixes that",
			    job->name, w, name, port);
	else
		log_limited(&limit, LOG_L_INFO, "job %s: worker %d (%s) is on the fast path",
			    job->name, w, name);
	if (backend_worker_set(a, &req, NULL, &err))
		log_limited(&limit, LOG_L_ERROR, "job %s: worker %d: %s", job->name, w, err.text);
}

void delivery_ready(struct agent *a, const struct saina_job *job, int w, bool fast, uint32_t probe)
{
	struct worker_aux *aux = jobs_worker(a, job, w);

	if (!aux->ready || fast != aux->fast)
		aux->xdp_works = fast && !has_tc_hook(a, job, w);
	else if (fast && probe && probe == aux->probe)
		aux->xdp_works = true;
	aux->ready = true;
	aux->fast = fast;
	choose_path(a, job, w);
}

static void replan_worker(struct agent *a, const struct saina_job *job, int w, void *arg)
{
	choose_path(a, job, w);
}

void delivery_replan(struct agent *a)
{
	jobs_each_alive(a, replan_worker, NULL);
}
