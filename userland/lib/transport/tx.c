// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * What to send, and when: new batches, ASKs, PULLs.
 *
 * Segment s of a round is sent once s - pool has its result, so that the aggregator has a free
 * slot for it.  Segments leave in batches.  All workers cut the gradient at the same segments, so
 * the last worker's batch is answered by a batch of results.  The congestion window (cwnd.c)
 * bounds the batches in flight.
 */
#include "batch.h"

#define WAIT_NS	    (20 * MSEC) /* Probe the oldest batch at least this often to detect dead peers. */
#define SILENT_NS   (1000 * MSEC) /* longest interval between ASKs that are not answered */
#define ECHO_NS	    (5 * MSEC)	  /* sample the round trip at most this often */
#define CATCH_UP_NS (1000 * MSEC)

#define LOSSY	    200	       /* a path is lossy if it loses one gradient of this many */
#define LOSSY_NS    (MSEC / 5) /* time-out beyond a round trip, on a lossy path */
#define LOSSY_TRIES 8	       /* tries before the time-out grows, on a lossy path */
#define PROBE_BURST 2	       /* ASKs at once, on a lossy path, which loses ASKs, too */

/* Actions of this call of saina_flow_run(). */
struct outbox {
	struct saina_act *act;
	size_t n, max;
};

static void add_act(struct outbox *out, enum saina_act_type type, uint32_t round, uint32_t segment,
		    bool again)
{
	out->act[out->n++] = (struct saina_act){type, round, segment, again};
}

/* Adds an action for each segment of @bits of batch @j. */
static void add_acts(const struct saina_flow *f, struct outbox *out, enum saina_act_type type,
		     uint32_t round, uint32_t j, uint64_t bits, bool again)
{
	for (; bits; bits &= bits - 1)
		add_act(out, type, round, j * f->per_batch + __builtin_ctzll(bits), again);
}

static void earliest(uint64_t *when, uint64_t ns)
{
	if (ns < *when)
		*when = ns;
}

/*
 * On a lossy path probe early; the extra probes pay for themselves.  Not while the round waits for a
 * worker that is far behind, which no probe makes faster.
 */
static bool is_lossy(const struct saina_flow *f)
{
	return !f->held && f->lost * LOSSY > f->loss_samples;
}

/*
 * Twice the round trip, or twice the time that batches take, the wait for other workers included:
 * otherwise a busy host's workers would ask about every batch.
 */
static uint64_t base_rto(const struct saina_flow *f)
{
	const struct saina_cwnd *w = &f->cwnd;
	uint64_t ns = saina_cwnd_rto(w), soon = w->srtt + 2 * w->rttvar + LOSSY_NS;
	uint64_t usual = 2 * f->completion_ns < WAIT_NS ? 2 * f->completion_ns : WAIT_NS;

	if (is_lossy(f))
		return soon < ns ? soon : ns;
	return usual > ns ? usual : ns;
}

/* base_rto() for the first tries, then twice as long for each, up to @max. */
static uint64_t backoff_ns(const struct saina_flow *f, unsigned int tries, uint64_t max)
{
	uint64_t ns = base_rto(f);

	if (max < ns)
		max = ns;
	for (; tries > 2 && ns < max; tries--)
		ns *= 2;
	return ns < max ? ns : max;
}

/* How long a batch may be silent before an ASK; @first: it is the oldest in flight. */
static uint64_t batch_rto(const struct saina_flow *f, const struct saina_batch *b, bool first)
{
	uint64_t ns, dead = 0;

	if (b->probe_burst)
		return 0;
	if (is_lossy(f)) /* gradients that others wait for, and ASKs, are lost as easily */
		ns = backoff_ns(f, b->tries > LOSSY_TRIES ? b->tries - LOSSY_TRIES : 0,
				8 * base_rto(f));
	else
		ns = backoff_ns(f, b->tries, first && b->waits_for_peers ? WAIT_NS : SILENT_NS);
	/* Perhaps the aggregator is gone: ask less often. */
	if (b->unanswered > 5)
		dead = backoff_ns(f, b->unanswered - 3, SILENT_NS);
	return ns > dead ? ns : dead;
}

