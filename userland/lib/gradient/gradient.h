/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The content of segments: contributions, results, residuals and exponents. */
#ifndef SAINA_GRADIENT_H
#define SAINA_GRADIENT_H

#include "wire/job.h"
#include "quant.h"
#include "saina.h"

/*
 * The caller's elements, from segment @first on.  @base: what of them earlier results have already,
 * which no residual keeps; NULL: nothing.
 */
struct saina_tensor {
	void	 *buf;
	const float *base;
	size_t	 n;
	uint32_t first;
	enum saina_type type;
	bool	 once;		/* residuals are left alone */
};

/**
 * struct saina_segment_state - this worker's state of a segment
 * @t: tensor it belongs to in this round, or NULL
 * @chosen: @exponent and @alone are set for this round
 * @alone: the contribution is without the residual, as the sum of both is too large for a float32
 * @exponent: of the contribution; SAINA_EXPONENT_NAN: it is not finite; SAINA_EXPONENT_INT: int32
 * @scale: exponent of the last result; SAINA_EXPONENT_NAN: there is none
 * @residual: enum saina_type of the residual; 0: there is none
 * @last: the header of the last result
 */
struct saina_segment_state {
	struct saina_tensor *t;
	bool	 chosen, alone;
	int8_t	 exponent, scale;	/* as on the wire */
	uint8_t	 residual;
	struct {
		uint64_t mask;
		uint32_t round, weight;	/* @weight: workers in the sum; 0: there is no result */
		uint16_t policy;
		uint8_t	 contributors, k, flags;
		int8_t	 exponent;
	} last;
};

struct saina_gradient {
	const struct saina_job *job;
	const struct saina_quant *quant;
	uint32_t limit;			/* of integers in rounds */
	uint32_t infinite;		/* bits of a magnitude that counts as not finite, at least */
	int slack;			/* bits by which an exponent may be coarser than needed */
	struct saina_segment_state *state;	/* [segments] */
	uint32_t *residual;		/* [segments * payload], float or int32 bits */
};

/* 0, or -ENOMEM: saina_gradient_exit() is due either way. */
int saina_gradient_init(struct saina_gradient *g, const struct saina_job *job);
void saina_gradient_exit(struct saina_gradient *g);

/* The caller's elements of a segment of the present round; @n out: how many. */
void *saina_gradient_data(const struct saina_gradient *g, uint32_t segment, size_t *n);

/* The residual that the contribution to @segment adds, or NULL. */
const void *saina_gradient_residual(const struct saina_gradient *g, uint32_t segment);

/* Writes the contribution to @segment, as on the wire, and returns its exponent. */
int saina_gradient_encode(struct saina_gradient *g, uint32_t segment, void *wire);
/*
 * Writes the contribution to @segment for a parameter server, with @exponent.  Returns how many
 * elements are beyond @limit: the rest of them stays for the next step.
 */
size_t saina_gradient_encode_step(struct saina_gradient *g, uint32_t segment, void *wire,
				  int exponent, uint32_t limit);
/* Writes a result, of the caller's type, into the caller's elements, divided by @div. */
void saina_gradient_decode(struct saina_gradient *g, uint32_t segment, const struct saina_hdr *h,
			   const void *sums, unsigned int div);
/* Mask of the contributors to a result whose tensors are int32. */
uint64_t saina_gradient_integers(const struct saina_hdr *h, const void *sums);
/* Notes the exponent of a result, for the next contribution. */
void saina_gradient_learn(struct saina_gradient *g, uint32_t segment, const struct saina_hdr *h);

/*
 * move.c: moves residuals and scales.  0, -ENOMEM, -EINVAL (two types in one segment) or -ENOTEMPTY
 * (some residual would be lost).
 */
int saina_gradient_move(struct saina_gradient *g, const struct saina_move *moves, size_t n);

/*
 * Copies the residual of @n elements from @first on; what there is not is 0.  -EINVAL: a segment keeps
 * elements of another type than @type; @at: which.
 */
int saina_residual_get(const struct saina_gradient *g, uint64_t first, uint64_t n, enum saina_type type,
		       uint32_t *out, uint32_t *at);
/* Replaces it: the reverse.  -EDOM: an element is infinite or not a number.  Changes nothing on errors. */
int saina_residual_put(struct saina_gradient *g, uint64_t first, uint64_t n, enum saina_type type,
		       const uint32_t *in, uint32_t *at);

/* residual.c: the contribution was counted, and its result has @exponent. */
void saina_residual_counted(struct saina_gradient *g, uint32_t segment, int exponent);
/*
 * The contribution was counted by a parameter server, whose @exponent is the same for all workers:
 * keeps what did not fit or was rounded off.  Returns how many elements did not fit.
 */
size_t saina_residual_stepped(struct saina_gradient *g, uint32_t segment, int exponent, uint32_t limit);
/*
 * The contribution was not counted: keeps it.  Returns how many elements are dropped nevertheless:
 * all of a gradient that is not finite, and what is beyond the largest float32.
 */
size_t saina_residual_keep(struct saina_gradient *g, uint32_t segment);
/* The contribution was not counted, and the policy drops late ones: the residual becomes 0. */
void saina_residual_drop(struct saina_gradient *g, uint32_t segment);

#endif /* SAINA_GRADIENT_H */
