// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The server: libmicrohttpd without a thread of its own.  Its epoll set is one source of the
 * loop, served in turn like all others.
 *
 * A connection has one request, and TOTAL for all: to send it, to wait and to read the answer,
 * however it spends that.  When the last place is taken, the connection that has been there for
 * longest gives way: one of the address that has most, and one without a whole request before
 * one that is answered.  So whoever asks at once gets an answer, whatever others do.
 *
 * A request is suspended until a snapshot is complete.  A snapshot serves all requests of the
 * next FRESH ns.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <microhttpd.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "agent/metrics/internal.h"

#define CONNECTIONS 32	 /* at a time */
#define TOTAL	    (10 * NSEC_PER_SEC)
#define MEMORY	    8192 /* of a connection, for what it sends */
#define BLOCK	    16384
#define FRESH	    (NSEC_PER_SEC / 4)

/**
 * struct place - a connection
 * @fd: -1: the place is free
 * @has_asked: its request is complete
 * @ended: it has been shut down, and libmicrohttpd is about to notice
 * @host: its address, 0 for a unix socket
 */
struct place {
	int fd;
	bool has_asked, ended;
	uint64_t since;
	struct in6_addr host;
};

/**
 * struct metrics
 * @http: the epoll set of @daemon
 * @timer: when @daemon, or a connection's end, is due
 * @work: an eventfd that is always readable; in the loop while @building
 * @building: the incomplete snapshot, or NULL
 * @last: the newest complete snapshot
 * @waiting: connections that wait for @building
 */
struct metrics {
	struct agent *a;
	struct MHD_Daemon *daemon;
	struct source http, timer, work;
	struct snapshot *building, *last;
	struct MHD_Connection *waiting[CONNECTIONS];
	unsigned int n_waiting;
	struct place place[CONNECTIONS];
	char path[CONFIG_SOCKET_MAX];	/* of a unix socket, to be removed */
	struct log_limit limit;
};

/* Connections */

/* libmicrohttpd sees the end of the connection, and closes it. */
static void end_connection(struct place *p)
{
	shutdown(p->fd, SHUT_RDWR);
	p->ended = true;
}

static bool is_active(const struct place *p)
{
	return p->fd >= 0 && !p->ended;
}

static unsigned int connections_of(const struct metrics *m, const struct in6_addr *host)
{
	unsigned int n = 0;

	for (int i = 0; i < CONNECTIONS; i++)
		n += is_active(&m->place[i]) && !memcmp(&m->place[i].host, host, sizeof(*host));
	return n;
}

/* Does @a give way before @b? */
static bool gives_way(const struct metrics *m, const struct place *a, const struct place *b)
{
	unsigned int na = connections_of(m, &a->host), nb = connections_of(m, &b->host);

	if (na != nb)
		return na > nb;
	return a->has_asked != b->has_asked ? b->has_asked : a->since < b->since;
}

static void make_room(struct metrics *m)
{
	struct place *first = NULL;

	for (int i = 0; i < CONNECTIONS; i++) {
		if (m->place[i].fd < 0 || m->place[i].ended)
			return;
		if (!first || gives_way(m, &m->place[i], first))
			first = &m->place[i];
	}
	end_connection(first);
}

static void set_host(struct place *p, const struct sockaddr *sa)
{
	memset(&p->host, 0, sizeof(p->host));
	if (sa->sa_family == AF_INET6)
		p->host = ((const struct sockaddr_in6 *)sa)->sin6_addr;
	else if (sa->sa_family == AF_INET)
		memcpy(&p->host, &((const struct sockaddr_in *)sa)->sin_addr, 4);
}

static void connection_changed(void *cls, struct MHD_Connection *c, void **place,
			       enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *fd, *sa;
	struct metrics *m = cls;
	struct place *p = *place;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (p)
			p->fd = -1;
		return;
	}
	fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	sa = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	for (p = m->place; p < m->place + CONNECTIONS && p->fd >= 0; p++)
		;
	/* libmicrohttpd has the same limit, so there is a place */
	if (!fd || p == m->place + CONNECTIONS)
		return;
	*p = (struct place){ .fd = fd->connect_fd, .since = loop_now() };
	if (sa)
		set_host(p, sa->client_addr);
	*place = p;
	make_room(m);
}

/* Ends the connections whose time is over.  Return: when the next one's is, UINT64_MAX: never. */
static uint64_t end_overdue(struct metrics *m, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (struct place *p = m->place; p < m->place + CONNECTIONS; p++) {
		if (!is_active(p))
			continue;
		if (now - p->since >= TOTAL)
			end_connection(p);
		else if (p->since + TOTAL < next)
			next = p->since + TOTAL;
	}
	return next;
}

