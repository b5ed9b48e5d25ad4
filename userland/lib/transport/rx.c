// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * What is heard, and rounds.  What is sent: run.c.
 *
 * Nothing is sent again because of silence: silence is asked about (ASK), and the answer
 * (ASK_REPLY) says of each segment what is the matter:
 *
 *	neither counted nor done	the gradient was lost: it is sent again, if it was not
 *					sent behind the question
 *	done				the result was lost, or is just coming: it is pulled
 *					if it is not here a moment later
 *	due				somebody has died, the slot would complete now: a
 *					PULL makes it
 *	counted				it waits for others, and so do we
 *
 * A round that is known to be decided (a later one has been opened) takes no
 * gradients any more: what is missing of it is pulled.
 *
 * Gate: a worker that joins a running job at round r must not be the one who opens r
 * while r - 1 has segments nobody has sent yet.  So it asks for the results of r - 1 first, and
 * sends when it has them, or has seen that others have opened r.
 *
 * Step back: a worker that was left behind is told by its trainer to go on at r, for the
 * model it has got holds all rounds below.  If r - 1 turns out not to be over, no
 * model can hold it, and when nothing comes of it for a second the others may be
 * waiting for this worker: it takes part in r - 1.
 */
#include <errno.h>
#include <stdlib.h>
#include "batch.h"

#define TRAINS_MAX  8		/* more in flight only make queues longer */
#define STEP_NS	    (1000 * MSEC)  /* nothing of the round before has come: it needs us, */
#define STUCK_NS    (10000 * MSEC) /* ... it needs somebody who is not there any more */
#define LOSS_MEMORY 4096	/* segments */

bool saina_flow_decided(const struct saina_flow *f)
{
	return f->known_next > f->round + 1;
}

bool saina_flow_complete(const struct saina_flow *f, uint32_t round)
{
	uint32_t size = f->last_assigned ? f->last_assigned : f->assigned;

	return size && saina_early_count(&f->early, round) >= size;
}

bool saina_flow_wants(const struct saina_flow *f, uint32_t round, uint32_t segment)
{
	return round == f->round && segment < f->assigned &&
	       !(train_of(f, segment)->over & bit_of(f, segment));
}

bool saina_flow_was_sent(const struct saina_flow *f, uint32_t segment)
{
	return train_of(f, segment)->sent & bit_of(f, segment);
}

int saina_flow_init(struct saina_flow *f, const struct saina_job *job, uint32_t room,
		    uint32_t window, uint64_t ask_min)
{
	uint32_t max, fixed;

	memset(f, 0, sizeof(*f));
	f->segments = job->segments;
	f->pool = job->pool;
	f->ring = job->ring;
	f->cut = job->train;
	f->trains = (f->segments - 1) / f->cut + 1;
	max = f->pool / f->cut;
	fixed = (window + f->cut - 1) / f->cut;
	fixed = fixed < max ? fixed : max;
	max = max < TRAINS_MAX ? max : TRAINS_MAX;
	max = max < room ? max : room;
	saina_window_init(&f->window, max ? max : 1, fixed, ask_min);
	f->train = calloc(f->trains, sizeof(*f->train));
	f->known = calloc(f->segments, sizeof(*f->known));
	return f->train && f->known ? saina_early_init(&f->early, job) : -ENOMEM;
}

void saina_flow_exit(struct saina_flow *f)
{
	saina_early_exit(&f->early);
	free(f->train);
	free(f->known);
}

/* --- what is heard ---------------------------------------------------------------------- */

/* A result of a round to come, or of a segment that the trainer has not started. */
static enum saina_verdict keep(struct saina_flow *f, uint32_t round, uint32_t segment)
{
	if (round - f->round >= f->ring)
		return SAINA_RESULT_NONE;
	return saina_early_add(&f->early, round, segment) ? SAINA_RESULT_KEEP :
							    SAINA_RESULT_AGAIN;
}

/* The round before is over for a segment of the present one. */
static void learned(struct saina_flow *f, uint32_t segment, uint64_t now)
{
	struct saina_train *t = train_of(f, segment);

	f->known[segment] = f->round;
	f->gate_ns = now;
	if (t->learn & bit_of(f, segment)) {
		train_set(f, t, t->out, t->learn & ~bit_of(f, segment));
		train_refresh(t, now);
	}
}

/* What has become of gradients, of each once: however often one asks, while others are
 * waited for, no more is lost.
 */
static void count_lost(struct saina_flow *f, uint64_t lost, uint64_t arrived)
{
	f->lost += __builtin_popcountll(lost);
	f->told += __builtin_popcountll(lost | arrived);
	if (f->told > LOSS_MEMORY) {
		f->lost /= 2;
		f->told /= 2;
	}
}

