/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What trace_test and ps_test share: options, the harness, processes, and how to replay a failure. */
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

/* Numbers of a test's own in trace_total.n; the first one: the steps that --steps counts. */
#define TRACE_NUMBERS	40
#define TRACE_STEPS	0

/* What a process, or all of them, have counted. */
struct trace_total {
	bool ok, no_linear;		/* @no_linear: the kernel does not cut frames at will */
	struct backend_requests requests;
	uint64_t packets, counter[SAINA_C_N], n[TRACE_NUMBERS];
};

/* The present episode. */
struct trace {
	struct harness harness;
	struct trace_total *total;	/* of this process; an episode adds its counters and numbers */
	uint64_t seed, at;		/* @at: packet in it */
	char what[256];			/* that packet, in words */
};

extern struct trace_opts opt;
extern struct trace trace;

/* @kinds: names that --policy takes, @n entries, NULL where there is none; skips the test if not root. */
void trace_parse(int argc, char **argv, const char *doc, const char *const *kinds, unsigned int n);
/*
 * Runs an episode of each seed until all packets, or steps, have been run: in some processes, each
 * with a program of its own, as much of the time is waiting for RCU's grace periods.
 */
struct trace_total trace_run(bool (*episode)(uint64_t seed, uint64_t packets));
/* Says what failed and how to replay it; returns false. */
bool trace_fail(const char *where, const char *why);
/* The points of every test: the episodes of trace_run() were good, and saina.ko accepts nearly all requests. */
void trace_check(const struct trace_total *sum, const char *name, const char *what);

static inline unsigned long long u(uint64_t v)
{
	return v;
}

#endif /* SAINA_TEST_TRACE_H */
