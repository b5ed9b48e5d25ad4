// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Validates a message before anything acts on it: may the aggregator have sent it to this worker?
 */
#include "session.h"
#include "gradient/quant.h"

static bool is_round(__le32 round)
{
	return le32toh(round) <= SAINA_ROUND_MAX;
}

static bool check_result(const struct saina_job *s, const struct saina_hdr *h, size_t len)
{
	uint64_t mask = le64toh(h->mask);
	bool in;

	if (!s->segments)
		return false;
	if (h->worker == SAINA_WORKER_ANY) {
		if (h->session)
			return false;
	} else if (h->worker != s->worker || le64toh(h->session) != s->session) {
		return false;
	}
	if (h->elem != s->elem || le16toh(h->count) != s->payload || len != s->msglen)
		return false;
	if (le32toh(h->segment) >= s->segments || !is_round(h->round))
		return false;
	if (!h->contributors || h->contributors != __builtin_popcountll(mask))
		return false;
	if (!saina_exponent_valid_in_result(s->elem, h->exponent))
		return false;
	/* What it says of us must agree with the mask. */
	in = s->worker < 64 && (mask >> s->worker & 1);
	if (h->worker != SAINA_WORKER_ANY &&
	    (((h->flags & SAINA_F_LATE) && in) || ((h->flags & SAINA_F_RESEND) && !in)))
		return false;
	return true;
}

/* To all or to us: results are in the output array. */
static bool check_completion(const struct saina_job *s, const struct saina_hdr *h, size_t len)
{
	if (h->worker == SAINA_WORKER_ANY
		    ? h->session != 0
		    : h->worker != s->worker || le64toh(h->session) != s->session)
		return false;
	return s->segments && le32toh(h->segment) < s->segments && is_round(h->round) &&
	       !h->count && len == sizeof(struct saina_doorbell);
}

static bool check_welcome(const struct saina_hdr *h, const struct saina_welcome *w)
{
	uint32_t payload = le16toh(w->payload), pool = le16toh(w->pool), ring = le16toh(w->ring);
	uint64_t elements = le64toh(w->elements);
	bool known = false;

#define KNOWN(E) known |= payload == (E);
	SAINA_ELEMS_LIST(KNOWN)
#undef KNOWN
	return known && is_round(w->round) && h->worker < SAINA_WORKERS_MAX && elements &&
	       le32toh(w->segments) == (elements + payload - 1) / payload && pool &&
	       !(pool & (pool - 1)) && ring > 1 && !(ring & (ring - 1)) && ring <= 1024 &&
	       w->workers && w->workers <= SAINA_WORKERS_MAX && w->heartbeat_ms && w->elem &&
	       le32toh(w->group) == SAINA_GROUP_BASE + le16toh(h->job) &&
	       saina_exponent_valid(w->exponent);
}

/* A unicast answer, to us, about a job that we know. */
static bool check_unicast(const struct saina_job *s, const struct saina_hdr *h)
{
	return s->segments && h->worker == s->worker && le64toh(h->session) == s->session;
}

/* To us, or, a GO, to all. */
static bool check_steps(const struct saina_job *s, const struct saina_hdr *h, size_t len)
{
	bool all = h->type == SAINA_MSG_GO && h->worker == SAINA_WORKER_ANY;

	if (!s->segments || (all ? h->session != 0 : !check_unicast(s, h)))
		return false;
	if (h->type == SAINA_MSG_GO)
		return !len && !h->count;
	if (le32toh(h->segment) >= s->segments || h->elem != s->elem)
		return false;
	/* of sums that there are, and of the table's if it is the reason */
	if ((h->type == SAINA_MSG_SUM ? h->mask != 0 : h->k == SAINA_NAK_EXPONENT) &&
	    !saina_exponent_valid(h->exponent))
		return false;
	if (h->type == SAINA_MSG_SUM)
		return le16toh(h->count) == s->payload && len == s->wire && is_round(h->round);
	/* among others it is as long as what it answers */
	return !h->count && (!len || len == s->wire || len == sizeof(struct saina_ask) ||
			     len == sizeof(struct saina_doorbell));
}

/* About a segment of a round, and without elements. */
static bool check_segment(const struct saina_job *s, const struct saina_hdr *h)
{
	return check_unicast(s, h) && le32toh(h->segment) < s->segments && is_round(h->round) &&
	       !h->count;
}

/* That another version is spoken there: all of a message that all versions understand. */
static bool check_version(const struct saina_hdr *h, size_t len)
{
	const struct saina_refuse *r = (const void *)(h + 1);

	return h->type == SAINA_MSG_REFUSE && len == SAINA_CTRL_LEN &&
	       r->reason == htole32(SAINA_REFUSE_VERSION);
}

/**
 * saina_session_check() - is this message well formed, from the aggregator and for us?
 *
 * Results may come from the data port or, relayed by the agent, from either;
 * control messages come from the control port only.
 */
bool saina_session_check(const struct saina_session *j, enum saina_source from, const void *msg,
			 size_t len)
{
	const struct saina_job *job = &j->job;
	const struct saina_hdr *h = msg;
	const void *body = h + 1;
	const struct saina_refuse *r = body;
	const struct saina_status *st = body;

	if (from == SAINA_FROM_OTHERS || len < sizeof(*h) ||
	    (h->version != SAINA_PROTO_VERSION && !check_version(h, len)))
		return false;
	/* Between results, where there is none (yet). */
	if (h->type == SAINA_MSG_NOP)
		return true;
	/* WELCOME, known by its nonce, tells the number of a job joined by name. */
	if (le16toh(h->job) != job->id &&
	    !(h->type == SAINA_MSG_WELCOME && saina_session_by_name(j)))
		return false;
	len -= sizeof(*h);

	switch (h->type) {
	case SAINA_MSG_RESULT:
		return check_result(job, h, len + sizeof(*h));
	case SAINA_MSG_STALE:
		/* Among results it is as long as they are. */
		return check_segment(job, h) &&
		       (!len || len == job->wire || len == sizeof(struct saina_ask));
	case SAINA_MSG_ASK_REPLY:
		return check_segment(job, h) && len == sizeof(struct saina_ask);
	case SAINA_MSG_COMPLETION:
		return check_completion(job, h, len);
	case SAINA_MSG_SUM:
	case SAINA_MSG_NAK:
	case SAINA_MSG_GO:
		return check_steps(job, h, len);
	case SAINA_MSG_PROBE_REPLY:
		return check_unicast(job, h) && !len;
	}

	if (from != SAINA_FROM_CTRL)
		return false;
	switch (h->type) {
	case SAINA_MSG_WELCOME:
		return len == sizeof(struct saina_welcome) &&
		       ((const struct saina_welcome *)body)->nonce == j->body.nonce &&
		       check_welcome(h, body);
	case SAINA_MSG_REFUSE:
		return len == sizeof(*r) && memchr(r->text, 0, SAINA_TEXT_LEN) &&
		       (r->nonce == j->body.nonce || !r->nonce);
	case SAINA_MSG_STATUS:
		return len == sizeof(*st) && check_unicast(job, h);
	}
	return false;
}