/* The last result of a train is here: how long that takes says when silence is unusual. */
static void completed(struct saina_flow *f, const struct saina_train *t, uint64_t now)
{
	uint64_t ns = now - t->grad_ns;

	f->took = f->took ? f->took - f->took / 8 + ns / 8 : ns;
}

enum saina_verdict saina_flow_result(struct saina_flow *f, uint32_t round, uint32_t segment,
				     uint64_t now)
{
	struct saina_train *t = train_of(f, segment);
	uint64_t bit = bit_of(f, segment);

	saina_flow_next(f, round + 1, now);
	if (round + 1 == f->round) {
		if (f->known[segment] >= f->round && f->known[segment] != UINT32_MAX)
			return SAINA_RESULT_AGAIN;
		learned(f, segment, now);
		return SAINA_RESULT_LEARN;
	}
	if (round < f->round || (round == f->round && t->over & bit))
		return SAINA_RESULT_AGAIN;
	if (round > f->round || segment >= f->assigned)
		return keep(f, round, segment);

	if (t->out == bit && t->sent & bit)
		completed(f, t, now);
	count_lost(f, 0, bit & t->sent & ~t->counted);
	train_set(f, t, t->out & ~bit, t->learn & ~bit);
	train_refresh(t, now);
	t->over |= bit;
	f->known[segment] = round + 1;
	f->news = true;
	return SAINA_RESULT_TAKE;
}

static void lose(struct saina_flow *f, uint32_t segment)
{
	struct saina_train *t = train_of(f, segment);
	uint64_t bit = bit_of(f, segment);

	train_set(f, t, t->out & ~bit, t->learn & ~bit);
	t->over |= bit;
	f->broken = true;
	f->hole = f->known_next <= f->round + f->ring;
}

bool saina_flow_stale(struct saina_flow *f, uint32_t round, uint32_t segment, uint32_t next,
		      uint64_t now)
{
	struct saina_train *t = train_of(f, segment);
	uint64_t bit = bit_of(f, segment);

	saina_flow_next(f, next, now);
	t->unanswered = 0;
	/* Nobody has a last result of it: it begins as in a first round. */
	if (round + 1 == f->round && t->learn & bit && !saina_flow_decided(f))
		learned(f, segment, now);
	if (round != f->round || !(t->out & bit))
		return false;
	lose(f, segment);
	train_refresh(t, now);
	return true;
}

/* The trainer's model cannot hold the round before, for that is not over: it is the present one. */
static void step_back(struct saina_flow *f, uint64_t now)
{
	for (uint32_t j = f->first; j < f->end; j++) {
		train_set(f, &f->train[j], 0, 0);
		train_refresh(&f->train[j], now);
		f->train[j].pull = 0;
	}
	f->round--;
	f->gated = f->may_step_back = f->follows = false;
}

/* The round before, which the gate waits for: what ASK_REPLY says of @bits of it. */
static void told_before(struct saina_flow *f, uint32_t segment, uint64_t bits, uint64_t done,
			    uint64_t due, uint64_t now)
{
	struct saina_train *t = train_of(f, segment);
	uint64_t open = bits & t->learn & ~done & ~due;
	bool gone = f->alone || now >= f->gate_ns + STUCK_NS;

	t->waits = true;
	t->pull |= bits & t->learn & (done | due);
	t->pull_ns = now;
	if (!f->gated || f->known_next != f->round || !open)
		return;
	if (f->may_step_back && f->round > f->floor) {
		if (now >= f->gate_ns + STEP_NS &&
		    (!f->last_assigned ||
		     open & train_below(f, segment / f->cut, f->last_assigned)))
			step_back(f, now);
		return;
	}
	/* Nobody is left who could send it: these segments begin anew. */
	for (uint32_t i = 0; gone && i < f->cut; i++)
		if (open >> i & 1)
			learned(f, segment - segment % f->cut + i, now);
}

/* Somebody has died: all that is in flight may be due. */
static void ask_all(struct saina_flow *f)
{
	for (uint32_t j = f->first; j < f->end; j++)
		if (train_busy(&f->train[j]))
			f->train[j].hasty = true;
}

