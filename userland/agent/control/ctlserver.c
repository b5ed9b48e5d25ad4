// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The unix socket: one netlink message per datagram (SOCK_SEQPACKET).  Anybody
 * may read; root and the admin group may change things.  A client that does
 * not read its answers is not read from until it does, and a dump goes on when it
 * has; one that does not read its notifications loses them, as with netlink.
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
#define QUEUE_MAX    (256u << 10) /* bytes; beyond this notifications are lost */
#define GROUPS_MAX   256
#define COME_BACK_MS 5000 /* a controller, to an agent that was started anew */

struct queued {
	struct queued *next;
	size_t len;
	char data[];
};

struct client {
	struct client *next;
	struct source source;
	bool admin;
	bool broken;
	unsigned int groups;
	unsigned int lost;
	uint32_t waits_for;
	struct queued *first, **last; /* notifications, and the answers to one request */
	size_t bytes;
	bool more; /* of the dump that @rq asks for */
	uint64_t controls[SAINA_JOBS_MAX / 64]; /* jobs, as bits */
	struct request rq;
	char buf[REQUEST_MAX] __attribute__((aligned(8)));
};

static struct log_limit lost_limit;

static void groups_recount(struct control *s)
{
	struct client *c;

	s->groups = 0;
	for (c = s->clients; c; c = c->next)
		s->groups |= c->groups;
}

void client_controls(struct client *c, __u16 job, bool on)
{
	uint64_t bit = 1ull << job % 64;

	c->controls[job / 64] = on ? c->controls[job / 64] | bit : c->controls[job / 64] & ~bit;
}

static bool is_controlled(const struct control *s, int job)
{
	const struct client *c;

	for (c = s->clients; c; c = c->next)
		if (c->controls[job / 64] >> job % 64 & 1)
			return true;
	return false;
}

/* The jobs that it controlled, and nobody else does, are told. */
static void client_lets_go(struct agent *a, const struct client *c)
{
	for (int job = 0; job < SAINA_JOBS_MAX; job++)
		if (c->controls[job / 64] >> job % 64 & 1 && !is_controlled(a->control, job))
			saina_core_controller_gone(a->jobs->core, job);
}

/* Of jobs that nobody controls nothing is said. */
static void missed_look(struct source *s, uint32_t events)
{
	struct agent *a = s->arg;

	loop_timer_ack(s);
	for (int job = 0; job < SAINA_JOBS_MAX; job++)
		if (!is_controlled(a->control, job))
			saina_core_controller_gone(a->jobs->core, job);
}

void control_await_controllers(struct agent *a)
{
	loop_timer_set(&a->control->missed, COME_BACK_MS, 0);
}

static void client_free(struct agent *a, struct client *c)
{
	struct client **at = &a->control->clients;
	struct queued *q;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	a->control->n--;
	client_lets_go(a, c);
	loop_del(&a->control->loop, &c->source);
	close(c->source.fd);
	while ((q = c->first)) {
		c->first = q->next;
		free(q);
	}
	free(c);
	groups_recount(a->control);
}

/* It is read from when it has read. */
static void client_watch(struct client *c)
{
	uint32_t events = c->first || c->more ? EPOLLOUT : EPOLLIN;

	if (events != c->waits_for)
		loop_change(&c->rq.a->control->loop, &c->source, events);
	c->waits_for = events;
}

/* Sends what is queued, as much as the socket takes. */
static void client_flush(struct client *c)
{
	struct queued *q;

	while ((q = c->first)) {
		if (send(c->source.fd, q->data, q->len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
			c->broken = errno != EAGAIN;
			return;
		}
		c->first = q->next;
		if (!c->first)
			c->last = &c->first;
		c->bytes -= q->len;
		free(q);
	}
}

bool client_waits(const struct client *c)
{
	return c->first;
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
	}
	q = malloc(sizeof(*q) + nlh->nlmsg_len);
	if (!q)
		return -ENOMEM;
	q->next = NULL;
	q->len = nlh->nlmsg_len;
	memcpy(q->data, nlh, q->len);
	*c->last = q;
	c->last = &q->next;
	c->bytes += q->len;
	client_watch(c);
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
		if (c->bytes + msg->nlmsg_len <= QUEUE_MAX && !client_send(c, msg))
			continue;
		/* one that has gone is not one that does not read */
		if (!c->broken && !c->lost++)
			log_limited(&lost_limit, LOG_L_WARN,
				    "control: a subscriber does not read: notifications to it are lost");
	}
}

/* Reads one request. */
static void client_read(struct client *c)
{
	const struct nlmsghdr *nlh = (const void *)c->buf;
	ssize_t n;

	memset(c->buf, 0, sizeof(*nlh));
	n = recv(c->source.fd, c->buf, sizeof(c->buf), MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0 && errno == EAGAIN)
		return;
	/* too short to be answered, or 0: the client is gone */
	if (n < (ssize_t)(NLMSG_HDRLEN + sizeof(struct genlmsghdr)) || n > (ssize_t)sizeof(c->buf) ||
	    nlh->nlmsg_len < NLMSG_HDRLEN + sizeof(struct genlmsghdr) || nlh->nlmsg_len > n) {
		c->broken = true;
		return;
	}
	/* libmnl may look at the padding of the last attribute */
	memset(c->buf + n, 0, sizeof(c->buf) - n < 8 ? sizeof(c->buf) - n : 8);
	c->rq = (struct request){ .a = c->rq.a, .client = c, .nlh = nlh, .admin = c->admin };
	c->more = !request_serve(&c->rq);
}

static void client_ready(struct source *s, uint32_t events)
{
	struct client *c = s->arg;

	if (events & EPOLLOUT)
		client_flush(c);
	if (!c->first && c->more)
		c->more = !request_serve(&c->rq);
	else if (!c->first && events & EPOLLIN)
		client_read(c);
	if (c->broken || (events & (EPOLLERR | EPOLLHUP) && !(events & EPOLLIN)))
		client_free(c->rq.a, c);
	else
		client_watch(c);
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
	c->rq.a = a;
	c->admin = admin;
	c->last = &c->first;
	c->source = (struct source){ .fd = fd, .ready = client_ready, .arg = c };
	c->waits_for = EPOLLIN;
	if (loop_add(&a->control->loop, &c->source, EPOLLIN)) {
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

static void control_turn(struct source *s, uint32_t events)
{
	struct control *control = s->arg;

	loop_turn(&control->loop, 0);
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
	ret = loop_init(&s->loop);
	if (ret)
		goto err_unlink;
	s->turn = (struct source){ .fd = s->loop.epoll, .ready = control_turn, .arg = s };
	ret = loop_add(&s->loop, &s->source, EPOLLIN);
	if (!ret)
		ret = loop_add(&a->loop, &s->turn, EPOLLIN);
	if (ret)
		goto err_loop;
	s->missed = (struct source){ .fd = -1, .ready = missed_look, .arg = a };
	ret = loop_timer_add(&a->loop, &s->missed);
	if (ret)
		goto err_turn;
	return 0;

err_turn:
	loop_del(&a->loop, &s->turn);
err_loop:
	loop_uninit(&s->loop);
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
	loop_timer_del(&a->loop, &a->control->missed);
	loop_del(&a->loop, &a->control->turn);
	loop_uninit(&a->control->loop);
	close(a->control->source.fd);
	unlink(a->cfg.control);
}
