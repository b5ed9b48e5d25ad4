// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The unix socket: one netlink message per datagram (SOCK_SEQPACKET).  Everybody may read;
 * root and the admin group may change things.
 */
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>

#include "agent/control/client.h"
#include "agent/control/request.h"

#define REQUEST_MAX   8192
#define CLIENTS_MAX   256
#define CLIENTS_ADMIN 32 /* of them are reserved for admins */
#define GROUPS_MAX    256

struct connection {
	struct client c;
	bool admin;
	struct request rq;
	char buf[REQUEST_MAX] __attribute__((aligned(8)));
};

/* Reads one request. */
static void connection_read(struct connection *n)
{
	const struct nlmsghdr *nlh = (const void *)n->buf;
	ssize_t len;

	memset(n->buf, 0, sizeof(*nlh));
	len = peer_receive(n->c.source.fd, n->buf, sizeof(n->buf));
	if (len == -EAGAIN)
		return;
	/* too short for a reply, too long, or the client has gone (0) */
	if (len < (ssize_t)(NLMSG_HDRLEN + sizeof(struct genlmsghdr)) ||
	    len > (ssize_t)sizeof(n->buf) ||
	    nlh->nlmsg_len < NLMSG_HDRLEN + sizeof(struct genlmsghdr) || nlh->nlmsg_len > len) {
		n->c.broken = true;
		return;
	}
	/* libmnl may read the padding of the last attribute */
	memset(n->buf + len, 0, sizeof(n->buf) - len < 8 ? sizeof(n->buf) - len : 8);
	n->rq = (struct request){ .a = n->c.a, .client = &n->c, .nlh = nlh, .admin = n->admin };
	n->c.more = !request_serve(&n->rq);
}

static void connection_end(struct connection *n)
{
	client_remove(&n->c);
	free(n);
}

static void connection_ready(struct source *s, uint32_t events)
{
	struct connection *n = s->arg;
	struct client *c = &n->c;

	if (events & EPOLLOUT)
		client_flush(c);
	if (!client_is_blocked(c) && c->more)
		c->more = !request_serve(&n->rq);
	else if (!client_is_blocked(c) && events & EPOLLIN)
		connection_read(n);
	if (c->broken || (events & (EPOLLERR | EPOLLHUP) && !(events & EPOLLIN)))
		connection_end(n);
	else
		client_update_events(c);
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

static void accept_client(struct source *s, uint32_t events)
{
	struct agent *a = s->arg;
	struct ucred cred;
	struct connection *n;
	bool admin;
	int fd;

	fd = peer_accept(&a->peers, s->fd, &cred);
	/* the next connection triggers another try */
	if (fd == -EAGAIN || fd == -EBUSY)
		return;
	loop_change(&a->control->loop, s, EPOLLIN | EPOLLET); /* more may wait */
	if (fd < 0)
		return;
	admin = cred.uid == 0 || in_admin_group(a->control, fd, &cred);
	if (a->control->n >= CLIENTS_MAX - (admin ? 0 : CLIENTS_ADMIN))
		goto out_close;
	n = calloc(1, sizeof(*n));
	if (!n)
		goto out_close;
	n->admin = admin;
	n->c.source = (struct source){ .fd = fd, .ready = connection_ready, .arg = n };
	if (!client_add(a, &n->c))
		return;
	free(n);

out_close:
	peer_close(&a->peers, fd);
}

static void control_turn(struct source *s, uint32_t events)
{
	struct control *control = s->arg;

	loop_turn(&control->loop, 0);
}

int control_init(struct agent *a)
{
	struct control *s = a->control;
	const struct group *group;
	int ret, fd;

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
	/* the lock excludes another agent in this runtime directory, but not one that has
	 * another directory and listens here */
	fd = peer_listen(a->cfg.control, SOCK_SEQPACKET, 64);
	if (fd == -EADDRINUSE)
		log_error("control: another process listens at %s: choose another path (--control)",
			  a->cfg.control);
	else if (fd < 0)
		log_error("control: %s: %s", a->cfg.control, strerror(-fd));
	if (fd < 0)
		return fd;
	s->source = (struct source){ .fd = fd, .ready = accept_client, .arg = a };
	ret = loop_init(&s->loop);
	if (ret)
		goto err_close;
	s->turn = (struct source){ .fd = s->loop.epoll, .ready = control_turn, .arg = s };
	ret = loop_add(&s->loop, &s->source, EPOLLIN | EPOLLET);
	if (!ret)
		ret = loop_add(&a->loop, &s->turn, EPOLLIN);
	if (ret)
		goto err_loop;
	ret = clients_init(a);
	if (ret)
		goto err_turn;
	return 0;

err_turn:
	loop_del(&a->loop, &s->turn);
err_loop:
	loop_uninit(&s->loop);
err_close:
	unlink(a->cfg.control);
	close(fd);
	s->source.fd = -1;
	return ret;
}

void control_uninit(struct agent *a)
{
	while (a->control->clients)
		connection_end(a->control->clients->source.arg);
	clients_uninit(a);
	loop_del(&a->loop, &a->control->turn);
	loop_uninit(&a->control->loop);
	peer_unlisten(&a->peers, a->control->source.fd);
	unlink(a->cfg.control);
}
