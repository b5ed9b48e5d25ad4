// SPDX-License-Identifier: GPL-2.0-or-later
/* The process saina-uplink of a job: started, with all it needs, and cleaned up after. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "agent/uplink/internal.h"

/* $SAINA_UPLINK, else beside sainad, else ../lib/saina from there. */
static const char *program(char *path, size_t size)
{
	static const char *const where[] = { "/saina-uplink", "/../lib/saina/saina-uplink" };
	const char *given = getenv("SAINA_UPLINK");
	char self[PATH_MAX];
	ssize_t n;

	if (given)
		return given;
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return NULL;
	self[n] = 0;
	*strrchr(self, '/') = 0;
	for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++) {
		snprintf(path, size, "%s%s", self, where[i]);
		if (!access(path, X_OK))
			return path;
	}
	return NULL;
}

/*
 * The first line of the parent's token file.  Not more than a token: who may configure jobs of this
 * network namespace, but not read every file of the host, learns nothing.
 */
static int token_read(const char *path, __u8 *token, char *why, size_t size)
{
	char line[SAINA_TOKEN_LEN + 2] = "";
	ssize_t n = 0;
	int fd, ret;

	memset(token, 0, SAINA_TOKEN_LEN);
	if (!path[0])
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0)
		n = read(fd, line, sizeof(line) - 1);
	ret = fd < 0 || n < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	if (ret) {
		snprintf(why, size, "parent-token-file: cannot read %s: %s", path, strerror(-ret));
		return ret;
	}
	line[strcspn(line, "\n")] = 0;
	if (!line[0] || strlen(line) > SAINA_TOKEN_LEN) {
		snprintf(why, size, "parent-token-file: the first line of %s is no token of 1..%d characters",
			 path, SAINA_TOKEN_LEN);
		return -EINVAL;
	}
	memcpy(token, line, strlen(line));
	return 0;
}

/* The parent's job: a number, else a name. */
static void parent_fill(struct uplink_handover *h, const struct saina_uplink *u)
{
	h->parent_ip = u->address;
	h->parent_udp_port = ntohs(u->port);
	h->parent_worker = u->worker;
	if (u->job[strspn(u->job, "0123456789")])
		memcpy(h->parent_name, u->job, sizeof(h->parent_name));
	else
		h->parent_job = strtoul(u->job, NULL, 10);
}

int relay_handover(struct uplink *u, const struct saina_job *job, struct uplink_handover *h, char *why,
		   size_t size)
{
	*h = (struct uplink_handover){
		.version = UPLINK_VERSION,
		.size = sizeof(*h),
		.job = job->id,
		.worker = job->workers,
		.elem = job->elem,
		.max_weight = saina_job_weight(job, job->workers),
		.payload = job->payload,
		.segments = job->segments,
		.pool = job->pool,
		.ring = job->ring,
		.elements = job->elements,
		.incarnation = u->incarnation,
		.ip = u->a->addr.s_addr,
		.udp_port = SAINA_PORT_CTRL,
	};
	memcpy(h->token, job->token, sizeof(h->token));
	parent_fill(h, &job->uplink);
	if (gethostname(h->node, sizeof(h->node) - 1))
		snprintf(h->node, sizeof(h->node), "%s", job->name);
	h->node[sizeof(h->node) - 1] = 0;
	return token_read(job->uplink.token_file, h->parent_token, why, size);
}

