/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of uplink/. */
#ifndef AGENT_UPLINK_INTERNAL_H
#define AGENT_UPLINK_INTERNAL_H

#include <sys/types.h>

#include "agent/uplink/uplink.h"

/**
 * struct uplink_link - a port of the bridge for a relay
 * @name: of the port, empty: there is none
 * @ifindex: likewise
 * @netns: network namespace of the other end, which has @addr; -1: there is none
 */
struct uplink_link {
	char name[IFNAMSIZ];
	int ifindex;
	int netns;
	struct in_addr addr;
};

/**
 * struct uplink - a job's uplink
 * @generation: of the job, when the relay was started
 * @parent: likewise
 * @used: that generation has run, so its maps may have sums that the parent counts
 * @incarnation: of the job's maps, for the parent; a generation that never ran leaves it to the next
 * @pid: of the relay, 0: it does not run
 * @process: its pidfd
 * @socket: to it
 * @stop_at: it was asked to end, and is killed then; 0: it was not
 * @start_at: not before this time
 * @started_at: when it was started last
 * @failures: times that it ended by itself since it last ran for a while
 * @report: its last; version 0: none
 */
struct uplink {
	struct agent *a;
	__u16 job;
	__u32 generation;
	struct saina_uplink parent;
	bool used;
	uint64_t incarnation;
	pid_t pid;
	struct source process, socket;
	struct uplink_link link;
	uint64_t stop_at, start_at, started_at;
	unsigned int failures;
	struct uplink_report report;
};

/* relay.c.  Return: 0, or a negative errno and the sentence @why. */
int relay_start(struct uplink *u, const struct saina_job *job, char *why, size_t size);
/* What a relay of the job is to know, but for the files. */
int relay_handover(struct uplink *u, const struct saina_job *job, struct uplink_handover *h, char *why,
		   size_t size);
/* Waits for the relay's end, and for its reports. */
bool relay_watch(struct uplink *u);
/* It runs on for the next sainad. */
void relay_leave(struct uplink *u);
/* It has ended: frees what it had, but for its port, which the next one gets. */
void relay_reap(struct uplink *u);

/* earlier.c */

/**
 * relay_adopt() - go on with the relay that an earlier sainad has started, if there is one
 * @u: job's uplink, without a relay
 * @job: its job
 * @same_maps: the earlier sainad's maps have been taken over
 *
 * One that has been handed over anything else than what relay_start() would hand over, or whose program
 * was replaced, is killed.
 * Return: whether there is one now
 */
bool relay_adopt(struct uplink *u, const struct saina_job *job, bool same_maps);

/*
 * link.c.  Return: 0, or a negative errno and the sentence @why.  A port of that name that is left over
 * is replaced.
 */
int link_make(struct agent *a, struct uplink_link *l, __u16 job, uint64_t incarnation, char *why,
	      size_t size);
/* What is there of it, made by this agent or an earlier one that was killed. */
void link_remove(struct agent *a, struct uplink_link *l);
/* The name and address that a job's port has. */
void link_name(struct uplink_link *l, __u16 job, uint64_t incarnation);

/**
 * command_run() - run a program and wait for it
 * @argv: NULL terminated
 * @netns: network namespace to run it in, -1: this one
 * @input: its standard input
 * @why: out on failure: its first line of output
 *
 * Return: 0 or a negative errno; -EPROTO: it has failed
 */
int command_run(char *const argv[], int netns, const char *input, char *why, size_t size);

#endif /* AGENT_UPLINK_INTERNAL_H */
