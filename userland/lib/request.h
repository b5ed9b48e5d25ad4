/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* All-reduces of both interfaces (allreduce.c, step.c). */
#ifndef SAINA_REQUEST_H
#define SAINA_REQUEST_H

#include "base.h"

/* Caller holds s->lock.  0, or why no all-reduce can be submitted. */
int saina_check_startable(struct saina *s);
/*
 * Caller holds s->lock.  Queues an all-reduce; does not wake the progress thread.  0, -EINVAL,
 * -EDOM, -ENOMEM, or why none can be submitted.
 */
int saina_req_start(struct saina *s, void *buf, const float *base, size_t n, enum saina_type type,
		    enum saina_result_op op, struct saina_req **req);
/* Sets the message of a request that finished with @err, and returns @err. */
int saina_req_error(struct saina *s, const struct saina_req *q, int err);

/* Caller holds s->lock.  Nothing more is submitted in this round or step. */
void saina_step_close(struct saina *s);
/* The next round or step begins. */
void saina_step_next(struct saina *s);

#endif /* SAINA_REQUEST_H */
