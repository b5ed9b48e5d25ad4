// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The client's transport: one socket to whichever control plane is there,
 * requests out, replies, dumps and notifications in.  What comes in is not
 * trusted: lengths are checked before anything is looked at.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <linux/netlink.h>

#include "ctl/ctl.h"
#include "ctl/obj.h"

#define REQUEST_MAX	8192
#define REPLY_MAX	(256 * 1024)
#define ANSWER_MS	15000	/* a control plane that is silent for longer is stuck */
#define QUEUE_MAX	4096	/* notifications kept while a call waits for its reply */

#ifndef SOL_NETLINK
#define SOL_NETLINK 270
#endif

struct note {
	struct note *next;
	struct nlmsghdr nlh;	/* and what follows it */
};

struct saina_ctl {
	int fd;
	bool kernel;
	__u16 type;		/* of our messages */
	__u32 group_config;	/* multicast groups of the family, kernel only */
	__u32 group_events;
	__u32 seq;
	char where[108];
	char error[512];
	const char *attr;	/* guilty attribute of the last refusal, or NULL */
	struct note *first, **last;
	unsigned int queued;
	bool lost;		/* notifications had to be dropped */
	char request[REQUEST_MAX] __attribute__((aligned(8)));
	char reply[REPLY_MAX] __attribute__((aligned(8)));
};

static char open_error[512];

static int fail(struct saina_ctl *ctl, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct saina_ctl *ctl, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ctl->error, sizeof(ctl->error), fmt, ap);
	va_end(ap);
	return err;
}

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000L + ts.tv_nsec / 1000000;
}

/* One datagram, within @deadline (now_ms() scale, negative: for ever). */
static int receive(struct saina_ctl *ctl, long deadline)
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
		long left = deadline < 0 ? -1 : deadline - now_ms();

		if (deadline >= 0 && left < 0)
			left = 0;
		ret = poll(&p, 1, (int)left);
		if (ret < 0)
			return fail(ctl, -errno, "waiting for %s: %s", ctl->where, strerror(errno));
		if (!ret)
			return fail(ctl, -ETIMEDOUT, "%s did not answer in time", ctl->where);
		n = recvmsg(ctl->fd, &msg, 0);
		if (n < 0 && errno == ENOBUFS) {
			ctl->lost = true;
			continue;
		}
		if (n < 0)
			return fail(ctl, -errno, "reading from %s: %s", ctl->where, strerror(errno));
		/* Another process can send to a netlink socket: only the kernel counts. */
	} while (n < 0 || (ctl->kernel && from.nl_pid != 0));
	if (!n)
		return fail(ctl, -ECONNRESET,
			    "%s closed the connection: sainad stopped, or it is too old for this tool",
			    ctl->where);
	if (msg.msg_flags & MSG_TRUNC)
		return fail(ctl, -EMSGSIZE, "%s sent a message longer than %d bytes", ctl->where,
			    REPLY_MAX);
	return (int)n;
}

/* Is there a whole message at @nlh?  (mnl_nlmsg_ok() takes lengths above
 * INT_MAX for negative ones.) */
static bool whole(const struct nlmsghdr *nlh, int left)
{
	return left >= (int)sizeof(*nlh) && nlh->nlmsg_len >= sizeof(*nlh) &&
	       nlh->nlmsg_len <= (unsigned int)left;
}

static bool is_ours(const struct saina_ctl *ctl, const struct nlmsghdr *nlh)
{
	return nlh->nlmsg_type == ctl->type &&
	       nlh->nlmsg_len >= NLMSG_HDRLEN + sizeof(struct genlmsghdr);
}

static void queue_put(struct saina_ctl *ctl, const struct nlmsghdr *nlh)
{
	struct note *n;

	if (ctl->queued >= QUEUE_MAX) {
		ctl->lost = true;
		return;
	}
	/* libmnl looks at attributes up to the aligned end of a message */
	n = calloc(1, offsetof(struct note, nlh) + NLMSG_ALIGN(nlh->nlmsg_len));
	if (!n) {
		ctl->lost = true;
		return;
	}
	memcpy(&n->nlh, nlh, nlh->nlmsg_len);
	*ctl->last = n;
	ctl->last = &n->next;
	ctl->queued++;
}

static struct note *queue_get(struct saina_ctl *ctl)
{
	struct note *n = ctl->first;

	if (!n)
		return NULL;
	ctl->first = n->next;
	if (!ctl->first)
		ctl->last = &ctl->first;
	ctl->queued--;
	return n;
}

