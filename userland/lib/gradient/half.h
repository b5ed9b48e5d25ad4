/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Between tensors and the floats on the wire. */
#ifndef SAINA_HALF_H
#define SAINA_HALF_H

#include <stddef.h>

/* Messages need not be aligned; @res may be NULL, @out of a remainder may be @res. */

/* out[i] = g[i] + res[i], float32 */
void saina_float_encode(void *out, const float *g, const float *res, size_t n);
/* out[i] = sum[i] / @div, rounded once */
void saina_float_decode(float *out, const void *sum, size_t n, unsigned int div);

/* The same with bfloat16 on the wire: rounded to nearest even. */
void saina_half_encode(void *out, const float *g, const float *res, size_t n);
void saina_half_decode(float *out, const void *sum, size_t n, unsigned int div);
/* out[i] = what encode() rounded off, exactly; 0 where that is not a number */
void saina_half_remainder(float *out, const float *g, const float *res, size_t n);

#endif /* SAINA_HALF_H */
