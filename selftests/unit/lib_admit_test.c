// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Being admitted, refused, forgotten, left behind, and misused: one or two workers
 * stepped by hand against the stand-in aggregator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <time.h>
#include "saina.h"
#include "saina/proto.h"
#include "lib_agg.h"

#define N 1000

static char lines[4096];

static void collect(void *arg, const char *line)
{
	snprintf(lines + strlen(lines), sizeof(lines) - strlen(lines), "%s\n", line);
}

static struct agg_conf conf(unsigned int workers, unsigned int k)
{
	return (struct agg_conf){ .job = 20, .workers = workers, .payload = 64, .pool = 8, .ring = 4,
				  .k = k, .elements = N, .exponent = 20, .fast = true, .seed = 5 };
}

static struct saina_opts opts(struct agg *a, int worker)
{
	lines[0] = 0;
	return (struct saina_opts){ .size = sizeof(struct saina_opts),
				    .aggregator = agg_address(a), .job = 20, .worker = worker,
				    .log = collect, .join_timeout_ms = 1500 };
}

struct opener {
	pthread_t t;
	struct saina_opts o;
	struct saina *s;
	int ret;
};

static void *open_it(void *arg)
{
	struct opener *p = arg;

	p->ret = saina_open(&p->s, &p->o);
	return NULL;
}

/* Opens workers 0 .. n-1, which needs as many threads. */
static void open_all(struct agg *a, struct saina **s, int n)
{
	struct opener p[8];

	for (int i = 0; i < n; i++) {
		p[i].o = opts(a, i);
		p[i].o.join_timeout_ms = 20000;
		assert_int_equal(pthread_create(&p[i].t, NULL, open_it, &p[i]), 0);
	}
	for (int i = 0; i < n; i++) {
		pthread_join(p[i].t, NULL);
		if (p[i].ret)
			print_error("worker %d: %s\n", i, lines);
		assert_int_equal(p[i].ret, 0);
		s[i] = p[i].s;
	}
}

static void fill(int32_t *buf, int worker, int round)
{
	for (int i = 0; i < N; i++)
		buf[i] = (worker + 1) * 1000000 + round * 1000 + i;
}

static int start(struct saina *s, int32_t *buf, struct saina_req **r)
{
	return saina_allreduce_start(s, buf, N, SAINA_INT32, SAINA_SUM, r);
}

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
	struct agg_conf c = conf(1, 1);
	struct saina_opts o;
	struct saina *s, *none;
	struct agg *a;

	c.token = "secret";
	a = agg_start(&c);
	o = opts(a, -1);
	refused(a, o, -EACCES, "token");
	o.token = "secret";
	o.elements = N + 1;
	refused(a, o, -EMSGSIZE, "1000 elements");
	o.elements = 0;
	o.worker = 5;
	refused(a, o, -EUSERS, "full");
	o.worker = 64;
	refused(a, o, -EINVAL, "0..63");
	o.worker = -1;
	o.job = 256;
	refused(a, o, -EINVAL, "0..255");
	o.job = 21;				/* nobody answers for it */
	refused(a, o, -ETIMEDOUT, "is sainad running");
	o.job = 20;
	o.token = "a token of more than thirty-two bytes";
	refused(a, o, -EINVAL, "longer");
	o.token = "secret";
	o.aggregator = "10.0.0";
	refused(a, o, -EINVAL, "10.0.0");
	o.aggregator = "10.0.0.1:70000";
	refused(a, o, -EINVAL, "70000");
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
	o.worker = 0;				/* joining twice */
	refused(a, o, -EBUSY, "alive already");
	saina_close(s);
	assert_int_equal(saina_open(&s, &o), 0);	/* it has left */
	saina_close(s);
	agg_stop(a);
}

static void test_start_timeout(void **state)
{
	struct agg_conf c = conf(3, 3);
	struct agg *a = agg_start(&c);
	struct saina_opts o = opts(a, 0);

	o.start_timeout_ms = 1000;
	refused(a, o, -ETIMEDOUT, "1 of 3 are there");
	agg_stop(a);
}

