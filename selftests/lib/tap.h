/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test Anything Protocol, the part that these programs need.  The plan comes last, so
 * that a program need not know the number of its points beforehand.  With SAINA_TEST_STOP in the
 * environment a program ends with the first point that fails.
 */
#ifndef SAINA_TAP_H
#define SAINA_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define TAP_SKIP_ALL	4	/* exit status: nothing could be tested here */

/* Weak: one of each in a program, however many of its files include this. */
__attribute__((weak)) int tap_count, tap_failed;

static inline __attribute__((format(printf, 2, 3))) bool tap_ok(bool ok, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %d - ", ok ? "" : "not ", ++tap_count);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	tap_failed += !ok;
	if (!ok && getenv("SAINA_TEST_STOP"))
		exit(1);
	return ok;
}

/* A remark: never counts. */
static inline __attribute__((format(printf, 1, 2))) void tap_note(const char *fmt, ...)
{
	va_list ap;

	printf("# ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

/* Nothing can be tested here at all. */
static inline void __attribute__((noreturn)) tap_skip_all(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	exit(TAP_SKIP_ALL);
}

/* The test cannot go on. */
static inline void __attribute__((noreturn, format(printf, 1, 2))) tap_bail(const char *fmt, ...)
{
	va_list ap;

	printf("Bail out! ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	exit(1);
}

/* The plan; returns what main() returns. */
static inline int tap_done(void)
{
	printf("1..%d\n", tap_count);
	if (tap_failed)
		printf("# %d of %d failed\n", tap_failed, tap_count);
	return tap_failed ? 1 : 0;
}

#endif /* SAINA_TAP_H */
