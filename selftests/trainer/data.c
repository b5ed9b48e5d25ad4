// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Readers of digits.csv.gz and of IDX files, and minibatches.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "data.h"
#include "rng.h"

#define DIGITS_DIM   64
#define DIGITS_TOP   16 /* pixels are 0..16 */
#define CLASSES	     10
#define IDX_IMAGES   0x00000803 /* unsigned bytes, 3 dimensions */
#define IDX_LABELS   0x00000801
#define EXAMPLES_MAX (1 << 20)

struct err {
	char *text;
	size_t size;
};

static int __attribute__((format(printf, 3, 4))) fail(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e->text, e->size, fmt, ap);
	va_end(ap);
	return code;
}

void data_free(struct data *d)
{
	free(d->x);
	free(d->y);
	memset(d, 0, sizeof(*d));
}

static int data_alloc(struct data *d, int n, int dim, struct err *e)
{
	memset(d, 0, sizeof(*d));
	d->n = n;
	d->dim = dim;
	d->classes = CLASSES;
	d->x = malloc((size_t)n * dim * sizeof(*d->x));
	d->y = malloc(n);
	if (d->x && d->y)
		return 0;
	data_free(d);
	return fail(e, -ENOMEM, "no memory for %d examples", n);
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

/* One line of the file, "p,p,...,class"; fractions as in "7.0" are allowed. */
static int csv_line(char *line, float *x, uint8_t *y)
{
	char *at = line, *end;

	for (int i = 0; i <= DIGITS_DIM; i++) {
		double v = strtod(at, &end);

		if (end == at || !(v >= 0 && v <= (i < DIGITS_DIM ? DIGITS_TOP : CLASSES - 1)))
			return -EINVAL;
		if (i < DIGITS_DIM) {
			if (*end != ',')
				return -EINVAL;
			x[i] = v / DIGITS_TOP;
			at = end + 1;
		} else {
			if (v != (int)v || end[strspn(end, "\r\n")])
				return -EINVAL;
			*y = v;
		}
	}
	return 0;
}

static int csv_read(const char *path, struct data *all, struct err *e)
{
	gzFile f = gzopen(path, "rb");
	int room = 2048, code, r;
	char line[4096];

	if (!f)
		return fail(e, -errno, "cannot open %s: %s", path, strerror(errno));
	r = data_alloc(all, room, DIGITS_DIM, e);
	if (r)
		goto out_close;
	all->n = 0;
	while (gzgets(f, line, sizeof(line))) {
		if (all->n == room) {
			r = fail(e, -E2BIG, "%s has more than %d lines", path, room);
			goto out_free;
		}
		if (csv_line(line, all->x + (size_t)all->n * DIGITS_DIM, &all->y[all->n])) {
			r = fail(e, -EINVAL,
				 "%s line %d is not %d pixels of 0 to %d and a class of 0 to %d, "
				 "with commas between",
				 path, all->n + 1, DIGITS_DIM, DIGITS_TOP, CLASSES - 1);
			goto out_free;
		}
		all->n++;
	}
	gzerror(f, &code);
	if (code < 0 || gzclose_r(f) != Z_OK) {
		if (code >= 0)
			f = NULL;
		r = fail(e, -EIO, "%s is damaged or incomplete: fetch it again", path);
		goto out_free;
	}
	if (all->n < 90) {
		f = NULL;
		r = fail(e, -EINVAL, "%s has %d examples; at least 90 are needed", path, all->n);
		goto out_free;
	}
	return 0;

out_free:
	data_free(all);
out_close:
	if (f)
		gzclose_r(f);
	return r;
}

static int data_take(const struct data *all, const uint32_t *order, int n, struct data *d,
		     struct err *e)
{
	int r = data_alloc(d, n, all->dim, e);

	for (int i = 0; !r && i < n; i++) {
		memcpy(d->x + (size_t)i * d->dim, all->x + (size_t)order[i] * d->dim,
		       d->dim * sizeof(*d->x));
		d->y[i] = all->y[order[i]];
	}
	return r;
}

static int csv_load(const char *path, uint64_t seed, struct data *train, struct data *test,
		    struct err *e)
{
	struct data all;
	uint32_t *order;
	int r, n;

	r = csv_read(path, &all, e);
	if (r)
		return r;
	order = malloc(all.n * sizeof(*order));
	if (!order) {
		r = fail(e, -ENOMEM, "no memory for %d examples", all.n);
		goto out;
	}
	shuffle(order, all.n, seed, RNG_SPLIT, 0);
	n = all.n * 5 / 9;
	r = data_take(&all, order, n, train, e);
	if (r)
		goto out;
	r = data_take(&all, order + n, all.n - n, test, e);
	if (r)
		data_free(train);
out:
	free(order);
	data_free(&all);
	return r;
}

static uint32_t be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

/* Opens FOLDER/NAME or FOLDER/NAME.gz and reads its header of @dims numbers. */
static gzFile idx_open(const char *folder, const char *name, uint32_t magic, int dims,
		       uint32_t *dim, char *path, size_t size, struct err *e, int *r)
{
	unsigned char head[16];
	int len = 4 + 4 * dims;
	gzFile f;

	snprintf(path, size, "%s/%s", folder, name);
	f = gzopen(path, "rb");
	if (!f) {
		snprintf(path, size, "%s/%s.gz", folder, name);
		f = gzopen(path, "rb");
	}
	if (!f) {
		*r = fail(e, -ENOENT,
			  "there is no %s (or %s.gz) in %s: an MNIST folder has four such files",
			  name, name, folder);
		return NULL;
	}
	if (gzread(f, head, len) != len) {
		*r = fail(e, -EINVAL, "%s is too short for an IDX header", path);
		goto bad;
	}
	if (be32(head) != magic) {
		*r = fail(e, -EINVAL, "%s begins with %08x; IDX files of this kind begin with %08x",
			  path, be32(head), magic);
		goto bad;
	}
	for (int i = 0; i < dims; i++)
		dim[i] = be32(head + 4 + 4 * i);
	return f;
bad:
	gzclose_r(f);
	return NULL;
}

static int idx_images(const char *folder, const char *name, struct data *d, struct err *e)
{
	unsigned char *bytes;
	char path[4200];
	uint32_t dim[3];
	int r = 0, len;
	gzFile f;

	f = idx_open(folder, name, IDX_IMAGES, 3, dim, path, sizeof(path), e, &r);
	if (!f)
		return r;
	if (!dim[0] || dim[0] > EXAMPLES_MAX || !dim[1] || dim[1] > 256 || !dim[2] ||
	    dim[2] > 256) {
		r = fail(e, -EINVAL,
			 "%s says %u pictures of %u x %u; 1 to %d of up to 256 x 256 are allowed",
			 path, dim[0], dim[1], dim[2], EXAMPLES_MAX);
		goto out_close;
	}
	len = dim[1] * dim[2];
	r = data_alloc(d, dim[0], len, e);
	if (r)
		goto out_close;
	bytes = malloc(len);
	if (!bytes) {
		r = fail(e, -ENOMEM, "no memory for a picture");
		goto out_free;
	}
	for (int i = 0; i < d->n; i++) {
		if (gzread(f, bytes, len) != len) {
			r = fail(e, -EINVAL, "%s ends after %d of %d pictures", path, i, d->n);
			goto out_bytes;
		}
		for (int j = 0; j < len; j++)
			d->x[(size_t)i * len + j] = bytes[j] / 255.0f;
	}
out_bytes:
	free(bytes);
out_free:
	if (r)
		data_free(d);
out_close:
	gzclose_r(f);
	return r;
}

static int idx_labels(const char *folder, const char *name, struct data *d, struct err *e)
{
	char path[4200];
	uint32_t n;
	int r = 0;
	gzFile f;

	f = idx_open(folder, name, IDX_LABELS, 1, &n, path, sizeof(path), e, &r);
	if (!f)
		return r;
	if (n != (uint32_t)d->n)
		r = fail(e, -EINVAL, "%s says %u labels, but there are %d pictures", path, n, d->n);
	else if (gzread(f, d->y, d->n) != d->n)
		r = fail(e, -EINVAL, "%s is shorter than its %u labels", path, n);
	for (int i = 0; !r && i < d->n; i++)
		if (d->y[i] >= CLASSES)
			r = fail(e, -EINVAL, "%s: label %d is %d; 0 to %d are allowed", path, i,
				 d->y[i], CLASSES - 1);
	gzclose_r(f);
	return r;
}

static int idx_load(const char *folder, struct data *train, struct data *test, struct err *e)
{
	int r;

	r = idx_images(folder, "train-images-idx3-ubyte", train, e);
	if (r)
		return r;
	r = idx_labels(folder, "train-labels-idx1-ubyte", train, e);
	if (r)
		goto out_train;
	r = idx_images(folder, "t10k-images-idx3-ubyte", test, e);
	if (r)
		goto out_train;
	r = idx_labels(folder, "t10k-labels-idx1-ubyte", test, e);
	if (r)
		goto out_test;
	if (train->dim == test->dim)
		return 0;
	r = fail(e, -EINVAL, "the pictures in %s have %d pixels for training and %d for testing",
		 folder, train->dim, test->dim);
out_test:
	data_free(test);
out_train:
	data_free(train);
	return r;
}

int data_load(const char *path, uint64_t seed, struct data *train, struct data *test, char *error,
	      size_t size)
{
	struct err e = {error, size};
	struct stat st;

	if (stat(path, &st))
		return fail(&e, -errno, "cannot read %s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return idx_load(path, train, test, &e);
	return csv_load(path, seed, train, test, &e);
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
