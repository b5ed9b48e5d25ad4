// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * When to send what: window, gate, retransmission, pulls.
 *
 * Window: segment s of a round is sent once s - pool has its result, so that
 * the aggregator has a slot for it, and at most the window (window.c) are in flight.
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
#include <errno.h>
#include <stdlib.h>
#include "flow.h"

#define WINDOW_HEAD  8 /* oldest segments in flight, repaired without backoff */
#define STALL_NS     (40 * MSEC)
#define STALL_PROBES 2 /* segments sent again at a time while a round waits to begin */
#define STALL_BUDGET 8 /* ... and when it has come to a stop */
#define FETCH_BUDGET 64
#define GATE_NS	     (1000 * MSEC)

/* Where actions go. */
struct acts {
	struct saina_act *act;
	size_t n, max;
};

static bool full(const struct acts *out)
{
	return out->n == out->max;
}

static void put(struct acts *out, enum saina_act_type type, uint32_t round, uint32_t segment,
		bool again)
{
	out->act[out->n++] = (struct saina_act){type, round, segment, again};
}

bool saina_flow_decided(const struct saina_flow *f)
{
	return f->known_next > f->round + 1;
}

bool saina_flow_complete(const struct saina_flow *f, uint32_t round)
{
	uint32_t size = f->last_assigned ? f->last_assigned : f->assigned;

	return size && saina_early_count(&f->early, round) >= size;
}

static bool in_flight(const struct saina_flow_seg *g)
{
	return g->state == SEG_ASKING || g->state == SEG_SENT || g->state == SEG_PULLING;
}

static bool over(const struct saina_flow_seg *g)
{
	return g->state == SEG_DONE || g->state == SEG_STALE;
}

/* Is the exponent of the next contribution to this segment known? */
static bool exponent_known(const struct saina_flow *f, const struct saina_flow_seg *g)
{
	return !g->scaled || f->round == f->floor || g->known == f->round;
}

int saina_flow_init(struct saina_flow *f, const struct saina_job *job, uint32_t window,
		    uint64_t rto_min)
{
	memset(f, 0, sizeof(*f));
	f->segments = job->segments;
	f->pool = job->pool;
	f->ring = job->ring;
	f->due_ns = NEVER;
	saina_window_init(&f->window, job->pool, window, rto_min);
	f->seg = calloc(f->segments, sizeof(*f->seg));
	return f->seg ? saina_early_init(&f->early, job) : -ENOMEM;
}

void saina_flow_exit(struct saina_flow *f)
{
	saina_early_exit(&f->early);
	free(f->seg);
}

/* --- what to send ----------------------------------------------------------------------- */

static void stamp(struct saina_flow *f, struct saina_flow_seg *g, uint64_t now)
{
	if (!g->tries)
		g->first_ns = now;
	if (g->tries < 255)
		g->tries++;
	g->sent_ns = now;
	g->due_ns = now + saina_rto_backoff(&f->window.rto, g->tries);
	if (g->due_ns < f->due_ns)
		f->due_ns = g->due_ns;
}

static void send_again(struct saina_flow *f, uint32_t i, uint64_t now, struct acts *out)
{
	struct saina_flow_seg *g = &f->seg[i];

	if (g->state == SEG_ASKING && saina_flow_decided(f))
		g->state = SEG_PULLING;
	if (g->state == SEG_ASKING)
		put(out, SAINA_ACT_PULL, f->round - 1, i, true);
	else if (g->state == SEG_PULLING || saina_flow_decided(f))
		put(out, SAINA_ACT_PULL, f->round, i, true);
	else
		put(out, SAINA_ACT_GRAD, f->round, i, true);
	stamp(f, g, now);
}

/* Nothing moves: a few, going round the segments in flight. */
static void send_some(struct saina_flow *f, uint64_t now, struct acts *out)
{
	uint32_t end = f->sent_end, n = end - f->first_open, i = f->stall_cursor;
	unsigned int budget = f->saw_result ? STALL_BUDGET : STALL_PROBES;

	for (uint32_t k = 0; k < n && budget && !full(out); k++, i++) {
		if (i < f->first_open || i >= end)
			i = f->first_open;
		if (in_flight(&f->seg[i])) {
			send_again(f, i, now, out);
			budget--;
		}
	}
	f->stall_cursor = i;
}

static bool stalled(const struct saina_flow *f, uint64_t now)
{
	uint64_t patience = f->window.rto.rto;

	if (saina_flow_decided(f))
		return false;
	if (f->saw_result)
		patience = 4 * patience > STALL_NS ? 4 * patience : STALL_NS;
	return now >= f->progress_ns + patience;
}

/*
 * A queue keeps the order: what stands in it behind others that are being answered
 * is not lost.  Something sent later must have been answered, or nothing for a while.
 */
