// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Forward and backward pass of mlp.h, on three small matrix products.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mlp.h"
#include "rng.h"

/* Vectors of the compiler: every lane is a sum of its own, so nothing is
 * re-associated and no unsafe floating point option is needed. */
typedef float vec __attribute__((vector_size(32), aligned(4), may_alias));
#define LANES 8
#define BLOCK (2 * LANES)
#define ROWS  4

/* One binary for all x86-64 machines, which uses FMA on those that have it. */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define CLONES __attribute__((target_clones("fma", "default"), optimize("O3")))
#else
#define CLONES
#endif

struct mlp_work {
	int batch;
	float *act[MLP_LAYERS_MAX + 1];	  /* act[0] is the caller's input */
	float *delta[MLP_LAYERS_MAX + 1]; /* of the loss by act[] */
};

int mlp_init(struct mlp *m, const int *sizes, int n)
{
	if (n < 2 || n > MLP_LAYERS_MAX + 1)
		return -EINVAL;
	memset(m, 0, sizeof(*m));
	m->layers = n - 1;
	for (int l = 0; l < n; l++) {
		if (sizes[l] < 1 || sizes[l] > 1 << 16)
			return -EINVAL;
		m->size[l] = sizes[l];
	}
	for (int l = 0; l < m->layers; l++) {
		m->w[l] = m->params;
		m->params += (size_t)sizes[l] * sizes[l + 1];
		m->b[l] = m->params;
		m->params += sizes[l + 1];
	}
	return 0;
}

void mlp_seed(const struct mlp *m, float *p, uint64_t seed)
{
	memset(p, 0, m->params * sizeof(*p));
	for (int l = 0; l < m->layers; l++) {
		size_t n = (size_t)m->size[l] * m->size[l + 1];
		double scale = sqrt(2.0 / m->size[l]);

		for (size_t i = 0; i < n; i++) {
			/* Box-Muller; 1 - u is never 0 */
			double u = rng_unit(rng_at(seed, RNG_MODEL, l, 2 * i));
			double a = rng_unit(rng_at(seed, RNG_MODEL, l, 2 * i + 1));

			p[m->w[l] + i] = scale * sqrt(-2 * log(1 - u)) * cos(2 * M_PI * a);
		}
	}
}

struct mlp_work *mlp_work_new(const struct mlp *m, int batch)
{
	struct mlp_work *wk = calloc(1, sizeof(*wk));

	if (!wk)
		return NULL;
	wk->batch = batch;
	for (int l = 1; l <= m->layers; l++) {
		wk->act[l] = calloc((size_t)batch * m->size[l], sizeof(float));
		wk->delta[l] = calloc((size_t)batch * m->size[l], sizeof(float));
		if (!wk->act[l] || !wk->delta[l]) {
			mlp_work_free(wk);
			return NULL;
		}
	}
	return wk;
}

void mlp_work_free(struct mlp_work *wk)
{
	if (!wk)
		return;
	for (int l = 1; l <= MLP_LAYERS_MAX; l++) {
		free(wk->act[l]);
		free(wk->delta[l]);
	}
	free(wk);
}

/*
 * C (m x n) = A (m x k) * B (k x n) + a row of biases, or 0 where @bias is
 * NULL.  Element (i, q) of A is a[i * ars + q * acs], so that A may be read
 * transposed; B and C are dense rows.  Four rows at a time share what is read
 * of B; left-over rows are computed as copies of the last, which costs little.
 */
CLONES static void product(float *c, const float *a, size_t ars, size_t acs, const float *b,
			   const float *bias, int m, int k, int n)
{
	for (int i = 0; i < m; i += ROWS) {
		const float *ar[ROWS];
		float *cr[ROWS];
		int j = 0;

		for (int r = 0; r < ROWS; r++) {
			int row = i + r < m ? i + r : m - 1;

			ar[r] = a + row * ars;
			cr[r] = c + (size_t)row * n;
		}
		for (; j + BLOCK <= n; j += BLOCK) {
			vec s[ROWS][2];

			for (int r = 0; r < ROWS; r++) {
				s[r][0] = bias ? *(const vec *)(bias + j) : (vec){};
				s[r][1] = bias ? *(const vec *)(bias + j + LANES) : (vec){};
			}
			for (int q = 0; q < k; q++) {
				const float *bq = b + (size_t)q * n + j;
				vec b0 = *(const vec *)bq, b1 = *(const vec *)(bq + LANES);

				for (int r = 0; r < ROWS; r++) {
					s[r][0] += ar[r][q * acs] * b0;
					s[r][1] += ar[r][q * acs] * b1;
				}
			}
			for (int r = 0; r < ROWS; r++) {
				*(vec *)(cr[r] + j) = s[r][0];
				*(vec *)(cr[r] + j + LANES) = s[r][1];
			}
		}
		for (; j < n; j++) {
			for (int r = 0; r < ROWS; r++) {
				float t = bias ? bias[j] : 0;

				for (int q = 0; q < k; q++)
					t += ar[r][q * acs] * b[(size_t)q * n + j];
				cr[r][j] = t;
			}
		}
	}
}

