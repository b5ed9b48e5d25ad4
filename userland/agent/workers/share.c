// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * By reference: lends workers of this host the memory that they share with the data path
 * (uapi/saina/share.h), at a unix socket in the runtime directory.  Who knows a worker's
 * session gets that worker's array and its job's board; both are taken back, as far as that
 * can be, when it leaves or dies.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "agent/workers/internal.h"

#define BATCH 16 /* questions before others get their turn */

static struct log_limit limit;

struct question {
	struct saina_share_ask ask;
	int answer; /* a socket of the worker's */
};

__attribute__((format(printf, 3, 4)))
static int refuse(struct saina_share_answer *m, int error, const char *fmt, ...)
{
	va_list ap;

	m->error = -error;
	va_start(ap, fmt);
	vsnprintf(m->text, sizeof(m->text), fmt, ap);
	va_end(ap);
	return error;
}

static int lend(struct agent *a, const struct saina_share_ask *q, struct saina_share_answer *m,
		int fd[2])
{
	const struct saina_job *job = saina_core_job_find(a->jobs->core, 1, q->job, NULL, NULL);
	int ret;

	if (q->version != SAINA_SHARE_VERSION)
		return refuse(m, -EPROTO, "version %u of the question is not understood here, only %u",
			      q->version, SAINA_SHARE_VERSION);
	if (!job || q->worker >= job->workers || !jobs_alive(job, q->worker) ||
	    job->worker[q->worker].bind.session != q->session)
		return refuse(m, -EACCES, "worker %u of job %u is not admitted in this session",
			      q->worker, q->job);
	if (!job->by_reference)
		return refuse(m, -EPERM, "job %s does not work by reference: its operator has not allowed it",
			      job->name);
	ret = saina_dp_share(a->dp, job->id, q->worker, fd, &m->board);
	if (ret)
		return refuse(m, ret, "%s", saina_dp_error(a->dp));
	m->segments = job->segments;
	m->pool = job->pool;
	m->payload = job->payload;
	if (!jobs_worker(a, job, q->worker)->shared)
		log_info("job %s: worker %u (%s) has its input array", job->name, q->worker,
			 job->worker[q->worker].name);
	jobs_worker(a, job, q->worker)->shared = true;
	a->jobs->aux[job->id]->status_due = true;
	return 0;
}

static void answer(struct agent *a, const struct question *q)
{
	union {
		char buf[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct saina_share_answer m = { 0 };
	struct iovec iov = { .iov_base = &m, .iov_len = sizeof(m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;
	int fd[2];

	if (!lend(a, &q->ask, &m, fd)) {
		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), fd, sizeof(fd));
	} else {
		log_limited(&limit, LOG_L_INFO, "by reference: %s", m.text);
	}
	/* who does not hear it asks again */
	if (sendmsg(q->answer, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_limited(&limit, LOG_L_WARN, "by reference: cannot answer worker %u of job %u: %s",
			    q->ask.worker, q->ask.job, strerror(errno));
	if (msg.msg_control) {
		close(fd[0]);
		close(fd[1]);
	}
}

/* A whole question with one descriptor, of a unix socket; what else came is closed. */
static bool receive(int s, struct question *q)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = &q->ask, .iov_len = sizeof(q->ask) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	socklen_t len = sizeof(int);
	struct cmsghdr *c;
	int domain = 0;
	ssize_t n;

	q->answer = -1;
	n = recvmsg(s, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return false;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return true;
	memcpy(&q->answer, CMSG_DATA(c), sizeof(q->answer));
	if (n == sizeof(q->ask) && !(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) &&
	    !getsockopt(q->answer, SOL_SOCKET, SO_DOMAIN, &domain, &len) && domain == AF_UNIX)
		return true;
	close(q->answer);
	q->answer = -1;
	return true;
}

static void share_ready(struct source *s, uint32_t events)
{
	struct question q;

	for (int i = 0; i < BATCH && receive(s->fd, &q); i++) {
		if (q.answer < 0)
			continue;
		answer(s->arg, &q);
		close(q.answer);
	}
}

void share_job_changed(struct agent *a, const struct saina_job *job)
{
	struct job_aux *aux = a->jobs->aux[job->id];

	if (!aux || !job->by_reference)
		return;
	for (int w = 0; w < job->workers; w++) {
		if (jobs_alive(job, w) || !aux->worker[w].shared)
			continue;
		aux->worker[w].shared = false;
		aux->status_due = true;
		if (saina_dp_unshare(a->dp, job->id, w))
			log_error("job %s: %s", job->name, saina_dp_error(a->dp));
	}
}

/* Found in the data path: an earlier agent has lent it. */
static void recall(struct agent *a, const struct saina_job *job, int w, void *arg)
{
	jobs_worker(a, job, w)->shared = saina_dp_is_shared(a->dp, job->id, w);
}

void share_recall(struct agent *a)
{
	jobs_each_alive(a, recall, NULL);
}

uint32_t share_board(struct agent *a, const struct saina_job *job, char *why, size_t size)
{
	uint32_t board;

	if (!job->by_reference) {
		snprintf(why, size, "not allowed for this job");
		return 0;
	}
	for (int w = 0; w < job->workers; w++) {
		if (!jobs_alive(job, w) || jobs_worker(a, job, w)->shared)
			continue;
		snprintf(why, size,
			 "not in use: worker %d (%s) has not asked for its array; is it on this host, and does it know the socket %s/share?",
			 w, job->worker[w].name, a->cfg.runtime_dir);
		return 0;
	}
	board = job->active ? saina_dp_board(a->dp, job->id) : 0;
	snprintf(why, size, board ? "in use" : "not in use: no worker is alive");
	return board;
}

static const char *socket_path(struct agent *a, char *path, size_t size)
{
	return runtime_path(&a->runtime, "share", path, size);
}

int share_init(struct agent *a)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct source *s = &a->workers->share;
	char path[CONFIG_PATH_MAX + 16];
	int ret;

	*s = (struct source){ .ready = share_ready, .arg = a, .fd = -1 };
	socket_path(a, path, sizeof(path));
	if (strlen(path) >= sizeof(addr.sun_path)) {
		log_warn("by reference: the name %s is too long for a socket: no job can work by reference",
			 path);
		return 0;
	}
	strcpy(addr.sun_path, path);
	unlink(path);
	s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return -errno;
	/* whoever can reach it must know a session to get anything */
	if (bind(s->fd, (struct sockaddr *)&addr, sizeof(addr)) || chmod(path, 0666)) {
		ret = -errno;
		log_error("by reference: %s: %s", path, strerror(errno));
		close(s->fd);
		return ret;
	}
	ret = loop_add(&a->loop, s, EPOLLIN);
	if (ret)
		close(s->fd);
	return ret;
}

void share_uninit(struct agent *a)
{
	char path[CONFIG_PATH_MAX + 16];

	if (a->workers->share.fd < 0)
		return;
	loop_del(&a->loop, &a->workers->share);
	close(a->workers->share.fd);
	unlink(socket_path(a, path, sizeof(path)));
}