/* The object (NULL: top level) and attribute at byte @offs of the request. */
static const char *guilty(const struct nlmsghdr *req, __u32 offs)
{
	const struct saina_ctl_class *c = NULL;
	const struct nlattr *a, *hit;

	if (offs > req->nlmsg_len || req->nlmsg_len - offs < sizeof(*hit) || offs % NLMSG_ALIGNTO)
		return NULL;
	hit = (const void *)((const char *)req + offs);
	mnl_attr_for_each(a, req, sizeof(struct genlmsghdr)) {
		const char *end = (const char *)a + a->nla_len;

		if (a == hit)
			return NULL;	/* a whole object: says nothing */
		if ((const char *)hit > (const char *)a && (const char *)hit < end)
			c = saina_ctl_class_find(mnl_attr_get_type(a));
	}
	return c ? saina_ctl_attr_name(c, mnl_attr_get_type(hit)) : NULL;
}

/* The attribute that is missing from the nest at @nest of the request. */
static const char *missing(const struct nlmsghdr *req, __u32 type, __u32 nest)
{
	const struct saina_ctl_class *c;

	if (nest > req->nlmsg_len || req->nlmsg_len - nest < sizeof(struct nlattr) ||
	    nest % NLMSG_ALIGNTO)
		return NULL;
	c = saina_ctl_class_find(mnl_attr_get_type((const void *)((const char *)req + nest)));
	return c ? saina_ctl_attr_name(c, type) : NULL;
}

/* Sentence and attribute of a refusal; @tlv points behind the fixed part. */
static void ext_ack(struct saina_ctl *ctl, const struct nlmsghdr *req, const char *tlv,
		    const char *end, int err)
{
	const struct nlattr *a = (const void *)tlv;
	__u32 offs = 0, miss = 0, nest = 0;
	bool has_miss = false;
	char text[256] = "";
	int left = (int)(end - tlv);

	for (; left > 0 && mnl_attr_ok(a, left);
	     left -= MNL_ALIGN(a->nla_len), a = mnl_attr_next(a)) {
		unsigned int len = mnl_attr_get_payload_len(a);

		switch (mnl_attr_get_type(a)) {
		case NLMSGERR_ATTR_MSG:
			if (len >= sizeof(text))
				len = sizeof(text) - 1;
			memcpy(text, mnl_attr_get_payload(a), len);
			text[len] = 0;
			saina_ctl_clean(text);
			break;
		case NLMSGERR_ATTR_OFFS:
			if (len == 4)
				offs = mnl_attr_get_u32(a);
			break;
		case NLMSGERR_ATTR_MISS_TYPE:
			has_miss = len == 4;
			if (has_miss)
				miss = mnl_attr_get_u32(a);
			break;
		case NLMSGERR_ATTR_MISS_NEST:
			if (len == 4)
				nest = mnl_attr_get_u32(a);
			break;
		}
	}
	if (offs)
		ctl->attr = guilty(req, offs);
	else if (has_miss)
		ctl->attr = missing(req, miss, nest);
	if (!text[0])
		fail(ctl, err, err == -EPERM || err == -EACCES ? "%s (are you root?)" : "%s",
		     strerror(-err));
	else
		fail(ctl, err, "%s", text);
}

/* An NLMSG_ERROR or NLMSG_DONE; returns its errno, 0 for a plain "done". */
static int verdict(struct saina_ctl *ctl, const struct nlmsghdr *nlh, const struct nlmsghdr *req)
{
	const char *body = (const char *)nlh + NLMSG_HDRLEN;
	const char *end = (const char *)nlh + nlh->nlmsg_len;
	size_t fixed = nlh->nlmsg_type == NLMSG_ERROR ? sizeof(struct nlmsgerr) : sizeof(int);
	int err;

	if ((size_t)(end - body) < fixed) {
		if (nlh->nlmsg_type == NLMSG_DONE)
			return 0;
		return fail(ctl, -EBADMSG, "%s sent a malformed acknowledgement", ctl->where);
	}
	memcpy(&err, body, sizeof(err));
	if (!err)
		return 0;
	if (err > 0 || err < -4095)
		return fail(ctl, -EBADMSG, "%s sent an error that is none (%d)", ctl->where, err);
	/* Without NLM_F_CAPPED the request itself stands before the TLVs. */
	if (nlh->nlmsg_type == NLMSG_ERROR && !(nlh->nlmsg_flags & NLM_F_CAPPED)) {
		const struct nlmsgerr *e = (const void *)body;

		if (e->msg.nlmsg_len >= sizeof(e->msg) &&
		    e->msg.nlmsg_len - sizeof(e->msg) <= (size_t)(end - body) - fixed)
			fixed += NLMSG_ALIGN(e->msg.nlmsg_len - sizeof(e->msg));
	}
	if (!(nlh->nlmsg_flags & NLM_F_ACK_TLVS) || (size_t)(end - body) < fixed)
		fixed = end - body;
	ext_ack(ctl, req, body + fixed, end, err);
	return err;
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
	g->version = SAINA_GENL_VERSION;
	return nlh;
}

