/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a client asks for and what it gets. */
#ifndef AGENT_REQUEST_H
#define AGENT_REQUEST_H

#include "agent/control/control.h"
#include "agent/control/decode.h"
#include "agent/control/encode.h"

/**
 * struct request - one request on its way
 * @client: answers go to it by client_send()
 * @nlh: whole and checked to hold a generic netlink header
 * @admin: the client may change things and see tokens
 * @dump: answers are parts of a dump
 */
struct request {
	struct agent *a;
	struct client *client;
	const struct nlmsghdr *nlh;
	bool admin;
	bool dump;
	struct decoded d;
	struct saina_core_err err;
};

/* Serves one message, sending whatever answers there are. */
void request_serve(struct agent *a, struct client *c, const struct nlmsghdr *nlh, bool admin);

/* ctlserver.c, for answers */
int client_send(struct client *c, const struct nlmsghdr *nlh);
void client_subscribe(struct agent *a, struct client *c, unsigned int groups);

#endif /* AGENT_REQUEST_H */
