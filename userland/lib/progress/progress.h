/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Progress: which thread drives, and what it does in a turn. */
#ifndef SAINA_PROGRESS_H
#define SAINA_PROGRESS_H

#include "base.h"

/*
 * What a turn sends: chosen under the lock, sent without it.
 * @now: time of the turn
 * @when: when the next turn is due at the latest, for the session
 * @data_when: likewise for gradients
 * @ctl: messages of the session
 * @ctls: how many
 * @n: messages in io.buf
 * @len: of each
 */
struct saina_outgoing {
	uint64_t now, when, data_when;
	struct saina_session_msg ctl[4];
	unsigned int ctls, n;
	size_t len;
};

/* drive.c: the library's thread. */
void *saina_progress_thread(void *arg);
/* When a call with this time-out ends; -1: NEVER. */
uint64_t saina_deadline(int timeout_ms);
/* Caller holds s->lock.  Drives until @req has finished (true) or until @until. */
bool saina_progress_until(struct saina *s, const struct saina_req *req, uint64_t until);
/*
 * Caller holds s->lock.  Wakes the thread that drives: something is to be sent, or the library's
 * thread is to stop.
 */
void saina_wake(struct saina *s);

/*
 * turn.c, of the thread that drives: sends what is due, waits, takes what has come.  Returns at
 * @until, and earlier once @req has finished.
 */
void saina_progress(struct saina *s, const struct saina_req *req, uint64_t until);

/* ctl_tx.c.  Caller holds s->lock.  Messages to the agent that are due. */
void saina_ctl_choose(struct saina *s, struct saina_outgoing *out);
void saina_ctl_send(struct saina *s, const struct saina_outgoing *out);

/* data_tx.c.  Caller holds s->lock.  Messages to the data path that are due, unless some pend. */
void saina_data_choose(struct saina *s, struct saina_outgoing *out);
/* Sends these, or those that pend; false: there were none. */
bool saina_data_send(struct saina *s, const struct saina_outgoing *out);

/* rx.c: reads the sockets that are ready. */
void saina_receive(struct saina *s, struct saina_ready ready);
/* Caller holds s->lock.  Takes one message. */
void saina_input(struct saina *s, enum saina_source from, const void *msg, size_t len,
		 uint64_t now);

/* session_events.c.  Caller holds s->lock.  Takes a message of the agent, or a PROBE_REPLY. */
void saina_session_rx(struct saina *s, const struct saina_hdr *h, uint64_t now);

/* notes.c.  Caller holds s->lock.  Takes the session's lines, to print them without it. */
void saina_notes_take(struct saina *s);
void saina_notes_print(struct saina *s, struct saina_notes *n);

#endif /* SAINA_PROGRESS_H */
