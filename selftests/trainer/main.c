// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina-train: the options.
 */
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "train.h"

const char *argp_program_version = "saina-train " SAINA_VERSION;

enum mode { MODE_WORKER, MODE_DESCRIBE };

struct args {
	struct train_opts o;
	enum mode mode;
};

enum {
	OPT_DESCRIBE = 1000,
	OPT_DATA,
	OPT_SEED,
	OPT_HIDDEN,
	OPT_WORKERS,
	OPT_WORKER,
	OPT_ROUNDS,
	OPT_BATCH,
	OPT_RATE,
	OPT_MOMENTUM,
	OPT_ADAM,
	OPT_BASE,
	OPT_DELAY,
	OPT_STALLS,
	OPT_FINISH,
	OPT_EVAL,
	OPT_OUT,
	OPT_RUN,
	OPT_PROGRESS,
	OPT_AGGREGATOR,
	OPT_JOB,
	OPT_TOKEN, OPT_TOKEN_FILE,
	OPT_LINGER,
	OPT_POLICY,
};

static const struct argp_option options[] = {
	{NULL, 0, NULL, 0, "What to do (default: be a worker of a job)", 1},
	{"describe", OPT_DESCRIBE, NULL, 0, "Print the size of the model and of the data", 1},
	{NULL, 0, NULL, 0, "Model and data", 2},
	{"data", OPT_DATA, "FILE", 0, "Examples that examples.py has made of digits.csv.gz or MNIST's files", 2},
	{"seed", OPT_SEED, "N", 0, "Seed of the model, the data's order and the delays (default 1)", 2},
	{"hidden", OPT_HIDDEN, "N,N,..", 0, "Units of the hidden layers (default 512,512)", 2},
	{"batch", OPT_BATCH, "N", 0, "Examples a worker takes in a round (default 24)", 2},
	{"rate", OPT_RATE, "X", 0, "Learning rate (default 0.1)", 2},
	{"momentum", OPT_MOMENTUM, "X", 0, "Momentum, 0 to 0.9999 (default 0)", 2},
	{"adam", OPT_ADAM, NULL, 0, "Adam instead of gradient descent with momentum", 2},
	{NULL, 0, NULL, 0, "The run", 3},
	{"workers", OPT_WORKERS, "N", 0, "Workers of the job (default 8)", 3},
	{"rounds", OPT_ROUNDS, "N", 0, "All-reduces to do (default 200)", 3},
	{"base", OPT_BASE, "MS", 0, "Time a gradient takes, computing and sleeping (default 100)",
	 3},
	{"delay", OPT_DELAY, "P", 0,
	 "Probability that a worker is delayed in a round, by U(0.5, 2) times base (default 0.15)",
	 3},
	{"stalls", OPT_STALLS, "KIND", 0,
	 "Which gradients are delayed: random (the default), as --delay says; exponential: all, by a time "
	 "of mean base; slow: those of worker 0, by three times base; tail: all, by a heavy-tailed "
	 "time; periods: mostly those in bad periods, of which each worker has its own", 3},
	{"finish", OPT_FINISH, NULL, 0,
	 "Finish each gradient, as a backward pass in PyTorch does, also if its round is over", 3},
	{"eval", OPT_EVAL, "N", 0, "Test the model every N rounds (default 4)", 3},
	{"out", OPT_OUT, "DIR", 0, "Record the run in this folder, for train_report.py", 3},
	{"run", OPT_RUN, "NAME", 0, "Name of the run in progress lines (default: run)", 3},
	{"progress", OPT_PROGRESS, "MS", 0,
	 "Time between progress lines of worker 0, 0 for none (default 1000)", 3},
	{NULL, 0, NULL, 0, "Worker", 4},
	{"aggregator", OPT_AGGREGATOR, "ADDRESS", 0, "Address of the aggregator", 4},
	{"job", OPT_JOB, "ID", 0, "Job, 0 to 255 (default 0)", 4},
	{"worker", OPT_WORKER, "ID", 0, "Which worker this is, from 0", 4},
	{"token", OPT_TOKEN, "WORD", 0, "The job's token (default: $SAINA_TOKEN, or the first line of the file $SAINA_TOKEN_FILE)", 4},
	{"token-file", OPT_TOKEN_FILE, "FILE", 0, "File whose first line is the token", 4},
	{"linger", OPT_LINGER, "S", 0,
	 "Seconds to wait at the end for workers that lag (default 30)", 4},
	{"policy", OPT_POLICY, "POLICY", 0, "Policy that the job has (default bsp)", 4},
	{}};

static enum train_stalls stalls(const struct argp_state *st, const char *text)
{
	static const char *const kinds[STALLS_KINDS] = {"random", "exponential", "slow", "tail", "periods"};
	int i = 0;

	while (i < STALLS_KINDS && strcmp(text, kinds[i]))
		i++;
	if (i == STALLS_KINDS)
		argp_error(st, "--stalls: '%s' is none of random, exponential, slow, tail, periods", text);
	return i;
}

