// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A worker of data-parallel training in few lines: fits y = a * x + b, with data
 * that no other worker has.  Four of them are one job:
 *
 *	saina job add line elements 2 workers 4
 *	SAINA_AGGREGATOR=10.190.0.1 SAINA_JOB=line example-fit		(on each of the four)
 *
 * All print the same model, to the last bit: y = 3 x + 1.
 */
#include <err.h>
#include <math.h>
#include <stdio.h>
#include <saina.h>

/* The gradient of the mean squared error, on points that only worker @me has. */
static void gradient(int me, const float model[2], float grad[2])
{
	grad[0] = grad[1] = 0;
	for (int i = 0; i < 100; i++) {
		float x = sinf(100 * me + i), y = 3 * x + 1;
		float error = model[0] * x + model[1] - y;

		grad[0] += 2 * error * x / 100;
		grad[1] += 2 * error / 100;
	}
}

int main(void)
{
	struct saina_opts opts = { .size = sizeof(opts) };
	struct saina_job_info info = { .size = sizeof(info) };
	struct saina_call call = { .size = sizeof(call) };
	float model[2] = { 0, 0 }, grad[2];
	struct saina *s;
	int ret;

	ret = saina_opts_env(&opts);		/* SAINA_AGGREGATOR, SAINA_JOB, SAINA_RANK */
	if (!ret)
		ret = saina_open(&s, &opts);	/* returns when all workers are there */
	if (ret)
		errx(1, "%s", saina_strerror(NULL, ret));
	saina_info(s, &info);
	for (int round = 0; round < 100; round++) {
		gradient(info.worker, model, grad);
		/* In place: this worker's gradient in, the mean over all who were in time out. */
		ret = saina_allreduce(s, grad, 2, SAINA_FLOAT32, SAINA_MEAN, &call);
		if (ret)
			errx(1, "%s", saina_strerror(s, ret));
		for (int i = 0; i < 2; i++)
			model[i] -= 0.3f * grad[i];
	}
	printf("y = %.4f x + %.4f (last mean over %u workers)\n", model[0], model[1], call.count_min);
	return saina_close(s) != 0;
}
