// SPDX-License-Identifier: GPL-2.0
/*
 * The commands of the family.  A handler locks its namespace, lets the core do
 * it, and answers; what it means is in core/, what an answer looks like in
 * nlmsg.c, who may ask for what in netlink_gen.c.
 */
#include <linux/netdevice.h>
#include <net/sock.h>

#include "netlink/netlink.h"
#include "netlink/netlink_gen.h"
#include "net/nlmsg.h"
#include "netlink/nlreq.h"

/* A dump on its way, in the callback's context. */
struct dump {
	u32 job;		/* next to look at */
	u32 worker;		/* ... and of it */
	bool one_job;		/* and no other */
	bool admin;		/* tokens are shown */
	bool global;		/* counters of no job are due */
};

static struct dump *dump_of(struct netlink_callback *cb)
{
	BUILD_BUG_ON(sizeof(struct dump) > sizeof(cb->ctx));
	return (struct dump *)cb->ctx;
}

static struct saina_nlmsg_to reply_to(const struct genl_info *info, u8 cmd)
{
	return (struct saina_nlmsg_to){ info->snd_portid, info->snd_seq, 0, cmd };
}

static struct saina_nlmsg_to dump_to(const struct netlink_callback *cb, u8 cmd)
{
	return (struct saina_nlmsg_to){ NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, NLM_F_MULTI,
					cmd };
}

/* The last message in @skb is part of a dump. */
static void dump_mark(struct netlink_callback *cb, struct sk_buff *skb, unsigned int before)
{
	nl_dump_check_consistent(cb, (struct nlmsghdr *)(skb->data + before));
}

/* Sends the answer that a filler has made in @skb. */
static int answer(struct saina_nlreq *rq, struct sk_buff *skb, int failed)
{
	if (!failed)
		return genlmsg_unicast(rq->sn->net, skb, NETLINK_CB(rq->skb).portid);
	nlmsg_free(skb);
	return saina_refuse(&rq->err, failed, 0, "the answer does not fit a message");
}

/* Jobs */

int saina_nl_job_new_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct saina_nlmsg_to to = reply_to(info, SAINA_CMD_JOB_NEW);
	const struct saina_job *job;
	struct saina_job_req req;
	struct saina_nlreq rq;
	struct sk_buff *msg;
	int ret;

	/* first what can fail: a job that was made stays */
	msg = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	ret = saina_nlreq_do(&rq, skb, info, SAINA_A_JOB, SAINA_A_JOB_MAX);
	if (!ret)
		ret = saina_nlreq_job(&rq, &req);
	if (ret)
		goto err_msg;
	mutex_lock(&rq.sn->lock);
	ret = saina_core_job_new(rq.sn->core, &req, &job, &rq.err);
	if (ret)
		goto err_unlock;
	ret = saina_nlmsg_job(msg, &to, rq.sn, job, true);
	mutex_unlock(&rq.sn->lock);
	ret = answer(&rq, msg, ret);
	return ret ? saina_nlreq_refuse(&rq, ret) : 0;

err_unlock:
	mutex_unlock(&rq.sn->lock);
err_msg:
	nlmsg_free(msg);
	return saina_nlreq_refuse(&rq, ret);
}

int saina_nl_job_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct saina_job_req req;
	struct saina_nlreq rq;
	int ret;

	ret = saina_nlreq_do(&rq, skb, info, SAINA_A_JOB, SAINA_A_JOB_MAX);
	if (!ret)
		ret = saina_nlreq_job(&rq, &req);
	if (ret)
		return saina_nlreq_refuse(&rq, ret);
	mutex_lock(&rq.sn->lock);
	ret = saina_core_job_set(rq.sn->core, &req, NULL, &rq.err);
	mutex_unlock(&rq.sn->lock);
	return ret ? saina_nlreq_refuse(&rq, ret) : 0;
}

