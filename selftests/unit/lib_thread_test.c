// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The library's thread and its caller's: nothing that takes long, and nobody else's code, is
 * run under the handle's lock; a forked child cannot harm its parent.  SIGALRM ends what hangs.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "saina.h"
#include "saina/proto.h"
#include "lib_member.h"
#include "monotonic.h"
#include "../lib/statement.h"

#define HANGS_S 240

/* --- a socket that takes nothing ------------------------------------------------------- */

static atomic_int stuck_fd = -1, arming;
static atomic_uint refused, stuck_pause = 1000;

static atomic_int refuse_err;		/* of all gradients, while it is not 0 */
static atomic_uint gradients;		/* sent by a thread that has set: */
static _Thread_local bool counts;

/* As the kernel: waits for room, unless asked not to. */
static int is_stuck(int fd, int flags, const struct msghdr *m)
{
	const struct saina_hdr *h = m->msg_iov->iov_base;

	if (refuse_err && m->msg_iov->iov_len > sizeof(*h) && h->type == SAINA_MSG_GRAD) {
		refused++;
		errno = refuse_err;
		return 1;
	}
	gradients += counts && m->msg_iov->iov_len > sizeof(*h) && h->type == SAINA_MSG_GRAD;
	if (arming && m->msg_iov->iov_len > sizeof(*h) && h->type == SAINA_MSG_GRAD) {
		stuck_fd = fd;
		arming = 0;
	}
	while (fd == stuck_fd) {
		refused++;
		if (stuck_pause)
			usleep(stuck_pause);
		if ((flags & MSG_DONTWAIT) || (fcntl(fd, F_GETFL) & O_NONBLOCK)) {
			errno = EAGAIN;
			return 1;
		}
	}
	return 0;
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	ssize_t (*real)(int, const struct msghdr *, int) = dlsym(RTLD_NEXT, "sendmsg");

	return is_stuck(fd, flags, m) ? -1 : real(fd, m, flags);
}

int sendmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags)
{
	int (*real)(int, struct mmsghdr *, unsigned int, int) = dlsym(RTLD_NEXT, "sendmmsg");

	return is_stuck(fd, flags, &m->msg_hdr) ? -1 : real(fd, m, n, flags);
}

/* Worker 1 cannot send: it hears of results all the same, and its caller is not held up. */
static void test_stuck(void **state)
{
	struct agg *a;
	struct saina_call call = { .size = sizeof(call) };
	struct saina_stats st = { .size = sizeof(st) };
	struct saina *s[2];
	struct saina_req *r;
	int32_t buf[2][N], mine[N];

	alarm(HANGS_S);
	a = member_job(s, 2, 1);
	arming = 1;
	assert_int_equal(member_start(s[1], buf[1], 1, 0, &r), 0);
	while (!refused)
		usleep(1000);
	assert_int_equal(saina_get_stats(s[1], &st), 0);
	member_fill(mine, 0, 0);
	memcpy(buf[0], mine, sizeof(mine));
	assert_int_equal(saina_allreduce(s[0], buf[0], N, SAINA_INT32, SAINA_SUM, NULL), 0);
	assert_int_equal(saina_wait(s[1], r, &call), 0);
	assert_int_equal(call.late_segments, (N + 63) / 64);
	assert_memory_equal(buf[1], mine, sizeof(mine));
	assert_true(stuck_fd >= 0);
	stuck_fd = -1;
	/* It sends again: what was late is counted in the next round. */
	assert_int_equal(saina_round_done(s[1]), 0);
	assert_int_equal(member_reduce(s[1], buf[1], 1, 1, &call), 0);
	assert_int_equal(call.mask_all, 2);
	for (int i = 0; i < N; i++)
		assert_int_equal(buf[1][i], 2 * 2000000 + 1000 + 2 * i);
	member_close_all(a, s, 2);
}

/* A socket that says that it has room and takes nothing is not tried all the time. */
static void test_paced(void **state)
{
	struct agg *a;
	struct saina *s;
	struct saina_req *r;
	int32_t buf[N];
	unsigned int tries;
	uint64_t began, took;

	alarm(HANGS_S);
	a = member_job(&s, 1, 1);
	refused = 0;
	stuck_pause = 0;
	arming = 1;
	assert_int_equal(member_start(s, buf, 0, 0, &r), 0);
	while (!refused)
		usleep(1000);
	began = monotonic_ms();
	refused = 0;
	do
		usleep(300000);
	while (!refused);
	tries = refused;
	took = monotonic_ms() - began;
	stuck_fd = -1;
	stuck_pause = 1000;
	assert_int_equal(saina_wait(s, r, NULL), 0);
	/* one a millisecond, less on a busy machine; spinning it would be 100 times as many */
	assert_in_range(tries, 1, 10 * took);
	member_close_all(a, &s, 1);
}

/* --- a kernel that refuses to send -------------------------------------------------------- */

