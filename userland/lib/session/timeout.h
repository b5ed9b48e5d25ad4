/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* How long a worker waits for the agent, for results and for its own kernel. */
#ifndef SAINA_SESSION_TIMEOUT_H
#define SAINA_SESSION_TIMEOUT_H

#include "state.h"

/*
 * Notes the errnos with which the kernel refuses to send, or 0.  @err: of batches; @ctrl_err: of
 * messages to the agent and probes.
 */
void saina_session_send_errors(struct saina_session *j, int err, int ctrl_err, uint64_t now);
/* True: it has waited for too long, and the session has failed. */
bool saina_session_timed_out(struct saina_session *j, uint64_t now);
/* Notes why results come by the agent, as far as that can be seen from here. */
void saina_session_explain_slow(struct saina_session *j);
/* Writes how many workers are here, and which are missing; "": none is. */
void saina_session_missing(const struct saina_session *j, char *text, size_t size);
/* .. and, of a job that is forming, why, if the agent knows. */
void saina_session_awaited(const struct saina_session *j, char *text, size_t size);
/* Writes the sentence for messages that do not fit the interface's MTU. */
void saina_session_explain_mtu(const struct saina_session *j, char *text, size_t size);

#endif /* SAINA_SESSION_TIMEOUT_H */
