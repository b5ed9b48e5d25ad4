// SPDX-License-Identifier: GPL-2.0
#include <linux/slab.h>
#include <net/genetlink.h>

#include "pernet/nlmsg.h"
#include "pernet/notify.h"

static int notification_fill(struct sk_buff *skb, struct saina_net *sn, int cmd,
			     const struct saina_job *job, int worker)
{
	const struct saina_nlmsg_to to = { .cmd = cmd };
	union {
		struct saina_job_attrs job;
		struct saina_worker_attrs worker;
		struct saina_limits_attrs limits;
	} a;

	if (!job) {
		saina_limits_show(sn->core, SAINA_BACKEND_KERNEL, &a.limits);
		return saina_nlmsg_put(skb, &to, &saina_limits_class, &a);
	}
	if (worker >= 0) {
		saina_nlmsg_show_worker(sn, job, worker, false, &a.worker);
		return saina_nlmsg_put(skb, &to, &saina_worker_class, &a);
	}
	saina_nlmsg_show_job(sn, job, false, &a.job);
	return saina_nlmsg_put(skb, &to, &saina_job_class, &a);
}

/**
 * saina_notify() - send a change to the subscribers
 * @sn: namespace, locked
 * @cmd: SAINA_CMD_*_NTF
 * @job: the job, NULL if the limits have changed
 * @worker: of @job; negative if the job itself has changed
 *
 * Subscribers for whom there is no memory learn that they missed something.
 */
void saina_notify(struct saina_net *sn, int cmd, const struct saina_job *job, int worker)
{
	struct sk_buff *skb;

	lockdep_assert_held(&sn->lock);
	if (!genl_has_listeners(saina_nlmsg_family, sn->net, SAINA_NLMSG_CONFIG))
		return;
	skb = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (skb && !notification_fill(skb, sn, cmd, job, worker)) {
		genlmsg_multicast_netns(saina_nlmsg_family, sn->net, skb, 0, SAINA_NLMSG_CONFIG,
					GFP_KERNEL);
		return;
	}
	nlmsg_free(skb);
	genl_set_err(saina_nlmsg_family, sn->net, 0, SAINA_NLMSG_CONFIG, -ENOBUFS);
}
