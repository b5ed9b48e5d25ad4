/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A multi-layer perceptron: rectified linear hidden layers, softmax output,
 * cross-entropy loss.  All parameters lie in one array of floats, so that
 * their gradient is one tensor to all-reduce.
 *
 * Arithmetic is single-threaded and in a fixed order: the same program on the
 * same machine gets the same bits from the same input.
 */
#ifndef EXAMPLES_MLP_H
#define EXAMPLES_MLP_H

#include <stddef.h>
#include <stdint.h>

#define MLP_LAYERS_MAX 8

/**
 * struct mlp - shape of a network
 * @layers: of weights
 * @size: units of the input, the hidden layers and the output
 * @w, @b: where a layer's weights (size[l] rows of size[l + 1]) and biases
 *	begin in the array of parameters
 * @params: length of that array
 */
struct mlp {
	int layers;
	int size[MLP_LAYERS_MAX + 1];
	size_t w[MLP_LAYERS_MAX];
	size_t b[MLP_LAYERS_MAX];
	size_t params;
};

struct mlp_work; /* activations of a batch */

/**
 * mlp_init() - lay a network out
 * @n: number of @sizes, 2 to MLP_LAYERS_MAX + 1
 *
 * Returns 0 or -EINVAL.
 */
int mlp_init(struct mlp *m, const int *sizes, int n);

/* Initial parameters: weights N(0, 2 / inputs), biases 0. */
void mlp_seed(const struct mlp *m, float *p, uint64_t seed);

/* Room for batches of up to @batch examples.  NULL: out of memory. */
struct mlp_work *mlp_work_new(const struct mlp *m, int batch);
void mlp_work_free(struct mlp_work *wk);

/**
 * mlp_gradient() - of the mean loss over a batch
 * @p: parameters
 * @x: @n examples of size[0] floats
 * @y: their classes
 * @grad: out, params floats
 *
 * Returns the mean loss (natural logarithm).
 */
double mlp_gradient(const struct mlp *m, const float *p, const float *x, const uint8_t *y, int n,
		    float *grad, struct mlp_work *wk);

/* Mean loss, and in @right (may be NULL) how many of @n examples come out right. */
double mlp_evaluate(const struct mlp *m, const float *p, const float *x, const uint8_t *y, int n,
		    int *right, struct mlp_work *wk);

/**
 * mlp_step() - one step of gradient descent with momentum
 * @p: parameters, changed
 * @v: velocity, changed
 * @g: gradient
 *
 * v = momentum * v + g;  p = p - rate * v.
 */
void mlp_step(float *p, float *v, const float *g, size_t n, float rate, float momentum);

/**
 * mlp_adam() - one step of Adam (Kingma and Ba, arXiv:1412.6980, algorithm 1)
 * @p: parameters, changed
 * @m, @v: first and second moment, changed
 * @t: number of the step, from 1
 *
 * With the paper's beta1 = .9, beta2 = .999, epsilon = 1e-8.
 */
void mlp_adam(float *p, float *m, float *v, const float *g, size_t n, float rate, uint32_t t);

#endif /* EXAMPLES_MLP_H */
