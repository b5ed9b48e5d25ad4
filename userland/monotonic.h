/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CLOCK_MONOTONIC in ns, us and ms. */
#ifndef MONOTONIC_H
#define MONOTONIC_H

#include <stdint.h>
#include <time.h>

#define NSEC_PER_MSEC 1000000ull
#define NSEC_PER_SEC  1000000000ull

static inline uint64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static inline uint64_t monotonic_us(void)
{
	return monotonic_ns() / 1000;
}

static inline uint64_t monotonic_ms(void)
{
	return monotonic_ns() / 1000000;
}

#endif /* MONOTONIC_H */
