/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests of the netlink family -> structures of the job core.  As strict as
 * the kernel's: unknown attributes, wrong lengths, attributes a command does
 * not take and trailing bytes are refused.
 */
#ifndef AGENT_DECODE_H
#define AGENT_DECODE_H

#include <libmnl/libmnl.h>
#include "core/core.h"

#define DECODE_ATTRS 64

/**
 * struct decoded - the attributes of a request
 * @nest: the object, or NULL
 * @tb: its attributes by number
 * @groups: top level GROUPS, or NULL
 * @bad: guilty attribute of a refusal, or NULL
 * @has: bit for each of @tb that is there
 */
struct decoded {
	const struct nlattr *nest;
	const struct nlattr *tb[DECODE_ATTRS];
	const struct nlattr *groups;
	const struct nlattr *bad;
	__u64 has;
};

/* @top: SAINA_A_JOB .. SAINA_A_GROUPS, the one that may be there (0: none);
 * @allowed: bits of its attributes.  Return: 0 or -EINVAL, -ERANGE with the
 * sentence in @err. */
int decode_request(const struct nlmsghdr *nlh, int top, __u64 allowed, struct decoded *d,
		   struct saina_core_err *err);

/* Return: 0, or the refusal of the policy in @err */
int decode_job(struct decoded *d, struct saina_job_req *req, struct saina_core_err *err);
void decode_worker(const struct decoded *d, struct saina_worker_req *req);
const char *decode_string(const struct decoded *d, int attr);	/* NULL if absent */

#endif /* AGENT_DECODE_H */
