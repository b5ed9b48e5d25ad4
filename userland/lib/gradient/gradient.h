/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* What is in the segments: contributions, results, residuals, exponents. */
#ifndef SAINA_GRADIENT_H
#define SAINA_GRADIENT_H

#include "wire/job.h"
#include "quant.h"
#include "saina.h"

/* The caller's elements, from segment @first on. */
struct saina_tensor {
	void	 *buf;
	size_t	 n;
	uint32_t first;
	enum saina_type type;
};

/**
 * struct saina_share - this worker's part in a segment
 * @t: what it belongs to in this round, NULL when that has been waited for
 * @chosen: in this round, and kept until the result is settled:
 * @exponent: of the contribution, SAINA_EXPONENT_NAN if that is not finite; @alone: without the
 *	residual, because the sum of both is too large for a float32
 * @scale: exponent of the last result, SAINA_EXPONENT_NAN if there is none
 * @residual: enum saina_type of what is kept in the residual, 0 = nothing
 * @last: of the last result
 */
struct saina_share {
	struct saina_tensor *t;
	bool	 chosen, alone;
	int8_t	 exponent, scale;
	uint8_t	 residual;
	struct {
		uint64_t mask;
		uint32_t round;
		uint16_t policy;
		uint8_t	 contributors, k, flags;
		int8_t	 exponent;
	} last;
};

struct saina_gradient {
	const struct saina_job *job;
	const struct saina_quant *quant;
	uint32_t limit;			/* of integers in rounds */
	struct saina_share *share;	/* [segments] */
	uint32_t *residual;		/* [segments * payload], float or int32 bits */
};

int saina_gradient_init(struct saina_gradient *g, const struct saina_job *job);
void saina_gradient_exit(struct saina_gradient *g);

/* The caller's elements of a segment of the present round. */
void *saina_gradient_data(const struct saina_gradient *g, uint32_t segment, size_t *n);

/* The contribution to @segment, as on the wire.  Returns its exponent. */
int saina_gradient_encode(struct saina_gradient *g, uint32_t segment, void *wire);
/* The same in a table, whose exponent is given.  Returns how many elements do not fit: what of
 * these is above @limit stays for the next step.
 */
size_t saina_gradient_encode_step(struct saina_gradient *g, uint32_t segment, void *wire,
				  int exponent, uint32_t limit);
/* The result, into the caller's elements; @div: what to divide by.  0, or -EPROTO: these are
 * int32, and those of another worker were floats.
 */
int saina_gradient_decode(struct saina_gradient *g, uint32_t segment, const struct saina_hdr *h,
			  const void *sums, unsigned int div);
/* What a result says of the next contribution. */
void saina_gradient_learn(struct saina_gradient *g, uint32_t segment, const struct saina_hdr *h);

/* move.c: residuals and scales go along; 0, -ENOMEM, -EINVAL (types meet) or -ENOTEMPTY
 * (some residual would be lost).
 */
int saina_gradient_move(struct saina_gradient *g, const struct saina_move *moves, size_t n);

/* residual.c: the present contribution was counted, and its result has this exponent. */
void saina_residual_counted(struct saina_gradient *g, uint32_t segment, int exponent);
/* The same in a table, whose exponent is one for all: what did not fit or was rounded off is kept.
 * Returns how many elements did not fit.
 */
size_t saina_residual_stepped(struct saina_gradient *g, uint32_t segment, int exponent, uint32_t limit);
/* It was not.  Returns how many elements are dropped all the same: a gradient that is not finite,
 * and what is beyond the largest float32.
 */
size_t saina_residual_keep(struct saina_gradient *g, uint32_t segment);
void saina_residual_drop(struct saina_gradient *g, uint32_t segment);
const void *saina_residual_of(const struct saina_gradient *g, uint32_t segment);

#endif /* SAINA_GRADIENT_H */
