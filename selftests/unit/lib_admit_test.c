// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Being admitted, refused, and misused: a worker stepped by hand against the stand-in
 * aggregator.  What is a matter of time is in session_test.c, with a clock of its own.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "saina.h"
#include "saina/proto.h"
#include "lib_member.h"
#include "../lib/statement.h"

static void refused(struct agg *a, struct saina_opts o, int err, const char *why)
{
	struct saina *s = (void *)1;
	int ret = saina_open(&s, &o);

	assert_int_equal(ret, err);
	assert_null(s);
	if (!strstr(saina_strerror(NULL, ret), why))
		fail_msg("\"%s\" does not say \"%s\"", saina_strerror(NULL, ret), why);
}

static void test_refusals(void **state)
{
	struct agg_conf c = member_conf(1, 1);
	struct saina_opts o;
	struct saina *s, *none;
	struct agg *a;

	c.token = "secret";
	a = agg_start(&c);
	o = member_opts(a, -1);
	refused(a, o, -EACCES, "token");
	o.token = "secret";
	o.elements = N + 1;
	refused(a, o, -EMSGSIZE, "1000 elements");
	o.elements = 0;
	o.cancel = &(const int){ 1 };
	refused(a, o, -ECANCELED, "cancelled");
	o.cancel = NULL;
	o.worker = 5;
	refused(a, o, -EUSERS, "full");
	o.worker = 64;
	refused(a, o, -EINVAL, "0..63");
	o.worker = -1;
	o.job = 256;
	refused(a, o, -EINVAL, "0..255");
	o.job = 21;				/* nobody answers for it */
	o.join_timeout_ms = 1500;
	refused(a, o, -ETIMEDOUT, "is sainad running");
	o.join_timeout_ms = 20000;
	o.job = 20;
	o.token = "a token of more than thirty-two bytes";
	refused(a, o, -EINVAL, "longer");
	o.token = "secret";
	o.aggregator = "10.0.0";
	refused(a, o, -EINVAL, "10.0.0");
	o.aggregator = "10.0.0.1:70000";
	refused(a, o, -EINVAL, "70000");
	o.aggregator = "127.8.0.1";
	refused(a, o, -EINVAL, "this cannot be the address of sainad's bridge");
	o.aggregator = NULL;
	refused(a, o, -EINVAL, "IPv4");
	o.aggregator = agg_address(a);
	o.interface = "nosuch0";
	refused(a, o, -ENODEV, "nosuch0");
	o.interface = NULL;
	o.size = 3;
	refused(a, o, -EINVAL, "size");
	o.size = sizeof(o);
	assert_int_equal(saina_open(&none, NULL), -EINVAL);

	assert_int_equal(saina_open(&s, &o), 0);
	o.worker = 0;				/* joining twice; asked again until then */
	o.join_timeout_ms = 3000;
	refused(a, o, -EBUSY, "alive already");
	saina_close(s);
	o.join_timeout_ms = 20000;
	assert_int_equal(saina_open(&s, &o), 0);	/* it has left */
	saina_close(s);
	agg_stop(a);
}

