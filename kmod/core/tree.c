// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs of several hosts: a root, whose workers may be nodes, and jobs with an uplink, each of
 * which is one node of its parent.
 */
#include "core/os.h"
#include "core/internal.h"

/**
 * saina_job_weight() - how many workers some of a job stand for
 * @job: the job
 * @n: the first @n of its workers; job->workers: all
 *
 * With @n the number of a worker it is the rank of the first worker that this one stands for.
 *
 * Return: their number
 */
__u32 saina_job_weight(const struct saina_job *job, int n)
{
	__u32 sum = 0;
	int w;

	for (w = 0; w < n; w++)
		sum += job->weight[w] ? job->weight[w] : 1;
	return sum;
}

static int is_tree(const struct saina_job *job)
{
	return job->weight[0] || saina_job_has_uplink(job);
}

static const char *role(const struct saina_job *job)
{
	return saina_job_has_uplink(job) ? "with an uplink" : "with nodes";
}

static int weights_read(struct saina_job *job, const __u16 *weights, struct saina_core_err *err)
{
	__u32 sum = 0;
	int w;

	for (w = 0; w < SAINA_WORKERS_MAX; w++) {
		if (w < job->workers ? !weights[w] : weights[w])
			return saina_refuse(err, -EINVAL, SAINA_A_JOB_WEIGHTS,
					    "weights: job %s has %u workers and needs as many "
					    "weights, each 1 or more",
					    job->name, job->workers);
		if (sum + weights[w] > SAINA_RANKS_MAX)
			return saina_refuse(err, -ERANGE, SAINA_A_JOB_WEIGHTS,
					    "weights: up to worker %d they add up to more than %d, the "
					    "most workers a tree can have",
					    w, SAINA_RANKS_MAX);
		sum += weights[w];
		job->weight[w] = weights[w];
	}
	return 0;
}

static int address_is_host(__be32 address)
{
	__u32 ip = saina_cpu32(address);

	return ip >> 24 && ip >> 24 != 127 && ip >> 24 < 224;
}

static int uplink_read(struct saina_job *job, const struct saina_uplink_attrs *a,
		       struct saina_core_err *err)
{
	static const __u64 given = 1ull << SAINA_A_UPLINK_ADDRESS | 1ull << SAINA_A_UPLINK_PORT |
				   1ull << SAINA_A_UPLINK_JOB | 1ull << SAINA_A_UPLINK_WORKER |
				   1ull << SAINA_A_UPLINK_TOKEN_FILE;
	struct saina_uplink *u = &job->uplink;
	int ret;

	if (a->has & ~given)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_UPLINK,
				    "uplink: has an attribute that only replies have");
	if (!SAINA_HAS(a, SAINA_A_UPLINK_ADDRESS) || !address_is_host(a->address))
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_UPLINK,
				    "uplink: needs the address of the host with the parent, as its "
				    "network knows it");
	if (!SAINA_HAS(a, SAINA_A_UPLINK_JOB) || !a->job[0])
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_UPLINK,
				    "uplink: needs parent-job, the name or number of the parent");
	if (!SAINA_HAS(a, SAINA_A_UPLINK_WORKER) || a->worker >= SAINA_WORKERS_MAX)
		return saina_refuse(err, -ERANGE, SAINA_A_JOB_UPLINK,
				    "uplink: needs parent-worker, 0..%d: which worker of the parent "
				    "job %s is",
				    SAINA_WORKERS_MAX - 1, job->name);
	ret = saina_text_check(a->job, SAINA_A_JOB_UPLINK, "parent-job", err);
	if (!ret)
		ret = saina_text_check(a->token_file, SAINA_A_JOB_UPLINK, "parent-token-file", err);
	if (ret)
		return ret;
	if (a->token_file[0] && a->token_file[0] != '/')
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_UPLINK,
				    "parent-token-file: must be a whole path, beginning with /");
	memset(u, 0, sizeof(*u));
	u->address = a->address;
	u->port = SAINA_HAS(a, SAINA_A_UPLINK_PORT) && a->port ? a->port :
								 saina_be16(SAINA_PORT_CTRL);
	u->worker = a->worker;
	memcpy(u->job, a->job, sizeof(u->job));
	memcpy(u->token_file, a->token_file, sizeof(u->token_file));
	return 0;
}

/**
 * saina_job_tree() - the part of a request that makes a job a root with nodes, or gives it a parent
 * @job: with workers and type
 * @req: WEIGHTS, UPLINK
 * @err: out on failure; may be NULL
 *
 * Return: 0, -EINVAL, -ERANGE, -EBUSY, -EOPNOTSUPP
 */
