// SPDX-License-Identifier: GPL-2.0-or-later
/* Options of saina-allreduce. */
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "allreduce.h"

enum {
	OPT_DELAY = 256, OPT_STRAGGLE, OPT_CANCEL, OPT_BUCKETS, OPT_CONTENTS, OPT_BSP, OPT_RESTARTS,
	OPT_UNVERIFIED, OPT_SKIP, OPT_JOIN_TIMEOUT, OPT_START_TIMEOUT, OPT_TIMEOUT, OPT_RTO_MIN,
	OPT_WINDOW, OPT_NAME, OPT_NO_VERIFY, OPT_TOKEN_FILE, OPT_STEPS, OPT_VALUES,
	OPT_STOP, OPT_ITERS, OPT_WARMUP, OPT_THINK_FROM,
};

static const struct argp_option options[] = {
	{ "aggregator", 'a', "HOST[:PORT]", 0, "the aggregator", 0 },
	{ "job", 'j', "NAME|N", 0, "job, by name or number (0)", 0 },
	{ "worker", 'w', "N", 0, "worker, 0..63 (any)", 0 },
	{ "token", 't', "TOKEN", 0, "token of the job ($SAINA_TOKEN, or the first line of the file $SAINA_TOKEN_FILE)", 0 },
	{ "token-file", OPT_TOKEN_FILE, "FILE", 0, "file whose first line is the token", 0 },
	{ "name", OPT_NAME, "TEXT", 0, "name of this worker, for display", 0 },
	{ "interface", 'i', "IF", 0, "network interface to use (that of the route)", 0 },
	{ "elements", 'n', "N", 0, "elements of the tensor, as 4096 or 25M (as the job has)", 0 },
	{ "type", 'T', "int32|float32", 0, "type of the tensor (int32 in jobs of int32, else float32)", 0 },
	{ "rounds", 'r', "N", 0, "go on until round N-1 of the job is done; 0: until SIGTERM or SIGINT (10)", 0 },
	{ "minbytes", 'b', "SIZE", 0, "a sweep: bytes of the smallest tensor, as 8, 64K or 4M (that of -e)", 0 },
	{ "maxbytes", 'e', "SIZE", 0, "a sweep: bytes of the largest tensor (as the job has)", 0 },
	{ "stepfactor", 'f', "X", 0, "a sweep: factor from one size to the next (2)", 0 },
	{ "iters", OPT_ITERS, "N", 0, "rounds of each size of a sweep (20)", 0 },
	{ "warmup", OPT_WARMUP, "N", 0, "rounds of each size of a sweep before those that count (5)", 0 },
	{ "steps", OPT_STEPS, 0, 0, "push as many updates as --rounds says, each with its own contents, and compare the model at the end with the sum of all pushes; for any policy, summary as JSON", 0 },
	{ "buckets", OPT_BUCKETS, "N", 0, "all-reduces a round is split into (1)", 0 },
	{ "seed", 's', "N", 0, "seed of the contents, same for all workers (1)", 0 },
	{ "signs", OPT_CONTENTS, "KIND", 0, "signs: random (default); steady: the same in each round; flip: inverted in each round; wild: floats of all magnitudes, for jobs of float32 and bfloat16", 0 },
	{ "values", OPT_VALUES, "KIND", 0, "float32 for jobs of int32 and int16, compared with float64 sums; spike: sometimes large values; zeros: before other values; nan: and infinities; large: 1000 and more; jump: magnitudes from 2^-30 to 2^30; whole: small whole numbers, whose sums must be exact", 0 },
	{ "think-us", OPT_DELAY, "N", 0, "time to think before each round (0)", 0 },
	{ "delay-us", OPT_DELAY, "N", OPTION_ALIAS, 0, 0 },
	{ "think-from", OPT_THINK_FROM, "FILE", 0, "file with the time to think before each round, in microseconds; after the last it is repeated", 0 },
	{ "straggle", OPT_STRAGGLE, "P", 0, "with this probability think longer, by U(0.5, 2) times --think-us (0)", 0 },
	{ "cancel", OPT_CANCEL, 0, 0, "stop thinking when the round is decided", 0 },
	{ "bsp-check", OPT_BSP, 0, 0, "every segment must have all of the job's workers", 0 },
	{ "restarts", OPT_RESTARTS, 0, 0, "other workers may have been restarted: also accept sums that a fresh start of some explains; without it these are unverified", 0 },
	{ "no-verify", OPT_NO_VERIFY, 0, 0, "do not check sums (for timing)", 0 },
	{ "unverified", OPT_UNVERIFIED, "N", 0, "segments that may be unverifiable (0)", 0 },
	{ "skip-stale", OPT_SKIP, 0, 0, "when the results of a round are gone, go on at the present round", 0 },
	{ "log", 'l', "FILE", 0, "write a line of JSON per round to FILE; -: to standard output", 0 },
	{ "json", 'J', 0, 0, "summary as JSON", 0 },
	{ "window", OPT_WINDOW, "N", 0, "messages in flight (adaptive)", 0 },
	{ "rto-min-us", OPT_RTO_MIN, "N", 0, "shortest silence before the aggregator is asked (1000)", 0 },
	{ "join-timeout-ms", OPT_JOIN_TIMEOUT, "N", 0, "how long to wait for each answer of the agent while joining (5000, -1 for ever)", 0 },
	{ "start-timeout-ms", OPT_START_TIMEOUT, "N", 0, "how long to wait for the other workers (for ever)", 0 },
	{ "stop-ms", OPT_STOP, "N", 0, "after a signal, give up the round when no result has come for this long (2000)", 0 },
	{ "timeout-ms", OPT_TIMEOUT, "N", 0, "fail after this silence of the aggregator (60000, -1: never)", 0 },
	{ 0 }
};

