/* SPDX-License-Identifier: GPL-2.0-or-later */
/* verify.h for jobs of floats. */
#ifndef VERIFY_FLOAT_H
#define VERIFY_FLOAT_H

#include "verify_state.h"

int verify_float_init(struct verify *v, uint32_t first_round);
float verify_float_fresh(const struct verify *v, unsigned int w, uint32_t r, uint64_t i);
void verify_float_segment(struct verify *v, uint32_t segment, const struct saina_segment *g,
			  const float *out, uint32_t n);
bool verify_float_residual(const struct verify *v, uint32_t segment, const float *res, uint32_t n);

#endif /* VERIFY_FLOAT_H */
