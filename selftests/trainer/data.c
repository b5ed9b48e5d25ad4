// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Examples from a file, and minibatches.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "rng.h"

#define CLASSES	     10
#define EXAMPLES_MAX (1 << 21)
#define DIM_MAX	     (256 * 256)

struct head {
	char magic[4];
	uint32_t train, n, dim, top;
};

void data_free(struct data *d)
{
	free(d->x);
	free(d->y);
	memset(d, 0, sizeof(*d));
}

/* Order of n things: a Fisher-Yates shuffle. */
static void shuffle(uint32_t *order, int n, uint64_t seed, enum rng_stream stream, uint64_t which)
{
	for (int i = 0; i < n; i++)
		order[i] = i;
	for (int i = n - 1; i > 0; i--) {
		int j = rng_at(seed, stream, which, i) % (i + 1);
		uint32_t t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
}

/* The examples @order[0] .. @order[n - 1] of @bytes. */
static int data_take(const struct head *h, const uint8_t *bytes, const uint32_t *order, int n, struct data *d)
{
	*d = (struct data){ .n = n, .dim = h->dim, .classes = CLASSES };
	d->x = malloc((size_t)n * d->dim * sizeof(*d->x) + 1);
	d->y = malloc(n + 1);
	if (!d->x || !d->y) {
		data_free(d);
		return -ENOMEM;
	}
	for (int i = 0; i < n; i++) {
		const uint8_t *from = bytes + (size_t)order[i] * (d->dim + 1);

		for (int j = 0; j < d->dim; j++)
			d->x[(size_t)i * d->dim + j] = from[j] / (float)h->top;
		d->y[i] = from[d->dim];
		if (d->y[i] >= CLASSES) {
			data_free(d);
			return -EINVAL;
		}
	}
	return 0;
}

static int data_split(struct head *h, const uint8_t *bytes, uint64_t seed, struct data *train, struct data *test)
{
	uint32_t *order = malloc((h->n + 1) * sizeof(*order));
	int r = -ENOMEM;

	if (!order)
		return r;
	for (uint32_t i = 0; i < h->n; i++)
		order[i] = i;
	if (!h->train) {
		shuffle(order, h->n, seed, RNG_SPLIT, 0);
		h->train = h->n * 5 / 9;
	}
	r = data_take(h, bytes, order, h->train, train);
	if (!r) {
		r = data_take(h, bytes, order + h->train, h->n - h->train, test);
		if (r)
			data_free(train);
	}
	free(order);
	return r;
}

int data_load(const char *path, uint64_t seed, struct data *train, struct data *test, char *error,
	      size_t size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes = NULL;
	struct head h;
	int r = -EINVAL;

	if (!f) {
		r = -errno;
		snprintf(error, size, "cannot read %s: %s", path, strerror(errno));
		return r;
	}
	if (fread(&h, sizeof(h), 1, f) == 1 && !memcmp(h.magic, "EXMP", 4)) {
		h.train = le32toh(h.train);
		h.n = le32toh(h.n);
		h.dim = le32toh(h.dim);
		h.top = le32toh(h.top);
		if (h.n > 1 && h.n <= EXAMPLES_MAX && h.dim && h.dim <= DIM_MAX && h.top && h.train < h.n)
			bytes = malloc((size_t)h.n * (h.dim + 1));
		if (bytes && fread(bytes, h.dim + 1, h.n, f) == h.n)
			r = data_split(&h, bytes, seed, train, test);
	}
	if (r == -ENOMEM)
		snprintf(error, size, "no memory for %u examples", h.n);
	else if (r)
		snprintf(error, size, "%s is no file of examples, or is damaged: selftests/trainer/examples.py makes it", path);
	free(bytes);
	fclose(f);
	return r;
}

void data_batch(const struct data *d, uint64_t seed, uint32_t round, int worker, int workers,
		int size, uint32_t *order, float *x, uint8_t *y)
{
	uint64_t first = ((uint64_t)round * workers + worker) * size;

	for (int i = 0; i < size; i++) {
		uint64_t epoch = (first + i) / d->n;
		uint32_t at;

		if (order[0] != epoch + 1) {
			shuffle(order + 1, d->n, seed, RNG_EPOCH, epoch);
			order[0] = epoch + 1;
		}
		at = order[1 + (first + i) % d->n];
		memcpy(x + (size_t)i * d->dim, d->x + (size_t)at * d->dim, d->dim * sizeof(*x));
		y[i] = d->y[at];
	}
}
