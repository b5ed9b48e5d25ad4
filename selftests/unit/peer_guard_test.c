// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Connections of hostile processes: no descriptor that they send is installed in this process,
 * and this process never waits for the file of one.  The tests send a TCP socket with unsent
 * bytes and an SO_LINGER of an hour: dropping its last reference takes an hour, and the test
 * fails by its time limit.
 */
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "agent/peer_guard.h"
#include "lib/statement.h"

static char path[64];
static struct peer_guard s;
static int listener, tcp;
static struct sockaddr_in peer = { .sin_family = AF_INET };

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Without the guard, as on kernels before 6.16. */
static int setup(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(peer);

	snprintf(path, sizeof(path), "/tmp/peer_guard_test.%d", getpid());
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	tcp = socket(AF_INET, SOCK_STREAM, 0);
	peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return bind(listener, (struct sockaddr *)&addr, sizeof(addr)) || listen(listener, 16) ||
	       bind(tcp, (struct sockaddr *)&peer, sizeof(peer)) || listen(tcp, 64) ||
	       getsockname(tcp, (struct sockaddr *)&peer, &len);
}

static int teardown(void **state)
{
	unlink(path);
	return 0;
}

static int lingering(void)
{
	struct linger hour = { 1, 3600 };
	static char block[65536];
	int c = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(c, (struct sockaddr *)&peer, sizeof(peer)) ||
	    setsockopt(c, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)))
		_exit(1);
	while (send(c, block, sizeof(block), MSG_DONTWAIT) > 0)
		;
	return c;
}

/* A message of @len bytes, with two copies of descriptor @fd, if that is >= 0. */
static int msg_send(int c, size_t len, int fd)
{
	union {
		char buf[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	char bytes[16] = "question";
	struct iovec iov = { bytes, len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *h;
	int fds[2] = { fd, fd };

	if (fd >= 0) {
		m.msg_control = control.buf;
		m.msg_controllen = sizeof(control.buf);
		h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(fds));
		memcpy(CMSG_DATA(h), fds, sizeof(fds));
	}
	return sendmsg(c, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Messages of a process that has ended by the time they are looked at: "q" a question,
 * "0" an empty message, "d" a question with descriptors, "e" an empty one with some. */
static int hostile(const char *messages)
{
	pid_t pid = fork();
	struct ucred who;
	int status, c, fd;

	if (!pid) {
		struct sockaddr_un addr = { .sun_family = AF_UNIX };

		snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
		c = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		if (connect(c, (struct sockaddr *)&addr, sizeof(addr)))
			_exit(2);
		for (; *messages; messages++)
			if (msg_send(c, strchr("0e", *messages) ? 0 : 16, strchr("de", *messages) ? lingering() : -1))
				_exit(3);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fd = peer_accept(&s, listener, &who);
	assert_true(fd >= 0);
	assert_int_equal(who.pid, pid);
	assert_int_equal(who.uid, getuid());
	return fd;
}

/* Children close all kept connections, and exit. */
static void all_gone(void)
{
	bool left;

	do {
		usleep(1000);
		peer_reap(&s);
		left = s.n;
		for (int i = 0; i < PEERS_CHILDREN; i++)
			left |= s.child[i] != 0;
	} while (left);
}

static void a_question(void **state)
{
	char buf[32];
	int before = descriptors(), fd = hostile("qq");

	assert_int_equal(peer_receive(fd, buf, sizeof(buf)), 16);
	assert_string_equal(buf, "question");
	assert_int_equal(peer_receive(fd, buf, 4), 16); /* longer than the buffer */
	assert_int_equal(peer_receive(fd, buf, sizeof(buf)), 0);
	peer_close(&s, fd);
	assert_int_equal(peer_accept(&s, listener, &(struct ucred){ 0 }), -EAGAIN);
	assert_int_equal(s.foreign, 0);
	assert_int_equal(descriptors(), before);
}

static void with_descriptors(void **state)
{
	static const struct {
		const char *messages;
		int good;	/* of them come first */
	} hostiles[] = { { "d", 0 }, { "e", 0 }, { "qd", 1 }, { "qqqe", 3 }, { "0d", 0 }, { "0000000000000000000000e", 0 } };
	int before = descriptors(), fd;
	uint64_t foreign;
	char buf[32];

	for (size_t i = 0; i < sizeof(hostiles) / sizeof(hostiles[0]); i++)
		for (int reads = 0; reads < 2; reads++) {
			foreign = s.foreign;
			fd = hostile(hostiles[i].messages);
			for (int n = 0; reads && n < hostiles[i].good; n++)
				assert_int_equal(peer_receive(fd, buf, sizeof(buf)), 16);
			for (int n = 0; reads && n < 3; n++)
				assert_int_equal(peer_receive(fd, buf, sizeof(buf)), -EBADMSG);
			peer_close(&s, fd);
			assert_int_equal(s.foreign, foreign + 1);
			all_gone();
			assert_int_equal(descriptors(), before);
		}
}

/* A socket error is reported before the messages in the queue. */
static void after_an_error(void **state)
{
	int before = descriptors(), fd, c;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	uint64_t foreign = s.foreign;
	struct ucred who;
	pid_t pid;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	c = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	assert_int_equal(connect(c, (struct sockaddr *)&addr, sizeof(addr)), 0);
	fd = peer_accept(&s, listener, &who);
	assert_true(fd >= 0);
	assert_int_equal(msg_send(fd, 16, -1), 0); /* which it never reads */
	pid = fork();
	if (!pid)
		_exit(msg_send(c, 16, lingering()) ? 1 : 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(c);
	peer_close(&s, fd);
	assert_int_equal(s.foreign, foreign + 1);
	all_gone();
	assert_int_equal(descriptors(), before);
}

static void not_accepted(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	uint64_t foreign = s.foreign;
	int c[8];
	pid_t pid;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	pid = fork();
	if (!pid) {
		for (int i = 0; i < 8; i++) {
			c[i] = socket(AF_UNIX, SOCK_SEQPACKET, 0);
			if (connect(c[i], (struct sockaddr *)&addr, sizeof(addr)) || msg_send(c[i], 16, lingering()))
				_exit(1);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	peer_unlisten(&s, listener);
	assert_int_equal(s.foreign, foreign + 8);
	all_gone();
}

static void guarded(void **state)
{
	int c;

	unlink(path);
	listener = peer_listen(path, SOCK_SEQPACKET, 16);
	assert_true(listener >= 0);
	c = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	if (peer_refuse_descriptors(listener)) {
		assert_int_equal(errno, ENOPROTOOPT);
	} else {
		struct sockaddr_un addr = { .sun_family = AF_UNIX };

		snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
		assert_int_equal(connect(c, (struct sockaddr *)&addr, sizeof(addr)), 0);
		assert_int_equal(msg_send(c, 16, c), -EPERM); /* before it is accepted */
		assert_int_equal(msg_send(c, 16, -1), 0);
	}
	close(c);
	peer_unlisten(&s, listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("untrusted peers: messages, their lengths and the end of a connection are distinguished", a_question),
		statement("untrusted peers: no descriptor is installed or waited for, whether its message is read or not", with_descriptors),
		statement("untrusted peers: descriptors are found behind an error of the socket", after_an_error),
		statement("untrusted peers: connections that were not accepted are closed without waiting", not_accepted),
		statement("untrusted peers: the kernel refuses descriptors if it supports that", guarded),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown) ? 1 : 0;
}
