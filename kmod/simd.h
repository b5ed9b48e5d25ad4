/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sums of float32 and bfloat16 in the kernel.  The vector unit where it may be
 * used, integer arithmetic with the same result, bit for bit, elsewhere.
 */
#ifndef _SAINA_SIMD_H
#define _SAINA_SIMD_H

#include <linux/types.h>

/* sums[i] += msg[i], round to nearest even; @n a multiple of 8 */
void saina_f32_add_n(u32 *sums, const u32 *msg, u32 n);
/* The same for a message of bfloat16: it is widened, the sums are float32. */
void saina_bf16_add_n(u32 *sums, const u16 *msg, u32 n);
/* sums[i] = msg[i] */
void saina_bf16_store_n(u32 *sums, const u16 *msg, u32 n);

/* One sum by integer arithmetic: what vaddps gives. */
u32 saina_f32_add_scalar(u32 a, u32 b);

void saina_simd_init(void);

#endif /* _SAINA_SIMD_H */