static void test_misuse(void **state)
{
	struct agg_conf c = conf(1, 1);
	struct agg *a = agg_start(&c);
	struct saina *s;
	struct saina_req *r, *r2;
	struct saina_call call = { .size = sizeof(call) };
	struct saina_job_info info = { .size = 0 };
	struct saina_segment g = { .size = sizeof(g) };
	int32_t buf[N];
	float f[N] = { 0 };

	open_all(a, &s, 1);
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

	fill(buf, 0, 0);
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
	assert_int_equal(saina_residual(s, 0, 5000, SAINA_INT32, buf), -EINVAL);
	assert_int_equal(saina_residual(s, 0, N, SAINA_FLOAT32, f), 0);
	saina_close(s);
	assert_int_equal(saina_close(NULL), -EINVAL);
	agg_stop(a);
}

/* No probe comes back: said with the remedy, and it works all the same. */
static void test_slow_path(void **state)
{
	struct agg_conf c = conf(1, 1);
	struct saina *s;
	struct agg *a;
	int32_t buf[N];

	c.fast = false;
	a = agg_start(&c);
	open_all(a, &s, 1);
	assert_non_null(strstr(lines, "gro on"));
	assert_non_null(strstr(lines, "lo"));
	fill(buf, 0, 0);
	assert_int_equal(saina_allreduce(s, buf, N, SAINA_INT32, SAINA_SUM, NULL), 0);
	saina_close(s);
	agg_stop(a);
}

/* What is said before READY is heard does not end its being said. */
static void test_early_status(void **state)
{
	struct agg_conf c = conf(1, 1);
	struct saina_job_info info = { .size = sizeof(info) };
	struct saina *s;
	struct agg *a;
	int32_t buf[N];

	c.fast = false;
	c.early_status = true;
	a = agg_start(&c);
	open_all(a, &s, 1);
	assert_int_equal(saina_info(s, &info), 0);
	assert_true(info.relayed);
	fill(buf, 0, 0);
	assert_int_equal(saina_allreduce(s, buf, N, SAINA_INT32, SAINA_SUM, NULL), 0);
	saina_close(s);
	agg_stop(a);
}

/* Probes answered after all, when the worker had said that none is: it is on the fast
 * path, and sums are right.
 */
static void test_late_probes(void **state)
{
	struct agg_conf c = conf(1, 1);
	struct saina_job_info info = { .size = sizeof(info) };
	struct saina *s;
	struct agg *a;
	int32_t buf[N];

	c.late_probes = SAINA_MSG_READY;
	a = agg_start(&c);
	open_all(a, &s, 1);
	assert_non_null(strstr(lines, "gro on"));
	assert_non_null(strstr(lines, "answered after all"));
	assert_int_equal(saina_info(s, &info), 0);
	assert_false(info.relayed);
	fill(buf, 0, 0);
	assert_int_equal(saina_allreduce(s, buf, N, SAINA_INT32, SAINA_SUM, NULL), 0);
	saina_close(s);
	agg_stop(a);
}

/* Still later, in the midst of training: the same. */
static void test_very_late_probes(void **state)
{
	struct agg_conf c = conf(1, 1);
	struct saina_job_info info = { .size = sizeof(info), .relayed = true };
	struct saina *s;
	struct agg *a;
	int32_t buf[N];

	c.late_probes = SAINA_MSG_HEARTBEAT;
	a = agg_start(&c);
	open_all(a, &s, 1);
	for (int i = 0; i < 500 && info.relayed; i++) {
		fill(buf, 0, i);
		assert_int_equal(saina_allreduce(s, buf, N, SAINA_INT32, SAINA_SUM, NULL), 0);
		usleep(10000);
		assert_int_equal(saina_info(s, &info), 0);
	}
	assert_false(info.relayed);
	assert_non_null(strstr(lines, "answered after all"));
	saina_close(s);
	agg_stop(a);
}

/* A host is given time to answer a PROBE. */
static void test_busy(void **state)
{
	struct agg_conf c = conf(1, 1);
	struct saina *s;
	struct agg *a;

	c.busy_ms = 1500;
	a = agg_start(&c);
	open_all(a, &s, 1);
	assert_string_equal(lines, "");
	saina_close(s);
	agg_stop(a);
}

