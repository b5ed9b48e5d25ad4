// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Live workers whose gradients do not arrive: heartbeats report that their kernel refuses to
 * send gradients, or that gradients are sent and the data path does not answer.  A worker that
 * computes, and so sends nothing, reports neither.
 *
 * And ports that keep workers away from the aggregator or from each other, named once somebody waits.
 *
 * And live workers so far behind that the policy's lead keeps the next round from beginning, and
 * those that an open round waits for.
 */
#include <stdio.h>
#include <string.h>

#include "agent/ports/ports.h"
#include "agent/members/internal.h"

#define UNANSWERED_MS 5000	/* normally the data path answers within a second */
#define MISSING_MS    500	/* a slot that is open for longer waits for somebody */

static struct log_limit limit, behind_limit;

void diagnose_report(struct worker_aux *aux, const struct saina_report *r)
{
	aux->refused = le32toh(r->refused);
	aux->refused_ms = le32toh(r->refused_ms);
	aux->unanswered_ms = le32toh(r->unanswered_ms);
}

/* Does the bridge drop all that comes from the port, but for gradients? */
static bool port_blocked(const struct port *p, char *text, size_t size)
{
	if (p->stp)
		snprintf(text, size, "port %s is in spanning-tree state %s: `bridge link set dev %s state 3` on the bridge's host, or wait",
			 p->name, p->stp, p->name);
	return p->stp;
}

static bool port_policed(const struct port *p, char *text, size_t size)
{
	bool policed = port_is_policed(p);

	if (p->policing)
		snprintf(text, size, "port %s is policed to %lld kbit/s, the rest is lost: ovs-vsctl set interface %s ingress_policing_rate=0",
			 p->name, p->policing, p->name);
	else if (policed)
		snprintf(text, size, "port %s is policed, what exceeds the rate is lost: `tc filter show dev %s ingress`",
			 p->name, p->name);
	return policed;
}

static bool port_isolated(const struct port *p, char *text, size_t size)
{
	if (p->isolated)
		snprintf(text, size, "port %s is isolated, it reaches no other isolated port (rendezvous, Gloo): `bridge link set dev %s isolated off`",
			 p->name, p->name);
	return p->isolated;
}

bool worker_unheard(struct agent *a, const struct saina_job *job, int w, char *text, size_t size)
{
	const struct port *p = worker_port(a, job, w);
	const struct worker_aux *aux = jobs_worker(a, job, w);
	const char *port = worker_port_name(a, job, w);
	bool missing = a->jobs->aux[job->id]->missing >> w & 1;
	char why[SAINA_TEXT_LEN];
	uint64_t s_ago = aux->unanswered_ms / 1000;

	if (!jobs_alive(job, w))
		return false;
	if (!p)
		snprintf(text, size, "alive, but its port %s has left bridge %s: add the port again, else the worker is dead after %u ms of silence",
			 port, a->cfg.bridge, job->dead_ms);
	else if (p->mode == SAINA_PORT_MODE_NONE)
		snprintf(text, size, "alive, but its port %s has no program: %.100s", port, p->text);
	else if (port_blocked(p, why, sizeof(why)) || (missing && port_policed(p, why, sizeof(why))))
		snprintf(text, size, "alive, but its %s", why);
	else if (aux->refused)
		snprintf(text, size, "alive, but its kernel has refused to send its gradients for %u s: %s",
			 aux->refused_ms / 1000, strerror((int)aux->refused));
	else if (aux->unanswered_ms < UNANSWERED_MS)
		return false;
	else if (loop_now() - aux->arrived_at < aux->unanswered_ms * NSEC_PER_MSEC / 2)
		snprintf(text, size,
			 "alive, and is heard on port %s, but has received no answer for %llu s: is there a firewall on the way back?",
			 port, (unsigned long long)s_ago);
	else
		snprintf(text, size,
			 "alive, and sends gradients, but none has arrived by port %s for %llu s: is there a firewall on the way?",
			 port, (unsigned long long)s_ago);
	return true;
}

