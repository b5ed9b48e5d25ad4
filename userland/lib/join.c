// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Being admitted to a job, and staying so.
 *
 *	JOINING --WELCOME--> PROBING --PROBE_REPLY or none--> READYING --STATUS--+
 *	   ^                                                                    |
 *	   | REFUSE(SESSION)      job was forming: FORMING <--------------------+
 *	   |                                          | STATUS running          |
 *	   |                                      CONFIRMING --WELCOME--> RUNNING
 *	   |                                                                    |
 *	   |  REREADYING <--WELCOME-- REJOINING <--------REFUSE(SESSION)---------+
 *
 * Everything is sent again until it is answered.  A job that was forming when this
 * worker was admitted may learn of a later first round from a later worker;
 * that is why the JOIN is repeated (same nonce) once the job runs.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <arpa/inet.h>
#include "private.h"

#define PROBES	       25
#define BATCH_PROBES   10 /* of these, the first ones go in twos */
#define PROBE_NS       (40 * MSEC)
#define PATIENCE_NS    (3000 * MSEC)
#define WAITING_NS     (2000 * MSEC)	/* silence gets a word */
#define FORMING_NS     (50 * MSEC)
#define JOIN_MS	       5000
#define RELAYED_RTO_NS (20 * MSEC)
#define SILENCE_MS     60000

static void enter(struct saina *s, enum saina_phase phase)
{
	s->phase = phase;
	s->join.next_ns = 0;
	s->join.tries = 0;
	s->join.since_ns = saina_now();
	pthread_cond_broadcast(&s->cond);
}

static void new_nonce(struct saina *s)
{
	uint64_t nonce = 0;

	while (!nonce)
		if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
			nonce = saina_now();
	s->join.body.nonce = nonce;
}

void saina_join_start(struct saina *s)
{
	new_nonce(s);
	s->heard_ns = saina_now();
	enter(s, PHASE_JOINING);
}

/* The agent does not know us (any more). */
void saina_join_again(struct saina *s)
{
	new_nonce(s);
	if (s->phase == PHASE_RUNNING || s->phase == PHASE_REREADYING || s->join.again) {
		s->join.again = true;
		s->join.body.round = htole32(s->round);
		s->stats.rejoins++;
		saina_log(s, "the agent no longer knows worker %u of job %u: joining again",
			  s->worker, s->job);
		enter(s, PHASE_REJOINING);
	} else {
		enter(s, PHASE_JOINING);
	}
}

static void send_join(struct saina *s)
{
	struct {
		struct saina_hdr h;
		struct saina_join j;
	} m;

	saina_send_header(s, &m.h, SAINA_MSG_JOIN);
	m.h.session = 0;
	if (s->phase == PHASE_JOINING)
		m.h.worker = s->opts.worker < 0 ? SAINA_WORKER_ANY : s->opts.worker;
	m.j = s->join.body;
	saina_send_control(s, &s->ctrl, &m, sizeof(m));
}

static void send_probe(struct saina *s, unsigned int i, uint64_t now)
{
	struct saina_hdr h;

	s->join.probe_ns[i] = now;
	saina_send_header(s, &h, SAINA_MSG_PROBE);
	h.elem = s->elem;
	h.round = htole32(i);
	if (i == BATCH_PROBES && s->join.batched)
		s->batch.segment = false;
	if (saina_send_probe(s, &h))
		s->join.batched = true;
}

static void send_short(struct saina *s, int type)
{
	struct saina_hdr h;

	saina_send_header(s, &h, type);
	h.round = htole32(s->round);
	/* until the agent knows better than to relay */
	if (type == SAINA_MSG_HEARTBEAT && s->join.mended)
		send_short(s, SAINA_MSG_READY);
	if (type == SAINA_MSG_READY && s->join.fast)
		h.flags = SAINA_F_FAST;
	saina_send_control(s, &s->ctrl, &h, sizeof(h));
	if (type == SAINA_MSG_HEARTBEAT)
		s->join.heartbeat_ns = saina_now();
}

