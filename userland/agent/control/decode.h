/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests of the netlink family -> attributes.  What the kernel refuses by the
 * policies that are made of the spec is refused here by the tables that are: unknown
 * attributes, those that an operation does not take, wrong lengths, numbers beyond an
 * enumeration, trailing bytes; with the same errno and guilty attribute.
 */
#ifndef AGENT_DECODE_H
#define AGENT_DECODE_H

#include "core/core.h"
#include "ctl/obj.h"

#define DECODE_ATTRS 64

/**
 * struct decoded - the attributes of a request
 * @attrs: of the set of its operation
 * @tb: where they lie, by number
 * @bad: guilty attribute of a refusal, or NULL
 */
struct decoded {
	union saina_any_attrs attrs;
	const struct nlattr *tb[DECODE_ATTRS];
	const struct nlattr *bad;
};

/* @takes: bits of attributes of @c.  Return: 0, or -EINVAL, -ERANGE with the sentence in @err. */
int decode_request(const struct nlmsghdr *nlh, const struct saina_attr_class *c, __u64 takes,
		   struct decoded *d, struct saina_core_err *err);

#endif /* AGENT_DECODE_H */
