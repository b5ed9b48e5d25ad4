/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The handle behind saina.h, and how its parts meet.
 *
 * Two threads: the trainer's, which submits all-reduces and waits for them,
 * and the library's own (thread.c), which does everything else: it sends, receives,
 * quantises, keeps time.  One mutex guards session and round; no system call that could
 * wait and no callback is made under it.  All float arithmetic happens in the library's
 * thread, in the default floating-point environment, whatever the trainer uses.
 */
#ifndef SAINA_HANDLE_H
#define SAINA_HANDLE_H

#include <pthread.h>
#include "io/io.h"
#include "flow/round.h"

/**
 * struct saina
 * @cond: something the trainer waits for happened
 * @pid: whose handle it is
 * @error: sentence of the last call that failed, the trainer's
 * @bad_messages: malformed, of other jobs, forged
 */
struct saina {
	pthread_mutex_t lock;
	pthread_cond_t	cond;
	pthread_t	thread;
	bool		started, stop;
	pid_t		pid;
	struct saina_opts opts;
	char		error[256];
	uint64_t	bad_messages;
	struct saina_session session;
	struct saina_round round;
	struct saina_io	io;
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

/* env.c: a variable, NULL if it is empty or not to be trusted */
const char *saina_env(const char *name);

/* thread.c */
void *saina_thread(void *arg);
void saina_fill_nonce(struct saina_session *j);
/* One datagram's worth; locked. */
void saina_input(struct saina *s, enum saina_source from, const void *msg, size_t len,
		 uint64_t now);

#endif /* SAINA_HANDLE_H */
