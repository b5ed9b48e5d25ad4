// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Messages received, and rounds.  Messages to send: tx.c.
 *
 * Silence never causes a retransmission.  It causes an ASK, and the ASK_REPLY says for each
 * segment:
 *
 *	neither counted nor done	The gradient was lost: send it again, unless it was sent
 *					after the ASK.
 *	done				The result was lost, or is just arriving: PULL it if it
 *					does not arrive in a moment.
 *	due				A worker died and the slot can complete now: a PULL
 *					completes it.
 *	counted				The slot waits for other workers: wait, too.
 *
 * A round is decided once a later one has been opened.  It takes no more gradients: PULL the
 * results that are missing.
 *
 * Catching up: a worker that joins a running job at round r must not open r while nobody has
 * sent some segments of r - 1.  It asks for the results of r - 1 first, and sends once it has
 * them or sees that others have opened r.
 *
 * Rejoining the previous round: a worker that fell behind is set to round r by its trainer,
 * whose model holds all rounds below r.  If r - 1 is not over after all, no model can hold it.
 * If r - 1 also stalls for a second, the others may be waiting for this worker: it takes part in
 * r - 1.
 */
#include <errno.h>
#include <stdlib.h>
#include "batch.h"

#define BATCHES_MAX  8		    /* more in flight only make queues longer */
#define REJOIN_NS    (1000 * MSEC)  /* Previous round stalled: rejoin it after this. */
#define ABANDONED_NS (10000 * MSEC) /* Previous round stalled: workers that it needs are gone. */
#define LOSS_MEMORY  4096	    /* segments */

bool saina_flow_decided(const struct saina_flow *f)
{
	return f->known_next > f->round + 1;
}

bool saina_flow_complete(const struct saina_flow *f, uint32_t round)
{
	uint32_t size = f->last_assigned ? f->last_assigned : f->assigned;

	return size && saina_reorder_count(&f->reorder, round) >= size;
}

bool saina_flow_wants(const struct saina_flow *f, uint32_t round, uint32_t segment)
{
	return round == f->round && segment < f->assigned &&
	       !(batch_of(f, segment)->over & bit_of(f, segment));
}

bool saina_flow_was_sent(const struct saina_flow *f, uint32_t segment)
{
	return batch_of(f, segment)->sent & bit_of(f, segment);
}

int saina_flow_init(struct saina_flow *f, const struct saina_job *job, uint32_t room,
		    uint32_t window, uint64_t ask_min)
{
	uint32_t max, fixed;

	memset(f, 0, sizeof(*f));
	f->segments = job->segments;
	f->pool = job->pool;
	f->ring = job->ring;
	f->per_batch = job->per_batch;
	f->batches = (f->segments - 1) / f->per_batch + 1;
	max = f->segments <= f->pool ? f->batches : f->pool / f->per_batch;
	fixed = (window + f->per_batch - 1) / f->per_batch;
	fixed = fixed < max ? fixed : max;
	max = max < BATCHES_MAX ? max : BATCHES_MAX;
	max = max < room ? max : room;
	saina_cwnd_init(&f->cwnd, max ? max : 1, fixed, ask_min);
	f->batch = calloc(f->batches, sizeof(*f->batch));
	f->known = calloc(f->segments, sizeof(*f->known));
	return f->batch && f->known ? saina_reorder_init(&f->reorder, job) : -ENOMEM;
}

void saina_flow_exit(struct saina_flow *f)
{
	saina_reorder_exit(&f->reorder);
	free(f->batch);
	free(f->known);
}

/* --- messages --------------------------------------------------------------------------- */

/* A result of a later round, or of a segment that the trainer has not submitted. */
static enum saina_verdict reorder_add(struct saina_flow *f, uint32_t round, uint32_t segment)
{
	if (round - f->round >= f->ring)
		return SAINA_RESULT_NONE;
	return saina_reorder_add(&f->reorder, round, segment) ? SAINA_RESULT_KEEP
							      : SAINA_RESULT_DUPLICATE;
}

