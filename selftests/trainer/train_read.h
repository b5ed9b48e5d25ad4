/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads what a run left in its folder (train.h lists it).
 */
#ifndef EXAMPLES_TRAIN_READ_H
#define EXAMPLES_TRAIN_READ_H

#include <jansson.h>

#include "train.h"

/**
 * struct train_round - of all workers together
 * @s: when the first worker, in steps worker 0, had its result, seconds from the beginning
 * @accuracy: of the model after it, negative if it was not tested
 * @flips, @observed: SFCD's, 0 if it looked at no signs
 */
struct train_round {
	double s;
	double loss; /* mean of the workers that computed one */
	int losses;
	double accuracy;
	unsigned int k, count_min, count_max;
	uint64_t late_segments;
	uint64_t flips, observed;
};

/**
 * struct train_run - a run
 * @info: run.json
 * @steps: it has steps instead of rounds
 * @late: share of the segments that workers were late for
 * @resent: packets sent again, all workers
 * @target_s, @target_round: when the accuracy was first reached, negative if never
 * @identical: models compared byte for byte: 1 the same, 0 not, -1 there are none
 * @crc32: of the model
 */
struct train_run {
	json_t *info;
	const char *name, *policy;
	bool steps;
	int workers;
	uint32_t rounds, segments;
	size_t params;
	struct train_round *round;
	double seconds; /* until the last round's result */
	double final;
	double late;
	uint64_t resent, pulled, saturated;
	uint64_t computed, abandoned, delayed;
	double reduce_ms; /* median of an all-reduce that was in time */
	double target_s;
	int target_round;
	int identical;
	char crc32[16];
};

/* 0, or 1 and a line on stderr.  Free with train_run_free() in any case. */
int train_run_read(struct train_run *run, const char *dir, double target);
void train_run_free(struct train_run *run);

#endif /* EXAMPLES_TRAIN_READ_H */
