// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which way results of the XDP program take to a worker: redirected to its port, or by the
 * relay.  Results of the tc program reach every worker.
 *
 * The relay is the slow path: it sends results as ordinary UDP through the bridge to workers
 * that redirected frames do not reach, and jumbo results, which the kernel cannot clone, to all.
 * Also reads the data path's ring buffers.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>

#include "agent/ports/ports.h"
#include "agent/backend/backend.h"
#include "agent/members/internal.h"

#define SNDBUF (8 << 20)
#define EVENT_BATCH 32 /* events and results handled in one turn of the loop */
/*
 * Rounds of some 100 us wake the agent once in this time, and not each: a wake-up costs the
 * program's processor an interrupt to itself, several us in a guest.
 */
#define EVENTS_REST_MS 5

static struct log_limit limit;

static bool has_tc_hook(struct agent *a, const struct saina_job *job, int w)
{
	const struct port *p = worker_port(a, job, w);

	return p && p->mode == SAINA_PORT_MODE_TC;
}

/* Can the XDP program complete results of this job?  A port that has left the bridge completes
 * none. */
static bool uses_xdp(struct agent *a, const struct saina_job *job)
{
	int w;

	for (w = 0; w < job->workers; w++)
		if (jobs_alive(job, w) && worker_port(a, job, w) && !has_tc_hook(a, job, w))
			return true;
	return false;
}

/*
 * Probes test whether redirected frames reach a worker, until it echoes one.  The test is
 * repeated when its port moves from tc to XDP, because replies of the tc program prove nothing.
 */
static void update_probe(struct worker_aux *aux, bool on_tc)
{
	if (on_tc)
		aux->xdp_works = false;
	if (!aux->ready || (on_tc ? aux->fast : aux->xdp_works))
		aux->probe = 0;
	else if (!aux->probe)
		aux->probe = ++aux->last_probe;
}

static void choose_path(struct agent *a, const struct saina_job *job, int w)
{
	struct worker_aux *aux = jobs_worker(a, job, w);
	const struct port *p = worker_port(a, job, w);
	bool on_tc = has_tc_hook(a, job, w);
	struct saina_worker_attrs req = {
		.has = 1ull << SAINA_A_WORKER_JOB_ID | 1ull << SAINA_A_WORKER_ID |
		       1ull << SAINA_A_WORKER_RELAY,
		.job_id = job->id,
		.id = w,
		.relay = on_tc ? uses_xdp(a, job) : !aux->xdp_works,
	};
	const char *name = job->worker[w].name, *port = p ? p->name : "?";
	struct saina_core_err err;

	/* it has no hook now, and has the same one again when it comes back */
	if (!p)
		return;

	update_probe(aux, on_tc);
	/* before READY a port with XDP stays as it was admitted */
	if ((!on_tc && !aux->ready) ||
	    req.relay == !!(job->worker[w].bind.flags & SAINA_BIND_RELAY))
		return;
	if (req.relay && on_tc)
		log_limited(&limit, LOG_L_INFO,
			    "job %s: port %s of worker %d (%s) has the tc hook, ports of others have XDP: results of the XDP program take the slow path to this worker",
			    job->name, port, w, name);
	else if (req.relay && aux->fast)
		log_limited(&limit, LOG_L_INFO,
			    "job %s: port %s of worker %d (%s) has XDP now: results take the slow path to this worker until it confirms that redirected frames arrive",
			    job->name, port, w, name);
	else if (req.relay)
		log_limited(&limit, LOG_L_WARN,
			    "job %s: worker %d (%s) gets no redirected frames: its results take the slow path through the bridge. `ethtool -K IF gro on` (or an XDP program) at the other end of port %s fixes this, unless a firewall there drops UDP to port 48866",
			    job->name, w, name, port);
	else
		log_limited(&limit, LOG_L_INFO, "job %s: worker %d (%s) is on the fast path",
			    job->name, w, name);
	if (backend_worker_set(a, &req, NULL, &err))
		log_limited(&limit, LOG_L_ERROR, "job %s: worker %d: %s", job->name, w, err.text);
}

void delivery_ready(struct agent *a, const struct saina_job *job, int w, bool fast, uint32_t probe)
{
	struct worker_aux *aux = jobs_worker(a, job, w);

	if (!aux->ready || fast != aux->fast)
		aux->xdp_works = fast && !has_tc_hook(a, job, w);
	else if (fast && probe && probe == aux->probe)
		aux->xdp_works = true;
	aux->ready = true;
	aux->fast = fast;
	choose_path(a, job, w);
}

static void replan_worker(struct agent *a, const struct saina_job *job, int w, void *arg)
{
	choose_path(a, job, w);
}