/* Rounds that worker @w is behind the one that waits for it; 0: none does.  @lead: out, of the policy */
static uint32_t rounds_behind(struct agent *a, const struct saina_job *job, int w, uint32_t *round,
			      uint32_t *lead)
{
	struct saina_job_rt rt;

	if (!jobs_rt(a, job, &rt) || !(rt.behind & job->active & 1ull << w))
		return 0;
	*round = rt.next_round;
	*lead = saina_policy_lead(jobs_policy(a, job), job->ring, saina_job_has_uplink(job));
	/* it may have caught up since the round was refused */
	return rt.next_round - rt.at[w] > *lead ? rt.next_round - rt.at[w] : 0;
}

static bool worker_behind(struct agent *a, const struct saina_job *job, int w, char *text, size_t size)
{
	uint32_t round, lead = 0, behind = rounds_behind(a, job, w, &round, &lead);

	if (behind)
		snprintf(text, size, "%u rounds behind: round %u waits for it (lead %u)", behind, round,
			 lead);
	return behind;
}

/* A round waits for a worker whose gradients would arrive: it may wait for other workers itself. */
static bool worker_apart(struct agent *a, const struct saina_job *job, int w, char *text, size_t size)
{
	const struct port *p = worker_port(a, job, w);
	char why[SAINA_TEXT_LEN];

	if (!(a->jobs->aux[job->id]->missing >> w & 1) || !p || !port_isolated(p, why, sizeof(why)))
		return false;
	snprintf(text, size, "missing, and its %s", why);
	return true;
}

bool diagnose_worker(struct agent *a, const struct saina_job *job, int w, char *text, size_t size)
{
	return worker_unheard(a, job, w, text, size) || worker_behind(a, job, w, text, size) ||
	       worker_apart(a, job, w, text, size) ||
	       numerics_text(a, job, w, text, size);
}

/* Diagnosis of the first worker of @of that has one, and the number of others. */
static bool diagnose_first(struct agent *a, const struct saina_job *job, uint64_t of, const char *is,
			   const char *more_are,
			   bool (*diagnose)(struct agent *a, const struct saina_job *job, int w,
					    char *text, size_t size),
			   char *text, size_t size)
{
	char why[SAINA_TEXT_LEN], more[32] = "";
	int first = -1, n = 0;

	for (int w = job->workers - 1; w >= 0; w--)
		if (of >> w & 1 && diagnose(a, job, w, why, sizeof(why))) {
			first = w;
			n++;
		}
	if (n > 1)
		snprintf(more, sizeof(more), "; so %s %d more", more_are, n - 1);
	if (n)
		snprintf(text, size, "worker %d (%s) %s%s%s", first, job->worker[first].name, is,
			 why, more);
	return n;
}

/* While workers wait for others to join: the first port without a worker that one cannot join by. */
static bool find_closed_port(struct agent *a, const struct saina_job *job, char *text, size_t size)
{
	bool (*const closed[])(const struct port *p, char *text, size_t size) = { port_blocked, port_policed };
	uint32_t workers, relayed;

	if (job->state != SAINA_JOB_FORMING || !job->active)
		return false;
	for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
		for (int n = 0; n < a->bridge->n; n++) {
			members_on_port(a, a->bridge->port[n].ifindex, &workers, &relayed);
			if (!workers && closed[i](&a->bridge->port[n], text, size))
				return true;
		}
	return false;
}

bool diagnose_job(struct agent *a, const struct saina_job *job, char *text, size_t size)
{
	return diagnose_first(a, job, ~0ull, "is ", "are", worker_unheard, text, size) ||
	       diagnose_first(a, job, ~0ull, "is ", "are", worker_behind, text, size) ||
	       diagnose_first(a, job, ~0ull, "is ", "are", worker_apart, text, size) ||
	       diagnose_first(a, job, ~0ull, "", "did", numerics_text, text, size) ||
	       find_closed_port(a, job, text, size);
}

