/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Client of the configuration interface (uapi/linux/saina.h): connects to the control plane, that
 * is to generic netlink family "saina" of saina.ko, or to the agent's unix socket, and exchanges
 * netlink messages with it.
 */
#ifndef SAINA_CTL_H
#define SAINA_CTL_H

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include "linux/saina.h"
#include "saina/bpf.h"

#define SAINA_CTL_SOCKET "/run/saina/control"	/* default of the agent */

struct saina_ctl;

/* @path: a unix socket, or "kernel".  On failure *error is a sentence that says what to do next
 * (static storage). */
int saina_ctl_open(struct saina_ctl **ctl, const char *path, const char **error);
void saina_ctl_close(struct saina_ctl *ctl);
#define SAINA_CTL_TIMEOUT_MS 15000 /* default: a control plane that takes longer hangs */
/* Sets how long a call waits for its answer. */
void saina_ctl_set_timeout(struct saina_ctl *ctl, int ms);
int saina_ctl_fd(const struct saina_ctl *ctl);
const char *saina_ctl_peer(const struct saina_ctl *ctl);	/* "kernel" or the socket's path */

/* Begins a request in a buffer of the handle; the caller adds attributes with libmnl. */
struct nlmsghdr *saina_ctl_msg(struct saina_ctl *ctl, int cmd, int dump);
/* Sends the request and calls @cb with each message of the reply (attributes begin after the
 * genl header).  Returns 0 or the negative errno of the refusal; saina_ctl_error() has its
 * sentence. */
int saina_ctl_call(struct saina_ctl *ctl, struct nlmsghdr *nlh,
		   int (*cb)(const struct nlmsghdr *nlh, void *arg), void *arg);
const char *saina_ctl_error(const struct saina_ctl *ctl);
/* Name of the attribute the last refusal was about ("policy"), or NULL. */
const char *saina_ctl_error_attr(const struct saina_ctl *ctl);
/* What the last call, which has succeeded, warns of; "": nothing. */
const char *saina_ctl_warning(const struct saina_ctl *ctl);
int saina_ctl_subscribe(struct saina_ctl *ctl, unsigned int groups);
/* Waits for the next notification and returns what @cb returns for it; -ETIMEDOUT; -EINTR: a
 * signal came; -ENOBUFS: notifications were lost, the next call goes on; or the negative
 * errno of a broken connection.  @timeout_ms < 0: no time-out. */
int saina_ctl_next(struct saina_ctl *ctl, int timeout_ms,
		   int (*cb)(const struct nlmsghdr *nlh, void *arg), void *arg);

#endif /* SAINA_CTL_H */