int saina_nl_job_del_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct saina_job_req req;
	struct saina_nlreq rq;
	int ret;

	ret = saina_nlreq_do(&rq, skb, info, SAINA_A_JOB, SAINA_A_JOB_MAX);
	if (!ret)
		ret = saina_nlreq_job(&rq, &req);
	if (ret)
		return saina_nlreq_refuse(&rq, ret);
	mutex_lock(&rq.sn->lock);
	ret = saina_core_job_del(rq.sn->core, &req, &rq.err);
	mutex_unlock(&rq.sn->lock);
	return ret ? saina_nlreq_refuse(&rq, ret) : 0;
}

int saina_nl_job_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct saina_nlmsg_to to = reply_to(info, SAINA_CMD_JOB_NEW);
	const struct saina_job *job;
	struct saina_nlreq rq;
	struct sk_buff *msg;
	int ret;

	ret = saina_nlreq_do(&rq, skb, info, SAINA_A_JOB, SAINA_A_JOB_MAX);
	if (ret)
		return saina_nlreq_refuse(&rq, ret);
	msg = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	mutex_lock(&rq.sn->lock);
	ret = saina_nlreq_named_job(&rq, SAINA_A_JOB_ID, SAINA_A_JOB_NAME, true, &job);
	if (ret)
		goto err_unlock;
	ret = saina_nlmsg_job(msg, &to, rq.sn, job, rq.admin);
	mutex_unlock(&rq.sn->lock);
	ret = answer(&rq, msg, ret);
	return ret ? saina_nlreq_refuse(&rq, ret) : 0;

err_unlock:
	mutex_unlock(&rq.sn->lock);
	nlmsg_free(msg);
	return saina_nlreq_refuse(&rq, ret);
}

int saina_nl_job_get_start(struct netlink_callback *cb)
{
	struct dump *d = dump_of(cb);
	struct saina_nlreq rq;
	int ret;

	ret = saina_nlreq_dump(&rq, cb, SAINA_A_JOB, SAINA_A_JOB_MAX);
	if (!ret && rq.has) {
		rq.bad = rq.nest;
		ret = saina_refuse(&rq.err, -EINVAL, 0, "a dump is of all jobs, not of one");
	}
	if (ret)
		return saina_nlreq_refuse(&rq, ret);
	d->admin = rq.admin;
	return 0;
}

int saina_nl_job_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct saina_net *sn = saina_net_get(sock_net(skb->sk));
	struct saina_nlmsg_to to = dump_to(cb, SAINA_CMD_JOB_NEW);
	const struct saina_job *job;
	struct dump *d = dump_of(cb);
	unsigned int before;

	mutex_lock(&sn->lock);
	cb->seq = sn->seq;
	for (; (job = saina_core_job_next(sn->core, d->job)); d->job = job->id + 1) {
		before = skb->len;
		if (saina_nlmsg_job(skb, &to, sn, job, d->admin))
			break;
		dump_mark(cb, skb, before);
	}
	mutex_unlock(&sn->lock);
	return skb->len;
}

/* Workers */

/* A binding to an interface that is not there would never be undone. */
static int interface_there(struct saina_nlreq *rq, u32 ifindex)
{
	struct net_device *dev;

	rcu_read_lock();
	dev = dev_get_by_index_rcu(rq->sn->net, ifindex);
	rcu_read_unlock();
	if (dev)
		return 0;
	return saina_refuse(&rq->err, -ENODEV, SAINA_A_WORKER_IFINDEX,
			    "there is no interface number %u in this network namespace", ifindex);
}

int saina_nl_worker_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct saina_worker_req req;
	struct saina_nlreq rq;
	int ret;

	ret = saina_nlreq_do(&rq, skb, info, SAINA_A_WORKER, SAINA_A_WORKER_MAX);
	if (ret)
		return saina_nlreq_refuse(&rq, ret);
	saina_nlreq_worker(&rq, &req);
	/* the lock makes dev.c see either no device, or the binding */
	mutex_lock(&rq.sn->lock);
	if (req.ifindex)
		ret = interface_there(&rq, req.ifindex);
	if (!ret)
		ret = saina_core_worker_set(rq.sn->core, &req, NULL, &rq.err);
	mutex_unlock(&rq.sn->lock);
	return ret ? saina_nlreq_refuse(&rq, ret) : 0;
}

