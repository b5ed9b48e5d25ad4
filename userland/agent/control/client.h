/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A client of the control socket: what is sent to it, and what it is subscribed to. */
#ifndef AGENT_CLIENT_H
#define AGENT_CLIENT_H

#include "agent/control/control.h"

struct queued;

/**
 * struct client - all 0 but for @source until client_add()
 * @broken: to be ended by whoever serves it
 * @lost: notifications
 * @first: notifications, and the answers to one request
 * @more: is to be sent when it has read that
 * @controls: jobs, as bits
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
/* 0 or a negative errno; the connection is the caller's until client_remove() closes it. */
int client_add(struct agent *a, struct client *c);
/* Not freed. */
void client_remove(struct client *c);
/* It is read from when it has read. */
void client_update_events(struct client *c);
/* Sends what is queued, as much as the socket takes. */
void client_flush(struct client *c);
bool client_is_blocked(const struct client *c);	/* it has to read first */
int client_send(struct client *c, const struct nlmsghdr *nlh);
/* It is the controller of a job, or (@on false) no more: that ends with its connection. */
void client_set_controller(struct client *c, __u16 job, bool on);
void client_subscribe(struct client *c, unsigned int groups);

#endif /* AGENT_CLIENT_H */
