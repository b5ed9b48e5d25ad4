/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Attributes (core/attrs.h) to and from messages, driven by the tables that are made
 * of the spec.
 */
#ifndef SAINA_CTL_OBJ_H
#define SAINA_CTL_OBJ_H

#include <stdbool.h>
#include <stddef.h>
#include "core/attrs.h"
#include "ctl/ctl.h"

union saina_any_attrs {
	__u64 has;
	struct saina_job_attrs job;
	struct saina_worker_attrs worker;
	struct saina_port_attrs port;
	struct saina_slot_attrs slot;
	struct saina_stats_attrs stats;
	struct saina_limits_attrs limits;
	struct saina_event_attrs event;
	struct saina_subscription_attrs subscription;
};

/* The operation or notification of a number, NULL if there is none. */
const struct saina_op *saina_ctl_op(unsigned int cmd);
/* The row of an attribute, NULL if the set has no such. */
const struct saina_attr *saina_ctl_attr(const struct saina_attr_class *c, unsigned int number);

/**
 * saina_ctl_decode() - the attributes of message @nlh, which are of set @c
 * @attrs: struct saina_<set>_attrs, overwritten
 *
 * Attributes that are not known are skipped.  Strings lose what is not
 * printable ASCII.  Returns 0, -ENOENT if messages of this command have
 * attributes of another set, -EBADMSG if it is malformed.
 */
int saina_ctl_decode(const struct nlmsghdr *nlh, const struct saina_attr_class *c, void *attrs);

/* The payload of one attribute to its place in @attrs: 0 or -EBADMSG. */
int saina_ctl_decode_attr(const struct saina_attr *row, const struct nlattr *a, void *attrs);

/* Append @attrs, those that its @has names, to @nlh. */
void saina_ctl_encode(struct nlmsghdr *nlh, const struct saina_attr_class *c, const void *attrs);

/*
 * Those of the attributes @which (bits, 1 << number) that @from has get into @to; @to then
 * has none of the others of @which.
 */
void saina_ctl_copy_attrs(void *to, const struct saina_attr_class *c, __u64 which, const void *from);

/* Replaces what is not printable ASCII: a name must not steer a terminal. */
void saina_ctl_sanitize(char *text);

#endif /* SAINA_CTL_OBJ_H */