void delivery_replan(struct agent *a)
{
	jobs_each_alive(a, replan_worker, NULL);
}

/* The relay */

static void send_result(struct agent *a, const struct saina_relay_msg *m, struct in_addr ip,
			__be16 port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = port, .sin_addr = ip };

	/* workers pull a lost result, as with any lost frame */
	if (sendto(a->members->delivery.source.fd, &m->hdr, m->len, MSG_DONTWAIT | MSG_NOSIGNAL,
		   (struct sockaddr *)&to, sizeof(to)) < 0)
		log_limited(&a->members->delivery.limit, LOG_L_WARN,
			    "relay: a result to %s was lost: %s", inet_ntoa(ip), strerror(errno));
}

static void relay_result(void *arg, const struct saina_relay_msg *m)
{
	struct agent *a = arg;
	const struct saina_job *job;
	struct in_addr ip;
	int w;

	job = saina_core_job_find(a->jobs->core, 1, le16toh(m->hdr.job), NULL, NULL);
	if (!job || m->len < sizeof(m->hdr) || m->len > sizeof(m->hdr) + sizeof(m->payload))
		return;
	/* to all live workers, if more than one: one multicast frame, which the bridge floods */
	if (m->hdr.worker == SAINA_WORKER_ANY && m->workers && m->workers == job->active &&
	    m->workers & (m->workers - 1)) {
		ip.s_addr = htonl(SAINA_GROUP_BASE + job->id);
		send_result(a, m, ip, htons(SAINA_PORT_RESULT));
		return;
	}
	for (w = 0; w < job->workers; w++) {
		if (!(m->workers & 1ull << w) || !(job->worker[w].bind.flags & SAINA_BIND_BOUND))
			continue;
		ip.s_addr = job->worker[w].bind.ip;
		send_result(a, m, ip, job->worker[w].bind.udp_port);
	}
}

/* A worker that is behind requests many segments of a lost round, again and again.  One
 * event a second is enough. */
static bool is_repeated_stale(struct agent *a, const struct saina_event *ev)
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

static void handle_event(void *arg, const struct saina_event *ev)
{
	struct agent *a = arg;

	if (ev->type == SAINA_EV_TYPES)
		numerics_types(a, ev);
	if (!is_repeated_stale(a, ev))
		a->jobs->ops->event(a, ev, NULL);
}

static void dispatch_events(struct source *s, uint32_t events)
{
	struct saina_dp_cb cb = {
		.max = EVENT_BATCH, .rest_ms = EVENTS_REST_MS,
		.event = handle_event, .relay = relay_result, .arg = s->arg
	};
	struct agent *a = s->arg;

	saina_dp_event_dispatch(a->dp, &cb);
}

/* The data path takes gradients off the ports.  Those that arrived before a port was
 * attached are discarded. */
static void discard_input(struct source *s, uint32_t events)
{
	char buf[64];
	int i;

	for (i = 0; i < EVENT_BATCH && recv(s->fd, buf, sizeof(buf), MSG_DONTWAIT | MSG_TRUNC) >= 0;
	     i++)
		;
}

void delivery_bridge_changed(struct agent *a)
{
	struct ip_mreqn by = { .imr_address = a->addr, .imr_ifindex = a->bridge->ifindex };

	if (setsockopt(a->members->delivery.source.fd, IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof(by)))
		log_error("relay: cannot send by bridge %s: %s", a->cfg.bridge, strerror(errno));
}

int delivery_init(struct agent *a)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(SAINA_PORT_DATA),
		.sin_addr = a->addr,
	};
	int size = SNDBUF, off = 0, ttl = 1, ret;
	struct delivery *r = &a->members->delivery;

	r->source = (struct source){ .ready = discard_input, .arg = a };
	r->events = (struct source){ .ready = dispatch_events, .arg = a };
	r->source.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (r->source.fd < 0)
		return -errno;
	setsockopt(r->source.fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	if (bind(r->source.fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    setsockopt(r->source.fd, IPPROTO_IP, IP_MULTICAST_TTL, &ttl, sizeof(ttl)) ||
	    setsockopt(r->source.fd, IPPROTO_IP, IP_MULTICAST_LOOP, &off, sizeof(off))) {
		ret = -errno;
		log_error("relay: cannot listen at %s:%d: %s", inet_ntoa(a->addr), SAINA_PORT_DATA,
			  strerror(errno));
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

void delivery_uninit(struct agent *a)
{
	loop_del(&a->loop, &a->members->delivery.events); /* saina_dp closes its descriptor */
	loop_del(&a->loop, &a->members->delivery.source);
	close(a->members->delivery.source.fd);
}