int saina_nl_worker_del_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct saina_worker_req req;
	struct saina_nlreq rq;
	int ret;

	ret = saina_nlreq_do(&rq, skb, info, SAINA_A_WORKER, SAINA_A_WORKER_MAX);
	if (ret)
		return saina_nlreq_refuse(&rq, ret);
	saina_nlreq_worker(&rq, &req);
	mutex_lock(&rq.sn->lock);
	ret = saina_core_worker_del(rq.sn->core, &req, &rq.err);
	mutex_unlock(&rq.sn->lock);
	return ret ? saina_nlreq_refuse(&rq, ret) : 0;
}

static int named_worker(struct saina_nlreq *rq, const struct saina_job **job, int *w)
{
	const struct nlattr *id = rq->tb[SAINA_A_WORKER_ID];
	int ret;

	ret = saina_nlreq_named_job(rq, SAINA_A_WORKER_JOB_ID, SAINA_A_WORKER_JOB_NAME, true, job);
	if (ret)
		return ret;
	if (!id)
		return saina_refuse(&rq->err, -EINVAL, SAINA_A_WORKER_ID, "say which worker: 0..%u",
				    (*job)->workers - 1);
	*w = nla_get_u8(id);
	if (*w >= (*job)->workers || (*job)->worker[*w].state == SAINA_WORKER_STATE_ABSENT)
		return saina_refuse(&rq->err, -ENOENT, SAINA_A_WORKER_ID,
				    "worker %d of job %s is not there", *w, (*job)->name);
	return 0;
}

int saina_nl_worker_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct saina_nlmsg_to to = reply_to(info, SAINA_CMD_WORKER_SET);
	const struct saina_job *job;
	struct saina_nlreq rq;
	struct sk_buff *msg;
	int ret, w;

	ret = saina_nlreq_do(&rq, skb, info, SAINA_A_WORKER, SAINA_A_WORKER_MAX);
	if (ret)
		return saina_nlreq_refuse(&rq, ret);
	msg = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	mutex_lock(&rq.sn->lock);
	ret = named_worker(&rq, &job, &w);
	if (ret)
		goto err_unlock;
	ret = saina_nlmsg_worker(msg, &to, rq.sn, job, w);
	mutex_unlock(&rq.sn->lock);
	ret = answer(&rq, msg, ret);
	return ret ? saina_nlreq_refuse(&rq, ret) : 0;

err_unlock:
	mutex_unlock(&rq.sn->lock);
	nlmsg_free(msg);
	return saina_nlreq_refuse(&rq, ret);
}

/* Where a dump of workers or counters begins, and whether it is of one job. */
static int dump_jobs(struct saina_nlreq *rq, struct dump *d, int id, int name)
{
	const struct saina_job *only;
	int ret;

	mutex_lock(&rq->sn->lock);
	ret = saina_nlreq_named_job(rq, id, name, false, &only);
	if (only) {
		d->job = only->id;
		d->one_job = true;
	}
	mutex_unlock(&rq->sn->lock);
	d->admin = rq->admin;
	return ret;
}

int saina_nl_worker_get_start(struct netlink_callback *cb)
{
	struct saina_nlreq rq;
	int ret;

	ret = saina_nlreq_dump(&rq, cb, SAINA_A_WORKER, SAINA_A_WORKER_MAX);
	if (!ret)
		ret = dump_jobs(&rq, dump_of(cb), SAINA_A_WORKER_JOB_ID, SAINA_A_WORKER_JOB_NAME);
	if (!ret && rq.tb[SAINA_A_WORKER_ID])
		ret = saina_refuse(&rq.err, -EINVAL, SAINA_A_WORKER_ID,
				   "a dump is of all workers of a job, not of one");
	return ret ? saina_nlreq_refuse(&rq, ret) : 0;
}

