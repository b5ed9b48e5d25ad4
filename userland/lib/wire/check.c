// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Validates answers of the data path before anything acts on them. */
#include "check.h"

bool saina_check_round(__le32 round)
{
	return le32toh(round) <= SAINA_ROUND_MAX;
}

uint32_t saina_check_weight(const struct saina_job *job, const struct saina_hdr *h)
{
	uint64_t weight = (uint64_t)h->contributors + le32toh(h->slot_round);

	return weight <= (job->tree ? job->weight : h->contributors) ? weight : 0;
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
	if (h->elem != s->elem || le16toh(h->count) != saina_job_count(s) || len != s->msglen)
		return false;
	if (le32toh(h->segment) >= s->segments || !saina_check_round(h->round))
		return false;
	if (h->contributors != __builtin_popcountll(mask) || !saina_check_weight(s, h))
		return false;
	if (!saina_exponent_valid_in_result(s->elem, h->exponent) ||
	    (h->flags & SAINA_F_TYPES && h->exponent != SAINA_EXPONENT_NAN))
		return false;
	/* What the flags say of this worker must agree with the mask. */
	in = s->worker < 64 && (mask >> s->worker & 1);
	if (h->worker != SAINA_WORKER_ANY &&
	    (((h->flags & SAINA_F_LATE) && in) || ((h->flags & SAINA_F_RESEND) && !in)))
		return false;
	return true;
}

/* A COMPLETION is to all workers or to this one. */
static bool check_completion(const struct saina_job *s, const struct saina_hdr *h, size_t len)
{
	if (h->worker == SAINA_WORKER_ANY
		    ? h->session != 0
		    : h->worker != s->worker || le64toh(h->session) != s->session)
		return false;
	return s->segments && le32toh(h->segment) < s->segments && saina_check_round(h->round) &&
	       !h->count && len == sizeof(struct saina_doorbell);
}

bool saina_check_unicast(const struct saina_job *s, const struct saina_hdr *h)
{
	return s->segments && h->worker == s->worker && le64toh(h->session) == s->session;
}

/* SUM, NAK and GO are to this worker; a GO may be to all. */
static bool check_steps(const struct saina_job *s, const struct saina_hdr *h, size_t len)
{
	bool all = h->type == SAINA_MSG_GO && h->worker == SAINA_WORKER_ANY;

	if (!s->segments || (all ? h->session != 0 : !saina_check_unicast(s, h)))
		return false;
	if (h->type == SAINA_MSG_GO)
		return !len && !h->count;
	if (le32toh(h->segment) >= s->segments || h->elem != s->elem)
		return false;
	/* A SUM of at least one update has an exponent, and a NAK whose reason it is. */
	if ((h->type == SAINA_MSG_SUM ? h->mask != 0 : h->k == SAINA_NAK_EXPONENT) &&
	    !saina_exponent_valid(h->exponent) && h->exponent != SAINA_EXPONENT_INT)
		return false;
	if (h->type == SAINA_MSG_SUM)
		return le16toh(h->count) == saina_job_count(s) && len == s->wire && saina_check_round(h->round);
	/* In a batch a NAK is as long as the message that it answers. */
	return !h->count && (!len || len == s->wire || len == sizeof(struct saina_ask) ||
			     len == sizeof(struct saina_doorbell));
}

/* STALE and ASK_REPLY are about a segment of a round, and have no elements. */
static bool check_segment(const struct saina_job *s, const struct saina_hdr *h)
{
	return saina_check_unicast(s, h) && le32toh(h->segment) < s->segments && saina_check_round(h->round) &&
	       !h->count;
}

bool saina_check_answer(const struct saina_job *job, const struct saina_hdr *h, size_t len)
{
	switch (h->type) {
	case SAINA_MSG_RESULT:
		return check_result(job, h, len + sizeof(*h));
	case SAINA_MSG_STALE:
		/* In a batch of results a STALE is as long as they are. */
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
	}
	return false;
}