static int transmit(struct saina_ctl *ctl, const struct nlmsghdr *nlh)
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
			return fail(ctl, -errno, "writing to %s: %s", ctl->where, strerror(errno));
	}
	return 0;
}

int saina_ctl_call(struct saina_ctl *ctl, struct nlmsghdr *req,
		   int (*cb)(const struct nlmsghdr *nlh, void *arg), void *arg)
{
	int n, ret, stop = 0;
	bool torn = false;

	ctl->error[0] = 0;
	ctl->attr = NULL;
	ret = transmit(ctl, req);
	if (ret)
		return ret;
	for (;;) {
		const struct nlmsghdr *nlh = (const void *)ctl->reply;

		n = receive(ctl, now_ms() + ANSWER_MS);
		if (n == -EINTR)
			continue;
		if (n < 0)
			return n;
		for (; whole(nlh, n); nlh = mnl_nlmsg_next(nlh, &n)) {
			if (!nlh->nlmsg_seq && is_ours(ctl, nlh)) {
				queue_put(ctl, nlh);
				continue;
			}
			if (nlh->nlmsg_seq != req->nlmsg_seq)
				continue;	/* left over from a call given up */
			torn |= !!(nlh->nlmsg_flags & NLM_F_DUMP_INTR);
			if (nlh->nlmsg_type == NLMSG_ERROR || nlh->nlmsg_type == NLMSG_DONE) {
				ret = verdict(ctl, nlh, req);
				if (ret || stop)
					return ret ? ret : stop;
				if (torn)
					return fail(ctl, -EINTR,
						    "it changed while it was being read: try again");
				return 0;
			}
			if (!is_ours(ctl, nlh))
				return fail(ctl, -EBADMSG, "%s sent a malformed message",
					    ctl->where);
			/* A callback that gives up does not see the rest, but the
			 * rest must be read for the next call to begin clean. */
			if (cb && !stop) {
				stop = cb(nlh, arg);
				if (stop < 0 && !ctl->error[0])
					fail(ctl, stop, "the answer of %s makes no sense: %s",
					     ctl->where, strerror(-stop));
			}
		}
		if (n > 0)
			return fail(ctl, -EBADMSG, "%s sent a truncated message", ctl->where);
	}
}

const char *saina_ctl_error(const struct saina_ctl *ctl)
{
	return ctl->error[0] ? ctl->error : "no error";
}

const char *saina_ctl_error_attr(const struct saina_ctl *ctl)
{
	return ctl->attr;
}

int saina_ctl_subscribe(struct saina_ctl *ctl, unsigned int groups)
{
	const __u32 ids[] = { ctl->group_config, ctl->group_events };
	const unsigned int bits[] = { SAINA_GROUP_F_CONFIG, SAINA_GROUP_F_EVENTS };
	struct nlmsghdr *nlh;

	if (!ctl->kernel) {
		nlh = saina_ctl_msg(ctl, SAINA_CMD_SUBSCRIBE, 0);
		mnl_attr_put_u32(nlh, SAINA_A_GROUPS, groups);
		return saina_ctl_call(ctl, nlh, NULL, NULL);
	}
	for (int i = 0; i < 2; i++) {
		if (!(groups & bits[i]))
			continue;
		if (!ids[i])
			return fail(ctl, -EOPNOTSUPP, "saina.ko has no such event group: it is too old");
		if (setsockopt(ctl->fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &ids[i],
			       sizeof(ids[i])))
			return fail(ctl, -errno, "subscribing to events: %s", strerror(errno));
	}
	return 0;
}