/* Time-out 0 of libmicrohttpd means at once, but after other sources. */
static void rearm_timer(struct metrics *m)
{
	uint64_t now = loop_now(), next = end_overdue(m, now);
	MHD_UNSIGNED_LONG_LONG ms;

	if (MHD_get_timeout(m->daemon, &ms) == MHD_YES && now + ms * NSEC_PER_MSEC < next)
		next = now + ms * NSEC_PER_MSEC;
	loop_timer_set(&m->timer, next == UINT64_MAX ? 0 : (next - now) / NSEC_PER_MSEC + 1, 0);
}

static void run_daemon(struct metrics *m)
{
	MHD_run(m->daemon);
	rearm_timer(m);
}

static void http_ready(struct source *s, uint32_t events)
{
	run_daemon(s->arg);
}

static void timer_ready(struct source *s, uint32_t events)
{
	loop_timer_ack(s);
	run_daemon(s->arg);
}

/* Snapshots */

static void resume_all(struct metrics *m)
{
	while (m->n_waiting)
		MHD_resume_connection(m->waiting[--m->n_waiting]);
	run_daemon(m);
}

static void building_end(struct metrics *m)
{
	loop_del(&m->a->loop, &m->work);
	m->building = NULL;
	resume_all(m);
}

static void work_ready(struct source *s, uint32_t events)
{
	struct metrics *m = s->arg;
	int ret = snapshot_more(m->a, m->building);

	if (ret > 0)
		return;
	if (ret < 0) {
		log_limited(&m->limit, LOG_L_WARN, "metrics: cannot answer a request: %s", strerror(-ret));
		snapshot_put(m->building);
	} else {
		snapshot_put(m->last);
		m->last = m->building;
	}
	building_end(m);
}

static bool is_fresh(const struct metrics *m)
{
	return m->last && loop_now() - m->last->taken_at < FRESH;
}

/* Suspends the connection until there is a snapshot.  Return: false if there cannot be one. */
static bool wait_for_snapshot(struct metrics *m, struct MHD_Connection *c)
{
	if (m->n_waiting == CONNECTIONS)
		return false;
	if (!m->building) {
		m->building = snapshot_begin(m->a);
		if (!m->building)
			return false;
		if (loop_add(&m->a->loop, &m->work, EPOLLIN)) {
			snapshot_put(m->building);
			m->building = NULL;
			return false;
		}
	}
	m->waiting[m->n_waiting++] = c;
	MHD_suspend_connection(c);
	return true;
}

/* Answers */

static ssize_t text_more(void *cls, uint64_t pos, char *buf, size_t max)
{
	size_t n = text_read(cls, buf, max);

	return n ? (ssize_t)n : MHD_CONTENT_READER_END_OF_STREAM;
}

static void text_free(void *cls)
{
	struct text *t = cls;

	snapshot_put(t->s);
	free(t);
}

/* Ends the connection, too. */
static enum MHD_Result send_response(struct MHD_Connection *c, unsigned int status,
				     struct MHD_Response *r, const char *type)
{
	enum MHD_Result ret;

	MHD_add_response_header(r, "Content-Type", type);
	MHD_add_response_header(r, "Connection", "close");
	ret = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return ret;
}

static enum MHD_Result send_text(struct metrics *m, struct MHD_Connection *c)
{
	struct text *t = calloc(1, sizeof(*t));
	struct MHD_Response *r;

	if (!t)
		return MHD_NO;
	t->s = m->last;
	t->s->users++;
	r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, text_more, t, text_free);
	if (!r) {
		text_free(t);
		return MHD_NO;
	}
	return send_response(c, MHD_HTTP_OK, r, "text/plain; version=0.0.4; charset=utf-8");
}

static enum MHD_Result send_error(struct MHD_Connection *c, unsigned int status, const char *text)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), (void *)text,
								MHD_RESPMEM_PERSISTENT);

	if (!r)
		return MHD_NO;
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, "Allow", "GET, HEAD");
	return send_response(c, status, r, "text/plain; charset=utf-8");
}

static void set_asked(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct place *p = info ? info->socket_context : NULL;

	if (p)
		p->has_asked = true;
}

/* Called after the header of a request (*seen is NULL), for each piece of its body, at its
 * end, and again when the connection is resumed. */