/*
 * How long to wait for any PROBE_REPLY.  Where GRO is off there is no doubt; elsewhere
 * the host may just be busy, as the other workers may have begun to train.
 */
static uint64_t probing_ns(struct saina *s)
{
	return saina_socket_gro(s) ? PATIENCE_NS : PROBES * PROBE_NS;
}

/* Results by redirect do not reach us.  Say why, if it can be seen from here. */
static void explain_slow(struct saina *s)
{
	int gro = saina_socket_gro(s);

	if (!gro)
		saina_log(s,
			  "results cannot be redirected to %s, they come by the agent instead "
			  "(slower): generic receive offload is off here, and without it a veth "
			  "drops redirected frames. Mend it with `ethtool -K %s gro on` in this "
			  "container and join again",
			  s->ifname, s->ifname);
	else
		saina_log(s,
			  "results cannot be redirected to %s, they come by the agent instead "
			  "(slower): no probe of %u was answered. If %s is a veth, `ethtool -K %s "
			  "gro on` in this container gives it the NAPI it needs; see `saina "
			  "doctor` on the host",
			  s->ifname, PROBES, s->ifname, s->ifname);
}

static bool timed_out(struct saina *s, uint64_t now)
{
	int join = s->opts.join_timeout_ms ? s->opts.join_timeout_ms : JOIN_MS;
	int start = s->opts.start_timeout_ms;
	int silence = s->opts.timeout_ms ? s->opts.timeout_ms : SILENCE_MS;
	char addr[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &s->ctrl.sin_addr, addr, sizeof(addr));
	/* probing ends by itself */
	if (join > 0 &&
	    ((s->phase == PHASE_JOINING && now > s->opened_ns + join * MSEC) ||
	     (s->phase == PHASE_READYING && now > s->join.since_ns + join * MSEC))) {
		if (s->join.refused)
			saina_fail(s, s->join.refused, "%s", s->error);
		else
			saina_fail(s, -ETIMEDOUT,
				   "no answer from %s:%u within %d ms: is sainad running there "
				   "with job %u, and is this interface (%s) on its bridge?",
				   addr, ntohs(s->ctrl.sin_port), join, s->job, s->ifname);
		return true;
	}
	if (join > 0 && s->phase == PHASE_REJOINING && s->join.refused &&
	    now > s->join.since_ns + join * MSEC) {
		saina_fail(s, -ECONNRESET, "%s", s->error);
		return true;
	}
	if ((s->phase == PHASE_FORMING || s->phase == PHASE_CONFIRMING) && !s->join.again &&
	    start > 0 && now > s->admitted_ns + start * MSEC) {
		saina_fail(s, -ETIMEDOUT,
			   "job %u still waits for workers after %d ms: %d of %u are there", s->job,
			   start, __builtin_popcountll(s->active), s->workers);
		return true;
	}
	if (s->phase >= PHASE_FORMING && s->phase <= PHASE_REREADYING && silence > 0 &&
	    now > s->heard_ns + silence * MSEC) {
		saina_fail(
			s, -ETIMEDOUT,
			"nothing heard from %s for %d ms: is the host up, is sainad running there?",
			addr, silence);
		return true;
	}
	return false;
}

/**
 * saina_join_run() - send what is due
 *
 * Returns when it wants to be called again.
 */
