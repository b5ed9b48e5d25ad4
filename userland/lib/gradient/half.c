// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Jobs of float32 and bfloat16.  Their elements need no exponent that workers agree on.
 *
 * bfloat16 is the upper half of a float32.  So the difference between a float32 and its rounded
 * bfloat16 is a float32 without error: it is at most half a unit in the last place of the
 * bfloat16, and a multiple of the last place of the float32.  The exception is a number so large
 * that it is rounded to infinity.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "half.h"

/* Rounds to nearest even, subnormals too.  A NaN stays a NaN. */
static uint16_t to_half(float f)
{
	uint32_t x;

	memcpy(&x, &f, 4);
	if ((x & 0x7fffffff) > 0x7f800000)
		return x >> 16 | 0x40;
	return (x + 0x7fff + (x >> 16 & 1)) >> 16;
}

static float widen(uint16_t h)
{
	uint32_t x = (uint32_t)h << 16;
	float f;

	memcpy(&f, &x, 4);
	return f;
}

void saina_float_encode(void *out, const float *g, const float *res, size_t n)
{
	if (!res) {
		memcpy(out, g, 4 * n);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		float c = g[i] + res[i];

		memcpy((char *)out + 4 * i, &c, 4);
	}
}

void saina_float_decode(float *out, const void *sum, size_t n, unsigned int div)
{
	memcpy(out, sum, 4 * n);
	if (div == 1)
		return;
	for (size_t i = 0; i < n; i++)
		out[i] /= (float)div;
}

void saina_half_encode(void *out, const float *g, const float *res, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint16_t h = to_half(res ? g[i] + res[i] : g[i]);

		memcpy((char *)out + 2 * i, &h, 2);
	}
}

void saina_half_decode(float *out, const void *sum, size_t n, unsigned int div)
{
	for (size_t i = 0; i < n; i++) {
		uint16_t h;

		memcpy(&h, (const char *)sum + 2 * i, 2);
		out[i] = widen(h) / (float)div;
	}
}

void saina_half_remainder(float *out, const float *g, const float *res, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float c = res ? g[i] + res[i] : g[i], left = c - widen(to_half(c));

		out[i] = isfinite(left) ? left : 0.0f;
	}
}