typedef int (*fill_fn)(struct sk_buff *skb, const struct saina_nlmsg_to *to,
		       const struct saina_net *sn, const struct saina_job *job, int w);

/* One message for each worker, also for empty places if @all. */
static void dump_workers(struct sk_buff *skb, struct netlink_callback *cb, struct saina_net *sn,
			 u8 cmd, bool all, fill_fn fill)
{
	struct saina_nlmsg_to to = dump_to(cb, cmd);
	const struct saina_job *job;
	struct dump *d = dump_of(cb);
	unsigned int before;

	while ((job = saina_core_job_next(sn->core, d->job))) {
		if (d->one_job && job->id != d->job)
			break;
		if (job->id != d->job) {
			d->job = job->id;
			d->worker = 0;
		}
		for (; d->worker < job->workers; d->worker++) {
			if (!all && job->worker[d->worker].state == SAINA_WORKER_STATE_ABSENT)
				continue;
			before = skb->len;
			if (fill(skb, &to, sn, job, d->worker))
				return;
			dump_mark(cb, skb, before);
		}
		d->worker = 0;
		d->job++;
		if (d->one_job)
			d->job = SAINA_JOBS_MAX;
	}
}

int saina_nl_worker_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct saina_net *sn = saina_net_get(sock_net(skb->sk));

	mutex_lock(&sn->lock);
	cb->seq = sn->seq;
	dump_workers(skb, cb, sn, SAINA_CMD_WORKER_SET, false, saina_nlmsg_worker);
	mutex_unlock(&sn->lock);
	return skb->len;
}

/* Counters */

int saina_nl_stats_get_start(struct netlink_callback *cb)
{
	struct dump *d = dump_of(cb);
	struct saina_nlreq rq;
	int ret;

	ret = saina_nlreq_dump(&rq, cb, SAINA_A_STATS, SAINA_A_STATS_MAX);
	if (!ret)
		ret = dump_jobs(&rq, d, SAINA_A_STATS_JOB_ID, SAINA_A_STATS_JOB_NAME);
	d->global = !d->one_job;
	return ret ? saina_nlreq_refuse(&rq, ret) : 0;
}

int saina_nl_stats_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct saina_net *sn = saina_net_get(sock_net(skb->sk));
	struct saina_nlmsg_to to = dump_to(cb, SAINA_CMD_STATS_GET);
	struct dump *d = dump_of(cb);

	mutex_lock(&sn->lock);
	cb->seq = sn->seq;
	if (d->global) {
		unsigned int before = skb->len;

		if (saina_nlmsg_stats(skb, &to, sn, NULL, -1))
			goto out;
		dump_mark(cb, skb, before);
		d->global = false;
	}
	dump_workers(skb, cb, sn, SAINA_CMD_STATS_GET, true, saina_nlmsg_stats);
out:
	mutex_unlock(&sn->lock);
	return skb->len;
}

/* Limits */

int saina_nl_limits_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct saina_nlmsg_to to = reply_to(info, SAINA_CMD_LIMITS_GET);
	struct saina_nlreq rq;
	struct sk_buff *msg;
	int ret;

	saina_nlreq_do(&rq, skb, info, 0, 0);
	msg = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	mutex_lock(&rq.sn->lock);
	ret = saina_nlmsg_limits(msg, &to, rq.sn);
	mutex_unlock(&rq.sn->lock);
	ret = answer(&rq, msg, ret);
	return ret ? saina_nlreq_refuse(&rq, ret) : 0;
}