/* C (m x k) = A (m x n) * B (k x n) transposed. */
CLONES static void product_bt(float *c, const float *a, const float *b, int m, int n, int k)
{
	for (int q = 0; q < k; q++) {
		const float *bq = b + (size_t)q * n;

		for (int i = 0; i < m; i++) {
			const float *ai = a + (size_t)i * n;
			vec s = {};
			float t = 0;
			int j = 0;

			for (; j + LANES <= n; j += LANES)
				s += *(const vec *)(ai + j) * *(const vec *)(bq + j);
			for (; j < n; j++)
				t += ai[j] * bq[j];
			for (j = 0; j < LANES; j++)
				t += s[j];
			c[(size_t)i * k + q] = t;
		}
	}
}

static void forward(const struct mlp *m, const float *p, const float *x, int n, struct mlp_work *wk)
{
	for (int l = 0; l < m->layers; l++) {
		int in = m->size[l], out = m->size[l + 1];
		const float *from = l ? wk->act[l] : x;

		product(wk->act[l + 1], from, in, 1, p + m->w[l], p + m->b[l], n, in, out);
		if (l + 1 == m->layers)
			break;
		for (size_t i = 0; i < (size_t)n * out; i++)
			if (wk->act[l + 1][i] < 0)
				wk->act[l + 1][i] = 0;
	}
}

/* Loss of one example; makes probabilities of its outputs @o. */
static double softmax(float *o, int classes, int y)
{
	double sum = 0, e;
	float top = o[0], oy = o[y];

	for (int j = 1; j < classes; j++)
		if (o[j] > top)
			top = o[j];
	for (int j = 0; j < classes; j++) {
		e = exp(o[j] - top);
		o[j] = e;
		sum += e;
	}
	for (int j = 0; j < classes; j++)
		o[j] /= sum;
	return log(sum) + top - oy;
}

double mlp_gradient(const struct mlp *m, const float *p, const float *x, const uint8_t *y, int n,
		    float *grad, struct mlp_work *wk)
{
	int classes = m->size[m->layers];
	float *d = wk->delta[m->layers];
	double loss = 0;

	forward(m, p, x, n, wk);
	memcpy(d, wk->act[m->layers], (size_t)n * classes * sizeof(*d));
	for (int i = 0; i < n; i++) {
		float *di = d + (size_t)i * classes;

		loss += softmax(di, classes, y[i]);
		di[y[i]] -= 1;
		for (int j = 0; j < classes; j++)
			di[j] /= n;
	}
	for (int l = m->layers - 1; l >= 0; l--) {
		int in = m->size[l], out = m->size[l + 1];
		const float *from = l ? wk->act[l] : x;
		float *gb = grad + m->b[l];

		d = wk->delta[l + 1];
		product(grad + m->w[l], from, 1, in, d, NULL, in, n, out);
		memset(gb, 0, out * sizeof(*gb));
		for (int i = 0; i < n; i++)
			for (int j = 0; j < out; j++)
				gb[j] += d[(size_t)i * out + j];
		if (!l)
			break;
		product_bt(wk->delta[l], d, p + m->w[l], n, out, in);
		for (size_t i = 0; i < (size_t)n * in; i++)
			if (wk->act[l][i] <= 0)
				wk->delta[l][i] = 0;
	}
	return loss / n;
}

double mlp_evaluate(const struct mlp *m, const float *p, const float *x, const uint8_t *y, int n,
		    int *right, struct mlp_work *wk)
{
	int classes = m->size[m->layers];
	double loss = 0;

	if (right)
		*right = 0;
	for (int at = 0; at < n; at += wk->batch) {
		int part = n - at < wk->batch ? n - at : wk->batch;

		forward(m, p, x + (size_t)at * m->size[0], part, wk);
		for (int i = 0; i < part; i++) {
			float *o = wk->act[m->layers] + (size_t)i * classes;
			int best = 0;

			for (int j = 1; j < classes; j++)
				if (o[j] > o[best])
					best = j;
			if (right && best == y[at + i])
				++*right;
			loss += softmax(o, classes, y[at + i]);
		}
	}
	return loss / n;
}

/* mlp_step() and mlp_adam() are not cloned by processor: their results must be the
 * same at every worker, also on machines that differ. */
void mlp_step(float *p, float *v, const float *g, size_t n, float rate, float momentum)
{
	for (size_t i = 0; i < n; i++) {
		v[i] = momentum * v[i] + g[i];
		p[i] -= rate * v[i];
	}
}

void mlp_adam(float *p, float *m, float *v, const float *g, size_t n, float rate, uint32_t t)
{
	const float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
	const double c1 = 1 - pow(beta1, t), c2 = 1 - pow(beta2, t);

	for (size_t i = 0; i < n; i++) {
		m[i] = beta1 * m[i] + (1 - beta1) * g[i];
		v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
		p[i] -= rate * (m[i] / c1) / (sqrt(v[i] / c2) + epsilon);
	}
}