/* What the kernel refuses is tried again ever more rarely, not counted, and then sent. */
static void test_refused(void **state)
{
	struct agg *a;
	struct saina_stats st = { .size = sizeof(st) };
	struct saina_call call = { .size = sizeof(call) };
	struct saina *s;
	struct saina_req *r;
	int32_t buf[N];
	unsigned int tries;
	time_t begun;

	alarm(HANGS_S);
	a = member_job(&s, 1, 1);
	refused = 0;
	begun = time(NULL);
	refuse_err = EPERM;
	assert_int_equal(member_start(s, buf, 0, 0, &r), 0);
	while (refused < 5)
		usleep(1000);
	usleep(300000);
	tries = refused;
	assert_int_equal(saina_get_stats(s, &st), 0);
	refuse_err = 0;
	/* 1 ms, 2 ms, 4 ms, ..: 9 in half a second, then 4 a second; spinning it would be 10 000 */
	assert_in_range(tries, 5, 20 + 4 * (time(NULL) - begun));
	assert_int_equal(st.sent + st.resent + st.asked + st.pulled, 0);
	assert_non_null(strstr(member_lines, "cannot send to the aggregator"));
	assert_int_equal(saina_wait(s, r, &call), 0);
	assert_int_equal(saina_get_stats(s, &st), 0);
	assert_int_equal(st.sent, (N + 63) / 64);
	member_close_all(a, &s, 1);
}

/* A call ends with the kernel's error, and the other worker need not wait for ever. */
static void test_refused_for_long(void **state)
{
	struct agg_conf c = member_conf(1, 1);
	struct saina_opts o;
	struct agg *a = agg_start(&c);
	struct saina *s;
	int32_t buf[N];

	alarm(HANGS_S);
	o = member_opts(a, 0);
	o.join_timeout_ms = 20000;
	o.timeout_ms = 1000;
	assert_int_equal(saina_open(&s, &o), 0);
	refuse_err = ENETUNREACH;
	assert_int_equal(member_reduce(s, buf, 0, 0, NULL), -ENETUNREACH);
	refuse_err = 0;
	assert_non_null(strstr(saina_strerror(s, 0), "nothing could be sent"));
	saina_close(s);
	agg_stop(a);
}

/* --- several threads of the trainer ------------------------------------------------------ */

#define BUCKETS 4
#define ROUNDS	40

struct bucket {
	pthread_t t;
	struct saina *s;
	struct saina_req *r;
	bool polls;
	int ret;
};

static void *wait_for_it(void *arg)
{
	struct bucket *b = arg;

	/* some look now and then */
	while (b->polls && !saina_poll(b->s, b->r, 1))
		;
	b->ret = saina_wait(b->s, b->r, NULL);
	return NULL;
}

struct trainer {
	pthread_t t;
	struct saina *s;
	int wrong;
};

/*
 * Starts the buckets of a gradient and, round by round, waits for each in a thread of its
 * own, in the same one, or in the other order.
 */
static void *train(void *arg)
{
	struct trainer *m = arg;
	struct bucket b[BUCKETS];
	int32_t buf[BUCKETS][N / BUCKETS];

	for (int round = 0; round < ROUNDS && !m->wrong; round++) {
		for (int i = 0; i < BUCKETS; i++) {
			b[i].s = m->s;
			b[i].polls = (round + i) % 2;
			for (int j = 0; j < N / BUCKETS; j++)
				buf[i][j] = round + i * 1000 + j;
			m->wrong |= saina_allreduce_start(m->s, buf[i], N / BUCKETS, SAINA_INT32,
							  SAINA_SUM, &b[i].r) != 0;
		}
		for (int i = 0; i < BUCKETS && !m->wrong; i++) {
			int at = round % 2 ? i : BUCKETS - 1 - i;

			if (round % 3)
				wait_for_it(&b[at]);
			else
				pthread_create(&b[at].t, NULL, wait_for_it, &b[at]);
		}
		for (int i = 0; i < BUCKETS && !m->wrong; i++) {
			if (round % 3 == 0)
				pthread_join(b[i].t, NULL);
			m->wrong |= b[i].ret != 0;
		}
		for (int i = 0; i < BUCKETS && !m->wrong; i++)
			for (int j = 0; j < N / BUCKETS; j++)
				m->wrong |= buf[i][j] != 2 * (round + i * 1000 + j);
		/* sometimes long enough for the library's thread to take over */
		if (round % 4 == 3)
			usleep(2000);
		if (!m->wrong)
			m->wrong = saina_round_done(m->s) != 0;
	}
	return NULL;
}

