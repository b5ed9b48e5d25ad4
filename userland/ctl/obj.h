/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Encoding and decoding of attributes (core/attrs.h), by the tables generated from the spec.
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

/* The operation or notification of number @cmd, NULL: none. */
const struct saina_op *saina_ctl_op(unsigned int cmd);
/* The row of attribute @number, NULL: the set has none. */
const struct saina_attr *saina_ctl_attr(const struct saina_attr_class *c, unsigned int number);

/**
 * saina_ctl_decode() - decode the attributes of message @nlh, which are of set @c
 * @attrs: struct saina_<set>_attrs, overwritten
 *
 * Unknown attributes are skipped.  In strings, what is not printable ASCII is replaced.  Returns 0,
 * -ENOENT if messages of this command have attributes of another set, -EBADMSG if it is malformed.
 */
int saina_ctl_decode(const struct nlmsghdr *nlh, const struct saina_attr_class *c, void *attrs);

/* Decodes one attribute to its member of @attrs.  Returns 0 or -EBADMSG. */
int saina_ctl_decode_attr(const struct saina_attr *row, const struct nlattr *a, void *attrs);

/* Appends those of @attrs that its @has names to @nlh. */
void saina_ctl_encode(struct nlmsghdr *nlh, const struct saina_attr_class *c, const void *attrs);

/* Replaces what is not printable ASCII: a name must not control a terminal. */
void saina_ctl_sanitize(char *text);

#endif /* SAINA_CTL_OBJ_H */
