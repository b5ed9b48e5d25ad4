/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of metrics/. */
#ifndef AGENT_METRICS_INTERNAL_H
#define AGENT_METRICS_INTERNAL_H

#include <sys/types.h>

#include "agent/ports/ports.h"
#include "agent/backend/backend.h"
#include "agent/metrics/metrics.h"
#include "agent/members/members.h"
#include "ctl/policy_text.h"

/**
 * struct snap_worker - a worker that is not absent
 * @job: index of its job in the snapshot
 * @counted: @c is valid
 * @behind: rounds that the next one is ahead of it; valid if @leads
 * @leads: it is alive, and the policy has a lead
 * @arrival: all 0 if nothing has arrived in this generation of the job
 */
struct snap_worker {
	unsigned int job;
	int id, state;
	char name[SAINA_NAME_LEN];
	bool relayed, shared, heard, counted, leads;
	double silent;		/* seconds */
	uint32_t round, behind;
	uint64_t late;
	bool reported;
	uint64_t sent, resent;
	uint32_t rtt_us, window;
	bool unheard;
	struct saina_arrival arrival;
	struct saina_counters c;
};

/**
 * struct snap_job
 * @seen: the data path has this generation: @rt is valid
 * @lead: rounds that may be ahead of a live worker; UINT32_MAX: without a bound
 * @completed: results, of all workers together
 */
struct snap_job {
	__u16 id;
	char name[SAINA_NAME_LEN];
	char policy[SAINA_POLICY_TEXT_LEN];
	int state;
	unsigned int workers, alive, payload, elem_bytes;
	uint64_t elements, memory, completed;
	uint32_t segments, lead;
	bool seen, detached;
	struct saina_job_rt rt;
	double age;		/* of the open round, in seconds; 0: no round is open */
	bool below;		/* it has an uplink: the rest is valid */
	bool admitted;		/* by its parent */
	uint32_t tree_workers;
	double away;		/* of the oldest sum that went up, in seconds; 0: none waits */
	uint64_t bytes_up, bytes_down;
};

struct snap_port {
	struct port port;
	uint32_t workers, relayed;
	struct saina_port_conf faults;
};

/**
 * struct snapshot - state of the agent, copied within a few turns of the loop
 * @users: reference count
 * @taken_at: loop_now() when it was complete
 */
struct snapshot {
	int users;
	uint64_t taken_at;
	double up;		/* seconds */
	const char *backend;
	bool taken_over;
	uint64_t held_up_ns, held_up_times;
	uint64_t shm[SHM_COUNTS], foreign, announcements;
	bool counted;
	struct saina_counters global;
	unsigned int limit_jobs;
	uint64_t limit_memory, memory;
	struct snap_job *job;
	struct snap_worker *worker;
	struct snap_port *port;
	unsigned int jobs, workers, ports;
	/* while it is incomplete */
	unsigned int at_job, at_worker, room_worker;
};

/* Return: NULL without memory. */
struct snapshot *snapshot_begin(struct agent *a);
/* Copies some more.  Return: 1 if there is more, 0 if it is complete, negative errno. */
int snapshot_more(struct agent *a, struct snapshot *s);
void snapshot_put(struct snapshot *s);

/* Position of a reader in the text. */
struct text {
	struct snapshot *s;
	unsigned int family, item, part;
	bool headed;
	char line[1024];
	size_t len, off;
};

/* Return: number of bytes copied, 0 at the end. */
size_t text_read(struct text *t, char *to, size_t max);

#endif /* AGENT_METRICS_INTERNAL_H */
