// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The socket of control messages (uapi/saina/proto.h): JOIN is answered with WELCOME or
 * REFUSE; READY, HEARTBEAT and LEAVE with STATUS or REFUSE.  Datagrams are not trusted:
 * length, source and session are checked before anything changes.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>

#include "agent/ports/ports.h"
#include "agent/backend/backend.h"
#include "agent/members/internal.h"

#define RX_BATCH 64 /* datagrams received in one turn of the loop */
#define RCVBUF	 (8 << 20)

static struct log_limit version_limit;

static void store_report(struct worker_aux *aux, const struct saina_report *r)
{
	aux->reported = true;
	aux->sent = le64toh(r->sent);
	aux->resent = le64toh(r->resent);
	aux->rtt_us = le32toh(r->rtt_us);
	aux->window = le32toh(r->window);
	diagnose_report(aux, r);
}

/* By another way than its port a worker can reach the agent, but no sum. */
static void heard_by_port(struct agent *a, const struct saina_job *job, int w)
{
	if (worker_port(a, job, w))
		liveness_heard(a, job, w);
}

static void handle_member(struct agent *a, const struct sender *from, const struct saina_hdr *h)
{
	const struct saina_job *job;
	const struct saina_binding *b;
	int w = h->worker;

	job = saina_core_job_find(a->jobs->core, 1, le16toh(h->job), NULL, NULL);
	if (!job) {
		reply_refuse(a, from, h, 0, SAINA_REFUSE_NO_JOB,
			     "there is no job %u here (any more)", le16toh(h->job));
		return;
	}
	b = w < saina_job_places(job) ? &job->worker[w].bind : NULL;
	if (!b || !(b->flags & SAINA_BIND_BOUND) || b->session != le64toh(h->session) ||
	    b->ip != from->addr.sin_addr.s_addr || b->udp_port != from->addr.sin_port ||
	    (!jobs_alive(job, w) &&
	     !(h->type == SAINA_MSG_LEAVE && job->worker[w].state == SAINA_WORKER_STATE_LEFT))) {
		reply_refuse(
			a, from, h, 0, SAINA_REFUSE_SESSION,
			"worker %d of job %s is not admitted in this session (any more): join again",
			w, job->name);
		return;
	}
	switch (h->type) {
	case SAINA_MSG_READY:
		heard_by_port(a, job, w);
		delivery_ready(a, job, w, h->flags & SAINA_F_FAST, le32toh(h->segment));
		break;
	case SAINA_MSG_HEARTBEAT:
		heard_by_port(a, job, w);
		jobs_worker(a, job, w)->round = le32toh(h->round);
		if (h->flags & SAINA_F_REPORT)
			store_report(jobs_worker(a, job, w), (const void *)(h + 1));
		break;
	case SAINA_MSG_LEAVE:
		/* LEAVE is repeated if its reply was lost */
		if (jobs_alive(job, w))
			backend_worker_end(a, job, w, SAINA_WORKER_STATE_LEFT, "left");
		break;
	}
	reply_status(a, job, w);
}

/* Checks length, flags and unused fields of a control message. */
static bool header_is_valid(const struct saina_hdr *h, size_t len)
{
	__u8 flags = h->type == SAINA_MSG_READY ? SAINA_F_FAST :
		     h->type == SAINA_MSG_JOIN  ? SAINA_F_NAMED | SAINA_F_TREE | SAINA_F_NODE :
		     h->type == SAINA_MSG_HEARTBEAT ? SAINA_F_REPORT : 0;
	bool report = h->type == SAINA_MSG_HEARTBEAT && (h->flags & SAINA_F_REPORT);
	bool named = h->type == SAINA_MSG_JOIN && (h->flags & SAINA_F_NAMED);
	bool node = h->type == SAINA_MSG_JOIN && (h->flags & SAINA_F_NODE);
	size_t body = node ? offsetof(struct saina_join_node, reserved) :
		      named ? sizeof(struct saina_join_named) :
		      report ? sizeof(struct saina_report) :
		      h->type == SAINA_MSG_JOIN ? sizeof(struct saina_join) : 0;
	const char *bytes = (const void *)h;

	if ((named && h->job) || (node && !(h->flags & SAINA_F_TREE)))
		return false;
	for (size_t i = sizeof(*h) + body; i < len; i++)
		if (bytes[i])
			return false;
	return len == SAINA_CTRL_LEN && !(h->flags & ~flags) && !h->elem && !h->count && !h->k &&
	       !h->reserved;
}

