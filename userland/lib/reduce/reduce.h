/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* All-reduces: in rounds (round.h), or in steps with a parameter server (ps.h). */
#ifndef SAINA_REDUCE_H
#define SAINA_REDUCE_H

#include "ps.h"
#include "round.h"

void saina_reduce_exit(struct saina_round *r);
/* As saina_round_start(), whichever the job has. */
void saina_reduce_start(struct saina_round *r, struct saina_req *q, uint64_t now);
/* As saina_round_output(), whichever the job has. */
unsigned int saina_reduce_output(struct saina_round *r, uint64_t now, uint8_t *buf, size_t *len,
				 uint64_t *when);
/* The trainer submits nothing more before it has waited. */
void saina_reduce_close(struct saina_round *r, uint64_t now);
/* The trainer has taken all results of the round or step: the next one begins. */
void saina_reduce_next(struct saina_round *r, uint64_t now);
/* Is an answer of the data path due? */
bool saina_reduce_waits(const struct saina_round *r);

#endif /* SAINA_REDUCE_H */