static bool patient(const struct saina_flow *f, uint32_t i, uint64_t now)
{
	const struct saina_flow_seg *g = &f->seg[i];

	if (!g->due_ns || saina_flow_decided(f) || saina_window_lossy(&f->window) ||
	    now >= f->progress_ns + f->window.rto.rto)
		return false;
	return g->sent_ns > f->passed_ns || (g->sent_ns == f->passed_ns && i > f->passed);
}

static void retransmit(struct saina_flow *f, uint64_t now, struct acts *out)
{
	uint64_t due = NEVER, rto = f->window.rto.rto;
	uint32_t end = f->sent_end, head = WINDOW_HEAD;

	if (!f->inflight || now < f->due_ns)
		return;
	if (stalled(f, now)) {
		f->stall_tries++;
		send_some(f, now, out);
		f->due_ns = now + saina_rto_backoff(&f->window.rto, f->stall_tries);
		return;
	}
	for (uint32_t i = f->first_open; i < end; i++) {
		struct saina_flow_seg *g = &f->seg[i];

		if (!in_flight(g))
			continue;
		if (full(out)) {
			due = 0; /* go on next time */
			break;
		}
		/* The window stands on its oldest: no backoff for these. */
		if (head && head-- && g->sent_ns + rto < g->due_ns)
			g->due_ns = g->sent_ns + rto;
		if (g->due_ns <= now) {
			if (patient(f, i, now))
				g->due_ns = f->progress_ns + rto;
			else
				send_again(f, i, now, out);
		}
		if (g->due_ns < due)
			due = g->due_ns;
	}
	f->due_ns = due;
}

/* May a worker that came into a running job contribute to its first round? */
static bool gate_open(struct saina_flow *f, uint64_t now)
{
	if (!f->gated)
		return true;
	if (f->known_next <= f->round) {
		for (uint32_t i = 0; i < f->assigned; i++)
			if (f->seg[i].known != f->round)
				return false;
		/* Perhaps there are buckets to come that r - 1 still waits for. */
		if (f->assigned < f->segments && now < f->gate_ns + GATE_NS)
			return false;
	}
	f->gated = false;
	return true;
}

static void send_new(struct saina_flow *f, uint64_t now, struct acts *out)
{
	bool gate = gate_open(f, now);

	while (f->first_open < f->taken && over(&f->seg[f->first_open]))
		f->first_open++;
	for (uint32_t i = f->first_open;
	     i < f->taken && f->inflight < f->window.size && !full(out); i++) {
		struct saina_flow_seg *g = &f->seg[i];

		if (g->state != SEG_QUEUED)
			continue;
		if (saina_flow_decided(f) || f->broken) {
			g->state = SEG_PULLING;
			put(out, SAINA_ACT_PULL, f->round, i, false);
		} else if (!exponent_known(f, g) || (!gate && g->known != f->round)) {
			g->state = SEG_ASKING;
			put(out, SAINA_ACT_PULL, f->round - 1, i, false);
		} else if (!gate) {
			continue;
		} else if (i >= f->pool && !over(&f->seg[i - f->pool])) {
			break; /* the slot is taken */
		} else {
			g->state = SEG_SENT;
			g->was_sent = true;
			put(out, SAINA_ACT_GRAD, f->round, i, false);
		}
		g->tries = 0;
		stamp(f, g, now);
		f->inflight++;
		if (i >= f->sent_end)
			f->sent_end = i + 1;
	}
}

/*
 * The trainer still computes but its rounds are decided: get what was lost on the
 * way before the aggregator forgets it.  Returns when to look again.
 */
static uint64_t fetch(struct saina_flow *f, uint64_t now, struct acts *out)
{
	unsigned int budget = FETCH_BUDGET;
	uint32_t q;

	if (f->assigned || f->broken || !f->last_assigned)
		return NEVER;
	for (q = f->round; q + 1 < f->known_next && q < f->round + f->ring; q++)
		if (!saina_flow_complete(f, q))
			break;
	if (q + 1 >= f->known_next || q >= f->round + f->ring || q < f->floor) {
		f->fetch_ns = 0;
		f->fetch_tries = 0;
		return NEVER;
	}
	if (!f->fetch_ns)
		f->fetch_ns = now + f->window.rto.rto;
	if (now < f->fetch_ns)
		return f->fetch_ns;
	for (uint32_t i = 0; i < f->last_assigned && budget && !full(out); i++) {
		if (saina_early_has(&f->early, q, i))
			continue;
		put(out, SAINA_ACT_PULL, q, i, f->fetch_tries > 0);
		budget--;
	}
	f->fetch_tries++;
	f->fetch_ns = now + saina_rto_backoff(&f->window.rto, f->fetch_tries);
	return f->fetch_ns;
}

