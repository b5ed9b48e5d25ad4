/* SPDX-License-Identifier: GPL-2.0 */
/* Requests, checked by their policy -> structures of the job core; refusals. */
#ifndef _SAINA_NLREQ_H
#define _SAINA_NLREQ_H

#include <net/genetlink.h>

#include "net/jobs.h"

#define SAINA_NLREQ_ATTRS 64

/**
 * struct saina_nlreq - a request on its way
 * @skb, @nlh: the request
 * @sn: of the sender
 * @admin: the sender may change things and see tokens
 * @object: top level attribute that the command is about, 0 if none
 * @nest: the object, NULL if there is none
 * @bad: guilty attribute that @err cannot name, or NULL
 * @has: bit for each of @tb that is there
 * @tb: the object's attributes by number
 */
struct saina_nlreq {
	struct sk_buff *skb;
	struct nlmsghdr *nlh;
	struct saina_net *sn;
	bool admin;
	int object;
	const struct nlattr *nest;
	const struct nlattr *bad;
	u64 has;
	struct nlattr *tb[SAINA_NLREQ_ATTRS];
	struct saina_core_err err;
};

/* @object: SAINA_A_JOB ..., with at most @max attributes */
int saina_nlreq_do(struct saina_nlreq *rq, struct sk_buff *skb, struct genl_info *info,
		   int object, int max);
int saina_nlreq_dump(struct saina_nlreq *rq, struct netlink_callback *cb, int object, int max);
int saina_nlreq_refuse(struct saina_nlreq *rq, int error);

int saina_nlreq_job(struct saina_nlreq *rq, struct saina_job_req *req);
void saina_nlreq_worker(const struct saina_nlreq *rq, struct saina_worker_req *req);
/* The job that attributes @id and @name mean.  *job is NULL if none of them is there
 * and it need not (@must). */
int saina_nlreq_named_job(struct saina_nlreq *rq, int id, int name, bool must,
			  const struct saina_job **job);

#endif /* _SAINA_NLREQ_H */
