// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * When to send what: window, gate, retransmission, pulls.
 *
 * Window: segment s of a round is sent once s - pool has its result, so that
 * the aggregator has a slot for it, and at most s->window (window.c) are in flight.
 *
 * Silence has two reasons.  Something was lost: then what is silent is sent again
 * after the RTO, each segment with its own backoff.  Or the round waits for a
 * straggler: then nothing moves, and only a few segments are sent again, ever more
 * slowly (stall), for one duplicate is enough to find out that the straggler has
 * died.  Before a round's first result silence means the latter, afterwards it takes
 * STALL_NS of it.
 *
 * A round that is known to be decided (a later one has been opened) takes no
 * gradients any more: what is missing of it is pulled.
 *
 * Gate: a worker that joins a running job at round r must not be the one who opens r
 * while r - 1 has segments nobody has sent yet, and it needs the exponents that
 * follow from r - 1.  So it asks for the results of r - 1 first, and sends when it
 * has them, or has seen that others have opened r.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include "private.h"

#define WINDOW_HEAD  8 /* oldest segments in flight, repaired without backoff */
#define STALL_NS     (40 * MSEC)
#define STALL_PROBES 2 /* segments sent again at a time while a round waits to begin */
#define STALL_BUDGET 8 /* ... and when it has come to a stop */
#define FETCH_BUDGET 64
#define GATE_NS	     (1000 * MSEC)

static bool decided(const struct saina *s)
{
	return s->known_next > s->round + 1;
}

static bool in_flight(const struct saina_seg *g)
{
	return g->state == SEG_ASKING || g->state == SEG_SENT || g->state == SEG_PULLING;
}

static bool over(const struct saina_seg *g)
{
	return g->state == SEG_DONE || g->state == SEG_STALE;
}

/* Is the exponent of the next contribution to this segment known? */
static bool exponent_known(const struct saina *s, const struct saina_seg *g)
{
	return s->elem != SAINA_ELEM_INT32 || g->req->type == SAINA_INT32 ||
	       s->round == s->floor || g->exp_round == s->round;
}

static struct saina_hdr *put_header(struct saina *s, int type, uint32_t round, uint32_t segment,
				    bool again)
{
	struct saina_hdr *h = saina_send_slot(s);

	saina_send_header(s, h, type);
	h->elem = s->elem;
	h->round = htole32(round);
	h->segment = htole32(segment);
	h->count = htole16(s->payload);
	h->flags = again ? SAINA_F_RETRANSMIT : 0;
	return h;
}

/* As long as the result it asks for, so that answers never outgrow questions. */
static void put_pull(struct saina *s, uint32_t round, uint32_t segment, bool again)
{
	memset(put_header(s, SAINA_MSG_PULL, round, segment, again) + 1, 0, s->wire);
	s->stats.pulled++;
}

/*
 * Encoded anew at each retransmission, from the same gradient, residual and
 * exponent, which do not change before the result is there: the same bits.
 */
static void put_grad(struct saina *s, uint32_t segment, bool again)
{
	struct saina_seg *g = &s->seg[segment];
	struct saina_hdr *h = put_header(s, SAINA_MSG_GRAD, s->round, segment, again);
	const void *res = saina_residual_of(s, segment), *data;
	uint8_t *q = (uint8_t *)(h + 1);
	size_t n, used;

	data = saina_round_data(s, segment, &n);
	if (s->elem == SAINA_ELEM_FLOAT32) {
		g->exponent = 0;
		saina_float_encode(q, data, res, n);
	} else if (s->elem == SAINA_ELEM_BFLOAT16) {
		g->exponent = 0;
		saina_half_encode(q, data, res, n);
	} else if (g->req->type == SAINA_INT32) {
		g->exponent = 0;
		if (res)
			s->quant->add(q, data, res, n);
		else
			memcpy(q, data, 4 * n);
	} else {
		if (s->round == s->floor)
			g->exponent = s->exponent0;
		g->clipped = s->quant->encode(q, data, res, n, g->exponent, s->limit);
	}
	used = s->wire / s->payload * n;
	memset(q + used, 0, s->wire - used);
	h->exponent = g->exponent;
	g->was_sent = 1;
	if (again) {
		s->stats.resent++;
		g->req->call.resent++;
	} else {
		s->stats.sent++;
		s->stats.sent_bytes += s->msglen;
	}
}

static void stamp(struct saina *s, struct saina_seg *g, uint64_t now)
{
	if (!g->tries)
		g->first_ns = now;
	if (g->tries < 255)
		g->tries++;
	g->sent_ns = now;
	g->due_ns = now + saina_rto_backoff(&s->rto, g->tries);
	if (g->due_ns < s->due_ns)
		s->due_ns = g->due_ns;
}

