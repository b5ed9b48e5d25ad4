// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The unix socket: one netlink message per datagram (SOCK_SEQPACKET).  Anybody
 * may read; root and the admin group may change things.  A client that does
 * not read its answers is not read from until it does; one that does not read
 * its notifications loses them, as with netlink.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "agent/control/control.h"
#include "agent/control/request.h"

#define REQUEST_MAX  8192
#define CLIENTS_MAX  256
#define CLIENTS_ADMIN 32 /* of them are for those who may change things */
#define QUEUE_MAX    (16u << 20) /* answers waiting, bytes */
#define QUEUE_NOTIFY (1u << 20)	 /* beyond this notifications are lost */
#define GROUPS_MAX   256

struct queued {
	struct queued *next;
	size_t len;
	char data[];
};

struct client {
	struct client *next;
	struct source source;
	struct agent *a;
	bool admin;
	bool broken;
	unsigned int groups;
	unsigned int lost;
	struct queued *first, **last;
	size_t bytes;
};

static struct log_limit lost_limit;

static void groups_recount(struct control *s)
{
	struct client *c;

	s->groups = 0;
	for (c = s->clients; c; c = c->next)
		s->groups |= c->groups;
}

static void client_free(struct agent *a, struct client *c)
{
	struct client **at = &a->control->clients;
	struct queued *q;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	a->control->n--;
	loop_del(&a->loop, &c->source);
	close(c->source.fd);
	while ((q = c->first)) {
		c->first = q->next;
		free(q);
	}
	free(c);
	groups_recount(a->control);
}