static int handover_send(int fd, const struct uplink_handover *h, const int fds[UPLINK_FD_COUNT])
{
	union {
		char buf[CMSG_SPACE(UPLINK_FD_COUNT * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { (void *)h, sizeof(*h) };
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(UPLINK_FD_COUNT * sizeof(int));
	memcpy(CMSG_DATA(c), fds, UPLINK_FD_COUNT * sizeof(int));
	return sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

static void child(const char *path, const char *job, int fd)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (fd == UPLINK_FD ? fcntl(fd, F_SETFD, 0) : dup2(fd, UPLINK_FD) < 0)
		_exit(126);
	syscall(SYS_close_range, UPLINK_FD + 1, ~0u, 0);
	execl(path, "saina-uplink", job, NULL);
	dprintf(STDERR_FILENO, "saina-uplink: cannot execute %s: %s\n", path, strerror(errno));
	_exit(127);
}

bool relay_watch(struct uplink *u)
{
	return !loop_add(&u->a->loop, &u->process, EPOLLIN) && !loop_add(&u->a->loop, &u->socket, EPOLLIN);
}

static int process_start(struct uplink *u, int theirs, char *why, size_t size)
{
	char path[PATH_MAX + 32], job[8];
	const char *name = program(path, sizeof(path));

	if (!name) {
		snprintf(why, size, "there is no program saina-uplink beside sainad, or in ../lib/saina");
		return -ENOENT;
	}
	snprintf(job, sizeof(job), "%u", u->job);
	u->pid = fork();
	if (!u->pid)
		child(name, job, theirs);
	if (u->pid < 0) {
		u->pid = 0;
		snprintf(why, size, "cannot start saina-uplink: %s", strerror(errno));
		return -EAGAIN;
	}
	u->process.fd = syscall(SYS_pidfd_open, u->pid, 0);
	if (u->process.fd >= 0 && relay_watch(u))
		return 0;
	snprintf(why, size, "cannot watch saina-uplink: %s", strerror(errno));
	kill(u->pid, SIGKILL);
	return -EIO;
}

int relay_start(struct uplink *u, const struct saina_job *job, char *why, size_t size)
{
	struct uplink_handover h;
	int pair[2], fds[UPLINK_FD_COUNT], ret;

	ret = relay_handover(u, job, &h, why, size);
	if (ret)
		return ret;
	ret = saina_dp_uplink_grant(u->a->dp, job->id, &fds[UPLINK_FD_HOT]);
	if (ret) {
		snprintf(why, size, "%s", saina_dp_error(u->a->dp));
		return ret;
	}
	/* a relay that starts again finds its port, unless that was an earlier sainad's or is removed */
	if (u->link.netns < 0 || (int)if_nametoindex(u->link.name) != u->link.ifindex)
		link_remove(u->a, &u->link);
	if (!u->link.name[0])
		ret = link_make(u->a, &u->link, job->id, h.incarnation, why, size);
	if (ret)
		goto out;
	fds[UPLINK_FD_NETNS] = u->link.netns;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair)) {
		ret = -errno;
		snprintf(why, size, "cannot make a socket: %s", strerror(-ret));
		goto out;
	}
	fcntl(pair[1], F_SETFL, 0);
	u->socket.fd = pair[0];
	ret = handover_send(pair[0], &h, fds);
	if (ret)
		snprintf(why, size, "cannot hand over to saina-uplink: %s", strerror(-ret));
	else
		ret = process_start(u, pair[1], why, size);
	close(pair[1]);
out:
	close(fds[UPLINK_FD_HOT]);
	close(fds[UPLINK_FD_AWAY]);
	if (ret)
		relay_reap(u);
	return ret;
}

void relay_leave(struct uplink *u)
{
	loop_del(&u->a->loop, &u->process);
	close(u->process.fd);
	loop_del(&u->a->loop, &u->socket);
	close(u->socket.fd);
	close(u->link.netns);
}

void relay_reap(struct uplink *u)
{
	int status;

	if (u->process.fd >= 0) {
		loop_del(&u->a->loop, &u->process);
		close(u->process.fd);
	}
	if (u->socket.fd >= 0) {
		loop_del(&u->a->loop, &u->socket);
		close(u->socket.fd);
	}
	if (u->pid)
		waitpid(u->pid, &status, 0);
	u->process.fd = u->socket.fd = -1;
	u->pid = 0;
}
