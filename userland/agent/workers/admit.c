// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What workers and the agent say to each other (uapi/saina/proto.h): JOIN is
 * answered with WELCOME or REFUSE, READY, HEARTBEAT and LEAVE with STATUS or
 * REFUSE.  Nothing here trusts a datagram: its length, its source and its
 * session are checked before it changes anything.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "agent/agent.h"

#define BATCH	     64	 /* datagrams read before others get their turn */
#define RCVBUF	     (8 << 20)
#define REFUSALS_MAX 500 /* a second: a refusal is longer than what caused it */

/* Headers are 48 bytes, bodies need no more than an alignment of 4: a struct of
 * both has no hole. */
_Static_assert(sizeof(struct {
		       struct saina_hdr h;
		       struct saina_welcome b;
	       }) == 96,
	       "no hole");

struct from {
	struct sockaddr_in addr;
	char text[32];
};

static struct log_limit refuse_limit, ready_limit;

static void send_to(struct agent *a, const struct sockaddr_in *to, const void *msg, size_t len)
{
	/* what gets lost is asked for again */
	if (sendto(a->admit.source.fd, msg, len, MSG_DONTWAIT | MSG_NOSIGNAL,
		   (const struct sockaddr *)to, sizeof(*to)) < 0)
		log_limited(&refuse_limit, LOG_L_WARN, "cannot answer %s: %s",
			    inet_ntoa(to->sin_addr), strerror(errno));
}

static void header(struct saina_hdr *h, int type, int job, int worker, uint64_t session)
{
	memset(h, 0, sizeof(*h));
	h->version = SAINA_PROTO_VERSION;
	h->type = type;
	h->job = htole16(job);
	h->worker = worker;
	h->session = htole64(session);
}

/* Refuses @req; the worker prints the sentence. */
static void refuse(struct agent *a, const struct from *from, const struct saina_hdr *req,
		   uint64_t nonce, int reason, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));

static void refuse(struct agent *a, const struct from *from, const struct saina_hdr *req,
		   uint64_t nonce, int reason, const char *fmt, ...)
{
	uint64_t second = loop_now() / NSEC_PER_SEC;
	struct {
		struct saina_hdr hdr;
		struct saina_refuse body;
	} msg;
	va_list ap;

	if (a->admit.refusals_from != second) {
		a->admit.refusals_from = second;
		a->admit.refusals = 0;
	}
	if (a->admit.refusals++ >= REFUSALS_MAX)
		return;
	memset(&msg, 0, sizeof(msg));
	header(&msg.hdr, SAINA_MSG_REFUSE, le16toh(req->job), req->worker, le64toh(req->session));
	msg.body.nonce = htole64(nonce);
	msg.body.reason = htole32(reason);
	va_start(ap, fmt);
	vsnprintf(msg.body.text, sizeof(msg.body.text), fmt, ap);
	va_end(ap);
	log_limited(&refuse_limit, LOG_L_INFO, "refused %s (job %u): %s", from->text,
		    le16toh(req->job), msg.body.text);
	send_to(a, &from->addr, &msg, sizeof(msg));
}

static struct sockaddr_in worker_address(const struct saina_job *job, int w)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = job->worker[w].bind.udp_port,
		.sin_addr.s_addr = job->worker[w].bind.ip,
	};
}

void admit_status(struct agent *a, const struct saina_job *job, int w)
{
	struct sockaddr_in to = worker_address(job, w);
	struct {
		struct saina_hdr hdr;
		struct saina_status body;
	} msg;

	memset(&msg, 0, sizeof(msg));
	header(&msg.hdr, SAINA_MSG_STATUS, job->id, w, job->worker[w].bind.session);
	msg.body.active = htole64(job->active);
	msg.body.round = htole32(jobs_next_round(a, job));
	msg.body.state = job->state;
	msg.body.relayed = !!(job->worker[w].bind.flags & SAINA_BIND_RELAY);
	send_to(a, &to, &msg, sizeof(msg));
}

void admit_job_gone(struct agent *a, const struct saina_job *job)
{
	struct from to = { .text = "worker" };
	struct saina_hdr hdr;
	int w;

	for (w = 0; w < job->workers; w++) {
		if (!jobs_alive(job, w))
			continue;
		to.addr = worker_address(job, w);
		header(&hdr, 0, job->id, w, job->worker[w].bind.session);
		refuse(a, &to, &hdr, 0, SAINA_REFUSE_NO_JOB, "job %s (%u) was deleted", job->name,
		       job->id);
	}
}

