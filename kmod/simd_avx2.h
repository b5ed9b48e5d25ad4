/* SPDX-License-Identifier: GPL-2.0 */
/* The loops of simd.c in AVX2; on other machines: not there. */
#ifndef _SAINA_SIMD_AVX2_H
#define _SAINA_SIMD_AVX2_H

#include <linux/types.h>

#ifdef CONFIG_X86_64
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>

static inline bool saina_avx2_usable(void)
{
	return boot_cpu_has(X86_FEATURE_AVX2) && boot_cpu_has(X86_FEATURE_OSXSAVE) &&
	       cpu_has_xfeatures(XFEATURE_MASK_SSE | XFEATURE_MASK_YMM, NULL);
}

/*
 * True: the registers are ours until saina_avx2_end(), and sums are rounded to
 * nearest even whatever the interrupted task had set.
 */
static inline bool saina_avx2_begin(void)
{
	if (!irq_fpu_usable())
		return false;
	kernel_fpu_begin_mask(KFPU_MXCSR);
	return true;
}

static inline void saina_avx2_end(void)
{
	kernel_fpu_end();
}

/* @n: a multiple of 8 */
static inline void saina_avx2_f32_add(u32 *sums, const u32 *msg, u32 n)
{
	u32 i;

	for (i = 0; i < n; i += 8)
		asm volatile("vmovups %0, %%ymm0\n\t"
			     "vaddps %1, %%ymm0, %%ymm0\n\t"
			     "vmovups %%ymm0, %0"
			     : "+m"(*(u32 (*)[8])(sums + i))
			     : "m"(*(const u32 (*)[8])(msg + i)));
}

static inline void saina_avx2_bf16_add(u32 *sums, const u16 *msg, u32 n)
{
	u32 i;

	for (i = 0; i < n; i += 8)
		asm volatile("vmovups %0, %%ymm0\n\t"
			     "vpmovzxwd %1, %%ymm1\n\t"
			     "vpslld $16, %%ymm1, %%ymm1\n\t"
			     "vaddps %%ymm1, %%ymm0, %%ymm0\n\t"
			     "vmovups %%ymm0, %0"
			     : "+m"(*(u32 (*)[8])(sums + i))
			     : "m"(*(const u16 (*)[8])(msg + i)));
}
#else
static inline bool saina_avx2_usable(void) { return false; }
static inline bool saina_avx2_begin(void) { return false; }
static inline void saina_avx2_end(void) { }
static inline void saina_avx2_f32_add(u32 *sums, const u32 *msg, u32 n) { }
static inline void saina_avx2_bf16_add(u32 *sums, const u16 *msg, u32 n) { }
#endif

#endif /* _SAINA_SIMD_AVX2_H */