static void send_again(struct saina *s, uint32_t i, uint64_t now)
{
	struct saina_seg *g = &s->seg[i];

	if (g->state == SEG_ASKING && decided(s))
		g->state = SEG_PULLING;
	if (g->state == SEG_ASKING)
		put_pull(s, s->round - 1, i, true);
	else if (g->state == SEG_PULLING || decided(s))
		put_pull(s, s->round, i, true);
	else
		put_grad(s, i, true);
	stamp(s, g, now);
}

/* Nothing moves: a few, going round the segments in flight. */
static void send_some(struct saina *s, uint64_t now)
{
	uint32_t end = s->sent_end, n = end - s->first_open, i = s->stall_cursor;
	unsigned int budget = s->saw_result ? STALL_BUDGET : STALL_PROBES;

	for (uint32_t k = 0; k < n && budget; k++, i++) {
		if (i < s->first_open || i >= end)
			i = s->first_open;
		if (in_flight(&s->seg[i])) {
			send_again(s, i, now);
			budget--;
		}
	}
	s->stall_cursor = i;
}

static bool stalled(const struct saina *s, uint64_t now)
{
	uint64_t patience = s->rto.rto;

	if (decided(s))
		return false;
	if (s->saw_result)
		patience = 4 * patience > STALL_NS ? 4 * patience : STALL_NS;
	return now >= s->progress_ns + patience;
}

/*
 * A queue keeps the order: what stands in it behind others that are being answered
 * is not lost.  Something sent later must have been answered, or nothing for a while.
 */
static bool patient(const struct saina *s, uint32_t i, uint64_t now)
{
	const struct saina_seg *g = &s->seg[i];

	if (!g->due_ns || decided(s) || saina_window_lossy(s) || now >= s->progress_ns + s->rto.rto)
		return false;
	return g->sent_ns > s->passed_ns || (g->sent_ns == s->passed_ns && i > s->passed);
}

static void retransmit(struct saina *s, uint64_t now)
{
	uint32_t end = s->sent_end, head = WINDOW_HEAD;
	uint64_t due = NEVER;

	if (!s->inflight || now < s->due_ns)
		return;
	if (stalled(s, now)) {
		s->stall_tries++;
		send_some(s, now);
		s->due_ns = now + saina_rto_backoff(&s->rto, s->stall_tries);
		return;
	}
	for (uint32_t i = s->first_open; i < end; i++) {
		struct saina_seg *g = &s->seg[i];

		if (!in_flight(g))
			continue;
		/* The window stands on its oldest: no backoff for these. */
		if (head && head-- && g->sent_ns + s->rto.rto < g->due_ns)
			g->due_ns = g->sent_ns + s->rto.rto;
		if (g->due_ns <= now) {
			if (patient(s, i, now))
				g->due_ns = s->progress_ns + s->rto.rto;
			else
				send_again(s, i, now);
		}
		if (g->due_ns < due)
			due = g->due_ns;
	}
	s->due_ns = due;
}

/* May a worker that came into a running job contribute to its first round? */
static bool gate_open(struct saina *s, uint64_t now)
{
	if (!s->gated)
		return true;
	if (s->known_next <= s->round) {
		for (uint32_t i = 0; i < s->assigned; i++)
			if (s->seg[i].exp_round != s->round)
				return false;
		/* Perhaps there are buckets to come that r - 1 still waits for. */
		if (s->assigned < s->segments && now < s->gate_ns + GATE_NS)
			return false;
	}
	s->gated = false;
	return true;
}

static void send_new(struct saina *s, uint64_t now)
{
	bool gate = gate_open(s, now);

	while (s->first_open < s->assigned && over(&s->seg[s->first_open]))
		s->first_open++;
	for (uint32_t i = s->first_open; i < s->assigned && s->inflight < s->window; i++) {
		struct saina_seg *g = &s->seg[i];

		if (g->state != SEG_QUEUED)
			continue;
		if (decided(s) || s->broken) {
			g->state = SEG_PULLING;
			put_pull(s, s->round, i, false);
		} else if (!exponent_known(s, g) || (!gate && g->exp_round != s->round)) {
			g->state = SEG_ASKING;
			put_pull(s, s->round - 1, i, false);
		} else if (!gate) {
			continue;
		} else if (i >= s->pool && !over(&s->seg[i - s->pool])) {
			break; /* the slot is taken */
		} else {
			g->state = SEG_SENT;
			put_grad(s, i, false);
		}
		g->tries = 0;
		stamp(s, g, now);
		s->inflight++;
		if (i >= s->sent_end)
			s->sent_end = i + 1;
	}
}

