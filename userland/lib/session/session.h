/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The session with the agent: admission, heartbeats, leaving.  Like the transport it knows no
 * sockets and no clock: messages and the time go in, messages come out.
 */
#ifndef SAINA_SESSION_H
#define SAINA_SESSION_H

#include "state.h"

/* What a message changed that the caller has to act on. */
enum saina_session_event {
	SAINA_SESSION_NONE,
	SAINA_SESSION_ADMITTED,	/* job is valid now; allocate before anything else */
	SAINA_SESSION_PROBED,	/* a probe was answered: rtt_ns, batches */
	SAINA_SESSION_BEGINS,	/* RUNNING, for the first time */
	SAINA_SESSION_RESUMES,
	SAINA_SESSION_STATUS,	/* next_round, relayed */
};

void saina_session_start(struct saina_session *j, uint64_t now);
void saina_session_leave(struct saina_session *j, uint64_t now);
/* A control message or PROBE_REPLY that saina_session_check() has accepted. */
enum saina_session_event saina_session_input(struct saina_session *j, const struct saina_hdr *h,
				       uint64_t now);
/* Does what is due; returns when to call again at the latest. */
uint64_t saina_session_run(struct saina_session *j, uint64_t now);

#endif /* SAINA_SESSION_H */
