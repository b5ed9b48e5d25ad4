/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random numbers for tests: seeded, fast, the same everywhere. */
#ifndef SAINA_TEST_RNG_H
#define SAINA_TEST_RNG_H

#include <stdbool.h>
#include <stdint.h>

/* xorshift128+ */
struct rng {
	uint64_t s[2];
};

/* splitmix64: a hash of @x */
static inline uint64_t rng_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* The sequence of splitmix64 whose state is one number, which may begin as any. */
static inline uint64_t rng_next(uint64_t *s)
{
	uint64_t x = *s;

	*s += 0x9e3779b97f4a7c15ull;
	return rng_mix(x);
}

/* Of that sequence: 0 .. @below - 1 (0 if that is 0); true with probability @p. */
static inline uint64_t rng_next_below(uint64_t *s, uint64_t below)
{
	return below ? rng_next(s) % below : 0;
}

static inline bool rng_next_chance(uint64_t *s, double p)
{
	return rng_next_below(s, 1u << 30) < p * (1u << 30);
}

static inline void rng_seed(struct rng *r, uint64_t seed)
{
	r->s[0] = rng_mix(seed);
	r->s[1] = rng_mix(r->s[0]) | 1;
}

static inline uint64_t rng_u64(struct rng *r)
{
	uint64_t a = r->s[0], b = r->s[1];

	r->s[0] = b;
	a ^= a << 23;
	r->s[1] = a ^ b ^ a >> 18 ^ b >> 5;
	return r->s[1] + b;
}

/* 0 .. @n - 1 */
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
	return (rng_u64(r) >> 32) * n >> 32;
}

/* @lo .. @hi */
static inline uint32_t rng_range(struct rng *r, uint32_t lo, uint32_t hi)
{
	return lo + rng_below(r, hi - lo + 1);
}

/* True @permille times of a thousand. */
static inline bool rng_chance(struct rng *r, uint32_t permille)
{
	return rng_below(r, 1000) < permille;
}

#endif /* SAINA_TEST_RNG_H */