int saina_nl_limits_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct saina_limits limits;
	struct saina_nlreq rq;
	int ret;

	ret = saina_nlreq_do(&rq, skb, info, SAINA_A_LIMITS, SAINA_A_LIMITS_MAX);
	if (ret)
		return saina_nlreq_refuse(&rq, ret);
	mutex_lock(&rq.sn->lock);
	saina_core_limits_get(rq.sn->core, &limits, NULL, NULL);
	if (rq.tb[SAINA_A_LIMITS_JOBS])
		limits.jobs = nla_get_u32(rq.tb[SAINA_A_LIMITS_JOBS]);
	if (rq.tb[SAINA_A_LIMITS_MEMORY_JOB])
		limits.memory_job = nla_get_u64(rq.tb[SAINA_A_LIMITS_MEMORY_JOB]);
	if (rq.tb[SAINA_A_LIMITS_MEMORY])
		limits.memory = nla_get_u64(rq.tb[SAINA_A_LIMITS_MEMORY]);
	ret = saina_core_limits_set(rq.sn->core, &limits, &rq.err);
	mutex_unlock(&rq.sn->lock);
	return ret ? saina_nlreq_refuse(&rq, ret) : 0;
}

/* What the kernel cannot say: it attaches no programs and owns no slots. */

static int refuse_agent(struct saina_nlreq *rq)
{
	const struct genlmsghdr *g = nlmsg_data(rq->nlh);

	if (g->cmd == SAINA_CMD_SUBSCRIBE)
		return saina_refuse(&rq->err, -EOPNOTSUPP, 0,
				    "with generic netlink one subscribes by joining the groups config and events");
	return saina_refuse(&rq->err, -EOPNOTSUPP, 0,
			    "saina.ko does not know %s: ask sainad at its control socket (saina -s /run/saina/control)",
			    g->cmd == SAINA_CMD_SLOT_GET ? "the slots" : "the ports");
}

int saina_nl_agent_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct saina_nlreq rq;

	saina_nlreq_do(&rq, skb, info, 0, 0);
	return saina_nlreq_refuse(&rq, refuse_agent(&rq));
}

int saina_nl_agent_start(struct netlink_callback *cb)
{
	struct saina_nlreq rq;

	saina_nlreq_dump(&rq, cb, 0, 0);
	return saina_nlreq_refuse(&rq, refuse_agent(&rq));
}

/* Never reached: its start has refused. */
int saina_nl_agent_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return -EOPNOTSUPP;
}

/* Notifications and the family */

void saina_nl_notify(struct saina_net *sn, int cmd, const struct saina_job *job, int worker)
{
	struct saina_nlmsg_to to = { .cmd = cmd };
	struct sk_buff *skb;
	int ret;

	lockdep_assert_held(&sn->lock);
	if (!genl_has_listeners(&saina_nl_family, sn->net, SAINA_NLGRP_CONFIG))
		return;
	skb = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!skb)
		goto lost;
	if (!job)
		ret = saina_nlmsg_limits(skb, &to, sn);
	else if (worker >= 0)
		ret = saina_nlmsg_worker(skb, &to, sn, job, worker);
	else
		ret = saina_nlmsg_job(skb, &to, sn, job, false);
	if (ret) {
		nlmsg_free(skb);
		goto lost;
	}
	genlmsg_multicast_netns(&saina_nl_family, sn->net, skb, 0, SAINA_NLGRP_CONFIG, GFP_KERNEL);
	return;

lost:
	genl_set_err(&saina_nl_family, sn->net, 0, SAINA_NLGRP_CONFIG, -ENOBUFS);
}

struct genl_family saina_nl_family __ro_after_init = {
	.name = SAINA_FAMILY_NAME,
	.version = SAINA_FAMILY_VERSION,
	.maxattr = SAINA_A_MAX,
	.netnsok = true,
	.parallel_ops = true,
	.module = THIS_MODULE,
	.ops = saina_nl_ops,
	.mcgrps = saina_nl_groups,
};

int __init saina_netlink_init(void)
{
	saina_nl_family.n_ops = saina_nl_n_ops;
	saina_nl_family.n_mcgrps = saina_nl_n_groups;
	return genl_register_family(&saina_nl_family);
}

void saina_netlink_uninit(void)
{
	genl_unregister_family(&saina_nl_family);
}