/* Segments that the trainer has started since: what is decided, at once. */
static void take_early(struct saina_flow *f, uint64_t now, struct acts *out)
{
	if (f->taken < f->assigned && f->progress_ns < now)
		f->progress_ns = now;
	for (; f->taken < f->assigned && !full(out); f->taken++) {
		struct saina_flow_seg *g = &f->seg[f->taken];

		if (g->state != SEG_QUEUED || !saina_early_has(&f->early, f->round, f->taken))
			continue;
		g->state = SEG_DONE;
		g->known = f->round + 1;
		put(out, SAINA_ACT_EARLY, f->round, f->taken, false);
	}
}

static void lose(struct saina_flow *f, uint32_t segment)
{
	if (in_flight(&f->seg[segment]))
		f->inflight--;
	f->seg[segment].state = SEG_STALE;
	f->broken = true;
}

/* What the data path began after: gone with its predecessor. */
static void give_up(struct saina_flow *f, struct acts *out)
{
	for (uint32_t i = f->first_open; i < f->taken && !full(out); i++) {
		if (over(&f->seg[i]))
			continue;
		lose(f, i);
		put(out, SAINA_ACT_LOST, f->round, i, false);
	}
}

size_t saina_flow_run(struct saina_flow *f, uint64_t now, struct saina_act *act, size_t max,
		      uint64_t *when)
{
	struct acts out = {act, 0, max};

	take_early(f, now, &out);
	if (f->round < f->floor)
		give_up(f, &out);
	retransmit(f, now, &out);
	send_new(f, now, &out);
	*when = fetch(f, now, &out);
	if (f->inflight && f->due_ns < *when)
		*when = f->due_ns;
	if (f->gated && f->assigned && now + 10 * MSEC < *when)
		*when = now + 10 * MSEC;
	return out.n;
}

/* --- what is heard ---------------------------------------------------------------------- */

/* Something of this round has come. */
static void progress(struct saina_flow *f, uint64_t now, bool first)
{
	f->progress_ns = now;
	if (f->stall_tries)
		f->due_ns = 0; /* look at all of them again */
	f->stall_tries = 0;
	if (!first)
		return;
	/* Those that the round had waited for are sending now: the clocks of all
	 * that is in flight begin anew.
	 */
	f->due_ns = NEVER;
	for (uint32_t i = f->first_open; i < f->sent_end; i++) {
		if (!in_flight(&f->seg[i]))
			continue;
		f->seg[i].due_ns = now + f->window.rto.rto;
		f->due_ns = f->seg[i].due_ns;
	}
}

static void answered(struct saina_flow *f, uint32_t segment, uint64_t now)
{
	const struct saina_flow_seg *g = &f->seg[segment];

	saina_window_answer(&f->window, g->first_ns, g->tries, f->inflight, now);
	/* An answer that comes too soon is to an earlier transmission. */
	if ((g->tries == 1 || now - g->sent_ns >= f->window.quick) && g->sent_ns >= f->passed_ns) {
		f->passed_ns = g->sent_ns;
		f->passed = segment;
	}
}

/* A result of a round to come, or of a segment that the trainer has not started. */
static enum saina_verdict keep(struct saina_flow *f, uint32_t round, uint32_t segment)
{
	if (round - f->round >= f->ring)
		return SAINA_RESULT_NONE;
	return saina_early_add(&f->early, round, segment) ? SAINA_RESULT_KEEP :
							    SAINA_RESULT_AGAIN;
}

/* A result of the round before the present one, for its exponent. */
static enum saina_verdict learn(struct saina_flow *f, struct saina_flow_seg *g)
{
	if (g->known == f->round)
		return SAINA_RESULT_AGAIN;
	g->known = f->round;
	if (g->state == SEG_ASKING) {
		g->state = SEG_QUEUED;
		f->inflight--;
	}
	return SAINA_RESULT_LEARN;
}

enum saina_verdict saina_flow_result(struct saina_flow *f, uint32_t round, uint32_t segment,
				     unsigned int flags, uint64_t now)
{
	struct saina_flow_seg *g = &f->seg[segment];
	bool first;

	saina_flow_next(f, round + 1);
	if (round + 1 == f->round)
		return learn(f, g);
	if (round < f->round || (round == f->round && over(g)))
		return SAINA_RESULT_AGAIN;
	if (round > f->round || g->state == SEG_IDLE)
		return keep(f, round, segment);

	first = !f->saw_result;
	if (first) {
		f->saw_result = true;
		f->window.t0 = now;
	}
	/* A new result by RESEND: the multicast one was lost, or is still on its way. */
	saina_window_count(&f->window, (flags & SAINA_F_RESEND) && !(flags & SAINA_F_PULLED));
	if (in_flight(g)) {
		if (g->state != SEG_ASKING)
			answered(f, segment, now);
		f->inflight--;
	}
	g->state = SEG_DONE;
	g->known = round + 1;
	progress(f, now, first);
	return SAINA_RESULT_TAKE;
}

