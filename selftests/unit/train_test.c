// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The demo's trainer without a network: gradients against numerical
 * differentiation, determinism, minibatches, delays, and the readers of data
 * files with good and bad files.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "../trainer/rng.h"
#include "../trainer/train.h"
#include "../trainer/train_sim_policy.h"
#include "../lib/statement.h"

static char dir[] = "/tmp/saina-train-test.XXXXXX";

static const char *in_dir(const char *name)
{
	static char path[100];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

/* gz: a name that ends so is compressed. */
static void write_file(const char *name, const void *bytes, size_t n)
{
	const char *path = in_dir(name);

	if (strlen(name) > 3 && !strcmp(name + strlen(name) - 3, ".gz")) {
		gzFile f = gzopen(path, "wb");

		assert_non_null(f);
		assert_int_equal(gzwrite(f, bytes, n), n);
		assert_int_equal(gzclose(f), Z_OK);
	} else {
		FILE *f = fopen(path, "wb");

		assert_non_null(f);
		assert_int_equal(fwrite(bytes, 1, n, f), n);
		assert_int_equal(fclose(f), 0);
	}
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

static void digits_put(const char *name, int lines, int bad_line, const char *bad)
{
	char *text = malloc(lines * 200 + 1000), *at = text;

	for (int i = 0; i < lines; i++) {
		if (i == bad_line) {
			at += sprintf(at, "%s\n", bad);
			continue;
		}
		for (int j = 0; j < 64; j++)
			at += sprintf(at, "%d,", (int)((i % 10 * 7 + j * j) % 17));
		at += sprintf(at, "%d\n", i % 10);
	}
	write_file(name, text, at - text);
	free(text);
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

	digits_put("train.csv.gz", LINES, -1, NULL);
	o.data = in_dir("train.csv.gz");
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

/* What is loaded from @name must fail with a sentence that holds @words. */
static void refused(const char *name, int code, const char *words)
{
	struct data train, test;
	char error[300] = "";
	int r = data_load(in_dir(name), 1, &train, &test, error, sizeof(error));

	if (!r)
		fail_msg("%s was accepted", name);
	if (r != code || !strstr(error, words))
		fail_msg("%s: %d \"%s\" instead of %d \"%s\"", name, r, error, code, words);
}

static void digits_are_read_and_split(void **state)
{
	struct data train, test;
	char error[300];
	int per[10] = {};

	digits_put("good.csv.gz", LINES, -1, NULL);
	assert_int_equal(data_load(in_dir("good.csv.gz"), 1, &train, &test, error, sizeof(error)),
			 0);
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
}

static void bad_digits_are_refused(void **state)
{
	char bad[1000], raw[20000];
	size_t n;
	FILE *f;

	refused("none.csv", -ENOENT, "cannot read");
	digits_put("bad.csv", LINES, 9, "1,2,3");
	refused("bad.csv", -EINVAL, "line 10 is not 64 pixels");
	memset(bad, 0, sizeof(bad));
	for (int i = 0; i < 65; i++)
		strcat(bad, i == 20 ? "17," : "1,");
	bad[strlen(bad) - 1] = 0;
	digits_put("bad.csv", LINES, 0, bad);
	refused("bad.csv", -EINVAL, "line 1 is");
	bad[strlen(bad) - 1] = 0; /* no class */
	digits_put("bad.csv", LINES, 4, bad);
	refused("bad.csv", -EINVAL, "line 5 is");
	digits_put("bad.csv", LINES, 2, "");
	refused("bad.csv", -EINVAL, "line 3 is");
	digits_put("bad.csv", 5, -1, NULL);
	refused("bad.csv", -EINVAL, "examples; at least");
	write_file("bad.csv", "", 0);
	refused("bad.csv", -EINVAL, "examples; at least");

	/* the second half of a compressed file is missing */
	digits_put("cut.csv.gz", LINES, -1, NULL);
	f = fopen(in_dir("cut.csv.gz"), "rb");
	n = fread(raw, 1, sizeof(raw), f);
	fclose(f);
	f = fopen(in_dir("cut.csv.gz"), "wb");
	fwrite(raw, 1, n / 2, f);
	fclose(f);
	assert_true(n > 100 && n < sizeof(raw));
	{
		struct data train, test;
		char error[300] = "";

		assert_true(data_load(in_dir("cut.csv.gz"), 1, &train, &test, error,
				      sizeof(error)) < 0);
		assert_true(strlen(error) > 20);
	}
}

struct idx {
	uint32_t magic, n, rows, cols; /* as the header says */
	int bytes;		       /* that really follow */
	int label;		       /* value of the last label */
};

static void be32(unsigned char *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = v >> (24 - 8 * i);
}

static void idx_put(const char *name, const struct idx *x)
{
	unsigned char bytes[5000];
	int head = x->rows ? 16 : 8;

	be32(bytes, x->magic);
	be32(bytes + 4, x->n);
	if (x->rows) {
		be32(bytes + 8, x->rows);
		be32(bytes + 12, x->cols);
	}
	for (int i = 0; i < x->bytes; i++)
		bytes[head + i] = x->rows ? i * 3 : i % 10;
	if (!x->rows && x->bytes)
		bytes[head + x->bytes - 1] = x->label;
	write_file(name, bytes, head + x->bytes);
}

static const struct idx images = {0x803, 20, 4, 3, 240, 0};
static const struct idx labels = {0x801, 20, 0, 0, 20, 9};

static void idx_folder(void)
{
	idx_put("train-images-idx3-ubyte", &images);
	idx_put("train-labels-idx1-ubyte", &labels);
	idx_put("t10k-images-idx3-ubyte", &images);
	idx_put("t10k-labels-idx1-ubyte", &labels);
}

static void idx_is_read(void **state)
{
	struct data train, test;
	char error[300];

	idx_folder();
	/* compressed as MNIST is served */
	unlink(in_dir("t10k-images-idx3-ubyte"));
	idx_put("t10k-images-idx3-ubyte.gz", &images);
	assert_int_equal(data_load(dir, 1, &train, &test, error, sizeof(error)), 0);
	assert_int_equal(train.n, 20);
	assert_int_equal(train.dim, 12);
	assert_int_equal(test.n, 20);
	for (int i = 0; i < 240; i++) {
		assert_true(train.x[i] == (i * 3 & 255) / 255.0f);
		assert_true(test.x[i] == train.x[i]);
	}
	for (int i = 0; i < 19; i++)
		assert_int_equal(train.y[i], i % 10);
	assert_int_equal(train.y[19], 9);
	data_free(&train);
	data_free(&test);
	unlink(in_dir("t10k-images-idx3-ubyte.gz"));
}

static void bad_idx_is_refused(void **state)
{
	static const struct {
		const char *file;
		struct idx x;
		const char *words;
	} bad[] = {
		{"train-images-idx3-ubyte", {0x801, 20, 4, 3, 240, 0}, "begins with 00000801"},
		{"train-images-idx3-ubyte", {0x803, 20, 4, 3, 239, 0}, "ends after 19 of 20"},
		{"train-images-idx3-ubyte", {0x803, 20, 4, 3, 0, 0}, "ends after 0 of 20"},
		{"train-images-idx3-ubyte", {0x803, 0, 4, 3, 240, 0}, "0 pictures"},
		{"train-images-idx3-ubyte", {0x803, 20, 70000, 3, 240, 0}, "70000 x 3"},
		{"train-images-idx3-ubyte",
		 {0x803, 0xffffffff, 4, 3, 240, 0},
		 "4294967295 pictures"},
		{"train-images-idx3-ubyte", {0x803, 10, 4, 3, 120, 0}, "there are 10 pictures"},
		{"train-labels-idx1-ubyte", {0x803, 20, 0, 0, 20, 0}, "begins with 00000803"},
		{"train-labels-idx1-ubyte", {0x801, 21, 0, 0, 21, 0}, "21 labels"},
		{"train-labels-idx1-ubyte", {0x801, 20, 0, 0, 19, 0}, "shorter"},
		{"train-labels-idx1-ubyte", {0x801, 20, 0, 0, 20, 10}, "label 19 is 10"},
		{"t10k-images-idx3-ubyte",
		 {0x803, 20, 4, 4, 320, 0},
		 "12 pixels for training and 16"},
		{"t10k-labels-idx1-ubyte", {0x801, 19, 0, 0, 19, 0}, "19 labels"},
	};
	static const char *const names[] = {
		"train-images-idx3-ubyte",
		"train-labels-idx1-ubyte",
		"t10k-images-idx3-ubyte",
		"t10k-labels-idx1-ubyte",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		idx_folder();
		idx_put(bad[i].file, &bad[i].x);
		refused("", -EINVAL, bad[i].words);
	}
	for (int i = 0; i < 4; i++) {
		idx_folder();
		unlink(in_dir(names[i]));
		refused("", -ENOENT, names[i]);
		write_file(names[i], "\0\0\10", 3);
		refused("", -EINVAL, "too short");
	}
}

/* The simulation knows the same names. */
static void steps_are_those_of_some_policies(void **state)
{
	static const char *const steps[] = { "ssp:2", "asp", "grouped", "grouped:g=2" };
	static const char *const rounds[] = { "bsp", "fastest:k=2", "sfcd", "external", "timeout:5ms" };
	static const char *const none[] = { "asphalt", "ssp2:2", "sspx", "grouped2", "as", "" };
	struct sim_policy p;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		assert_true(train_has_steps(steps[i]));
		assert_int_equal(sim_policy_parse(steps[i], 4, &p), 0);
		assert_true(p.steps);
	}
	for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++) {
		assert_false(train_has_steps(rounds[i]));
		assert_int_equal(sim_policy_parse(rounds[i], 4, &p), 0);
		assert_false(p.steps);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_false(train_has_steps(none[i]));
		assert_int_equal(sim_policy_parse(none[i], 4, &p), -EINVAL);
	}
}

static int setup(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	static const char *const names[] = {
		"train-images-idx3-ubyte",
		"train-labels-idx1-ubyte",
		"t10k-images-idx3-ubyte",
		"t10k-labels-idx1-ubyte",
		"t10k-images-idx3-ubyte.gz",
		"train.csv.gz",
		"good.csv.gz",
		"cut.csv.gz",
		"bad.csv",
	};

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
		statement("demo: a CSV file of digits is read and split for training and test", digits_are_read_and_split),
		statement("demo: a missing, malformed or cut CSV file is refused with a sentence", bad_digits_are_refused),
		statement("demo: ssp, asp and grouped have steps, names that begin like these have not", steps_are_those_of_some_policies),
		statement("demo: IDX files are read, also compressed", idx_is_read),
		statement("demo: missing, malformed or cut IDX files are refused with a sentence", bad_idx_is_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
