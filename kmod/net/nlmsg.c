// SPDX-License-Identifier: GPL-2.0
#include <linux/netdevice.h>
#include <net/genetlink.h>

#include "core/policy_text.h"
#include "netlink/netlink.h"
#include "net/nlmsg.h"

/* A message with one nest in the making. */
struct draft {
	void *hdr;
	struct nlattr *nest;
};

static int draft_start(struct sk_buff *skb, const struct saina_nlmsg_to *to, int object,
		       struct draft *d)
{
	d->hdr = genlmsg_put(skb, to->portid, to->seq, &saina_nl_family, to->flags, to->cmd);
	if (!d->hdr)
		return -EMSGSIZE;
	d->nest = nla_nest_start(skb, object);
	if (d->nest)
		return 0;
	genlmsg_cancel(skb, d->hdr);
	return -EMSGSIZE;
}

static int draft_end(struct sk_buff *skb, struct draft *d, int failed)
{
	if (failed) {
		genlmsg_cancel(skb, d->hdr);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, d->nest);
	genlmsg_end(skb, d->hdr);
	return 0;
}

static int put_policy(struct sk_buff *skb, int attr, const struct saina_policy *p)
{
	char text[SAINA_POLICY_TEXT_LEN];

	saina_policy_format(p, text, sizeof(text));
	return nla_put_string(skb, attr, text);
}

static int put_job_config(struct sk_buff *skb, const struct saina_job *job, bool tokens)
{
	char token[SAINA_TOKEN_LEN + 1] = "";

	if (tokens && job->token[0]) {
		memcpy(token, job->token, SAINA_TOKEN_LEN);
		if (nla_put_string(skb, SAINA_A_JOB_TOKEN, token))
			return -EMSGSIZE;
	}
	return put_policy(skb, SAINA_A_JOB_POLICY, &job->policy) ||
	       nla_put_u16(skb, SAINA_A_JOB_ID, job->id) ||
	       nla_put_string(skb, SAINA_A_JOB_NAME, job->name) ||
	       nla_put_u8(skb, SAINA_A_JOB_STATE, job->state) ||
	       nla_put_u64_64bit(skb, SAINA_A_JOB_ELEMENTS, job->elements, SAINA_A_JOB_PAD) ||
	       nla_put_u8(skb, SAINA_A_JOB_WORKERS, job->workers) ||
	       nla_put_u16(skb, SAINA_A_JOB_PAYLOAD, job->payload) ||
	       nla_put_u32(skb, SAINA_A_JOB_POOL, job->pool) ||
	       nla_put_u32(skb, SAINA_A_JOB_RING, job->ring) ||
	       nla_put_u8(skb, SAINA_A_JOB_ELEM_TYPE, job->elem) ||
	       nla_put_s8(skb, SAINA_A_JOB_EXPONENT, job->exponent) ||
	       nla_put_u16(skb, SAINA_A_JOB_HEARTBEAT_MS, job->heartbeat_ms) ||
	       nla_put_u16(skb, SAINA_A_JOB_DEAD_MS, job->dead_ms) ||
	       nla_put_u32(skb, SAINA_A_JOB_GENERATION, job->generation) ||
	       nla_put_u32(skb, SAINA_A_JOB_POLICY_SEQ, job->policy.seq) ||
	       nla_put_u32(skb, SAINA_A_JOB_SEGMENTS, job->segments) ||
	       nla_put_u64_64bit(skb, SAINA_A_JOB_MEMORY, job->memory, SAINA_A_JOB_PAD) ||
	       nla_put_u64_64bit(skb, SAINA_A_JOB_ACTIVE, job->active, SAINA_A_JOB_PAD);
}

/* Only what the data path has told; nothing before its first event. */
static int put_job_live(struct sk_buff *skb, const struct saina_job *job,
			const struct saina_live *live)
{
	u32 seq;

	if (!live || !READ_ONCE(live->k))
		return 0;
	seq = READ_ONCE(live->policy_seq);
	if (seq && nla_put_u32(skb, SAINA_A_JOB_POLICY_SEQ_ACTIVE, seq))
		return -EMSGSIZE;
	if (seq && seq == job->policy.seq &&
	    put_policy(skb, SAINA_A_JOB_POLICY_ACTIVE, &job->policy))
		return -EMSGSIZE;
	return nla_put_u32(skb, SAINA_A_JOB_ROUND, READ_ONCE(live->next_round)) ||
	       nla_put_u8(skb, SAINA_A_JOB_K, READ_ONCE(live->k));
}

/**
 * saina_nlmsg_job() - append a job
 * @skb: to this
 * @to: whose message
 * @sn: namespace, locked
 * @job: of @sn
 * @tokens: the reader may see them
 *
 * Return: 0 or -EMSGSIZE
 */
int saina_nlmsg_job(struct sk_buff *skb, const struct saina_nlmsg_to *to,
		    const struct saina_net *sn, const struct saina_job *job, bool tokens)
{
	struct draft d;

	if (draft_start(skb, to, SAINA_A_JOB, &d))
		return -EMSGSIZE;
	return draft_end(skb, &d, put_job_config(skb, job, tokens) ||
				  put_job_live(skb, job, saina_jobs_live(sn, job)));
}

static int put_ifname(struct sk_buff *skb, struct net *net, u32 ifindex)
{
	struct net_device *dev;
	int ret = 0;

	rcu_read_lock();
	dev = dev_get_by_index_rcu(net, ifindex);
	if (dev)
		ret = nla_put_string(skb, SAINA_A_WORKER_IFNAME, dev->name);
	rcu_read_unlock();
	return ret;
}

