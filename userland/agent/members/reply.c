// SPDX-License-Identifier: GPL-2.0-or-later
/* Messages to workers: WELCOME, STATUS, REFUSE (uapi/saina/proto.h). */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/members/internal.h"

/* Refusals in a second are limited, because they may go to forged addresses. */
#define REFUSALS_MAX	   500
#define REFUSALS_PER_CLASS 20	/* to addresses of the same hash */

/* The header has 48 bytes and bodies are aligned to 4: a struct of both has no padding. */
_Static_assert(sizeof(struct {
		       struct saina_hdr h;
		       struct saina_welcome_tree b;
	       }) == 112,
	       "no padding");

static struct log_limit refuse_limit;

static void send_msg(struct agent *a, const struct sockaddr_in *to, const void *msg, size_t len)
{
	/* the worker asks again if this is lost */
	if (sendto(a->members->ctrl.source.fd, msg, len, MSG_DONTWAIT | MSG_NOSIGNAL,
		   (const struct sockaddr *)to, sizeof(*to)) < 0)
		log_limited(&refuse_limit, LOG_L_WARN, "cannot answer %s: %s",
			    inet_ntoa(to->sin_addr), strerror(errno));
}

static void fill_header(struct saina_hdr *h, int type, int job, int worker, uint64_t session)
{
	memset(h, 0, sizeof(*h));
	h->version = SAINA_PROTO_VERSION;
	h->type = type;
	h->job = htole16(job);
	h->worker = worker;
	h->session = htole64(session);
}

/* Return: false if the budget for this address is used up. */
static bool take_refusal_budget(struct ctrl_socket *s, __be32 ip)
{
	_Static_assert(REFUSAL_CLASSES == 1 << 6, "of the hash");
	unsigned int *of = &s->refusals_by[(ip * 2654435761u) >> 26];
	uint64_t second = loop_now() / NSEC_PER_SEC;

	if (s->refusal_second != second) {
		s->refusal_second = second;
		s->refusals = 0;
		memset(s->refusals_by, 0, sizeof(s->refusals_by));
	}
	if (*of >= REFUSALS_PER_CLASS || s->refusals >= REFUSALS_MAX)
		return false;
	++*of;
	s->refusals++;
	return true;
}

static void send_refusal(struct agent *a, const struct sender *from, const struct saina_hdr *req,
			 uint64_t nonce, int reason, const char *fmt, va_list ap)
{
	struct {
		struct saina_hdr hdr;
		struct saina_refuse body;
	} msg;
	/* whose library knows trees says so then: the first JOIN of each worker is refused so */
	int level = reason == SAINA_REFUSE_TREE ? LOG_L_DEBUG : LOG_L_INFO;

	memset(&msg, 0, sizeof(msg));
	fill_header(&msg.hdr, SAINA_MSG_REFUSE, le16toh(req->job), req->worker,
		    le64toh(req->session));
	/* a sender of another version reads a REFUSE of its own version only */
	msg.hdr.version = req->version;
	msg.body.nonce = htole64(nonce);
	msg.body.reason = htole32(reason);
	vsnprintf(msg.body.text, sizeof(msg.body.text), fmt, ap);
	/* a JOIN by name has no number */
	if (req->type == SAINA_MSG_JOIN && req->flags & SAINA_F_NAMED)
		log_limited(&refuse_limit, level, "refused %s: %s", from->text, msg.body.text);
	else
		log_limited(&refuse_limit, level, "refused %s (job %u): %s", from->text,
			    le16toh(req->job), msg.body.text);
	send_msg(a, &from->addr, &msg, sizeof(msg));
}

void reply_refuse(struct agent *a, const struct sender *from, const struct saina_hdr *req,
		  uint64_t nonce, int reason, const char *fmt, ...)
{
	va_list ap;

	if (!take_refusal_budget(&a->members->ctrl, from->addr.sin_addr.s_addr))
		return;
	va_start(ap, fmt);
	send_refusal(a, from, req, nonce, reason, fmt, ap);
	va_end(ap);
}

/* A refusal without a request, to a known address: takes no budget. */
static void send_dismissal(struct agent *a, const struct sender *to, const struct saina_hdr *hdr,
			   const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	send_refusal(a, to, hdr, 0, SAINA_REFUSE_NO_JOB, fmt, ap);
	va_end(ap);
}

static struct sockaddr_in worker_address(const struct saina_job *job, int w)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = job->worker[w].bind.udp_port,
		.sin_addr.s_addr = job->worker[w].bind.ip,
	};
}

/* Tells the worker that its READY has arrived. */
static int reported_path(const struct worker_aux *aux)
{
	if (!aux->ready)
		return SAINA_PATH_UNKNOWN;
	return aux->fast ? SAINA_PATH_FAST : SAINA_PATH_RELAYED;
}

/* Number of parts that a round's data is cut into; 0: each worker has data of its own. */
static unsigned int count_parts(const struct saina_job *job, const struct saina_policy *p)
{
	return p->mode == SAINA_POLICY_CODED ? job->workers / (p->spread + 1) : 0;
}