static void welcome(struct agent *a, const struct sockaddr_in *to, const struct saina_job *job,
		    int w)
{
	const struct worker_aux *aux = jobs_worker(a, job, w);
	struct {
		struct saina_hdr hdr;
		struct saina_welcome body;
	} msg;

	memset(&msg, 0, sizeof(msg));
	header(&msg.hdr, SAINA_MSG_WELCOME, job->id, w, job->worker[w].bind.session);
	msg.body.nonce = htole64(aux->nonce);
	msg.body.elements = htole64(job->elements);
	msg.body.segments = htole32(job->segments);
	msg.body.payload = htole16(job->payload);
	msg.body.pool = htole16(job->pool);
	msg.body.ring = htole16(job->ring);
	msg.body.workers = job->workers;
	msg.body.state = job->state;
	/* Of those who formed the job each begins where it begins, also if the
	 * quicker ones have gone on by the time this one asks (again). */
	msg.body.round = htole32(aux->formed ? job->first_round : aux->first_round);
	msg.body.group = htole32(SAINA_GROUP_BASE + job->id);
	msg.body.heartbeat_ms = htole16(job->heartbeat_ms);
	msg.body.dead_ms = htole16(job->dead_ms);
	msg.body.exponent = job->exponent;
	msg.body.elem = job->elem;
	msg.body.formed = aux->formed;
	send_to(a, to, &msg, sizeof(msg));
}

/* JOIN */

static bool token_equal(const __u8 *x, const __u8 *y)
{
	volatile __u8 diff = 0; /* as long for a wrong first byte as for a wrong last */
	int i;

	for (i = 0; i < SAINA_TOKEN_LEN; i++)
		diff |= x[i] ^ y[i];
	return !diff;
}

static void clean_name(const char *from, char *to)
{
	int i;

	for (i = 0; i < SAINA_NAME_LEN - 1 && from[i]; i++)
		to[i] = isprint((unsigned char)from[i]) ? from[i] : '?';
	to[i] = 0;
}

/* The place a JOIN asks for: a number, or -1 and the sentence was sent. */
static int find_place(struct agent *a, const struct from *from, const struct saina_hdr *h,
		      uint64_t nonce, const struct saina_job *job)
{
	static const int order[] = { SAINA_WORKER_STATE_ABSENT, SAINA_WORKER_STATE_LEFT,
				     SAINA_WORKER_STATE_DEAD };
	const struct worker_aux *aux;
	unsigned int i;
	int w;

	if (h->worker == SAINA_WORKER_ANY) {
		for (i = 0; i < sizeof(order) / sizeof(order[0]); i++)
			for (w = 0; w < job->workers; w++)
				if (job->worker[w].state == order[i])
					return w;
		refuse(a, from, h, nonce, SAINA_REFUSE_FULL,
		       "job %s is full: all its %u workers are alive", job->name, job->workers);
		return -1;
	}
	if (h->worker >= job->workers) {
		refuse(a, from, h, nonce, SAINA_REFUSE_FULL,
		       "job %s has the workers 0..%u: there is no %u", job->name, job->workers - 1,
		       h->worker);
		return -1;
	}
	if (jobs_alive(job, h->worker)) {
		aux = jobs_worker(a, job, h->worker);
		refuse(a, from, h, nonce, SAINA_REFUSE_TAKEN,
		       "worker %u of job %s is alive (%s, heard %llu ms ago): use another number, or wait until it has been silent for %u ms",
		       h->worker, job->name, job->worker[h->worker].name,
		       (unsigned long long)((loop_now() - aux->heard) / NSEC_PER_MSEC),
		       job->dead_ms);
		return -1;
	}
	return h->worker;
}

static uint64_t random_session(uint64_t last)
{
	uint64_t session = 0;

	while (!session || session == last)
		if (getrandom(&session, sizeof(session), 0) != sizeof(session))
			session = loop_now();
	return session;
}

