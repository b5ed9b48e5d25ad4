/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The common part of the contenders of `make bench'.  The driver (tools/bench, selftests/bench) sends
 * commands to each process over a unix socket, so that contenders can take turns; those
 * that wait sleep in read().
 *
 *	prepare ALGORITHM BYTES	-> ok
 *	verify ROUNDS		-> ok START END END .. SUMS	each sum compared with the exact one
 *	time ROUNDS		-> ok START END END ..	back to back, nothing but all-reduces
 *	counts			-> ok SENT RESENT	messages with parts of tensors, since the start
 *	rest			-> ok			memory is freed
 *
 * START and END are nanoseconds of CLOCK_MONOTONIC, one END for each round.  SUMS is the
 * number of elements that were compared and equal.  A command that fails is answered with
 * "error SENTENCE".
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
 * struct contender - an all-reduce library
 * @prepare: prepares for @n elements of @buf by @algorithm; not timed
 * @reduce: all-reduce, in place.  OP_TIMED: the library may divide the sum by the number of
 *	ranks
 * @rest: frees what @prepare allocated
 * @hello: sent to the driver behind the rank, "": nothing
 * @counts: messages sent, and sent again; NULL: unknown
 *
 * @prepare and @reduce return NULL or an error message.
 */
struct contender {
	const char *(*prepare)(const char *algorithm, float *buf, size_t n);
	const char *(*reduce)(float *buf, size_t n, enum op op);
	void (*rest)(void);
	const char *hello;
	void (*counts)(uint64_t count[2]);
};

/* Serves the driver until it closes the connection.  Returns the exit status. */
int serve(const struct contender *c, const char *socket_path, int rank, int ranks);

#ifdef __cplusplus
}
#endif

#endif /* SERVE_H */
