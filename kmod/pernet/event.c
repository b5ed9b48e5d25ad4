// SPDX-License-Identifier: GPL-2.0
#include <linux/moduleparam.h>
#include <linux/ktime.h>
#include <net/genetlink.h>

#include "pernet/event.h"
#include "pernet/nlmsg.h"
#include "pernet/snapshot.h"
#include "trace.h"

static unsigned int event_rate = 10000;
module_param(event_rate, uint, 0644);
MODULE_PARM_DESC(event_rate, "maximum number of data path events per second, per network namespace");

#define EVENT_ROOM	(NLMSG_DEFAULT_SIZE / 4)

/**
 * saina_event_send() - send an event to the subscribers
 * @sn: namespace
 * @ev: complete
 * @name: of the job, NULL if it is gone
 * @gfp: GFP_ATOMIC in the data path
 *
 * Without memory, subscribers get ENOBUFS from their sockets.
 */
void saina_event_send(struct saina_net *sn, const struct saina_event *ev, const char *name,
		      gfp_t gfp)
{
	static const struct saina_nlmsg_to to = { .cmd = SAINA_CMD_EVENT };
	struct saina_event_attrs a;
	struct sk_buff *skb;

	if (!genl_has_listeners(saina_nlmsg_family, sn->net, SAINA_NLMSG_EVENTS))
		return;
	skb = genlmsg_new(EVENT_ROOM, gfp);
	if (!skb)
		goto lost;
	saina_event_show(ev, name, &a);
	if (saina_nlmsg_put(skb, &to, &saina_event_class, &a)) {
		nlmsg_free(skb);
		goto lost;
	}
	genlmsg_multicast_netns(saina_nlmsg_family, sn->net, skb, 0, SAINA_NLMSG_EVENTS, gfp);
	return;

lost:
	trace_saina_event_lost(sn->net, ev, -ENOMEM);
	genl_set_err(saina_nlmsg_family, sn->net, 0, SAINA_NLMSG_EVENTS, -ENOBUFS);
}

static void live_update(const struct saina_net *sn, struct saina_live *live,
			const struct saina_event *ev)
{
	if (ev->k)
		WRITE_ONCE(live->k, ev->k);
	switch (ev->type) {
	case SAINA_EV_ROUND:
		WRITE_ONCE(live->next_round, ev->round + 1);
		break;
	case SAINA_EV_POLICY:
		WRITE_ONCE(live->policy_seq, (u32)ev->b);
		trace_saina_policy_adopted(sn->net, ev->job, ev->round, ev->a, ev->b);
		break;
	}
}

int saina_event_data_path(struct saina_net *sn, const struct saina_event *ev)
{
	const struct saina_snap *snap;
	struct saina_event copy = *ev;
	bool first;
	int ret = 0;

	rcu_read_lock();
	snap = saina_net_snap(sn, ev->job);
	/* an event of an earlier generation says nothing about this one */
	if (!snap || ev->generation != snap->conf.generation) {
		ret = -ENOENT;
		goto out;
	}
	live_update(sn, snap->live, ev);
	trace_saina_event(sn->net, ev, 0);
	if (!genl_has_listeners(saina_nlmsg_family, sn->net, SAINA_NLMSG_EVENTS))
		goto out;
	if (!saina_ratelimit_pass(&sn->ratelimit, READ_ONCE(event_rate), &first)) {
		trace_saina_event_lost(sn->net, ev, -EAGAIN);
		if (first)
			genl_set_err(saina_nlmsg_family, sn->net, 0, SAINA_NLMSG_EVENTS, -ENOBUFS);
		ret = -EAGAIN;
		goto out;
	}
	copy.time = ktime_get_mono_fast_ns();
	saina_event_send(sn, &copy, snap->name, GFP_ATOMIC);
out:
	rcu_read_unlock();
	return ret;
}
