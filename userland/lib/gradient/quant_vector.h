/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The loops of quant.h for processors with vector instructions. */
#ifndef SAINA_QUANT_VECTOR_H
#define SAINA_QUANT_VECTOR_H

#include "quant.h"

#if defined(__x86_64__)
extern const struct saina_quant saina_quant_avx2, saina_quant_avx512;
void saina_quant_add_avx2(void *out, const void *a, const void *b, size_t n);
#endif

/*
 * Segments follow each other in the tensor, and results in shared memory; both are too large for the
 * caches, and what processors prefetch by themselves ends with the page.  An address behind the end
 * does no harm.
 */
#define QUANT_AHEAD 2048 /* bytes: 1024 to 4096 are equally fast */

static inline void quant_prefetch(const void *p)
{
	__builtin_prefetch((const char *)p + QUANT_AHEAD);
}

/*
 * Is the mean 2^-*@shift times the sum (@shift is out)?  Then float32 suffices and nothing is
 * divided: the factor is a power of two, and no result is so small that it would be rounded again.
 */
static inline bool quant_is_shift(int e, unsigned int div, int *shift)
{
	unsigned int log = __builtin_ctz(div);

	*shift = e + (int)log;
	return div == 1u << log && *shift <= 126 && e >= -96;
}

#endif /* SAINA_QUANT_VECTOR_H */
