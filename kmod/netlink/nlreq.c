// SPDX-License-Identifier: GPL-2.0
#include <linux/capability.h>
#include <linux/netlink.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "compat/compat.h"
#include "core/policy_text.h"
#include "netlink/nlreq.h"
#include "trace.h"

/* Policies let an attribute come twice, and the last one win; here, as in the
 * agent, a request means one thing. */
static int unique(struct saina_nlreq *rq)
{
	const struct nlattr *a;
	int rem;

	nla_for_each_nested(a, rq->nest, rem) {
		if (a == rq->tb[nla_type(a)])
			continue;
		rq->bad = a;
		return saina_refuse(&rq->err, -EINVAL, 0, "this attribute is given twice");
	}
	return 0;
}

static int parse(struct saina_nlreq *rq, struct nlattr **attrs, int object, int max)
{
	int ret, i;

	BUILD_BUG_ON(SAINA_A_JOB_MAX >= SAINA_NLREQ_ATTRS || SAINA_A_WORKER_MAX >= SAINA_NLREQ_ATTRS);
	rq->admin = netlink_ns_capable(rq->skb, rq->sn->net->user_ns, CAP_NET_ADMIN);
	rq->object = object;
	rq->nest = object && attrs ? attrs[object] : NULL;
	if (!rq->nest)
		return 0;
	/* validated already, by the policy of the command */
	ret = nla_parse_nested(rq->tb, max, rq->nest, NULL, NULL);
	if (ret)
		return saina_refuse(&rq->err, ret, 0, "the request is malformed");
	for (i = 1; i <= max; i++)
		if (rq->tb[i])
			rq->has |= 1ull << i;
	return unique(rq);
}

/**
 * saina_nlreq_do() - begin with a request that is no dump
 * @rq: out
 * @skb: the request
 * @info: its attributes
 * @object: top level attribute whose nest it is about, 0 if none
 * @max: largest attribute in there
 *
 * Return: 0, or an errno for saina_nlreq_refuse()
 */
int saina_nlreq_do(struct saina_nlreq *rq, struct sk_buff *skb, struct genl_info *info,
		   int object, int max)
{
	memset(rq, 0, sizeof(*rq));
	rq->skb = skb;
	rq->nlh = nlmsg_hdr(skb);
	rq->sn = saina_net_get(genl_info_net(info));
	return parse(rq, info->attrs, object, max);
}

/* The same for the start of a dump. */
int saina_nlreq_dump(struct saina_nlreq *rq, struct netlink_callback *cb, int object, int max)
{
	memset(rq, 0, sizeof(*rq));
	rq->skb = cb->skb;
	rq->nlh = nlmsg_hdr(cb->skb);
	rq->sn = saina_net_get(sock_net(cb->skb->sk));
	return parse(rq, saina_compat_dump_attrs(cb), object, max);
}

/**
 * saina_nlreq_refuse() - answer with the sentence in @rq->err
 * @rq: the request
 * @error: negative errno
 *
 * An extended acknowledgement holds a pointer to its text, or 80 bytes; our
 * sentences are made for the occasion and longer, and live on the handler's
 * stack.  So the acknowledgement is sent from here, and -EINTR tells netlink
 * that there is nothing left to acknowledge.
 *
 * Return: what the handler must return
 */
int saina_nlreq_refuse(struct saina_nlreq *rq, int error)
{
	struct netlink_ext_ack ack = { };
	const struct genlmsghdr *g = nlmsg_data(rq->nlh);
	unsigned int attr = rq->err.attr;

	trace_saina_refused(rq->sn, g->cmd, error, rq->bad ? nla_type(rq->bad) : attr,
			    rq->err.text);
	if (!rq->err.text[0])
		return error;
	ack._msg = rq->err.text;
	if (rq->bad) {
		ack.bad_attr = rq->bad;
	} else if (attr && attr < SAINA_NLREQ_ATTRS && rq->tb[attr]) {
		ack.bad_attr = rq->tb[attr];
	} else if (attr) {
		ack.miss_type = rq->nest ? attr : rq->object;
		ack.miss_nest = rq->nest;
	}
	netlink_ack(rq->skb, rq->nlh, error, &ack);
	return -EINTR;
}

static u8 get_u8(const struct saina_nlreq *rq, int attr)
{
	return rq->tb[attr] ? nla_get_u8(rq->tb[attr]) : 0;
}

static u16 get_u16(const struct saina_nlreq *rq, int attr)
{
	return rq->tb[attr] ? nla_get_u16(rq->tb[attr]) : 0;
}

