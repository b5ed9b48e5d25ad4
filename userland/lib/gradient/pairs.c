// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Jobs of int16: block scaling as in quant.c, with |q| at most L = 32767 / workers - 1.  So no sum of
 * all workers leaves 16 bits, and sums of words have the sums of both of their elements.
 *
 * What a worker rounds off stays in its residual.  It is a float32 without error: at most half a
 * unit, and a multiple of the last place of what was rounded, or all of that.
 */
#include "pairs.h"

#define CHUNK 256 /* elements; constant, so that compilers vectorise the loops over it */

uint32_t saina_pairs_limit(unsigned int workers)
{
	return INT16_MAX / workers - 1;
}

static void pack(uint32_t *word, const int32_t *q)
{
	for (size_t i = 0; i < CHUNK / 2; i++)
		word[i] = SAINA_PAIR(q[2 * i], q[2 * i + 1]);
}

static void unpack(int32_t *q, const uint32_t *word)
{
	for (size_t i = 0; i < CHUNK / 2; i++) {
		q[2 * i] = SAINA_PAIR_FIRST(word[i]);
		q[2 * i + 1] = SAINA_PAIR_SECOND(word[i]);
	}
}

/* Elements of the chunk that begins at @i, and the bytes of their words. */
static size_t chunk_len(size_t n, size_t i, size_t *bytes)
{
	size_t m = n - i < CHUNK ? n - i : CHUNK;

	*bytes = 4 * ((m + 1) / 2);
	return m;
}

void saina_pairs_encode(const struct saina_quant *quant, void *out, const float *g, const float *res,
			size_t n, int e)
{
	uint32_t word[CHUNK / 2];
	int32_t q[CHUNK];
	size_t bytes;

	for (size_t i = 0; i < n; i += CHUNK) {
		size_t m = chunk_len(n, i, &bytes);

		if (m < CHUNK)
			memset(q, 0, sizeof(q));
		quant->encode(q, g + i, res ? res + i : NULL, m, e);
		pack(word, q);
		memcpy((char *)out + 2 * i, word, bytes);
	}
}

void saina_pairs_decode(const struct saina_quant *quant, float *out, const void *sum, size_t n, int e,
			unsigned int div)
{
	uint32_t word[CHUNK / 2] = {0};
	int32_t q[CHUNK];
	size_t bytes;

	for (size_t i = 0; i < n; i += CHUNK) {
		size_t m = chunk_len(n, i, &bytes);

		memcpy(word, (const char *)sum + 2 * i, bytes);
		unpack(q, word);
		quant->decode(out + i, q, m, e, div);
	}
}

/* c - round(c * scale) / scale, to even: |c * scale| is below 2^15, so the sum has no fraction. */
static float left_over(float c, float scale, float unit)
{
	const float round = 0x1.8p23f;
	float q = c * scale + round;

	return c - (q - round) * unit;
}

/* As that, at an exponent whose scale is no float. */
static float left_over_small(float c, float first, float second)
{
	return left_over(c * first, second, 1 / second) / first;
}

void saina_pairs_remainder(float *restrict res, const float *restrict g, size_t n, int e)
{
	float first, second, unit;
	size_t i, j;

	quant_steps(e + SAINA_EXPONENT_BIAS, &first, &second);
	unit = 1 / first;
	if (second != 1) {
		for (i = 0; i < n; i++)
			res[i] = left_over_small(g[i] + res[i], first, second);
		return;
	}
	for (i = 0; i + CHUNK <= n; i += CHUNK)
		for (j = i; j < i + CHUNK; j++)
			res[j] = left_over(g[j] + res[j], first, unit);
	for (; i < n; i++)
		res[i] = left_over(g[i] + res[i], first, unit);
}
