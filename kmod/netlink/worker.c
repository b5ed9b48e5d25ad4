// SPDX-License-Identifier: GPL-2.0
/* Operations on workers. */
#include <linux/netdevice.h>
#include <net/sock.h>

#include "core/os.h"
#include "netlink/dump.h"
#include "netlink/ops.h"
#include "netlink/request.h"

/* A mistake, most likely.  An interface may go later: its worker is silent then. */
static int link_exists(struct saina_request *rq, u32 ifindex)
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

static int job_of(struct saina_request *rq, bool must, const struct saina_job **job)
{
	return saina_request_job(rq, SAINA_A_WORKER_JOB_ID, rq->worker.job_id,
				 SAINA_A_WORKER_JOB_NAME, rq->worker.job_name, must, job);
}

int saina_nl_worker_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct saina_request *rq = saina_request_of(info);
	const struct saina_job *job;
	int ret;

	ret = job_of(rq, true, &job);
	if (!ret && rq->worker.ifindex)
		ret = link_exists(rq, rq->worker.ifindex);
	if (!ret)
		ret = saina_core_worker_set(rq->sn->core, &rq->worker, NULL, &rq->err);
	return saina_request_end(rq, ret);
}

int saina_nl_worker_del_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct saina_request *rq = saina_request_of(info);

	return saina_request_end(rq, saina_core_worker_del(rq->sn->core, &rq->worker, &rq->err));
}

static int worker_find(struct saina_request *rq, const struct saina_job **job)
{
	unsigned int w = rq->worker.id;
	int ret;

	ret = job_of(rq, true, job);
	if (ret)
		return ret;
	if (!SAINA_HAS(&rq->worker, SAINA_A_WORKER_ID))
		return saina_refuse(&rq->err, -EINVAL, SAINA_A_WORKER_ID, "say which worker: 0..%u",
				    (*job)->workers - 1);
	if (w >= (*job)->workers || (*job)->worker[w].state == SAINA_WORKER_STATE_ABSENT)
		return saina_refuse(&rq->err, -ENOENT, SAINA_A_WORKER_ID,
				    "job %s has no worker %u", (*job)->name, w);
	return 0;
}

int saina_nl_worker_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct saina_request *rq = saina_request_of(info);
	const struct saina_job *job;
	int ret;

	ret = worker_find(rq, &job);
	if (!ret)
		saina_nlmsg_show_worker(rq->sn, job, rq->worker.id, rq->admin, &rq->worker);
	return saina_request_answer(rq, ret, &saina_worker_class);
}

int saina_nl_worker_get_start(struct netlink_callback *cb)
{
	struct saina_dump *d = saina_dump_of(cb);
	const struct saina_job *only;
	struct saina_request rq;
	int ret;

	ret = saina_request_dump(&rq, cb);
	if (ret)
		return saina_request_end(&rq, ret);
	mutex_lock(&rq.sn->lock);
	ret = job_of(&rq, false, &only);
	if (only) {
		d->job = only->id;
		d->one_job = true;
	}
	d->admin = rq.admin;
	mutex_unlock(&rq.sn->lock);
	return saina_request_end(&rq, ret);
}

static void dump_workers(struct sk_buff *skb, struct netlink_callback *cb, struct saina_net *sn)
{
	struct saina_dump *d = saina_dump_of(cb);
	struct saina_worker_attrs a;
	const struct saina_job *job;

	while ((job = saina_core_job_next(sn->core, d->job))) {
		if (d->one_job && job->id != d->job)
			break;
		if (job->id != d->job) {
			d->job = job->id;
			d->worker = 0;
		}
		for (; d->worker < saina_job_places(job); d->worker++) {
			if (job->worker[d->worker].state == SAINA_WORKER_STATE_ABSENT)
				continue;
			saina_nlmsg_show_worker(sn, job, d->worker, d->admin, &a);
			if (saina_dump_put(skb, cb, &saina_worker_class, &a))
				return;
		}
		d->worker = 0;
		d->job = d->one_job ? SAINA_JOBS_MAX : d->job + 1;
	}
}

int saina_nl_worker_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct saina_net *sn = saina_net_get(sock_net(skb->sk));

	mutex_lock(&sn->lock);
	cb->seq = sn->seq;
	dump_workers(skb, cb, sn);
	mutex_unlock(&sn->lock);
	return skb->len;
}
