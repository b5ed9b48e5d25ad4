/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Converts between tensors and floats on the wire. */
#ifndef SAINA_HALF_H
#define SAINA_HALF_H

#include <stddef.h>

/* Pointers into messages need not be aligned.  @res may be NULL. */

/* out[i] = g[i] + res[i], float32 */
void saina_float_encode(void *out, const float *g, const float *res, size_t n);
/* out[i] = sum[i] / @div, rounded once */
void saina_float_decode(float *out, const void *sum, size_t n, unsigned int div);

/* As above, with bfloat16 on the wire, rounded to nearest even. */
void saina_half_encode(void *out, const float *g, const float *res, size_t n);
void saina_half_decode(float *out, const void *sum, size_t n, unsigned int div);
/* out[i] = what saina_half_encode() rounded off, exactly; 0 if not finite.  @out may be @res. */
void saina_half_remainder(float *out, const float *g, const float *res, size_t n);

#endif /* SAINA_HALF_H */
