/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A client of the control socket: its queue of messages and its subscriptions. */
#ifndef AGENT_CLIENT_H
#define AGENT_CLIENT_H

#include "agent/control/control.h"

struct queued;

/**
 * struct client - all 0 except @source before client_add()
 * @broken: the server is to close it
 * @lost: number of notifications that did not fit the queue
 * @epoll_events: that it is waiting for
 * @first: queue of notifications and of replies to one request
 * @more: the reply goes on when the queue is empty
 * @controls: bits of the jobs that it controls
 */
struct client {
	struct client *next;
	struct source source;
	struct agent *a;
	bool broken;
	unsigned int groups;
	unsigned int lost;
	uint32_t epoll_events;
	struct queued *first, **last;
	size_t bytes;
	bool more;
	uint64_t controls[SAINA_JOBS_MAX / 64];
};

int clients_init(struct agent *a);
void clients_uninit(struct agent *a);
/* Return: 0 or a negative errno.  On success client_remove() closes the connection. */
int client_add(struct agent *a, struct client *c);
/* Does not free @c. */
void client_remove(struct client *c);
/* Waits for requests, or for room in the socket if something is to be sent first. */
void client_update_events(struct client *c);
/* Sends as much of the queue as the socket takes. */
void client_flush(struct client *c);
bool client_is_blocked(const struct client *c);	/* its queue is not empty */
int client_send(struct client *c, const struct nlmsghdr *nlh);
/* Makes it a controller of a job, or (@on false) no controller.  Ends with the connection. */
void client_set_controller(struct client *c, __u16 job, bool on);
void client_subscribe(struct client *c, unsigned int groups);

#endif /* AGENT_CLIENT_H */
