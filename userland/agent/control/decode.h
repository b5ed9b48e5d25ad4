/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests of the netlink family -> attributes.  The policies of saina.ko and the tables used
 * here are generated from one spec, so both refuse the same requests with the same errno and
 * attribute: unknown attributes, those that an operation does not take, wrong lengths, numbers
 * out of range, trailing bytes.
 */
#ifndef AGENT_DECODE_H
#define AGENT_DECODE_H

#include "core/core.h"
#include "ctl/obj.h"

#define DECODE_ATTRS 64

/**
 * struct decoded - the attributes of a request
 * @attrs: their values
 * @tb: their positions in the message, by number
 * @bad: attribute that is to blame for a refusal, or NULL
 */
struct decoded {
	union saina_any_attrs attrs;
	const struct nlattr *tb[DECODE_ATTRS];
	const struct nlattr *bad;
};

/* @takes: bits of the allowed attributes of @c.  Return: 0, or -EINVAL, -ERANGE and @err. */
int decode_request(const struct nlmsghdr *nlh, const struct saina_attr_class *c, __u64 takes,
		   struct decoded *d, struct saina_core_err *err);

#endif /* AGENT_DECODE_H */
