/* SPDX-License-Identifier: GPL-2.0 */
/* Requests: attributes in, an answer or a refusal out. */
#ifndef _SAINA_REQUEST_H
#define _SAINA_REQUEST_H

#include <net/genetlink.h>

#include "pernet/nlmsg.h"

/**
 * struct saina_request - a request being handled
 * @skb: the message
 * @nlh: its header
 * @sn: of the sender
 * @admin: the sender may change things and see tokens and sessions
 * @reply: allocated before anything is changed, for the operations that have one
 * @bad: guilty attribute that @err cannot name, or NULL
 * @err: of a refusal
 * @has: attributes of the request that are there; first member of those that follow
 * @job: its attributes, if it is about jobs; can be overwritten by the answer
 * @worker: the same, about workers
 * @limits: the same, about limits
 */
struct saina_request {
	struct sk_buff *skb;
	struct nlmsghdr *nlh;
	struct saina_net *sn;
	bool admin;
	struct sk_buff *reply;
	const struct nlattr *bad;
	struct saina_core_err err;
	union {
		u64 has;
		struct saina_job_attrs job;
		struct saina_worker_attrs worker;
		struct saina_limits_attrs limits;
	};
};

/* Between pre_doit and post_doit; the lock of @sn is held. */
static inline struct saina_request *saina_request_of(const struct genl_info *info)
{
	return info->user_ptr[0];
}

/* Of a dump that starts; takes no lock. */
int saina_request_dump(struct saina_request *rq, struct netlink_callback *cb);

/* What a handler returns: 0, or after a refusal. */
int saina_request_end(struct saina_request *rq, int error);
/* The same, after the reply is sent with the attributes in @rq, which are of set @c. */
int saina_request_answer(struct saina_request *rq, int error, const struct saina_attr_class *c);

/*
 * The job of the request's attributes @id_attr (@id) and @name_attr (@name): 0, or a
 * refusal.  *job is NULL if none of them is there and it need not (@must).
 */
int saina_request_job(struct saina_request *rq, int id_attr, u16 id, int name_attr,
		      const char *name, bool must, const struct saina_job **job);

#endif /* _SAINA_REQUEST_H */
