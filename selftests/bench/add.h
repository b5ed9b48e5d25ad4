/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The aggregator's addition in userspace. */
#ifndef SAINA_BENCH_ADD_H
#define SAINA_BENCH_ADD_H

#include <stdbool.h>

/* Adds @elems elements to one of @slots slots, @repeat times; ns per addition. */
double add_ns(unsigned int elems, unsigned int slots, unsigned int repeat);
bool add_has_avx2(void);

#endif /* SAINA_BENCH_ADD_H */
