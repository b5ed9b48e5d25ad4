/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The control interface: a unix socket (server) that serves requests (request, with
 * encode and decode) of its clients (client) and tells subscribers (events), and the
 * state file, which holds the same messages (state; restore reads it).
 */
#ifndef AGENT_CONTROL_H
#define AGENT_CONTROL_H

#include <grp.h>

#include "agent/ports/ports.h"
#include "agent/backend/backend.h"
#include "agent/members/members.h"

struct client;
struct nlmsghdr;
struct saved;

/**
 * struct control - the control socket
 * @loop: of the socket and its clients, served one event in a turn of the agent's loop:
 *	however many clients there are, the data path has every other turn
 * @turn: @loop as a source of the agent's
 * @source: new clients
 * @controllers_timer: a timer, until which controllers of an earlier agent may come back
 * @changes: of jobs, workers, limits and ports so far
 */
struct control {
	struct loop loop;
	struct source turn;
	struct source source;
	struct source controllers_timer;
	struct client *clients;
	unsigned int groups;		/* somebody subscribed to these */
	unsigned int n;
	unsigned int changes;
	gid_t admin_gid;
	bool has_admin_gid;
};

int control_init(struct agent *a);
void control_uninit(struct agent *a);

/* client.c */
/* Jobs of an earlier agent are there, the connections of their controllers are not: who has
 * not come back after some seconds is gone, and an event says so. */
void control_await_controllers(struct agent *a);
/* To all subscribers of @group; @msg is complete but for its sequence number. */
void clients_notify(struct agent *a, unsigned int group, const struct nlmsghdr *msg);

/* events.c: to subscribers, and to the log what an operator would want to know */
void control_notify(struct agent *a, int cmd, const struct saina_job *job, int worker);
void control_notify_event(struct agent *a, const struct saina_event *ev, const char *text);
void control_notify_port(struct agent *a, const struct port *p, bool there);
void control_notify_port_changed(struct agent *a, const struct port *p);

/* Everything a change entails: state saved, workers told.  Before any answer
 * that promises the change, and after each event. */
void control_flush(struct agent *a);

/* state.c */
void state_save(struct agent *a);
void state_remove(struct agent *a);

/* restore.c */
/* What an earlier agent has left, NULL: nothing.  A file that cannot be understood
 * is put aside, with a line in the log; what could be understood of it counts. */
struct saved *state_load(struct agent *a);
/* Are there jobs that run, of an agent without saina.ko? */
bool state_has_running_local(const struct saved *s);
bool state_of_other_backend(const struct agent *a, const struct saved *s);
void state_restore(struct agent *a, const struct saved *s);
void state_free(struct saved *s);

#endif /* AGENT_CONTROL_H */
