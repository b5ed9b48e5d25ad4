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

#include "contents.h"

/* 0 or -ENOMEM; verify_free() is due either way. */
int verify_init(struct verify *v, uint32_t first_round);
void verify_free(struct verify *v);

/* Sets @buf to what this worker produces in round @r at @n places from @i, in the tensor's type. */
void verify_fill(const struct verify *v, uint32_t r, uint64_t i, void *buf, uint64_t n);
/*
 * Checks @out, the @n elements of the result of segment @segment, whose contributors @g has.  The
 * outcome is counted in @v->right, ->wrong or ->unknown; ->what describes the first wrong sum.
 */
void verify_segment(struct verify *v, uint32_t segment, const struct saina_segment *g,
		    const void *out, uint32_t n);
/*
 * From round @round on tensors have @to elements, @from before: nobody has produced anything for
 * the new ones.
 */
void verify_resize(struct verify *v, uint64_t from, uint64_t to, uint32_t round);
/* The results of a round were never seen: what was counted is not known any more. */
void verify_missed(struct verify *v);
/* Is @res what must be left of this worker's gradients after round @last? */
bool verify_residual(const struct verify *v, uint32_t last, uint32_t segment, const void *res,
		     uint32_t n);

#endif /* VERIFY_H */