static void handle_datagram(struct agent *a, const struct sender *from, const void *buf, size_t len)
{
	const struct saina_hdr *h = buf;
	const struct saina_join *body = (const void *)(h + 1);
	uint64_t nonce;

	if (len < SAINA_CTRL_LEN) {
		/* a refusal would be longer than the request, whose source may be forged */
		if (len >= sizeof(*h) && h->version < SAINA_PROTO_VERSION)
			log_limited(
				&version_limit, LOG_L_INFO,
				"%s speaks version %u of the protocol, only %u is spoken here: update libsaina there (no reply is sent, because the message is too short)",
				from->text, h->version, SAINA_PROTO_VERSION);
		return;
	}
	switch (h->type) {
	case SAINA_MSG_JOIN:
	case SAINA_MSG_READY:
	case SAINA_MSG_HEARTBEAT:
	case SAINA_MSG_LEAVE:
		break;
	default:
		/* unknown types are dropped (versioning rule), and so are replies of any version: two
		 * agents would refuse each other's refusals for ever */
		return;
	}
	if (h->version != SAINA_PROTO_VERSION) {
		reply_refuse(
			a, from, h, 0, SAINA_REFUSE_VERSION,
			"version %u of the protocol is not spoken here, only %u: update the older side",
			h->version, SAINA_PROTO_VERSION);
		return;
	}
	nonce = h->type == SAINA_MSG_JOIN ? le64toh(body->nonce) : 0;
	if (!header_is_valid(h, len) ||
	    (h->type == SAINA_MSG_JOIN &&
	     (h->session || le32toh(body->round) > SAINA_ROUND_MAX))) {
		reply_refuse(
			a, from, h, nonce, SAINA_REFUSE_MALFORMED,
			"malformed: wrong length, unknown flags, a reserved field that is not 0, or a round out of range");
		return;
	}
	if (h->type == SAINA_MSG_JOIN)
		admit_join(a, from, h, body);
	else
		handle_member(a, from, h);
}

void ctrl_socket_drain(struct agent *a, int most)
{
	char buf[512] __attribute__((aligned(8)));
	struct sender from;
	socklen_t len;
	ssize_t n;

	backend_drain(a);
	while (most--) {
		len = sizeof(from.addr);
		n = recvfrom(a->members->ctrl.source.fd, buf, sizeof(buf), MSG_DONTWAIT | MSG_TRUNC,
			     (struct sockaddr *)&from.addr, &len);
		if (n < 0)
			return;
		if (len != sizeof(from.addr) || n > (ssize_t)sizeof(buf))
			continue;
		snprintf(from.text, sizeof(from.text), "%s:%u", inet_ntoa(from.addr.sin_addr),
			 ntohs(from.addr.sin_port));
		handle_datagram(a, &from, buf, n);
	}
}

static void ctrl_socket_ready(struct source *s, uint32_t events)
{
	ctrl_socket_drain(s->arg, RX_BATCH);
}

int ctrl_socket_init(struct agent *a)
{
	int ret, size = RCVBUF;
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(SAINA_PORT_CTRL),
		.sin_addr = a->addr,
	};
	struct source *s = &a->members->ctrl.source;

	*s = (struct source){ .ready = ctrl_socket_ready, .arg = a };
	s->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return -errno;
	/* each change of a job waits some milliseconds for the data path */
	setsockopt(s->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	if (bind(s->fd, (struct sockaddr *)&addr, sizeof(addr))) {
		ret = -errno;
		log_error("cannot listen at %s:%d: %s%s", inet_ntoa(a->addr), SAINA_PORT_CTRL,
			  strerror(errno),
			  errno == EADDRNOTAVAIL ? ": this host does not have this address; add it to the bridge, or set another (--address)" :
			  errno == EADDRINUSE    ? ", maybe by another sainad (`saina doctor` names the process): no port was attached" :
						   "");
		close(s->fd);
		return ret;
	}
	ret = loop_add(&a->loop, s, EPOLLIN);
	if (ret)
		close(s->fd);
	return ret;
}

void ctrl_socket_uninit(struct agent *a)
{
	loop_del(&a->loop, &a->members->ctrl.source);
	close(a->members->ctrl.source.fd);
}
