/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks every sum of a run against what the contributor masks say.
 *
 * What worker w produces in round r at place i is a pure function of (seed, w,
 * r, i).  What it contributes to a segment is the sum of all it has produced there since
 * it was last counted, and when that was follows from the masks of earlier results,
 * which everybody sees.  So every worker can compute every result from the masks
 * alone, residuals included.
 */
#ifndef VERIFY_H
#define VERIFY_H

#include <stdbool.h>
#include <stdint.h>
#include "saina.h"

enum contents {
	CONTENTS_RANDOM, CONTENTS_STEADY, CONTENTS_FLIP,
	CONTENTS_WILD,	/* in jobs of floats */
	/* float32 in jobs of int32 (verify_numbers.c) */
	CONTENTS_SPIKE, CONTENTS_ZEROS, CONTENTS_NAN, CONTENTS_LARGE, CONTENTS_JUMP,
};

static inline bool contents_are_numbers(enum contents c)
{
	return c >= CONTENTS_SPIKE;
}

struct verify_owed;

struct verify {
	enum saina_type type, wire;	/* of the tensor; of the job's elements */
	enum contents contents;
	uint32_t seed;
	unsigned int workers, me;
	uint32_t segments, payload;
	bool restarts;		/* other workers may have begun afresh */
	uint32_t *base;		/* [segments][64]: first round not yet counted */
	int64_t *units;		/* scratch, [payload] */
	float *carry;		/* verify_float.c: [workers][segments * payload] */
	struct verify_owed *owed; /* verify_numbers.c: [workers][segments] */
	double *sums;		/* .. scratch, [2][payload] */
	bool lost;		/* carry or owed is not known any more */
	uint64_t right, wrong, unknown;
	uint64_t bounded;	/* of right: sums that were rounded on the way, or depend on the order */
	char what[200];		/* the first wrong sum */
};

int verify_init(struct verify *v, uint32_t first_round);
void verify_free(struct verify *v);

/* What worker @w produces in round @r at place @i; float32: in 1/1024. */
int32_t verify_fresh(const struct verify *v, unsigned int w, uint32_t r, uint64_t i);
/* @n places from @i, in the tensor's type. */
void verify_fill(const struct verify *v, uint32_t r, uint64_t i, void *buf, uint64_t n);
/* @out: @n elements that the result of segment @g holds. */
void verify_segment(struct verify *v, uint32_t segment, const struct saina_segment *g,
		    const void *out, uint32_t n);
/*
 * From round @round on tensors have @to elements, @from before: nobody has produced anything for
 * the new ones.
 */
void verify_resize(struct verify *v, uint64_t from, uint64_t to, uint32_t round);
/* A round whose results were never seen. */
void verify_missed(struct verify *v);
/* Is @res what must be left of this worker's gradients after round @last? */
bool verify_residual(const struct verify *v, uint32_t last, uint32_t segment, const void *res,
		     uint32_t n);

/* The same for jobs of floats (verify_float.c), called by the above. */
int verify_float_init(struct verify *v, uint32_t first_round);
float verify_float_fresh(const struct verify *v, unsigned int w, uint32_t r, uint64_t i);
void verify_float_segment(struct verify *v, uint32_t segment, const struct saina_segment *g,
			  const float *out, uint32_t n);
bool verify_float_residual(const struct verify *v, uint32_t segment, const float *res, uint32_t n);

/* The same for float32 of all magnitudes in jobs of int32 (verify_numbers.c). */
int verify_numbers_init(struct verify *v, uint32_t first_round);
float verify_numbers_fresh(const struct verify *v, unsigned int w, uint32_t r, uint64_t i);
void verify_numbers_segment(struct verify *v, uint32_t segment, const struct saina_segment *g,
			    const float *out, uint32_t n);
bool verify_numbers_residual(const struct verify *v, uint32_t segment, const float *res, uint32_t n);

#endif /* VERIFY_H */