/* A batch was sent.  On a lossy path an ASK follows it at once. */
static void mark_sent(const struct saina_flow *f, struct saina_batch *b, uint64_t now)
{
	b->grad_ns = b->activity_ns = now;
	b->probe_burst = is_lossy(f) ? PROBE_BURST : 0;
}

static void send_ask(struct saina_flow *f, uint32_t j, uint64_t now, struct outbox *out)
{
	struct saina_batch *b = &f->batch[j];
	uint64_t bits = b->out ? b->out : b->catch_up;

	add_act(out, SAINA_ACT_ASK, b->out ? f->round : f->round - 1,
		j * f->per_batch + __builtin_ctzll(bits), false);
	f->ask_ns = b->activity_ns = now;
	f->result_since_ask = false;
	if (b->probe_burst)
		b->probe_burst--;
	else if (is_lossy(f))
		b->probe_burst = PROBE_BURST - 1;
	if (b->tries < 255)
		b->tries++;
	if (b->unanswered < 255)
		b->unanswered++;
}

/* Sends the PULLs of batch @j that are due, for this round and the previous one. */
static void send_pulls(struct saina_flow *f, uint32_t j, uint64_t now, struct outbox *out)
{
	struct saina_batch *b = &f->batch[j];

	add_acts(f, out, SAINA_ACT_PULL, f->round, j, b->pull & b->out, true);
	add_acts(f, out, SAINA_ACT_PULL, f->round - 1, j, b->pull & b->catch_up & ~b->out, true);
	b->pulled |= b->pull & b->out;
	b->pull = 0;
	b->pulled_ns = b->activity_ns = now;
	b->probe_burst = is_lossy(f) ? PROBE_BURST : 0;
}

/*
 * The policy's time-out: a slot that has been open that long completes with the gradients it has,
 * at the next PULL.  The first worker in the slot is the first to send one, when its own gradient
 * has been away that long.  Later workers' PULLs only matter if that one was lost, or if too few
 * gradients were in.
 */
static bool pull_on_timeout(struct saina_flow *f, uint32_t j, uint64_t now, struct outbox *out,
			    uint64_t *when)
{
	struct saina_batch *b = &f->batch[j];
	uint64_t due = b->first_ns + f->timeout_ns, bits = b->out & b->sent;

	if (!f->timeout_ns || !bits)
		return false;
	if (due < b->timeout_pull_ns)
		due = b->timeout_pull_ns;
	if (now < due) {
		earliest(when, due);
		return false;
	}
	add_acts(f, out, SAINA_ACT_PULL, f->round, j, bits, b->timeout_pulls != 0);
	b->timeout_pull_ns = now + (b->timeout_pulls < 4 ? MSEC << b->timeout_pulls : WAIT_NS);
	if (b->timeout_pulls < 255)
		b->timeout_pulls++;
	return true;
}

/* Batch @j is in flight: do what is due. */
static void service_batch(struct saina_flow *f, uint32_t j, bool first, uint64_t now,
			  struct outbox *out, uint64_t *when)
{
	struct saina_batch *b = &f->batch[j];
	uint64_t due;

	if (pull_on_timeout(f, j, now, out, when))
		return;
	if (saina_flow_decided(f) || f->stale) {
		b->resend = 0;
		if (!b->pull) {
			b->pull = b->out;
			b->pull_ns = b->activity_ns + backoff_ns(f, b->tries, SILENT_NS);
			if (b->tries < 255)
				b->tries++;
		}
	}
	b->resend &= b->out;
	b->pull &= b->out | b->catch_up;
	if (b->resend) {
		add_acts(f, out, SAINA_ACT_GRAD, f->round, j, b->resend, true);
		b->resend = 0;
		mark_sent(f, b, now);
	} else if (b->pull) {
		if (now >= b->pull_ns)
			send_pulls(f, j, now, out);
		else
			earliest(when, b->pull_ns);
	} else {
		due = b->activity_ns + batch_rto(f, b, first);
		if (now >= due)
			send_ask(f, j, now, out);
		else
			earliest(when, due);
	}
}

