/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests of clients. */
#ifndef AGENT_REQUEST_H
#define AGENT_REQUEST_H

#include "agent/control/control.h"
#include "agent/control/decode.h"
#include "agent/control/encode.h"

/**
 * struct request - a request being served; starts with all 0 after @admin
 * @client: gets the replies
 * @nlh: complete, with a generic netlink header
 * @admin: the client may change things and see tokens
 * @started: it was checked and decoded
 * @dump: the reply is a dump
 * @id: dump: id of the job to continue with
 * @end: dump: id of the job to stop before, 0: not known yet
 * @at: dump: worker or slot of the job, or port, to continue with
 * @changes: dump: control->changes when it started
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

/* Serves a request.  Return: false if a dump is incomplete; call again when the client's
 * queue is empty. */
bool request_serve(struct request *rq);

#endif /* AGENT_REQUEST_H */
