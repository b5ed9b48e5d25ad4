// SPDX-License-Identifier: GPL-2.0-or-later
/* Events of the data path and of the agent: to subscribers, and to the log
 * where an operator would want to know without asking. */
#include <string.h>

#include "agent/agent.h"
#include "agent/control/encode.h"

static struct log_limit k_limit, stale_limit;
static struct saina_event stale = { .worker = 0xff }; /* the last logged */

static void publish(struct agent *a, const struct saina_event *ev, const struct saina_job *job,
		    const char *text)
{
	struct msg m;

	if (!(a->ctl.groups & SAINA_GROUPS_EVENTS))
		return;
	msg_start(&m, SAINA_CMD_EVENT, 0, 0);
	encode_event(&m, ev, job ? job->name : NULL, text);
	ctlserver_notify(a, SAINA_GROUPS_EVENTS, m.nlh);
}

void events_data_path(struct agent *a, const struct saina_event *ev)
{
	const struct saina_job *job = saina_core_job_find(a->jobs.core, 1, ev->job, NULL, NULL);
	const char *name = job ? job->name : "?";

	switch (ev->type) {
	case SAINA_EV_K:
		log_limited(&k_limit, LOG_L_INFO, "job %s: round %u: k %llu -> %llu", name,
			    ev->round, (unsigned long long)ev->a, (unsigned long long)ev->b);
		break;
	case SAINA_EV_POLICY:
		log_limited(&k_limit, LOG_L_INFO, "job %s: round %u: policy %llu is in force", name,
			    ev->round, (unsigned long long)ev->b);
		break;
	case SAINA_EV_STALE:
		/* it asks for many segments of the round, one by one */
		if (ev->job == stale.job && ev->worker == stale.worker && ev->round == stale.round)
			break;
		stale = *ev;
		log_limited(
			&stale_limit, LOG_L_WARN,
			"job %s: worker %u asked for round %u, which is gone: it needs the model from a peer",
			name, ev->worker, ev->round);
		break;
	}
	publish(a, ev, job, NULL);
}

/* The agent's own: @ev lacks the time, and what only the data path knows. */
void events_control(struct agent *a, struct saina_event *ev, const char *text)
{
	const struct saina_job *job = NULL;
	struct saina_job_rt rt;

	ev->time = loop_now();
	if (ev->type != SAINA_EV_PORT)
		job = saina_core_job_find(a->jobs.core, 1, ev->job, NULL, NULL);
	if (job && a->ctl.groups & SAINA_GROUPS_EVENTS && !saina_dp_job_rt(a->dp, job->id, &rt)) {
		ev->round = rt.next_round;
		ev->k = rt.k;
	}
	publish(a, ev, job, text);
}