/* May a worker that catches up contribute to its first round? */
static bool may_contribute(struct saina_flow *f, uint64_t now)
{
	if (!f->catching_up)
		return true;
	if (f->known_next <= f->round) {
		for (uint32_t i = 0; i < f->assigned; i++)
			if (f->known[i] != f->round)
				return false;
		/* The trainer may still submit segments that the previous round waits for. */
		if (f->assigned < f->segments && now < f->catch_up_ns + CATCH_UP_NS)
			return false;
	}
	f->catching_up = false;
	/* Results of the previous round that are still to come are not needed any more. */
	for (uint32_t j = f->first; j < f->end; j++) {
		struct saina_batch *b = &f->batch[j];

		batch_set(f, b, b->out, 0);
		b->pull &= b->out;
		batch_refresh(b, now);
	}
	return true;
}

/* Are the slots of @bits of batch @j free? */
static bool slots_free(const struct saina_flow *f, uint32_t j, uint64_t bits)
{
	for (; bits; bits &= bits - 1) {
		uint32_t i = j * f->per_batch + __builtin_ctzll(bits);

		if (i >= f->pool && !(batch_of(f, i - f->pool)->over & bit_of(f, i - f->pool)))
			return false;
	}
	return true;
}

/* The segments of @bits whose result of the previous round is unknown. */
static uint64_t select_catch_up(const struct saina_flow *f, uint32_t j, uint64_t bits)
{
	uint64_t unknown = 0;

	for (; bits; bits &= bits - 1)
		if (f->known[j * f->per_batch + __builtin_ctzll(bits)] != f->round)
			unknown |= bits & -bits;
	return unknown;
}

/* Sends the next batch that may leave. */
static void send_next_batch(struct saina_flow *f, bool may_send, uint64_t now, struct outbox *out,
			    uint64_t *when)
{
	bool pulls = saina_flow_decided(f) || f->stale;

	if (!may_send)
		earliest(when, now + 10 * MSEC);
	for (uint32_t j = f->first; j * f->per_batch < f->ready; j++) {
		struct saina_batch *b = &f->batch[j];
		uint64_t bits = batch_below(f, j, f->ready) & ~(b->out | b->catch_up | b->over);
		uint64_t catch_up;

		if (!bits)
			continue;
		catch_up = pulls || may_send ? 0 : select_catch_up(f, j, bits);
		if (!pulls && !catch_up && !may_send)
			continue;
		if (!pulls && !catch_up && !slots_free(f, j, bits))
			return;
		if (!batch_busy(b) && f->inflight >= f->cwnd.size) {
			f->cwnd.limited = true;
			return;
		}
		if (j >= f->end)
			f->end = j + 1;
		if (pulls || catch_up) {
			add_acts(f, out, SAINA_ACT_PULL, catch_up ? f->round - 1 : f->round, j,
				 catch_up ? catch_up : bits, false);
			batch_set(f, b, b->out | (catch_up ? 0 : bits), b->catch_up | catch_up);
			batch_refresh(b, now);
		} else {
			add_acts(f, out, SAINA_ACT_GRAD, f->round, j, bits, false);
			batch_set(f, b, b->out | bits, b->catch_up);
			if (!b->sent)
				b->first_ns = now;
			b->sent |= bits;
			mark_sent(f, b, now);
		}
		return;
	}
}

/* While results keep coming no batch is silent: send an ASK to measure the round trip. */
static void probe_rtt(struct saina_flow *f, uint64_t now, struct outbox *out, uint64_t *when)
{
	uint64_t due = saina_cwnd_rto(&f->cwnd);

	due = f->ask_ns + (due > ECHO_NS ? due : ECHO_NS);
	if (!f->inflight || !f->result_since_ask)
		return;
	if (now < due) {
		earliest(when, due);
		return;
	}
	for (uint32_t j = f->first; j < f->end; j++) {
		if (batch_busy(&f->batch[j])) {
			send_ask(f, j, now, out);
			return;
		}
	}
}

/* The first round from the present one on that is decided, but whose results are incomplete. */
static bool find_incomplete_round(const struct saina_flow *f, uint32_t *round)
{
	if (f->assigned || f->stale || !f->last_assigned || f->round < f->floor)
		return false;
	for (*round = f->round; *round + 1 < f->known_next && *round < f->round + f->ring; ++*round)
		if (!saina_flow_complete(f, *round))
			return true;
	return false;
}