uint64_t saina_join_run(struct saina *s, uint64_t now)
{
	struct saina_join_state *j = &s->join;
	uint64_t beat = 0;

	if (s->phase == PHASE_FAILED || timed_out(s, now))
		return NEVER;

	/* Not before READY is answered: the answer to a heartbeat looks the same. */
	if (s->phase >= PHASE_FORMING && s->phase <= PHASE_RUNNING) {
		beat = s->heartbeat_ms * MSEC;
		if (s->phase == PHASE_FORMING && beat > FORMING_NS)
			beat = FORMING_NS;
		if (s->phase == PHASE_FORMING && !j->waiting && now >= j->since_ns + WAITING_NS) {
			j->waiting = true;
			saina_log(s, "job %u waits for its workers: %d of %u are here", s->job,
				  __builtin_popcountll(s->active), s->workers);
		}
		if (now >= j->heartbeat_ns + beat)
			send_short(s, SAINA_MSG_HEARTBEAT);
	}

	if (now >= j->next_ns) {
		switch (s->phase) {
		case PHASE_JOINING:
		case PHASE_REJOINING:
		case PHASE_CONFIRMING:
			send_join(s);
			break;
		case PHASE_PROBING:
			if (j->tries == PROBES && now < j->since_ns + probing_ns(s)) {
				j->next_ns = j->since_ns + probing_ns(s);
				return j->next_ns;
			}
			if (j->tries == PROBES) {
				explain_slow(s);
				enter(s, PHASE_READYING);
				return now;
			}
			send_probe(s, j->tries, now);
			j->next_ns = now + PROBE_NS;
			j->tries++;
			return j->next_ns;
		case PHASE_READYING:
		case PHASE_REREADYING:
			send_short(s, SAINA_MSG_READY);
			break;
		case PHASE_LEAVING:
			send_short(s, SAINA_MSG_LEAVE);
			break;
		default:
			j->next_ns = NEVER;
			break;
		}
		if (j->next_ns != NEVER) {
			j->next_ns = now + (j->tries < 3 ? 50 * MSEC << j->tries : 400 * MSEC);
			j->tries++;
		}
	}
	if (beat)
		return j->heartbeat_ns + beat < j->next_ns ? j->heartbeat_ns + beat : j->next_ns;
	return j->next_ns;
}

/* The numbers of the job; returns false if it failed (and says so). */
static bool adopt(struct saina *s, const struct saina_hdr *h, const struct saina_welcome *w)
{
	uint64_t elements = le64toh(w->elements);
	int ret;

	if (w->elem != SAINA_ELEM_INT32 && w->elem != SAINA_ELEM_FLOAT32 &&
	    w->elem != SAINA_ELEM_BFLOAT16) {
		saina_fail(s, -EOPNOTSUPP,
			   "job %u sums elements of type %u, which this library does not know", s->job,
			   w->elem);
		return false;
	}
	if (s->opts.elements > elements) {
		saina_fail(s, -EMSGSIZE, "job %u has %llu elements, %llu are wanted", s->job,
			   (unsigned long long)elements, (unsigned long long)s->opts.elements);
		return false;
	}
	s->elements = elements;
	s->segments = le32toh(w->segments);
	s->payload = le16toh(w->payload);
	s->pool = le16toh(w->pool);
	s->ring = le16toh(w->ring);
	s->workers = w->workers;
	s->elem = w->elem;
	s->group = le32toh(w->group);
	s->heartbeat_ms = le16toh(w->heartbeat_ms);
	s->dead_ms = le16toh(w->dead_ms);
	s->exponent0 = w->exponent;
	s->limit = (float)(1u << saina_quant_limit_bits(s->workers));
	s->wire = (size_t)s->payload * (s->elem == SAINA_ELEM_BFLOAT16 ? 2 : 4);
	s->msglen = sizeof(struct saina_hdr) + s->wire;
	s->worker = h->worker;
	if (s->mtu < s->msglen + 28) {
		saina_fail(s, -EMSGSIZE,
			   "interface %s has MTU %u, job %u sends packets of %zu bytes: raise the "
			   "MTU (here and on the host's side) or give the job a smaller payload",
			   s->ifname, s->mtu, s->job, s->msglen + 28);
		return false;
	}

	saina_window_begin(s);
	s->seg = calloc(s->segments, sizeof(*s->seg));
	s->kept = calloc(s->ring, sizeof(*s->kept));
	/* Zero pages until something is kept in them. */
	s->residual = calloc((size_t)s->segments * s->payload, 4);
	if (!s->seg || !s->kept || !s->residual || saina_send_init(s)) {
		saina_fail(s, -ENOMEM, "out of memory for job %u of %llu elements", s->job,
			   (unsigned long long)elements);
		return false;
	}
	ret = saina_socket_group(s);
	if (ret) {
		saina_fail(s, ret, "%s", s->error);
		return false;
	}
	return true;
}