int saina_job_tree(struct saina_job *job, const struct saina_job_attrs *req,
		   struct saina_core_err *err)
{
	int ret = 0;

	if (SAINA_HAS(req, SAINA_A_JOB_WEIGHTS))
		ret = weights_read(job, req->weights, err);
	if (!ret && SAINA_HAS(req, SAINA_A_JOB_UPLINK)) {
		if (job->active)
			return saina_refuse(err, -EBUSY, SAINA_A_JOB_UPLINK,
					    "uplink: job %s has live workers, whose sums may be under "
					    "way: end them first",
					    job->name);
		ret = uplink_read(job, &req->uplink, err);
	}
	return ret ? ret : saina_job_tree_check(job, err);
}

/**
 * saina_job_tree_check() - can a job have nodes, or a parent?
 * @job: with workers and type
 * @err: out on failure; may be NULL
 *
 * Return: 0, -EINVAL, -EOPNOTSUPP
 */
int saina_job_tree_check(const struct saina_job *job, struct saina_core_err *err)
{
	const unsigned int attr = saina_job_has_uplink(job) ? SAINA_A_JOB_UPLINK :
							      SAINA_A_JOB_WEIGHTS;

	if (!is_tree(job))
		return 0;
	if (saina_job_has_uplink(job) && job->workers == SAINA_WORKERS_MAX)
		return saina_refuse(err, -EOPNOTSUPP, attr,
				    "uplink: takes the place of a worker: at most %d workers are left, "
				    "and job %s has %u",
				    SAINA_WORKERS_MAX - 1, job->name, job->workers);
	if (job->elements_auto)
		return saina_refuse(err, -EOPNOTSUPP, SAINA_A_JOB_ELEMENTS_AUTO,
				    "elements auto: a job %s needs a number, the same on all hosts",
				    role(job));
	if (!SAINA_ELEM_IS_INT(job->elem))
		return saina_refuse(err, -EOPNOTSUPP, attr,
				    "a job %s must be of int32 or int16, which carry float tensors, too",
				    role(job));
	if (job->elem == SAINA_ELEM_INT16 && saina_job_weight(job, job->workers) > SAINA_INT16_MOST)
		return saina_refuse(err, -EOPNOTSUPP, attr,
				    "weights: sums of int16 have room for %d workers, and these are "
				    "%u: use int32",
				    SAINA_INT16_MOST, saina_job_weight(job, job->workers));
	return 0;
}

/**
 * saina_tree_policy() - can a policy be that of a job with nodes, or with a parent?
 * @job: the job
 * @p: the policy
 * @err: out on failure; may be NULL
 *
 * Return: 0 or -EOPNOTSUPP
 */
int saina_tree_policy(const struct saina_job *job, const struct saina_policy *p,
		      struct saina_core_err *err)
{
	if (!is_tree(job) || (!saina_policy_has_steps(p) && p->mode != SAINA_POLICY_CODED &&
			      (p->mode != SAINA_POLICY_SFCD || !saina_job_has_uplink(job))))
		return 0;
	return saina_refuse(err, -EOPNOTSUPP, SAINA_A_JOB_POLICY,
			    "policy: %s is not for a job %s: use bsp, fastest or timeout%s",
			    saina_policy_row(p->mode)->name, role(job),
			    p->mode == SAINA_POLICY_SFCD ? "; the root may have sfcd" : "");
}

/**
 * saina_tree_show() - attributes of a job's place in a tree
 * @job: the job
 * @a: out, added to what it has
 */
void saina_tree_show(const struct saina_job *job, struct saina_job_attrs *a)
{
	const struct saina_uplink *u = &job->uplink;

	if (job->weight[0]) {
		memcpy(a->weights, job->weight, sizeof(a->weights));
		SAINA_SET(a, SAINA_A_JOB_WEIGHTS);
	}
	if (!saina_job_has_uplink(job))
		return;
	SAINA_PUT(&a->uplink, SAINA_A_UPLINK_ADDRESS, address, u->address);
	SAINA_PUT(&a->uplink, SAINA_A_UPLINK_PORT, port, u->port);
	SAINA_PUT(&a->uplink, SAINA_A_UPLINK_WORKER, worker, u->worker);
	SAINA_PUT_TEXT(&a->uplink, SAINA_A_UPLINK_JOB, job, u->job);
	if (u->token_file[0])
		SAINA_PUT_TEXT(&a->uplink, SAINA_A_UPLINK_TOKEN_FILE, token_file, u->token_file);
	SAINA_SET(a, SAINA_A_JOB_UPLINK);
}