/* The previous round is over for @segment. */
static void mark_caught_up(struct saina_flow *f, uint32_t segment, uint64_t now)
{
	struct saina_batch *b = batch_of(f, segment);

	f->known[segment] = f->round;
	f->catch_up_ns = now;
	if (b->catch_up & bit_of(f, segment)) {
		batch_set(f, b, b->out, b->catch_up & ~bit_of(f, segment));
		batch_refresh(b, now);
	}
}

/* Each gradient counts once, however often the worker asks about it. */
static void count_lost(struct saina_flow *f, uint64_t lost, uint64_t arrived)
{
	f->lost += __builtin_popcountll(lost);
	f->loss_samples += __builtin_popcountll(lost | arrived);
	if (f->loss_samples > LOSS_MEMORY) {
		f->lost /= 2;
		f->loss_samples /= 2;
	}
}

/* The last result of a batch has come: the time it took says when silence is unusual. */
static void sample_completion(struct saina_flow *f, const struct saina_batch *b, uint64_t now)
{
	uint64_t ns = now - b->grad_ns;

	f->completion_ns = f->completion_ns ? f->completion_ns - f->completion_ns / 8 + ns / 8 : ns;
}

/* Any slot in flight may be due, or its round may have begun. */
static void probe_all(struct saina_flow *f)
{
	for (uint32_t j = f->first; j < f->end; j++)
		if (batch_busy(&f->batch[j]))
			f->batch[j].probe_burst = true;
}

/*
 * Does the round wait for a worker that is far behind?  Meanwhile one gradient is sent now and then,
 * to open it as soon as that is possible.  Then all batches ask at once.
 */
static void set_held(struct saina_flow *f, uint64_t held)
{
	if (f->held && !held)
		probe_all(f);
	f->held = held;
}

enum saina_verdict saina_flow_result(struct saina_flow *f, uint32_t round, uint32_t segment,
				     uint64_t now)
{
	struct saina_batch *b = batch_of(f, segment);
	uint64_t bit = bit_of(f, segment);

	saina_flow_next(f, round + 1, now);
	if (round + 1 == f->round) {
		if (f->known[segment] >= f->round && f->known[segment] != UINT32_MAX)
			return SAINA_RESULT_DUPLICATE;
		mark_caught_up(f, segment, now);
		return SAINA_RESULT_LEARN;
	}
	if (round < f->round || (round == f->round && b->over & bit))
		return SAINA_RESULT_DUPLICATE;
	if (round > f->round || segment >= f->assigned)
		return reorder_add(f, round, segment);

	set_held(f, 0);
	if (b->out == bit && b->sent & bit)
		sample_completion(f, b, now);
	count_lost(f, 0, bit & b->sent & ~b->counted);
	batch_set(f, b, b->out & ~bit, b->catch_up & ~bit);
	batch_refresh(b, now);
	b->over |= bit;
	f->known[segment] = round + 1;
	f->result_since_ask = true;
	return SAINA_RESULT_TAKE;
}

static void mark_lost(struct saina_flow *f, uint32_t segment)
{
	struct saina_batch *b = batch_of(f, segment);
	uint64_t bit = bit_of(f, segment);

	batch_set(f, b, b->out & ~bit, b->catch_up & ~bit);
	b->over |= bit;
	f->stale = true;
	f->gap = f->known_next <= f->round + f->ring;
}

bool saina_flow_stale(struct saina_flow *f, uint32_t round, uint32_t segment, uint32_t next,
		      uint64_t now)
{
	struct saina_batch *b = batch_of(f, segment);
	uint64_t bit = bit_of(f, segment);

	saina_flow_next(f, next, now);
	b->unanswered = 0;
	/* No worker has a result of the segment: it begins as in a first round. */
	if (round + 1 == f->round && b->catch_up & bit && !saina_flow_decided(f))
		mark_caught_up(f, segment, now);
	if (round != f->round || !(b->out & bit))
		return false;
	mark_lost(f, segment);
	batch_refresh(b, now);
	return true;
}

