/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The job core: job table, validation, policies, worker table.  Freestanding C,
 * compiled into saina.ko and into sainad, so that the two control planes cannot
 * differ.  It knows neither netlink nor BPF maps: its owner decodes requests into
 * attributes (attrs.h), serialises all calls (a lock in the kernel, one thread in
 * the agent) and learns of every change through struct saina_core_ops.
 */
#ifndef _SAINA_CORE_H
#define _SAINA_CORE_H

#include "core/attrs.h"
#include "core/policy.h"
#include "core/err.h"
#include "saina/bpf.h"
#include "linux/saina.h"

struct saina_core;

/* @jobs: how many; @memory_job: bytes of map memory of each; @memory: of all together. */
struct saina_limits {
	__u32	jobs;
	__u64	memory_job;
	__u64	memory;
};

/* A job and its workers as the core keeps them: the owner reads, the core writes. */
struct saina_worker {
	char	name[SAINA_NAME_LEN];
	__u8	state;			/* enum saina_worker_state */
	__u32	round;			/* it would send first; until the job runs, 0: any */
	struct saina_binding bind;
};

#define SAINA_TOKEN_FILE_LEN 108

/* The place of a job in its parent, another job. */
struct saina_uplink {
	__be32	address;		/* of the parent's agent; 0: there is no parent */
	__be16	port;			/* its control port */
	__u8	worker;			/* of the parent: this job */
	char	job[SAINA_NAME_LEN];	/* the parent's name or number */
	char	token_file[SAINA_TOKEN_FILE_LEN]; /* "": the parent has no token */
};

struct saina_job {
	__u16	id;
	__u8	state;			/* enum saina_job_state */
	__u8	workers;
	__u8	elem;
	__s16	exponent;		/* integer = round(value * 2^exponent) */
	__u8	by_reference;		/* enum saina_reference */
	__u8	elements_auto;		/* 1: @elements are the first worker's; 0 elements: none */
	__u16	payload;
	__u16	heartbeat_ms;
	__u16	dead_ms;
	__u32	pool;
	__u32	ring;
	__u32	ring_most;		/* as asked for; with @elements_auto @ring may be smaller */
	__u32	segments;
	__u32	generation;
	__u32	first_round;		/* of the data path's state, 0 for a fresh job */
	__u64	elements;
	__u64	memory;			/* bytes of maps (Documentation/architecture.rst, 5) */
	__u64	active;
	__u64	relay;
	char	name[SAINA_NAME_LEN];
	__u8	token[SAINA_TOKEN_LEN];
	struct saina_policy policy;
	struct saina_policy next;	/* to come, seq 0: none */
	__u32	next_from;		/* not before this round */
	__u16	next_on;		/* bits 1 << saina_event_type, 0: no event */
	__u8	k_set;			/* by a controller, 0: by none */
	__u8	controlled;		/* it has said that it is the job's controller */
	__u16	weight[SAINA_WORKERS_MAX]; /* workers that each stands for; 0: 1, and so has each */
	struct saina_uplink uplink;
	/* with an uplink worker[workers], too: takes sums to the parent and brings its results */
	struct saina_worker worker[SAINA_WORKERS_MAX];
};

#define SAINA_INT16_MOST 64 /* workers of a tree of int16 */

static inline int saina_job_has_uplink(const struct saina_job *job)
{
	return job->uplink.address != 0;
}

/* How many of @worker a job uses: its own, and that of its uplink. */
static inline int saina_job_places(const struct saina_job *job)
{
	return job->workers + saina_job_has_uplink(job);
}

/**
 * struct saina_core_ops - what the core needs from its owner
 * @alloc: zeroed memory
 * @free: of @alloc
 * @publish: a job came, changed or (@gone) goes: publish its snapshot.  An
 *	error undoes the change and is returned by the call that caused it.  A job without
 *	segments does not know its size yet: no message can be of it
 * @notify: after a change is in force: @cmd is SAINA_CMD_JOB_NTF,
 *	JOB_DEL_NTF, WORKER_NTF or WORKER_DEL_NTF (@worker valid), or LIMITS_NTF
 *	(@job NULL)
 * @event: something for the events group (state changes, joins, deaths)
 * @policy_seq: of the policy that the data path has adopted last, 0: not known; may be NULL
 * @floats: the data path sums float32 and bfloat16, too, but not int16
 */