static void report_behind(struct agent *a, const struct saina_job *job, int w)
{
	struct worker_aux *aux = jobs_worker(a, job, w);
	uint32_t round, lead = 0, behind = rounds_behind(a, job, w, &round, &lead);
	struct saina_event ev = {
		.type = SAINA_EV_WORKER_BEHIND,
		.job = job->id,
		.worker = w,
		.a = behind,
		.b = lead,
	};

	if (behind && !aux->behind)
		log_limited(&behind_limit, LOG_L_INFO,
			    "job %s: worker %d (%s) is %u rounds behind: round %u waits for it (lead %u); to go on without this worker: a policy with lead=none, or `saina worker set %s %d state dead`",
			    job->name, w, job->worker[w].name, behind, round, lead, job->name, w);
	aux->behind = behind;
	if (behind)
		jobs_event(a, &ev, "the next round waits for it");
}

uint64_t diagnose_slot(const struct saina_job *job, const struct saina_slot_meta *meta)
{
	uint64_t who = meta->members & job->active & ~meta->seen;

	if (meta->state == SAINA_SLOT_AWAY)
		return 1ull << job->workers;
	for (int w = 0; meta->parts && w < job->workers; w++)
		if (meta->csum >> w % meta->parts & 1)
			who &= ~(1ull << w);
	return who;
}

/* Finds out for whom the newest round waits. */
static void find_missing(struct agent *a, const struct saina_job *job)
{
	struct job_aux *aux = a->jobs->aux[job->id];
	uint64_t since = loop_now() - MISSING_MS * NSEC_PER_MSEC;
	struct saina_slot_meta m;
	struct saina_job_rt rt;

	aux->missing = 0;
	/* reading the slots costs a system call each: only of a round that takes long */
	if (job->state != SAINA_JOB_RUNNING || !jobs_rt(a, job, &rt) || rt.mode == SAINA_RT_PS ||
	    !rt.open_slots || rt.opened_at > since)
		return;
	aux->missing_round = rt.next_round - 1;
	for (uint32_t i = 0; i < job->pool && !saina_dp_slot(a->dp, job->id, i, &m); i++)
		if (m.state == SAINA_SLOT_OPEN && m.round == aux->missing_round &&
		    m.opened_at < since)
			aux->missing |= diagnose_slot(job, &m);
}

void diagnose_awaited(struct agent *a, const struct saina_job *job)
{
	struct job_aux *aux = a->jobs->aux[job->id];
	size_t size = sizeof(aux->awaited);

	find_missing(a, job);
	memset(aux->awaited, 0, size);
	if (!find_closed_port(a, job, aux->awaited, size) &&
	    !diagnose_first(a, job, aux->missing, "is ", "are", worker_unheard, aux->awaited, size))
		diagnose_first(a, job, aux->missing, "is ", "are", worker_apart, aux->awaited, size);
}

void diagnose_tick(struct agent *a, const struct saina_job *job, int w, uint64_t arrived)
{
	struct worker_aux *aux = jobs_worker(a, job, w);
	char why[SAINA_TEXT_LEN];
	bool unheard;

	if (arrived != aux->arrived) {
		aux->arrived = arrived;
		aux->arrived_at = loop_now();
	}
	/* that a port has left is logged when it does */
	unheard = worker_port(a, job, w) && worker_unheard(a, job, w, why, sizeof(why));
	if (unheard && !aux->unheard)
		log_limited(&limit, LOG_L_WARN, "job %s: worker %d (%s) is %s", job->name, w,
			    job->worker[w].name, why);
	else if (!unheard && aux->unheard)
		log_limited(&limit, LOG_L_INFO, "job %s: gradients of worker %d (%s) arrive again",
			    job->name, w, job->worker[w].name);
	aux->unheard = unheard;
	report_behind(a, job, w);
}