enum saina_gone saina_flow_stale(struct saina_flow *f, uint32_t round, uint32_t segment,
				 uint32_t next, uint64_t now)
{
	struct saina_flow_seg *g = &f->seg[segment];

	saina_flow_next(f, next);
	if (g->state == SEG_ASKING && round + 1 == f->round) {
		g->state = SEG_QUEUED;
		f->inflight--;
		if (saina_flow_decided(f))
			return SAINA_GONE_NONE;
		/* Nobody has a last result of it: it begins as in a first round. */
		g->known = f->round;
		return SAINA_GONE_FIRST;
	}
	if ((g->state == SEG_SENT || g->state == SEG_PULLING) && round == f->round) {
		lose(f, segment);
		progress(f, now, false);
		return SAINA_GONE_LOST;
	}
	return SAINA_GONE_NONE;
}

void saina_flow_next(struct saina_flow *f, uint32_t next)
{
	bool was = saina_flow_decided(f);

	if (next > f->known_next)
		f->known_next = next;
	if (was || !saina_flow_decided(f) || !f->inflight)
		return;
	/* News that our round is over.  Its results were sent before what
	 * told us so: those not here are lost, so ask for them now.
	 */
	f->due_ns = 0;
	for (uint32_t i = f->first_open; i < f->sent_end; i++)
		f->seg[i].due_ns = 0;
}

/* --- rounds ----------------------------------------------------------------------------- */

void saina_flow_add(struct saina_flow *f, uint32_t n, bool scaled)
{
	for (uint32_t i = f->assigned; i < f->assigned + n; i++) {
		f->seg[i].state = SEG_QUEUED;
		f->seg[i].scaled = scaled;
	}
	f->assigned += n;
}

/* Begins @round with nothing in flight. */
void saina_flow_round(struct saina_flow *f, uint32_t round)
{
	for (uint32_t i = 0; i < f->assigned; i++) {
		f->seg[i].state = SEG_IDLE;
		f->seg[i].tries = 0;
		f->seg[i].was_sent = false;
	}
	if (f->assigned)
		f->last_assigned = f->assigned;
	f->assigned = f->taken = f->first_open = f->sent_end = f->inflight = 0;
	f->saw_result = f->gated = f->broken = false;
	f->stall_tries = f->stall_cursor = 0;
	f->due_ns = NEVER;
	f->fetch_ns = 0;
	f->fetch_tries = 0;
	f->round = round;
	saina_early_drop(&f->early, 0, round);
}

/* A round that others have opened or not; exponents may be unknown. */
void saina_flow_set(struct saina_flow *f, uint32_t round, uint64_t now)
{
	saina_flow_round(f, round);
	f->gated = round != f->floor && round > 0;
	f->gate_ns = now;
}

void saina_flow_begin(struct saina_flow *f, uint32_t first_round, bool formed, uint64_t now)
{
	f->floor = formed ? first_round : 0;
	saina_flow_set(f, first_round, now);
	saina_flow_next(f, first_round);
	for (uint32_t i = 0; i < f->segments; i++)
		f->seg[i].known = formed || !first_round ? first_round : UINT32_MAX;
}

/*
 * Either the data path has lived on, then all goes on as before; or it is a new one
 * (the job was forming): then it begins at @first_round and knows nothing of what was
 * before, and its first round is like any first round.
 */
bool saina_flow_again(struct saina_flow *f, uint32_t first_round, bool formed, uint64_t now)
{
	bool begun = false;

	/* Everything in flight may have been dropped: as if it had just timed out. */
	f->due_ns = 0;
	f->stall_tries = 0;
	f->progress_ns = now;
	for (uint32_t i = f->first_open; i < f->assigned; i++)
		f->seg[i].due_ns = 0;
	if (!formed)
		return true;

	f->floor = first_round;
	for (uint32_t i = 0; i < f->assigned; i++)
		begun |= f->seg[i].state == SEG_DONE;
	if (f->round >= f->floor && (begun || saina_early_count(&f->early, f->round)))
		return false;
	/* Results of another life of the job. */
	saina_early_drop(&f->early, f->floor, UINT32_MAX);
	f->known_next = f->floor;
	for (uint32_t i = 0; i < f->assigned; i++) {
		if (in_flight(&f->seg[i])) {
			f->seg[i].state = SEG_QUEUED;
			f->seg[i].was_sent = false;
			f->inflight--;
		}
	}
	return true;
}
