/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Client side of the configuration interface (uapi/linux/saina.h): finds the
 * control plane (generic netlink family "saina" if saina.ko is loaded, else
 * the agent's unix socket) and carries netlink messages to and from it.
 */
#ifndef SAINA_CTL_H
#define SAINA_CTL_H

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include "linux/saina.h"
#include "saina/bpf.h"

#define SAINA_CTL_SOCKET "/run/saina/control"	/* default; SAINA_CONTROL overrides */

struct saina_ctl;

/* @path: unix socket, or "kernel", NULL = find out ($SAINA_CONTROL, $SAINA_CTL_SOCKET,
 * the kernel, the default socket, in this order).  On failure *error is a sentence that
 * says what to do next (static storage). */
int saina_ctl_open(struct saina_ctl **ctl, const char *path, const char **error);
void saina_ctl_close(struct saina_ctl *ctl);
/* How long a call waits for an answer: 15 s, or this from now on. */
void saina_ctl_set_timeout(struct saina_ctl *ctl, int ms);
int saina_ctl_fd(const struct saina_ctl *ctl);
const char *saina_ctl_peer(const struct saina_ctl *ctl);	/* "kernel" or the socket's path */

/* Starts a request in a buffer of the handle; add attributes with libmnl. */
struct nlmsghdr *saina_ctl_msg(struct saina_ctl *ctl, int cmd, int dump);
/* Sends it; @cb gets each reply message (attributes begin after the genl
 * header).  Returns 0 or the negative errno of the refusal, whose sentence and
 * attribute saina_ctl_error() gives. */
int saina_ctl_call(struct saina_ctl *ctl, struct nlmsghdr *nlh,
		   int (*cb)(const struct nlmsghdr *nlh, void *arg), void *arg);
const char *saina_ctl_error(const struct saina_ctl *ctl);
/* Name of the attribute the last refusal was about ("policy"), or NULL. */
const char *saina_ctl_error_attr(const struct saina_ctl *ctl);
/* Subscribe, then read notifications one at a time: returns what @cb returned,
 * -ETIMEDOUT, -EINTR (a signal came), -ENOBUFS (some were lost; go on), or the
 * negative errno of a broken connection.  @timeout_ms < 0: for ever. */
int saina_ctl_subscribe(struct saina_ctl *ctl, unsigned int groups);
int saina_ctl_next(struct saina_ctl *ctl, int timeout_ms,
		   int (*cb)(const struct nlmsghdr *nlh, void *arg), void *arg);

#endif /* SAINA_CTL_H */