static double number(const struct argp_state *st, const char *what, const char *text, double from,
		     double to, bool whole)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= from && v <= to) || (whole && v != (double)(long long)v))
		argp_error(st, "--%s: '%s' is not %s from %g to %g", what, text,
			   whole ? "a whole number" : "a number", from, to);
	return v;
}

static void hidden(const struct argp_state *st, struct train_opts *o, const char *text)
{
	char copy[100], *word, *save;

	o->hiddens = 0;
	snprintf(copy, sizeof(copy), "%s", text);
	for (word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (o->hiddens == MLP_LAYERS_MAX - 1)
			argp_error(st, "--hidden: at most %d layers", MLP_LAYERS_MAX - 1);
		o->hidden[o->hiddens++] = number(st, "hidden", word, 1, 65536, true);
	}
}

static error_t parse(int key, char *arg, struct argp_state *st)
{
	struct args *a = st->input;
	struct train_opts *o = &a->o;

	switch (key) {
	case OPT_DESCRIBE:
		a->mode = MODE_DESCRIBE;
		break;
	case OPT_DATA:
		o->data = arg;
		break;
	case OPT_SEED:
		o->seed = number(st, "seed", arg, 0, 1e15, true);
		break;
	case OPT_HIDDEN:
		hidden(st, o, arg);
		break;
	case OPT_BATCH:
		o->batch = number(st, "batch", arg, 1, 4096, true);
		break;
	case OPT_RATE:
		o->rate = number(st, "rate", arg, 0, 100, false);
		break;
	case OPT_MOMENTUM:
		o->momentum = number(st, "momentum", arg, 0, 0.9999, false);
		break;
	case OPT_ADAM:
		o->adam = true;
		break;
	case OPT_WORKERS:
		o->workers = number(st, "workers", arg, 1, TRAIN_WORKERS_MAX, true);
		break;
	case OPT_ROUNDS:
		o->rounds = number(st, "rounds", arg, 1, 1e6, true);
		break;
	case OPT_BASE:
		o->base_ms = number(st, "base", arg, 0, 60000, false);
		break;
	case OPT_DELAY:
		o->delay_p = number(st, "delay", arg, 0, 1, false);
		break;
	case OPT_EVAL:
		o->eval = number(st, "eval", arg, 1, 1e6, true);
		break;
	case OPT_OUT:
		o->out = arg;
		break;
	case OPT_RUN:
		o->run = arg;
		break;
	case OPT_PROGRESS:
		o->progress_ms = number(st, "progress", arg, 0, 1e6, true);
		break;
	case OPT_AGGREGATOR:
		o->aggregator = arg;
		break;
	case OPT_JOB:
		o->job = number(st, "job", arg, 0, 255, true);
		break;
	case OPT_WORKER:
		o->worker = number(st, "worker", arg, 0, TRAIN_WORKERS_MAX - 1, true);
		break;
	case OPT_TOKEN:
		o->token = arg;
		break;
	case OPT_TOKEN_FILE:
		o->token_file = arg;
		break;
	case OPT_LINGER:
		o->linger_s = number(st, "linger", arg, 0, 3600, true);
		break;
	case OPT_POLICY:
		o->policy = arg;
		break;
	case OPT_STALLS:
		o->stalls = stalls(st, arg);
		break;
	case OPT_FINISH:
		o->finish = true;
		break;
	case ARGP_KEY_ARG:
		argp_error(st, "unexpected argument '%s'", arg);
		break;
	case ARGP_KEY_END:
		if (!o->data)
			argp_error(st, "--data is missing: examples.py makes it of the file that tools/get-digits fetches");
		if (a->mode == MODE_WORKER && !o->aggregator)
			argp_error(st, "--aggregator is missing: give its address");
		if (a->mode == MODE_WORKER && train_has_steps(o->policy) &&
		    (o->momentum > 0 || o->adam))
			argp_error(st, "--policy: %s cannot be combined with --momentum or --adam", o->policy);
		if (a->mode == MODE_WORKER && o->worker >= o->workers)
			argp_error(st, "--worker must be from 0 to %d: there are %d workers (--workers)", o->workers - 1,
				   o->workers);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static int describe(const struct train_opts *o)
{
	struct trainer t;
	char error[300];

	if (trainer_init(&t, o, error, sizeof(error))) {
		fprintf(stderr, "saina-train: %s\n", error);
		return 1;
	}
	printf("parameters=%zu train=%d test=%d\n", t.mlp.params, t.train.n, t.test.n);
	trainer_exit(&t);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		options,
		parse,
		NULL,
		"Trains a perceptron on labelled pictures, data-parallel over the workers of a "
		"SAINA job.",
		NULL,
		NULL,
		NULL,
	};
	struct args a = {
		.o =
			{
				.seed = 1,
				.hidden = {512, 512},
				.hiddens = 2,
				.workers = 8,
				.rounds = 200,
				.batch = 24,
				.rate = 0.1,
				.base_ms = 100,
				.delay_p = 0.15,
				.eval = 4,
				.run = "run",
				.progress_ms = 1000,
				.linger_s = 30,
				.policy = "bsp",
			},
	};

	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	setvbuf(stdout, NULL, _IOLBF, 0);
	return a.mode == MODE_DESCRIBE ? describe(&a.o) : train_worker(&a.o);
}
