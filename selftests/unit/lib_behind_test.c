// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Being forgotten, left behind, and come back: one or two workers stepped by hand
 * against the stand-in aggregator.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include "saina.h"
#include "saina/bpf.h"
#include "lib_member.h"
#include "../lib/statement.h"

static void both(struct saina **s, int round, int32_t buf[2][N])
{
	struct saina_req *r[2];

	for (int i = 0; i < 2; i++) {
		assert_int_equal(member_start(s[i], buf[i], i, round, &r[i]), 0);
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
	struct agg *a;
	struct saina_stats st = { .size = sizeof(st) };
	struct saina *s[2];
	struct saina_req *r;
	int32_t buf[2][N], again[N];

	a = member_job(s, 2, 2);
	both(s, 0, buf);
	agg_forget(a, 1);
	both(s, 1, buf);
	/* And while it waits for the other. */
	assert_int_equal(member_start(s[1], buf[1], 1, 2, &r), 0);
	agg_forget(a, 1);
	assert_int_equal(member_reduce(s[0], again, 0, 2, NULL), 0);
	assert_int_equal(saina_wait(s[1], r, NULL), 0);
	assert_memory_equal(buf[1], again, sizeof(again));
	assert_int_equal(saina_round_done(s[1]), 0);
	both(s, 3, buf);
	saina_get_stats(s[1], &st);
	assert_true(st.rejoins >= 1);
	member_close_all(a, s, 2);
}

static void test_stopped(void **state)
{
	struct agg *a;
	struct saina *s[2];
	struct saina_req *r;
	int32_t buf[N];

	a = member_job(s, 2, 2);
	assert_int_equal(member_start(s[0], buf, 0, 0, &r), 0);
	agg_stop_job(a);
	assert_int_equal(saina_wait(s[0], r, NULL), -ECONNRESET);
	assert_non_null(strstr(saina_strerror(s[0], -ECONNRESET), "stopped"));
	assert_int_equal(member_start(s[0], buf, 0, 0, &r), -ECONNRESET);
	member_close_all(a, s, 2);
}

static void test_silence(void **state)
{
	struct agg_conf c = member_conf(1, 1);
	struct agg *a = agg_start(&c);
	struct saina_opts o = member_opts(a, 0);
	struct saina *s;
	int32_t buf[N];

	o.timeout_ms = 2500;
	assert_int_equal(saina_open(&s, &o), 0);
	assert_int_equal(member_reduce(s, buf, 0, 0, NULL), 0);
	agg_set_loss(a, 1.1);
	assert_int_equal(saina_allreduce(s, buf, N, SAINA_INT32, SAINA_SUM, NULL), -ETIMEDOUT);
	assert_non_null(strstr(saina_strerror(s, -ETIMEDOUT), "nothing heard"));
	saina_close(s);
	agg_stop(a);
}

/* A worker dies: the other's round completes at its next retransmission. */
static void test_death(void **state)
{
	struct agg *a;
	struct saina_call call = { .size = sizeof(call) };
	struct saina *s[2];
	struct saina_req *r;
	int32_t buf[N];

	a = member_job(s, 2, 2);
	assert_int_equal(member_start(s[0], buf, 0, 0, &r), 0);
	while (!agg_next_round(a))		/* until the round has opened */
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	agg_kill(a, 1);
	assert_int_equal(saina_wait(s[0], r, &call), 0);
	assert_int_equal(call.mask_any, 1);
	assert_int_equal(call.degraded_segments, (N + 63) / 64);
	member_close_all(a, s, 2);
}

/* Who goes on logs it, once. */
static void test_death_logged(void **state)
{
	static const char line[] = "job 20: no round since round 0 has all workers: 1 of 2 are here; rank 1 is missing\n";
	struct saina_job_info info = { .size = sizeof(info) };
	struct agg *a;
	struct saina *s[2];
	int32_t buf[2][N];
	int round = 1;

	a = member_job(s, 2, 2);
	both(s, 0, buf);
	agg_kill(a, 1);
	do {
		assert_int_equal(member_reduce(s[0], buf[0], 0, round++, NULL), 0);
		assert_int_equal(saina_info(s[0], &info), 0);
	} while (info.active != 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(member_reduce(s[0], buf[0], 0, round++, NULL), 0);
	member_close_all(a, s, 2);
	assert_string_equal(member_lines, line);
}

/* Results by multicast do not reach worker 1: it asks, and pulls them. */
static void test_deaf(void **state)
{
	struct agg *a;
	struct saina *s[2];
	int32_t buf[2][N];

	a = member_job(s, 2, 2);
	agg_hold_multicast(a, 1, true);
	for (int i = 0; i < 3; i++)
		both(s, i, buf);
	assert_true(agg_count(a, SAINA_C_PULLED) > 0);
	assert_int_equal(agg_count(a, SAINA_C_RESENT), 0);
	member_close_all(a, s, 2);
}

static void alone(struct saina *s, int worker, int round, struct saina_call *call)
{
	int32_t buf[N];

	member_fill(buf, worker, round);
	call->size = sizeof(*call);
	assert_int_equal(saina_allreduce(s, buf, N, SAINA_INT32, SAINA_SUM, call), 0);
}

/*
 * Worker 1 thinks for three rounds; it has heard the results or not; it comes back,
 * gets them one by one, and its gradients are counted in the end.
 */
static void catch_up(bool deaf)
{
	struct agg *a;
	struct saina_stats st = { .size = sizeof(st) };
	struct saina_call call;
	struct saina *s[2];
	int32_t buf[N], res[N], mine[N], sum[N] = { 0 };

	a = member_job(s, 2, 1);
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
		member_fill(buf, 1, i);
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
		member_fill(mine, 0, i);
		assert_memory_equal(buf, mine, sizeof(buf));
		assert_int_equal(saina_residual(s[1], 0, N, SAINA_INT32, res), 0);
		assert_memory_equal(res, sum, sizeof(res));
	}
	assert_int_equal(saina_decided(s[1]), 0);
	/* k = 1: now it is first. */
	member_fill(buf, 1, 3);
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
	member_close_all(a, s, 2);
}

static void test_catch_up(void **state)
{
	catch_up(false);
}

static void test_catch_up_deaf(void **state)
{
	catch_up(true);
}

/* The next result that @s hears of names @worker, as the one that is up to date. */
static void assert_counted(struct saina *s, uint32_t round, int worker)
{
	struct saina_job_info info = { .size = sizeof(info) };

	do {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		assert_int_equal(saina_info(s, &info), 0);
	} while (info.counted_round != round);
	assert_int_equal(info.counted, 1 << worker);
}

/* Too far behind: said so, nothing lost, and on at another round. */
static void test_stale(void **state)
{
	struct agg *a;
	struct saina_job_info info = { .size = sizeof(info) };
	struct saina_call call;
	struct saina *s[2];
	int32_t buf[N], own[N], res[N];

	a = member_job(s, 2, 1);
	agg_hold_multicast(a, 1, true);
	for (int i = 0; i < 9; i++)
		alone(s[0], 0, i, &call);
	member_fill(buf, 1, 0);
	memcpy(own, buf, sizeof(own));
	assert_int_equal(saina_allreduce(s[1], buf, N, SAINA_INT32, SAINA_SUM, NULL), -ESTALE);
	assert_non_null(strstr(saina_strerror(s[1], -ESTALE), "saina_set_round"));
	assert_int_equal(saina_allreduce(s[1], buf, N, SAINA_INT32, SAINA_SUM, NULL), -ESTALE);
	assert_int_equal(saina_residual(s[1], 0, N, SAINA_INT32, res), 0);
	assert_memory_equal(res, own, sizeof(res));
	assert_int_equal(saina_info(s[1], &info), 0);
	assert_int_equal(info.next_round, 9);
	assert_int_equal(info.counted, 0);
	agg_hold_multicast(a, 1, false);
	alone(s[0], 0, 9, &call);
	assert_counted(s[1], 9, 0);
	assert_int_equal(saina_set_round(s[1], 10), 0);
	member_fill(buf, 1, 10);
	for (int j = 0; j < N; j++)
		own[j] += buf[j];
	assert_int_equal(saina_allreduce(s[1], buf, N, SAINA_INT32, SAINA_SUM, &call), 0);
	assert_int_equal(call.round, 10);
	assert_counted(s[1], 10, 1);
	assert_counted(s[0], 10, 1);
	assert_int_equal(call.mask_all, 2);
	assert_memory_equal(buf, own, sizeof(buf));
	member_close_all(a, s, 2);
}

/* Worker 1 is left behind: the round at which it is to go on. */
static uint32_t leave_behind(struct agg *a, struct saina **s)
{
	struct saina_job_info info = { .size = sizeof(info) };
	struct saina_call call;
	int32_t buf[N];

	agg_hold_multicast(a, 1, true);
	for (int i = 0; i < 9; i++)
		alone(s[0], 0, i, &call);
	assert_int_equal(member_reduce(s[1], buf, 1, 0, NULL), -ESTALE);
	agg_hold_multicast(a, 1, false);
	assert_int_equal(saina_info(s[1], &info), 0);
	return info.next_round;
}

/*
 * Worker 1 is left behind, worker 0 has started @r of @buf in a round that needs both: that
 * round.
 */
static uint32_t wait_for_behind(struct agg *a, struct saina **s, int32_t *buf, struct saina_req **r)
{
	uint32_t next;

	member_open_all(a, s, 2);
	next = leave_behind(a, s);
	agg_policy(a, 2);
	assert_int_equal(member_start(s[0], buf, 0, next, r), 0);
	while (agg_next_round(a) == next)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	return next;
}

/* A trainer goes on one round too far: the other one waits for it in the round before. */
static void test_too_far(void **state)
{
	struct agg_conf c = member_conf(2, 1);
	struct agg *a = agg_start(&c);
	struct saina_call call = { .size = sizeof(call) };
	struct saina *s[2];
	struct saina_req *r;
	int32_t buf[2][N];
	uint32_t next;

	next = wait_for_behind(a, s, buf[0], &r);
	assert_int_equal(saina_set_round(s[1], next + 1), 0);
	assert_int_equal(member_reduce(s[1], buf[1], 1, next, &call), 0);
	assert_int_equal(call.round, next);
	assert_int_equal(call.mask_all, 3);
	assert_int_equal(saina_wait(s[0], r, &call), 0);
	assert_memory_equal(buf[0], buf[1], sizeof(buf[0]));
	assert_int_equal(saina_round_done(s[0]), 0);
	/* And on, side by side. */
	assert_int_equal(member_start(s[0], buf[0], 0, next + 1, &r), 0);
	assert_int_equal(member_reduce(s[1], buf[1], 1, next + 1, &call), 0);
	assert_int_equal(call.round, next + 1);
	assert_int_equal(call.mask_all, 3);
	assert_int_equal(saina_wait(s[0], r, NULL), 0);
	member_close_all(a, s, 2);
}

/* ... and that other one has died, in the middle of the round. */
static void test_too_far_alone(void **state)
{
	struct agg_conf c = member_conf(2, 1);
	struct agg *a = agg_start(&c);
	struct saina_call call = { .size = sizeof(call) };
	struct saina *s[2];
	struct saina_req *r;
	int32_t buf[2][N];
	uint32_t next;

	next = wait_for_behind(a, s, buf[0], &r);
	agg_kill(a, 0);
	saina_close(s[0]);
	assert_int_equal(saina_set_round(s[1], next + 1), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(member_reduce(s[1], buf[1], 1, i, &call), 0);
		assert_true(call.mask_any & 2);
	}
	saina_close(s[1]);
	agg_stop(a);
}

/* A newcomer may not open a round while the one before is not over. */
static void test_join_in_round(void **state)
{
	struct agg *a;
	struct saina_call call = { .size = sizeof(call) };
	struct saina_opts o;
	struct saina *s[3];
	struct saina_req *r[3][2];
	int32_t buf[3][N];

	a = member_job(s, 3, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(member_start(s[i], buf[i], i, 0, &r[i][0]), 0);
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(saina_wait(s[i], r[i][0], NULL), 0);
		assert_int_equal(saina_round_done(s[i]), 0);
	}
	agg_kill(a, 2);
	saina_close(s[2]);
	/* Two buckets; when the first is over no slot is open. */
	for (int i = 0; i < 2; i++) {
		member_fill(buf[i], i, 1);
		assert_int_equal(saina_allreduce_start(s[i], buf[i], 256, SAINA_INT32, SAINA_SUM,
						       &r[i][0]), 0);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(saina_wait(s[i], r[i][0], NULL), 0);
	o = member_opts(a, 2);
	assert_int_equal(saina_open(&s[2], &o), 0);
	assert_int_equal(member_start(s[2], buf[2], 2, 2, &r[2][0]), 0);
	nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
	assert_int_equal(agg_next_round(a), 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(saina_allreduce_start(s[i], buf[i] + 256, N - 256, SAINA_INT32,
						       SAINA_SUM, &r[i][1]), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(saina_wait(s[i], r[i][1], NULL), 0);
		assert_int_equal(saina_round_done(s[i]), 0);
		assert_int_equal(member_start(s[i], buf[i], i, 2, &r[i][0]), 0);
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(saina_wait(s[i], r[i][0], &call), 0);
		assert_int_equal(call.round, 2);
		assert_int_equal(call.mask_all, 7);
	}
	member_close_all(a, s, 3);
}

/* A newcomer, and all others have died in a round that none of them has sent whole. */
static void test_join_after_deaths(void **state)
{
	struct agg *a;
	struct saina_call call = { .size = sizeof(call) };
	struct saina_opts o;
	struct saina *s[2];
	struct saina_req *r[2];
	int32_t buf[2][N];

	a = member_job(s, 2, 2);
	both(s, 0, buf);
	for (int i = 0; i < 2; i++)
		assert_int_equal(saina_allreduce_start(s[i], buf[i], 256, SAINA_INT32, SAINA_SUM,
						       &r[i]), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(saina_wait(s[i], r[i], NULL), 0);
	for (int i = 0; i < 2; i++) {
		agg_kill(a, i);
		saina_close(s[i]);
	}
	o = member_opts(a, 1);
	assert_int_equal(saina_open(&s[1], &o), 0);
	alone(s[1], 1, 2, &call);
	assert_int_equal(call.round, 2);
	assert_int_equal(call.mask_all, 2);
	saina_close(s[1]);
	agg_stop(a);
}

/* Worker 1 has taken part once and computes; it misses results, and gets them all the same. */
static void test_fetch(void **state)
{
	struct agg *a;
	struct saina_stats st = { .size = sizeof(st) };
	struct saina_call call;
	struct saina *s[2];
	uint64_t had;

	a = member_job(s, 2, 1);
	for (int i = 0; i < 2; i++)
		alone(s[i], i, 0, &call);
	saina_get_stats(s[1], &st);
	had = st.results;
	agg_hold_multicast(a, 1, true);
	/* The newest round is not known to be decided. */
	for (int i = 1; i < 4; i++)
		alone(s[0], 0, i, &call);
	for (int i = 0; i < 10000 && st.results < had + 2 * ((N + 63) / 64); i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		saina_get_stats(s[1], &st);
	}
	assert_int_equal(st.results, had + 2 * ((N + 63) / 64));
	assert_int_equal(saina_decided(s[1]), 1);
	member_close_all(a, s, 2);
}

/*
 * Float32, into a running job: what the newcomer sends is summed with what others send, exactly here,
 * whatever their exponents.
 */
static void test_newcomer(void **state)
{
	struct agg *a;
	struct saina_job_info info = { .size = sizeof(info) };
	struct saina_call call = { .size = sizeof(call) };
	struct saina_opts o;
	struct saina *s[2];
	struct saina_req *r[2];
	float buf[2][N];

	a = member_job(s, 2, 2);
	for (int round = 0; round < 8; round++) {
		if (round == 4) {
			agg_kill(a, 1);
			saina_close(s[1]);
			s[1] = NULL;
		}
		if (round == 6) {
			o = member_opts(a, 1);
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
	assert_int_equal(agg_count(a, SAINA_C_EXPONENT), 0);
	member_close_all(a, s, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("behind: a worker joins again by itself after the agent was restarted", test_rejoin),
		statement("behind: workers of a stopped job get an error", test_stopped),
		statement("behind: silence ends a call with -ETIMEDOUT and a sentence", test_silence),
		statement("behind: a round completes after a worker has died", test_death),
		statement("behind: who goes on logs, once, which worker has died", test_death_logged),
		statement("behind: a worker without multicast pulls the results that STATUS announces", test_deaf),
		statement("behind: a worker that is late gets the results that are kept", test_catch_up),
		statement("behind: a late worker without multicast gets the results that are kept", test_catch_up_deaf),
		statement("behind: a worker too far behind loses no gradient and goes on at another round", test_stale),
		statement("behind: a worker set one round too far takes part in the round that waits for it", test_too_far),
		statement("behind: a worker set one round too far goes on when all others are dead", test_too_far_alone),
		statement("behind: a worker that joins does not open a round before the last one is over", test_join_in_round),
		statement("behind: a worker that joins after all others have died opens a round", test_join_after_deaths),
		statement("behind: a worker that computes pulls results that it has missed", test_fetch),
		statement("behind: gradients of a float32 worker that joins a running job are summed with the others'", test_newcomer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
