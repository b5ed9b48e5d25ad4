// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The socket where workers of this host request shared memory (uapi/saina/shm.h).  A
 * connection has one request and is closed after the reply.  A connection without a request
 * is closed after SILENCE_MS, and each user may have a limited number of these.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/members/internal.h"

#define ACCEPT_BATCH	64	/* connections accepted in one turn of the loop */
#define BACKLOG		256	/* workers of four full jobs, at the same time */
#define PENDING_MAX	256	/* connections whose request has not arrived */
#define PENDING_PER_UID 64	/* of one user */
#define SILENCE_MS	2000
#define CHECK_MS	500

static struct log_limit limit;

struct shm_client {
	struct shm_client *next;
	struct source source;
	struct agent *a;
	struct ucred who;
	uint64_t since;
};

/* The timer runs only while there are connections without a request. */
static void update_timer(struct shm_server *s)
{
	unsigned int ms = s->clients ? CHECK_MS : 0;

	if (s->checking == !!ms)
		return;
	s->checking = ms;
	loop_timer_set(&s->timer, ms, ms);
}

static void close_client(struct shm_client *q)
{
	struct shm_server *s = &q->a->members->shm;
	struct shm_client **at = &s->clients;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	s->n--;
	loop_del(&q->a->loop, &q->source);
	peer_close(&q->a->peers, q->source.fd);
	free(q);
	update_timer(s);
}

