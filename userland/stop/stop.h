/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a signal ends a worker.  At the first SIGTERM or SIGINT a worker that waits to be admitted
 * ends at once, and one that waits for a round ends when no result has come for a while (STOP_MS,
 * unless its user sets another time).  It does not give up earlier, because a worker that leaves in
 * order is not waited for, while one that vanishes holds the others up until it is declared dead.
 * A second signal of the same kind kills the process.
 */
#ifndef SAINA_STOP_H
#define SAINA_STOP_H

#include <stdbool.h>
#include <stddef.h>
#include "saina.h"

#define STOP_MS 2000

/* Catches SIGTERM and SIGINT from now on; call it before the other functions. */
void stop_catch(void);
/* Has a signal come? */
bool stop_asked(void);

/*
 * As saina_open(), with the error message in @text (of @size bytes).  -EINTR: a signal came before
 * the job ran.
 */
int stop_open(struct saina **s, const struct saina_opts *o, char *text, size_t size);

/**
 * stop_wait() - as saina_wait()
 * @ms: after a signal, give up when no result has come for so long
 * Return: that of saina_wait(), or -EINTR if it gave up: then the handle can only be closed
 */
int stop_wait(struct saina *s, struct saina_req *req, struct saina_call *call, unsigned int ms);
/* As saina_read() without a time-out; gives up as stop_wait() does. */
int stop_read(struct saina *s, struct saina_step *step, unsigned int ms);

#endif /* SAINA_STOP_H */
