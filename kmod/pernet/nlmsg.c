// SPDX-License-Identifier: GPL-2.0
#include <linux/netdevice.h>
#include <net/genetlink.h>

#include "pernet/nlmsg.h"
#include "pernet/snapshot.h"

const struct genl_family *saina_nlmsg_family __read_mostly;

static int put_attrs(struct sk_buff *skb, const struct saina_attr_class *c, const void *attrs)
{
	const u64 *has = attrs;
	struct nlattr *nest;
	int i, ret = 0;

	for (i = 0; !ret && i < c->n; i++) {
		const struct saina_attr *row = &c->attrs[i];
		const void *from = attrs + row->offset;

		if (!(*has & BIT_ULL(row->number)))
			continue;
		switch (row->kind) {
		case SAINA_ATTR_NEST:
			nest = nla_nest_start(skb, row->number);
			ret = nest ? put_attrs(skb, row->nest, from) : -EMSGSIZE;
			if (!ret)
				nla_nest_end(skb, nest);
			break;
		case SAINA_ATTR_STRING:
			ret = nla_put_string(skb, row->number, from);
			break;
		case SAINA_ATTR_U64:
		case SAINA_ATTR_WORDS:
			ret = nla_put_64bit(skb, row->number, row->size, from, c->pad);
			break;
		default:
			ret = nla_put(skb, row->number, row->size, from);
		}
	}
	return ret;
}

/**
 * saina_nlmsg_put() - append a message
 * @skb: to this
 * @to: whose message
 * @c: attribute set
 * @attrs: struct saina_<set>_attrs; those that its member has names are put
 *
 * Return: 0, or -EMSGSIZE with @skb as it was
 */
int saina_nlmsg_put(struct sk_buff *skb, const struct saina_nlmsg_to *to,
		    const struct saina_attr_class *c, const void *attrs)
{
	void *hdr;

	hdr = genlmsg_put(skb, to->portid, to->seq, saina_nlmsg_family, to->flags, to->cmd);
	if (!hdr)
		return -EMSGSIZE;
	if (put_attrs(skb, c, attrs)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

/* From the data path only what its events said; nothing before the first. */
void saina_nlmsg_show_job(const struct saina_net *sn, const struct saina_job *job, bool token,
			  struct saina_job_attrs *a)
{
	const struct saina_live *live = saina_net_live(sn, job);
	u32 seq;

	saina_job_show(job, token, a);
	if (!live)
		return;
	seq = READ_ONCE(live->policy_seq);
	if (!seq && !READ_ONCE(live->k))
		return;
	if (seq)
		saina_job_show_in_force(seq, a);
	if (seq && seq == a->policy_seq)
		SAINA_PUT(a, SAINA_A_JOB_POLICY_ACTIVE, policy_active, a->policy);
	SAINA_PUT(a, SAINA_A_JOB_ROUND, round, READ_ONCE(live->next_round));
	if (READ_ONCE(live->k))
		SAINA_PUT(a, SAINA_A_JOB_K, k, READ_ONCE(live->k));
}

void saina_nlmsg_show_worker(const struct saina_net *sn, const struct saina_job *job, int w,
			     bool secret, struct saina_worker_attrs *a)
{
	struct net_device *dev;

	saina_worker_show(job, w, secret, a);
	if (!SAINA_HAS(a, SAINA_A_WORKER_IFINDEX))
		return;
	rcu_read_lock();
	dev = dev_get_by_index_rcu(sn->net, a->ifindex);
	if (dev)
		SAINA_PUT_TEXT(a, SAINA_A_WORKER_IFNAME, ifname, dev->name);
	rcu_read_unlock();
}
