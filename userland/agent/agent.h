/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sainad: what every room gets.  A room is a folder with one header that says
 * what it offers; it includes those of rooms below it, never above:
 *
 *	main.c      puts the rooms together, and carries what they say upwards
 *	metrics/    what there is, for Prometheus
 *	control/    unix socket, requests, state file, subscribers
 *	workers/    admission, health, relay
 *	bridge/     ports of the bridge: which there are, attach them
 *	kernel/     who has the jobs: the core in here, or saina.ko
 *	jobs.h      owner of the job core and of what the agent knows of a worker
 *	runtime.h   directory, lock, bpffs
 *	peer_guard.h  connections of processes that are not trusted
 *	config.h loop.h log.h
 *
 * and, outside of the agent, net/ (links, OVSDB, bpffs), dp/ (the data path) and
 * ctl/ (netlink).  What has to be known above is said through struct *_ops.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <netinet/in.h>

#include "agent/config.h"
#include "agent/log.h"
#include "agent/loop.h"
#include "agent/runtime.h"
#include "agent/peer_guard.h"
#include "dp/dp.h"

struct agent {
	struct config cfg;
	struct loop loop;
	struct runtime runtime;
	struct peer_guard peers;
	struct saina_dp *dp;
	struct in_addr addr;	/* the aggregator's */
	unsigned int mtu;	/* smallest of the bridge's ports, 0 without any */
	bool jumbo;		/* results above SAINA_ELEMS_LINEAR_MAX leave without this process */
	struct jobs *jobs;
	struct backend *backend;
	struct bridge *bridge;
	struct members *members;
	struct control *control;
	struct metrics *metrics;	/* NULL: nobody is to ask for them */
	uint64_t started;
};

#endif /* AGENT_AGENT_H */
