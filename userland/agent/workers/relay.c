// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The slow path: results for workers that cannot take redirected frames, and
 * jumbo results for all (the kernel cannot clone those), sent as ordinary UDP
 * through the bridge.  Also the pump of the data path's ring buffers.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>

#include "agent/workers/internal.h"

#define SNDBUF (8 << 20)
#define BATCH  32 /* of events and of results, before others get their turn */

static void relay_send(struct agent *a, const struct saina_relay_msg *m, struct in_addr ip,
		       __be16 port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = port, .sin_addr = ip };

	/* what does not fit is lost like a frame on the way: workers pull it */
	if (sendto(a->workers->relay.source.fd, &m->hdr, m->len, MSG_DONTWAIT | MSG_NOSIGNAL,
		   (struct sockaddr *)&to, sizeof(to)) < 0)
		log_limited(&a->workers->relay.limit, LOG_L_WARN, "relay: a result to %s was lost: %s",
			    inet_ntoa(ip), strerror(errno));
}

static void relay_message(void *arg, const struct saina_relay_msg *m)
{
	struct agent *a = arg;
	const struct saina_job *job;
	struct in_addr ip;
	int w;

	job = saina_core_job_find(a->jobs->core, 1, le16toh(m->hdr.job), NULL, NULL);
	if (!job || m->len < sizeof(m->hdr) || m->len > sizeof(m->hdr) + sizeof(m->payload))
		return;
	/* one for all is cheaper than one each, and no more is flooded than that */
	if (m->hdr.worker == SAINA_WORKER_ANY && m->workers && m->workers == job->active &&
	    m->workers & (m->workers - 1)) {
		ip.s_addr = htonl(SAINA_GROUP_BASE + job->id);
		relay_send(a, m, ip, htons(SAINA_PORT_RESULT));
		return;
	}
	for (w = 0; w < job->workers; w++) {
		if (!(m->workers & 1ull << w) || !(job->worker[w].bind.flags & SAINA_BIND_BOUND))
			continue;
		ip.s_addr = job->worker[w].bind.ip;
		relay_send(a, m, ip, job->worker[w].bind.udp_port);
	}
}

/* A worker that is behind asks for many segments of a round, one by one, and again
 * and again: one event a second says as much. */
static bool stale_again(struct agent *a, const struct saina_event *ev)
{
	const struct saina_job *job;
	struct worker_aux *aux;

	if (ev->type != SAINA_EV_STALE)
		return false;
	job = saina_core_job_find(a->jobs->core, 1, ev->job, NULL, NULL);
	if (!job || ev->worker >= job->workers)
		return true;
	aux = jobs_worker(a, job, ev->worker);
	if (aux->stale_at && aux->stale_round == ev->round &&
	    loop_now() - aux->stale_at < NSEC_PER_SEC)
		return true;
	aux->stale_at = loop_now();
	aux->stale_round = ev->round;
	return false;
}

static void relay_event(void *arg, const struct saina_event *ev)
{
	struct agent *a = arg;

	if (!stale_again(a, ev))
		a->jobs->ops->event(a, ev, NULL);
}

static void relay_dispatch(struct source *s, uint32_t events)
{
	struct saina_dp_cb cb = { .max = BATCH, .event = relay_event, .relay = relay_message,
				  .arg = s->arg };
	struct agent *a = s->arg;

	saina_dp_event_dispatch(a->dp, &cb);
}

/* Nobody should send here: gradients are taken off the ports before they get
 * this far.  What came in before a port was attached is thrown away. */
static void relay_discard(struct source *s, uint32_t events)
{
	char buf[64];
	int i;

	for (i = 0; i < BATCH && recv(s->fd, buf, sizeof(buf), MSG_DONTWAIT | MSG_TRUNC) >= 0; i++)
		;
}

int relay_init(struct agent *a)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(SAINA_PORT_DATA),
		.sin_addr = a->addr,
	};
	int size = SNDBUF, off = 0, ttl = 1, ret;
	struct relay *r = &a->workers->relay;

	r->source = (struct source){ .ready = relay_discard, .arg = a };
	r->events = (struct source){ .ready = relay_dispatch, .arg = a };
	r->source.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (r->source.fd < 0)
		return -errno;
	setsockopt(r->source.fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	if (bind(r->source.fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    setsockopt(r->source.fd, IPPROTO_IP, IP_MULTICAST_IF, &a->addr, sizeof(a->addr)) ||
	    setsockopt(r->source.fd, IPPROTO_IP, IP_MULTICAST_TTL, &ttl, sizeof(ttl)) ||
	    setsockopt(r->source.fd, IPPROTO_IP, IP_MULTICAST_LOOP, &off, sizeof(off))) {
		ret = -errno;
		log_error("relay: %s:%d: %s", inet_ntoa(a->addr), SAINA_PORT_DATA, strerror(errno));
		goto err_close;
	}
	ret = loop_add(&a->loop, &r->source, EPOLLIN);
	if (ret)
		goto err_close;
	r->events.fd = saina_dp_event_fd(a->dp);
	ret = r->events.fd < 0 ? r->events.fd : loop_add(&a->loop, &r->events, EPOLLIN);
	if (ret)
		goto err_del;
	return 0;

err_del:
	loop_del(&a->loop, &r->source);
err_close:
	close(r->source.fd);
	return ret;
}

void relay_uninit(struct agent *a)
{
	loop_del(&a->loop, &a->workers->relay.events); /* its descriptor is saina_dp's */
	loop_del(&a->loop, &a->workers->relay.source);
	close(a->workers->relay.source.fd);
}
