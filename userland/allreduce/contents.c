// SPDX-License-Identifier: GPL-2.0-or-later
/* What workers produce, as integers: all else is derived from it. */
#include "contents.h"

#define RANGE 4096 /* float32 contents are multiples of 1 / 1024 from -4 to 4 */

static uint32_t mix(uint32_t a, uint32_t b, uint32_t c, uint64_t d)
{
	uint64_t z = d * 0x9e3779b97f4a7c15ull + ((uint64_t)a << 32 | b);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull + c * 0xd6e8feb86659fd93ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

int32_t verify_fresh(const struct verify *v, unsigned int w, uint32_t r, uint64_t i)
{
	uint32_t x = mix(v->seed, w, r, i), size;
	bool negative;

	if (v->contents == CONTENTS_RANDOM)
		return v->type == SAINA_INT32 ? (int32_t)x : (int32_t)(x % (2 * RANGE + 1)) - RANGE;
	/* All workers agree in sign, so that the sum has it too. */
	size = v->type == SAINA_INT32 ? 1 + (x & 0xfffff) : 1 + (x & (RANGE - 1));
	negative = mix(v->seed, 64, 0, i) & 1;
	if (v->contents == CONTENTS_FLIP)
		negative ^= r & 1;
	return negative ? -(int32_t)size : (int32_t)size;
}
