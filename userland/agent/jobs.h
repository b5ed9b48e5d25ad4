/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Owns the job core: applies its changes to the data path, notifies the rest of the
 * agent, and keeps what the agent knows of workers beyond the core.
 */
#ifndef AGENT_JOBS_H
#define AGENT_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core.h"
#include "ctl/lateness.h"
#include "agent/agent.h"

/**
 * struct worker_numerics - numerical quality of what a worker sends (members/numerics.c)
 * @known: the counters below are valid
 * @nonfinite: SAINA_C_NONFINITE at the last check
 * @slots, @coarse: slots it was counted in, and SAINA_C_COARSENED, at the start of the present scale
 *	check
 * @first_round: the job's next round then
 * @nonfinite_at: when NaN or infinities were last found, 0: never
 * @segments: how many segments had some
 * @round: the round after the last of them
 * @coarse_at: when its scales were last found too coarse, 0: never
 * @percent: share of its slots that it made coarser
 * @types_at: when it last sent another type than most others, 0: never
 * @types_round: the round of that
 * @is_int: it sent int32
 */
struct worker_numerics {
	bool known;
	uint64_t nonfinite, slots, coarse;
	uint32_t first_round;
	uint64_t nonfinite_at, segments;
	uint32_t round;
	unsigned int percent;
	uint64_t coarse_at;
	uint64_t types_at;
	uint32_t types_round;
	bool is_int;
};

/**
 * struct worker_aux - what the agent knows of a worker beyond the core
 *
 * Admission:
 * @nonce: of the JOIN that admitted it
 * @formed: admitted while the job was forming
 * @first_round: otherwise, the round that WELCOME named
 * @ended_at: when its previous session ended, 0: alive, or unknown
 *
 * Delivery of results:
 * @ready: it has sent READY
 * @fast: READY says that replies to its probes arrive
 * @xdp_works: frames that the XDP program redirects reach it
 * @probe: probe id that the worker must echo, 0: none pending
 * @last_probe: the last id given out
 *
 * Liveness:
 * @port: name of its port when that last came or went, empty: neither since its session began
 * @last_heard: time of its last control message or gradient
 * @restored: an earlier agent has admitted it, and this one has not heard it yet
 * @round: of its last heartbeat
 * @signs: sum of its life signs at the last check
 * @signs_read: @signs was read since @last_heard
 * @bad_mac: its SAINA_C_BAD_MAC at the last check
 *
 * Stragglers, once a second:
 * @missed: sums without it, in this session
 * @in_time: its gradients in time at the last check
 * @late_total: sums without it, in all sessions
 *
 * Stale requests:
 * @stale_round: round that it asked for and that is gone
 * @stale_at: time of the last event about that
 *
 * Its own report (struct saina_report):
 * @reported: @sent, @resent, @rtt_us and @window are valid
 * @refused, @refused_ms, @unanswered_ms: 0 without a report
 *
 * Diagnosis:
 * @arrived: sum of its counters at the last check
 * @arrived_at: when that last changed
 * @unheard: the log says that nothing arrives from it
 * @behind: the log says that a round waits for it (lead)
 * @numerics: of this and earlier sessions
 *
 * Shared memory:
 * @shm_session: session that has its input array, 0: none
 *
 * Nodes, and the uplink's worker:
 * @incarnation: of the maps of its job, 0: the worker is no node
 */
struct worker_aux {
	uint64_t nonce;
	bool formed;
	uint32_t first_round;
	uint64_t ended_at;

	bool ready, fast, xdp_works;
	uint32_t probe, last_probe;

	char port[IFNAMSIZ];
	uint64_t last_heard;
	bool restored;
	uint32_t round;
	uint64_t signs;
	bool signs_read;
	uint64_t bad_mac;

	struct saina_missed missed;
	uint64_t in_time, late_total;

	uint32_t stale_round;
	uint64_t stale_at;

	bool reported;
	uint64_t sent, resent;
	uint32_t rtt_us, window;
	uint32_t refused, refused_ms, unanswered_ms;