static void send_reply(int fd, const struct saina_shm_reply *m, const int map[2])
{
	union {
		char buf[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)m, .iov_len = sizeof(*m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (map) {
		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(2 * sizeof(int));
		memcpy(CMSG_DATA(c), map, 2 * sizeof(int));
	}
	/* the worker asks again if this is lost */
	if (sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EPIPE &&
	    errno != ECONNRESET)
		log_limited(&limit, LOG_L_WARN, "shared memory: cannot answer: %s", strerror(errno));
}

static void send_refusal(struct agent *a, int fd, const struct ucred *who, int error,
			 const char *text)
{
	struct saina_shm_reply m = { .error = -error };

	a->members->shm.counts[SHM_REFUSED]++;
	snprintf(m.text, sizeof(m.text), "%s", text);
	log_limited(&limit, LOG_L_INFO, "shared memory: process %d of user %u: %s", who->pid,
		    who->uid, m.text);
	send_reply(fd, &m, NULL);
}

/* Return: -EAGAIN if no request has arrived; 0: the connection can be closed. */
static int serve_request(struct agent *a, int fd, const struct ucred *who)
{
	struct saina_shm_reply m = { 0 };
	struct saina_shm_request q;
	char text[SAINA_TEXT_LEN];
	ssize_t n = peer_receive(fd, &q, sizeof(q));
	int map[2];

	if (n == -EAGAIN)
		return n;
	if (n == -EBADMSG) {
		send_refusal(
			a, fd, who, -EBADMSG,
			"a request must be one struct saina_shm_request, without file descriptors");
	} else if (n > 0 && n != sizeof(q)) {
		snprintf(text, sizeof(text),
			 "a request has %zu bytes, not %zd: update the older side", sizeof(q), n);
		send_refusal(a, fd, who, -EPROTO, text);
	} else if (n > 0 && !shm_grant(a, &q, &m, map)) {
		a->members->shm.counts[SHM_GRANTED]++;
		send_reply(fd, &m, map);
		close(map[0]);
		close(map[1]);
	} else if (n > 0) {
		send_refusal(a, fd, who, -m.error, m.text);
	} else {
		a->members->shm.counts[SHM_SILENT]++;
	}
	return 0;
}

static void client_ready(struct source *s, uint32_t events)
{
	struct shm_client *q = s->arg;

	if (serve_request(q->a, s->fd, &q->who) != -EAGAIN || events & (EPOLLERR | EPOLLHUP))
		close_client(q);
}

static void close_silent(struct source *timer, uint32_t events)
{
	struct agent *a = timer->arg;
	struct shm_server *s = &a->members->shm;
	uint64_t now = loop_now();
	struct shm_client *q, *next;

	loop_timer_ack(timer);
	for (q = s->clients; q; q = next) {
		next = q->next;
		if (now - q->since < SILENCE_MS * NSEC_PER_MSEC)
			continue;
		s->counts[SHM_SILENT]++;
		log_limited(
			&limit, LOG_L_INFO,
			"shared memory: process %d of user %u has sent no request for %u ms: its connection is closed",
			q->who.pid, q->who.uid, SILENCE_MS);
		close_client(q);
	}
}

static unsigned int count_clients(const struct shm_server *s, uid_t uid)
{
	unsigned int n = 0;

	for (const struct shm_client *q = s->clients; q; q = q->next)
		n += q->who.uid == uid;
	return n;
}

/* Waits for the request, if the limits allow it. */
static void await_request(struct agent *a, int fd, const struct ucred *who)
{
	struct shm_server *s = &a->members->shm;
	struct shm_client *q = NULL;

	if (s->n < PENDING_MAX && count_clients(s, who->uid) < PENDING_PER_UID)
		q = calloc(1, sizeof(*q));
	if (q) {
		*q = (struct shm_client){ .source = { .fd = fd, .ready = client_ready, .arg = q },
					  .a = a,
					  .who = *who,
					  .since = loop_now(),
					  .next = s->clients };
		if (!loop_add(&a->loop, &q->source, EPOLLIN)) {
			s->clients = q;
			s->n++;
			update_timer(s);
			return;
		}
		free(q);
	}
	s->counts[SHM_CROWDED]++;
	send_refusal(
		a, fd, who, -EBUSY,
		"too many connections are open without a request, of this user or in all: try again, or close some");
	peer_close(&a->peers, fd);
}

static void accept_clients(struct source *s, uint32_t events)
{
	struct agent *a = s->arg;
	struct ucred who;
	int fd;

	for (int i = 0; i < ACCEPT_BATCH; i++) {
		fd = peer_accept(&a->peers, s->fd, &who);
		/* the next connection triggers another try */
		if (fd == -EAGAIN || fd == -EBUSY)
			return;
		if (fd < 0)
			continue;
		if (serve_request(a, fd, &who) == -EAGAIN)
			await_request(a, fd, &who);
		else
			peer_close(&a->peers, fd);
	}
	loop_change(&a->loop, s, EPOLLIN | EPOLLET); /* more may wait */
}

static const char *socket_path(struct agent *a, char *path, size_t size)
{
	return runtime_path(&a->runtime, "share", path, size);
}

int shm_server_init(struct agent *a)
{
	struct shm_server *s = &a->members->shm;
	char path[CONFIG_PATH_MAX + 16];
	int ret;

	s->listener = (struct source){ .ready = accept_clients, .arg = a, .fd = -1 };
	s->timer = (struct source){ .ready = close_silent, .arg = a, .fd = -1 };
	socket_path(a, path, sizeof(path));
	unlink(path);
	/* everybody may connect, but only a valid session gets memory */
	s->listener.fd = peer_listen(path, SOCK_SEQPACKET, BACKLOG);
	if (s->listener.fd == -ENAMETOOLONG) {
		log_warn(
			"shared memory: the path %s is too long for a socket: no job can share memory; set a shorter --runtime-dir",
			path);
		s->listener.fd = -1;
		return 0;
	}
	if (s->listener.fd < 0) {
		log_error("shared memory: %s: %s", path, strerror(-s->listener.fd));
		return s->listener.fd;
	}
	ret = loop_timer_add(&a->loop, &s->timer);
	if (!ret)
		ret = loop_add(&a->loop, &s->listener, EPOLLIN | EPOLLET);
	if (!ret)
		return 0;
	loop_timer_del(&a->loop, &s->timer);
	close(s->listener.fd);
	unlink(path);
	return ret;
}

void shm_server_uninit(struct agent *a)
{
	struct shm_server *s = &a->members->shm;
	char path[CONFIG_PATH_MAX + 16];

	if (s->listener.fd < 0)
		return;
	while (s->clients)
		close_client(s->clients);
	loop_timer_del(&a->loop, &s->timer);
	loop_del(&a->loop, &s->listener);
	peer_unlisten(&a->peers, s->listener.fd);
	unlink(socket_path(a, path, sizeof(path)));
}