static void test_misuse(void **state)
{
	struct agg *a;
	struct saina *s;
	struct saina_req *r, *r2;
	struct saina_call call = { .size = sizeof(call) };
	struct saina_job_info info = { .size = 0 };
	struct saina_segment g = { .size = sizeof(g) };
	int32_t buf[N];
	float f[N] = { 0 };

	a = member_job(&s, 1, 1);
	assert_int_equal(saina_info(s, &info), -EINVAL);
	info.size = sizeof(info);
	assert_int_equal(saina_info(s, &info), 0);
	assert_int_equal(info.segments, (N + 63) / 64);
	assert_int_equal(info.worker, 0);
	assert_int_equal(saina_segment(s, 0, &g), -ENODATA);
	assert_int_equal(saina_segment(s, 99, &g), -EINVAL);
	assert_int_equal(saina_allreduce(s, buf, 0, SAINA_INT32, SAINA_SUM, NULL), -EINVAL);
	assert_int_equal(saina_allreduce(s, NULL, 5, SAINA_INT32, SAINA_SUM, NULL), -EINVAL);
	assert_int_equal(saina_allreduce(s, buf, 2 * N, SAINA_INT32, SAINA_SUM, NULL), -EINVAL);
	assert_non_null(strstr(saina_strerror(s, -EINVAL), "the job has 1000"));
	assert_int_equal(saina_allreduce(s, buf, N, SAINA_INT32, SAINA_MEAN, NULL), -EINVAL);
	assert_int_equal(saina_allreduce(s, buf, N, 7, SAINA_SUM, NULL), -EINVAL);
	assert_int_equal(saina_allreduce(s, buf, N, SAINA_INT32, 7, NULL), -EINVAL);
	assert_int_equal(saina_round_done(s), -EINVAL);

	member_fill(buf, 0, 0);
	assert_int_equal(saina_allreduce_start(s, buf, 64, SAINA_INT32, SAINA_SUM, &r), 0);
	assert_int_equal(saina_round_done(s), -EBUSY);
	assert_int_equal(saina_set_round(s, 9), -EBUSY);
	assert_int_equal(saina_allreduce(s, f, N, SAINA_FLOAT32, SAINA_SUM, NULL), -EINVAL);
	assert_int_equal(saina_allreduce_start(s, buf, N, SAINA_INT32, SAINA_SUM, &r2), -EINVAL);
	assert_int_equal(saina_wait(s, r, &call), 0);
	assert_int_equal(call.segments, 1);
	assert_int_equal(call.mask_all, 1);
	assert_int_equal(saina_round_done(s), 0);
	assert_int_equal(saina_segment(s, 0, &g), 0);
	assert_int_equal(g.mask, 1);
	assert_int_equal(saina_set_round(s, 0), -EINVAL);
	assert_int_equal(saina_set_round(s, SAINA_ROUND_MAX + 1), -EINVAL);
	assert_int_equal(saina_residual(s, 0, 5000, SAINA_INT32, buf), -EINVAL);
	assert_int_equal(saina_residual(s, 0, N, SAINA_FLOAT32, f), 0);
	saina_close(s);
	assert_int_equal(saina_close(NULL), -EINVAL);
	agg_stop(a);
}

/* No probe comes back: said with the remedy, and it works all the same. */
static void test_slow_path(void **state)
{
	struct agg_conf c = member_conf(1, 1);
	struct saina *s;
	struct agg *a;
	int32_t buf[N];

	c.fast = false;
	a = agg_start(&c);
	member_open_all(a, &s, 1);
	assert_non_null(strstr(member_lines, "gro on"));
	assert_non_null(strstr(member_lines, "lo"));
	assert_int_equal(member_reduce(s, buf, 0, 0, NULL), 0);
	saina_close(s);
	agg_stop(a);
}

/* Probes answered after all, in the midst of training: it is on the fast path from then on. */
static void test_very_late_probes(void **state)
{
	struct agg_conf c = member_conf(1, 1);
	struct saina_job_info info = { .size = sizeof(info), .relayed = true };
	struct saina *s;
	struct agg *a;
	int32_t buf[N];

	c.late_probes = SAINA_MSG_HEARTBEAT;
	a = agg_start(&c);
	member_open_all(a, &s, 1);
	for (int i = 0; i < 500 && info.relayed; i++) {
		assert_int_equal(member_reduce(s, buf, 0, i, NULL), 0);
		usleep(10000);
		assert_int_equal(saina_info(s, &info), 0);
	}
	assert_false(info.relayed);
	assert_non_null(strstr(member_lines, "answered after all"));
	saina_close(s);
	agg_stop(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("join: a refused worker gets the sentence of the refusal", test_refusals),
		statement("join: wrong options and calls are refused with -EINVAL", test_misuse),
		statement("join: without probe replies the worker takes the slow path and says so", test_slow_path),
		statement("join: probe replies during training put the worker on the fast path", test_very_late_probes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
