/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The relays of jobs with an uplink: a process saina-uplink for each, started while the job has, or
 * wants to have, live workers.
 *
 *	watch.c    when a relay is started and stopped; what it reports
 *	relay.c    the process, and what it gets from here
 *	link.c     its port of the bridge, and the namespace at the other end
 *	command.c  runs ip(8) and ovs-vsctl(8)
 */
#ifndef AGENT_UPLINK_UPLINK_H
#define AGENT_UPLINK_UPLINK_H

#include "agent/jobs.h"
#include "uplink/handover.h"

/* Starts with the jobs that there are. */
int uplinks_init(struct agent *a);
void uplinks_uninit(struct agent *a);
/* A job has changed (struct jobs_ops). */
void uplinks_job_changed(struct agent *a, int cmd, const struct saina_job *job);

/**
 * uplink_show() - attributes of a job's uplink, beyond its configuration
 * @a: agent
 * @job: a job with an uplink
 * @o: out, added to what it has
 */
void uplink_show(struct agent *a, const struct saina_job *job, struct saina_uplink_attrs *o);
/* The last report of a job's relay; NULL: there is none. */
const struct uplink_report *uplink_report(struct agent *a, const struct saina_job *job);

#endif /* AGENT_UPLINK_UPLINK_H */
