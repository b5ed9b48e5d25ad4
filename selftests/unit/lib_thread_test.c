// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The library's thread and its caller's: nothing that takes long, and nobody else's code, is
 * run under the handle's lock; a forked child cannot harm its parent.  SIGALRM ends what hangs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "saina.h"
#include "saina/proto.h"
#include "lib_member.h"
#include "../lib/statement.h"

#define HANGS_S 60

/* --- a socket that takes nothing ------------------------------------------------------- */

static atomic_int stuck_fd = -1, arming;
static atomic_uint refused;

/* As the kernel: waits for room, unless asked not to. */
static int is_stuck(int fd, int flags, const struct msghdr *m)
{
	const struct saina_hdr *h = m->msg_iov->iov_base;

	if (arming && m->msg_iov->iov_len > sizeof(*h) && h->type == SAINA_MSG_GRAD) {
		stuck_fd = fd;
		arming = 0;
	}
	while (fd == stuck_fd) {
		refused++;
		usleep(1000);
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
	struct agg_conf c = member_conf(2, 1);
	struct agg *a = agg_start(&c);
	struct saina_call call = { .size = sizeof(call) };
	struct saina_stats st = { .size = sizeof(st) };
	struct saina *s[2];
	struct saina_req *r;
	int32_t buf[2][N], mine[N];

	alarm(HANGS_S);
	member_open_all(a, s, 2);
	arming = 1;
	member_fill(buf[1], 1, 0);
	assert_int_equal(member_start(s[1], buf[1], &r), 0);
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
	member_fill(buf[1], 1, 1);
	assert_int_equal(saina_allreduce(s[1], buf[1], N, SAINA_INT32, SAINA_SUM, &call), 0);
	assert_int_equal(call.mask_all, 2);
	for (int i = 0; i < N; i++)
		assert_int_equal(buf[1][i], 2 * 2000000 + 1000 + 2 * i);
	member_close_all(a, s, 2);
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
	struct agg_conf c = member_conf(1, 1);
	struct agg *a = agg_start(&c);
	struct saina_job_info info = { .size = sizeof(info) };
	struct saina *s;
	int32_t buf[N], mine[N];
	int status;
	pid_t pid;

	alarm(HANGS_S);
	member_open_all(a, &s, 1);
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
	saina_close(s);
	agg_stop(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("threads: a worker that cannot send gets results, and its caller is not held up", test_stuck),
		statement("threads: a log callback may call the library", test_log),
		statement("threads: a forked child that closes does the parent no harm", test_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
