// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The client's transport: one socket to the control plane; sends requests, receives
 * replies, dumps and notifications.  Received lengths are not trusted.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <linux/netlink.h>

#include "monotonic.h"
#include "ctl/priv.h"

#define QUEUE_MAX	4096	/* notifications kept while a call waits for its reply */

static int fail_silent(struct saina_ctl *ctl)
{
	if (ctl->kernel)
		return saina_ctl_fail(ctl, -ETIMEDOUT, "the kernel has not answered for %d ms",
				      ctl->timeout_ms);
	return saina_ctl_fail(ctl, -ETIMEDOUT, "sainad at %s has not answered for %d s: " SILENT,
			      ctl->peer, ctl->timeout_ms / 1000);
}

/* Receives one datagram.  @deadline: in units of monotonic_ms(), negative: none. */
static int ctl_recv(struct saina_ctl *ctl, long deadline)
{
	struct sockaddr_nl from = { 0 };
	struct iovec iov = { ctl->reply, sizeof(ctl->reply) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct pollfd p = { .fd = ctl->fd, .events = POLLIN };
	ssize_t n;
	int ret;

	if (ctl->kernel) {
		msg.msg_name = &from;
		msg.msg_namelen = sizeof(from);
	}
	do {
		long left = deadline < 0 ? -1 : deadline - (long)monotonic_ms();

		if (deadline >= 0 && left < 0)
			left = 0;
		ret = poll(&p, 1, (int)left);
		if (ret < 0)
			return saina_ctl_fail(ctl, -errno, "waiting for %s: %s", ctl->peer,
					      strerror(errno));
		if (!ret)
			return fail_silent(ctl);
		n = recvmsg(ctl->fd, &msg, 0);
		if (n < 0 && errno == ENOBUFS) {
			ctl->lost = true;
			continue;
		}
		/* the peer closed the connection without reading our last message */
		if (n < 0 && errno == ECONNRESET)
			n = 0;
		if (n < 0)
			return saina_ctl_fail(ctl, -errno, "reading from %s: %s", ctl->peer,
					      strerror(errno));
		/* Any process can send to a netlink socket: accept the kernel's only. */
	} while (n < 0 || (ctl->kernel && from.nl_pid != 0));
	if (!n)
		return saina_ctl_fail(
			ctl, -ECONNRESET,
			"%s closed the connection: sainad has stopped, has too many clients, or is too old for this program",
			ctl->peer);
	if (msg.msg_flags & MSG_TRUNC)
		return saina_ctl_fail(ctl, -EMSGSIZE, "%s sent a message longer than %d bytes",
				      ctl->peer, REPLY_MAX);
	return (int)n;
}

/* Is there a complete message at @nlh?  (mnl_nlmsg_ok() treats lengths above INT_MAX as
 * negative.) */
static bool msg_is_complete(const struct nlmsghdr *nlh, int left)
{
	return left >= (int)sizeof(*nlh) && nlh->nlmsg_len >= sizeof(*nlh) &&
	       nlh->nlmsg_len <= (unsigned int)left;
}

static bool msg_is_ours(const struct saina_ctl *ctl, const struct nlmsghdr *nlh)
{
	return nlh->nlmsg_type == ctl->type &&
	       nlh->nlmsg_len >= NLMSG_HDRLEN + sizeof(struct genlmsghdr);
}

static void queue_push(struct saina_ctl *ctl, const struct nlmsghdr *nlh)
{
	struct notification *n;

	if (ctl->queued >= QUEUE_MAX) {
		ctl->lost = true;
		return;
	}
	/* libmnl reads attributes up to the aligned end of a message */
	n = calloc(1, offsetof(struct notification, nlh) + NLMSG_ALIGN(nlh->nlmsg_len));
	if (!n) {
		ctl->lost = true;
		return;
	}
	memcpy(&n->nlh, nlh, nlh->nlmsg_len);
	*ctl->last = n;
	ctl->last = &n->next;
	ctl->queued++;
}

static struct notification *queue_pop(struct saina_ctl *ctl)
{
	struct notification *n = ctl->first;

	if (!n)
		return NULL;
	ctl->first = n->next;
	if (!ctl->first)
		ctl->last = &ctl->first;
	ctl->queued--;
	return n;
}

struct nlmsghdr *saina_ctl_msg(struct saina_ctl *ctl, int cmd, int dump)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(ctl->request);
	struct genlmsghdr *g;

	nlh->nlmsg_type = ctl->type;
	nlh->nlmsg_flags = NLM_F_REQUEST | (dump ? NLM_F_DUMP : NLM_F_ACK);
	nlh->nlmsg_seq = ++ctl->seq;
	g = mnl_nlmsg_put_extra_header(nlh, sizeof(*g));
	g->cmd = cmd;
	g->version = SAINA_FAMILY_VERSION;
	return nlh;
}

