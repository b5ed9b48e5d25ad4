/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Watches a run: tests copies of the model and prints progress lines, in a thread
 * of low priority, so that neither delays the worker (until 32 copies wait).
 */
#ifndef EXAMPLES_TRAIN_WATCH_H
#define EXAMPLES_TRAIN_WATCH_H

#include "train.h"

struct train_watch;

/* Starts the thread; its time begins.  NULL (and a line on stderr) if it cannot. */
struct train_watch *train_watch_start(const struct trainer *t);

/**
 * train_watch_round() - a round has been applied
 * @loss: of the worker's own minibatch, negative if it computed none
 * @k: of the round
 * @late: share of late segments so far
 * @test: copy the model and test it
 */
void train_watch_round(struct train_watch *w, uint32_t round, double loss, unsigned int k,
		       double late, bool test);

/* Tests the copies that wait, prints the last line and frees.  0 or -EIO (and a line on stderr). */
int train_watch_stop(struct train_watch *w);

/* Creates DIR/NAME with the first line @head (none if NULL); NULL (and a line on
 * stderr) if it cannot. */
FILE *train_create(const char *dir, const char *name, const char *head);

/* Writes run.json: what the run is.  0 or -EIO (and a line on stderr). */
int train_record(const struct trainer *t, uint32_t segments, uint32_t payload, bool simulated);

#endif /* EXAMPLES_TRAIN_WATCH_H */
