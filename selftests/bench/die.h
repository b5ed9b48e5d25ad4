/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SAINA_BENCH_DIE_H
#define SAINA_BENCH_DIE_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Prints a sentence on stderr and exits with status 1. */
static inline void __attribute__((noreturn, format(printf, 1, 2))) bench_die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

#endif /* SAINA_BENCH_DIE_H */
