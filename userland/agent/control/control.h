/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The control interface: a unix socket (server.c) that serves requests (request.c, encode.c,
 * decode.c) of clients (client.c) and notifies subscribers (events.c); and the state file,
 * which has the same messages (state.c writes it, state_parse.c and restore.c read it).
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
 * @loop: the socket and its clients.  One turn of the agent's loop serves one event of it, so
 *	that many clients cannot starve the data path
 * @turn: @loop as a source of the agent's loop
 * @source: the listening socket
 * @controllers_timer: ends the time in which controllers of an earlier agent may reconnect
 * @groups: groups that have a subscriber
 * @n: number of clients
 * @changes: number of changes of jobs, workers, limits and ports so far
 */
struct control {
	struct loop loop;
	struct source turn;
	struct source source;
	struct source controllers_timer;
	struct client *clients;
	unsigned int groups;
	unsigned int n;
	unsigned int changes;
	gid_t admin_gid;
	bool has_admin_gid;
};

int control_init(struct agent *a);
void control_uninit(struct agent *a);

/* client.c */
/* Gives controllers of restored jobs some seconds to reconnect; then their absence is an event. */
void control_await_controllers(struct agent *a);
/* Sends @msg to all subscribers of @group. */
void clients_notify(struct agent *a, unsigned int group, const struct nlmsghdr *msg);

/* events.c: notifies subscribers, and logs what an operator should know */
void control_notify(struct agent *a, int cmd, const struct saina_job *job, int worker);
void control_notify_event(struct agent *a, const struct saina_event *ev, const char *text);
void control_notify_port(struct agent *a, const struct port *p, bool there);
void control_notify_port_changed(struct agent *a, const struct port *p);

/* Applies pending changes: plans delivery, saves the state, notifies workers.  Called before a
 * reply confirms a change, and after each turn of the loop. */
void control_flush(struct agent *a);

/* state.c */
/* Return: 0, or negative errno and the sentence @why. */
int state_save(struct agent *a, char *why, size_t size);
void state_remove(struct agent *a);

/* restore.c */
/* Reads the state of an earlier agent.  Return: NULL if there is none.  An invalid file is
 * logged and renamed; what was read before the error is returned. */
struct saved *state_load(struct agent *a);
/* Does the state have running jobs of an agent without saina.ko? */
bool state_has_running_local(const struct saved *s);
/* Is the state of an agent whose jobs were kept by the other backend? */
bool state_of_other_backend(const struct agent *a, const struct saved *s);
/* Restores ports, limits, jobs and workers, as far as the backend and the data path still allow. */
void state_restore(struct agent *a, const struct saved *s);
void state_free(struct saved *s);

#endif /* AGENT_CONTROL_H */