static bool unchanged(const struct saina *s, const struct saina_hdr *h,
		      const struct saina_welcome *w)
{
	return h->worker == s->worker && le64toh(w->elements) == s->elements &&
	       le16toh(w->payload) == s->payload && le16toh(w->pool) == s->pool &&
	       le16toh(w->ring) == s->ring && w->workers == s->workers && w->elem == s->elem;
}

static void run(struct saina *s)
{
	enter(s, PHASE_RUNNING);
	if (s->join.again)
		saina_flow_again(s);
	else
		saina_flow_begin(s);
}

static void welcome(struct saina *s, const struct saina_hdr *h, const struct saina_welcome *w)
{
	switch (s->phase) {
	case PHASE_JOINING:
		if (s->segments && !unchanged(s, h, w)) {
			saina_fail(s, -ECONNRESET,
				   "job %u was replaced by another one while this worker joined",
				   s->job);
			return;
		}
		s->session = le64toh(h->session);
		s->worker = h->worker;
		if (!s->segments && !adopt(s, h, w)) {
			send_short(s, SAINA_MSG_LEAVE);
			return;
		}
		break;
	case PHASE_REJOINING:
		if (!unchanged(s, h, w)) {
			saina_fail(s, -ECONNRESET,
				   "job %u was replaced by another one: open it anew", s->job);
			return;
		}
		break;
	case PHASE_CONFIRMING:
		if (w->state == SAINA_JOB_FORMING)
			return; /* an earlier answer, late */
		s->first_round = le32toh(w->round);
		s->session = le64toh(h->session);
		run(s);
		return;
	default:
		return; /* a duplicate */
	}
	s->session = le64toh(h->session);
	s->first_round = le32toh(w->round);
	s->formed = w->formed || w->state == SAINA_JOB_FORMING;
	s->admitted_ns = saina_now();
	s->join.heartbeat_ns = 0;
	if (s->phase == PHASE_JOINING)
		s->join.fast = s->join.mended = false;
	enter(s, s->phase == PHASE_REJOINING ? PHASE_REREADYING : PHASE_PROBING);
}

static void refuse(struct saina *s, const struct saina_refuse *r)
{
	static const int err[] = {
		[SAINA_REFUSE_MALFORMED] = -EPROTO,  [SAINA_REFUSE_NO_JOB] = -ENOENT,
		[SAINA_REFUSE_TOKEN] = -EACCES,	     [SAINA_REFUSE_FULL] = -EUSERS,
		[SAINA_REFUSE_TAKEN] = -EBUSY,	     [SAINA_REFUSE_ELEMENTS] = -EMSGSIZE,
		[SAINA_REFUSE_STOPPED] = -ESHUTDOWN, [SAINA_REFUSE_PORT] = -ENETUNREACH,
		[SAINA_REFUSE_SESSION] = -ESTALE,    [SAINA_REFUSE_VERSION] = -EPROTONOSUPPORT,
	};
	uint32_t reason = le32toh(r->reason);
	int e = reason < sizeof(err) / sizeof(err[0]) && err[reason] ? err[reason] : -EPROTO;

	switch (s->phase) {
	case PHASE_JOINING:
	case PHASE_REJOINING:
		if (r->nonce != s->join.body.nonce)
			return;
		if (reason == SAINA_REFUSE_TAKEN || reason == SAINA_REFUSE_PORT) {
			/* Perhaps by our dead predecessor: it will be noticed.  Or what the
			 * switch noted of us was lost in a flood of JOINs. */
			if (!s->join.refused)
				saina_log(s, "%s; trying again", r->text);
			s->join.refused = e;
			saina_error(s, e, "%s", r->text);
			return;
		}
		if (s->phase == PHASE_REJOINING)
			e = -ECONNRESET;
		break;
	case PHASE_LEAVING:
		s->join.gone = true;
		pthread_cond_broadcast(&s->cond);
		return;
	case PHASE_FAILED:
	case PHASE_PROBING:
		return;
	default:
		if (reason == SAINA_REFUSE_SESSION) {
			saina_join_again(s);
			return;
		}
		if (r->nonce && s->phase != PHASE_CONFIRMING)
			return; /* of a JOIN long answered */
		e = -ECONNRESET;
		break;
	}
	saina_fail(s, e, "%s", r->text);
}

