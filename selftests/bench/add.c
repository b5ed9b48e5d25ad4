// SPDX-License-Identifier: GPL-2.0-or-later
/* The aggregator's addition in userspace: the bound that the memory system sets. */
#include <stdlib.h>
#include <string.h>
#include "monotonic.h"
#include "add.h"
#include "dp/dp.h"

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx2"))) static void add_avx2(int *to, const int *from, unsigned int n)
{
	for (unsigned int i = 0; i < n; i += 8) {
		__m256i a = _mm256_loadu_si256((const __m256i *)(to + i));
		__m256i b = _mm256_loadu_si256((const __m256i *)(from + i));

		_mm256_storeu_si256((__m256i *)(to + i), _mm256_add_epi32(a, b));
	}
}

bool add_has_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}
#else
static void add_avx2(int *to, const int *from, unsigned int n)
{
}

bool add_has_avx2(void)
{
	return false;
}
#endif

static void add_plain(int *to, const int *from, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		to[i] = (int)((unsigned int)to[i] + (unsigned int)from[i]);
}

double add_ns(unsigned int elems, unsigned int slots, unsigned int repeat)
{
	/* a head of 16 elements, as in a slot; a payload begins 90 bytes into the frame */
	size_t stride = elems + 16;
	int *to = aligned_alloc(64, (slots * stride * 4 + 63) & ~63ul);
	unsigned char *frame = aligned_alloc(64, 90 + 4 * SAINA_ELEMS_MAX + 64 - 26);
	bool avx2 = add_has_avx2();
	uint64_t ns;

	if (!to || !frame)
		abort();
	memset(to, 1, slots * stride * 4);
	memset(frame, 2, 90 + 4 * elems);
	ns = monotonic_ns();
	for (unsigned int i = 0; i < repeat; i++) {
		int *slot = to + (i % slots) * stride + 16;

		if (avx2)
			add_avx2(slot, (const int *)(const void *)(frame + 90), elems);
		else
			add_plain(slot, (const int *)(const void *)(frame + 90), elems);
		/* keeps the compiler from dropping the sums */
		__asm__ volatile("" : : "r"(slot) : "memory");
	}
	ns = monotonic_ns() - ns;
	free(to);
	free(frame);
	return (double)ns / repeat;
}