static int put_binding(struct sk_buff *skb, struct net *net, const struct saina_binding *b)
{
	if (!(b->flags & SAINA_BIND_BOUND))
		return 0;
	return nla_put_u32(skb, SAINA_A_WORKER_IFINDEX, b->ifindex) ||
	       put_ifname(skb, net, b->ifindex) ||
	       nla_put_be32(skb, SAINA_A_WORKER_IP, b->ip) ||
	       nla_put(skb, SAINA_A_WORKER_MAC, sizeof(b->mac), b->mac) ||
	       nla_put_be16(skb, SAINA_A_WORKER_UDP_PORT, b->udp_port) ||
	       nla_put_u64_64bit(skb, SAINA_A_WORKER_SESSION, b->session, SAINA_A_WORKER_PAD) ||
	       nla_put_u8(skb, SAINA_A_WORKER_RELAY, !!(b->flags & SAINA_BIND_RELAY));
}

int saina_nlmsg_worker(struct sk_buff *skb, const struct saina_nlmsg_to *to,
		       const struct saina_net *sn, const struct saina_job *job, int w)
{
	const struct saina_worker *wk = &job->worker[w];
	struct draft d;

	if (draft_start(skb, to, SAINA_A_WORKER, &d))
		return -EMSGSIZE;
	return draft_end(skb, &d, nla_put_u16(skb, SAINA_A_WORKER_JOB_ID, job->id) ||
				  nla_put_string(skb, SAINA_A_WORKER_JOB_NAME, job->name) ||
				  nla_put_u8(skb, SAINA_A_WORKER_ID, w) ||
				  nla_put_string(skb, SAINA_A_WORKER_NAME, wk->name) ||
				  nla_put_u8(skb, SAINA_A_WORKER_STATE, wk->state) ||
				  put_binding(skb, sn->net, &wk->bind));
}

int saina_nlmsg_stats(struct sk_buff *skb, const struct saina_nlmsg_to *to,
		      const struct saina_net *sn, const struct saina_job *job, int w)
{
	struct saina_counters sum;
	struct draft d;
	int failed = 0;

	if (draft_start(skb, to, SAINA_A_STATS, &d))
		return -EMSGSIZE;
	if (job) {
		saina_jobs_counters(saina_jobs_live(sn, job)->counters + w, &sum);
		failed = nla_put_u16(skb, SAINA_A_STATS_JOB_ID, job->id) ||
			 nla_put_string(skb, SAINA_A_STATS_JOB_NAME, job->name) ||
			 nla_put_u8(skb, SAINA_A_STATS_WORKER, w);
	} else {
		saina_jobs_counters(sn->global, &sum);
	}
	return draft_end(skb, &d, failed || nla_put_64bit(skb, SAINA_A_STATS_COUNTERS, sizeof(sum.c),
							  sum.c, SAINA_A_STATS_PAD));
}

int saina_nlmsg_limits(struct sk_buff *skb, const struct saina_nlmsg_to *to,
		       const struct saina_net *sn)
{
	struct saina_limits l;
	struct draft d;
	u64 memory;
	u32 jobs;

	saina_core_limits_get(sn->core, &l, &jobs, &memory);
	if (draft_start(skb, to, SAINA_A_LIMITS, &d))
		return -EMSGSIZE;
	return draft_end(skb, &d, nla_put_u32(skb, SAINA_A_LIMITS_JOBS, l.jobs) ||
				  nla_put_u64_64bit(skb, SAINA_A_LIMITS_MEMORY_JOB, l.memory_job,
						    SAINA_A_LIMITS_PAD) ||
				  nla_put_u64_64bit(skb, SAINA_A_LIMITS_MEMORY, l.memory,
						    SAINA_A_LIMITS_PAD) ||
				  nla_put_u32(skb, SAINA_A_LIMITS_JOBS_USED, jobs) ||
				  nla_put_u64_64bit(skb, SAINA_A_LIMITS_MEMORY_USED, memory,
						    SAINA_A_LIMITS_PAD) ||
				  nla_put_u8(skb, SAINA_A_LIMITS_PLANE, SAINA_PLANE_KERNEL));
}

int saina_nlmsg_event(struct sk_buff *skb, const struct saina_event *ev, const char *name)
{
	static const struct saina_nlmsg_to to = { .cmd = SAINA_CMD_EVENT };
	struct draft d;

	if (draft_start(skb, &to, SAINA_A_EVENT, &d))
		return -EMSGSIZE;
	return draft_end(skb, &d,
			 nla_put_u32(skb, SAINA_A_EVENT_TYPE, ev->type) ||
			 nla_put_u64_64bit(skb, SAINA_A_EVENT_TIME, ev->time, SAINA_A_EVENT_PAD) ||
			 nla_put_u16(skb, SAINA_A_EVENT_JOB_ID, ev->job) ||
			 (name && nla_put_string(skb, SAINA_A_EVENT_JOB_NAME, name)) ||
			 nla_put_u32(skb, SAINA_A_EVENT_ROUND, ev->round) ||
			 nla_put_u8(skb, SAINA_A_EVENT_K, ev->k) ||
			 (ev->worker != 0xff && nla_put_u8(skb, SAINA_A_EVENT_WORKER, ev->worker)) ||
			 nla_put_u64_64bit(skb, SAINA_A_EVENT_A, ev->a, SAINA_A_EVENT_PAD) ||
			 nla_put_u64_64bit(skb, SAINA_A_EVENT_B, ev->b, SAINA_A_EVENT_PAD));
}
