// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Attributes that only the agent knows, added to jobs and workers read from saina.ko: rounds, slots
 * and counters are in the maps of the data path, which the agent owns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/payload.h"
#include "tool.h"

struct saina_ctl *agent_view_open(const struct tool *t, const struct saina_ctl *ctl)
{
	struct saina_ctl *agent;
	const char *error;

	if (!is_kernel(ctl))
		return NULL;
	agent = rpc_open_agent_quiet(t, &error);
	if (!agent || backend_of(agent) == SAINA_PLANE_KERNEL)
		return agent;
	saina_ctl_close(agent);
	return NULL;
}

/* Attributes that come from the data path. */
static const __u64 job_datapath_attrs =
	1ull << SAINA_A_JOB_ROUND | 1ull << SAINA_A_JOB_K | 1ull << SAINA_A_JOB_POLICY_SEQ_ACTIVE |
	1ull << SAINA_A_JOB_POLICY_ACTIVE | 1ull << SAINA_A_JOB_SFCD_CONVERGED |
	1ull << SAINA_A_JOB_SFCD_FLIPS | 1ull << SAINA_A_JOB_SFCD_OBSERVED |
	1ull << SAINA_A_JOB_POLICY_MIX | 1ull << SAINA_A_JOB_OPEN_SLOTS | 1ull << SAINA_A_JOB_TEXT |
	1ull << SAINA_A_JOB_REFERENCE | 1ull << SAINA_A_JOB_TROUBLE;

static const __u64 worker_datapath_attrs =
	1ull << SAINA_A_WORKER_SEEN_MS | 1ull << SAINA_A_WORKER_ROUND | 1ull << SAINA_A_WORKER_SENT |
	1ull << SAINA_A_WORKER_RESENT | 1ull << SAINA_A_WORKER_RTT_US |
	1ull << SAINA_A_WORKER_WINDOW | 1ull << SAINA_A_WORKER_ARRIVALS |
	1ull << SAINA_A_WORKER_ARRIVAL_US | 1ull << SAINA_A_WORKER_ARRIVAL_LAST_US |
	1ull << SAINA_A_WORKER_ARRIVAL_HIST | 1ull << SAINA_A_WORKER_TROUBLE;

void agent_view_payload(struct saina_ctl *agent, struct saina_job_attrs *req)
{
	const struct saina_port_attrs *port;
	struct rpc_list list;
	unsigned int mtu = 0;
	bool jumbo = true;

	if (!agent || rpc_list_quiet(agent, SAINA_CMD_PORT_GET, &saina_port_class, &list))
		return;
	port = list.v;
	for (size_t i = 0; i < list.n; i++) {
		if (!i || port[i].mtu < mtu)
			mtu = port[i].mtu;
		jumbo = jumbo && port[i].jumbo;
	}
	rpc_list_free(&list);
	saina_payload_choose(req, mtu, jumbo);
}

void agent_view_jobs(struct saina_ctl *agent, struct saina_job_attrs *job, size_t n)
{
	const struct saina_job_attrs *from;
	struct rpc_list list;

	if (!agent || rpc_list_quiet(agent, SAINA_CMD_JOB_GET, &saina_job_class, &list))
		return;
	from = list.v;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < list.n; j++)
			if (from[j].id == job[i].id &&
			    from[j].generation == job[i].generation &&
			    !strcmp(from[j].name, job[i].name))
				saina_ctl_copy_attrs(&job[i], &saina_job_class, job_datapath_attrs, &from[j]);
	rpc_list_free(&list);
}

void agent_view_workers(struct saina_ctl *agent, struct saina_worker_attrs *w, size_t n)
{
	const struct saina_worker_attrs *from;
	struct rpc_list list;

	if (!agent || rpc_list_quiet(agent, SAINA_CMD_WORKER_GET, &saina_worker_class, &list))
		return;
	from = list.v;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < list.n; j++)
			if (from[j].job_id == w[i].job_id && from[j].id == w[i].id &&
			    from[j].session == w[i].session)
				saina_ctl_copy_attrs(&w[i], &saina_worker_class, worker_datapath_attrs, &from[j]);
	rpc_list_free(&list);
}