/* The port of ours the JOIN came in by. */
static bool find_port(struct agent *a, const struct from *from, const struct saina_hdr *h,
		      uint64_t nonce, struct saina_place *place)
{
	const struct port *p;

	if (saina_dp_learned_take(a->dp, from->addr.sin_addr.s_addr, from->addr.sin_port, nonce,
				  place)) {
		refuse(a, from, h, nonce, SAINA_REFUSE_PORT,
		       "you did not come in by an attached port of bridge %s: see `saina port show` there",
		       a->cfg.bridge);
		return false;
	}
	p = ports_find(a, place->ifindex, NULL);
	if (!p || p->mode == SAINA_PORT_MODE_NONE) {
		refuse(a, from, h, nonce, SAINA_REFUSE_PORT,
		       "your port is not (any more) an attached port of bridge %s: see `saina port show` there",
		       a->cfg.bridge);
		return false;
	}
	return true;
}

static int refusal_of(int error)
{
	switch (error) {
	case -EEXIST:
	case -EADDRINUSE:
		return SAINA_REFUSE_TAKEN;
	case -ESHUTDOWN:
		return SAINA_REFUSE_STOPPED;
	case -EINVAL:
	case -ERANGE:
		return SAINA_REFUSE_MALFORMED;
	default:
		return SAINA_REFUSE_FULL;
	}
}

/*
 * Where a worker that comes to a running job begins.  Read after it has
 * become active: a round that opens from now on waits for it.  So does the
 * present one if it counts on an earlier life of this worker.
 */
static uint32_t first_round_of(struct agent *a, const struct saina_job *job, int w)
{
	struct saina_job_rt rt;

	if (saina_dp_job_rt(a->dp, job->id, &rt) || rt.generation != job->generation)
		return job->first_round;
	if (rt.next_round > job->first_round && rt.members & 1ull << w &&
	    rt.segs_done < job->segments)
		return rt.next_round - 1;
	return rt.next_round;
}

static void admit_worker(struct agent *a, const struct from *from, const struct saina_hdr *h,
			 const struct saina_join *join, const struct saina_job *job, int w)
{
	struct saina_worker_req req = {
		.has = 1ull << SAINA_A_WORKER_JOB_ID | 1ull << SAINA_A_WORKER_ID |
		       1ull << SAINA_A_WORKER_NAME | 1ull << SAINA_A_WORKER_IFINDEX |
		       1ull << SAINA_A_WORKER_IP | 1ull << SAINA_A_WORKER_MAC |
		       1ull << SAINA_A_WORKER_UDP_PORT | 1ull << SAINA_A_WORKER_SESSION |
		       1ull << SAINA_A_WORKER_ROUND,
		.job_id = job->id,
		.id = w,
		.session = random_session(job->worker[w].bind.session),
		.round = le32toh(join->round),
		.ip = from->addr.sin_addr.s_addr,
		.udp_port = from->addr.sin_port,
	};
	uint64_t nonce = le64toh(join->nonce);
	bool formed = job->state == SAINA_JOB_FORMING;
	struct saina_place place;
	struct saina_core_err err;
	struct worker_aux *aux;
	const struct port *p;
	int ret;

	if (!find_port(a, from, h, nonce, &place))
		return;
	req.ifindex = place.ifindex;
	memcpy(req.mac, place.mac, sizeof(req.mac));
	clean_name(join->name, req.name);

	aux = jobs_worker(a, job, w);
	*aux = (struct worker_aux){ .nonce = nonce, .heard = loop_now(), .formed = formed };
	ret = plane_worker_set(a, &req, &job, &err);
	if (ret) {
		refuse(a, from, h, nonce, refusal_of(ret), "%s", err.text);
		return;
	}
	aux->first_round = formed ? job->first_round : first_round_of(a, job, w);
	health_heard(a, job, w);
	p = ports_find(a, place.ifindex, NULL);
	log_info("job %s: worker %d (%s) joined from %s by port %s: %d of %u", job->name, w,
		 req.name, from->text, p ? p->name : "?", __builtin_popcountll(job->active),
		 job->workers);
	/* a crash from here on must not forget whom we welcomed */
	state_save(a);
	welcome(a, &from->addr, job, w);
}

