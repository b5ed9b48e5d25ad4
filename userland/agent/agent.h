/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sainad: what all of its folders share.  Each folder has one header with all it
 * offers.  It may include the headers of folders below it in this list, not above:
 *
 *	main.c        starts and stops everything in order; forwards notifications
 *	metrics/      metrics for Prometheus, by HTTP
 *	control/      unix socket, requests, state file, subscribers
 *	uplink/       relays of jobs with a parent: their processes and ports
 *	members/      admission, liveness, delivery of results, shared memory
 *	backend/      owner of the jobs: the job core in this process, or saina.ko
 *	ports/        ports of the bridge: which there are, and the program on them
 *	jobs.h        job core, and what the agent knows of workers beyond it
 *	runtime.h     directory, lock, bpffs
 *	peer_guard.h  connections of untrusted processes
 *	process.h     background, descriptors, restart
 *	config.h loop.h log.h
 *
 * Below the agent are net/ (links, OVSDB, bpffs), dp/ (the data path) and ctl/
 * (netlink).  A lower folder notifies a higher one through its struct *_ops.
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

/**
 * struct reload - what SIGHUP needs to restart the program
 * @due: when the loop has ended
 * @directory: where it was started, for relative paths
 */
struct reload {
	bool due;
	int directory, argc;
	char **argv;
};

struct agent {
	struct config cfg;
	struct reload reload;
	struct loop loop;
	struct runtime runtime;
	struct peer_guard peers;
	struct saina_dp *dp;
	struct in_addr addr;	/* the aggregator's */
	unsigned int mtu;	/* smallest of the bridge's ports, 0 without any */
	bool jumbo;		/* the data path delivers results above SAINA_ELEMS_LINEAR_MAX */
	struct jobs *jobs;
	struct backend *backend;
	struct bridge *bridge;
	struct members *members;
	struct control *control;
	struct metrics *metrics;	/* NULL: disabled */
	struct uplinks *uplinks;	/* NULL: not started */
	uint64_t started;
};

#endif /* AGENT_AGENT_H */
