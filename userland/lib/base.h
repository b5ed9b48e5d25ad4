/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The handle behind saina.h.
 *
 * One thread at a time drives (progress/drive.c): it sends, receives, quantises and keeps the time.
 * That is a thread of the trainer while one waits for an all-reduce, so that nothing is handed over,
 * and the library's own thread otherwise.  One mutex guards session and round; nothing that could
 * block and no callback is called under it.  Whoever drives does so in the default floating-point
 * environment, whatever the trainer uses.
 */
#ifndef SAINA_BASE_H
#define SAINA_BASE_H

#include <pthread.h>
#include "net/io.h"
#include "reduce/state.h"

/**
 * struct saina
 * @lock: guards all but @thread, @started, @io and @notes
 * @cond: signals what the trainer waits for, and that no thread drives any more
 * @thread: the library's own thread
 * @stop: @thread is to end
 * @progressing: a thread drives
 * @clocked: saina_clock() was called in this step
 * @waiting: threads of the trainer that wait for an all-reduce; one of them drives
 * @pid: process that opened the handle
 * @started: @thread runs; written by the trainer without @lock, so no bit beside others
 * @opts: of saina_open(), without its strings
 * @error: sentence of the last call that failed
 * @bad_messages: received, malformed, of other jobs or forged
 * @answered_ns: when the data path last answered, or had nothing to answer
 * @checked_ns: when @answered_ns was last brought up to date
 * @full_round: the last round with all workers
 * @together: mask of its workers, without those that were logged as missing; 0: there was none
 * @session: with the agent
 * @round: all-reduces in flight
 * @shm: arrays shared with the aggregator
 * @io: sockets, of the thread that drives
 * @notes: lines to print, of the thread that drives
 */
struct saina {
	pthread_mutex_t lock;
	pthread_cond_t	cond;
	pthread_t	thread;
	bool		stop, progressing, clocked;
	unsigned int	waiting;
	pid_t		pid;
	bool		started;
	struct saina_opts opts;
	char		error[512];
	uint64_t	bad_messages, answered_ns, checked_ns;
	uint32_t	full_round;
	uint64_t	together;
	struct saina_session session;
	struct saina_round round;
	struct saina_shm shm;
	struct saina_io	io;
	struct saina_notes notes;
};

/* Nanoseconds of CLOCK_MONOTONIC */
uint64_t saina_now(void);
/* Sets the message of a failed call; returns @err. */
int saina_error(struct saina *s, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Sets the message of a call that failed without a handle; returns @err. */
int saina_open_error(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The message that saina_error() has set, or saina_open_error() if @s is NULL. */
const char *saina_error_text(const struct saina *s);
/* Is the leading size field of the caller's structure sane?  Else @wrong is the message. */
int saina_check_size(struct saina *s, const void *out, const char *wrong);
/* Copies @from to the caller's structure, as far as its size field says it reaches. */
int saina_copy_out(struct saina *s, void *out, const void *from, size_t known, const char *wrong);
/* A call begins: returns 0 with the lock held, or an error. */
int saina_lock(struct saina *s);
/* A call ends: drops the lock and returns @ret. */
int saina_unlock(struct saina *s, int ret);
/* Caller holds s->lock.  0, or the error that the session has failed with. */
int saina_session_error(struct saina *s);

/* A new random number in @j->spare_nonce, if there is none. */
void saina_fill_nonce(struct saina_session *j);

#endif /* SAINA_BASE_H */
