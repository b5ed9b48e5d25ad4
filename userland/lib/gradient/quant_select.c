// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The variants of the loops of quant.h, and the choice of one for this processor. */
#include "quant_vector.h"

/* From the scalar one to the widest. */
static const struct saina_quant *const variants[] = {
	&saina_quant_scalar,
#if defined(__x86_64__)
	&saina_quant_avx2,
	&saina_quant_avx512,
#endif
};

const struct saina_quant *saina_quant_variant(unsigned int i)
{
	return i < sizeof(variants) / sizeof(*variants) ? variants[i] : NULL;
}

const struct saina_quant *saina_quant_best(void)
{
	const struct saina_quant *best = &saina_quant_scalar;

	for (unsigned int i = 0; saina_quant_variant(i); i++) {
		if (variants[i]->usable() == SAINA_QUANT_FAST)
			best = variants[i];
	}
	return best;
}
