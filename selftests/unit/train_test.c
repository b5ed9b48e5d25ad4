// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The demo's trainer without a network: gradients against numerical
 * differentiation, determinism, minibatches, delays, and the reader of examples
 * with good and bad files.
 */
#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../trainer/rng.h"
#include "../trainer/train.h"
#include "../lib/statement.h"

static char dir[] = "/tmp/saina-train-test.XXXXXX";

static const char *in_dir(const char *name)
{
	static char path[100];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

/* ---- the network ---- */

static void gradient_check(const int *sizes, int layers, int batch)
{
	struct mlp_work *wk;
	struct mlp m;
	float *p, *g, *x;
	uint8_t *y;
	double loss, worst = 0;

	assert_int_equal(mlp_init(&m, sizes, layers), 0);
	p = malloc(m.params * sizeof(*p));
	g = malloc(m.params * sizeof(*g));
	x = malloc(batch * sizes[0] * sizeof(*x));
	y = malloc(batch);
	wk = mlp_work_new(&m, batch);
	mlp_seed(&m, p, 7);
	for (int i = 0; i < batch * sizes[0]; i++)
		x[i] = rng_unit(rng_at(1, 100, i, 0));
	for (int i = 0; i < batch; i++)
		y[i] = rng_at(1, 101, i, 0) % sizes[layers - 1];
	loss = mlp_gradient(&m, p, x, y, batch, g, wk);
	assert_true(fabs(loss - mlp_evaluate(&m, p, x, y, batch, NULL, wk)) < 1e-9);
	for (size_t i = 0; i < m.params; i++) {
		const float e = 1e-3f;
		float keep = p[i], up = keep + e, down = keep - e;
		double n;

		p[i] = up;
		n = mlp_evaluate(&m, p, x, y, batch, NULL, wk);
		p[i] = down;
		n -= mlp_evaluate(&m, p, x, y, batch, NULL, wk);
		p[i] = keep;
		n /= (double)up - down;
		if (fabs(n - g[i]) > worst)
			worst = fabs(n - g[i]);
	}
	/* float32 activations: 1e-7 of the loss over 2e-3 */
	if (worst > 2e-3)
		fail_msg("a derivative is wrong by %g", worst);
	mlp_work_free(wk);
	free(y);
	free(x);
	free(g);
	free(p);
}

static void gradient_is_the_derivative(void **state)
{
	/* scalar paths; vector paths with and without left-over columns and rows */
	gradient_check((int[]){5, 7, 6, 3}, 4, 3);
	gradient_check((int[]){20, 33, 17, 10}, 4, 5);
	gradient_check((int[]){16, 32, 16}, 3, 4);
	gradient_check((int[]){3, 2}, 2, 1);
}

static void shapes_are_checked(void **state)
{
	struct mlp m;

	assert_int_equal(mlp_init(&m, (int[]){64, 512, 512, 10}, 4), 0);
	assert_int_equal(m.params, 64 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10);
	assert_int_equal(mlp_init(&m, (int[]){64}, 1), -EINVAL);
	assert_int_equal(mlp_init(&m, (int[]){64, 0, 10}, 3), -EINVAL);
	assert_int_equal(mlp_init(&m, (int[]){1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 10), -EINVAL);
}

static void step_is_momentum(void **state)
{
	float p[3] = {1, 2, 3}, v[3] = {0, 1, -1}, g[3] = {1, 0, 4};

	mlp_step(p, v, g, 3, 0.5f, 0.5f);
	assert_true(v[0] == 1 && v[1] == 0.5f && v[2] == 3.5f);
	assert_true(p[0] == 0.5f && p[1] == 1.75f && p[2] == 1.25f);
}

/* The first step of Adam is one of the rate, whatever the gradient's size; two of the paper's by hand. */
static void step_is_adam(void **state)
{
	float p[3] = {1, 2, 3}, m[3] = {0}, v[3] = {0}, g[3] = {1e-3f, 0, -400};
	float again[3] = {3e-3f, 1, -400};

	mlp_adam(p, m, v, g, 3, 0.5f, 1);
	assert_true(fabs(p[0] - 0.5) < 1e-4 && p[1] == 2 && fabs(p[2] - 3.5) < 1e-4);
	mlp_adam(p, m, v, again, 3, 0.5f, 2);
	/* moments / corrections: (.09 g + .1 g') / .19 and (.000999 g^2 + .001 g'^2) / .001999 */
	assert_true(fabs(p[0] - (0.5 - 0.5 * 2.0526316e-3 / sqrt(5.0020010e-6))) < 1e-3);
	assert_true(fabs(p[2] - 4) < 1e-3);
}

/* ---- the trainer ---- */

#define LINES 180

static void put32(FILE *f, uint32_t v)
{
	v = htole32(v);
	assert_int_equal(fwrite(&v, sizeof(v), 1, f), 1);
}

/* @n examples of @dim pixels, of which the file holds @lines; the class of the last one is @label. */
static void examples_put(const char *name, uint32_t train, uint32_t n, uint32_t dim, int lines, int label)
{
	FILE *f = fopen(in_dir(name), "wb");

	assert_non_null(f);
	fputs("EXMP", f);
	put32(f, train);
	put32(f, n);
	put32(f, dim);
	put32(f, 16);
	for (int i = 0; i < lines; i++) {
		for (uint32_t j = 0; j < dim; j++)
			putc((i % 10 * 7 + j * j) % 17, f);
		putc(i == lines - 1 ? label : i % 10, f);
	}
	assert_int_equal(fclose(f), 0);
}

static uint32_t train(uint64_t seed, int first, double *loss)
{
	struct train_opts o = {
		.seed = seed,
		.hidden = {40},
		.hiddens = 1,
		.workers = 4,
		.batch = 5,
		.rate = 0.2,
		.momentum = 0.5,
	};
	struct trainer t;
	char error[300];
	uint32_t crc;

	examples_put("train", 0, LINES, 64, LINES, 9);
	o.data = in_dir("train");
	assert_int_equal(trainer_init(&t, &o, error, sizeof(error)), 0);
	for (int r = 0; r < 30; r++) {
		float *sum = calloc(t.mlp.params, sizeof(*sum));

		/* the order in which workers compute must not matter */
		for (int i = 0; i < 4; i++) {
			*loss = trainer_gradient(&t, r, (first + i) % 4, t.g);
			if ((first + i) % 4 == 2)
				memcpy(sum, t.g, t.mlp.params * sizeof(*sum));
		}
		trainer_apply(&t, sum);
		free(sum);
	}
	crc = trainer_crc(&t);
	trainer_exit(&t);
	return crc;
}

static void training_is_deterministic(void **state)
{
	double loss;
	uint32_t crc = train(1, 0, &loss);

	assert_true(loss < 0.5); /* it learns, too: chance is 2.3 */
	assert_int_equal(crc, train(1, 0, &loss));
	assert_int_equal(crc, train(1, 3, &loss));
	assert_int_not_equal(crc, train(2, 0, &loss));
}

static void an_epoch_has_every_example_once(void **state)
{
	struct data d = {.n = 60, .dim = 1, .classes = 10};
	uint32_t *order = calloc(d.n + 1, sizeof(*order));
	int seen[2][60] = {};
	float x[5];
	uint8_t y[5];

	d.x = malloc(d.n * sizeof(*d.x));
	d.y = malloc(d.n);
	for (int i = 0; i < d.n; i++) {
		d.x[i] = i;
		d.y[i] = i % 10;
	}
	/* 4 workers x 5 examples: an epoch is 3 rounds */
	for (int r = 5; r >= 0; r--) {
		for (int w = 0; w < 4; w++) {
			data_batch(&d, 3, r, w, 4, 5, order, x, y);
			for (int i = 0; i < 5; i++) {
				seen[r / 3][(int)x[i]]++;
				assert_int_equal(y[i], (int)x[i] % 10);
			}
		}
	}
	for (int i = 0; i < 60; i++)
		assert_true(seen[0][i] == 1 && seen[1][i] == 1);
	free(order);
	data_free(&d);
}

static void delays_are_as_said(void **state)
{
	struct train_opts stalls = {.seed = 9, .delay_p = 0.15}, never = {.seed = 9};
	struct train_opts always = {.seed = 9, .delay_p = 1};
	struct train_opts exponential = {.seed = 9, .stalls = STALLS_EXPONENTIAL};
	double sum = 0, tail = 0, d;
	int n = 0;

	for (int r = 0; r < 5000; r++) {
		for (int w = 0; w < 8; w++) {
			d = train_delay(&stalls, r, w);
			assert_true(d == 0 || (d >= 0.5 && d < 2));
			assert_true(d == train_delay(&stalls, r, w));
			n += d > 0;
			sum += d;
			d = train_delay(&exponential, r, w);
			assert_true(d >= 0);
			tail += d;
		}
	}
	/* 40000 draws: 5 standard deviations are 0.009 and 0.03 */
	assert_true(fabs(n / 40000.0 - 0.15) < 0.009);
	assert_true(fabs(sum / n - 1.25) < 0.03);
	assert_true(fabs(tail / 40000 - 1) < 0.025);
	assert_true(train_delay(&never, 1, 1) == 0);
	assert_true(train_delay(&always, 1, 1) >= 0.5);
}

static void other_stalls_are_as_said(void **state)
{
	struct train_opts slow = {.stalls = STALLS_SLOW}, tail = {.seed = 9, .stalls = STALLS_TAIL};
	struct train_opts periods = {.seed = 9, .stalls = STALLS_PERIODS};
	int longer = 0, stalled = 0, again = 0;

	for (int r = 0; r < 5000; r++) {
		for (int w = 0; w < 8; w++) {
			double d = train_delay(&periods, r, w);

			assert_true(train_delay(&slow, r, w) == (w ? 0 : 3));
			/* the median of the Pareto distribution is 2^(2/3) */
			longer += train_delay(&tail, r, w) > 2 / 11.0 * (pow(2, 2 / 3.0) - 1);
			assert_true(train_delay(&tail, r, w) >= 0);
			assert_true(d == 0 || (d >= 0.5 && d < 2));
			stalled += d > 0;
			again += d > 0 && train_delay(&periods, r + 1, w) > 0;
		}
	}
	assert_true(fabs(longer / 40000.0 - 0.5) < 0.0125);
	/* 0.25 * 0.6 + 0.75 * 0.02; who is stalled is mostly in a bad period, and so in the next round */
	assert_true(fabs(stalled / 40000.0 - 0.165) < 0.03);
	assert_true(fabs((double)again / stalled - 0.53) < 0.05);
}

/* ---- data files ---- */

static void examples_are_read_and_split(void **state)
{
	struct data train, test;
	char error[300];
	int per[10] = {};

	examples_put("good", 0, LINES, 64, LINES, 9);
	assert_int_equal(data_load(in_dir("good"), 1, &train, &test, error, sizeof(error)), 0);
	assert_int_equal(train.n, 100);
	assert_int_equal(test.n, 80);
	assert_int_equal(train.dim, 64);
	for (int i = 0; i < train.n; i++) {
		for (int j = 0; j < 64; j++)
			assert_true(train.x[i * 64 + j] == (train.y[i] * 7 + j * j) % 17 / 16.0f);
		per[train.y[i]]++;
	}
	for (int i = 0; i < test.n; i++)
		per[test.y[i]]++;
	for (int i = 0; i < 10; i++)
		assert_int_equal(per[i], LINES / 10);
	data_free(&train);
	data_free(&test);
	examples_put("good", 20, 30, 12, 30, 9);
	assert_int_equal(data_load(in_dir("good"), 1, &train, &test, error, sizeof(error)), 0);
	assert_true(train.n == 20 && test.n == 10 && test.dim == 12);
	for (int i = 0; i < 20; i++)
		assert_int_equal(train.y[i], i % 10);
	data_free(&train);
	data_free(&test);
}

static void bad_examples_are_refused(void **state)
{
	static const struct {
		uint32_t train, n, dim;
		int lines, label;
	} bad[] = {
		{ 20, 30, 12, 29, 9 }, { 20, 30, 12, 0, 9 }, { 20, 30, 12, 30, 10 }, { 30, 30, 12, 30, 9 },
		{ 0, 0, 12, 30, 9 }, { 0, 30, 0, 30, 9 }, { 0, 0xffffffff, 12, 30, 9 }, { 0, 30, 0xffffffff, 0, 9 },
	};
	struct data train, test;
	char error[300];

	assert_int_equal(data_load(in_dir("none"), 1, &train, &test, error, sizeof(error)), -ENOENT);
	assert_non_null(strstr(error, "cannot read"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		examples_put("bad", bad[i].train, bad[i].n, bad[i].dim == 0xffffffff ? 1 : bad[i].dim, bad[i].lines, bad[i].label);
		if (bad[i].dim == 0xffffffff) {
			FILE *f = fopen(in_dir("bad"), "r+b");

			fseek(f, 12, SEEK_SET);
			put32(f, bad[i].dim);
			fclose(f);
		}
		error[0] = 0;
		assert_int_equal(data_load(in_dir("bad"), 1, &train, &test, error, sizeof(error)), -EINVAL);
		assert_non_null(strstr(error, "is no file of examples, or is damaged"));
	}
}

static void steps_are_those_of_some_policies(void **state)
{
	static const char *const steps[] = { "ssp:2", "asp", "grouped", "grouped:g=2" };
	static const char *const rounds[] = { "bsp", "fastest:k=2", "sfcd", "external", "timeout:5ms" };
	static const char *const none[] = { "asphalt", "ssp2:2", "sspx", "grouped2", "as", "" };

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		assert_true(train_has_steps(steps[i]));
	for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++)
		assert_false(train_has_steps(rounds[i]));
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(train_has_steps(none[i]));
}

static int setup(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	static const char *const names[] = { "train", "good", "bad" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(in_dir(names[i]));
	return rmdir(dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		statement("demo: the gradient is the derivative of the loss", gradient_is_the_derivative),
		statement("demo: the layer sizes of a network are checked", shapes_are_checked),
		statement("demo: a step follows the gradient with momentum", step_is_momentum),
		statement("demo: a step of Adam is that of the paper", step_is_adam),
		statement("demo: training with the same seed gives the same model", training_is_deterministic),
		statement("demo: an epoch has every example exactly once", an_epoch_has_every_example_once),
		statement("demo: delays of stragglers have the share and the length that were set", delays_are_as_said),
		statement("demo: a slow worker, a heavy tail and bad periods are as described", other_stalls_are_as_said),
		statement("demo: a file of examples is read and split for training and test", examples_are_read_and_split),
		statement("demo: a missing, malformed or cut file of examples is refused with a sentence", bad_examples_are_refused),
		statement("demo: ssp, asp and grouped have steps, names that begin like these have not", steps_are_those_of_some_policies),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