void saina_flow_told(struct saina_flow *f, uint32_t round, uint32_t segment,
		     const struct saina_ask *told, uint32_t next, uint64_t now)
{
	struct saina_train *t = train_of(f, segment);
	uint32_t at = segment % f->cut;
	uint64_t asked = le64toh(told->time), counted, done, due, bits, lost, arrived;

	if (asked > now || now - asked > STUCK_NS)
		return;
	saina_window_echo(&f->window, asked, now);
	saina_flow_next(f, next, now);
	/* Of the train that was asked about, and from @segment on. */
	bits = train_below(f, segment / f->cut, f->segments) >> at << at;
	counted = le64toh(told->counted) << at & bits;
	done = le64toh(told->done) << at & bits;
	due = le64toh(told->due) << at & bits & ~done;
	t->unanswered = 0;
	if (round + 1 == f->round) {
		told_before(f, segment, bits, done, due, now);
		return;
	}
	if (round != f->round || saina_flow_decided(f))
		return;

	bits &= t->out;
	arrived = (counted | done) & bits & ~t->counted;
	if (arrived) {
		t->tries = 0;
		t->counted |= arrived;
	}
	/* At the same moment: right behind it. */
	lost = asked >= t->grad_ns ? bits & t->sent & ~counted & ~done : 0;
	if (lost && f->follows && f->known_next <= f->round && !f->shut++)
		f->shut_ns = now;
	count_lost(f, lost & ~t->again, arrived & t->sent);
	t->again |= lost;
	t->waits = !lost;
	done &= bits;
	/* Our gradient completes it as well as a PULL. */
	due &= bits & ~lost;
	if (asked < t->pulled_ns) {
		done &= ~t->pulled;
		due &= ~t->pulled;
	}
	if (due)
		ask_all(f);
	if (done | due) {
		/* What a PULL sent before the question has brought would be here. */
		if (due | (done & t->pulled))
			t->pull_ns = now;
		else if (!t->pull)
			t->pull_ns = now + saina_flow_grace(f);
		t->pull |= done | due;
	}
}

void saina_flow_next(struct saina_flow *f, uint32_t next, uint64_t now)
{
	bool was = saina_flow_decided(f);

	if (next > f->known_next)
		f->known_next = next;
	if (was || !saina_flow_decided(f))
		return;
	/* Our round is over.  Its results were sent before what told us so: those
	 * that do not come in a moment are lost.
	 */
	for (uint32_t j = f->first; j < f->end; j++) {
		struct saina_train *t = &f->train[j];

		train_set(f, t, t->out | t->learn, 0);
		train_refresh(t, now);
		t->again = 0;
		t->pull = t->out;
		t->pull_ns = now + saina_flow_grace(f);
	}
}

/* --- rounds ----------------------------------------------------------------------------- */

void saina_flow_add(struct saina_flow *f, uint32_t n)
{
	f->assigned += n;
}

/* Begins @round with nothing in flight. */
void saina_flow_round(struct saina_flow *f, uint32_t round)
{
	f->follows = round == f->round + 1 && f->assigned && !f->broken;
	memset(f->train, 0, ((f->assigned + f->cut - 1) / f->cut) * sizeof(*f->train));
	if (f->assigned)
		f->last_assigned = f->assigned;
	f->assigned = f->taken = f->first = f->end = f->inflight = f->shut = 0;
	f->gated = f->may_step_back = f->broken = f->hole = false;
	f->fetch_ns = 0;
	f->fetch_tries = f->fetch_at = f->fetch_left = 0;
	f->round = round;
	saina_early_drop(&f->early, 0, round);
}

static void gate(struct saina_flow *f, uint32_t round, uint64_t now)
{
	saina_flow_round(f, round);
	f->gated = round != f->floor && round > 0;
	f->follows = false;
	f->gate_ns = now;
}

/* A round that others have opened or not. */
void saina_flow_set(struct saina_flow *f, uint32_t round, uint64_t now)
{
	gate(f, round, now);
	f->may_step_back = true;
}

void saina_flow_begin(struct saina_flow *f, uint32_t first_round, bool formed, uint64_t now)
{
	f->floor = formed ? first_round : 0;
	gate(f, first_round, now);
	saina_flow_next(f, first_round, now);
	for (uint32_t i = 0; i < f->segments; i++)
		f->known[i] = formed || !first_round ? first_round : UINT32_MAX;
}

/*
 * Either the data path has lived on, then all goes on as before; or it is a new one
 * (the job was forming): then it begins at @first_round and knows nothing of what was
 * before, and its first round is like any first round.
 */
bool saina_flow_again(struct saina_flow *f, uint32_t first_round, bool formed, uint64_t now)
{
	bool begun = false;

	/* Everything in flight may have been dropped: ask. */
	for (uint32_t j = f->first; j < f->end; j++) {
		train_refresh(&f->train[j], now);
		f->train[j].hasty = true;
		f->train[j].pull_ns = now;
	}
	if (!formed)
		return true;

	f->floor = first_round;
	f->follows = false;
	for (uint32_t j = 0; j * f->cut < f->assigned; j++)
		begun |= f->train[j].over != 0;
	if (f->round >= f->floor && (begun || saina_early_count(&f->early, f->round)))
		return false;
	/* Results of another life of the job. */
	saina_early_drop(&f->early, f->floor, UINT32_MAX);
	f->known_next = f->floor;
	for (uint32_t j = f->first; j < f->end; j++) {
		struct saina_train *t = &f->train[j];

		t->sent &= ~t->out;
		t->counted = t->again = t->pull = t->pulled = 0;
		train_set(f, t, 0, 0);
	}
	return true;
}
