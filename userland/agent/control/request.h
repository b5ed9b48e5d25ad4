/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a client asks for and what it gets. */
#ifndef AGENT_REQUEST_H
#define AGENT_REQUEST_H

#include "agent/control/control.h"
#include "agent/control/decode.h"
#include "agent/control/encode.h"

/**
 * struct request - one request on its way; all 0 but for the first four at its beginning
 * @client: answers go to it by client_send()
 * @nlh: whole and checked to hold a generic netlink header
 * @admin: the client may change things and see tokens
 * @started: checked and decoded
 * @dump: answers are parts of a dump
 * @id: of a dump: number of the job to go on with
 * @end: of a dump: number of the job to stop before, 0: not known yet
 * @at: of a dump: worker or slot of the job, or port, to go on with
 * @changes: of a dump: control->changes at its beginning
 */
struct request {
	struct agent *a;
	struct client *client;
	const struct nlmsghdr *nlh;
	bool admin;
	bool started;
	bool dump;
	unsigned int id, end, at;
	unsigned int changes;
	struct decoded d;
	struct saina_core_err err;
};

/* Serves one message, a dump for one turn of the loop.  Return: false if there is
 * more of the dump, for another call when the client's queue is empty. */
bool request_serve(struct request *rq);

#endif /* AGENT_REQUEST_H */