static void join(struct agent *a, const struct from *from, const struct saina_hdr *h,
		 const struct saina_join *join)
{
	uint64_t nonce = le64toh(join->nonce);
	const struct saina_job *job;
	int w;

	job = saina_core_job_find(a->jobs.core, 1, le16toh(h->job), NULL, NULL);
	if (!job) {
		refuse(a, from, h, nonce, SAINA_REFUSE_NO_JOB,
		       "there is no job %u here: `saina job show` lists them", le16toh(h->job));
		return;
	}
	if (!token_equal(join->token, job->token)) {
		refuse(a, from, h, nonce, SAINA_REFUSE_TOKEN, "that is not the token of job %u",
		       job->id);
		return;
	}
	/* the same JOIN again: its answer was lost, or the worker wants to know
	 * where the job begins now that it runs */
	for (w = 0; w < job->workers; w++) {
		if (!jobs_alive(job, w) || jobs_worker(a, job, w)->nonce != nonce ||
		    job->worker[w].bind.ip != from->addr.sin_addr.s_addr ||
		    job->worker[w].bind.udp_port != from->addr.sin_port)
			continue;
		health_heard(a, job, w);
		welcome(a, &from->addr, job, w);
		return;
	}
	if (job->state == SAINA_JOB_STOPPED) {
		refuse(a, from, h, nonce, SAINA_REFUSE_STOPPED, "job %s is stopped by its operator",
		       job->name);
		return;
	}
	if (le64toh(join->elements) > job->elements) {
		refuse(a, from, h, nonce, SAINA_REFUSE_ELEMENTS,
		       "job %s reduces %llu elements, you want %llu", job->name,
		       (unsigned long long)job->elements,
		       (unsigned long long)le64toh(join->elements));
		return;
	}
	w = find_place(a, from, h, nonce, job);
	if (w >= 0)
		admit_worker(a, from, h, join, job, w);
}

/* READY, HEARTBEAT, LEAVE */

static void set_relay(struct agent *a, const struct saina_job *job, int w, bool relay)
{
	struct saina_worker_req req = {
		.has = 1ull << SAINA_A_WORKER_JOB_ID | 1ull << SAINA_A_WORKER_ID |
		       1ull << SAINA_A_WORKER_RELAY,
		.job_id = job->id,
		.id = w,
		.relay = relay,
	};
	const struct port *p = ports_find(a, job->worker[w].bind.ifindex, NULL);
	struct saina_core_err err;

	if (relay == !!(job->worker[w].bind.flags & SAINA_BIND_RELAY))
		return;
	if (relay)
		log_limited(
			&ready_limit, LOG_L_WARN,
			"job %s: worker %d (%s) gets no redirected frames: its results go through the bridge, slower. `ethtool -K IF gro on` where the other end of port %s is (or an XDP program on it) mends that",
			job->name, w, job->worker[w].name, p ? p->name : "?");
	else
		log_limited(&ready_limit, LOG_L_INFO, "job %s: worker %d (%s) is on the fast path",
			    job->name, w, job->worker[w].name);
	if (plane_worker_set(a, &req, NULL, &err))
		log_limited(&ready_limit, LOG_L_ERROR, "job %s: worker %d: %s", job->name, w,
			    err.text);
}

static void from_worker(struct agent *a, const struct from *from, const struct saina_hdr *h)
{
	const struct saina_job *job;
	const struct saina_binding *b;
	int w = h->worker;

	job = saina_core_job_find(a->jobs.core, 1, le16toh(h->job), NULL, NULL);
	if (!job) {
		refuse(a, from, h, 0, SAINA_REFUSE_NO_JOB, "there is no job %u here (any more)",
		       le16toh(h->job));
		return;
	}
	b = w < job->workers ? &job->worker[w].bind : NULL;
	if (!b || !(b->flags & SAINA_BIND_BOUND) || b->session != le64toh(h->session) ||
	    b->ip != from->addr.sin_addr.s_addr || b->udp_port != from->addr.sin_port ||
	    (!jobs_alive(job, w) &&
	     !(h->type == SAINA_MSG_LEAVE && job->worker[w].state == SAINA_WORKER_STATE_LEFT))) {
		refuse(a, from, h, 0, SAINA_REFUSE_SESSION,
		       "worker %d of job %s is not admitted in this session (any more): join again",
		       w, job->name);
		return;
	}
	switch (h->type) {
	case SAINA_MSG_READY:
		health_heard(a, job, w);
		set_relay(a, job, w, !(h->flags & SAINA_F_FAST));
		break;
	case SAINA_MSG_HEARTBEAT:
		health_heard(a, job, w);
		jobs_worker(a, job, w)->round = le32toh(h->round);
		break;
	case SAINA_MSG_LEAVE:
		/* a LEAVE whose answer was lost comes again */
		if (jobs_alive(job, w))
			jobs_worker_end(a, job, w, SAINA_WORKER_STATE_LEFT, "left");
		break;
	}
	admit_status(a, job, w);
}

