// SPDX-License-Identifier: GPL-2.0-or-later
/* Events of data path and agent: to subscribers, and to the log if an operator should know. */
#include "agent/control/control.h"
#include "agent/control/encode.h"

static struct log_limit k_limit, stale_limit;

static void publish_event(struct agent *a, const struct saina_event *ev,
			  const struct saina_job *job, const char *text)
{
	struct msg m;

	if (!(a->control->groups & SAINA_GROUPS_EVENTS))
		return;
	msg_start(&m, SAINA_CMD_EVENT, 0, 0);
	encode_event(&m, ev, job ? job->name : NULL, text);
	clients_notify(a, SAINA_GROUPS_EVENTS, m.nlh);
}

/* Has the worker reached a later round since?  Then the network had delayed what it asked. */
static bool has_gone_on(struct agent *a, const struct saina_job *job, const struct saina_event *ev)
{
	struct saina_job_rt rt;

	return job && ev->worker < job->workers && jobs_rt(a, job, &rt) &&
	       rt.at[ev->worker] > ev->round;
}

void control_notify_event(struct agent *a, const struct saina_event *ev, const char *text)
{
	const struct saina_job *job = NULL;
	const char *name;

	if (ev->type != SAINA_EV_PORT)
		job = saina_core_job_find(a->jobs->core, 1, ev->job, NULL, NULL);
	name = job ? job->name : "?";
	switch (ev->type) {
	case SAINA_EV_K:
		log_limited(&k_limit, LOG_L_INFO, "job %s: round %u: k %llu -> %llu", name,
			    ev->round, (unsigned long long)ev->a, (unsigned long long)ev->b);
		break;
	case SAINA_EV_POLICY:
		log_limited(&k_limit, LOG_L_INFO, "job %s: round %u: policy %llu is in force", name,
			    ev->round, (unsigned long long)ev->b);
		break;
	case SAINA_EV_CONTROLLER:
		if (ev->a)
			log_limited(&k_limit, LOG_L_INFO,
				    "job %s: its controller is gone: k stays %llu", name,
				    (unsigned long long)ev->a);
		else
			log_limited(&k_limit, LOG_L_INFO,
				    "job %s: its controller is gone: what it has set stays", name);
		break;
	case SAINA_EV_STALE:
		if (has_gone_on(a, job, ev))
			break;
		log_limited(
			&stale_limit, LOG_L_WARN,
			"job %s: worker %u asked for round %u, which is gone: this worker needs the model from a peer",
			name, ev->worker, ev->round);
		break;
	}
	publish_event(a, ev, job, text);
}

void control_notify(struct agent *a, int cmd, const struct saina_job *job, int worker)
{
	struct msg m;

	a->control->changes++;
	if (!(a->control->groups & SAINA_GROUPS_CONFIG))
		return;
	msg_start(&m, cmd, 0, 0);
	if (!job)
		encode_limits(&m, a);
	else if (worker >= 0)
		encode_worker(&m, a, job, worker, false);
	else
		encode_job(&m, a, job, false);
	clients_notify(a, SAINA_GROUPS_CONFIG, m.nlh);
}

void control_notify_port_changed(struct agent *a, const struct port *p)
{
	struct msg m;

	a->control->changes++;
	if (!(a->control->groups & SAINA_GROUPS_CONFIG))
		return;
	msg_start(&m, SAINA_CMD_PORT_NTF, 0, 0);
	encode_port(&m, a, p);
	clients_notify(a, SAINA_GROUPS_CONFIG, m.nlh);
}

void control_notify_port(struct agent *a, const struct port *p, bool there)
{
	struct saina_event ev = {
		.type = SAINA_EV_PORT,
		.time = loop_now(),
		.worker = 0xff,
		.a = p->ifindex,
		.b = there && p->mode != SAINA_PORT_MODE_NONE,
	};

	control_notify_event(a, &ev, p->name);
	control_notify_port_changed(a, p);
}

void control_flush(struct agent *a)
{
	if (!a->jobs->changed)
		return;
	delivery_replan(a);
	shm_update(a);
	a->jobs->changed = false;
	jobs_commit(a);
	liveness_replan(a);
	members_send_status(a);
}
