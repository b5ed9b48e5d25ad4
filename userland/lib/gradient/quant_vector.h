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

/* The mean is the sum times 2^-@shift, divided by @odd. */
struct quant_mean {
	int shift;
	unsigned int odd;
};

static inline struct quant_mean quant_mean(int e, unsigned int div)
{
	unsigned int log = __builtin_ctz(div);

	return (struct quant_mean){ e + SAINA_EXPONENT_BIAS + (int)log, div >> log };
}

/*
 * Does float32 suffice?  Nothing is divided then, and nothing rounded twice: a sum above 2^24, which
 * the conversion to float32 rounds, has a mean of at least 2^-126, which is a normal float.
 */
static inline bool quant_mean_is_float(struct quant_mean m)
{
	return m.odd == 1 && m.shift <= 24 + 126 && m.shift >= -96;
}

#endif /* SAINA_QUANT_VECTOR_H */
