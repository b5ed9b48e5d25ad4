/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A worker of a job as far as session and sockets go, driven by the loop of this process: libsaina's
 * session/ and net/ without its handle, threads and rounds.
 */
#ifndef SAINA_UPLINK_MEMBER_H
#define SAINA_UPLINK_MEMBER_H

#include "net/io.h"
#include "session/session.h"

struct member;

/**
 * struct member_ops
 * @event: the session has changed
 * @input: a RESULT, STALE or ASK_REPLY that saina_session_check() has accepted
 */
struct member_ops {
	void (*event)(struct member *m, enum saina_session_event event, uint64_t now);
	void (*input)(struct member *m, const struct saina_hdr *h, uint64_t now);
};

/**
 * struct member
 * @ops: what to do with what comes
 * @arg: theirs
 * @what: it is a worker of, for sentences
 * @group: results are wanted
 * @session: with the agent
 * @io: sockets
 * @bytes_in: of messages of the data path, with SAINA's header
 * @bytes_out: likewise
 * @error: why it cannot be, a sentence
 */
struct member {
	const struct member_ops *ops;
	void	*arg;
	const char *what;
	bool	group;
	struct saina_session session;
	struct saina_io io;
	uint64_t bytes_in, bytes_out;
	char	error[SAINA_TEXT_LEN];
};

/**
 * struct member_conf - who joins what
 * @ip: of the agent
 * @port: its control port, host byte order
 * @job: number, if @job_name is empty
 * @worker: number in that job
 * @job_name: or "" (SAINA_NAME_LEN)
 * @name: who this is, for people (SAINA_NAME_LEN)
 * @token: SAINA_TOKEN_LEN bytes
 * @elements: of the gradient
 * @node: the own job, if it joins as a node; NULL: a worker
 * @round: the first that would be sent
 */
struct member_conf {
	struct in_addr ip;
	uint16_t port, job;
	uint8_t	 worker;
	const char *job_name, *name;
	const uint8_t *token;
	uint64_t elements;
	const struct saina_join_node *node;
	uint32_t round;
};

/* Opens the sockets and begins to join.  @m has ops, arg, what and group.  0 or -errno, @m->error */
int member_open(struct member *m, const struct member_conf *c, uint64_t now);
/* Does what is due; returns when to call again at the latest. */
uint64_t member_run(struct member *m, uint64_t now);
/* Reads the sockets. */
void member_receive(struct member *m);
/* Sends the first @n messages of @len bytes in m->io.buf, to the data path. */
void member_send(struct member *m, unsigned int n, size_t len, uint64_t now);
/* Is it admitted, so that its messages count? */
bool member_admitted(const struct member *m);
bool member_failed(const struct member *m);

#endif /* SAINA_UPLINK_MEMBER_H */