	uint64_t arrived, arrived_at;
	bool unheard;
	bool behind;
	struct worker_numerics numerics;

	uint64_t shm_session;

	uint64_t incarnation;
};

/**
 * struct job_place - the place of a job with an uplink in its tree, as its relay has reported it
 * @admitted: by the parent: the members below are valid, and workers may join
 * @weight: workers of the whole tree
 * @rank0: rank of worker 0 among them
 * @depth: of the job
 * @quorum: as the parent says
 * @first_round: that the parent takes from this job
 * @ifindex: port of the relay, 0: none
 * @incarnation: of the job's maps, as the relay has it
 * @asked_at: when a worker was last refused because @admitted was false
 * @text: state, for people
 */
struct job_place {
	bool admitted;
	uint32_t weight, rank0, depth, quorum, first_round;
	int ifindex;
	uint64_t incarnation;
	uint64_t asked_at;
	char text[SAINA_TEXT_LEN];
};

struct job_aux {
	bool status_due;	/* send a STATUS to all live workers */
	bool shm_due;		/* its workers have changed since shm_update() */
	uint64_t missing;	/* live workers that round missing_round waits for */
	uint32_t missing_round;
	char awaited[SAINA_STATUS_TEXT_LEN];	/* what keeps those away that are waited for; empty: unknown */
	struct job_place place;
	uint32_t restart_round;	/* of a root: the round to begin with when it is forming, at least */
	struct worker_aux worker[SAINA_WORKERS_MAX];
};

/**
 * struct jobs_ops - notifications
 * @changed: @cmd is the family's SAINA_CMD_*_NTF; @job NULL: the limits;
 *	@worker < 0: the job itself
 * @event: a complete event of the core or of the agent
 * @save: save the state: a reply is about to confirm a change.  Return: 0, or negative errno and
 *	the sentence @why
 */
struct jobs_ops {
	void (*changed)(struct agent *a, int cmd, const struct saina_job *job, int worker);
	void (*event)(struct agent *a, const struct saina_event *ev, const char *text);
	int (*save)(struct agent *a, char *why, size_t size);
};

struct jobs {
	const struct jobs_ops *ops;
	struct saina_core *core;
	struct job_aux *aux[SAINA_JOBS_MAX];
	struct source touch;	/* a timer: maps of new jobs are read */
	bool changed;		/* control_flush() has work */
	bool unsaved;		/* the state file is out of date */
	char unsaved_why[SAINA_TEXT_LEN]; /* "": it can be written, as far as is known */
	struct source retry;	/* a timer: saves what could not be saved */
};

int jobs_init(struct agent *a, const struct jobs_ops *ops);
void jobs_uninit(struct agent *a);
/* Validates the jobs of a configuration.  Needs no data path. */
int jobs_check(const struct config *cfg, char *text, size_t size);
/* Calls @fn for each live worker of each job, which may end it. */
void jobs_each_alive(struct agent *a,
		     void (*fn)(struct agent *a, const struct saina_job *job, int w, void *arg),
		     void *arg);
struct worker_aux *jobs_worker(struct agent *a, const struct saina_job *job, int w);
bool jobs_alive(const struct saina_job *job, int w);
/* The policy in force: the pending one as soon as the data path has adopted it. */
const struct saina_policy *jobs_policy(struct agent *a, const struct saina_job *job);
/* The data path's view of the job.  Return: false if it has none of this generation. */
bool jobs_rt(struct agent *a, const struct saina_job *job, struct saina_job_rt *rt);
uint32_t jobs_next_round(struct agent *a, const struct saina_job *job);
/* Sends an event of the agent.  The caller sets type, job, worker, a and b of @ev. */
void jobs_event(struct agent *a, struct saina_event *ev, const char *text);
/* Saves unsaved changes.  They survive a crash from here on, unless unsaved_why says why not. */
void jobs_commit(struct agent *a);

#endif /* AGENT_JOBS_H */
