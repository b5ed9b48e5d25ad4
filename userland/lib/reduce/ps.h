/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A worker's steps with the parameter server: does to the bytes what transport/steps.h decides.
 * The server's sums only have a meaning as differences: the trainer gets what was added since its
 * model was last brought up to date, its own updates included.
 * Documentation/datapath.rst section 11.
 */
#ifndef SAINA_PS_H
#define SAINA_PS_H

#include "state.h"

/*
 * float32 is clipped at this many units of the exponent and the rest goes with the next update, so
 * that a difference of less than SAINA_PS_UPDATES updates fits in 32 bits.
 */
#define SAINA_PS_LIMIT	(1u << 20)
#define SAINA_PS_UPDATES	(1u << 11)
#define SAINA_PS_ROOM	4	/* bits by which later updates may be larger than the first */

void saina_ps_exit(struct saina_ps *t);

/* A SUM, NAK or GO that saina_session_check() has accepted.  0 or -ENOMEM */
int saina_ps_input(struct saina_round *r, const struct saina_hdr *h, uint64_t now);
/* As saina_round_output(); INCs and READs are as long as GRADs. */
unsigned int saina_ps_output(struct saina_round *r, uint64_t now, uint8_t *buf, size_t *len,
				uint64_t *when);

/* Index of the first element of @t that is not finite; t->n if all are. */
size_t saina_ps_finite(const struct saina_round *r, const struct saina_tensor *t);

/* The trainer has submitted @q as part of the step. */
void saina_ps_start(struct saina_round *r, struct saina_req *q);
/* The trainer submits no more in this step. */
void saina_ps_close(struct saina_round *r, uint64_t now);
/* The trainer has taken the results of the step. */
void saina_ps_next(struct saina_round *r, uint64_t now);

/* This worker is admitted again, and the job is the same. */
void saina_ps_rejoin(struct saina_round *r);

#endif /* SAINA_PS_H */
