/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A worker's steps: what the steps machine decides, done to the bytes.  The table's sums
 * mean something as differences only: what the trainer gets is what has been added since
 * its model was brought up to date last, its own updates among that.
 * Documentation/datapath.rst section 11.
 */
#ifndef SAINA_TABLE_H
#define SAINA_TABLE_H

#include "transport/steps.h"

struct saina_round;
struct saina_req;

/*
 * float32 is cut off at this many units of the exponent, and what is cut off goes with the next
 * update: so a difference of less than SAINA_TABLE_UPDATES updates fits in 32 bits.
 */
#define SAINA_PS_LIMIT	(1u << 20)
#define SAINA_TABLE_UPDATES	(1u << 11)
#define SAINA_TABLE_ROOM	4	/* bits that later updates may be larger than the first */

/**
 * struct saina_table
 * @on: the job has steps, not rounds
 * @fresh: the model holds all that the table has, whatever that is
 * @known: @epoch is: low 16 bits of the table's first step
 * @seen: the sums that the model holds, [segments * payload]
 * @off: first round after it
 * @exponent: of the segments, [segments]; SAINA_EXPONENT_NAN: not known, nothing was pushed yet
 * @said: that updates do not fit
 * @bad: of the update that cannot be pushed, the element that is not finite
 * @closed_ns: when the step was complete
 * Of the step: @versions of the sums, @updates in the differences, least and most; @wait_ns
 */
struct saina_table {
	bool on, fresh, known, said;
	uint16_t epoch;
	uint32_t *seen, off;
	int8_t *exponent;
	size_t bad;
	struct saina_steps steps;
	uint64_t closed_ns, wait_ns;
	uint64_t version_min, version_max;
	uint64_t updates_min, updates_max;
};

void saina_table_exit(struct saina_table *t);

/* A SUM, NAK or GO that saina_check() has let through.  0 or -ENOMEM */
int saina_table_input(struct saina_round *r, const struct saina_hdr *h, uint64_t now);
/* As saina_round_output(); INCs and READs are as long as GRADs. */
unsigned int saina_table_output(struct saina_round *r, uint64_t now, uint8_t *buf, size_t *len,
				uint64_t *when);

/* The first element that is not finite; @n if all are. */
size_t saina_table_finite(const struct saina_round *r, const struct saina_tensor *t);

/* The trainer: @q is part of the step; there are no more; the step has been taken. */
void saina_table_start(struct saina_round *r, struct saina_req *q);
void saina_table_close(struct saina_round *r, uint64_t now);
void saina_table_next(struct saina_round *r, uint64_t now);

/* Admitted again; the job lives on. */
void saina_table_again(struct saina_round *r);

#endif /* SAINA_TABLE_H */
