// SPDX-License-Identifier: GPL-2.0
/*
 * Which policy a job has when: the one asked for, the one to come and what it waits for,
 * and k where a controller sets it; and the round that it begins with.
 */
#include "core/os.h"
#include "core/internal.h"

#define ON_ALLOWED                                                                 \
	(1u << SAINA_EV_K | 1u << SAINA_EV_DEGRADED | 1u << SAINA_EV_WORKER_JOINED | \
	 1u << SAINA_EV_WORKER_DEAD)

static int is_waiting(const struct saina_job *job)
{
	return job->next.seq != 0;
}

static __u32 seq_next(const struct saina_job *job)
{
	return (is_waiting(job) ? job->next.seq : job->policy.seq) + 1;
}

static void forget_next(struct saina_job *job)
{
	memset(&job->next, 0, sizeof(job->next));
	job->next_from = 0;
	job->next_on = 0;
}

/*
 * k that a controller sets is of the policy if that one is external, else of the one to
 * come.  It goes with that policy; the data path follows the same rule (round_k()).
 */
static int k_is_of_policy(const struct saina_job *job)
{
	return job->policy.mode == SAINA_POLICY_EXTERNAL;
}

/* Once what was to come is in force, it is the policy of the job.  To be called before the
 * generation changes: the data path says what it has adopted in the present one.
 */
void saina_job_schedule_settle(struct saina_core *c, struct saina_job *job)
{
	if (!is_waiting(job) || !c->ops->policy_seq ||
	    c->ops->policy_seq(c->ctx, job) != job->next.seq)
		return;
	if (k_is_of_policy(job))
		job->k_set = 0;
	job->policy = job->next;
	forget_next(job);
	saina_job_memory(job);
}

static int cancel(struct saina_job *job, struct saina_core_err *err)
{
	__u32 seq = seq_next(job);

	if (!is_waiting(job))
		return saina_refuse(err, -ENOENT, SAINA_A_JOB_POLICY_CANCEL,
				    "job %s: no policy waits to come into force", job->name);
	forget_next(job);
	if (!k_is_of_policy(job))
		job->k_set = 0;
	/* it may come into force at this moment: then this takes it back */
	job->policy.seq = seq;
	return 0;
}

static int on_refuse(struct saina_core_err *err)
{
	return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY_ON,
			    "policy: on: must be one or more of k, degraded, worker-joined and worker-dead");
}

static int schedule_check(__u32 from, __u32 on, struct saina_core_err *err)
{
	if (from > SAINA_ROUND_MAX)
		return saina_refuse(err, -ERANGE, SAINA_A_JOB_POLICY_FROM,
				    "policy: from round %u: rounds are 0..%u", from,
				    SAINA_ROUND_MAX);
	return on & ~ON_ALLOWED ? on_refuse(err) : 0;
}

/* Does the policy suit the job? */
static int suits_check(const struct saina_job *job, const struct saina_policy *p,
		       struct saina_core_err *err)
{
	int ret = saina_tree_policy(job, p, err);

	if (ret)
		return ret;
	if (saina_policy_has_steps(p) && job->by_reference == SAINA_REFERENCE_ONLY)
		return saina_refuse(err, -EOPNOTSUPP, SAINA_A_JOB_POLICY,
				    "policy: %s needs messages, and job %s is by-reference-only",
				    saina_policy_row(p->mode)->name, job->name);
	if (!saina_policy_has_steps(p) || job->elem == SAINA_ELEM_INT32)
		return saina_policy_lead_check(p, job->ring, err);
	return saina_refuse(err, -EOPNOTSUPP, SAINA_A_JOB_POLICY,
			    "policy: %s needs a job of int32, which carries float tensors too; job %s has another type",
			    saina_policy_row(p->mode)->name, job->name);
}