static void test_buckets(void **state)
{
	struct agg_conf c = member_conf(2, 2);
	struct agg *a;
	struct trainer m[2] = {};
	struct saina *s[2];

	c.pool = 32;
	a = agg_start(&c);
	alarm(HANGS_S);
	member_open_all(a, s, 2);
	for (int i = 0; i < 2; i++) {
		m[i].s = s[i];
		assert_int_equal(pthread_create(&m[i].t, NULL, train, &m[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(m[i].t, NULL);
	assert_int_equal(m[0].wrong, 0);
	assert_int_equal(m[1].wrong, 0);
	member_close_all(a, s, 2);
}

/* Who waits with a time-out drives, too: its results wake nobody else. */
static void test_poll(void **state)
{
	struct agg *a;
	struct saina *s;
	struct saina_req *r;
	int32_t buf[N];

	alarm(HANGS_S);
	a = member_job(&s, 1, 1);
	counts = true;
	/* the library's thread may be quicker, but not all the time */
	for (int round = 0; !gradients; round++) {
		assert_int_equal(member_start(s, buf, 0, round, &r), 0);
		while (!saina_poll(s, r, 20))
			;
		assert_int_equal(saina_wait(s, r, NULL), 0);
		assert_int_equal(saina_round_done(s), 0);
	}
	counts = false;
	member_close_all(a, &s, 1);
}

/* The trainer's floating-point environment is as it was, and gradients are rounded to nearest. */
static void test_rounding(void **state)
{
	struct agg *a;
	struct saina *s;
	float buf[64], worst = 0;
	int mode;

	alarm(HANGS_S);
	a = member_job(&s, 1, 1);
	for (int i = 0; i < 64; i++)
		buf[i] = 0.7f + (float)i / 3e6f;
	buf[0] = 1024;
	fesetround(FE_UPWARD);
	assert_int_equal(saina_allreduce(s, buf, 64, SAINA_FLOAT32, SAINA_SUM, NULL), 0);
	mode = fegetround();
	fesetround(FE_TONEAREST);
	assert_int_equal(mode, FE_UPWARD);
	/* in units of the block, 2^-20 because of its largest value */
	for (int i = 1; i < 64; i++)
		worst = fmaxf(worst, fabsf(buf[i] - (0.7f + (float)i / 3e6f)) * 0x1p20f);
	assert_true(worst > 0 && worst <= 0.5f);
	member_close_all(a, &s, 1);
}

/* --- callbacks -------------------------------------------------------------------------- */

static struct saina *_Atomic handle_of_log;
static atomic_int rejoins_seen;

static void ask_in_log(void *arg, const char *line)
{
	struct saina_stats st = { .size = sizeof(st) };

	if (handle_of_log && !saina_get_stats(handle_of_log, &st))
		rejoins_seen = st.rejoins;
}

/* A log callback may call the library. */
static void test_log(void **state)
{
	struct agg_conf c = member_conf(1, 1);
	struct agg *a = agg_start(&c);
	struct saina_opts o = member_opts(a, 0);
	struct saina *s;

	alarm(HANGS_S);
	o.log = ask_in_log;
	assert_int_equal(saina_open(&s, &o), 0);
	handle_of_log = s;
	agg_forget(a, 0);
	while (!rejoins_seen)
		usleep(1000);
	handle_of_log = NULL;
	saina_close(s);
	agg_stop(a);
}

/* --- processes -------------------------------------------------------------------------- */

static void test_fork(void **state)
{
	struct agg *a;
	struct saina_job_info info = { .size = sizeof(info) };
	struct saina *s;
	int32_t buf[N], mine[N];
	int status;
	pid_t pid;

	alarm(HANGS_S);
	a = member_job(&s, 1, 1);
	pid = fork();
	if (!pid) {
		alarm(HANGS_S / 4);
		if (saina_info(s, &info) != -ECHILD || !strstr(saina_strerror(s, 0), "forked"))
			_exit(1);
		if (saina_allreduce(s, buf, N, SAINA_INT32, SAINA_SUM, NULL) != -ECHILD)
			_exit(2);
		_exit(saina_close(s) ? 3 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	member_fill(mine, 0, 0);
	memcpy(buf, mine, sizeof(mine));
	assert_int_equal(saina_allreduce(s, buf, N, SAINA_INT32, SAINA_SUM, NULL), 0);
	assert_memory_equal(buf, mine, sizeof(mine));
	member_close_all(a, &s, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("threads: a worker that cannot send gets results, and its caller is not held up", test_stuck),
		statement("threads: a socket that takes nothing is tried again now and then", test_paced),
		statement("threads: what the kernel refuses to send is kept, not counted as sent, and tried again ever more rarely", test_refused),
		statement("threads: an all-reduce of which nothing can be sent ends with the kernel's error", test_refused_for_long),
		statement("threads: all-reduces in flight are waited for by any thread, in any order", test_buckets),
		statement("threads: a thread that waits with a time-out sends and receives itself", test_poll),
		statement("threads: the rounding mode of a thread that waits is kept, and gradients are rounded to nearest", test_rounding),
		statement("threads: a log callback may call the library", test_log),
		statement("threads: a forked child that closes does the parent no harm", test_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
