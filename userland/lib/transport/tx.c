// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * When to send what: window, gate, questions, pulls.
 *
 * Segment s of a round is sent once s - pool has its result, so that the aggregator has a
 * slot for it.  Segments leave in trains: all workers cut the gradient at the same
 * ones, so the last worker's train is answered by a train of results.  As many
 * are in flight as the window (window.c) has room for.
 */
#include "batch.h"

#define WAIT_NS	  (20 * MSEC)	/* a death must be noticed: so often the oldest is asked about */
#define SILENT_NS (1000 * MSEC)
#define ECHO_NS	  (5 * MSEC)
#define GATE_NS	  (1000 * MSEC)

#define LOSSY	    200		/* one lost of so many is what we call lossy */
#define LOSSY_NS    (MSEC / 5)	/* patience there, above a round trip */
#define LOSSY_TRIES 8		/* before it grows */
#define HASTY	    2		/* so often at once, for questions are lost as well */

/* Where actions go. */
struct outbox {
	struct saina_act *act;
	size_t n, max;
};

static void put(struct outbox *out, enum saina_act_type type, uint32_t round, uint32_t segment,
		bool again)
{
	out->act[out->n++] = (struct saina_act){type, round, segment, again};
}

/* One for each of @bits of train @j. */
static void put_all(const struct saina_flow *f, struct outbox *out, enum saina_act_type type,
		    uint32_t round, uint32_t j, uint64_t bits, bool again)
{
	for (; bits; bits &= bits - 1)
		put(out, type, round, j * f->cut + __builtin_ctzll(bits), again);
}

static void earliest(uint64_t *when, uint64_t ns)
{
	if (ns < *when)
		*when = ns;
}

/* Where much is lost it pays to ask more often than costs nothing. */
static bool lossy(const struct saina_flow *f)
{
	return f->lost * LOSSY > f->told;
}

/* Twice the round trip, or twice what trains take with all that they wait for, others
 * included: else every train of a host that is busy would be asked about.
 */
static uint64_t base(const struct saina_flow *f)
{
	const struct saina_window *w = &f->window;
	uint64_t ns = saina_window_patience(w), soon = w->srtt + 2 * w->rttvar + LOSSY_NS;
	uint64_t usual = 2 * f->took < WAIT_NS ? 2 * f->took : WAIT_NS;

	if (lossy(f))
		return soon < ns ? soon : ns;
	return usual > ns ? usual : ns;
}

/* As long as that for the first questions, then longer and longer. */
static uint64_t backoff(const struct saina_flow *f, unsigned int tries, uint64_t max)
{
	uint64_t ns = base(f);

	if (max < ns)
		max = ns;
	for (; tries > 2 && ns < max; tries--)
		ns *= 2;
	return ns < max ? ns : max;
}

/* How long a train may be silent; @first: it is the oldest in flight. */
static uint64_t patience(const struct saina_flow *f, const struct saina_train *t, bool first)
{
	uint64_t ns, dead = 0;

	if (t->hasty)
		return 0;
	if (lossy(f)) /* what others wait for is lost as easily, and questions are */
		ns = backoff(f, t->tries > LOSSY_TRIES ? t->tries - LOSSY_TRIES : 0, 8 * base(f));
	else
		ns = backoff(f, t->tries, first && t->waits ? WAIT_NS : SILENT_NS);
	/* Nobody is there? */
	if (t->unanswered > 5)
		dead = backoff(f, t->unanswered - 3, SILENT_NS);
	return ns > dead ? ns : dead;
}

/* Where much is lost questions go right behind the train. */
static void sent(const struct saina_flow *f, struct saina_train *t, uint64_t now)
{
	t->grad_ns = t->quiet_ns = now;
	t->hasty = lossy(f) ? HASTY : 0;
}

static void ask(struct saina_flow *f, uint32_t j, uint64_t now, struct outbox *out)
{
	struct saina_train *t = &f->train[j];
	uint64_t bits = t->out ? t->out : t->learn;

	put(out, SAINA_ACT_ASK, t->out ? f->round : f->round - 1,
	    j * f->cut + __builtin_ctzll(bits), false);
	f->asked_ns = t->quiet_ns = now;
	f->news = false;
	if (t->hasty)
		t->hasty--;
	else if (lossy(f))
		t->hasty = HASTY - 1;
	if (t->tries < 255)
		t->tries++;
	if (t->unanswered < 255)
		t->unanswered++;
}

/* PULLs of train @j: of this round, and of the one before. */
static void pull(struct saina_flow *f, uint32_t j, uint64_t now, struct outbox *out)
{
	struct saina_train *t = &f->train[j];

	put_all(f, out, SAINA_ACT_PULL, f->round, j, t->pull & t->out, true);
	put_all(f, out, SAINA_ACT_PULL, f->round - 1, j, t->pull & t->learn & ~t->out, true);
	t->pulled |= t->pull & t->out;
	t->pull = 0;
	t->pulled_ns = t->quiet_ns = now;
	t->hasty = lossy(f) ? HASTY : 0;
}