static u32 get_u32(const struct saina_nlreq *rq, int attr)
{
	return rq->tb[attr] ? nla_get_u32(rq->tb[attr]) : 0;
}

/* @to is zeroed; a token may fill it to the last byte. */
static void get_string(const struct saina_nlreq *rq, int attr, void *to, size_t size)
{
	if (rq->tb[attr])
		memcpy(to, nla_data(rq->tb[attr]), min_t(size_t, nla_len(rq->tb[attr]), size));
}

int saina_nlreq_job(struct saina_nlreq *rq, struct saina_job_req *req)
{
	char policy[SAINA_POLICY_TEXT_LEN] = "";

	memset(req, 0, sizeof(*req));
	req->has = rq->has;
	req->id = get_u16(rq, SAINA_A_JOB_ID);
	req->state = get_u8(rq, SAINA_A_JOB_STATE);
	req->workers = get_u8(rq, SAINA_A_JOB_WORKERS);
	req->elem = get_u8(rq, SAINA_A_JOB_ELEM_TYPE);
	req->exponent = (s8)get_u8(rq, SAINA_A_JOB_EXPONENT);
	req->payload = get_u16(rq, SAINA_A_JOB_PAYLOAD);
	req->heartbeat_ms = get_u16(rq, SAINA_A_JOB_HEARTBEAT_MS);
	req->dead_ms = get_u16(rq, SAINA_A_JOB_DEAD_MS);
	req->pool = get_u32(rq, SAINA_A_JOB_POOL);
	req->ring = get_u32(rq, SAINA_A_JOB_RING);
	if (rq->tb[SAINA_A_JOB_ELEMENTS])
		req->elements = nla_get_u64(rq->tb[SAINA_A_JOB_ELEMENTS]);
	get_string(rq, SAINA_A_JOB_NAME, req->name, sizeof(req->name));
	get_string(rq, SAINA_A_JOB_TOKEN, req->token, sizeof(req->token));
	if (!rq->tb[SAINA_A_JOB_POLICY])
		return 0;
	get_string(rq, SAINA_A_JOB_POLICY, policy, sizeof(policy));
	return saina_policy_parse(policy, SAINA_WORKERS_MAX, &req->policy, &rq->err);
}

void saina_nlreq_worker(const struct saina_nlreq *rq, struct saina_worker_req *req)
{
	memset(req, 0, sizeof(*req));
	req->has = rq->has;
	req->job_id = get_u16(rq, SAINA_A_WORKER_JOB_ID);
	req->id = get_u8(rq, SAINA_A_WORKER_ID);
	req->state = get_u8(rq, SAINA_A_WORKER_STATE);
	req->relay = get_u8(rq, SAINA_A_WORKER_RELAY);
	req->ifindex = get_u32(rq, SAINA_A_WORKER_IFINDEX);
	req->round = get_u32(rq, SAINA_A_WORKER_ROUND);
	if (rq->tb[SAINA_A_WORKER_SESSION])
		req->session = nla_get_u64(rq->tb[SAINA_A_WORKER_SESSION]);
	if (rq->tb[SAINA_A_WORKER_LATE])
		req->late = nla_get_u64(rq->tb[SAINA_A_WORKER_LATE]);
	if (rq->tb[SAINA_A_WORKER_IP])
		req->ip = nla_get_be32(rq->tb[SAINA_A_WORKER_IP]);
	if (rq->tb[SAINA_A_WORKER_UDP_PORT])
		req->udp_port = nla_get_be16(rq->tb[SAINA_A_WORKER_UDP_PORT]);
	if (rq->tb[SAINA_A_WORKER_MAC])
		memcpy(req->mac, nla_data(rq->tb[SAINA_A_WORKER_MAC]), sizeof(req->mac));
	get_string(rq, SAINA_A_WORKER_JOB_NAME, req->job_name, sizeof(req->job_name));
	get_string(rq, SAINA_A_WORKER_NAME, req->name, sizeof(req->name));
}

int saina_nlreq_named_job(struct saina_nlreq *rq, int id, int name, bool must,
			  const struct saina_job **job)
{
	bool any = rq->tb[id] || rq->tb[name];

	*job = NULL;
	if (!any && !must)
		return 0;
	*job = saina_core_job_find(rq->sn->core, !!rq->tb[id], get_u16(rq, id),
				   rq->tb[name] ? nla_data(rq->tb[name]) : NULL, &rq->err);
	if (*job)
		return 0;
	rq->err.attr = rq->err.attr == SAINA_A_JOB_ID ? id : name;
	return any ? -ENOENT : -EINVAL;
}