static double number(struct argp_state *st, const char *name, const char *arg, double lo,
		     double hi, bool whole)
{
	char *end;
	double x = strtod(arg, &end);

	if (end == arg || *end || !(x >= lo && x <= hi) || (whole && x != (double)(int64_t)x))
		argp_error(st, "--%s %s: must be a%s number from %g to %g", name, arg,
			   whole ? " whole" : "", lo, hi);
	return x;
}

/* A whole number, maybe with K, M or G behind it: powers of @thousand. */
static uint64_t quantity(struct argp_state *st, const char *name, const char *arg, int thousand,
			 double lo, double hi)
{
	static const char units[] = "KMG";
	char *end;
	double x = strtod(arg, &end);
	const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;

	for (const char *u = unit; u && u >= units; u--)
		x *= thousand;
	if (end == arg || (*end && (!unit || end[1])) || !(x >= lo && x <= hi) ||
	    x != (double)(int64_t)x)
		argp_error(st, "--%s %s: must be a whole number from %g to %g, as 4096 or 64K (K, M and G are powers of %d)",
			   name, arg, lo, hi, thousand);
	return (uint64_t)x;
}

static void job(struct argp_state *st, struct saina_opts *o, const char *arg)
{
	o->job_name = arg[strspn(arg, "0123456789")] ? arg : NULL;
	o->job = o->job_name ? 0 : number(st, "job", arg, 0, 255, true);
}

