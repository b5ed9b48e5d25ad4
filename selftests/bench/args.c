// SPDX-License-Identifier: GPL-2.0-or-later
#include <argp.h>
#include <stdlib.h>
#include "args.h"

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct bench_args *args = state->input;
	char *end;

	switch (key) {
	case 'j':
		args->json = true;
		return 0;
	case 'l':
		args->lookup = true;
		return 0;
	case 'o':
		args->out = arg;
		return 0;
	case 'n':
		args->cycles = strtoul(arg, &end, 10);
		if (*end || !args->cycles || args->cycles > 10000)
			argp_error(state, "--cycles must be a number from 1 to 10000, not '%s'", arg);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'", arg);
	}
	return ARGP_ERR_UNKNOWN;
}

struct bench_args bench_args_parse(int argc, char **argv, const char *doc)
{
	static const struct argp_option options[] = {
		{ "json", 'j', NULL, 0, "print JSON", 0 },
		{ "lookup", 'l', NULL, 0, "bench-datapath only: jobs in a map compared with jobs in saina.ko, accumulate branch only", 0 },
		{ "output", 'o', "FILE", 0, "also write the JSON to FILE", 0 },
		{ "cycles", 'n', "N", 0, "measure everything N times (21)", 0 },
		{}
	};
	const struct argp argp = { options, parse_opt, NULL, doc, NULL, NULL, NULL };
	struct bench_args args = { .cycles = 21 };

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	return args;
}
