// SPDX-License-Identifier: GPL-2.0
#include <linux/capability.h>
#include <linux/netlink.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "core/os.h"
#include "netlink/ops.h"
#include "netlink/request.h"
#include "trace.h"

static const struct saina_attr *row_of(const struct saina_attr_class *c, int number)
{
	int i;

	for (i = 0; i < c->n; i++)
		if (c->attrs[i].number == number)
			return &c->attrs[i];
	return NULL;
}

/*
 * The policies have checked what the operation takes; operations that take nothing have none.
 * A policy would let the last of several win; here, as in the agent, repeated attributes are
 * refused.
 */
static int attrs_get(struct saina_request *rq, const struct nlattr *head, int len,
		     const struct saina_attr_class *c, u64 takes, void *attrs)
{
	const struct saina_attr *row;
	const struct nlattr *a;
	u64 *has = attrs;
	void *to;
	int rem, ret;

	memset(attrs, 0, c->size);
	nla_for_each_attr(a, head, len, rem) {
		rq->bad = a;
		row = row_of(c, nla_type(a));
		if (!row || !(takes & BIT_ULL(row->number)))
			return saina_refuse(&rq->err, -EINVAL, 0,
					    "this request does not take attribute %d (%s)",
					    nla_type(a), row ? row->name : "unknown");
		if (*has & BIT_ULL(row->number))
			return saina_refuse(&rq->err, -EINVAL, 0, "%s: is given twice", row->name);
		*has |= BIT_ULL(row->number);
		to = attrs + row->offset;
		if (row->kind == SAINA_ATTR_NEST) {
			ret = attrs_get(rq, nla_data(a), nla_len(a), row->nest, ~0ull, to);
			if (ret)
				return ret;
		} else if (row->kind == SAINA_ATTR_STRING) {
			strscpy(to, nla_data(a), row->size);
		} else {
			nla_memcpy(to, a, row->size);
		}
	}
	rq->bad = NULL;
	return 0;
}

static int request_get(struct saina_request *rq, struct sk_buff *skb, struct nlmsghdr *nlh,
		       struct net *net, bool dump)
{
	const struct genlmsghdr *g = nlmsg_data(nlh);
	const struct saina_op *op = &saina_ops[g->cmd];

	rq->skb = skb;
	rq->nlh = nlh;
	rq->sn = saina_net_get(net);
	rq->admin = netlink_ns_capable(skb, net->user_ns, CAP_NET_ADMIN);
	return attrs_get(rq, nlmsg_attrdata(nlh, GENL_HDRLEN), nlmsg_attrlen(nlh, GENL_HDRLEN),
			 op->class, dump ? op->dump_takes : op->do_takes, &rq->has);
}

/*
 * The acknowledgment is sent from here, as nfnetlink does for its batches, and -EINTR makes
 * netlink_rcv_skb() send no other.  What was weighed:
 *
 * - NL_SET_ERR_MSG_FMT() cuts a sentence at 80 bytes, and Linux 6.1 has none.  What is cut is
 *   the end, which says what to do.
 * - A pointer in the extack of the handler is read after post_doit, without a lock: the text
 *   would need memory that outlives the request.
 * - A refused request has no answer that could carry the sentence in an attribute of this
 *   family, and iproute2 and ynl print NLMSGERR_ATTR_MSG only.
 */
static int refuse(struct saina_request *rq, int error)
{
	const struct genlmsghdr *g = nlmsg_data(rq->nlh);
	struct netlink_ext_ack ack = { };
	unsigned int attr = rq->err.attr;

	if (!rq->bad && attr)
		rq->bad = nlmsg_find_attr(rq->nlh, GENL_HDRLEN, attr);
	trace_saina_refused(rq->sn->net, g->cmd, error, rq->bad ? nla_type(rq->bad) : attr,
			    rq->err.text);
	if (!rq->err.text[0])
		return error;
	ack._msg = rq->err.text;
	ack.bad_attr = rq->bad;
	if (!rq->bad)
		ack.miss_type = attr;
	netlink_ack(rq->skb, rq->nlh, error, &ack);
	return -EINTR;
}

int saina_request_end(struct saina_request *rq, int error)
{
	return error ? refuse(rq, error) : 0;
}

int saina_request_answer(struct saina_request *rq, int error, const struct saina_attr_class *c)
{
	const struct genlmsghdr *g = nlmsg_data(rq->nlh);
	struct saina_nlmsg_to to = {
		.portid = NETLINK_CB(rq->skb).portid,
		.seq = rq->nlh->nlmsg_seq,
		.cmd = g->cmd,
	};
	struct sk_buff *reply;

	if (error)
		return refuse(rq, error);
	error = saina_nlmsg_put(rq->reply, &to, c, &rq->has);
	if (error) {
		saina_refuse(&rq->err, error, 0, "the answer does not fit a message");
		return refuse(rq, error);
	}
	reply = rq->reply;
	rq->reply = NULL;
	return genlmsg_unicast(rq->sn->net, reply, to.portid);
}

static int pre_doit(struct sk_buff *skb, struct genl_info *info, bool admin)
{
	struct saina_request *rq = kzalloc(sizeof(*rq), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!rq)
		return -ENOMEM;
	ret = request_get(rq, skb, nlmsg_hdr(skb), genl_info_net(info), false);
	if (admin && !rq->admin)
		ret = saina_refuse(&rq->err, -EPERM, 0,
				   "changing anything needs CAP_NET_ADMIN in the user namespace of the network namespace");
	if (ret)
		ret = refuse(rq, ret);
	/* first what can fail: a job that was made stays */
	rq->reply = ret ? NULL : genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!rq->reply) {
		kfree(rq);
		return ret ?: -ENOMEM;
	}
	info->user_ptr[0] = rq;
	mutex_lock(&rq->sn->lock);
	return 0;
}

int saina_nl_pre_doit(const struct genl_split_ops *ops, struct sk_buff *skb,
		      struct genl_info *info)
{
	return pre_doit(skb, info, false);
}

int saina_nl_admin_pre_doit(const struct genl_split_ops *ops, struct sk_buff *skb,
			    struct genl_info *info)
{
	return pre_doit(skb, info, true);
}

void saina_nl_post_doit(const struct genl_split_ops *ops, struct sk_buff *skb,
			struct genl_info *info)
{
	struct saina_request *rq = info->user_ptr[0];

	mutex_unlock(&rq->sn->lock);
	nlmsg_free(rq->reply);
	kfree(rq);
}

int saina_request_dump(struct saina_request *rq, struct netlink_callback *cb)
{
	memset(rq, 0, sizeof(*rq));
	return request_get(rq, cb->skb, nlmsg_hdr(cb->skb), sock_net(cb->skb->sk), true);
}

int saina_request_job(struct saina_request *rq, int id_attr, u16 id, int name_attr,
		      const char *name, bool must, const struct saina_job **job)
{
	bool has_id = rq->has & BIT_ULL(id_attr);
	bool has_name = rq->has & BIT_ULL(name_attr);

	*job = NULL;
	if (!has_id && !has_name && !must)
		return 0;
	*job = saina_core_job_find(rq->sn->core, has_id, id, has_name ? name : NULL, &rq->err);
	if (*job)
		return 0;
	rq->err.attr = rq->err.attr == SAINA_A_JOB_ID ? id_attr : name_attr;
	return has_id || has_name ? -ENOENT : -EINVAL;
}
