// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Clients of the control socket and their queues.  While a client does not read its replies,
 * its requests are not read and its dump pauses.  A client that does not read notifications
 * loses them, as with netlink.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <libmnl/libmnl.h>
#include <sys/socket.h>

#include "agent/control/client.h"

#define QUEUE_MAX    (256u << 10) /* bytes; beyond this notifications are lost */
#define CONTROLLER_GRACE_MS 5000 /* for controllers to reconnect to a restarted agent */

struct queued {
	struct queued *next;
	size_t len;
	char data[];
};

static struct log_limit lost_limit;

static void groups_recount(struct control *s)
{
	struct client *c;

	s->groups = 0;
	for (c = s->clients; c; c = c->next)
		s->groups |= c->groups;
}

void client_set_controller(struct client *c, __u16 job, bool on)
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

/* Notifies the core of jobs that no other client controls. */
static void release_controlled(const struct client *c)
{
	for (int job = 0; job < SAINA_JOBS_MAX; job++)
		if (c->controls[job / 64] >> job % 64 & 1 && !is_controlled(c->a->control, job))
			saina_core_controller_gone(c->a->jobs->core, job);
}

/* The core ignores jobs that had no controller. */
static void expire_controllers(struct source *s, uint32_t events)
{
	struct agent *a = s->arg;

	loop_timer_ack(s);
	for (int job = 0; job < SAINA_JOBS_MAX; job++)
		if (!is_controlled(a->control, job))
			saina_core_controller_gone(a->jobs->core, job);
}

void control_await_controllers(struct agent *a)
{
	loop_timer_set(&a->control->controllers_timer, CONTROLLER_GRACE_MS, 0);
}

int clients_init(struct agent *a)
{
	a->control->controllers_timer =
		(struct source){ .fd = -1, .ready = expire_controllers, .arg = a };
	return loop_timer_add(&a->loop, &a->control->controllers_timer);
}

void clients_uninit(struct agent *a)
{
	loop_timer_del(&a->loop, &a->control->controllers_timer);
}

int client_add(struct agent *a, struct client *c)
{
	int ret;

	c->a = a;
	c->last = &c->first;
	c->epoll_events = EPOLLIN;
	ret = loop_add(&a->control->loop, &c->source, EPOLLIN);
	if (ret)
		return ret;
	c->next = a->control->clients;
	a->control->clients = c;
	a->control->n++;
	return 0;
}

void client_remove(struct client *c)
{
	struct control *s = c->a->control;
	struct client **at = &s->clients;
	struct queued *q;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	s->n--;
	release_controlled(c);
	loop_del(&s->loop, &c->source);
	peer_close(&c->a->peers, c->source.fd);
	while ((q = c->first)) {
		c->first = q->next;
		free(q);
	}
	groups_recount(s);
}

void client_update_events(struct client *c)
{
	uint32_t events = c->first || c->more ? EPOLLOUT : EPOLLIN;

	if (events != c->epoll_events)
		loop_change(&c->a->control->loop, &c->source, events);
	c->epoll_events = events;
}

void client_flush(struct client *c)
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

bool client_is_blocked(const struct client *c)
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
	client_update_events(c);
	return 0;
}

void client_subscribe(struct client *c, unsigned int groups)
{
	c->groups = groups;
	groups_recount(c->a->control);
}

void clients_notify(struct agent *a, unsigned int group, const struct nlmsghdr *msg)
{
	struct client *c;

	for (c = a->control->clients; c; c = c->next) {
		if (!(c->groups & group))
			continue;
		if (c->bytes + msg->nlmsg_len <= QUEUE_MAX && !client_send(c, msg))
			continue;
		/* a client that has gone is not reported as one that does not read */
		if (!c->broken && !c->lost++)
			log_limited(&lost_limit, LOG_L_WARN,
				    "control: a subscriber does not read: notifications to it are lost");
	}
}
