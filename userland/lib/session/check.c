// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Validates a message before anything acts on it: may the aggregator have sent it to this worker?
 */
#include "check.h"
#include "wire/check.h"

/* A WELCOME is longer in the answer to a JOIN with TREE. */
static bool check_welcome_tree(const struct saina_session *j, const struct saina_hdr *h,
			       const struct saina_welcome_tree *t, size_t len)
{
	if (!(h->flags & SAINA_F_TREE))
		return len == sizeof(t->welcome);
	return j->tree && len == sizeof(*t) && t->weight && le32toh(t->weight) <= SAINA_RANKS_MAX &&
	       le32toh(t->rank0) <= le32toh(t->weight) && t->depth <= SAINA_DEPTH_MAX &&
	       le32toh(t->quorum) <= le32toh(t->weight);
}

static bool check_welcome(const struct saina_hdr *h, const struct saina_welcome *w)
{
	uint32_t payload = le16toh(w->payload), pool = le16toh(w->pool), ring = le16toh(w->ring);
	uint64_t elements = le64toh(w->elements), each = SAINA_SEGMENT_ELEMS(w->elem, payload);
	bool known = false;

#define KNOWN(E) known |= payload == (E);
	SAINA_ELEMS_LIST(KNOWN)
#undef KNOWN
	return known && saina_check_round(w->round) && h->worker < SAINA_WORKERS_MAX && elements &&
	       le32toh(w->segments) == (elements + each - 1) / each && pool &&
	       !(pool & (pool - 1)) && ring > 1 && !(ring & (ring - 1)) && ring <= 1024 &&
	       w->workers && w->workers <= SAINA_WORKERS_MAX && w->heartbeat_ms && w->elem &&
	       le32toh(w->group) == SAINA_GROUP_BASE + le16toh(h->job) &&
	       saina_exponent_valid(w->exponent);
}

/* A REFUSE because of the version, the only message that all versions understand. */
static bool check_version(const struct saina_hdr *h, size_t len)
{
	const struct saina_refuse *r = (const void *)(h + 1);

	return h->type == SAINA_MSG_REFUSE && len == SAINA_CTRL_LEN &&
	       r->reason == htole32(SAINA_REFUSE_VERSION);
}

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
	/* Fills the place of a result that a batch does not have (yet). */
	if (h->type == SAINA_MSG_NOP)
		return true;
	/* The number of a job joined by name comes with the WELCOME, which has the nonce. */
	if (le16toh(h->job) != job->id &&
	    !(h->type == SAINA_MSG_WELCOME && saina_session_by_name(j)))
		return false;
	len -= sizeof(*h);

	switch (h->type) {
	case SAINA_MSG_RESULT:
	case SAINA_MSG_STALE:
	case SAINA_MSG_ASK_REPLY:
	case SAINA_MSG_COMPLETION:
	case SAINA_MSG_SUM:
	case SAINA_MSG_NAK:
	case SAINA_MSG_GO:
		return saina_check_answer(job, h, len);
	case SAINA_MSG_PROBE_REPLY:
		return saina_check_unicast(job, h) && !len;
	}

	if (from != SAINA_FROM_CTRL)
		return false;
	switch (h->type) {
	case SAINA_MSG_WELCOME:
		return check_welcome_tree(j, h, body, len) &&
		       ((const struct saina_welcome *)body)->nonce == j->body.nonce &&
		       check_welcome(h, body);
	case SAINA_MSG_REFUSE:
		return len == sizeof(*r) && memchr(r->text, 0, SAINA_TEXT_LEN) &&
		       (r->nonce == j->body.nonce || !r->nonce);
	case SAINA_MSG_STATUS:
		return len == sizeof(*st) && memchr(st->text, 0, sizeof(st->text)) &&
		       saina_check_unicast(job, h);
	}
	return false;
}