/*
 * The policy's time-out: a slot that has been open for so long is complete with those that
 * are in, at the next PULL.  Whoever was first in the slot is the first to send one, when its
 * own gradient has been away for so long.  It has nothing to do with loss: others come later
 * only if that PULL is lost, or if those that are in are too few.
 */
static bool limit(struct saina_flow *f, uint32_t j, uint64_t now, struct outbox *out,
		  uint64_t *when)
{
	struct saina_train *t = &f->train[j];
	uint64_t due = t->first_ns + f->timeout_ns, bits = t->out & t->sent;

	if (!f->timeout_ns || !bits)
		return false;
	if (due < t->limit_ns)
		due = t->limit_ns;
	if (now < due) {
		earliest(when, due);
		return false;
	}
	put_all(f, out, SAINA_ACT_PULL, f->round, j, bits, t->limits != 0);
	t->limit_ns = now + (t->limits < 4 ? MSEC << t->limits : WAIT_NS);
	if (t->limits < 255)
		t->limits++;
	return true;
}

/* What train @j, which is in flight, needs now. */
static void look_after(struct saina_flow *f, uint32_t j, bool first, uint64_t now,
		       struct outbox *out, uint64_t *when)
{
	struct saina_train *t = &f->train[j];
	uint64_t due;

	if (limit(f, j, now, out, when))
		return;
	if (saina_flow_decided(f) || f->broken) {
		t->again = 0;
		if (!t->pull) {
			t->pull = t->out;
			t->pull_ns = t->quiet_ns + backoff(f, t->tries, SILENT_NS);
			if (t->tries < 255)
				t->tries++;
		}
	}
	t->again &= t->out;
	t->pull &= t->out | t->learn;
	if (t->again) {
		put_all(f, out, SAINA_ACT_GRAD, f->round, j, t->again, true);
		t->again = 0;
		sent(f, t, now);
	} else if (t->pull) {
		if (now >= t->pull_ns)
			pull(f, j, now, out);
		else
			earliest(when, t->pull_ns);
	} else {
		due = t->quiet_ns + patience(f, t, first);
		if (now >= due)
			ask(f, j, now, out);
		else
			earliest(when, due);
	}
}

/* May a worker that came into a running job contribute to its first round? */
static bool gate_open(struct saina_flow *f, uint64_t now)
{
	if (!f->gated)
		return true;
	if (f->known_next <= f->round) {
		for (uint32_t i = 0; i < f->assigned; i++)
			if (f->known[i] != f->round)
				return false;
		/* Perhaps there are buckets to come that r - 1 still waits for. */
		if (f->assigned < f->segments && now < f->gate_ns + GATE_NS)
			return false;
	}
	f->gated = false;
	/* Results of the round before that are under way are not waited for any more. */
	for (uint32_t j = f->first; j < f->end; j++) {
		struct saina_train *t = &f->train[j];

		train_set(f, t, t->out, 0);
		t->pull &= t->out;
		train_refresh(t, now);
	}
	return true;
}

/* Are the slots of @bits of train @j free? */
static bool slots_free(const struct saina_flow *f, uint32_t j, uint64_t bits)
{
	for (; bits; bits &= bits - 1) {
		uint32_t i = j * f->cut + __builtin_ctzll(bits);

		if (i >= f->pool && !(train_of(f, i - f->pool)->over & bit_of(f, i - f->pool)))
			return false;
	}
	return true;
}

/* Those of @bits whose last result is to be asked for. */
static uint64_t unlearned(const struct saina_flow *f, uint32_t j, uint64_t bits)
{
	uint64_t unknown = 0;

	for (; bits; bits &= bits - 1)
		if (f->known[j * f->cut + __builtin_ctzll(bits)] != f->round)
			unknown |= bits & -bits;
	return unknown;
}

/* The next train that may leave. */
static void send_new(struct saina_flow *f, bool gate, uint64_t now, struct outbox *out,
		     uint64_t *when)
{
	bool pulls = saina_flow_decided(f) || f->broken;

	if (!gate)
		earliest(when, now + 10 * MSEC);
	for (uint32_t j = f->first; j * f->cut < f->taken; j++) {
		struct saina_train *t = &f->train[j];
		uint64_t bits = train_below(f, j, f->taken) & ~(t->out | t->learn | t->over), learn;

		if (!bits)
			continue;
		learn = pulls || gate ? 0 : unlearned(f, j, bits);
		if (!pulls && !learn && !gate)
			continue;
		if (!pulls && !learn && !slots_free(f, j, bits))
			return;
		if (!train_busy(t) && f->inflight >= f->window.size) {
			f->window.limited = true;
			return;
		}
		if (j >= f->end)
			f->end = j + 1;
		if (pulls || learn) {
			put_all(f, out, SAINA_ACT_PULL, learn ? f->round - 1 : f->round, j,
				learn ? learn : bits, false);
			train_set(f, t, t->out | (learn ? 0 : bits), t->learn | learn);
			train_refresh(t, now);
		} else {
			put_all(f, out, SAINA_ACT_GRAD, f->round, j, bits, false);
			train_set(f, t, t->out | bits, t->learn);
			if (!t->sent)
				t->first_ns = now;
			t->sent |= bits;
			sent(f, t, now);
		}
		return;
	}
}