/* Sends what is queued; returns true when the queue is empty. */
static bool client_flush(struct client *c)
{
	struct queued *q;

	while ((q = c->first)) {
		if (send(c->source.fd, q->data, q->len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
			if (errno == EAGAIN)
				return false;
			c->broken = true;
			return true;
		}
		c->first = q->next;
		if (!c->first)
			c->last = &c->first;
		c->bytes -= q->len;
		free(q);
	}
	return true;
}

int client_send(struct client *c, const struct nlmsghdr *nlh)
{
	struct queued *q;

	if (c->broken)
		return -EPIPE;
	if (!c->first) {
		if (send(c->source.fd, nlh, nlh->nlmsg_len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
			return 0;
		if (errno != EAGAIN) {
			c->broken = true;
			return -errno;
		}
		loop_change(&c->a->loop, &c->source, EPOLLOUT);
	}
	if (c->bytes + nlh->nlmsg_len > QUEUE_MAX)
		return -ENOBUFS;
	q = malloc(sizeof(*q) + nlh->nlmsg_len);
	if (!q)
		return -ENOMEM;
	q->next = NULL;
	q->len = nlh->nlmsg_len;
	memcpy(q->data, nlh, q->len);
	*c->last = q;
	c->last = &q->next;
	c->bytes += q->len;
	return 0;
}

void client_subscribe(struct agent *a, struct client *c, unsigned int groups)
{
	c->groups = groups;
	groups_recount(a->control);
}

void ctlserver_notify(struct agent *a, unsigned int group, const struct nlmsghdr *msg)
{
	struct client *c;

	for (c = a->control->clients; c; c = c->next) {
		if (!(c->groups & group))
			continue;
		if (c->bytes <= QUEUE_NOTIFY && !client_send(c, msg))
			continue;
		/* one that has gone is not one that does not read */
		if (!c->broken && !c->lost++)
			log_limited(&lost_limit, LOG_L_WARN,
				    "control: a subscriber does not read: notifications to it are lost");
	}
}

/* Reads one request if the answers to the last are out. */
static void client_read(struct agent *a, struct client *c)
{
	char buf[REQUEST_MAX] __attribute__((aligned(8)));
	const struct nlmsghdr *nlh = (const void *)buf;
	ssize_t n;

	memset(buf, 0, sizeof(*nlh));
	n = recv(c->source.fd, buf, sizeof(buf), MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0 && errno == EAGAIN)
		return;
	/* too short to be answered, or 0: the client is gone */
	if (n < (ssize_t)(NLMSG_HDRLEN + sizeof(struct genlmsghdr)) || n > (ssize_t)sizeof(buf) ||
	    nlh->nlmsg_len < NLMSG_HDRLEN + sizeof(struct genlmsghdr) || nlh->nlmsg_len > n) {
		c->broken = true;
		return;
	}
	/* libmnl may look at the padding of the last attribute */
	memset(buf + n, 0, sizeof(buf) - n < 8 ? sizeof(buf) - n : 8);
	request_serve(a, c, nlh, c->admin);
}

static void client_ready(struct source *s, uint32_t events)
{
	struct client *c = s->arg;
	struct agent *a = c->a;

	if (events & EPOLLOUT && client_flush(c))
		loop_change(&a->loop, &c->source, EPOLLIN);
	if (events & EPOLLIN && !c->first)
		client_read(a, c);
	if (c->broken || (events & (EPOLLERR | EPOLLHUP) && !(events & EPOLLIN)))
		client_free(a, c);
}

static bool in_admin_group(const struct control *s, int fd, const struct ucred *cred)
{
	gid_t groups[GROUPS_MAX];
	socklen_t len = sizeof(groups);
	size_t i;

	if (!s->has_admin_gid)
		return false;
	if (cred->gid == s->admin_gid)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len))
		return false;
	for (i = 0; i < len / sizeof(groups[0]); i++)
		if (groups[i] == s->admin_gid)
			return true;
	return false;
}

static void ctlserver_accept(struct source *s, uint32_t events)
{
	struct agent *a = s->arg;
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct client *c;
	bool admin;
	int fd;

	fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		goto out_close;
	admin = cred.uid == 0 || in_admin_group(a->control, fd, &cred);
	if (a->control->n >= CLIENTS_MAX - (admin ? 0 : CLIENTS_ADMIN))
		goto out_close;
	c = calloc(1, sizeof(*c));
	if (!c)
		goto out_close;
	c->a = a;
	c->admin = admin;
	c->last = &c->first;
	c->source = (struct source){ .fd = fd, .ready = client_ready, .arg = c };
	if (loop_add(&a->loop, &c->source, EPOLLIN)) {
		free(c);
		goto out_close;
	}
	c->next = a->control->clients;
	a->control->clients = c;
	a->control->n++;
	return;

out_close:
	close(fd);
}

int ctlserver_init(struct agent *a)
{
	struct control *s = a->control;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const struct group *group;
	int ret;

	if (a->cfg.admin_group[0]) {
		group = getgrnam(a->cfg.admin_group);
		if (!group) {
			log_error("admin_group: there is no group '%s' on this machine",
				  a->cfg.admin_group);
			return -ENOENT;
		}
		s->admin_gid = group->gr_gid;
		s->has_admin_gid = true;
	}
	memcpy(addr.sun_path, a->cfg.control, sizeof(addr.sun_path));
	s->source = (struct source){ .ready = ctlserver_accept, .arg = a };
	s->source.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->source.fd < 0)
		return -errno;
	/* ours to remove: the lock on the runtime directory says nobody else runs,
	 * and connect says nobody else with another directory listens here */
	if (!connect(s->source.fd, (struct sockaddr *)&addr, sizeof(addr))) {
		log_error("control: somebody else listens at %s: set another path", a->cfg.control);
		ret = -EADDRINUSE;
		goto err_close;
	}
	if (errno == ECONNREFUSED)
		unlink(a->cfg.control);
	if (bind(s->source.fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    chmod(a->cfg.control, 0666) || listen(s->source.fd, 64)) {
		ret = -errno;
		log_error("control: %s: %s", a->cfg.control, strerror(errno));
		goto err_close;
	}
	ret = loop_add(&a->loop, &s->source, EPOLLIN);
	if (ret)
		goto err_unlink;
	return 0;

err_unlink:
	unlink(a->cfg.control);
err_close:
	close(s->source.fd);
	s->source.fd = -1;
	return ret;
}

void ctlserver_uninit(struct agent *a)
{
	while (a->control->clients)
		client_free(a, a->control->clients);
	loop_del(&a->loop, &a->control->source);
	close(a->control->source.fd);
	unlink(a->cfg.control);
}