/*
 * The trainer still computes but its rounds are decided: get what was lost on the
 * way before the aggregator forgets it.  Returns when to look again.
 */
static uint64_t fetch(struct saina *s, uint64_t now)
{
	unsigned int budget = FETCH_BUDGET;
	struct saina_kept *k;
	uint32_t q;

	if (s->assigned || s->broken || !s->last_assigned)
		return NEVER;
	for (q = s->round; q + 1 < s->known_next && q < s->round + s->ring; q++)
		if (!saina_kept_complete(s, q))
			break;
	if (q + 1 >= s->known_next || q >= s->round + s->ring || q < s->floor) {
		s->fetch_ns = 0;
		s->fetch_tries = 0;
		return NEVER;
	}
	if (!s->fetch_ns)
		s->fetch_ns = now + s->rto.rto;
	if (now < s->fetch_ns)
		return s->fetch_ns;
	k = saina_kept_get(s, q);
	for (uint32_t i = 0; i < s->last_assigned && budget; i++) {
		if (k && k->present[i])
			continue;
		put_pull(s, q, i, s->fetch_tries > 0);
		budget--;
	}
	s->fetch_tries++;
	s->fetch_ns = now + saina_rto_backoff(&s->rto, s->fetch_tries);
	return s->fetch_ns;
}

/* What the data path began after: gone with its predecessor. */
static void give_up(struct saina *s)
{
	for (uint32_t i = 0; i < s->assigned; i++) {
		if (s->seg[i].req && s->seg[i].req->taken && !over(&s->seg[i])) {
			if (in_flight(&s->seg[i]))
				s->inflight--;
			saina_round_stale(s, i, false);
		}
	}
}

/**
 * saina_flow_run() - send what may and must be sent now
 *
 * Returns when it wants to be called again at the latest.
 */
uint64_t saina_flow_run(struct saina *s, uint64_t now)
{
	uint64_t when;

	if (s->phase != PHASE_RUNNING)
		return NEVER;
	saina_round_take(s, now);
	if (s->round < s->floor)
		give_up(s);
	retransmit(s, now);
	send_new(s, now);
	when = fetch(s, now);
	saina_send_flush(s);
	if (s->inflight && s->due_ns < when)
		when = s->due_ns;
	if (s->gated && s->assigned && now + 10 * MSEC < when)
		when = now + 10 * MSEC;
	return when;
}

/* Something of this round has come. */
static void progress(struct saina *s, uint64_t now, bool first)
{
	s->progress_ns = now;
	if (s->stall_tries)
		s->due_ns = 0; /* look at all of them again */
	s->stall_tries = 0;
	if (!first)
		return;
	/* Those that the round had waited for are sending now: the clocks of all
	 * that is in flight begin anew.
	 */
	s->due_ns = NEVER;
	for (uint32_t i = s->first_open; i < s->sent_end; i++) {
		if (!in_flight(&s->seg[i]))
			continue;
		s->seg[i].due_ns = now + s->rto.rto;
		s->due_ns = s->seg[i].due_ns;
	}
}

static void answered(struct saina *s, uint32_t segment, uint64_t now)
{
	const struct saina_seg *g = &s->seg[segment];

	saina_window_result(s, g, now);
	/* An answer that comes too soon is to an earlier transmission. */
	if ((g->tries == 1 || now - g->sent_ns >= s->quick_ns) && g->sent_ns >= s->passed_ns) {
		s->passed_ns = g->sent_ns;
		s->passed = segment;
	}
}

/* A result of the round before the present one, for its exponent. */
static void learn_exponent(struct saina *s, struct saina_seg *g, const struct saina_hdr *h,
			   const void *sums)
{
	if (g->exp_round == s->round)
		return;
	if (s->elem == SAINA_ELEM_INT32)
		g->exponent = saina_quant_next(h->exponent, saina_quant_max(sums, s->payload),
					       h->contributors, s->workers, s->exponent0);
	g->exp_round = s->round;
	if (g->state == SEG_ASKING) {
		g->state = SEG_QUEUED;
		s->inflight--;
	}
}

static bool listening(const struct saina *s)
{
	return s->phase == PHASE_RUNNING || (s->join.again && s->phase < PHASE_LEAVING);
}

