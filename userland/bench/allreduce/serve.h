/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the contenders of `make bench' have in common: the driver (tools/bench)
 * tells each process over a unix socket what to reduce and when, so that
 * contenders can take turns while those that wait sleep in read().
 *
 *	prepare ALGORITHM BYTES	-> ok
 *	verify ROUNDS		-> ok START END END .. SUMS	each sum compared with the exact one
 *	time ROUNDS		-> ok START END END ..	back to back, nothing but all-reduces
 *	counts			-> ok SENT RESENT	messages with parts of tensors, since the start
 *	rest			-> ok			memory is given back
 *
 * START and END are nanoseconds of CLOCK_MONOTONIC, one END for each round.  SUMS
 * is how many elements were compared and equal.  The
 * answer to a command that failed is "error SENTENCE".
 */
#ifndef SERVE_H
#define SERVE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum op { OP_SUM, OP_TIMED };

/**
 * struct contender - a library that can all-reduce
 * @prepare: get ready for @n elements of @buf by @algorithm; not timed
 * @reduce: all-reduce, in place.  OP_TIMED may divide the sum by the number of
 *	ranks, if the library does that itself
 * @rest: forget what prepare made
 * @hello: said to the driver beside the rank, "" for nothing
 * @counts: messages sent for the first time, and again; NULL: nobody knows
 *
 * The functions return NULL, or a sentence that says what is wrong.
 */
struct contender {
	const char *(*prepare)(const char *algorithm, float *buf, size_t n);
	const char *(*reduce)(float *buf, size_t n, enum op op);
	void (*rest)(void);
	const char *hello;
	void (*counts)(uint64_t count[2]);
};

/* Until the driver hangs up.  Returns the exit status. */
int serve(const struct contender *c, const char *socket_path, int rank, int ranks);

#ifdef __cplusplus
}
#endif

#endif /* SERVE_H */