/* While results come nobody is silent: the round trip is to be known all the same. */
static void echo(struct saina_flow *f, uint64_t now, struct outbox *out, uint64_t *when)
{
	uint64_t due = saina_window_patience(&f->window);

	due = f->asked_ns + (due > ECHO_NS ? due : ECHO_NS);
	if (!f->inflight || !f->news)
		return;
	if (now < due) {
		earliest(when, due);
		return;
	}
	for (uint32_t j = f->first; j < f->end; j++) {
		if (train_busy(&f->train[j])) {
			ask(f, j, now, out);
			return;
		}
	}
}

/* The first round from the present one on that is decided, but not all here. */
static bool to_fetch(const struct saina_flow *f, uint32_t *round)
{
	if (f->assigned || f->broken || !f->last_assigned || f->round < f->floor)
		return false;
	for (*round = f->round; *round + 1 < f->known_next && *round < f->round + f->ring; ++*round)
		if (!saina_flow_complete(f, *round))
			return true;
	return false;
}

/*
 * The trainer still computes but its rounds are decided: get what was lost on the
 * way before the aggregator forgets it, a window of trains at a time.
 */
static void fetch(struct saina_flow *f, uint64_t now, struct outbox *out, uint64_t *when)
{
	uint32_t round;

	if (!to_fetch(f, &round)) {
		f->fetch_ns = 0;
		f->fetch_tries = 0;
		return;
	}
	if (!f->fetch_ns)
		f->fetch_ns = now + saina_window_patience(&f->window);
	if (now >= f->fetch_ns) {
		f->fetch_at = 0;
		f->fetch_left = f->window.size;
		f->fetch_tries++;
		f->fetch_ns = now + backoff(f, f->fetch_tries, SILENT_NS);
	}
	for (; f->fetch_left && f->fetch_at * f->cut < f->last_assigned && !out->n; f->fetch_at++) {
		uint32_t end = (f->fetch_at + 1) * f->cut;

		for (uint32_t i = f->fetch_at * f->cut; i < end && i < f->last_assigned; i++)
			if (!saina_early_has(&f->early, round, i))
				put(out, SAINA_ACT_PULL, round, i, f->fetch_tries > 1);
		f->fetch_left -= out->n != 0;
	}
	earliest(when, f->fetch_ns);
}

/* Segments that the trainer has started since: what is decided, at once. */
static void take_early(struct saina_flow *f, struct outbox *out)
{
	for (; f->taken < f->assigned && out->n < out->max; f->taken++) {
		struct saina_train *t = train_of(f, f->taken);
		uint64_t bit = bit_of(f, f->taken);

		if (t->over & bit || !saina_early_has(&f->early, f->round, f->taken))
			continue;
		t->over |= bit;
		f->known[f->taken] = f->round + 1;
		put(out, SAINA_ACT_EARLY, f->round, f->taken, false);
	}
}

/* What the data path began after: gone with its predecessor. */
static void give_up(struct saina_flow *f, struct outbox *out)
{
	for (uint32_t i = f->first * f->cut; i < f->taken && out->n < out->max; i++) {
		struct saina_train *t = train_of(f, i);

		if (t->over & bit_of(f, i))
			continue;
		train_set(f, t, t->out & ~bit_of(f, i), t->learn & ~bit_of(f, i));
		t->over |= bit_of(f, i);
		f->broken = true;
		put(out, SAINA_ACT_LOST, f->round, i, false);
	}
}

static void act(struct saina_flow *f, uint64_t now, struct outbox *out, uint64_t *when)
{
	bool first = true, gate = gate_open(f, now);

	while (f->first < f->end &&
	       f->train[f->first].over == train_below(f, f->first, f->segments))
		f->first++;
	for (uint32_t j = f->first; j < f->end && !out->n; j++) {
		if (!train_busy(&f->train[j]))
			continue;
		look_after(f, j, first, now, out, when);
		first = false;
	}
	if (!out->n)
		send_new(f, gate, now, out, when);
	if (!out->n)
		echo(f, now, out, when);
	if (!out->n)
		fetch(f, now, out, when);
}

size_t saina_flow_run(struct saina_flow *f, uint64_t now, struct saina_act *acts, size_t max,
		      uint64_t *when)
{
	struct outbox out = {acts, 0, max};

	*when = NEVER;
	take_early(f, &out);
	if (!out.n && f->round < f->floor)
		give_up(f, &out);
	if (!out.n)
		act(f, now, &out, when);
	return out.n;
}
