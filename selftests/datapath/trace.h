/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What trace_test and ps_test share: options, the harness, and how to replay a failure. */
#ifndef SAINA_TEST_TRACE_H
#define SAINA_TEST_TRACE_H

#include "module/backend.h"
#include "harness.h"

/**
 * struct trace_opts - options of the command line
 * @kind: of --policy, an index of trace_parse()'s kinds; 0: all
 * @steps: until workers have made so many; 0: @packets count
 */
struct trace_opts {
	uint64_t seed, packets, steps, check_every, episode;
	unsigned int kind;
	bool verbose, counters, tc, module;
};

/* The present episode. */
struct trace {
	struct harness harness;
	uint64_t seed, at;		/* @at: packet in it */
	char what[256];			/* that packet, in words */
};

extern struct trace_opts opt;
extern struct trace trace;

/* @kinds: names that --policy takes, @n entries, NULL where there is none; skips the test if not root. */
void trace_parse(int argc, char **argv, const char *doc, const char *const *kinds, unsigned int n);
/* Opens and closes the harness as the options say. */
void trace_open(void);
void trace_close(void);
/* Says what failed and how to replay it; returns false. */
bool trace_fail(const char *where, const char *why);
/* With --module: does the module accept nearly all requests? */
void trace_check_requests(const struct backend_requests *r);

static inline unsigned long long u(uint64_t v)
{
	return v;
}

#endif /* SAINA_TEST_TRACE_H */