/* Where the job begins is what it says when it runs, not before. */
static void test_old_welcome(void **state)
{
	struct agg_conf c = conf(2, 2);
	struct saina_job_info info = { .size = sizeof(info) };
	struct saina *s[2];
	struct agg *a;

	c.old_welcome = true;
	a = agg_start(&c);
	open_all(a, s, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(saina_info(s[i], &info), 0);
		assert_int_equal(info.round, 0);
		saina_close(s[i]);
	}
	agg_stop(a);
}

static void both(struct saina **s, int round, int32_t buf[2][N])
{
	struct saina_req *r[2];

	for (int i = 0; i < 2; i++) {
		fill(buf[i], i, round);
		assert_int_equal(start(s[i], buf[i], &r[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(saina_wait(s[i], r[i], NULL), 0);
		assert_int_equal(saina_round_done(s[i]), 0);
		for (int j = 0; j < N; j++)
			assert_int_equal(buf[i][j], 3000000 + 2000 * round + 2 * j);
	}
}

/* The agent was restarted: the library joins again by itself, in a round too. */
static void test_rejoin(void **state)
{
	struct agg_conf c = conf(2, 2);
	struct agg *a = agg_start(&c);
	struct saina_stats st = { .size = sizeof(st) };
	struct saina *s[2];
	struct saina_req *r;
	int32_t buf[2][N], again[N];

	open_all(a, s, 2);
	both(s, 0, buf);
	agg_forget(a, 1);
	both(s, 1, buf);
	/* And while it waits for the other. */
	fill(buf[1], 1, 2);
	assert_int_equal(start(s[1], buf[1], &r), 0);
	agg_forget(a, 1);
	fill(again, 0, 2);
	assert_int_equal(saina_allreduce(s[0], again, N, SAINA_INT32, SAINA_SUM, NULL), 0);
	assert_int_equal(saina_wait(s[1], r, NULL), 0);
	assert_memory_equal(buf[1], again, sizeof(again));
	assert_int_equal(saina_round_done(s[1]), 0);
	both(s, 3, buf);
	saina_get_stats(s[1], &st);
	assert_true(st.rejoins >= 1);
	saina_close(s[0]);
	saina_close(s[1]);
	agg_stop(a);
}

static void test_stopped(void **state)
{
	struct agg_conf c = conf(2, 2);
	struct agg *a = agg_start(&c);
	struct saina *s[2];
	struct saina_req *r;
	int32_t buf[N];

	open_all(a, s, 2);
	fill(buf, 0, 0);
	assert_int_equal(start(s[0], buf, &r), 0);
	agg_stop_job(a);
	assert_int_equal(saina_wait(s[0], r, NULL), -ECONNRESET);
	assert_non_null(strstr(saina_strerror(s[0], -ECONNRESET), "stopped"));
	assert_int_equal(start(s[0], buf, &r), -ECONNRESET);
	saina_close(s[0]);
	saina_close(s[1]);
	agg_stop(a);
}

static void test_silence(void **state)
{
	struct agg_conf c = conf(1, 1);
	struct agg *a = agg_start(&c);
	struct saina_opts o = opts(a, 0);
	struct saina *s;
	int32_t buf[N];

	o.timeout_ms = 2500;
	assert_int_equal(saina_open(&s, &o), 0);
	fill(buf, 0, 0);
	assert_int_equal(saina_allreduce(s, buf, N, SAINA_INT32, SAINA_SUM, NULL), 0);
	agg_set_loss(a, 1.1);
	assert_int_equal(saina_allreduce(s, buf, N, SAINA_INT32, SAINA_SUM, NULL), -ETIMEDOUT);
	assert_non_null(strstr(saina_strerror(s, -ETIMEDOUT), "nothing heard"));
	saina_close(s);
	agg_stop(a);
}

/* A worker dies: the other's round completes at its next retransmission. */
static void test_death(void **state)
{
	struct agg_conf c = conf(2, 2);
	struct agg *a = agg_start(&c);
	struct saina_call call = { .size = sizeof(call) };
	struct saina *s[2];
	struct saina_req *r;
	int32_t buf[N];

	open_all(a, s, 2);
	fill(buf, 0, 0);
	assert_int_equal(start(s[0], buf, &r), 0);
	while (!agg_next_round(a))		/* until the round has opened */
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	agg_kill(a, 1);
	assert_int_equal(saina_wait(s[0], r, &call), 0);
	assert_int_equal(call.mask_any, 1);
	assert_int_equal(call.degraded_segments, (N + 63) / 64);
	saina_close(s[0]);
	saina_close(s[1]);
	agg_stop(a);
}

/* Results by multicast do not reach worker 1: answers to retransmissions do. */
static void test_deaf(void **state)
{
	struct agg_conf c = conf(2, 2);
	struct agg *a = agg_start(&c);
	struct agg_count n;
	struct saina *s[2];
	int32_t buf[2][N];

	open_all(a, s, 2);
	agg_hold_multicast(a, 1, true);
	for (int i = 0; i < 3; i++)
		both(s, i, buf);
	agg_count(a, &n);
	assert_true(n.resent > 0);
	saina_close(s[0]);
	saina_close(s[1]);
	agg_stop(a);
}

static void alone(struct saina *s, int worker, int round, struct saina_call *call)
{
	int32_t buf[N];

	fill(buf, worker, round);
	call->size = sizeof(*call);
	assert_int_equal(saina_allreduce(s, buf, N, SAINA_INT32, SAINA_SUM, call), 0);
}

/*
 * Worker 1 thinks for three rounds; it has heard the results or not; it comes back,
 * gets them one by one, and its gradients are counted in the end.
 */
static void catch_up(bool deaf)
{
	struct agg_conf c = conf(2, 1);
	struct agg *a = agg_start(&c);
	struct saina_stats st = { .size = sizeof(st) };
	struct saina_call call;
	struct saina *s[2];
	int32_t buf[N], res[N], mine[N], sum[N] = { 0 };

	open_all(a, s, 2);
	agg_hold_multicast(a, 1, deaf);
	for (int i = 0; i < 3; i++)
		alone(s[0], 0, i, &call);
	/* The last result may still be on its way to the receive thread. */
	for (int i = 0; !deaf && i < 10000 && st.results < 3 * ((N + 63) / 64); i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		saina_get_stats(s[1], &st);
	}
	for (int i = 0; i < 3; i++) {
		/* Deaf, it learns of the others only from answers. */
		if (!deaf)
			assert_int_equal(saina_decided(s[1]), 1);
		fill(buf, 1, i);
		for (int j = 0; j < N; j++)
			sum[j] += buf[j];
		call.size = sizeof(call);
		assert_int_equal(saina_allreduce(s[1], buf, N, SAINA_INT32, SAINA_SUM, &call), 0);
		assert_int_equal(call.mask_any, 1);
		assert_int_equal(call.late_segments, (N + 63) / 64);
		if (!deaf) {
			assert_int_equal(call.skipped_segments, call.late_segments);
			assert_int_equal(call.rounds_behind, 2 - i);
		}
		fill(mine, 0, i);
		assert_memory_equal(buf, mine, sizeof(buf));
		assert_int_equal(saina_residual(s[1], 0, N, SAINA_INT32, res), 0);
		assert_memory_equal(res, sum, sizeof(res));
	}
	assert_int_equal(saina_decided(s[1]), 0);
	/* k = 1: now it is first. */
	fill(buf, 1, 3);
	for (int j = 0; j < N; j++)
		sum[j] += buf[j];
	assert_int_equal(saina_allreduce(s[1], buf, N, SAINA_INT32, SAINA_SUM, &call), 0);
	assert_int_equal(call.mask_all, 2);
	assert_memory_equal(buf, sum, sizeof(buf));
	assert_int_equal(saina_residual(s[1], 0, N, SAINA_INT32, res), 0);
	for (int j = 0; j < N; j++)
		assert_int_equal(res[j], 0);
	saina_get_stats(s[1], &st);
	assert_int_equal(st.late_segments, 3 * ((N + 63) / 64));
	saina_close(s[0]);
	saina_close(s[1]);
	agg_stop(a);
}

static void test_catch_up(void **state)
{
	catch_up(false);
}

static void test_catch_up_deaf(void **state)
{
	catch_up(true);
}

/* Too far behind: said so, nothing lost, and on at another round. */
static void test_stale(void **state)
{
	struct agg_conf c = conf(2, 1);
	struct agg *a = agg_start(&c);
	struct saina_job_info info = { .size = sizeof(info) };
	struct saina_call call;
	struct saina *s[2];
	int32_t buf[N], own[N], res[N];

	open_all(a, s, 2);
	agg_hold_multicast(a, 1, true);
	for (int i = 0; i < 9; i++)
		alone(s[0], 0, i, &call);
	fill(buf, 1, 0);
	memcpy(own, buf, sizeof(own));
	assert_int_equal(saina_allreduce(s[1], buf, N, SAINA_INT32, SAINA_SUM, NULL), -ESTALE);
	assert_non_null(strstr(saina_strerror(s[1], -ESTALE), "saina_set_round"));
	assert_int_equal(saina_allreduce(s[1], buf, N, SAINA_INT32, SAINA_SUM, NULL), -ESTALE);
	assert_int_equal(saina_residual(s[1], 0, N, SAINA_INT32, res), 0);
	assert_memory_equal(res, own, sizeof(res));
	assert_int_equal(saina_info(s[1], &info), 0);
	assert_int_equal(info.next_round, 9);
	assert_int_equal(saina_set_round(s[1], info.next_round), 0);
	fill(buf, 1, 9);
	for (int j = 0; j < N; j++)
		own[j] += buf[j];
	assert_int_equal(saina_allreduce(s[1], buf, N, SAINA_INT32, SAINA_SUM, &call), 0);
	assert_int_equal(call.round, 9);
	assert_int_equal(call.mask_all, 2);
	assert_memory_equal(buf, own, sizeof(buf));
	saina_close(s[0]);
	saina_close(s[1]);
	agg_stop(a);
}

/*
 * Float32, into a running job: the exponent of the newcomer's first round is that of
 * all others, which it works out from the results of the round before.
 */
static void test_newcomer(void **state)
{
	struct agg_conf c = conf(2, 2);
	struct agg *a = agg_start(&c);
	struct saina_job_info info = { .size = sizeof(info) };
	struct saina_call call = { .size = sizeof(call) };
	struct saina_opts o;
	struct saina *s[2];
	struct saina_req *r[2];
	struct agg_count n;
	float buf[2][N];

	open_all(a, s, 2);
	for (int round = 0; round < 8; round++) {
		if (round == 4) {
			agg_kill(a, 1);
			saina_close(s[1]);
			s[1] = NULL;
		}
		if (round == 6) {
			o = opts(a, 1);
			assert_int_equal(saina_open(&s[1], &o), 0);
			saina_info(s[1], &info);
			assert_int_equal(info.round, 6);
		}
		for (int i = 0; i < 2; i++) {
			for (int j = 0; j < N; j++)
				buf[i][j] = (i + 1) * (1 + j % 50) / 1024.0f;
			if (s[i])
				assert_int_equal(saina_allreduce_start(s[i], buf[i], N, SAINA_FLOAT32,
								       SAINA_MEAN, &r[i]), 0);
		}
		for (int i = 0; i < 2; i++) {
			if (!s[i])
				continue;
			assert_int_equal(saina_wait(s[i], r[i], &call), 0);
			assert_int_equal(call.mask_all, s[1] ? 3 : 1);
			assert_int_equal(saina_round_done(s[i]), 0);
			for (int j = 0; j < N; j++)
				assert_true(buf[i][j] == (s[1] ? 1.5f : 1.0f) * (1 + j % 50) / 1024.0f);
		}
	}
	agg_count(a, &n);
	assert_int_equal(n.exponent, 0);
	assert_true(n.pulled > 0);
	saina_close(s[0]);
	saina_close(s[1]);
	agg_stop(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_start_timeout),
		cmocka_unit_test(test_misuse),
		cmocka_unit_test(test_slow_path),
		cmocka_unit_test(test_early_status),
		cmocka_unit_test(test_late_probes),
		cmocka_unit_test(test_very_late_probes),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_old_welcome),
		cmocka_unit_test(test_rejoin),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_deaf),
		cmocka_unit_test(test_catch_up),
		cmocka_unit_test(test_catch_up_deaf),
		cmocka_unit_test(test_stale),
		cmocka_unit_test(test_newcomer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
