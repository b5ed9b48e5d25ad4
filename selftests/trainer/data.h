/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Labelled pictures: a file that examples.py has made. */
#ifndef EXAMPLES_DATA_H
#define EXAMPLES_DATA_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct data - examples
 * @n: how many
 * @dim: floats of an example, scaled to 0..1
 * @classes: labels are below this
 */
struct data {
	int n;
	int dim;
	int classes;
	float *x;
	uint8_t *y;
};

/**
 * data_load() - read training and test examples
 * @path: a file as examples.py describes it
 * @seed: splits a file that does not say which examples are for training: 5 of 9 are
 * @error: out, a sentence on failure, in @size bytes
 *
 * Returns 0 or a negative errno.  Free with data_free() on success.
 */
int data_load(const char *path, uint64_t seed, struct data *train, struct data *test, char *error,
	      size_t size);
void data_free(struct data *d);

/**
 * data_batch() - the minibatch of a worker in a round
 * @x, @y: out, @size examples
 *
 * Each epoch is a new random order; its examples go to rounds and, within a
 * round, to workers in turn.  The result depends on the arguments alone; @order
 * only caches the order of an epoch (@d->n integers after one that is 0 at first).
 */
void data_batch(const struct data *d, uint64_t seed, uint32_t round, int worker, int workers,
		int size, uint32_t *order, float *x, uint8_t *y);

#endif /* EXAMPLES_DATA_H */
