/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The handle behind saina.h, and how its parts meet.
 *
 * One thread at a time drives (drive.c): it sends, receives, quantises, keeps time.  That is
 * the trainer's while it waits for an all-reduce, so that nothing is handed over, and the
 * library's own otherwise.  One mutex guards session and round; no system call that could
 * wait and no callback is made under it.  Whoever drives does so in the default
 * floating-point environment, whatever the trainer uses.
 */
#ifndef SAINA_HANDLE_H
#define SAINA_HANDLE_H

#include <pthread.h>
#include "net/io.h"
#include "reduce/round.h"

/**
 * struct saina
 * @cond: something the trainer waits for happened, or nobody drives any more
 * @driven: a thread drives
 * @waiting: threads of the trainer that wait for an all-reduce; one of them is to drive
 * @clocked: saina_clock() has been called in this step
 * @pid: whose handle it is
 * @error: sentence of the last call that failed, the trainer's
 * @notes: lines of this turn, of the thread that drives
 * @bad_messages: malformed, of other jobs, forged
 * @answered_ns: when the data path was last heard, or nothing was to be heard of it; @looked_ns:
 *	when that was looked at last
 */
struct saina {
	pthread_mutex_t lock;
	pthread_cond_t	cond;
	pthread_t	thread;
	bool		stop, driven, clocked;
	unsigned int	waiting;
	pid_t		pid;
	bool		started;	/* not the thread's: not beside what is */
	struct saina_opts opts;
	char		error[256];
	uint64_t	bad_messages, answered_ns, looked_ns;
	struct saina_session session;
	struct saina_round round;
	struct saina_lent lent;
	struct saina_io	io;
	struct saina_notes notes;
};

/* handle.c */
uint64_t saina_now(void);
/* Notes the sentence of a failed call; returns @err. */
int saina_error(struct saina *s, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Notes the sentence of what fails without a handle; returns @err. */
int saina_open_error(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* How calls begin: 0 with the lock held, or what to return. */
int saina_enter(struct saina *s);
/* ... and end: returns @ret. */
int saina_leave(struct saina *s, int ret);
/* 0, or why nothing can be done on this handle any more; locked. */
int saina_failed(struct saina *s);

/* call.c, locked: an all-reduce, of which nobody is told that there is something to send; the
 * sentences for -ESTALE, for -EDOM and for any error of a request, which is returned
 */
int saina_start(struct saina *s, void *buf, size_t n, enum saina_type type,
		enum saina_result_op op, struct saina_req **req);
int saina_stale(struct saina *s);
int saina_not_finite(struct saina *s, size_t element);
int saina_request_failed(struct saina *s, int err);

/* step.c, locked: nothing more is started in this round or step; the next one begins */
void saina_step_close(struct saina *s);
void saina_step_next(struct saina *s);

/* env.c: a variable, NULL if it is empty or not to be trusted */
const char *saina_env(const char *name);

/* drive.c.  The library's thread; the trainer's, locked: until @req is finished (returns true) or
 * the time of saina_until(); there is something to send, locked: whoever drives is to look.
 */
void *saina_thread(void *arg);
uint64_t saina_until(int timeout_ms);	/* 0: now, -1: NEVER */
bool saina_drive(struct saina *s, const struct saina_req *req, uint64_t until);
void saina_kick(struct saina *s);

/* thread.c: what is due is sent, something or the time is waited for, what has come is taken;
 * only of the thread that drives, which may wait for @req, and not longer than to @until.
 */
void saina_turn(struct saina *s, const struct saina_req *req, uint64_t until);
void saina_fill_nonce(struct saina_session *j);
/* One datagram's worth; locked. */
void saina_input(struct saina *s, enum saina_source from, const void *msg, size_t len,
		 uint64_t now);

#endif /* SAINA_HANDLE_H */
