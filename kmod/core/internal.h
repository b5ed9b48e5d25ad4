/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the job core share: the table, the steps of a change
 * (job.c), validation (check.c, schedule.c), memory and the worker table
 * (worker.c).
 */
#ifndef _SAINA_CORE_INTERNAL_H
#define _SAINA_CORE_INTERNAL_H

#include "core/core.h"

struct saina_core {
	const struct saina_core_ops *ops;
	void *ctx;
	struct saina_limits limits;
	__u32 jobs;	  /* in the table */
	__u64 memory;	  /* of all jobs */
	__u32 generation; /* last given out */
	struct saina_core_table *t; /* NULL until there is a first job */
};

struct saina_core_table {
	struct saina_job *job[SAINA_JOBS_MAX];
	/* too large for a kernel stack: the change in the making; a smaller job, to be proposed */
	struct saina_job next, fit;
	struct saina_job_conf conf_old, conf_new;
};

/* Before a job is added: memory for the table.  Look-ups do without. */
int saina_core_prepare(struct saina_core *c, struct saina_core_err *err);

static inline unsigned long long saina_mib(__u64 bytes)
{
	return (bytes + (1 << 20) - 1) >> 20;
}

static inline int saina_worker_alive(const struct saina_worker *w)
{
	return w->state == SAINA_WORKER_STATE_ALIVE || w->state == SAINA_WORKER_STATE_SLOW;
}

static inline __u32 saina_job_segments(const struct saina_job *job, __u64 elements)
{
	const __u32 each = SAINA_SEGMENT_ELEMS(job->elem, job->payload);

	return saina_div(elements + each - 1, each);
}

/* job.c: the steps of a change */
void saina_job_restart(struct saina_core *c, struct saina_job *job, __u32 first_round);
void saina_job_masks(struct saina_job *job);
int saina_job_admit(struct saina_core *c, struct saina_job *job, struct saina_core_err *err);
int saina_job_commit(struct saina_core *c, struct saina_job *old, struct saina_core_err *err);
int saina_job_insert(struct saina_core *c, const struct saina_job **out,
		     struct saina_core_err *err);
void saina_job_announce(struct saina_core *c, const struct saina_job *job, int old_state);
void saina_core_event(struct saina_core *c, const struct saina_job *job, int type, int worker,
		      __u64 a, __u64 b);
void saina_core_notify(struct saina_core *c, int cmd, const struct saina_job *job, int worker);

/* memory.c */
void saina_job_memory(struct saina_job *job);
void saina_job_fit(const struct saina_core *c, struct saina_job *job, __u64 has);
int saina_job_room(struct saina_core *c, const struct saina_job *job, __u64 has, unsigned int attr,
		   struct saina_core_err *err);

/* check.c: 0, or a refusal in @err and its errno */
int saina_name_check(const char *name, struct saina_core_err *err);
int saina_text_check(const char *text, unsigned int attr, const char *what,
		     struct saina_core_err *err);
int saina_job_token(struct saina_job *job, const struct saina_job_attrs *req,
		    struct saina_core_err *err);
int saina_elem_check(const struct saina_core *c, unsigned int elem, struct saina_core_err *err);
int saina_exponent_check(int exponent, struct saina_core_err *err);
int saina_job_elem(const struct saina_core *c, struct saina_job *job,
		   const struct saina_job_attrs *req, struct saina_core_err *err);
int saina_job_reference(struct saina_job *job, const struct saina_job_attrs *req,
			struct saina_core_err *err);
int saina_job_geometry(struct saina_job *job, const struct saina_job_attrs *req,
		       struct saina_core_err *err);
int saina_job_size(struct saina_job *job, __u64 elements, unsigned int attr,
		   struct saina_core_err *err);
int saina_job_times(struct saina_job *job, const struct saina_job_attrs *req,
		    struct saina_core_err *err);
int saina_job_state_set(struct saina_job *job, int state, struct saina_core_err *err);
/* tree.c: the same */
int saina_job_tree(struct saina_job *job, const struct saina_job_attrs *req,
		   struct saina_core_err *err);
int saina_job_tree_check(const struct saina_job *job, struct saina_core_err *err);
int saina_tree_policy(const struct saina_job *job, const struct saina_policy *p,
		      struct saina_core_err *err);
void saina_tree_show(const struct saina_job *job, struct saina_job_attrs *a);
/* schedule.c: the same */
int saina_job_policy(struct saina_core *c, struct saina_job *job,
		     const struct saina_job_attrs *req, struct saina_core_err *err);
int saina_job_k(struct saina_job *job, const struct saina_job_attrs *req,
		struct saina_core_err *err);
void saina_job_schedule_settle(struct saina_core *c, struct saina_job *job);
int saina_job_schedule_check(const struct saina_job *job, struct saina_core_err *err);
__u32 saina_job_first_round(const struct saina_job *job);

/* worker.c */
void saina_worker_announce(struct saina_core *c, const struct saina_job *job, int w, int old);

#endif /* _SAINA_CORE_INTERNAL_H */
