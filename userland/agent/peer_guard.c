// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "agent/peer_guard.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

int peer_refuse_descriptors(int listener)
{
	int off = 0;

	return setsockopt(listener, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}

int peer_listen(const char *path, int type, int backlog)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int ret, fd;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	peer_refuse_descriptors(fd);
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)) || errno == EAGAIN) {
		close(fd);
		return -EADDRINUSE;
	}
	if (errno == ECONNREFUSED)
		unlink(path);
	if (!bind(fd, (struct sockaddr *)&addr, sizeof(addr)) && !chmod(path, 0666) &&
	    !listen(fd, backlog))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

/*
 * The control buffer has room for the sender's credentials only, so no descriptor can be
 * installed: the kernel sets MSG_CTRUNC if there are any.  The credentials distinguish an
 * empty message (-ENOMSG) from the end of the connection (0).
 */
static ssize_t receive_checked(int fd, void *buf, size_t size, int flags)
{
	union {
		char buf[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = buf, .iov_len = size };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf,
			    .msg_controllen = sizeof(control.buf) };
	ssize_t n = recvmsg(fd, &m, flags | MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return -errno;
	if (m.msg_flags & MSG_CTRUNC)
		return -EBADMSG;
	if (!n && CMSG_FIRSTHDR(&m))
		return -ENOMSG;
	return n;
}

ssize_t peer_receive(int fd, void *buf, size_t size)
{
	ssize_t n = receive_checked(fd, buf, size, MSG_PEEK);

	if (n > 0)
		n = receive_checked(fd, buf, size, 0);
	return n == -ENOMSG ? -EBADMSG : n;
}

/* Does the queue hold a message with descriptors?  Receives all messages before it. */
static bool has_descriptors(int fd)
{
	int errors = 0;
	char byte;
	ssize_t n;

	/* a socket error, as of a peer that has closed, may precede a message */
	while (errors < 16) {
		n = receive_checked(fd, &byte, 1, MSG_PEEK);
		if (!n || n == -EBADMSG)
			return n;
		if (n > 0 || n == -ENOMSG)
			receive_checked(fd, &byte, 1, 0);
		else
			errors++;
	}
	return true;
}

void peer_close(struct peer_guard *s, int fd)
{
	/* the peer cannot send any more */
	shutdown(fd, SHUT_RD);
	if (!has_descriptors(fd)) {
		close(fd);
		return;
	}
	s->foreign++;
	s->kept[s->n++] = fd;
	peer_reap(s);
}

static bool is_kept(const struct peer_guard *s, int fd)
{
	for (unsigned int i = 0; i < s->n; i++)
		if (s->kept[i] == fd)
			return true;
	return false;
}

/* In a child: holds the kept connections, and nothing else, until the parent has closed them. */
static void hold_open(const struct peer_guard *s, int wait)
{
	int last = wait;
	char byte;

	for (unsigned int i = 0; i < s->n; i++)
		last = s->kept[i] > last ? s->kept[i] : last;
	close_range(last + 1, ~0u, 0);
	for (int fd = 0; fd < last; fd++)
		if (fd != wait && !is_kept(s, fd))
			close(fd);
	while (read(wait, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

void peer_reap(struct peer_guard *s)
{
	pid_t *free_child = NULL, pid;
	int fd[2];

	for (int i = 0; i < PEERS_CHILDREN; i++) {
		if (s->child[i] && waitpid(s->child[i], NULL, WNOHANG))
			s->child[i] = 0;
		if (!s->child[i])
			free_child = &s->child[i];
	}
	if (!s->n || !free_child || pipe2(fd, O_CLOEXEC))
		return;
	pid = fork();
	if (!pid) {
		close(fd[1]);
		hold_open(s, fd[0]);
	}
	if (pid > 0) {
		*free_child = pid;
		while (s->n)
			close(s->kept[--s->n]);
	}
	close(fd[0]);
	close(fd[1]);
}

int peer_accept(struct peer_guard *s, int listener, struct ucred *who)
{
	socklen_t len = sizeof(*who);
	int fd, ret, on = 1;

	peer_reap(s);
	/* each open connection may have to be kept */
	if (s->n >= PEERS_KEPT - PEERS_OPEN)
		return -EBUSY;
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM
			       ? -EBUSY
			       : -errno;
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, who, &len) &&
	    !setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)))
		return fd;
	ret = -errno;
	peer_close(s, fd);
	return ret == -EAGAIN ? -EIO : ret;
}

void peer_unlisten(struct peer_guard *s, int listener)
{
	struct ucred who;
	int fd;

	while ((fd = peer_accept(s, listener, &who)) >= 0)
		peer_close(s, fd);
	close(listener);
}