int saina_ctl_next(struct saina_ctl *ctl, int timeout_ms,
		   int (*cb)(const struct nlmsghdr *nlh, void *arg), void *arg)
{
	long deadline = timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
	struct note *note;
	int n, ret;

	for (;;) {
		const struct nlmsghdr *nlh = (const void *)ctl->reply;

		note = queue_get(ctl);
		if (note) {
			ret = cb(&note->nlh, arg);
			free(note);
			return ret;
		}
		if (ctl->lost) {
			ctl->lost = false;
			return fail(ctl, -ENOBUFS, "events were lost: they came faster than they were read");
		}
		n = receive(ctl, deadline);
		if (n < 0)
			return n;
		for (; whole(nlh, n); nlh = mnl_nlmsg_next(nlh, &n)) {
			if (is_ours(ctl, nlh))
				queue_put(ctl, nlh);
		}
		if (n > 0)
			return fail(ctl, -EBADMSG, "%s sent a truncated message", ctl->where);
	}
}

int saina_ctl_fd(const struct saina_ctl *ctl)
{
	return ctl->fd;
}

const char *saina_ctl_where(const struct saina_ctl *ctl)
{
	return ctl->where;
}

/* ---- finding the control plane -------------------------------------------------- */

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

/* Returns 0, -ENOENT if the kernel has no such family, another errno. */
static int open_kernel(struct saina_ctl *ctl)
{
	struct sockaddr_nl me = { .nl_family = AF_NETLINK };
	struct genlmsghdr *g;
	struct nlmsghdr *nlh;
	int one = 1, ret;

	ctl->kernel = true;
	snprintf(ctl->where, sizeof(ctl->where), "kernel");
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
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, SAINA_GENL_NAME);
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

static int open_socket(struct saina_ctl *ctl, const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int ret;

	if (strlen(path) >= sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	strcpy(sun.sun_path, path);
	ctl->kernel = false;
	ctl->type = SAINA_NLMSG_TYPE;
	snprintf(ctl->where, sizeof(ctl->where), "%s", path);
	ctl->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (ctl->fd < 0)
		return -errno;
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

static void explain(int err, const char *path, bool chosen)
{
	const char *what;

	switch (err) {
	case -ENOENT:
		what = "there is no such socket";
		break;
	case -ECONNREFUSED:
		what = "nobody listens on it (sainad was killed?)";
		break;
	case -EACCES:
	case -EPERM:
		snprintf(open_error, sizeof(open_error),
			 "not allowed to talk to the control plane at %s: run this as root", path);
		return;
	case -EPROTOTYPE:
		what = "it is not a control socket of sainad";
		break;
	default:
		what = strerror(-err);
	}
	if (chosen)
		snprintf(open_error, sizeof(open_error),
			 "no control plane at %s: %s; start sainad with that control socket, or name the right one (-s, SAINA_CONTROL)",
			 path, what);
	else
		snprintf(open_error, sizeof(open_error),
			 "no control plane: saina.ko is not loaded and at %s %s; start sainad, or name its control socket (-s, SAINA_CONTROL)",
			 path, what);
}

int saina_ctl_open(struct saina_ctl **out, const char *path, const char **error)
{
	struct saina_ctl *ctl = calloc(1, sizeof(*ctl));
	bool chosen = true;
	int ret;

	*out = NULL;
	*error = open_error;
	if (!ctl) {
		snprintf(open_error, sizeof(open_error), "out of memory");
		return -ENOMEM;
	}
	ctl->last = &ctl->first;
	ctl->fd = -1;
	if (!path || !*path)
		path = getenv("SAINA_CONTROL");
	if (!path || !*path)
		path = getenv("SAINA_CTL_SOCKET");
	if (path && !strcmp(path, "kernel")) {
		ret = open_kernel(ctl);
		if (ret)
			snprintf(open_error, sizeof(open_error),
				 "no control plane in the kernel: %s; load saina.ko (insmod), or use sainad's socket",
				 ret == -ENOENT ? "saina.ko is not loaded" : strerror(-ret));
		goto done;
	}
	if (!path || !*path) {
		chosen = false;
		ret = open_kernel(ctl);
		if (!ret)
			goto done;
		path = SAINA_CTL_SOCKET;
	}
	ret = open_socket(ctl, path);
	if (ret)
		explain(ret, path, chosen);
done:
	if (ret) {
		free(ctl);
		return ret;
	}
	ctl->error[0] = 0;
	*error = NULL;
	*out = ctl;
	return 0;
}

void saina_ctl_close(struct saina_ctl *ctl)
{
	struct note *n;

	if (!ctl)
		return;
	while ((n = queue_get(ctl)))
		free(n);
	close(ctl->fd);
	free(ctl);
}
