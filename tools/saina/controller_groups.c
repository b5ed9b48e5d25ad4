// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina policy control of a job with policy grouped: chooses the groups (grouping.h) by the step
 * time of each worker.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "controller_policy.h"
#include "core/policy.h"
#include "grouping.h"
#include "tool.h"

#define AGREEMENTS_MIN 3	/* equal measurements needed before groups change */

static int set_groups(struct saina_ctl *ctl, const struct saina_job_attrs *job, const struct grouping *g)
{
	struct saina_job_attrs req = { .id = job->id };
	struct saina_policy p;

	saina_policy_read(&job->policy, &p);
	p.groups = g->groups;
	memset(p.group, SAINA_GROUP_NONE, sizeof(p.group));
	memcpy(p.group, g->group, g->workers);
	saina_policy_show(&p, &req.policy);
	SAINA_SET(&req, SAINA_A_JOB_ID);
	SAINA_SET(&req, SAINA_A_JOB_POLICY);
	return rpc_call(ctl, SAINA_CMD_JOB_SET, false, &saina_job_class, &req, NULL, NULL, NULL);
}

static void print_choice(const struct saina_job_attrs *job, const struct grouping *g, unsigned int from,
			 double slowdown, __u64 stragglers)
{
	out_open(NULL);
	out_str("job", "%s ", job->name);
	out_uint("round", "step %" PRIu64 ":", job->round);
	out_uint("from", " %" PRIu64, from);
	out_uint("groups", " -> %" PRIu64 " groups,", g->groups);
	out_float("predicted_slowdown", " predicted slowdown %.2f,", slowdown);
	out_ids("stragglers", " stragglers %s", stragglers);
	out_text("\n");
	out_close();
}

/* Computes step times since the last measurement; false if it is too early or not comparable. */
static bool measure(struct grouping *g, struct controller *c, const struct saina_job_attrs *job,
		    const struct saina_worker_attrs *w, size_t n)
{
	double steps[SAINA_WORKERS_MAX] = { 0 }, late[SAINA_WORKERS_MAX] = { 0 };
	bool same = c->t > 0 && c->generation == job->generation && c->groups.seq == job->policy_seq;
	double now = monotonic_seconds();

	for (size_t i = 0; i < n; i++) {
		const struct saina_worker_attrs *old = &c->worker[w[i].id];

		if (!worker_is_alive(&w[i]))
			continue;
		g->alive |= 1ull << w[i].id;
		same &= old->session == w[i].session && w[i].arrivals >= old->arrivals;
		steps[w[i].id] = (double)w[i].arrivals - old->arrivals;
		if (w[i].arrivals > old->arrivals)
			late[w[i].id] = ((double)w[i].arrival_us - old->arrival_us) / steps[w[i].id];
	}
	if (same && !grouping_measure(g, (now - c->t) * 1e6, steps, late))
		return false;
	for (size_t i = 0; i < n; i++)
		c->worker[w[i].id] = w[i];
	c->t = now;
	c->generation = job->generation;
	c->groups.seq = job->policy_seq;
	return same;
}

int controller_groups(struct controller *c, const struct saina_job_attrs *job,
		      const struct saina_worker_attrs *w, size_t n)
{
	struct grouping g = { .workers = job->workers };
	struct saina_policy p;
	double slowdown;
	__u64 stragglers;
	unsigned int from;
	bool changes;
	int ret;

	/* the requested groups are not in force yet, so there is no measurement of them */
	if (SAINA_HAS(job, SAINA_A_JOB_POLICY_NEXT) || job->policy_seq_active != job->policy_seq) {
		c->t = 0;
		return 0;
	}
	g.most = c->most && c->most < job->workers ? c->most : job->workers;
	saina_policy_read(&job->policy, &p);
	from = g.groups = p.groups;
	memcpy(g.group, p.group, sizeof(g.group));
	if (!measure(&g, c, job, w, n))
		return 0;
	changes = grouping_choose(&g, &slowdown, &stragglers);
	/* on a busy host a single measurement may name any worker as a straggler */
	c->groups.looks = stragglers == c->groups.stragglers ? c->groups.looks + 1 : 1;
	c->groups.stragglers = stragglers;
	if (!changes || c->groups.looks < AGREEMENTS_MIN)
		return 0;
	ret = set_groups(c->ctl, job, &g);
	if (!ret)
		print_choice(job, &g, from, slowdown, stragglers);
	c->t = 0;
	return ret;
}
