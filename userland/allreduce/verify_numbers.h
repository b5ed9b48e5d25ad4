/* SPDX-License-Identifier: GPL-2.0-or-later */
/* verify.h for float32 of all magnitudes in jobs of int32, and of any in those of int16. */
#ifndef VERIFY_NUMBERS_H
#define VERIFY_NUMBERS_H

#include "verify_state.h"

int verify_numbers_init(struct verify *v, uint32_t first_round);
float verify_numbers_fresh(const struct verify *v, unsigned int w, uint32_t r, uint64_t i);
void verify_numbers_segment(struct verify *v, uint32_t segment, const struct saina_segment *g,
			    const float *out, uint32_t n);
bool verify_numbers_residual(const struct verify *v, uint32_t segment, const float *res, uint32_t n);

#endif /* VERIFY_NUMBERS_H */