static enum MHD_Result handle_request(void *cls, struct MHD_Connection *c, const char *url,
				      const char *method, const char *version, const char *body,
				      size_t *size, void **seen)
{
	struct metrics *m = cls;

	if (!*seen) {
		*seen = m;
		return MHD_YES;
	}
	if (*size) {
		*size = 0;
		return MHD_YES;
	}
	set_asked(c);
	if (strcmp(url, "/metrics"))
		return send_error(c, MHD_HTTP_NOT_FOUND, "sainad serves /metrics only\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return send_error(c, MHD_HTTP_METHOD_NOT_ALLOWED, "/metrics takes GET and HEAD only\n");
	/* after a resume the last snapshot is the one that it waited for */
	if (is_fresh(m) || (*seen == &m->last && m->last))
		return send_text(m, c);
	*seen = &m->last;
	if (wait_for_snapshot(m, c))
		return MHD_YES;
	return send_error(c, MHD_HTTP_SERVICE_UNAVAILABLE, "sainad has no memory for an answer, or too many requests wait\n");
}

/* Where to listen */

static int listen_tcp(const char *address, unsigned int port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	bool six = inet_pton(AF_INET6, address, &in6.sin6_addr) == 1;
	int fd, ret, one = 1;

	if (!six && inet_pton(AF_INET, address, &in.sin_addr) != 1)
		return -EINVAL;
	fd = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, six ? (struct sockaddr *)&in6 : (struct sockaddr *)&in,
		 six ? sizeof(in6) : sizeof(in)) ||
	    listen(fd, CONNECTIONS)) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return fd;
}

static int listen_at(struct metrics *m, const char *where)
{
	char address[CONFIG_SOCKET_MAX];
	unsigned int port;
	int fd;

	if (!strncmp(where, "unix:", 5)) {
		fd = peer_listen(where + 5, SOCK_STREAM, CONNECTIONS);
		if (fd >= 0)
			strcpy(m->path, where + 5);
		return fd;
	}
	if (config_host_port(where, address, sizeof(address), &port))
		return -EINVAL;
	return listen_tcp(address, port);
}

static int sources_add(struct metrics *m)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(m->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct loop *l = &m->a->loop;
	int ret;

	m->http.fd = info ? info->epoll_fd : -1;
	/* always readable */
	m->work.fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	if (m->http.fd < 0 || m->work.fd < 0)
		return -EMFILE;
	ret = loop_timer_add(l, &m->timer);
	return ret ? ret : loop_add(l, &m->http, EPOLLIN);
}

/* What to do about an error of listen_at(). */
static const char *advice(int err)
{
	switch (err) {
	case -EADDRINUSE:
		return ": another process has it; choose another one (--metrics)";
	case -EADDRNOTAVAIL:
		return ": no interface here has this address";
	default:
		return "";
	}
}

int metrics_init(struct agent *a)
{
	const char *where = a->cfg.metrics;
	struct metrics *m;
	int fd, ret;

	if (!where[0])
		return 0;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->a = a;
	m->http = (struct source){ .fd = -1, .ready = http_ready, .arg = m };
	m->timer = (struct source){ .fd = -1, .ready = timer_ready, .arg = m };
	m->work = (struct source){ .fd = -1, .ready = work_ready, .arg = m };
	for (int i = 0; i < CONNECTIONS; i++)
		m->place[i].fd = -1;
	a->metrics = m;
	ret = fd = listen_at(m, where);
	if (ret < 0)
		goto err;
	m->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle_request, m,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)CONNECTIONS, MHD_OPTION_NOTIFY_CONNECTION, connection_changed, m,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY + BLOCK, MHD_OPTION_END);
	if (!m->daemon) {
		close(fd);
		ret = -ENOMEM;
		goto err;
	}
	ret = sources_add(m);
	if (ret)
		goto err;
	log_info("metrics at %s%s%s", m->path[0] ? "" : "http://", where,
		 m->path[0] ? "" : "/metrics");
	return 0;
err:
	log_error("metrics: cannot listen at %s: %s%s", where, strerror(-ret), advice(ret));
	metrics_uninit(a);
	return ret;
}

void metrics_uninit(struct agent *a)
{
	struct metrics *m = a->metrics;

	if (!m)
		return;
	if (m->building) {
		loop_del(&a->loop, &m->work);
		snapshot_put(m->building);
		m->building = NULL;
	}
	if (m->http.fd >= 0)
		loop_del(&a->loop, &m->http);
	loop_timer_del(&a->loop, &m->timer);
	if (m->daemon) {
		/* none may be suspended when the daemon ends */
		while (m->n_waiting)
			MHD_resume_connection(m->waiting[--m->n_waiting]);
		MHD_run(m->daemon);
		MHD_stop_daemon(m->daemon);
	}
	if (m->work.fd >= 0)
		close(m->work.fd);
	snapshot_put(m->last);
	if (m->path[0])
		unlink(m->path);
	free(m);
	a->metrics = NULL;
}