/* The previous round is not over, so the trainer's model cannot hold it: go back to it. */
static void rejoin_prev_round(struct saina_flow *f, uint64_t now)
{
	for (uint32_t j = f->first; j < f->end; j++) {
		batch_set(f, &f->batch[j], 0, 0);
		batch_refresh(&f->batch[j], now);
		f->batch[j].pull = 0;
	}
	f->round--;
	f->catching_up = f->may_rejoin_prev = f->prev_complete = false;
}

/* An ASK_REPLY about @bits of the previous round, which this worker catches up with. */
static void ask_reply_prev(struct saina_flow *f, uint32_t segment, uint64_t bits, uint64_t done,
			   uint64_t due, uint64_t now)
{
	struct saina_batch *b = batch_of(f, segment);
	uint64_t open = bits & b->catch_up & ~done & ~due;
	bool abandoned = f->no_peers || now >= f->catch_up_ns + ABANDONED_NS;

	b->waits_for_peers = true;
	b->pull |= bits & b->catch_up & (done | due);
	b->pull_ns = now;
	if (!f->catching_up || f->known_next != f->round || !open)
		return;
	if (f->may_rejoin_prev && f->round > f->floor) {
		if (now >= f->catch_up_ns + REJOIN_NS &&
		    (!f->last_assigned ||
		     open & batch_below(f, segment / f->per_batch, f->last_assigned)))
			rejoin_prev_round(f, now);
		return;
	}
	/* No worker is left to send these segments: they begin as in a first round. */
	for (uint32_t i = 0; abandoned && i < f->per_batch; i++)
		if (open >> i & 1)
			mark_caught_up(f, segment - segment % f->per_batch + i, now);
}

/*
 * The slots that say AWAY are complete, so what is not counted in them is late, and not lost.  It is
 * sent again nevertheless: other slots that the ASK is about may be open and wait for it, and here
 * and elsewhere slots would wait for each other.
 */
void saina_flow_away(struct saina_flow *f, uint32_t segment, uint64_t now)
{
	batch_of(f, segment)->away = true;
	f->away_ns = f->catch_up_ns = now;
}

void saina_flow_ask_reply(struct saina_flow *f, uint32_t round, uint32_t segment,
			  const struct saina_ask *reply, uint64_t behind, uint32_t next, uint64_t now)
{
	struct saina_batch *b = batch_of(f, segment);
	uint32_t at = segment % f->per_batch;
	uint64_t asked = le64toh(reply->time), counted, done, due, bits, lost, arrived;
	bool away = b->away;

	b->away = false;
	if (asked > now || now - asked > ABANDONED_NS)
		return;
	saina_cwnd_echo(&f->cwnd, asked, now);
	saina_flow_next(f, next, now);
	/* Segments of the batch that the ASK was about, from @segment on. */
	bits = batch_below(f, segment / f->per_batch, f->segments) >> at << at;
	counted = le64toh(reply->counted) << at & bits;
	done = le64toh(reply->done) << at & bits;
	due = le64toh(reply->due) << at & bits & ~done;
	b->unanswered = 0;
	if (round + 1 == f->round) {
		ask_reply_prev(f, segment, bits, done, due, now);
		return;
	}
	if (round != f->round || saina_flow_decided(f))
		return;

	set_held(f, behind);
	bits &= b->out;
	arrived = (counted | done) & bits & ~b->counted;
	if (arrived) {
		b->tries = 0;
		b->counted |= arrived;
	}
	/* An ASK of the same time as the gradient may have left before it. */
	lost = asked > b->grad_ns ? bits & b->sent & ~counted & ~done : 0;
	if (f->held) {
		/* refused, not lost */
		f->closed = 0;
		lost = b == &f->batch[f->first] ? lost & -lost : 0;
	} else {
		if (lost && !away && f->prev_complete && f->known_next <= f->round && !f->closed++)
			f->closed_ns = now;
		if (!away)
			count_lost(f, lost & ~b->resend, arrived & b->sent);
	}
	b->resend |= lost;
	b->waits_for_peers = !lost || f->held;
	done &= bits;
	/* Where the gradient is sent again, it completes the slot as a PULL would. */
	due &= bits & ~lost;
	if (asked < b->pulled_ns) {
		done &= ~b->pulled;
		due &= ~b->pulled;
	}
	if (due)
		probe_all(f);
	if (done | due) {
		/* An answer to a PULL sent before the ASK would have come by now. */
		if (due | (done & b->pulled))
			b->pull_ns = now;
		else if (!b->pull)
			b->pull_ns = now + saina_flow_grace(f);
		b->pull |= done | due;
	}
}

