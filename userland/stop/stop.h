/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A signal ends a worker.  The first SIGTERM or SIGINT ends one that waits to be let into a
 * running job at once, and one that waits for a round when nothing of it has come for a while:
 * that it ends in order is worth so much, for the others then need not wait until it is found dead.
 * The second one ends the process.
 */
#ifndef SAINA_STOP_H
#define SAINA_STOP_H

#include <stdbool.h>
#include <stddef.h>
#include "saina.h"

#define STOP_MS 2000

void stop_catch(void);
/* Has there been a signal? */
bool stop_asked(void);

/* As saina_open(); the sentence of a failure in @text.  -EINTR: a signal came before the job ran. */
int stop_open(struct saina **s, const struct saina_opts *o, char *text, size_t size);

/**
 * stop_wait() - as saina_wait()
 * @ms: after a signal, how long nothing may come
 * Return: -EINTR: given up, the handle can only be closed; else that of saina_wait()
 */
int stop_wait(struct saina *s, struct saina_req *req, struct saina_call *call, unsigned int ms);
/* As saina_read() without a time-out; likewise. */
int stop_read(struct saina *s, struct saina_step *step, unsigned int ms);

#endif /* SAINA_STOP_H */