static int policy_set(struct saina_core *c, struct saina_job *job,
		      const struct saina_job_attrs *req, struct saina_core_err *err)
{
	int scheduled = SAINA_HAS(req, SAINA_A_JOB_POLICY_FROM) ||
			SAINA_HAS(req, SAINA_A_JOB_POLICY_ON);
	__u32 from = SAINA_HAS(req, SAINA_A_JOB_POLICY_FROM) ? req->policy_from : 0;
	__u32 on = SAINA_HAS(req, SAINA_A_JOB_POLICY_ON) ? req->policy_on : 0;
	struct saina_policy p;
	int ret;

	saina_job_schedule_settle(c, job);
	if (SAINA_HAS(req, SAINA_A_JOB_POLICY_CANCEL) && req->policy_cancel) {
		ret = cancel(job, err);
		if (ret)
			return ret;
	}
	if (SAINA_HAS(req, SAINA_A_JOB_POLICY))
		saina_policy_read(&req->policy, &p);
	else if (scheduled)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
				    "policy: policy-from and policy-on need a policy to schedule");
	else if (job->policy.seq)
		return 0;
	else
		saina_policy_preset(&saina_policy_rows[0], &p);
	ret = saina_policy_check(&p, job->workers, err);
	if (!ret)
		ret = suits_check(job, &p, err);
	if (!ret && SAINA_HAS(req, SAINA_A_JOB_POLICY_ON) && !on)
		ret = on_refuse(err);
	if (!ret)
		ret = schedule_check(from, on, err);
	if (ret)
		return ret;
	/* from rounds to steps and back, or to other groups, takes its time, and until then there
	 * is no other
	 */
	if (job->active && (saina_policy_has_steps(&p) != saina_policy_has_steps(&job->policy) ||
			    !saina_policy_same_groups(&p, &job->policy)))
		scheduled = 1;
	if (is_waiting(job))
		return saina_refuse(err, -EBUSY, SAINA_A_JOB_POLICY,
				    "job %s: another policy waits to come into force: cancel it (saina policy cancel), or wait until it is in force",
				    job->name);
	if (!scheduled) {
		if (saina_policy_same(&p, &job->policy))
			return 0;
		p.seq = seq_next(job);
		job->policy = p;
		job->k_set = 0;
		return 0;
	}
	p.seq = seq_next(job);
	job->next = p;
	job->next_from = from;
	job->next_on = on;
	return 0;
}

/* The policy asked for; a job that has none yet gets the first of the table. */
int saina_job_policy(struct saina_core *c, struct saina_job *job,
		     const struct saina_job_attrs *req, struct saina_core_err *err)
{
	int ret = policy_set(c, job, req, err);

	saina_job_memory(job);
	return ret;
}

static int k_check(const struct saina_job *job, unsigned int k, struct saina_core_err *err)
{
	if (k && k <= job->workers)
		return 0;
	return saina_refuse(err, -ERANGE, SAINA_A_JOB_K_SET,
			    "k: %u: must be 1..%d, the workers of the job", k, job->workers);
}

/* k of the rounds to come, from a controller; and that there is one. */
int saina_job_k(struct saina_job *job, const struct saina_job_attrs *req,
		struct saina_core_err *err)
{
	const struct saina_policy_row *row;
	int ret;

	if (SAINA_HAS(req, SAINA_A_JOB_CONTROLLER))
		job->controlled = !!req->controller;
	if (!SAINA_HAS(req, SAINA_A_JOB_K_SET))
		return 0;
	row = saina_policy_row(job->policy.mode);
	if (!k_is_of_policy(job) && job->next.mode != SAINA_POLICY_EXTERNAL)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_K_SET,
				    "k: the policy of job %s is %s: only with external:k0=K can k be set",
				    job->name, row ? row->name : "another");
	ret = k_check(job, req->k_set, err);
	if (ret)
		return ret;
	job->k_set = req->k_set;
	return 0;
}

/* Checks the policy to come and k_set of a job that is restored, whose policy is checked. */
int saina_job_schedule_check(const struct saina_job *job, struct saina_core_err *err)
{
	int ret;

	if (job->next.mode || is_waiting(job)) {
		ret = saina_policy_check(&job->next, job->workers, err);
		if (!ret)
			ret = suits_check(job, &job->next, err);
		if (!ret)
			ret = schedule_check(job->next_from, job->next_on, err);
		if (!ret && job->next.seq != job->policy.seq + 1)
			ret = saina_refuse(err, -EINVAL, 0, "policy: number %u cannot follow %u",
					   job->next.seq, job->policy.seq);
		if (ret && err)
			err->attr = SAINA_A_JOB_POLICY_NEXT;
		if (ret)
			return ret;
	}
	return job->k_set ? k_check(job, job->k_set, err) : 0;
}

/* How many live workers are at @round, or behind it and would find its results in the ring? */
static int support(const struct saina_job *job, __u32 round)
{
	int w, n = 0;

	for (w = 0; w < job->workers; w++)
		n += saina_worker_alive(&job->worker[w]) && job->worker[w].round &&
		     job->worker[w].round <= round && round - job->worker[w].round < job->ring;
	return n;
}

/* The round to begin with, of those that live workers have named; 0: none has. */
__u32 saina_job_first_round(const struct saina_job *job)
{
	int w, n, most = 0;
	__u32 first = 0;

	for (w = 0; w < job->workers; w++) {
		__u32 round = job->worker[w].round;

		if (!round || !saina_worker_alive(&job->worker[w]))
			continue;
		n = support(job, round);
		if (round > SAINA_ROUND_JOIN && 2 * n <= job->workers)
			continue;
		if (n < most || (n == most && round >= first))
			continue;
		most = n;
		first = round;
	}
	return first;
}