void saina_flow_next(struct saina_flow *f, uint32_t next, uint64_t now)
{
	bool was = saina_flow_decided(f);

	if (next > f->known_next)
		f->known_next = next;
	if (was || !saina_flow_decided(f))
		return;
	/* The round is over.  Its results were sent before this message: those that do not
	 * come in a moment are lost.
	 */
	for (uint32_t j = f->first; j < f->end; j++) {
		struct saina_batch *b = &f->batch[j];

		batch_set(f, b, b->out | b->catch_up, 0);
		batch_refresh(b, now);
		b->resend = 0;
		b->pull = b->out;
		b->pull_ns = now + saina_flow_grace(f);
	}
}

/* --- rounds ----------------------------------------------------------------------------- */

void saina_flow_add(struct saina_flow *f, uint32_t n)
{
	f->assigned += n;
}

void saina_flow_round(struct saina_flow *f, uint32_t round)
{
	f->prev_complete = round == f->round + 1 && f->assigned && !f->stale;
	memset(f->batch, 0, ((f->assigned + f->per_batch - 1) / f->per_batch) * sizeof(*f->batch));
	if (f->assigned)
		f->last_assigned = f->assigned;
	f->assigned = f->ready = f->first = f->end = f->inflight = f->closed = 0;
	f->catching_up = f->may_rejoin_prev = f->stale = f->gap = false;
	f->reported = false;
	f->held = 0;
	f->fetch_ns = 0;
	f->fetch_tries = f->fetch_at = f->fetch_left = 0;
	f->round = round;
	saina_reorder_drop(&f->reorder, 0, round);
}

static void begin_catch_up(struct saina_flow *f, uint32_t round, uint64_t now)
{
	saina_flow_round(f, round);
	f->catching_up = round != f->floor && round > 0;
	f->prev_complete = false;
	f->catch_up_ns = now;
}

void saina_flow_set(struct saina_flow *f, uint32_t round, uint64_t now)
{
	begin_catch_up(f, round, now);
	f->may_rejoin_prev = true;
}

void saina_flow_begin(struct saina_flow *f, uint32_t first_round, bool formed, uint64_t now)
{
	f->floor = formed ? first_round : 0;
	begin_catch_up(f, first_round, now);
	saina_flow_next(f, first_round, now);
	for (uint32_t i = 0; i < f->segments; i++)
		f->known[i] = formed || !first_round ? first_round : UINT32_MAX;
}

/*
 * Either the data path is the same and all continues as before, or it is a new one (@formed), which
 * begins at @first_round and has nothing of earlier rounds.
 */
bool saina_flow_again(struct saina_flow *f, uint32_t first_round, bool formed, uint64_t now)
{
	bool begun = false;

	/* All messages in flight may have been dropped: ask about them. */
	for (uint32_t j = f->first; j < f->end; j++) {
		batch_refresh(&f->batch[j], now);
		f->batch[j].probe_burst = true;
		f->batch[j].pull_ns = now;
	}
	if (!formed)
		return true;

	f->floor = first_round;
	f->prev_complete = false;
	for (uint32_t j = 0; j * f->per_batch < f->assigned; j++)
		begun |= f->batch[j].over != 0;
	if (f->round >= f->floor && (begun || saina_reorder_count(&f->reorder, f->round)))
		return false;
	/* These results are of an earlier data path. */
	saina_reorder_drop(&f->reorder, f->floor, UINT32_MAX);
	f->known_next = f->floor;
	for (uint32_t j = f->first; j < f->end; j++) {
		struct saina_batch *b = &f->batch[j];

		b->sent &= ~b->out;
		b->counted = b->resend = b->pull = b->pulled = 0;
		batch_set(f, b, 0, 0);
	}
	return true;
}