/* Is the fixed part of the header what a control message may have? */
static bool header_ok(const struct saina_hdr *h, size_t len)
{
	__u8 flags = h->type == SAINA_MSG_READY ? SAINA_F_FAST : 0;
	size_t body = h->type == SAINA_MSG_JOIN ? sizeof(struct saina_join) : 0;

	return len == sizeof(*h) + body && !(h->flags & ~flags) && !h->elem && !h->count && !h->k &&
	       !h->reserved;
}

static void datagram(struct agent *a, const struct from *from, const void *buf, size_t len)
{
	const struct saina_hdr *h = buf;
	const struct saina_join *body = (const void *)(h + 1);
	uint64_t nonce;

	if (len < sizeof(*h))
		return; /* not even a version: not ours */
	if (h->version != SAINA_PROTO_VERSION) {
		refuse(a, from, h, 0, SAINA_REFUSE_VERSION,
		       "version %u of the protocol is not spoken here, only %u: update the older side",
		       h->version, SAINA_PROTO_VERSION);
		return;
	}
	nonce = h->type == SAINA_MSG_JOIN && len >= sizeof(*h) + sizeof(*body)
			? le64toh(body->nonce)
			: 0;
	switch (h->type) {
	case SAINA_MSG_JOIN:
	case SAINA_MSG_READY:
	case SAINA_MSG_HEARTBEAT:
	case SAINA_MSG_LEAVE:
		break;
	default:
		return; /* unknown types are dropped (versioning rule) */
	}
	if (!header_ok(h, len) || (h->type == SAINA_MSG_JOIN &&
				   (h->session || body->reserved ||
				    le32toh(body->round) > SAINA_ROUND_MAX))) {
		refuse(a, from, h, nonce, SAINA_REFUSE_MALFORMED,
		       "malformed: wrong length, unknown flags, a reserved field that is not 0, or a round that cannot be");
		return;
	}
	if (h->type == SAINA_MSG_JOIN)
		join(a, from, h, body);
	else
		from_worker(a, from, h);
}

void admit_receive(struct agent *a, int most)
{
	char buf[512] __attribute__((aligned(8)));
	struct from from;
	socklen_t len;
	ssize_t n;

	plane_drain(a);
	while (most--) {
		len = sizeof(from.addr);
		n = recvfrom(a->admit.source.fd, buf, sizeof(buf), MSG_DONTWAIT | MSG_TRUNC,
			     (struct sockaddr *)&from.addr, &len);
		if (n < 0)
			return;
		if (len != sizeof(from.addr) || n > (ssize_t)sizeof(buf))
			continue;
		snprintf(from.text, sizeof(from.text), "%s:%u", inet_ntoa(from.addr.sin_addr),
			 ntohs(from.addr.sin_port));
		datagram(a, &from, buf, n);
	}
}

static void admit_ready(struct source *s, uint32_t events)
{
	admit_receive(s->arg, BATCH);
}

int admit_init(struct agent *a)
{
	int ret, size = RCVBUF;
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(SAINA_PORT_CTRL),
		.sin_addr = a->addr,
	};
	struct source *s = &a->admit.source;

	*s = (struct source){ .ready = admit_ready, .arg = a };
	s->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return -errno;
	/* changing a job waits for the data path, some milliseconds each time */
	setsockopt(s->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	if (bind(s->fd, (struct sockaddr *)&addr, sizeof(addr))) {
		ret = -errno;
		log_error("cannot listen at %s:%d: %s%s", inet_ntoa(a->addr), SAINA_PORT_CTRL,
			  strerror(errno),
			  errno == EADDRNOTAVAIL ? ": the bridge does not have this address" : "");
		close(s->fd);
		return ret;
	}
	ret = loop_add(&a->loop, s, EPOLLIN);
	if (ret)
		close(s->fd);
	return ret;
}

void admit_uninit(struct agent *a)
{
	loop_del(&a->loop, &a->admit.source);
	close(a->admit.source.fd);
}
