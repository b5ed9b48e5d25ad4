/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a benchmark is told on its command line. */
#ifndef SAINA_BENCH_ARGS_H
#define SAINA_BENCH_ARGS_H

#include <stdbool.h>

/**
 * struct bench_args
 * @json: JSON on stdout instead of text
 * @out: file to write the JSON to, too; or NULL
 * @cycles: how often everything is measured, 1 to 10000
 */
struct bench_args {
	bool json;
	const char *out;
	unsigned int cycles;
};

/* @doc: what --help says first.  Ends the program if the arguments are wrong. */
struct bench_args bench_args_parse(int argc, char **argv, const char *doc);

#endif /* SAINA_BENCH_ARGS_H */