static int word(struct argp_state *st, const char *name, const char *arg, const char *const *words)
{
	char known[80] = "";

	for (int i = 0; words[i]; i++)
		if (!strcmp(arg, words[i]))
			return i;
	for (int i = 0; words[i]; i++)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), " %s", words[i]);
	argp_error(st, "--%s %s: must be one of%s", name, arg, known);
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *st)
{
	static const char *const types[] = { "int32", "float32", NULL };
	static const char *const contents[] = { "random", "steady", "flip", "wild", NULL };
	static const char *const values[] = { "spike", "zeros", "nan", "large", "jump", "whole", NULL };
	struct args *a = st->input;

	switch (key) {
	case 'a': a->o.aggregator = arg; break;
	case 'j': job(st, &a->o, arg); break;
	case 'w':
		a->o.worker = number(st, "worker", arg, -1, 63, true);
		a->o.workers = 0;	/* that a launcher gave with its own number */
		break;
	case 't': a->o.token = arg; break;
	case OPT_TOKEN_FILE: a->o.token_file = arg; break;
	case OPT_NAME: a->o.name = arg; break;
	case 'i': a->o.interface = arg; break;
	case 'n': a->elements = quantity(st, "elements", arg, 1000, 1, 1e10); break;
	case 'T': a->type = word(st, "type", arg, types) ? SAINA_FLOAT32 : SAINA_INT32; break;
	case 'b': a->sweep.begin = quantity(st, "minbytes", arg, 1024, sizeof(float), 1e12); break;
	case 'e': a->sweep.end = quantity(st, "maxbytes", arg, 1024, sizeof(float), 1e12); break;
	case 'f': a->sweep.factor = number(st, "stepfactor", arg, 1.01, 1e6, false); break;
	case OPT_ITERS: a->sweep.iters = number(st, "iters", arg, 1, 1e9, true); break;
	case OPT_WARMUP: a->sweep.warmup = number(st, "warmup", arg, 0, 1e9, true); break;
	case 'r': a->rounds = number(st, "rounds", arg, 0, 4e9, true); break;
	case OPT_BUCKETS: a->buckets = number(st, "buckets", arg, 1, 1000, true); break;
	case 's': a->seed = number(st, "seed", arg, 0, 4294967295.0, true); break;
	case OPT_CONTENTS: a->contents = word(st, "signs", arg, contents); break;
	case OPT_VALUES:
		a->contents = CONTENTS_SPIKE + word(st, "values", arg, values);
		a->type = SAINA_FLOAT32;
		break;
	case OPT_DELAY: a->delay_us = number(st, "think-us", arg, 0, 1e9, true); break;
	case OPT_STRAGGLE: a->straggle = number(st, "straggle", arg, 0, 1, false); break;
	case OPT_THINK_FROM: a->think_from = arg; break;
	case OPT_STEPS: a->steps = true; break;
	case OPT_CANCEL: a->cancel = true; break;
	case OPT_BSP: a->bsp = true; break;
	case OPT_RESTARTS: a->restarts = true; break;
	case OPT_NO_VERIFY: a->verify = false; break;
	case OPT_UNVERIFIED: a->unverified = number(st, "unverified", arg, 0, 1e15, true); break;
	case OPT_SKIP: a->skip = true; break;
	case 'l': a->log = arg; break;
	case 'J': a->json = true; break;
	case OPT_WINDOW: a->o.window = number(st, "window", arg, 0, 65536, true); break;
	case OPT_RTO_MIN: a->o.rto_min_us = number(st, "rto-min-us", arg, 0, 1e9, true); break;
	case OPT_JOIN_TIMEOUT:
		a->o.join_timeout_ms = number(st, "join-timeout-ms", arg, -1, 1e9, true);
		break;
	case OPT_START_TIMEOUT:
		a->o.start_timeout_ms = number(st, "start-timeout-ms", arg, 0, 1e9, true);
		break;
	case OPT_STOP: a->stop_ms = number(st, "stop-ms", arg, 0, 1e9, true); break;
	case OPT_TIMEOUT: a->o.timeout_ms = number(st, "timeout-ms", arg, -1, 1e9, true); break;
	case ARGP_KEY_ARG:
		argp_error(st, "unexpected argument '%s'", arg);
		break;
	case ARGP_KEY_END:
		if (contents_are_numbers(a->contents) && (a->type != SAINA_FLOAT32 || a->steps))
			argp_error(st, "--values needs --type float32, and cannot be combined with --steps");
		if (a->sweep.begin && !a->sweep.end)
			a->sweep.end = UINT64_MAX;
		if (a->sweep.end && !a->sweep.begin)
			a->sweep.begin = a->sweep.end;
		if (a->sweep.end && (a->sweep.end < a->sweep.begin || a->elements || a->steps))
			argp_error(st, "-b SIZE must not be more than -e SIZE; a sweep (-b, -e) cannot be combined with --elements or --steps");
		if (a->think_from && (a->delay_us || a->straggle > 0))
			argp_error(st, "--think-from cannot be combined with --think-us or --straggle");
		if (!a->o.aggregator)
			argp_error(st, "the aggregator is missing: give --aggregator HOST or set SAINA_AGGREGATOR");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Reduce a tensor of known contents, round after round, and check every sum.\v"
	       "Options that are not given are taken from SAINA_AGGREGATOR, SAINA_JOB and SAINA_RANK, "
	       "or from the environment that torchrun and mpirun set.",
};

void args_parse(struct args *a, int argc, char **argv)
{
	*a = (struct args){
		.o = { .size = sizeof(a->o) },
		.sweep = { .factor = 2, .warmup = 5, .iters = 20 },
		.rounds = 10, .seed = 1, .buckets = 1, .verify = true, .stop_ms = STOP_MS,
	};
	if (saina_opts_env(&a->o)) {
		fprintf(stderr, "saina-allreduce: %s\n", saina_strerror(NULL, -EINVAL));
		exit(EXIT_USAGE);
	}
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, a);
	a->o.elements = a->elements;
}
