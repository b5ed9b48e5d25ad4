/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line of a benchmark. */
#ifndef SAINA_BENCH_ARGS_H
#define SAINA_BENCH_ARGS_H

#include <stdbool.h>

/**
 * struct bench_args
 * @json: JSON on stdout instead of text
 * @lookup: compare jobs in a map and in saina.ko instead
 * @out: also write the JSON to this file; NULL: none
 * @cycles: measurements of each figure, 1 to 10000
 */
struct bench_args {
	bool json;
	bool lookup;
	const char *out;
	unsigned int cycles;
};

/* @doc: first paragraph of --help.  Ends the program if the arguments are wrong. */
struct bench_args bench_args_parse(int argc, char **argv, const char *doc);

#endif /* SAINA_BENCH_ARGS_H */
