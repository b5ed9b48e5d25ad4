/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A worker's steps with the parameter server: does to the bytes what transport/steps.h decides.
 * The server's sums only have a meaning as differences: the trainer gets what was added since its
 * model was last brought up to date, its own updates included.
 * Documentation/datapath.rst section 11.
 */
#ifndef SAINA_PS_H
#define SAINA_PS_H

#include "transport/steps.h"

struct saina_round;
struct saina_req;

/*
 * float32 is clipped at this many units of the exponent and the rest goes with the next update, so
 * that a difference of less than SAINA_PS_UPDATES updates fits in 32 bits.
 */
#define SAINA_PS_LIMIT	(1u << 20)
#define SAINA_PS_UPDATES	(1u << 11)
#define SAINA_PS_ROOM	4	/* bits by which later updates may be larger than the first */

/**
 * struct saina_ps
 * @on: the job has steps, not rounds
 * @fresh: the model holds all that the server has, whatever that is
 * @epoch_known: @epoch is known
 * @noted: the user was told that updates do not fit
 * @epoch: low 16 bits of the server's first step
 * @seen: [segments * payload]: the sums that the model holds
 * @first_round: the first round after the steps
 * @exponent: [segments]; SAINA_EXPONENT_NAN: unknown, nothing was pushed yet
 * @bad: element that is not finite, of the update that cannot be pushed
 * @steps: what to send when
 * @closed_ns: when the trainer completed the step
 * @wait_ns: how long the trainer waited for the step
 * @version_min: updates that the server had summed, least over the segments of the step
 * @version_max: likewise, most
 * @updates_min: updates in the differences of the step, least over the segments
 * @updates_max: likewise, most
 */
struct saina_ps {
	bool on, fresh, epoch_known, noted;
	uint16_t epoch;
	uint32_t *seen, first_round;
	int8_t *exponent;
	size_t bad;
	struct saina_steps steps;
	uint64_t closed_ns, wait_ns;
	uint64_t version_min, version_max;
	uint64_t updates_min, updates_max;
};

void saina_ps_exit(struct saina_ps *t);

/* A SUM, NAK or GO that saina_session_check() has accepted.  0 or -ENOMEM */
int saina_ps_input(struct saina_round *r, const struct saina_hdr *h, uint64_t now);
/* As saina_round_output(); INCs and READs are as long as GRADs. */
unsigned int saina_ps_output(struct saina_round *r, uint64_t now, uint8_t *buf, size_t *len,
				uint64_t *when);

/* Index of the first element that is not finite; t->n if all are. */
size_t saina_ps_finite(const struct saina_round *r, const struct saina_tensor *t);

/* The trainer has submitted @q as part of the step. */
void saina_ps_start(struct saina_round *r, struct saina_req *q);
/* The trainer submits no more in this step. */
void saina_ps_close(struct saina_round *r, uint64_t now);
/* The trainer has taken the results of the step. */
void saina_ps_next(struct saina_round *r, uint64_t now);

/* Admitted again; the job lives on. */
void saina_ps_rejoin(struct saina_round *r);

#endif /* SAINA_PS_H */