static int ctl_send(struct saina_ctl *ctl, const struct nlmsghdr *nlh)
{
	struct sockaddr_nl to = { .nl_family = AF_NETLINK };
	struct iovec iov = { (void *)nlh, nlh->nlmsg_len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (ctl->kernel) {
		msg.msg_name = &to;
		msg.msg_namelen = sizeof(to);
	}
	while (sendmsg(ctl->fd, &msg, MSG_NOSIGNAL) < 0) {
		if (errno != EINTR)
			return saina_ctl_fail(ctl, -errno, "writing to %s: %s", ctl->peer,
					      strerror(errno));
	}
	return 0;
}

int saina_ctl_call(struct saina_ctl *ctl, struct nlmsghdr *req,
		   int (*cb)(const struct nlmsghdr *nlh, void *arg), void *arg)
{
	int n, ret, stop = 0;
	bool dump_interrupted = false;

	ctl->error[0] = ctl->warning[0] = 0;
	ctl->attr = NULL;
	ret = ctl_send(ctl, req);
	if (ret)
		return ret;
	for (;;) {
		const struct nlmsghdr *nlh = (const void *)ctl->reply;

		n = ctl_recv(ctl, monotonic_ms() + ctl->timeout_ms);
		if (n == -EINTR)
			continue;
		if (n < 0)
			return n;
		for (; msg_is_complete(nlh, n); nlh = mnl_nlmsg_next(nlh, &n)) {
			if (!nlh->nlmsg_seq && msg_is_ours(ctl, nlh)) {
				queue_push(ctl, nlh);
				continue;
			}
			if (nlh->nlmsg_seq != req->nlmsg_seq)
				continue;	/* of an earlier call that timed out */
			dump_interrupted |= !!(nlh->nlmsg_flags & NLM_F_DUMP_INTR);
			if (nlh->nlmsg_type == NLMSG_ERROR || nlh->nlmsg_type == NLMSG_DONE) {
				ret = saina_ctl_ack_parse(ctl, nlh, req);
				if (ret || stop)
					return ret ? ret : stop;
				if (dump_interrupted)
					return saina_ctl_fail(ctl, -EINTR,
						    "the data changed while it was being read: try again");
				return 0;
			}
			if (!msg_is_ours(ctl, nlh))
				return saina_ctl_fail(ctl, -EBADMSG, "%s sent a malformed message",
						      ctl->peer);
			/* After an error of the callback the rest of the reply is read,
			 * so that it is not taken for the next call's. */
			if (cb && !stop) {
				stop = cb(nlh, arg);
				if (stop < 0 && !ctl->error[0])
					saina_ctl_fail(ctl, stop,
						       "%s sent an invalid reply: %s",
						       ctl->peer, strerror(-stop));
			}
		}
		if (n > 0)
			return saina_ctl_fail(ctl, -EBADMSG, "%s sent a truncated message",
					      ctl->peer);
	}
}

int saina_ctl_subscribe(struct saina_ctl *ctl, unsigned int groups)
{
	const __u32 ids[] = { ctl->group_config, ctl->group_events };
	const unsigned int bits[] = { SAINA_GROUPS_CONFIG, SAINA_GROUPS_EVENTS };
	struct nlmsghdr *nlh;

	if (!ctl->kernel) {
		nlh = saina_ctl_msg(ctl, SAINA_CMD_SUBSCRIBE, 0);
		mnl_attr_put_u32(nlh, SAINA_A_SUBSCRIPTION_GROUPS, groups);
		return saina_ctl_call(ctl, nlh, NULL, NULL);
	}
	for (int i = 0; i < 2; i++) {
		if (!(groups & bits[i]))
			continue;
		if (!ids[i])
			return saina_ctl_fail(ctl, -EOPNOTSUPP, "saina.ko has no such event group: it is too old");
		if (setsockopt(ctl->fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &ids[i],
			       sizeof(ids[i])))
			return saina_ctl_fail(ctl, -errno, "subscribing to events: %s", strerror(errno));
	}
	return 0;
}

int saina_ctl_next(struct saina_ctl *ctl, int timeout_ms,
		   int (*cb)(const struct nlmsghdr *nlh, void *arg), void *arg)
{
	long deadline = timeout_ms < 0 ? -1 : (long)monotonic_ms() + timeout_ms;
	struct notification *note;
	int n, ret;

	for (;;) {
		const struct nlmsghdr *nlh = (const void *)ctl->reply;

		note = queue_pop(ctl);
		if (note) {
			ret = cb(&note->nlh, arg);
			free(note);
			return ret;
		}
		if (ctl->lost) {
			ctl->lost = false;
			return saina_ctl_fail(ctl, -ENOBUFS, "events were lost: they came faster than they were read");
		}
		n = ctl_recv(ctl, deadline);
		if (n < 0)
			return n;
		for (; msg_is_complete(nlh, n); nlh = mnl_nlmsg_next(nlh, &n)) {
			if (msg_is_ours(ctl, nlh))
				queue_push(ctl, nlh);
		}
		if (n > 0)
			return saina_ctl_fail(ctl, -EBADMSG, "%s sent a truncated message",
					      ctl->peer);
	}
}

void saina_ctl_set_timeout(struct saina_ctl *ctl, int ms)
{
	ctl->timeout_ms = ms;
}

int saina_ctl_fd(const struct saina_ctl *ctl)
{
	return ctl->fd;
}

const char *saina_ctl_peer(const struct saina_ctl *ctl)
{
	return ctl->peer;
}

void saina_ctl_close(struct saina_ctl *ctl)
{
	struct notification *n;

	if (!ctl)
		return;
	while ((n = queue_pop(ctl)))
		free(n);
	close(ctl->fd);
	free(ctl);
}
