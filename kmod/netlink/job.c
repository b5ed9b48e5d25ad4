// SPDX-License-Identifier: GPL-2.0
/* Operations on jobs and limits. */
#include <net/sock.h>

#include "pernet/controller.h"
#include "netlink/dump.h"
#include "netlink/ops.h"
#include "netlink/request.h"

int saina_nl_job_new_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct saina_request *rq = saina_request_of(info);
	const struct saina_job *job;
	int ret;

	ret = saina_core_job_new(rq->sn->core, &rq->job, &job, &rq->err);
	if (!ret)
		saina_nlmsg_show_job(rq->sn, job, true, &rq->job);
	return saina_request_answer(rq, ret, &saina_job_class);
}

int saina_nl_job_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct saina_request *rq = saina_request_of(info);

	bool control = rq->has & BIT_ULL(SAINA_A_JOB_CONTROLLER);
	const struct saina_job *job;
	int ret = 0;

	if (control && rq->job.controller)
		ret = saina_controller_prepare(rq->sn, info->snd_portid);
	if (ret)
		return ret;
	ret = saina_core_job_set(rq->sn->core, &rq->job, &job, &rq->err);
	if (!ret && control)
		saina_controller_set(rq->sn, info->snd_portid, job->id, rq->job.controller);
	return saina_request_end(rq, ret);
}

int saina_nl_job_del_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct saina_request *rq = saina_request_of(info);

	return saina_request_end(rq, saina_core_job_del(rq->sn->core, &rq->job, &rq->err));
}

int saina_nl_job_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct saina_request *rq = saina_request_of(info);
	const struct saina_job *job;
	int ret;

	ret = saina_request_job(rq, SAINA_A_JOB_ID, rq->job.id, SAINA_A_JOB_NAME, rq->job.name,
				true, &job);
	if (!ret)
		saina_nlmsg_show_job(rq->sn, job, rq->admin, &rq->job);
	return saina_request_answer(rq, ret, &saina_job_class);
}

int saina_nl_job_get_start(struct netlink_callback *cb)
{
	struct saina_request rq;
	int ret;

	ret = saina_request_dump(&rq, cb);
	saina_dump_of(cb)->admin = rq.admin;
	return saina_request_end(&rq, ret);
}

int saina_nl_job_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct saina_net *sn = saina_net_get(sock_net(skb->sk));
	struct saina_dump *d = saina_dump_of(cb);
	const struct saina_job *job;
	struct saina_job_attrs a;

	mutex_lock(&sn->lock);
	cb->seq = sn->seq;
	for (; (job = saina_core_job_next(sn->core, d->job)); d->job = job->id + 1) {
		saina_nlmsg_show_job(sn, job, d->admin, &a);
		if (saina_dump_put(skb, cb, &saina_job_class, &a))
			break;
	}
	mutex_unlock(&sn->lock);
	return skb->len;
}

int saina_nl_limits_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct saina_request *rq = saina_request_of(info);

	saina_limits_show(rq->sn->core, SAINA_BACKEND_KERNEL, &rq->limits);
	return saina_request_answer(rq, 0, &saina_limits_class);
}

int saina_nl_limits_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct saina_request *rq = saina_request_of(info);
	struct saina_limits limits;

	saina_core_limits_get(rq->sn->core, &limits, NULL, NULL);
	saina_limits_merge(&limits, &rq->limits);
	return saina_request_end(rq, saina_core_limits_set(rq->sn->core, &limits, &rq->err));
}