/*
 * The trainer still computes but its rounds are decided: PULL the results that were lost before
 * the aggregator forgets them, a window of batches at a time.
 */
static void fetch_results(struct saina_flow *f, uint64_t now, struct outbox *out, uint64_t *when)
{
	uint32_t round;

	if (!find_incomplete_round(f, &round)) {
		f->fetch_ns = 0;
		f->fetch_tries = 0;
		return;
	}
	if (!f->fetch_ns)
		f->fetch_ns = now + saina_cwnd_rto(&f->cwnd);
	if (now >= f->fetch_ns) {
		f->fetch_at = 0;
		f->fetch_left = f->cwnd.size;
		f->fetch_tries++;
		f->fetch_ns = now + backoff_ns(f, f->fetch_tries, SILENT_NS);
	}
	for (; f->fetch_left && f->fetch_at * f->per_batch < f->last_assigned && !out->n;
	     f->fetch_at++) {
		uint32_t end = (f->fetch_at + 1) * f->per_batch;

		for (uint32_t i = f->fetch_at * f->per_batch; i < end && i < f->last_assigned; i++)
			if (!saina_reorder_has(&f->reorder, round, i))
				add_act(out, SAINA_ACT_PULL, round, i, f->fetch_tries > 1);
		f->fetch_left -= out->n != 0;
	}
	earliest(when, f->fetch_ns);
}

/* The trainer has submitted segments whose results have come already. */
static void take_reordered(struct saina_flow *f, struct outbox *out)
{
	for (; f->ready < f->assigned && out->n < out->max; f->ready++) {
		struct saina_batch *b = batch_of(f, f->ready);
		uint64_t bit = bit_of(f, f->ready);

		if (b->over & bit || !saina_reorder_has(&f->reorder, f->round, f->ready))
			continue;
		b->over |= bit;
		f->known[f->ready] = f->round + 1;
		add_act(out, SAINA_ACT_REORDERED, f->round, f->ready, false);
	}
}

/* The round is older than the data path, which does not have its results. */
static void give_up_old_round(struct saina_flow *f, struct outbox *out)
{
	for (uint32_t i = f->first * f->per_batch; i < f->ready && out->n < out->max; i++) {
		struct saina_batch *b = batch_of(f, i);

		if (b->over & bit_of(f, i))
			continue;
		batch_set(f, b, b->out & ~bit_of(f, i), b->catch_up & ~bit_of(f, i));
		b->over |= bit_of(f, i);
		f->stale = true;
		add_act(out, SAINA_ACT_LOST, f->round, i, false);
	}
}

/*
 * A worker whose results all come before it sends anything is far behind without a word.  The policy
 * may make others wait for it (lead), so it says how far it is.
 */
static void report_round(struct saina_flow *f, struct outbox *out)
{
	if (f->reported || f->stale || !f->ready || f->batch[0].sent & 1)
		return;
	if (!(f->batch[0].over & 1))
		return;
	f->reported = true;
	add_act(out, SAINA_ACT_ASK, f->round, 0, false);
}

static void run_batches(struct saina_flow *f, uint64_t now, struct outbox *out, uint64_t *when)
{
	bool first = true, may_send = may_contribute(f, now);

	while (f->first < f->end &&
	       f->batch[f->first].over == batch_below(f, f->first, f->segments))
		f->first++;
	for (uint32_t j = f->first; j < f->end && !out->n; j++) {
		if (!batch_busy(&f->batch[j]))
			continue;
		service_batch(f, j, first, now, out, when);
		first = false;
	}
	if (!out->n)
		send_next_batch(f, may_send, now, out, when);
	if (!out->n)
		probe_rtt(f, now, out, when);
	if (!out->n)
		fetch_results(f, now, out, when);
}

size_t saina_flow_run(struct saina_flow *f, uint64_t now, struct saina_act *acts, size_t max,
		      uint64_t *when)
{
	struct outbox out = {acts, 0, max};

	*when = NEVER;
	take_reordered(f, &out);
	if (!out.n && f->round < f->floor)
		give_up_old_round(f, &out);
	if (!out.n)
		report_round(f, &out);
	if (!out.n)
		run_batches(f, now, &out, when);
	return out.n;
}