struct saina_core_ops {
	void *(*alloc)(void *ctx, unsigned long size);
	void (*free)(void *ctx, void *p);
	int (*publish)(void *ctx, const struct saina_job *job, int gone,
		       struct saina_core_err *err);
	void (*notify)(void *ctx, int cmd, const struct saina_job *job, int worker);
	void (*event)(void *ctx, const struct saina_event *ev);
	__u32 (*policy_seq)(void *ctx, const struct saina_job *job);
	int floats;
};

struct saina_core *saina_core_new(const struct saina_core_ops *ops, void *ctx,
				  const struct saina_limits *limits);
void saina_core_free(struct saina_core *c);

int saina_core_job_new(struct saina_core *c, const struct saina_job_attrs *req,
		       const struct saina_job **job, struct saina_core_err *err);
int saina_core_job_set(struct saina_core *c, const struct saina_job_attrs *req,
		       const struct saina_job **job, struct saina_core_err *err);
/* The socket of a job's controller is closed. */
void saina_core_controller_gone(struct saina_core *c, __u16 id);
int saina_core_job_del(struct saina_core *c, const struct saina_job_attrs *req,
		       struct saina_core_err *err);
int saina_core_worker_set(struct saina_core *c, const struct saina_worker_attrs *req,
			  const struct saina_job **job, struct saina_core_err *err);
int saina_core_worker_del(struct saina_core *c, const struct saina_worker_attrs *req,
			  struct saina_core_err *err);
int saina_core_limits_set(struct saina_core *c, const struct saina_limits *limits,
			  struct saina_core_err *err);
void saina_core_limits_get(const struct saina_core *c, struct saina_limits *limits,
			   __u32 *jobs_used, __u64 *memory_used);

/*
 * States of a job, as the core enforces them:
 *  - a job is FORMING until as many workers are alive as it has (then RUNNING
 *    by itself) or until JOB_SET STATE running with at least one alive;
 *  - a job that begins to run begins at the round that its workers would send first: of all
 *    rounds that live ones have named in their JOINs, 0 apart, the one that most others are less
 *    than ring rounds behind, of equals the lowest; none above SAINA_ROUND_JOIN that not more
 *    than half of its workers support.  Nobody alone moves those who agree, and none ends a job;
 *  - when the last live worker of a RUNNING job leaves or dies the job goes
 *    back to FORMING with a new generation and first_round 0: the next set of
 *    workers begins again, under the policy that was in force; one that waited for a
 *    round or an event that has not come waits on;
 *  - a job with weights does so only when it is stopped: its nodes keep what it has summed,
 *    and come back with the rest;
 *  - the elements of a job with elements_auto are those of the first worker that joins while
 *    no other is alive, and the others must have as many; another number is a new generation;
 *  - STOPPED (JOB_SET) refuses joins and packets; RUNNING or FORMING lifts it;
 *  - a new policy gets seq + 1 and is only *asked for*: the data path adopts
 *    it at the first round it opens afterwards, or on its schedule;
 *  - while one waits for its schedule no other can be asked for, but it can be cancelled.
 */

/* Look-up: by SAINA_HAS(id) or name.  NULL (err filled) if there is none. */
const struct saina_job *saina_core_job_find(const struct saina_core *c, int has_id,
					    __u16 id, const char *name,
					    struct saina_core_err *err);
/* Iteration: first job with id >= @from, NULL at the end. */
const struct saina_job *saina_core_job_next(const struct saina_core *c, int from);

/* The snapshot of a job for the data path: pure function of the job. */
void saina_core_snapshot(const struct saina_job *job, struct saina_job_conf *conf);

/* Workers that the first @n of a job stand for. */
__u32 saina_job_weight(const struct saina_job *job, int n);

#endif /* _SAINA_CORE_H */