static void status(struct saina *s, const struct saina_status *st, uint64_t now)
{
	/* Of before our READY, as the job's state had changed, or the answer to an earlier
	 * one.  To go on with it would be to wait for results that nobody is asked to
	 * relay, or to take those that are redirected for relayed ones. */
	if ((s->phase == PHASE_READYING || s->phase == PHASE_REREADYING) &&
	    s->join.fast == !!st->relayed && st->state != SAINA_JOB_STOPPED)
		return;
	s->active = le64toh(st->active);
	s->relayed = st->relayed;
	s->join.mended &= s->relayed;
	/* By the agent it takes longer, and it is the agent who would suffer. */
	s->rto.min = s->relayed && !s->opts.rto_min_us ? RELAYED_RTO_NS : s->rto_min;
	if (s->phase == PHASE_LEAVING) {
		s->join.gone = true;
		pthread_cond_broadcast(&s->cond);
		return;
	}
	if (st->state == SAINA_JOB_STOPPED) {
		saina_fail(s, -ECONNRESET, "job %u was stopped by its operator", s->job);
		return;
	}
	switch (s->phase) {
	case PHASE_READYING:
	case PHASE_REREADYING:
		if (s->formed)
			enter(s, st->state == SAINA_JOB_RUNNING ? PHASE_CONFIRMING : PHASE_FORMING);
		else
			run(s);
		break;
	case PHASE_FORMING:
		if (st->state == SAINA_JOB_RUNNING)
			enter(s, PHASE_CONFIRMING);
		break;
	case PHASE_RUNNING:
		if (st->state == SAINA_JOB_RUNNING)
			saina_flow_next(s, le32toh(st->round));
		break;
	default:
		break;
	}
}

static void probe_reply(struct saina *s, uint32_t i, uint64_t now)
{
	struct saina_join_state *j = &s->join;

	if (s->phase == PHASE_PROBING && i < j->tries) {
		j->fast = true;
		if (i < BATCH_PROBES && j->batched)
			s->batch.segment = true;
		else if (j->batched)
			saina_log(s,
				  "batches of messages do not get through by %s (generic XDP at the "
				  "other end does not cut them), single ones do: sending message by "
				  "message, which is slower",
				  s->ifname);
		saina_rto_sample(&s->rto, now - j->probe_ns[i]);
		enter(s, PHASE_READYING);
	} else if (!j->fast && i < PROBES && s->phase >= PHASE_READYING &&
		   s->phase <= PHASE_RUNNING) {
		/* later than we waited, but they do come by redirect */
		saina_log(s, "a probe was answered after all: results can be redirected to %s",
			  s->ifname);
		j->fast = j->mended = true;
		if (s->phase == PHASE_READYING)
			j->next_ns = 0;
		else
			j->heartbeat_ns = 0;
	}
}

/* A control message or PROBE_REPLY that saina_check() has let through. */
void saina_join_input(struct saina *s, const struct saina_hdr *h, const void *body, uint64_t now)
{
	switch (h->type) {
	case SAINA_MSG_WELCOME:
		welcome(s, h, body);
		break;
	case SAINA_MSG_REFUSE:
		refuse(s, body);
		break;
	case SAINA_MSG_STATUS:
		status(s, body, now);
		break;
	case SAINA_MSG_PROBE_REPLY:
		probe_reply(s, le32toh(h->round), now);
		break;
	}
}

void saina_join_leave(struct saina *s)
{
	enter(s, PHASE_LEAVING);
}
