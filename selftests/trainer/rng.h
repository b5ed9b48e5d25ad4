/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random numbers as pure functions of what they are for: whoever asks, in
 * whichever order, gets the same.  All runs of a comparison therefore see the
 * same minibatches and the same stragglers.
 */
#ifndef EXAMPLES_RNG_H
#define EXAMPLES_RNG_H

#include <stdint.h>

static inline uint64_t rng_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* Number (@a, @b) of the stream @stream of @seed. */
static inline uint64_t rng_at(uint64_t seed, uint64_t stream, uint64_t a, uint64_t b)
{
	return rng_mix(rng_mix(rng_mix(rng_mix(seed) ^ stream) ^ a) ^ b);
}

/* Uniform in [0, 1). */
static inline double rng_unit(uint64_t x)
{
	return (double)(x >> 11) * 0x1p-53;
}

enum rng_stream {
	RNG_SPLIT = 1,	   /* which examples are for testing */
	RNG_EPOCH = 2,	   /* order of the examples in an epoch */
	RNG_MODEL = 3,	   /* initial parameters */
	RNG_DELAY = 4,	   /* is (worker, round) delayed? */
	RNG_DELAY_LEN = 5, /* by how much? */
	RNG_PERIOD = 6,	   /* does a worker's bad period begin or end? */
	RNG_LATENCY = 98,  /* until a worker has a result, simulated */
	RNG_JITTER = 99,   /* of the time that a worker computes, simulated */
};

#endif /* EXAMPLES_RNG_H */
