/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the checks of a run know: what workers produce, and what was counted of it. */
#ifndef VERIFY_STATE_H
#define VERIFY_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include "saina.h"

enum contents {
	CONTENTS_RANDOM, CONTENTS_STEADY, CONTENTS_FLIP,
	CONTENTS_WILD,	/* in jobs of floats */
	/* float32 in jobs of int32 and int16 (verify_numbers.c) */
	CONTENTS_SPIKE, CONTENTS_ZEROS, CONTENTS_NAN, CONTENTS_LARGE, CONTENTS_JUMP, CONTENTS_WHOLE,
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
	bool restarts;		/* other workers may have restarted */
	uint32_t *base;		/* [segments][64]: first round not yet counted */
	int64_t *units;		/* scratch, [payload] */
	float *carry;		/* verify_float.c: [workers][segments * payload] */
	struct verify_owed *owed; /* verify_numbers.c: [workers][segments] */
	double *sums;		/* scratch: contributions, [workers][payload] */
	bool lost;		/* carry or owed is not known any more */
	uint64_t right, wrong, unknown;
	uint64_t bounded;	/* of right: sums that were rounded on the way, or depend on the order */
	char what[240];		/* the first wrong sum; if there is none, the first that is not on record */
};

/* Are sums of floats made on the way, which verify_float.c checks? */
static inline bool verify_sums_floats(const struct verify *v)
{
	return v->wire == SAINA_FLOAT32 || v->wire == SAINA_BFLOAT16;
}

/* Are numbers rounded to integers on the way, so that verify_numbers.c checks the sums? */
static inline bool verify_is_inexact(const struct verify *v)
{
	return v->wire == SAINA_INT16 || contents_are_numbers(v->contents);
}

#endif /* VERIFY_STATE_H */
