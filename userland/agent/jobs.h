/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Owner of the job core: carries its changes to the data path and to those who
 * have to know, and keeps what the agent knows of a worker beyond the core.
 */
#ifndef AGENT_JOBS_H
#define AGENT_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core.h"
#include "agent/agent.h"

/**
 * struct worker_numerics - of what a worker sends (workers/numbers.c)
 * @known: the counters below hold something
 * @nonfinite: its counter at the last look
 * @added, @coarse: its counters where the present look at its scales began
 * @nonfinite_at: NaN or infinities were found then, in @segments segments that came before @round; 0: never
 * @coarse_at: it was found then to make @percent of its slots coarser; 0: never
 */
struct worker_numerics {
	bool known;
	uint64_t nonfinite, added, coarse;
	uint64_t nonfinite_at, segments;
	uint32_t round;
	unsigned int percent;
	uint64_t coarse_at;
};

/**
 * struct worker_aux - what the agent knows of a worker beyond the core
 * @nonce: of the JOIN that admitted it
 * @last_heard: when it was last heard, by control message or gradient
 * @ended_at: when its life of before ended, 0: it is alive, or nothing is known
 * @round: of its last heartbeat
 * @formed: admitted while the job was forming
 * @first_round: else, the round it was told to begin with
 * @ready: it has said READY, and
 * @fast: .. that an answer to its probes came
 * @xdp_works: .. from the XDP program, since its port has that: what that redirects gets to it
 * @probe: not 0: a number to be had back when that is shown, or shown anew
 * @last_probe: the last such number
 * @signs_read: its counters were looked at since it was last heard
 * @signs: sum of the counters that only it can have caused, at last look
 * @stale_round, @stale_at: it asked for this round, which is gone; last told then
 * @counted: @in_time and @late hold something
 * @in_time, @late: gradients, at last look of the slow check
 * @reported: its heartbeats say @sent, @resent, @rtt_us, @window (struct saina_report)
 * @refused, @refused_ms, @unanswered_ms: likewise; else 0
 * @arrived: as @seen, at last look of the slow check; it changed before @arrived_at
 * @unheard: it was said that nothing arrives of it
 * @late_total: late gradients that it has found, those that were not sent any more among them
 * @numbers: of its life and those before
 * @shm_session: the session that has its input array, 0: none has
 */
struct worker_aux {
	uint64_t nonce;
	uint64_t last_heard;
	uint64_t ended_at;
	uint32_t round;
	uint32_t first_round;
	bool formed;
	bool ready;
	bool fast;
	bool xdp_works;
	uint32_t probe, last_probe;
	bool signs_read;
	bool counted;
	uint64_t shm_session;
	uint32_t stale_round;
	uint64_t stale_at;
	uint64_t signs;
	uint64_t in_time, late;
	uint64_t late_total;
	bool reported;
	uint64_t sent, resent;
	uint32_t rtt_us, window;
	uint32_t refused, refused_ms, unanswered_ms;
	bool unheard;
	uint64_t arrived, arrived_at;
	struct worker_numerics numerics;
};

struct job_aux {
	bool status_due;	/* all live workers are to get a STATUS */
	uint32_t checked_generation, checked_round;	/* of the slow check */
	struct worker_aux worker[SAINA_WORKERS_MAX];
};

/**
 * struct jobs_ops - who has to know
 * @changed: @cmd is the family's SAINA_CMD_*_NTF; @job NULL: the limits;
 *	@worker < 0: the job itself
 * @event: of the core or of the agent, complete
 * @save: what the next start needs has changed, and the change is about to be
 *	promised to somebody
 */
struct jobs_ops {
	void (*changed)(struct agent *a, int cmd, const struct saina_job *job, int worker);
	void (*event)(struct agent *a, const struct saina_event *ev, const char *text);
	void (*save)(struct agent *a);
};

struct jobs {
	const struct jobs_ops *ops;
	struct saina_core *core;
	struct job_aux *aux[SAINA_JOBS_MAX];
	bool changed;		/* control_flush() has something to do */
	bool unsaved;		/* ... saving the state among it */
};

int jobs_init(struct agent *a, const struct jobs_ops *ops);
void jobs_uninit(struct agent *a);
/* Checks the jobs of a configuration without a data path. */
int jobs_check(const struct config *cfg, char *text, size_t size);
/* Calls @fn for each live worker of each job, which may end it. */
void jobs_each_alive(struct agent *a,
		     void (*fn)(struct agent *a, const struct saina_job *job, int w, void *arg),
		     void *arg);
struct worker_aux *jobs_worker(struct agent *a, const struct saina_job *job, int w);
bool jobs_alive(const struct saina_job *job, int w);
/* That rounds have from now on: what was to come is it once the data path has adopted it. */
const struct saina_policy *jobs_policy(struct agent *a, const struct saina_job *job);
uint32_t jobs_next_round(struct agent *a, const struct saina_job *job);
/* An event of the agent: completes @ev, but for type, job, worker, a and b. */
void jobs_event(struct agent *a, struct saina_event *ev, const char *text);
/* Saves what has changed: no crash from here on forgets it. */
void jobs_commit(struct agent *a);

#endif /* AGENT_JOBS_H */
