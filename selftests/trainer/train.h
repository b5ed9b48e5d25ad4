/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * saina-train: data-parallel training with stragglers, by minibatch gradient
 * descent.  main.c has the options, trainer.c what a worker knows and does to
 * its model, train_worker.c the loop on libsaina.  train_sim.py has the same loop for
 * all workers in one process without a network, train_report.py the table.
 */
#ifndef EXAMPLES_TRAIN_H
#define EXAMPLES_TRAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "data.h"
#include "mlp.h"

#define TRAIN_WORKERS_MAX 1024 /* in a tree; one aggregator has 64 */
/* Stalls: see train_delay(). */
enum train_stalls {
	STALLS_RANDOM,
	STALLS_EXPONENTIAL,
	STALLS_SLOW,
	STALLS_TAIL,
	STALLS_PERIODS,
	STALLS_KINDS,
};

#define TRAIN_SLICES	  16 /* times that a worker asks, while it computes, whether its round is over */

/**
 * struct train_opts - from the command line
 * @data, @seed: see data_load()
 * @hidden: units of the hidden layers, @hiddens of them
 * @workers, @worker: of the job; which one this is
 * @rounds: all-reduces to do
 * @batch: examples a worker takes in a round
 * @rate, @momentum: see mlp_step()
 * @adam: Adam instead of @momentum, see mlp_adam()
 * @base_ms: how long a gradient takes, in ms: what is left of it after computing is slept
 * @stalls, @delay_p: who is delayed, see train_delay()
 * @finish: a gradient is finished, also if its round is decided without it
 * @eval: rounds between two tests of the model
 * @out: folder for what is recorded, NULL = nowhere
 * @run: what the progress line calls the run
 * @progress_ms: time between two progress lines, 0 = none
 * @aggregator, @job, @token, @token_file: see saina.h
 * @linger_s: how long to wait at the end for workers that lag
 * @policy: that the job has: a worker needs to know whether it has steps
 */
struct train_opts {
	const char *data;
	uint64_t seed;
	int hidden[MLP_LAYERS_MAX - 1];
	int hiddens;
	int workers, worker;
	uint32_t rounds;
	int batch;
	double rate, momentum;
	bool adam;
	double base_ms;
	double delay_p;
	enum train_stalls stalls;
	bool finish;
	int eval;
	const char *out;
	const char *run;
	int progress_ms;
	const char *aggregator;
	int job;
	const char *token, *token_file;
	int linger_s;
	const char *policy;
};

/**
 * struct trainer - a model and what it learns from
 * @p: parameters: the same at all workers after each round (in steps, at the end)
 * @v: velocity; Adam: the first moment
 * @v2, @steps: of Adam: the second moment, and how many steps were made
 * @g: this worker's gradient
 */
struct trainer {
	const struct train_opts *opts;
	struct mlp mlp;
	struct data train, test;
	struct mlp_work *work;
	uint32_t *order;
	float *bx;
	uint8_t *by;
	float *p, *v, *v2, *g;
	uint32_t steps;
};

/* Reads the data and makes the initial model.  Returns 0 or a negative errno
 * with a sentence in @error. */
int trainer_init(struct trainer *t, const struct train_opts *o, char *error, size_t size);
/* Frees all, also what a trainer_init() that failed left; a second call does nothing. */
void trainer_exit(struct trainer *t);
/* Loss and gradient (in @g) of the minibatch of (@round, @worker). */
double trainer_gradient(struct trainer *t, uint32_t round, int worker, float *g);
/* Applies a mean gradient. */
void trainer_apply(struct trainer *t, const float *mean);
/* Share of the test examples that the model @p gets right. */
double trainer_accuracy(const struct trainer *t, const float *p, struct mlp_work *wk);
/* CRC-32 of the parameters. */
uint32_t trainer_crc(const struct trainer *t);

/*
 * How many times base_ms worker @worker is delayed in round @round.  Pure function of its arguments.
 *  random	mostly 0, with probability delay_p uniform in [0.5, 2)
 *  exponential	of mean 1
 *  slow	worker 0 always by 3
 *  tail	2/11 (P - 1), with P of a Pareto distribution of exponent 1.5
 *  periods	as random, with a probability of 0.6 in bad periods of a worker, of 0.02 in between;
 *		they last 30 rounds on average, and those between them 90
 */
double train_delay(const struct train_opts *o, uint32_t round, int worker);

/* Has this policy, as `saina job' takes it, steps instead of rounds? */
bool train_has_steps(const char *policy);

/* Be a worker of a job.  The exit status, after a line on stderr if not 0. */
int train_worker(const struct train_opts *o);

/*
 * What a run leaves in its folder, for train_report.py:
 *  run.json		what it is
 *  worker-N.csv	TRAIN_CSV_HEAD, a line per round; times are CLOCK_MONOTONIC
 *  accuracy.csv	"round,accuracy", of worker 0
 *  events.json		of the job, as `saina -j monitor' prints them, one a line;
 *			from a simulation, those of type "round"
 *  worker-N.json	figures at the end
 *  worker-N.params	the parameters, float32
 *  done.N		worker N has reached the end
 */
#define TRAIN_CSV_HEAD                                                                             \
	"round,begun_us,decided_us,loss,k,next_k,count_min,count_max,late_segments,behind,resent," \
	"reduce_us"

#endif /* EXAMPLES_TRAIN_H */