void saina_flow_result(struct saina *s, const struct saina_hdr *h, const void *sums, uint64_t now)
{
	uint32_t round = le32toh(h->round), segment = le32toh(h->segment);
	struct saina_seg *g = &s->seg[segment];
	bool first;

	if (!listening(s))
		return;
	if (h->flags & SAINA_F_LATE)
		s->stats.late_answers++;
	saina_flow_next(s, round + 1);
	if (round + 1 == s->round) {
		learn_exponent(s, g, h, sums);
		s->stats.duplicate_results++;
		return;
	}
	if (round < s->round || (round == s->round && over(g))) {
		s->stats.duplicate_results++;
		return;
	}
	if (round > s->round || g->state == SEG_IDLE) {
		if (round - s->round < s->ring)
			saina_kept_put(s, h, sums);
		return;
	}

	first = !s->saw_result;
	if (first) {
		s->saw_result = true;
		s->t0_ns = now;
	}
	/* A new result by RESEND: the multicast one was lost, or is still on its way. */
	if ((h->flags & SAINA_F_RESEND) && !(h->flags & SAINA_F_PULLED))
		s->lost++;
	if (++s->got > 1024) {
		s->got /= 2;
		s->lost /= 2;
	}
	if (in_flight(g)) {
		if (g->state != SEG_ASKING)
			answered(s, segment, now);
		s->inflight--;
	}
	s->stats.results++;
	s->stats.results_bytes += s->msglen;
	saina_round_consume(s, segment, h, sums);
	progress(s, now, first);
}

void saina_flow_stale(struct saina *s, const struct saina_hdr *h, uint64_t now)
{
	uint32_t round = le32toh(h->round), segment = le32toh(h->segment);
	struct saina_seg *g = &s->seg[segment];

	if (!listening(s))
		return;
	saina_flow_next(s, le32toh(h->slot_round));
	if (g->state == SEG_ASKING && round + 1 == s->round) {
		g->state = SEG_QUEUED;
		s->inflight--;
		/* Nobody has a last result of it: it begins as in a first round. */
		if (!decided(s)) {
			g->exponent = s->exponent0;
			g->exp_round = s->round;
		}
	} else if ((g->state == SEG_SENT || g->state == SEG_PULLING) && round == s->round) {
		s->inflight--;
		saina_round_stale(s, segment, le32toh(h->aux) == round + 1);
		progress(s, now, false);
	}
}

/* The data path will open round @next next, or a later one. */
void saina_flow_next(struct saina *s, uint32_t next)
{
	bool was = decided(s);

	if (next > s->known_next)
		s->known_next = next;
	if (was || !decided(s) || !s->inflight)
		return;
	/* News that our round is over.  Its results were sent before what
	 * told us so: those not here are lost, so ask for them now.
	 */
	s->due_ns = 0;
	for (uint32_t i = s->first_open; i < s->sent_end; i++)
		s->seg[i].due_ns = 0;
}

/* A first round that others have opened or not; exponents may be unknown. */
void saina_flow_gate(struct saina *s)
{
	s->gated = s->round != s->floor && s->round > 0;
	s->gate_ns = saina_now();
}

/* Admitted for the first time. */
void saina_flow_begin(struct saina *s)
{
	s->join.again = true;
	s->floor = s->formed ? s->first_round : 0;
	saina_round_reset(s, s->first_round);
	saina_flow_next(s, s->first_round);
	saina_flow_gate(s);
	for (uint32_t i = 0; i < s->segments; i++) {
		s->seg[i].exponent = s->exponent0;
		s->seg[i].exp_round = s->formed || !s->first_round ? s->first_round : UINT32_MAX;
	}
}

/* Everything in flight may have been dropped: as if it had just timed out. */
static void restart(struct saina *s)
{
	s->due_ns = 0;
	s->stall_tries = 0;
	s->progress_ns = saina_now();
	for (uint32_t i = s->first_open; i < s->assigned; i++)
		s->seg[i].due_ns = 0;
}

/*
 * Admitted again.  Either the data path has lived on, then all goes on as before;
 * or it is a new one (the job was forming): then it begins at s->floor and knows nothing
 * of what was before, and its first round is like any first round.
 */
void saina_flow_again(struct saina *s)
{
	bool begun = false;

	if (!s->formed) {
		restart(s);
		return;
	}
	s->floor = s->first_round;
	for (uint32_t i = 0; i < s->assigned; i++)
		begun |= s->seg[i].state == SEG_DONE;
	if (s->round >= s->floor && (begun || saina_kept_get(s, s->round))) {
		saina_fail(s, -ECONNRESET,
			   "job %u was started afresh in the middle of round %u: open it anew, "
			   "with the model of a worker that is not in this round",
			   s->job, s->round);
		return;
	}
	saina_kept_forget(s, s->floor);
	s->known_next = s->floor;
	for (uint32_t i = 0; i < s->assigned; i++) {
		if (in_flight(&s->seg[i])) {
			s->seg[i].state = SEG_QUEUED;
			s->seg[i].was_sent = 0;
			s->inflight--;
		}
	}
	restart(s);
}