void reply_status(struct agent *a, const struct saina_job *job, int w)
{
	const struct saina_policy *policy = jobs_policy(a, job);
	const struct job_aux *aux = a->jobs->aux[job->id];
	unsigned int parts = count_parts(job, policy);
	struct sockaddr_in to = worker_address(job, w);
	struct {
		struct saina_hdr hdr;
		struct saina_status body;
	} msg;
	char why[SAINA_TEXT_LEN];

	memset(&msg, 0, sizeof(msg));
	fill_header(&msg.hdr, SAINA_MSG_STATUS, job->id, w, job->worker[w].bind.session);
	msg.hdr.segment = htole32(jobs_worker(a, job, w)->probe);
	msg.hdr.aux = htole32(shm_output_id(a, job, why, sizeof(why)));
	msg.hdr.k = 1 + parts;
	msg.hdr.contributors = parts ? w % parts : 0;
	if (aux->missing_round + 1 == jobs_next_round(a, job))
		msg.hdr.mask = htole64(aux->missing & job->active);
	msg.body.active = htole64(job->active);
	msg.body.round = htole32(jobs_next_round(a, job));
	msg.body.state = job->state;
	msg.body.path = reported_path(jobs_worker(a, job, w));
	msg.body.timeout_ms = htole16((policy->timeout_us + 999) / 1000);
	memcpy(msg.body.text, aux->awaited, sizeof(msg.body.text));
	send_msg(a, &to, &msg, sizeof(msg));
}

void reply_job_gone(struct agent *a, const struct saina_job *job, const char *why)
{
	struct sender to;
	struct saina_hdr hdr;
	int w;

	for (w = 0; w < job->workers; w++) {
		if (!jobs_alive(job, w))
			continue;
		to.addr = worker_address(job, w);
		snprintf(to.text, sizeof(to.text), "worker %d", w);
		fill_header(&hdr, 0, job->id, w, job->worker[w].bind.session);
		send_dismissal(a, &to, &hdr, "job %s (%u) %s", job->name, job->id, why);
	}
}

void reply_join_again(struct agent *a, const struct saina_job *job, int w, const char *why)
{
	struct sockaddr_in to = worker_address(job, w);
	struct {
		struct saina_hdr hdr;
		struct saina_refuse body;
	} msg;

	memset(&msg, 0, sizeof(msg));
	fill_header(&msg.hdr, SAINA_MSG_REFUSE, job->id, w, job->worker[w].bind.session);
	msg.body.reason = htole32(SAINA_REFUSE_SESSION);
	snprintf(msg.body.text, sizeof(msg.body.text), "worker %d of job %s: its %s: join again", w,
		 job->name, why);
	/* mostly nobody is there: the port is away, and the bridge may be, too */
	sendto(a->members->ctrl.source.fd, &msg, sizeof(msg), MSG_DONTWAIT | MSG_NOSIGNAL,
	       (const struct sockaddr *)&to, sizeof(to));
}

static void fill_tree(struct agent *a, const struct saina_job *job, int w,
		      struct saina_welcome_tree *m)
{
	const struct job_place *p = &a->jobs->aux[job->id]->place;
	bool below = saina_job_has_uplink(job);
	__u32 rank = saina_job_weight(job, w);

	m->weight = htole32(below ? p->weight : saina_job_weight(job, job->workers));
	m->rank0 = htole32(below ? p->rank0 + rank : rank);
	m->depth = below ? p->depth : 0;
	m->quorum = htole32(below ? p->quorum : 0);
}

void reply_welcome(struct agent *a, const struct sockaddr_in *to, const struct saina_job *job,
		   int w, bool tree)
{
	const struct worker_aux *aux = jobs_worker(a, job, w);
	struct {
		struct saina_hdr hdr;
		union {
			struct saina_welcome body;
			struct saina_welcome_tree tree;
		};
	} msg;

	memset(&msg, 0, sizeof(msg));
	fill_header(&msg.hdr, SAINA_MSG_WELCOME, job->id, w, job->worker[w].bind.session);
	msg.body.nonce = htole64(aux->nonce);
	msg.body.elements = htole64(job->elements);
	msg.body.segments = htole32(job->segments);
	msg.body.payload = htole16(job->payload);
	msg.body.pool = htole16(job->pool);
	msg.body.ring = htole16(job->ring);
	msg.body.workers = job->workers;
	msg.body.state = job->state;
	/* Workers that formed the job start with its first round, even if others have opened
	 * the next by the time of a repeated JOIN. */
	msg.body.round = htole32(aux->formed ? job->first_round : aux->first_round);
	msg.body.group = htole32(SAINA_GROUP_BASE + job->id);
	msg.body.heartbeat_ms = htole16(job->heartbeat_ms);
	msg.body.dead_ms = htole16(job->dead_ms);
	msg.body.exponent = job->exponent - SAINA_EXPONENT_BIAS;
	msg.body.elem = job->elem;
	msg.body.formed = aux->formed;
	msg.body.reports = 1;
	msg.body.parts = count_parts(job, jobs_policy(a, job));
	msg.body.part = msg.body.parts ? w % msg.body.parts : 0;
	/* without the socket: no sharing, but a by-reference-only worker must say why it fails */
	msg.body.by_reference = a->members->shm.listener.fd >= 0 ||
				job->by_reference == SAINA_REFERENCE_ONLY ? job->by_reference : 0;
	if (tree) {
		msg.hdr.flags = SAINA_F_TREE;
		fill_tree(a, job, w, &msg.tree);
	}
	send_msg(a, to, &msg, sizeof(msg.hdr) + (tree ? sizeof(msg.tree) : sizeof(msg.body)));
}
