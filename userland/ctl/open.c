// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Connecting to the control plane: the kernel's, or the agent's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <linux/netlink.h>

#include "ctl/priv.h"

#define CONNECT_S 3 /* for connect(), which waits while an agent that hangs has its queue full */

static char open_error[512];

static void groups_parse(struct saina_ctl *ctl, const struct nlattr *groups)
{
	const struct nlattr *g, *a;

	mnl_attr_for_each_nested(g, groups) {
		const char *name = NULL;
		__u32 id = 0;

		mnl_attr_for_each_nested(a, g) {
			if (mnl_attr_get_type(a) == CTRL_ATTR_MCAST_GRP_NAME &&
			    mnl_attr_validate(a, MNL_TYPE_NUL_STRING) >= 0)
				name = mnl_attr_get_str(a);
			if (mnl_attr_get_type(a) == CTRL_ATTR_MCAST_GRP_ID &&
			    mnl_attr_validate(a, MNL_TYPE_U32) >= 0)
				id = mnl_attr_get_u32(a);
		}
		if (name && !strcmp(name, SAINA_MCGRP_CONFIG))
			ctl->group_config = id;
		if (name && !strcmp(name, SAINA_MCGRP_EVENTS))
			ctl->group_events = id;
	}
}

static int family_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct saina_ctl *ctl = arg;
	const struct nlattr *a;

	mnl_attr_for_each(a, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(a) == CTRL_ATTR_FAMILY_ID &&
		    mnl_attr_validate(a, MNL_TYPE_U16) >= 0)
			ctl->type = mnl_attr_get_u16(a);
		if (mnl_attr_get_type(a) == CTRL_ATTR_MCAST_GROUPS)
			groups_parse(ctl, a);
	}
	return 0;
}

/* Returns 0, -ENOENT if the kernel has no such family, or another errno. */
static int kernel_open(struct saina_ctl *ctl)
{
	struct sockaddr_nl me = { .nl_family = AF_NETLINK };
	struct genlmsghdr *g;
	struct nlmsghdr *nlh;
	int one = 1, ret;

	ctl->kernel = true;
	snprintf(ctl->peer, sizeof(ctl->peer), "kernel");
	ctl->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (ctl->fd < 0)
		return errno == EAFNOSUPPORT || errno == EPROTONOSUPPORT ? -ENOENT : -errno;
	if (bind(ctl->fd, (void *)&me, sizeof(me))) {
		ret = -errno;
		goto err_close;
	}
	setsockopt(ctl->fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	setsockopt(ctl->fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));

	ctl->type = GENL_ID_CTRL;
	nlh = saina_ctl_msg(ctl, CTRL_CMD_GETFAMILY, 0);
	g = mnl_nlmsg_get_payload(nlh);
	g->version = 1;
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, SAINA_FAMILY_NAME);
	ret = saina_ctl_call(ctl, nlh, family_cb, ctl);
	if (!ret && ctl->type == GENL_ID_CTRL)
		ret = -ENOENT;
	if (!ret)
		return 0;
err_close:
	close(ctl->fd);
	ctl->fd = -1;
	return ret;
}

static int socket_open(struct saina_ctl *ctl, const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct timeval wait = { .tv_sec = CONNECT_S };
	int ret;

	if (strlen(path) >= sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	strcpy(sun.sun_path, path);
	ctl->kernel = false;
	ctl->type = SAINA_NLMSG_TYPE;
	snprintf(ctl->peer, sizeof(ctl->peer), "%s", path);
	ctl->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (ctl->fd < 0)
		return -errno;
	setsockopt(ctl->fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	while (connect(ctl->fd, (void *)&sun, sizeof(sun))) {
		if (errno == EINTR)
			continue;
		ret = -errno;
		close(ctl->fd);
		ctl->fd = -1;
		return ret;
	}
	return 0;
}

static void open_error_set(int err, const char *path)
{
	const char *what;

	switch (err) {
	case -ENOENT:
		what = "there is no such socket";
		break;
	case -ECONNREFUSED:
		what = "no process listens on it (was sainad killed?)";
		break;
	case -EACCES:
	case -EPERM:
		snprintf(open_error, sizeof(open_error),
			 "not allowed to talk to the control plane at %s: run this as root", path);
		return;
	case -EAGAIN:
		snprintf(open_error, sizeof(open_error),
			 "sainad at %s has accepted no connection for %d s: " SILENT, path,
			 CONNECT_S);
		return;
	case -EPROTOTYPE:
		what = "it is not a control socket of sainad";
		break;
	default:
		what = strerror(-err);
	}
	snprintf(open_error, sizeof(open_error),
		 "no control plane at %s: %s; start sainad with that control socket, or name the right one (-s, SAINA_CONTROL)",
		 path, what);
}

int saina_ctl_open(struct saina_ctl **out, const char *path, const char **error)
{
	struct saina_ctl *ctl = calloc(1, sizeof(*ctl));
	int ret;

	*out = NULL;
	*error = open_error;
	if (!ctl) {
		snprintf(open_error, sizeof(open_error), "out of memory");
		return -ENOMEM;
	}
	ctl->last = &ctl->first;
	ctl->timeout_ms = SAINA_CTL_TIMEOUT_MS;
	ctl->fd = -1;
	if (!strcmp(path, "kernel")) {
		ret = kernel_open(ctl);
		if (ret)
			snprintf(open_error, sizeof(open_error),
				 "no control plane in the kernel: %s; load saina.ko (modprobe saina), or use sainad as the control plane (control_plane = \"agent\")",
				 ret == -ENOENT ? "saina.ko is not loaded" : strerror(-ret));
	} else {
		ret = socket_open(ctl, path);
		if (ret)
			open_error_set(ret, path);
	}
	if (ret) {
		free(ctl);
		return ret;
	}
	ctl->error[0] = 0;
	*error = NULL;
	*out = ctl;
	return 0;
}
